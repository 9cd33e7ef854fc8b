"""Walks through toolsets with the Python SDK 1.x, which holds every structured result to its schema:
`toolsets.py TOOLMAN DIRECTORY SURFACE`, where the surface is `toolset` or `dynamic`.

The last line on stdout is `ok`, or the exit code is 1.
"""

import sys

sys.dont_write_bytecode = True

import anyio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client


async def names(session: ClientSession) -> set[str]:
    return {tool.name for tool in (await session.list_tools()).tools}


async def done(session: ClientSession, name: str, arguments: dict) -> dict:
    result = await session.call_tool(name, arguments)
    assert not result.isError, result
    return result.structuredContent


async def refused(session: ClientSession, name: str, arguments: dict) -> None:
    result = await session.call_tool(name, arguments)
    assert result.isError, result


async def walk_toolset(session: ClientSession) -> None:
    assert "git_fail" in await names(session)
    available = await done(session, "list-available-tools", {})
    tool = available["toolsByServer"][0]["tools"][0]
    built = await done(session, "build-toolset", {"name": "mine", "tools": [{"refId": tool["refId"]}]})
    assert built["toolset"]["tools"][0]["namespacedName"] == "git.echo", built
    await done(session, "equip-toolset", {"name": "mine"})
    assert "git_echo" in await names(session) and "git_fail" not in await names(session)
    await done(session, "git_echo", {})
    await refused(session, "git_fail", {})
    await done(session, "add-tool-annotation", {"toolRef": {"namespacedName": "git.echo"},
        "notes": [{"name": "tip", "note": "say hello"}]})
    assert (await done(session, "get-active-toolset", {}))["equipped"]
    assert (await done(session, "list-saved-toolsets", {}))["toolsets"][0]["active"]
    await done(session, "unequip-toolset", {})
    assert "git_fail" in await names(session)
    await refused(session, "delete-toolset", {"name": "mine", "confirm": False})
    await done(session, "delete-toolset", {"name": "mine", "confirm": True})
    assert (await done(session, "list-saved-toolsets", {}))["toolsets"] == []


async def walk_dynamic(session: ClientSession) -> None:
    assert "read.echo" not in await names(session)
    listed = await done(session, "list_toolsets", {})
    assert {toolset["key"] for toolset in listed["toolsets"]} == {"read", "fail"}, listed
    await refused(session, "read.echo", {})
    await done(session, "enable_toolset", {"name": "read"})
    assert "read.echo" in await names(session)
    await done(session, "read.echo", {})
    assert (await done(session, "describe_toolset", {"name": "read"}))["active"]
    assert (await done(session, "list_tools", {}))["toolsetToTools"]["read"]
    await done(session, "disable_toolset", {"name": "read"})
    assert "read.echo" not in await names(session)
    await refused(session, "read.echo", {})
    await done(session, "enable_toolset", {"name": "read"})
    assert "read.echo" in await names(session)


async def main(toolman: str, directory: str, surface: str) -> None:
    walk = {"toolset": walk_toolset, "dynamic": walk_dynamic}[surface]
    server = StdioServerParameters(command=toolman, cwd=directory, env={"XDG_DATA_HOME": directory})
    with anyio.fail_after(60):
        async with stdio_client(server) as streams, ClientSession(*streams) as session:
            await session.initialize()
            await walk(session)
    print("ok")


anyio.run(main, *sys.argv[1:4])
