// A small server on the TypeScript SDK 2.x: `typescript_v2.mjs stdio`, or `streamable-http` with a PORT.

import { createServer } from "node:http";
import { createRequire } from "node:module";

const peer = createRequire(new URL("../../target/peers/npm/package.json", import.meta.url));
const { McpServer, ResourceTemplate, createMcpHandler } = peer("@modelcontextprotocol/server");
const { serveStdio } = peer("@modelcontextprotocol/server/stdio");
const { toNodeHandler } = peer("@modelcontextprotocol/node");
const z = peer("zod");

const text = (words) => ({ content: [{ type: "text", text: words }] });

function small() {
  const server = new McpServer({ name: "small", version: "1.0.0" });
  const numbers = z.object({ a: z.number(), b: z.number() });
  server.registerTool("add", { inputSchema: numbers }, ({ a, b }) => text(`${a + b}`));

  const walk = { inputSchema: z.object({ steps: z.number() }) };
  server.registerTool("walk", walk, async ({ steps }, ctx) => {
    const { progressToken } = ctx.mcpReq._meta ?? {};
    for (let progress = 1; progress <= steps && progressToken !== undefined; progress += 1) {
      const params = { progressToken, progress, total: steps };
      await ctx.mcpReq.notify({ method: "notifications/progress", params });
    }
    return text("there");
  });

  const note = (uri, words) => ({ contents: [{ uri: uri.href, text: words }] });
  server.registerResource("today", "note://today", {}, (uri) => note(uri, "water the plants"));
  const days = new ResourceTemplate("note://of/{day}", { list: undefined });
  server.registerResource("day", days, {}, (uri, { day }) => note(uri, `nothing on ${day}`));

  const greet = { argsSchema: z.object({ name: z.string() }) };
  server.registerPrompt("greet", greet, ({ name }) => ({
    messages: [{ role: "user", content: { type: "text", text: `Say hello to ${name}.` } }],
  }));
  return server;
}

if (process.argv[2] === "stdio") {
  serveStdio(small);
} else {
  createServer(toNodeHandler(createMcpHandler(small))).listen(Number(process.argv[3]), "127.0.0.1");
}
