"""mcp-use: its client, and its agent over a LangChain model."""

import os
import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True
os.environ["MCP_USE_ANONYMIZED_TELEMETRY"] = "false"

import steps
from langchain_openai import ChatOpenAI
from mcp_use import MCPAgent, MCPClient


class Session:
    def __init__(self, session) -> None:
        self.session = session

    async def names(self) -> list[str]:
        return [tool.name for tool in await self.session.list_tools()]

    async def call(self, name: str, arguments: dict):
        return await self.session.call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in await self.session.list_resources()]

    async def read(self, uri: str) -> str:
        return (await self.session.read_resource(uri)).contents[0].text


def client(server) -> MCPClient:
    if server.url:
        entry = {"url": server.url, "headers": server.headers}
    else:
        program, *arguments = server.command
        entry = {"command": program, "args": arguments}
    return MCPClient({"mcpServers": {"toolman": entry}})


@asynccontextmanager
async def open_session(server):
    connected = client(server)
    yield Session(await connected.create_session("toolman"))
    await connected.close_all_sessions()


async def agent(server) -> None:
    model = ChatOpenAI(model="scripted", base_url=steps.MODEL, api_key="none")
    await MCPAgent(llm=model, client=client(server), max_steps=10).run(steps.PROMPT)


steps.run(open_session, agent=agent)
