// Makes, tests and removes a tool by the manager, with the TypeScript SDK 1.x, which holds every structured result to
// its schema: `node manager.mjs URL TOKEN NAMESPACE REPOSITORY`. In the end, every tool that is listed was called.
//
// The last line on stdout is `ok`, or the exit code is 1.

import assert from "node:assert/strict";
import { peer } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = peer("@modelcontextprotocol/sdk/client/streamableHttp.js");

const [url, token, namespace, repository] = process.argv.slice(2);
const client = new Client({ name: "manager.mjs", version: "1.0.0" });
const requestInit = { headers: { Authorization: `Bearer ${token}` } };
await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));

// The schemas of results are learnt from the list.
const { tools } = await client.listTools();
assert(tools.every((tool) => tool.outputSchema && tool.annotations && tool.title));

const called = new Set();

async function done(name, args = {}) {
  called.add(name);
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
const analysis = await done("analyze_repo", { repo_url: repository, refresh: true });
assert.deepEqual(analysis.tools_found.map((tool) => tool.name), ["forecast"]);
const file = await done("read_repo_file", { repo_url: repository, path: analysis.tools_found[0].file });
assert(file.content.includes("registerTool"));
await refused("analyze_repo", { repo_url: "--upload-pack=x" });
assert.equal((await done("install_from_repo", { repo_url: repository, namespace })).namespace, namespace);
assert.equal((await done("search_registry", { query: "one" })).result[0].package_type, "npm");
const packaged = await done("install_from_registry", { package: "@a/one", namespace, package_type: "npm" });
assert.equal(packaged.tools_found[0].parameters[0].name, "name");
assert.equal((await done("install_server", { package: "@a/one", namespace })).proposed, true);
assert((await done("create_namespace", { name: namespace })).created);
await refused("create_namespace", { name: namespace });
const wrong = await done("write_tool", { namespace, filename: "g.py", code: "def f(:" });
assert.equal(wrong.written, false);
assert.equal(wrong.error, "Syntax error");
assert.deepEqual((await done("write_tool", { namespace, filename: "g.py", code })).tools_found, ["greet"]);
assert.equal((await done("get_tool_source", { namespace, filename: "g.py" })).source, code);
const { code: template } = await done("get_tool_template");
assert((await done("generate_tool", { namespace, filename: "t.py", code: template })).written);
assert((await done("delete_tool", { namespace, filename: "t.py" })).deleted);
assert((await done("add_requirement", { namespace, package: "idna==3.10" })).added);
assert.deepEqual((await done("list_requirements", { namespace })).packages, ["idna==3.10"]);
assert((await done("install_requirements", { namespace })).installed);
assert((await done("install_pip_packages", { packages: ["idna==3.10"] })).installed);
assert((await done("reload_core")).reloaded);
const input = { name: "Ada", loud: true };
const tried = await done("test_tool", { namespace, tool_name: "greet", input });
assert.deepEqual(tried, { success: true, result: { text: "HELLO, ADA!" } });
assert.equal((await done("list_tools", { namespace })).result.length, 1);
assert((await done("list_namespaces")).result.some((row) => row.name === namespace));
assert.deepEqual((await done("declare_secret", { namespace, key: "OTHER_KEY" })).secrets, ["OTHER_KEY"]);
assert.deepEqual((await done("check_secrets", { namespace })).missing, ["OTHER_KEY"]);
assert((await done("prepare_secret", { key: "SOME_KEY", namespace: null })).instructions.startsWith("Run: toolman"));
assert((await done("list_secrets")).result.some((row) => row.key === "SOME_KEY"));
assert((await done("remove_secret", { key: "SOME_KEY" })).removed);
assert((await done("health")).core_reachable);
await done("server_config");
await refused("delete_namespace", { name: "_system" });
assert((await done("delete_namespace", { name: namespace })).deleted);
await done("reload_core");
assert.deepEqual([...called].sort(), tools.map((tool) => tool.name).sort());
await client.close();
console.log("ok");
