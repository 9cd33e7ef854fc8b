"""The walk of a client library: connect, list, activate, call, read a resource; then its own way.

A driver gives a `Library`: how a session is opened, and what the library does by default where that
is something else. Each step is a line of JSON on stdout: its name, and why it failed if it did.
"""

import asyncio
import inspect
import json
import os
import sys
from dataclasses import dataclass

CONTROL = "toolman_activate"
WANTED = "everything_echo"
MESSAGE = "hello from the script"
ARGUMENTS = {"tools_on": [WANTED], "tools_off": [], "resources_on": [], "resources_off": []}
PROMPT = "Switch on the echo tool and use it."

# The endpoint of the scripted model, for libraries that bring an agent.
MODEL = os.environ.get("SCRIPTED_MODEL", "")


@dataclass
class Server:
    """Toolman, by a command or by a URL and a token."""

    command: list[str]
    url: str = ""
    token: str = ""

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}


class Failed(Exception):
    """A step did not do what it is for."""


class Steps:
    """Takes a step after another, and tells of each."""

    async def take(self, name: str, action):
        try:
            value = action()
            value = await value if inspect.isawaitable(value) else value
        except BaseException as error:
            self.tell(name, causes(error))
            raise
        self.tell(name)
        return value

    def tell(self, name: str, why: str | None = None) -> None:
        print(json.dumps({"step": name, "why": why}), flush=True)


def causes(error: BaseException) -> str:
    """What went wrong, without the groups that libraries wrap it into."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(causes(inner) for inner in error.exceptions)
    text = str(error) or repr(error)
    return text if isinstance(error, Failed) else f"{type(error).__name__}: {text}"


def expect(condition, problem: str) -> None:
    if not condition:
        raise Failed(problem)


async def called(session) -> None:
    names = await settled(session.names())
    expect(WANTED in names, f"listed: {', '.join(names)}")
    answer = str(await settled(session.call(WANTED, {"message": MESSAGE})))
    expect(MESSAGE in answer, answer)


async def settled(value):
    return await value if inspect.isawaitable(value) else value


async def walk(session, steps: Steps) -> None:
    """With one session all the way; a library without resources has no `uris`."""

    async def listed() -> None:
        names = await settled(session.names())
        expect(CONTROL in names, f"listed: {', '.join(names)}")

    async def activated() -> None:
        answer = str(await settled(session.call(CONTROL, ARGUMENTS)))
        expect(WANTED in answer, answer)

    async def read() -> None:
        uris = await settled(session.uris())
        expect(uris, "no resource is listed")
        text = str(await settled(session.read(uris[0])))
        expect(len(text) > 20, text)

    await steps.take("list", listed)
    await steps.take("activate", activated)
    try:
        await steps.take("call", lambda: called(session))
    finally:
        if hasattr(session, "uris"):
            await steps.take("read", read)


def run(open_session=None, default=None, agent=None) -> None:
    """`DRIVER walk|default|agent SERVER`: the walk with `open_session(server)`, an async context, or
    what the library does by default, or its agent; the last two are told the server, too.

    Each part is a process of its own, with a Toolman of its own: none finds what another has
    switched on.
    """
    part, *rest = sys.argv[1:]
    url = rest[0].startswith("http://")
    server = Server([], *rest[:2]) if url else Server(rest)
    steps = Steps()

    async def all_steps() -> None:
        if part != "walk":
            await steps.take(part, lambda: (default if part == "default" else agent)(server))
            return
        context = open_session(server)
        session = await steps.take("connect", context.__aenter__)
        try:
            await walk(session, steps)
        finally:
            await context.__aexit__(None, None, None)

    try:
        asyncio.run(all_steps())
    except BaseException as error:
        print(causes(error), file=sys.stderr)
    sys.stdout.flush()
    # Whatever the library has left running ends here.
    os._exit(0)
