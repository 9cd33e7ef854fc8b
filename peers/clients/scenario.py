"""The walk that every Python client takes through toolman, whatever SDK it is built on.

A client is an object with `catalog`, `tool_names`, `call`, `resource_uris`, `read`,
`prompt_names` and `prompt`, all async. This file knows what toolman promises; the SDKs stay in
`python_v1.py`, `python_v2.py` and `fastmcp_v4.py`.
"""

import asyncio
import os
import sys
import threading
from dataclasses import dataclass

DEADLINE_S = 60

# A confirmation is a sentence, not a page: a model reads it on every activation.
CONFIRMATION_LENGTH_MAX = 300


class Broken(Exception):
    """Toolman did not keep a promise."""


@dataclass
class Answer:
    """What a call gave: a result, or a JSON-RPC error where `is_rpc_error`."""

    is_error: bool
    texts: list[str]
    is_rpc_error: bool = False

    @property
    def text(self) -> str:
        return "\n".join(self.texts)


class ListChanges:
    """Counts `notifications/tools/list_changed`, so that a step can wait for the next one."""

    def __init__(self) -> None:
        self.count = 0
        self._condition = asyncio.Condition()

    async def note(self) -> None:
        async with self._condition:
            self.count += 1
            self._condition.notify_all()

    async def after(self, count: int) -> None:
        async with self._condition:
            await self._condition.wait_for(lambda: self.count > count)


class Progress:
    """The step under way, and what the SDK could not read, for the message when it fails."""

    def __init__(self) -> None:
        self.step = "connect"
        self.unread: list[Exception] = []

    def failure(self, problem: str) -> str:
        unread = "".join(f"\nthe SDK cannot read a message: {error}" for error in self.unread)
        return f"failed at the step: {self.step}: {problem}{unread}"


def expect(condition: bool, promise: str, seen: object) -> None:
    if not condition:
        raise Broken(f"{promise}; saw: {seen}")


async def walk(client, changes: ListChanges, progress: Progress, uri_prefix: str) -> None:
    progress.step = "wait for the servers"
    await started(client, changes)

    progress.step = "list tools"
    names = await client.tool_names()
    expect("every_echo" in names, "an active tool is listed", names)
    expect("toolman_activate" in names, "`toolman_activate` is listed", names)
    expect("time_get_current_time" not in names, "an inactive tool is not listed", names)

    await activate(client, changes, progress)
    await use_items(client, progress, uri_prefix)
    await err(client, progress)
    await crash(client, changes, progress)
    expect(not progress.unread, "the SDK can read every message", len(progress.unread))


async def activate(client, changes: ListChanges, progress: Progress) -> None:
    progress.step = "activate a tool"
    before = changes.count
    lists = {"tools_off": [], "resources_on": [], "resources_off": []}
    answer = await client.call(
        "toolman_activate", {"tools_on": ["time_get_current_time"], **lists}
    )
    expect(not answer.is_error, "activation succeeds", answer)
    expect(len(answer.texts) == 2, "activation answers with two blocks", answer)
    confirmation, definition = answer.texts
    expect(len(confirmation) <= CONFIRMATION_LENGTH_MAX, "the confirmation is short", answer)
    for word in ("time_get_current_time", "inputSchema", "timezone"):
        expect(word in definition, f"the definition holds `{word}`", answer)

    progress.step = "wait for the changed list"
    await changes.after(before)
    names = await client.tool_names()
    expect("time_get_current_time" in names, "an activated tool is listed", names)

    progress.step = "call the activated tool"
    answer = await client.call("time_get_current_time", {"timezone": "UTC"})
    expect(not answer.is_error, "an activated tool can be called", answer)
    expect('"timezone": "UTC"' in answer.text, "the time server gives the time in UTC", answer)


