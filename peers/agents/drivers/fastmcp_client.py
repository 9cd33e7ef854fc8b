"""FastMCP's client, as it is."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from fastmcp import Client
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport


class Session:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, name: str, arguments: dict):
        return await self.client.call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in await self.client.list_resources()]

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri))[0].text


@asynccontextmanager
async def open_session(server):
    if server.url:
        transport = StreamableHttpTransport(server.url, headers=server.headers)
    else:
        program, *arguments = server.command
        transport = StdioTransport(program, arguments)
    async with Client(transport) as client:
        yield Session(client)


steps.run(open_session)
