// The TypeScript SDK 1.x.

import { peer, run } from "./steps.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = peer("@modelcontextprotocol/sdk/client/stdio.js");
const { StreamableHTTPClientTransport } = peer("@modelcontextprotocol/sdk/client/streamableHttp.js");

await run((server) => ({
  client: new Client({ name: "typescript_sdk1.mjs", version: "1.0.0" }),
  transport: server.url
    ? new StreamableHTTPClientTransport(server.url, server.options)
    : new StdioClientTransport(server),
}));
