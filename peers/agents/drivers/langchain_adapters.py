"""LangChain's MCP adapters: one session, and by default a session for each call."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from langchain.agents import create_agent
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from langchain_openai import ChatOpenAI


class Session:
    def __init__(self, session) -> None:
        self.session = session

    async def tools(self) -> dict:
        return {tool.name: tool for tool in await load_mcp_tools(self.session)}

    async def names(self) -> list[str]:
        return list(await self.tools())

    async def call(self, name: str, arguments: dict):
        return await (await self.tools())[name].ainvoke(arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.session.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.session.read_resource(uri)).contents[0].text


def client(server) -> MultiServerMCPClient:
    if server.url:
        entry = {"transport": "streamable_http", "url": server.url, "headers": server.headers}
    else:
        program, *arguments = server.command
        entry = {"transport": "stdio", "command": program, "args": arguments}
    return MultiServerMCPClient({"toolman": entry})


@asynccontextmanager
async def open_session(server):
    async with client(server).session("toolman") as session:
        yield Session(session)


async def by_default(server) -> None:
    """`get_tools`, as every tutorial does it: each call has a session of its own."""
    toolman = client(server)
    tools = {tool.name: tool for tool in await toolman.get_tools()}
    await tools[steps.CONTROL].ainvoke(steps.ARGUMENTS)
    tools = {tool.name: tool for tool in await toolman.get_tools()}
    steps.expect(steps.WANTED in tools, f"listed: {', '.join(tools)}")
    answer = str(await tools[steps.WANTED].ainvoke({"message": steps.MESSAGE}))
    steps.expect(steps.MESSAGE in answer, answer)


async def agent(server) -> None:
    model = ChatOpenAI(model="scripted", base_url=steps.MODEL, api_key="none")
    await create_agent(model, await client(server).get_tools()).ainvoke(
        {"messages": [{"role": "user", "content": steps.PROMPT}]}
    )


steps.run(open_session, by_default, agent)
