"""Drives toolman with the Python SDK 1.x: `python_v1.py TOOLMAN DIRECTORY` over stdio,
`python_v1.py URL TOKEN` over HTTP, or over HTTP+SSE where the URL ends in `/sse`.

DIRECTORY holds a `tools.toml` with `uri_style = "auto"`: this SDK refuses a URI whose scheme holds
an underscore, so it is shown others. The last line on stdout is `ok`, or the exit code is 1.
"""

import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

from mcp import ClientSession, McpError, StdioServerParameters, types
from mcp.client.sse import sse_client
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl

import scenario


class Client:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def catalog(self) -> str:
        return (await self.session.list_tools()).tools[0].description

    async def tool_names(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name: str, arguments: dict) -> scenario.Answer:
        try:
            result = await self.session.call_tool(name, arguments)
        except McpError as error:
            return scenario.Answer(is_error=True, texts=[str(error)], is_rpc_error=True)
        texts = [block.text for block in result.content if block.type == "text"]
        return scenario.Answer(is_error=result.isError, texts=texts)

    async def resource_uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text

    async def prompt_names(self) -> list[str]:
        return [prompt.name for prompt in (await self.session.list_prompts()).prompts]

    async def prompt(self, name: str, arguments: dict) -> str:
        return (await self.session.get_prompt(name, arguments)).messages[0].content.text


def transport(server: tuple[str, str]):
    if scenario.is_url(server):
        connect = sse_client if server[0].endswith("/sse") else streamablehttp_client
        return connect(server[0], headers={"Authorization": f"Bearer {server[1]}"})
    return stdio_client(StdioServerParameters(command=server[0], cwd=server[1]))


async def connect(server, changes, progress) -> None:
    async def on_message(message) -> None:
        if isinstance(message, Exception):
            progress.unread.append(message)
        elif isinstance(message, types.ServerNotification) and isinstance(
            message.root, types.ToolListChangedNotification
        ):
            await changes.note()

    async with (
        transport(server) as (read, write, *_),
        ClientSession(read, write, message_handler=on_message) as session,
    ):
        greeting = await session.initialize()
        scenario.expect(
            greeting.protocolVersion == "2025-11-25", "the newest revision is spoken", greeting
        )
        await scenario.walk(Client(session), changes, progress, uri_prefix="every+")
        progress.step = "close"


scenario.run(connect)
