"""The Python SDK 2.x, as it is: it asks for the modern era first."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import httpx2
import steps
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client


class Session:
    def __init__(self, client: Client) -> None:
        self.client = client

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, arguments: dict):
        return await self.client.call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [resource.uri for resource in (await self.client.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri)).contents[0].text


@asynccontextmanager
async def open_session(server):
    if server.url:
        client = httpx2.AsyncClient(headers=server.headers)
        target = streamable_http_client(server.url, http_client=client)
    else:
        program, *arguments = server.command
        target = StdioServerParameters(command=program, args=arguments)
    async with Client(target) as client:
        yield Session(client)


steps.run(open_session)
