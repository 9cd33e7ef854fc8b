"""Drives toolman with the Python SDK 2.x: `python_v2.py TOOLMAN DIRECTORY [MODE]` over stdio,
`python_v2.py URL TOKEN [MODE]` over HTTP.

MODE is the SDK's: `legacy` (the default here) begins with `initialize`; `auto` asks for the modern
era first and finds it. The last line on stdout is `ok`, or the exit code is 1.
"""

import asyncio
import contextlib
import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

import httpx2
from mcp import Client as SdkClient
from mcp import MCPError, StdioServerParameters, types
from mcp.client.streamable_http import streamable_http_client

import scenario


class Client:
    def __init__(self, client: SdkClient) -> None:
        self.client = client

    async def catalog(self) -> str:
        return (await self.client.list_tools()).tools[0].description

    async def tool_names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, arguments: dict) -> scenario.Answer:
        try:
            result = await self.client.call_tool(name, arguments)
        except MCPError as error:
            return scenario.Answer(is_error=True, texts=[str(error)], is_rpc_error=True)
        texts = [block.text for block in result.content if block.type == "text"]
        return scenario.Answer(is_error=bool(result.is_error), texts=texts)

    async def resource_uris(self) -> list[str]:
        return [resource.uri for resource in (await self.client.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri)).contents[0].text

    async def prompt_names(self) -> list[str]:
        return [prompt.name for prompt in (await self.client.list_prompts()).prompts]

    async def prompt(self, name: str, arguments: dict) -> str:
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text


def target(server: tuple[str, str]):
    if scenario.is_url(server):
        headers = {"Authorization": f"Bearer {server[1]}"}
        return streamable_http_client(server[0], http_client=httpx2.AsyncClient(headers=headers))
    return StdioServerParameters(command=server[0], cwd=server[1])


async def connect(server, changes, progress) -> None:
    async def on_message(message) -> None:
        if isinstance(message, Exception):
            progress.unread.append(message)
        elif isinstance(message, types.ToolListChangedNotification):
            await changes.note()

    mode = sys.argv[3] if len(sys.argv) > 3 else "legacy"
    async with SdkClient(target(server), mode=mode, message_handler=on_message) as client:
        version = client.protocol_version
        newest = "2025-11-25" if mode == "legacy" else "2026-07-28"
        scenario.expect(version == newest, f"the newest revision of `{mode}` is spoken", version)
        async with listening(client, changes, mode):
            await scenario.walk(Client(client), changes, progress, uri_prefix="every_")
        progress.step = "close"


@contextlib.asynccontextmanager
async def listening(client: SdkClient, changes, mode: str):
    """In the modern era one hears of changes only on a stream that one has asked for."""
    if mode == "legacy":
        yield
        return
    async with client.listen(tools_list_changed=True) as subscription:

        async def note_all() -> None:
            async for _ in subscription:
                await changes.note()

        noting = asyncio.create_task(note_all())
        yield
        noting.cancel()


scenario.run(connect)
