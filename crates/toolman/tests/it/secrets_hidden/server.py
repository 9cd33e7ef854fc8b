"""A server over stdio that tells its secrets wherever it can."""

import json
import sys

from spell import VALUES, everything

ALL = everything()


def say(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def call(message):
    params = message["params"]
    tool = params["name"]
    token = params.get("_meta", {}).get("progressToken")
    say({"method": "notifications/message", "params": {"level": "error", "data": ALL}})
    if token is not None:
        say({"method": "notifications/progress",
             "params": {"progressToken": token, "progress": 1, "message": " ".join(VALUES)}})
    if tool == "fail":
        return {"error": {"code": -32000, "message": " ".join(ALL), "data": {"all": ALL}}}
    if tool == "garbage":
        for value in VALUES[:10]:
            sys.stdout.write("x" * 60 + value + " is no message\n")
        sys.stdout.write('{"jsonrpc":"2.0","id":%d,"result":"%s\n' % (message["id"], VALUES[0]))
        sys.stdout.flush()
        return None
    if tool == "crash":
        sys.stderr.write("\n".join(ALL[-40:]))
        sys.stderr.flush()
        sys.exit(3)
    return {"result": {"content": [{"type": "text", "text": json.dumps(ALL)}],
                       "structuredContent": {"all": ALL, VALUES[3]: VALUES[4]}, "_meta": {"x": VALUES}}}


def tool(name):
    return {"name": name, "description": "tells " + " ".join(ALL[:50]), "inputSchema": {"type": "object"}}


RESULTS = {
    "initialize": {"protocolVersion": "2025-11-25", "instructions": " ".join(VALUES),
                   "serverInfo": {"name": "leak", "version": VALUES[0]},
                   "capabilities": {"tools": {}, "resources": {}, "prompts": {}, "logging": {}}},
    "logging/setLevel": {},
    "tools/list": {"tools": [tool(name) for name in ("show", "fail", "garbage", "crash")]},
    "resources/list": {"resources": [{"uri": "mem://all", "name": "all", "description": VALUES[2]}]},
    "resources/templates/list": {"resourceTemplates": []},
    "resources/read": {"contents": [{"uri": "mem://all", "text": "\n".join(ALL)}]},
    "prompts/list": {"prompts": [{"name": "all", "description": VALUES[2]}]},
    "prompts/get": {"messages": [{"role": "user", "content": {"type": "text", "text": "\n".join(ALL)}}]},
}

sys.stderr.write("starting with " + " ".join(ALL) + "\n")
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        continue
    if message["method"] == "tools/call":
        answer = call(message)
    else:
        answer = {"result": RESULTS[message["method"]]} if message["method"] in RESULTS else {
            "error": {"code": -32601, "message": "not known"}}
    if answer is not None:
        say({"id": message["id"], **answer})