async def use_items(client, progress: Progress, uri_prefix: str) -> None:
    progress.step = "call `every_echo`"
    await echo(client)

    progress.step = "read a resource"
    uris = await client.resource_uris()
    uri = f"{uri_prefix}demo://resource/static/document/architecture.md"
    expect(uri in uris, f"`{uri}` is listed", uris)
    text = await client.read(uri)
    expect("Everything Server" in text, "the document is that of the server", text[:200])

    progress.step = "get a prompt"
    names = await client.prompt_names()
    expect("every_simple-prompt" in names, "prompts are listed with their prefix", names)
    expect("sqlite_mcp-demo" in names, "prompts of every server are listed", names)
    text = await client.prompt("every_simple-prompt", {})
    expect("simple prompt" in text, "a prompt without arguments is given", text)
    text = await client.prompt("every_args-prompt", {"city": "Bonn"})
    expect("Bonn" in text, "the argument of a prompt arrives", text)


async def err(client, progress: Progress) -> None:
    progress.step = "call an inactive tool"
    answer = await client.call("time_convert_time", {})
    expect(answer.is_error and not answer.is_rpc_error, "an inactive tool is an error result", answer)
    expect("toolman_activate" in answer.text, "the error says how to activate", answer)

    progress.step = "call an unknown tool"
    answer = await client.call("every_ecko", {"message": "hi"})
    expect(answer.is_error and not answer.is_rpc_error, "an unknown tool is an error result", answer)
    expect("every_echo" in answer.text, "the error suggests the right name", answer)


async def crash(client, changes: ListChanges, progress: Progress) -> None:
    progress.step = "list the tools of `crash`"
    names = await client.tool_names()
    expect({"crash_echo", "crash_die"} <= set(names), "the tools of `crash` are listed", names)

    progress.step = "call `crash_die`"
    before = changes.count
    answer = await client.call("crash_die", {})
    expect(answer.is_error, "a call that kills its server is an error", answer)
    expect(answer.is_rpc_error or "crash" in answer.text, "the error names the server", answer)

    progress.step = "wait for the tools of `crash` to leave"
    await changes.after(before)
    await tools_once(
        client, changes, lambda names: not any(name.startswith("crash_") for name in names)
    )

    progress.step = "call `every_echo` after the crash"
    await echo(client)


async def echo(client) -> None:
    answer = await client.call("every_echo", {"message": "hi"})
    expect(not answer.is_error, "`every_echo` answers", answer)
    expect(answer.texts == ["Echo: hi"], "the answer is relayed as it is", answer)


async def started(client, changes: ListChanges) -> None:
    """Waits until every server that the walk needs is in the catalog; a slow one joins late."""
    needed = ("every_echo", "time_get_current_time", "sqlite_list_tables", "crash_die")
    while True:
        seen = changes.count
        catalog = await client.catalog()
        if all(name in catalog for name in needed):
            return
        await changes.after(seen)


async def tools_once(client, changes: ListChanges, holds) -> list[str]:
    """The list of tools once it is as awaited; each change of the list is a new chance."""
    while True:
        seen = changes.count
        names = await client.tool_names()
        if holds(names):
            return names
        await changes.after(seen)


def run(connect) -> None:
    """Runs `connect(server, changes, progress)` and ends the process.

    The server is a pair: a program and its folder, or a URL and a token.

    The deadline is a thread, so it also holds where the event loop is stuck. Toolman sees its
    stdin close and ends too.
    """
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} TOOLMAN DIRECTORY | URL TOKEN")
    progress = Progress()
    server = (sys.argv[1], sys.argv[2])
    if not is_url(server):
        server = (os.path.abspath(server[0]), os.path.abspath(server[1]))

    def late() -> None:
        print(progress.failure(f"not done after {DEADLINE_S} s"), flush=True)
        os._exit(1)

    timer = threading.Timer(DEADLINE_S, late)
    timer.daemon = True
    timer.start()

    async def drive() -> None:
        await connect(server, ListChanges(), progress)

    try:
        asyncio.run(drive())
    except BaseException as error:  # An SDK wraps what went wrong into groups.
        print(progress.failure("; ".join(causes(error))), flush=True)
        sys.exit(1)
    print("ok", flush=True)


def is_url(server: tuple[str, str]) -> bool:
    return server[0].startswith("http://")


def causes(error: BaseException) -> list[str]:
    if isinstance(error, BaseExceptionGroup):
        return [cause for inner in error.exceptions for cause in causes(inner)]
    return [f"{type(error).__name__}: {error}"]
