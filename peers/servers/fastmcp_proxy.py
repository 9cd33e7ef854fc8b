"""FastMCP as a gateway, for the benchmark: PORT TOKEN CONFIG, the latter as in most MCP clients."""

import json
import sys
from pathlib import Path

from fastmcp.server import create_proxy
from fastmcp.server.auth.providers.jwt import StaticTokenVerifier

port, token, config = sys.argv[1:]
auth = StaticTokenVerifier({token: {"client_id": "bench", "scopes": []}})
proxy = create_proxy(json.loads(Path(config).read_text()), name="proxy", auth=auth)
proxy.run(transport="http", host="127.0.0.1", port=int(port), show_banner=False, log_level="error")
