"""LlamaIndex's MCP tools: a client that opens a session for each request, and an agent over it."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike
from llama_index.tools.mcp import BasicMCPClient, McpToolSpec


class Session:
    def __init__(self, client: BasicMCPClient) -> None:
        self.client = client

    async def names(self) -> list[str]:
        return [tool.name for tool in (await self.client.list_tools()).tools]

    async def call(self, name: str, arguments: dict):
        return await self.client.call_tool(name, arguments)

    async def uris(self) -> list[str]:
        return [str(resource.uri) for resource in (await self.client.list_resources()).resources]

    async def read(self, uri: str) -> str:
        return (await self.client.read_resource(uri)).contents[0].text


def client(server) -> BasicMCPClient:
    if server.url:
        return BasicMCPClient(server.url, headers=server.headers)
    program, *arguments = server.command
    return BasicMCPClient(program, args=arguments)


@asynccontextmanager
async def open_session(server):
    yield Session(client(server))


async def agent(server) -> None:
    tools = await McpToolSpec(client=client(server)).to_tool_list_async()
    model = OpenAILike(
        model="scripted",
        api_base=steps.MODEL,
        api_key="none",
        is_chat_model=True,
        is_function_calling_model=True,
    )
    await FunctionAgent(tools=tools, llm=model).run(user_msg=steps.PROMPT)


steps.run(open_session, agent=agent)
