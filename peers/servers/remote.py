"""A server of the official Python library over HTTP: `remote.py TRANSPORT PORT`.

With version 2 of the library it speaks both eras, with version 1 the legacy one.
"""

import sys

transport, port = sys.argv[1], int(sys.argv[2])
try:
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("remote")
    run = lambda: server.run(transport=transport, host="127.0.0.1", port=port)
except ImportError:
    from mcp.server.fastmcp import FastMCP

    server = FastMCP("remote", host="127.0.0.1", port=port)
    run = lambda: server.run(transport=transport)


@server.tool()
def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


run()
