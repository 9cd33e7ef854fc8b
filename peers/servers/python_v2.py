"""A small server on the Python SDK 2.x: `python_v2.py stdio`, or `sse` or `streamable-http` with a PORT."""

import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("small", log_level="WARNING")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def walk(steps: int, ctx: Context) -> str:
    """Reports each step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps)
    return "there"


@server.resource("note://today", name="today")
def today() -> str:
    return "water the plants"


@server.resource("note://of/{day}", name="day")
def day(day: str) -> str:
    return f"nothing on {day}"


@server.prompt()
def greet(name: str) -> str:
    return f"Say hello to {name}."


where = {"host": "127.0.0.1", "port": int(sys.argv[2])} if len(sys.argv) > 2 else {}
server.run(sys.argv[1], **where)
