// Drives toolman over stdio with the TypeScript SDK 1.x: `node stdio_v1.mjs TOOLMAN DIRECTORY`.
//
// The last line on stdout is `ok`, or the exit code is 1.

import { peer, run } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = peer("@modelcontextprotocol/sdk/client/stdio.js");
const { ToolListChangedNotificationSchema } = peer("@modelcontextprotocol/sdk/types.js");

await run((server, changes) => {
  const client = new Client({ name: "stdio_v1.mjs", version: "1.0.0" });
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes.note());
  return { client, transport: new StdioClientTransport(server) };
});
