"""A small server on FastMCP 4: `fastmcp_v4.py stdio`, or `sse` or `http` with a PORT."""

import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

from fastmcp import Context, FastMCP

server = FastMCP("small")


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
server.run(sys.argv[1], show_banner=False, log_level="WARNING", **where)
