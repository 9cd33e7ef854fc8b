// The walk that every TypeScript SDK client takes through toolman.
//
// The two generations of the SDK agree on the methods used here. This file knows what toolman
// promises; how a client is made and connected stays in `typescript_v1.mjs` and `typescript_v2.mjs`.

import { createRequire } from "node:module";
import { resolve } from "node:path";

const NEWEST_LEGACY = "2025-11-25";
const NEWEST_MODERN = "2026-07-28";
const DEADLINE_MS = 60_000;

// A confirmation is a sentence, not a page: a model reads it on every activation.
const CONFIRMATION_LENGTH_MAX = 300;

/** Loads a package from where `cargo xtask peers` puts it. */
export const peer = createRequire(new URL("../../target/peers/npm/package.json", import.meta.url));

/** Counts `notifications/tools/list_changed`, so that a step can wait for the next one. */
export class ListChanges {
  count = 0;
  #waiting = [];

  note() {
    this.count += 1;
    for (const wake of this.#waiting.splice(0)) wake();
  }

  async after(count) {
    while (this.count <= count) await new Promise((wake) => this.#waiting.push(wake));
  }
}

/** Connects what `build(server, changes)` gives, takes it through toolman and ends the process. */
export async function run(build) {
  if (process.argv.length < 4) {
    console.error(`usage: node ${process.argv[1]} TOOLMAN DIRECTORY | URL TOKEN`);
    process.exit(1);
  }
  const progress = { step: "connect" };
  // Toolman sees its stdin close and ends too.
  const deadline = setTimeout(() => fail(progress, "not done in time"), DEADLINE_MS);
  try {
    const changes = new ListChanges();
    const { client, transport } = build(target(...process.argv.slice(2, 4)), changes);
    client.onerror = (error) => fail(progress, `the SDK complains: ${error}`);
    await client.connect(transport);
    // Only the second generation tells.
    const version = client.getNegotiatedProtocolVersion?.() ?? NEWEST_LEGACY;
    const isModern = process.argv[4] === "auto";
    const newest = isModern ? NEWEST_MODERN : NEWEST_LEGACY;
    expect(version === newest, "the newest revision of the era is spoken", version);
    // In the modern era one hears of changes only on a stream that one has asked for.
    if (isModern) await client.listen({ toolsListChanged: true });
    await walk(client, changes, progress);
    progress.step = "close";
    // The SDK complains that its own stream was aborted, by itself.
    client.onerror = () => {};
    await client.close();
  } catch (error) {
    fail(progress, error);
  }
  clearTimeout(deadline);
  console.log("ok");
}

/** What to connect to: a server to start, or one that is there. */
function target(first, second) {
  if (!first.startsWith("http://")) return { command: resolve(first), cwd: resolve(second) };
  const headers = { Authorization: `Bearer ${second}` };
  return { url: new URL(first), options: { requestInit: { headers } } };
}

function fail(progress, problem) {
  console.log(`failed at the step: ${progress.step}: ${problem}`);
  process.exit(1);
}

function expect(condition, promise, seen) {
  if (!condition) throw new Error(`${promise}; saw: ${JSON.stringify(seen)}`);
}

async function walk(client, changes, progress) {
  progress.step = "wait for the servers";
  await started(client, changes);

  progress.step = "list tools";
  const names = await toolNames(client);
  expect(names.includes("every_echo"), "an active tool is listed", names);
  expect(names.includes("toolman_activate"), "`toolman_activate` is listed", names);
  expect(!names.includes("time_get_current_time"), "an inactive tool is not listed", names);

  await activate(client, changes, progress);
  await useItems(client, progress);
  await err(client, progress);
  await crash(client, changes, progress);
}

async function activate(client, changes, progress) {
  progress.step = "activate a tool";
  const before = changes.count;
  const lists = { tools_off: [], resources_on: [], resources_off: [] };
  const activation = await call(client, "toolman_activate", {
    tools_on: ["time_get_current_time"],
    ...lists,
  });
  expect(!activation.isError, "activation succeeds", activation);
  expect(activation.texts.length === 2, "activation answers with two blocks", activation);
  const [confirmation, definition] = activation.texts;
  expect(confirmation.length <= CONFIRMATION_LENGTH_MAX, "the confirmation is short", activation);
  for (const word of ["time_get_current_time", "inputSchema", "timezone"]) {
    expect(definition.includes(word), `the definition holds \`${word}\``, activation);
  }

  progress.step = "wait for the changed list";
  await changes.after(before);
  const names = await toolNames(client);
  expect(names.includes("time_get_current_time"), "an activated tool is listed", names);

  progress.step = "call the activated tool";
  const time = await call(client, "time_get_current_time", { timezone: "UTC" });
  expect(!time.isError, "an activated tool can be called", time);
  expect(time.text.includes('"timezone": "UTC"'), "the time is that of UTC", time);
}

async function useItems(client, progress) {
  progress.step = "call `every_echo`";
  await echo(client);

  progress.step = "read a resource";
  const uris = (await client.listResources()).resources.map((resource) => resource.uri);
  const uri = "every_demo://resource/static/document/architecture.md";
  expect(uris.includes(uri), `\`${uri}\` is listed`, uris);
  const { contents } = await client.readResource({ uri });
  expect(contents[0].text.includes("Everything Server"), "the document is the server's", contents);

  progress.step = "get a prompt";
  const names = (await client.listPrompts()).prompts.map((prompt) => prompt.name);
  expect(names.includes("every_simple-prompt"), "prompts are listed with their prefix", names);
  expect(names.includes("sqlite_mcp-demo"), "prompts of every server are listed", names);
  const simple = await prompt(client, "every_simple-prompt", {});
  expect(simple.includes("simple prompt"), "a prompt without arguments is given", simple);
  const city = await prompt(client, "every_args-prompt", { city: "Bonn" });
  expect(city.includes("Bonn"), "the argument of a prompt arrives", city);
}

async function err(client, progress) {
  progress.step = "call an inactive tool";
  const inactive = await call(client, "time_convert_time", {});
  expect(inactive.isError && !inactive.isRpcError, "it is an error result", inactive);
  expect(inactive.text.includes("toolman_activate"), "it says how to activate", inactive);

  progress.step = "call an unknown tool";
  const unknown = await call(client, "every_ecko", { message: "hi" });
  expect(unknown.isError && !unknown.isRpcError, "it is an error result", unknown);
  expect(unknown.text.includes("every_echo"), "it suggests the right name", unknown);
}

async function crash(client, changes, progress) {
  progress.step = "call `crash_die`";
  const names = await toolNames(client);
  const crashing = ["crash_echo", "crash_die"].every((name) => names.includes(name));
  expect(crashing, "the tools of `crash` are listed", names);
  const before = changes.count;
  const died = await call(client, "crash_die", {});
  expect(died.isError, "a call that kills its server is an error", died);
  expect(died.isRpcError || died.text.includes("crash"), "the error names the server", died);

  progress.step = "wait for the tools of `crash` to leave";
  await changes.after(before);
  const isFromCrash = (name) => name.startsWith("crash_");
  await toolsOnce(client, changes, (names) => !names.some(isFromCrash));

  progress.step = "call `every_echo` after the crash";
  await echo(client);
}

async function echo(client) {
  const answer = await call(client, "every_echo", { message: "hi" });
  expect(!answer.isError && answer.text === "Echo: hi", "the answer is relayed as it is", answer);
}

/** What a call gave: a result, or a JSON-RPC error where `isRpcError`. */
async function call(client, name, args) {
  let result;
  try {
    result = await client.callTool({ name, arguments: args });
  } catch (error) {
    // Only an answer of the server carries a number; a lost connection or a bug must be seen.
    if (!Number.isInteger(error.code)) throw error;
    return { isError: true, isRpcError: true, texts: [error.message], text: error.message };
  }
  const texts = result.content.filter((block) => block.type === "text").map((block) => block.text);
  return { isError: result.isError === true, isRpcError: false, texts, text: texts.join("\n") };
}

async function prompt(client, name, args) {
  return (await client.getPrompt({ name, arguments: args })).messages[0].content.text;
}

async function toolNames(client) {
  return (await client.listTools()).tools.map((tool) => tool.name);
}

/** Waits until every server that the walk needs is in the catalog; a slow one joins late. */
async function started(client, changes) {
  const needed = ["every_echo", "time_get_current_time", "sqlite_list_tables", "crash_die"];
  for (;;) {
    const seen = changes.count;
    const catalog = (await client.listTools()).tools[0].description;
    if (needed.every((name) => catalog.includes(name))) return;
    await changes.after(seen);
  }
}

/** The list of tools once it is as awaited; each change of the list is a new chance. */
async function toolsOnce(client, changes, holds) {
  for (;;) {
    const seen = changes.count;
    const names = await toolNames(client);
    if (holds(names)) return names;
    await changes.after(seen);
  }
}
