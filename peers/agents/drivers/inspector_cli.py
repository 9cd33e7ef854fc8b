"""The MCP Inspector's command line."""

import json
import sys

sys.dont_write_bytecode = True

import commands


class Session(commands.Commands):
    def __init__(self, program, server) -> None:
        self.program = program
        self.server = server

    async def inspect(self, method: str, *more: str):
        if self.server.url:
            header = f"Authorization: Bearer {self.server.token}"
            to = ["--transport", "http", "--server-url", self.server.url, "--header", header]
            return await self.run(*self.program, "--cli", "--method", method, *more, *to)
        # Everything after `--` belongs to the server.
        to = ["--", *self.server.command]
        return await self.run(*self.program, "--cli", "--method", method, *more, *to)

    async def names(self) -> list[str]:
        return [tool["name"] for tool in (await self.inspect("tools/list"))["tools"]]

    async def call(self, name: str, arguments: dict):
        pairs = [
            part
            for key, value in arguments.items()
            for part in ("--tool-arg", f"{key}={value if isinstance(value, str) else json.dumps(value)}")
        ]
        return await self.inspect("tools/call", "--tool-name", name, *pairs)

    async def uris(self) -> list[str]:
        return [resource["uri"] for resource in (await self.inspect("resources/list"))["resources"]]

    async def read(self, uri: str):
        return await self.inspect("resources/read", "--uri", uri)


commands.run(Session)
