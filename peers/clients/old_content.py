"""Calls a tool whose result has content that old revisions do not know: `old_content.py TOOLMAN DIRECTORY`.

For the Python SDK as it was for each revision. It refuses the whole result for one block of a kind that it does not
know. The last line on stdout is `ok`, or the exit code is 1.
"""

import asyncio
import sys

sys.dont_write_bytecode = True

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

CONTENT = [
    {"type": "text", "text": "first"},
    {"type": "audio", "data": "AAAA", "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "test://linked", "name": "linked"},
]
KNOWN = {
    "2024-11-05": ["text", "text", "text"],
    "2025-03-26": ["text", "audio", "text"],
    "2025-06-18": ["text", "audio", "resource_link"],
}


async def main() -> None:
    server = StdioServerParameters(command=sys.argv[1], cwd=sys.argv[2])
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        revision = (await session.initialize()).protocolVersion
        for structured in [{}, {"structuredContent": [1, 2]}, {"structuredContent": {"a": 1}}]:
            result = await session.call_tool("a_say", {"content": CONTENT, **structured})
            kinds = [block.type for block in result.content]
            assert kinds == KNOWN[revision], (revision, structured, kinds)
        result = await session.call_tool("a_say", {"structuredContent": [1, 2]})
        assert [block.text for block in result.content] == ["[1,2]"], result


asyncio.run(main())
print("ok")
