// Drives toolman with the TypeScript SDK 2.x: `node typescript_v2.mjs TOOLMAN DIRECTORY [MODE]` over
// stdio, `node typescript_v2.mjs URL TOKEN [MODE]` over HTTP.
//
// MODE is the SDK's: `legacy` (the default) begins with `initialize`; `auto` asks for the modern
// era first and finds it. The last line on stdout is `ok`, or the exit code is 1.

import { peer, run } from "./scenario.mjs";

const { Client, StreamableHTTPClientTransport } = peer("@modelcontextprotocol/client");
const { StdioClientTransport } = peer("@modelcontextprotocol/client/stdio");

await run((server, changes) => {
  const mode = process.argv[4] ?? "legacy";
  const options = { versionNegotiation: { mode } };
  const client = new Client({ name: "typescript_v2.mjs", version: "1.0.0" }, options);
  client.setNotificationHandler("notifications/tools/list_changed", () => changes.note());
  const transport = server.url
    ? new StreamableHTTPClientTransport(server.url, server.options)
    : new StdioClientTransport(server);
  return { client, transport };
});
