"""Programs for a command line, which open a session for each command.

Nothing of one command is left for the next but what Toolman keeps for its caller.
"""

import asyncio
import json
import sys
from contextlib import asynccontextmanager

import steps


class Commands:
    """A session that is none: each request runs the program once, and reads what it prints."""

    async def run(self, *arguments: str):
        process = await asyncio.create_subprocess_exec(
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        out, err = await process.communicate()
        steps.expect(process.returncode == 0, (err or out).decode().strip()[-300:])
        return json.loads(out)


def run(build) -> None:
    """`DRIVER walk PROGRAM… -- SERVER`; `build(program, server)` makes the session."""
    part, *rest = sys.argv[1:]
    at = rest.index("--")
    program = rest[:at]
    sys.argv[1:] = [part, *rest[at + 1 :]]

    @asynccontextmanager
    async def open_session(server):
        yield build(program, server)

    steps.run(open_session)
