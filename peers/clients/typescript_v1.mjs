// Drives toolman with the TypeScript SDK 1.x: `node typescript_v1.mjs TOOLMAN DIRECTORY` over stdio,
// `node typescript_v1.mjs URL TOKEN` over HTTP, or over HTTP+SSE where the URL ends in `/sse`.
//
// The last line on stdout is `ok`, or the exit code is 1.

import { peer, run } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = peer("@modelcontextprotocol/sdk/client/sse.js");
const { StdioClientTransport } = peer("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = peer("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { ToolListChangedNotificationSchema } = peer("@modelcontextprotocol/sdk/types.js");

await run((server, changes) => {
  const client = new Client({ name: "typescript_v1.mjs", version: "1.0.0" });
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => changes.note());
  const Remote = server.url?.pathname === "/sse" ? SSEClientTransport : StreamableHTTPClientTransport;
  const transport = server.url
    ? new Remote(server.url, server.options)
    : new StdioClientTransport(server);
  return { client, transport };
});
