"""Pydantic AI: its toolset over FastMCP's client, and its agent."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from fastmcp.client.transports import StdioTransport, StreamableHttpTransport
from pydantic_ai import Agent
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


class Session:
    def __init__(self, toolset: MCPToolset) -> None:
        self.toolset = toolset

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.toolset.list_tools()]

    async def call(self, name: str, arguments: dict):
        return await self.toolset.direct_call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in await self.toolset.list_resources()]

    async def read(self, uri: str):
        return await self.toolset.read_resource(uri)


def toolset(server) -> MCPToolset:
    if server.url:
        return MCPToolset(StreamableHttpTransport(server.url, headers=server.headers))
    program, *arguments = server.command
    return MCPToolset(StdioTransport(program, arguments))


@asynccontextmanager
async def open_session(server):
    async with toolset(server) as connected:
        yield Session(connected)


async def agent(server) -> None:
    provider = OpenAIProvider(base_url=steps.MODEL, api_key="none")
    model = OpenAIChatModel("scripted", provider=provider)
    await Agent(model, toolsets=[toolset(server)]).run(steps.PROMPT)


steps.run(open_session, agent=agent)
