// Walks through toolsets with the TypeScript SDK 1.x, which holds every structured result to its schema:
// `node toolsets.mjs TOOLMAN DIRECTORY SURFACE`, where the surface is `toolset` or `dynamic`.
//
// The last line on stdout is `ok`, or the exit code is 1.

import assert from "node:assert/strict";
import { peer } from "./scenario.mjs";

const { Client } = peer("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = peer("@modelcontextprotocol/sdk/client/stdio.js");

const [command, cwd, surface] = process.argv.slice(2);
const client = new Client({ name: "toolsets.mjs", version: "1.0.0" });
await client.connect(new StdioClientTransport({ command, cwd, env: { ...process.env, XDG_DATA_HOME: cwd } }));

// The schemas of results are learnt from the list.
const names = async () => new Set((await client.listTools()).tools.map((tool) => tool.name));

async function done(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.notEqual(result.isError, true, JSON.stringify(result));
  return result.structuredContent;
}

// The one tool of the server whose results this SDK accepts says that it has failed.
async function reached(name) {
  const result = await client.callTool({ name, arguments: {} });
  assert.equal(result.content[0].text, "it failed");
}

async function refused(name, args = {}) {
  const result = await client.callTool({ name, arguments: args });
  assert.equal(result.isError, true, JSON.stringify(result));
}

if (surface === "toolset") {
  assert((await names()).has("git_fail"));
  const available = await done("list-available-tools");
  const { refId } = available.toolsByServer[0].tools.find((tool) => tool.name === "fail");
  await done("build-toolset", { name: "mine", tools: [{ refId }], autoEquip: true });
  assert((await names()).has("git_fail") && !(await names()).has("git_echo"));
  await reached("git_fail");
  await refused("git_echo");
  assert((await done("get-active-toolset")).equipped);
  await done("unequip-toolset");
  assert((await names()).has("git_echo"));
  await done("equip-toolset", { name: "mine" });
  await done("delete-toolset", { name: "mine", confirm: true });
  assert.deepEqual((await done("list-saved-toolsets")).toolsets, []);
} else {
  assert(!(await names()).has("fail.fail"));
  await done("enable_toolset", { name: "fail" });
  assert((await names()).has("fail.fail"));
  await reached("fail.fail");
  await done("list_toolsets");
  await done("describe_toolset", { name: "fail" });
  await done("list_tools");
  await done("disable_toolset", { name: "fail" });
  assert(!(await names()).has("fail.fail"));
  await refused("fail.fail");
}
await client.close();
console.log("ok");
