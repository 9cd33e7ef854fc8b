// Calls every tool of a namespace with the TypeScript SDK 1.x, which holds every result to its schema.
//
// `node dock.mjs URL TOKEN NAMESPACE CALLS`: over HTTP, or over HTTP+SSE where the URL ends in `/sse`; CALLS is an object with
// the arguments of each tool. The last line on stdout is `ok`, or the exit code is 1.

import assert from "node:assert/strict";
import { peer } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { SSEClientTransport } = peer("@modelcontextprotocol/sdk/client/sse.js");
const { StreamableHTTPClientTransport } = peer("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [url, token, namespace, given] = process.argv.slice(2);
const calls = JSON.parse(given);
const requestInit = { headers: { Authorization: `Bearer ${token}`, "X-Namespace": namespace } };
const Transport = url.endsWith("/sse") ? SSEClientTransport : StreamableHTTPClientTransport;
const client = new Client({ name: "dock.mjs", version: "1.0.0" });
await client.connect(new Transport(new URL(url), { requestInit }));

const { tools } = await client.listTools();
assert.deepEqual(tools.map((tool) => tool.name).sort(), Object.keys(calls).sort());
for (const tool of tools) {
  const result = await client.callTool({ name: tool.name, arguments: calls[tool.name] });
  assert.notEqual(result.isError, true, JSON.stringify(result));
  assert(result.content.length > 0, JSON.stringify(result));
  assert.equal(result.structuredContent === undefined, tool.outputSchema === undefined, JSON.stringify(result));
  // What is wrong with a call can be read, too, whatever the tool has promised.
  const wrong = await client.callTool({ name: tool.name, arguments: { nonsense: 1 } });
  assert.equal(wrong.isError, true, JSON.stringify(wrong));
  assert.match(wrong.content[0].text, /nonsense/);
}
await client.close();
console.log("ok");
