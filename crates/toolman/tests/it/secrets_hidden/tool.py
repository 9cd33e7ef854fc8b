"""Tools of a worker that tell its secrets wherever they can."""

import os
import sys

from fastmcp import Context
from fastmcp.tools import tool

from spell import VALUES, everything

print("loading with", *everything())


@tool
async def show(ctx: Context) -> dict:
    """Tell all."""
    await ctx.info(" ".join(everything()))
    await ctx.report_progress(1, 2, " ".join(VALUES))
    print(*everything(), file=sys.stderr)
    return {"all": everything(), VALUES[0]: VALUES[1]}


@tool
def fail() -> str:
    """Fail with all."""
    everywhere = everything()
    raise ValueError(" ".join(everywhere))


@tool
def crash() -> str:
    """End with all on stderr."""
    print("\n".join(everything()[-40:]), file=sys.stderr, flush=True)
    os._exit(3)
