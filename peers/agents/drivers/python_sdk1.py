"""The Python SDK 1.x."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from pydantic import AnyUrl


class Session:
    def __init__(self, session: ClientSession) -> None:
        self.session = session

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.session.list_tools()).tools]

    async def call(self, name: str, arguments: dict):
        return await self.session.call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.session.read_resource(AnyUrl(uri))).contents[0].text


@asynccontextmanager
async def open_session(server):
    if server.url:
        transport = streamablehttp_client(server.url, headers=server.headers)
    else:
        program, *arguments = server.command
        transport = stdio_client(StdioServerParameters(command=program, args=arguments))
    async with transport as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        yield Session(session)


if __name__ == "__main__":
    steps.run(open_session)
