"""mcp-remote, a bridge from stdio to HTTP, with the Python SDK 1.x before it.

`mcp_remote.py walk NODE SCRIPT URL TOKEN`: the bridge is started as its users' clients start it.
"""

import sys

sys.dont_write_bytecode = True

import python_sdk1
import steps

part, node, script, url, token = sys.argv[1:6]
header = f"Authorization: Bearer {token}"
bridge = [node, script, url, "--header", header, "--allow-http", "--transport", "http-only"]
sys.argv[1:] = [part, *bridge]
steps.run(python_sdk1.open_session)
