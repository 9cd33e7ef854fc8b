// Drives toolman over stdio with the TypeScript SDK 2.x:
// `node stdio_v2.mjs TOOLMAN DIRECTORY [MODE]`.
//
// MODE is the SDK's: `legacy` (the default) begins with `initialize`; `auto` asks for the modern
// era first and falls back. The last line on stdout is `ok`, or the exit code is 1.

import { peer, run } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/client");
const { StdioClientTransport } = peer("@modelcontextprotocol/client/stdio");

await run((server, changes) => {
  const mode = process.argv[4] ?? "legacy";
  const options = { versionNegotiation: { mode } };
  const client = new Client({ name: "stdio_v2.mjs", version: "1.0.0" }, options);
  client.setNotificationHandler("notifications/tools/list_changed", () => changes.note());
  return { client, transport: new StdioClientTransport(server) };
});
