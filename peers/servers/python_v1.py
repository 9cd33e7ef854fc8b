"""A small server on the Python SDK 1.x: `python_v1.py stdio`, or `sse` or `streamable-http` with a PORT."""

import asyncio
import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

from mcp.server.fastmcp import Context, FastMCP

TRANSPORT, PORT = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0

server = FastMCP("small", host="127.0.0.1", port=PORT, log_level="WARNING")


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


@server.tool()
async def walk(steps: int, ctx: Context, pause_ms: int = 0) -> str:
    """Reports each step."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps)
        await asyncio.sleep(pause_ms / 1000)
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


server.run(TRANSPORT)
