// Makes, tests and removes a tool by the manager, with the TypeScript SDK 1.x, which holds every structured result to
// its schema: `node manager.mjs URL TOKEN NAMESPACE`.
//
// The last line on stdout is `ok`, or the exit code is 1.

import assert from "node:assert/strict";
import { peer } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = peer("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [url, token, namespace] = process.argv.slice(2);
const client = new Client({ name: "manager.mjs", version: "1.0.0" });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));

// The schemas of results are learnt from the list.
const { tools } = await client.listTools();
assert(tools.every((tool) => tool.outputSchema && tool.annotations && tool.title));

async function done(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.notEqual(result.isError, true, JSON.stringify(result));
  return result.structuredContent;
}

async function refused(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, JSON.stringify(result));
}

const code = `from fastmcp.tools import tool

@tool
async def greet(name: str, loud: bool = False) -> dict:
    """Greet somebody.

    Args:
        name: Who is greeted.
        loud: Whether it is shouted.
    """
    text = f"Hello, {name}!"
    return {"text": text.upper() if loud else text}
`;

await done("get_started");
assert((await done("create_namespace", { name: namespace })).created);
await refused("create_namespace", { name: namespace });
const wrong = await done("write_tool", { namespace, filename: "g.py", code: "def f(:" });
assert.equal(wrong.written, false);
assert.equal(wrong.error, "Syntax error");
assert.deepEqual((await done("write_tool", { namespace, filename: "g.py", code })).tools_found, ["greet"]);
assert((await done("reload_core")).reloaded);
const input = { name: "Ada", loud: true };
const tried = await done("test_tool", { namespace, tool_name: "greet", input });
assert.deepEqual(tried, { success: true, result: { text: "HELLO, ADA!" } });
assert.equal((await done("list_tools", { namespace })).result.length, 1);
assert((await done("list_namespaces")).result.some((row) => row.name === namespace));
assert((await done("prepare_secret", { key: "SOME_KEY", namespace: null })).instructions.startsWith("Run: toolman"));
assert((await done("list_secrets")).result.some((row) => row.key === "SOME_KEY"));
assert((await done("remove_secret", { key: "SOME_KEY" })).removed);
assert((await done("health")).core_reachable);
await done("server_config");
await refused("delete_namespace", { name: "_system" });
assert((await done("delete_namespace", { name: namespace })).deleted);
await done("reload_core");
await client.close();
console.log("ok");
