"""Calls every tool of a namespace with the Python SDK 2.x, in both eras; it holds every result to its schema.

`dock_v2.py URL TOKEN NAMESPACE CALLS`: CALLS is an object with the arguments of each tool. The last line on stdout is
`ok`, or the exit code is 1.
"""

import asyncio
import json
import sys

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

URL, TOKEN, NAMESPACE = sys.argv[1:4]
CALLS = json.loads(sys.argv[4])
HEADERS = {"Authorization": f"Bearer {TOKEN}", "X-Namespace": NAMESPACE}


async def walk(mode, version):
    transport = streamable_http_client(URL, http_client=httpx2.AsyncClient(headers=HEADERS))
    async with Client(transport, mode=mode) as client:
        assert client.protocol_version == version, client.protocol_version
        tools = (await client.list_tools()).tools
        assert sorted(tool.name for tool in tools) == sorted(CALLS), tools
        for tool in tools:
            result = await client.call_tool(tool.name, CALLS[tool.name])
            assert not result.is_error and result.content, (tool.name, result)
            assert (result.structured_content is None) == (tool.output_schema is None), (tool.name, result)
        wrong = await client.call_tool(tools[0].name, {"surely": "wrong"})
        assert wrong.is_error, wrong


async def main():
    await walk("legacy", "2025-11-25")
    await walk("auto", "2026-07-28")
    print("ok")


asyncio.run(asyncio.wait_for(main(), 60))
