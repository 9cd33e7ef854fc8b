"""CrewAI: the adapter of its tools, made once a connection, and its agent."""

import asyncio
import os
import sys
from contextlib import asynccontextmanager

sys.dont_write_bytecode = True
os.environ |= {"CREWAI_DISABLE_TELEMETRY": "true", "OTEL_SDK_DISABLED": "true"}
os.environ |= {"CREWAI_TRACING_ENABLED": "false", "CREWAI_TESTING": "true"}

import steps
from crewai import LLM, Agent
from crewai_tools import MCPServerAdapter
from mcp import StdioServerParameters


class Session:
    """The tools are those that were listed at the beginning, so there is no other list."""

    def __init__(self, adapter: MCPServerAdapter) -> None:
        self.tools = {tool.name: tool for tool in adapter.tools}

    def names(self) -> list[str]:
        return list(self.tools)

    def call(self, name: str, arguments: dict):
        return self.tools[name].run(**arguments)


def parameters(server):
    if server.url:
        return {"url": server.url, "transport": "streamable-http", "headers": server.headers}
    program, *arguments = server.command
    return StdioServerParameters(command=program, args=arguments)


@asynccontextmanager
async def open_session(server):
    yield Session(MCPServerAdapter(parameters(server)))


def kickoff(server) -> None:
    model = LLM(model="openai/scripted", base_url=steps.MODEL, api_key="none")
    with MCPServerAdapter(parameters(server)) as tools:
        about = {"role": "tester", "goal": "use a tool", "backstory": "none"}
        Agent(**about, llm=model, tools=list(tools), max_iter=6).kickoff(steps.PROMPT)


async def agent(server) -> None:
    # Where an event loop runs already, `kickoff` would give a coroutine instead.
    await asyncio.to_thread(kickoff, server)


steps.run(open_session, agent=agent)
