// The walk of `steps.py` for the TypeScript SDKs: `node DRIVER walk SERVER`.
//
// Each step is a line of JSON on stdout: its name, and why it failed if it did.

import { createRequire } from "node:module";

const CONTROL = "toolman_activate";
const WANTED = "everything_echo";
const MESSAGE = "hello from the script";
const ARGUMENTS = { tools_on: [WANTED], tools_off: [], resources_on: [], resources_off: [] };

/** Loads a package from where `cargo xtask peers` puts it. */
export const peer = createRequire(new URL("../../../target/peers/npm/package.json", import.meta.url));

/** Walks with what `build(server)` gives: a client and its transport. */
export async function run(build) {
  const [first, ...rest] = process.argv.slice(3);
  const headers = { Authorization: `Bearer ${rest[0]}` };
  const server = first.startsWith("http://")
    ? { url: new URL(first), options: { requestInit: { headers } } }
    : { command: first, args: rest };
  try {
    const { client, transport } = build(server);
    await take("connect", () => client.connect(transport));
    await walk(client);
  } catch (error) {
    console.error(error);
  }
  process.exit(0);
}

async function walk(client) {
  await take("list", async () => {
    const names = await listed(client);
    expect(names.includes(CONTROL), `listed: ${names.join(", ")}`);
  });
  await take("activate", async () => {
    const answer = JSON.stringify(await client.callTool({ name: CONTROL, arguments: ARGUMENTS }));
    expect(answer.includes(WANTED), answer);
  });
  await take("call", async () => {
    const names = await listed(client);
    expect(names.includes(WANTED), `listed: ${names.join(", ")}`);
    const call = { name: WANTED, arguments: { message: MESSAGE } };
    const answer = JSON.stringify(await client.callTool(call));
    expect(answer.includes(MESSAGE), answer);
  });
  await take("read", async () => {
    const { resources } = await client.listResources();
    expect(resources.length > 0, "no resource is listed");
    const { contents } = await client.readResource({ uri: resources[0].uri });
    expect(contents[0].text.length > 20, JSON.stringify(contents));
  });
}

async function listed(client) {
  return (await client.listTools()).tools.map((tool) => tool.name);
}

async function take(step, action) {
  try {
    await action();
  } catch (error) {
    console.log(JSON.stringify({ step, why: error.message ?? String(error) }));
    throw error;
  }
  console.log(JSON.stringify({ step, why: null }));
}

function expect(condition, problem) {
  if (!condition) throw new Error(problem);
}
