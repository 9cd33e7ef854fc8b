"""smolagents: its tools, made once a connection, and its agent."""

import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True

import steps
from mcp import StdioServerParameters
from smolagents import MCPClient, OpenAIServerModel, ToolCallingAgent


class Session:
    """`get_tools` gives what was listed at the beginning, so there is no other list."""

    def __init__(self, client: MCPClient) -> None:
        self.client = client

    def tools(self) -> dict:
        return {tool.name: tool for tool in self.client.get_tools()}

    def names(self) -> list[str]:
        return list(self.tools())

    def call(self, name: str, arguments: dict):
        return self.tools()[name](**arguments)


def parameters(server):
    if server.url:
        return {"url": server.url, "transport": "streamable-http", "headers": server.headers}
    program, *arguments = server.command
    return StdioServerParameters(command=program, args=arguments)


@asynccontextmanager
async def open_session(server):
    yield Session(MCPClient(parameters(server), structured_output=False))


def agent(server) -> None:
    model = OpenAIServerModel(model_id="scripted", api_base=steps.MODEL, api_key="none")
    with MCPClient(parameters(server), structured_output=False) as tools:
        ToolCallingAgent(tools=tools, model=model, max_steps=6).run(steps.PROMPT)


steps.run(open_session, agent=agent)
