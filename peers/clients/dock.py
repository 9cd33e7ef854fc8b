"""Calls every tool of a namespace with the Python SDK 1.x, which holds every result to its schema.

`dock.py URL TOKEN NAMESPACE CALLS`: over HTTP, or over HTTP+SSE where the URL ends in `/sse`; CALLS is an object with the
arguments of each tool. The last line on stdout is `ok`, or the exit code is 1.
"""

import asyncio
import json
import sys

from mcp import ClientSession
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamablehttp_client

URL, TOKEN, NAMESPACE = sys.argv[1:4]
CALLS = json.loads(sys.argv[4])
HEADERS = {"Authorization": f"Bearer {TOKEN}", "X-Namespace": NAMESPACE}


async def main():
    connect = sse_client if URL.endswith("/sse") else streamablehttp_client
    async with connect(URL, headers=HEADERS) as (read, write, *_), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        assert sorted(tool.name for tool in tools) == sorted(CALLS), tools
        for tool in tools:
            result = await session.call_tool(tool.name, CALLS[tool.name])
            assert not result.isError and result.content, (tool.name, result)
            assert (result.structuredContent is None) == (tool.outputSchema is None), (tool.name, result)
        wrong = await session.call_tool(tools[0].name, {"surely": "wrong"})
        assert wrong.isError, wrong
    print("ok")


asyncio.run(asyncio.wait_for(main(), 60))
