"""Lists and reads resources with any release of the Python SDK 1.x: `python_resources.py TOOLMAN DIRECTORY`.

These refuse a whole list for one URI whose scheme holds an underscore. The last line on stdout is `ok`, or the exit
code is 1.
"""

import asyncio
import sys

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from pydantic import AnyUrl


async def main(toolman: str, directory: str) -> None:
    server = StdioServerParameters(command=toolman, args=["--config", f"{directory}/tools.toml"])
    async with stdio_client(server) as (reader, writer), ClientSession(reader, writer) as session:
        await session.initialize()
        nothing = {"tools_on": [], "tools_off": [], "resources_off": []}
        await session.call_tool("toolman_activate", {**nothing, "resources_on": ["every:*"]})
        uris = [str(resource.uri) for resource in (await session.list_resources()).resources]
        assert uris and all(uri.startswith("every+") for uri in uris), uris
        contents = (await session.read_resource(AnyUrl(uris[0]))).contents
        assert contents[0].text, contents
    print("ok")


asyncio.run(main(*sys.argv[1:]))
