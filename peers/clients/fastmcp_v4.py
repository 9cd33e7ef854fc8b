"""Drives toolman with FastMCP 4: `fastmcp_v4.py TOOLMAN DIRECTORY [MODE]` over stdio,
`fastmcp_v4.py URL TOKEN [MODE]` over HTTP.

DIRECTORY holds a `tools.toml` with `uri_style = "rfc"`: this library refuses a URI whose scheme holds
an underscore. MODE is the library's: `legacy` (the default here) begins with `initialize`; `auto` asks
for the modern era first and finds it. The last line on stdout is `ok`, or the exit code is 1.
"""

import asyncio
import contextlib
import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

from fastmcp import Client as FastMcpClient
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from mcp import MCPError, types
from mcp.client.subscriptions import listen

import scenario


class Client:
    def __init__(self, client: FastMcpClient) -> None:
        self.client = client

    async def catalog(self) -> str:
        return (await self.client.list_tools())[0].description

    async def tool_names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict) -> scenario.Answer:
        try:
            result = await self.client.call_tool(name, arguments, raise_on_error=False)
        except MCPError as error:
            return scenario.Answer(is_error=True, texts=[str(error)], is_rpc_error=True)
        texts = [block.text for block in result.content if block.type == "text"]
        return scenario.Answer(is_error=result.is_error, texts=texts)

    async def resource_uris(self) -> list[str]:
        return [str(resource.uri) for resource in await self.client.list_resources()]

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri))[0].text

    async def prompt_names(self) -> list[str]:
        return [prompt.name for prompt in await self.client.list_prompts()]

    async def prompt(self, name: str, arguments: dict) -> str:
        return (await self.client.get_prompt(name, arguments)).messages[0].content.text


def transport(server: tuple[str, str]):
    if scenario.is_url(server):
        return StreamableHttpTransport(server[0], headers={"Authorization": f"Bearer {server[1]}"})
    return StdioTransport(server[0], [], cwd=server[1], keep_alive=False)


async def connect(server, changes, progress) -> None:
    async def on_message(message) -> None:
        if isinstance(message, Exception):
            progress.unread.append(message)
        elif isinstance(message, types.ToolListChangedNotification):
            await changes.note()

    mode = sys.argv[3] if len(sys.argv) > 3 else "legacy"
    async with FastMcpClient(transport(server), mode=mode, message_handler=on_message) as client:
        version = client.protocol_version
        newest = "2025-11-25" if mode == "legacy" else "2026-07-28"
        scenario.expect(version == newest, f"the newest revision of `{mode}` is spoken", version)
        async with listening(client, changes, mode):
            await scenario.walk(Client(client), changes, progress, uri_prefix="every+")
        progress.step = "close"


@contextlib.asynccontextmanager
async def listening(client: FastMcpClient, changes, mode: str):
    """In the modern era one hears of changes only on a stream that one has asked for.

    FastMCP has no word for it, but the SDK below it has.
    """
    if mode == "legacy":
        yield
        return
    async with listen(client.session, tools_list_changed=True) as subscription:

        async def note_all() -> None:
            async for _ in subscription:
                await changes.note()

        noting = asyncio.create_task(note_all())
        yield
        noting.cancel()


scenario.run(connect)
