//! Tools of JavaScript and TypeScript, as their sources write them.

use crate::tools::testing::check;

#[test]
fn registrations_of_the_sdk_are_found_with_their_schemas() {
    let index = r#"
import { z } from "zod";
const server = new McpServer({ name: "demo", version: "1" });
server.tool("ping", async () => ({ content: [] }));
server.tool("add", "Adds two numbers", { a: z.number(), b: z.number().optional() }, async ({ a, b }) => ({}));
server.registerTool(
  "search",
  { title: "Search", description: "Finds " + "things", inputSchema: { query: z.string().describe("what to find") } },
  async ({ query }) => ({ content: [] }),
);
log.tool("not a tool");
"#;
    check(
        &[("src/index.ts", index)],
        "ping src/index.ts:4 () \n\
         add src/index.ts:5 (a:number!, b:number) Adds two numbers\n\
         search src/index.ts:6 (query:string!=what to find) Finds things\n",
    );
}

#[test]
fn names_are_followed_into_other_files_and_enums() {
    let names = "export const ECHO = 'echo';\nexport enum ToolName { SUM = 'get-sum', }\n";
    let schema = "import { z } from 'zod';\nexport const EchoSchema = z.object({ message: z.string().describe('said back') });\n";
    let index = r#"
import { ECHO, ToolName } from "./names.js";
import * as schemas from "./schemas.js";
server.setRequestHandler(ListToolsRequestSchema, async () => {
  const tools: Tool[] = [
    { name: ECHO, description: `Says it back`, inputSchema: zodToJsonSchema(schemas.EchoSchema) as ToolInput },
  ];
  if (process.env.MORE) tools.push({ name: ToolName.SUM, description: "Sum", inputSchema: { type: "object", properties: { a: { type: "number", description: "first" }, b: { type: "number" } }, required: ["a"] } });
  return { tools };
});
"#;
    check(
        &[("src/index.ts", index), ("src/names.ts", names), ("src/schemas.ts", schema)],
        "echo src/index.ts:6 (message:string!=said back) Says it back\n\
         get-sum src/index.ts:8 (a:number!=first, b:number) Sum\n",
    );
}

#[test]
fn compiled_enums_constants_and_spreads_are_followed() {
    let index = r#"
var ToolName;
(function (ToolName) {
    ToolName["ECHO"] = "echo";
})(ToolName || (ToolName = {}));
const PING_TOOL = { name: "ping", description: "Pings", inputSchema: { type: "object", properties: {} } };
const MORE = [PING_TOOL];
const TOOLS = [{ name: ToolName.ECHO, description: "Echo", inputSchema: {} }, ...MORE];
server.setRequestHandler(types_js_1.ListToolsRequestSchema, async () => ({ tools: TOOLS }));
"#;
    check(
        &[("dist/index.js", index)],
        "ping dist/index.js:6 () Pings\necho dist/index.js:8 () Echo\n",
    );
}

#[test]
fn loops_over_known_lists_register_each_of_them() {
    let index = r#"
const tools = { first: { name: "one", description: "1", parameters: {} }, second: { name: "two", description: "2", parameters: {} } };
for (const tool of Object.values(tools)) {
  server.registerTool(tool.name, { description: tool.description }, tool.run);
}
Object.entries({ three: { description: "3" } }).forEach(([name, tool]) => server.registerTool(name, tool, run));
[{ name: "four", about: "4" }].map(({ name, about }) => server.tool(name, about, handler));
"#;
    check(
        &[("index.mjs", index)],
        "one index.mjs:4 () 1\ntwo index.mjs:4 () 2\nthree index.mjs:6 () 3\nfour index.mjs:7 () 4\n",
    );
}

#[test]
fn what_cannot_be_followed_counts_by_its_shape() {
    let tools = r#"
export default defineTool({ name: "whoami", description: "Who", inputSchema: { verbose: z.boolean().default(false) } });
const person = { name: "nobody", age: 3 };
"#;
    let index = "registry.all().forEach((tool) => server.registerTool(tool.name, tool.config, tool.run));\n";
    check(
        &[("src/index.ts", index), ("src/whoami.ts", tools)],
        "whoami src/whoami.ts:2 (verbose:boolean) Who\n",
    );
}

#[test]
fn tool_is_counted_once_and_as_it_was_written() {
    let source = "server.tool('a', 'From source', handler);\n";
    let built = "server.tool('a', 'From build', handler);\n";
    check(
        &[("package.json", "{}"), ("dist/index.js", built), ("src/index.ts", source)],
        "a src/index.ts:1 () From source\n",
    );
    // Two packages of one repository are two servers.
    check(
        &[
            ("x/package.json", "{}"),
            ("x/index.js", built),
            ("y/package.json", "{}"),
            ("y/index.js", source),
        ],
        "a x/index.js:1 () From build\na y/index.js:1 () From source\n",
    );
}

#[test]
fn tests_and_mocks_are_no_sources() {
    let test = "server.tool('fake', 'A fake', handler);\n";
    check(
        &[("src/__tests__/a.ts", test), ("src/a.test.ts", test), ("node_modules/x/a.js", test)],
        "",
    );
}

#[test]
fn definitions_without_end_are_given_up() {
    let index = "const a = b; const b = a;\nserver.tool(a, 'x', handler);\nconst c = c + c;\nserver.tool(c, 'x', handler);\n\
        const d = [...d, ...d];\nserver.setRequestHandler(ListToolsRequestSchema, () => ({ tools: d }));\n";
    check(&[("index.js", index)], "");
    let doubling: Vec<String> =
        (1..60).map(|n| format!("const v{n} = v{} + v{};", n - 1, n - 1)).collect();
    let doubling = doubling.join("\n");
    let index = format!("const v0 = 'x';\n{doubling}\nserver.tool(v59, 'x', handler);\n");
    check(&[("index.js", &index)], "");
}

#[test]
fn deep_nesting_is_survived() {
    let deep =
        format!("server.tool('a', {}1{}, handler);\n", "(".repeat(20_000), ")".repeat(20_000));
    let index = format!("server.tool('b', 'fine', handler);\n{deep}");
    check(&[("index.js", &index)], "b index.js:1 () fine\na index.js:2 () \n");
}

#[test]
fn shape_that_is_spread_into_another_is_followed() {
    let index = r#"
const Options = z.object({ title: z.string(), body: z.string().optional() });
const Schema = z.object({ owner: z.string(), ...Options.shape });
server.registerTool("create", { inputSchema: zodToJsonSchema(Schema) }, run);
"#;
    check(
        &[("index.js", index)],
        "create index.js:4 (owner:string!, title:string!, body:string) \n",
    );
}
