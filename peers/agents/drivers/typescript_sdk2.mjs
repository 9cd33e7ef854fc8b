// The TypeScript SDK 2.x, asking for the modern era first.

import { peer, run } from "./steps.mjs";

const { Client, StreamableHTTPClientTransport } = peer("@modelcontextprotocol/client");
const { StdioClientTransport } = peer("@modelcontextprotocol/client/stdio");

await run((server) => {
  const options = { versionNegotiation: { mode: "auto" } };
  return {
    client: new Client({ name: "typescript_sdk2.mjs", version: "1.0.0" }, options),
    transport: server.url
      ? new StreamableHTTPClientTransport(server.url, server.options)
      : new StdioClientTransport(server),
  };
});
