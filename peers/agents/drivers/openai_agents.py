"""The OpenAI Agents SDK: its servers, and its agent."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from agents import Agent, OpenAIChatCompletionsModel, Runner, set_tracing_disabled
from agents.mcp import MCPServerStdio, MCPServerStreamableHttp
from openai import AsyncOpenAI


class Session:
    def __init__(self, server) -> None:
        self.server = server

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.server.list_tools()]

    async def call(self, name: str, arguments: dict):
        return await self.server.call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.server.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.server.read_resource(uri)).contents[0].text


def connection(server):
    if server.url:
        return MCPServerStreamableHttp({"url": server.url, "headers": server.headers})
    program, *arguments = server.command
    return MCPServerStdio({"command": program, "args": arguments})


@asynccontextmanager
async def open_session(server):
    async with connection(server) as connected:
        yield Session(connected)


async def agent(server) -> None:
    set_tracing_disabled(True)
    client = AsyncOpenAI(base_url=steps.MODEL, api_key="none")
    model = OpenAIChatCompletionsModel("scripted", client)
    async with connection(server) as connected:
        await Runner.run(Agent("scripted", model=model, mcp_servers=[connected]), steps.PROMPT)


steps.run(open_session, agent=agent)
