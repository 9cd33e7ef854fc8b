"""FastMCP's command line."""

import json
import shlex
import sys

sys.dont_write_bytecode = True

import commands


class Session(commands.Commands):
    def __init__(self, program, server) -> None:
        self.program = program
        self.server = server

    async def fastmcp(self, command: str, *more: str):
        if self.server.url:
            to = ["--server-spec", self.server.url, "--auth", self.server.token]
        else:
            to = ["--command", shlex.join(self.server.command)]
        return await self.run(*self.program, command, *to, "--json", *more)

    async def names(self) -> list[str]:
        return [tool["name"] for tool in (await self.fastmcp("list"))["tools"]]

    async def call(self, name: str, arguments: dict):
        return await self.fastmcp("call", "--target", name, "--input-json", json.dumps(arguments))

    async def uris(self) -> list[str]:
        return [resource["uri"] for resource in (await self.fastmcp("list", "--resources"))["resources"]]

    async def read(self, uri: str):
        return await self.fastmcp("call", "--target", uri)


commands.run(Session)
