"""A model that follows a script, on loopback: it activates one tool and calls it in the next turn.

It answers by what has been said so far, not by counting requests, because agents ask their models
for titles and summaries on the side. What it sees of each turn is kept in `turns`.
"""

import json
import re
import threading
import time
from http.server import BaseHTTPRequestHandler
from urllib.parse import urlsplit

from tap import Quiet
from wire import Answer, Called, Question, Tool, wire_of

CONTROL = "toolman_activate"
WANTED = "everything_echo"
MESSAGE = "hello from the script"
ARGUMENTS = {"tools_on": [WANTED], "tools_off": [], "resources_on": [], "resources_off": []}

# Tools by which agents show the definitions that they keep out of the list.
SEARCHES = ("ToolSearch", "tool_search")

# The tool by which an agent calls those that it keeps out of the list.
BRIDGE = "tool_call"

# A tool that is late gets so many tries, to see in which turn it works.
TRIES_MAX = 3

# What is kept of a text that reached the model.
EXCERPT = 4000


class Script:
    """Decides what the model says next, and keeps what it saw."""

    def __init__(self) -> None:
        self.turns: list[dict] = []
        self.requests: list[str] = []
        self.started = time.monotonic()
        self._lock = threading.Lock()
        self._control: Tool | None = None

    def answer(self, question: Question, text: str) -> Answer:
        """What to say to a question; `text` is all that stands in the request."""
        with self._lock:
            answer = self._decide(question, text)
            answer.number = len(self.turns) + 1
            return answer

    def _decide(self, question: Question, text: str) -> Answer:
        if not question.tools:
            return Answer(words="ok")
        self._control = named(question, text, CONTROL) or self._control
        activations = [call for call in question.calls if call.target.endswith(CONTROL)]
        echoes = [call for call in question.calls if call.target.endswith(WANTED)]
        if not self._control or not any([activations, CONTROL in text]):
            self._keep("without Toolman", question, text)
            return Answer(words="ok")
        if not activations:
            return self._reach("activate", question, text, self._control, ARGUMENTS)
        wanted = named(question, text, WANTED) or self._guess()
        if not echoes:
            message = {"message": MESSAGE}
            return self._reach("call", question, text, wanted, message, activations[-1])
        self._keep("see", question, text, echoes[-1])
        if MESSAGE in (echoes[-1].result or "") or len(echoes) >= TRIES_MAX:
            return Answer(words="done")
        return call(question, wanted, {"message": MESSAGE})

    def _reach(
        self,
        step: str,
        question: Question,
        text: str,
        tool: Tool,
        arguments: dict,
        told: Called | None = None,
    ) -> Answer:
        """Calls a tool; one that the agent keeps out of the list is searched for first."""
        search = next((tool for tool in question.tools if tool.name in SEARCHES), None)
        query = f"select:{tool.full_name}"
        searched = any(call.arguments.get("query") == query for call in question.calls)
        if search and not searched and not offered(question, tool.full_name):
            self._keep(f"search, then {step}", question, text, told)
            return Answer(tool=search, arguments={"query": query, "max_results": 5})
        self._keep(step, question, text, told or last(question))
        return call(question, tool, arguments)

    def _guess(self) -> Tool:
        """The wanted tool under the prefix that the control tool has."""
        prefix = self._control.name.removesuffix(CONTROL)
        return Tool(prefix + WANTED, "", {}, self._control.group)

    def _keep(self, step: str, question: Question, text: str, told: Called | None = None) -> None:
        wanted = offered(question, WANTED)
        control = offered(question, CONTROL)
        result = told.result if told else None
        self.turns.append(
            {
                "step": step,
                "at_ms": round((time.monotonic() - self.started) * 1000),
                "tools": [tool.full_name for tool in question.tools],
                "description_lengths": {
                    tool.full_name: len(tool.description) for tool in (control, wanted) if tool
                },
                "control": control.full_name if control else None,
                "wanted": wanted.full_name if wanted else None,
                "wanted_found": found_by_search(question),
                "wanted_schema": wanted.schema if wanted else None,
                "knows_definition": knows_definition(question, wanted),
                "called": told.target if told else None,
                "result_length": len(result) if result is not None else None,
                "result": result[:EXCERPT] if result is not None else None,
            }
        )


def call(question: Question, tool: Tool, arguments: dict) -> Answer:
    """A call as this agent wants it: by a bridge, where the tool is not in the list."""
    bridge = next((tool for tool in question.tools if tool.name == BRIDGE), None)
    if bridge and not offered(question, tool.full_name):
        return Answer(tool=bridge, arguments={"name": tool.full_name, "arguments": arguments})
    return Answer(tool=tool, arguments=arguments)


def knows_definition(question: Question, wanted: Tool | None) -> bool:
    """Whether the model can know how to call the tool: from its list, or from some answer."""
    if wanted and "message" in (wanted.schema.get("properties") or {}):
        return True
    answers = [call.result or "" for call in question.calls]
    return any(WANTED in answer and '"message"' in answer for answer in answers)


def found_by_search(question: Question) -> bool:
    """Whether the agent's own search has shown the tool: its definition, or a reference to it."""
    searches = [call for call in question.calls if call.name in SEARCHES]
    shown = [call.result or "" for call in searches if WANTED in str(call.arguments.get("query"))]
    return any("tool_reference" in text or "<function>" in text for text in shown)


def last(question: Question) -> Called | None:
    return question.calls[-1] if question.calls else None


def offered(question: Question, name: str) -> Tool | None:
    return next((tool for tool in question.tools if tool.full_name.endswith(name)), None)


def named(question: Question, text: str, name: str) -> Tool | None:
    """The tool as it is offered, or as an agent that keeps it out of the list speaks of it."""
    found = offered(question, name)
    if found or not any(tool.name in SEARCHES for tool in question.tools):
        return found
    full_name = mentioned(text, name)
    return Tool(full_name, "", {}) if full_name else None


def mentioned(text: str, name: str) -> str | None:
    """The name with its prefix, where words speak of it."""
    found = re.findall(rf"\b[A-Za-z]\w*__{name}\b", text)
    return found[0] if found else None


def words(value):
    """All strings of a request, wherever they stand."""
    if isinstance(value, str):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from words(inner)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._note()
        # Agents ask which models there are; an entry with everybody's members suits all of them.
        model = {"id": "scripted", "name": "models/scripted", "object": "model", "type": "model"}
        self._send({"object": "list", "data": [model], "models": [], "has_more": False})

    def do_HEAD(self) -> None:
        self._note()
        self._send({})

    def do_POST(self) -> None:
        self._note()
        length = int(self.headers.get("content-length") or 0)
        raw = self.rfile.read(length)
        path = urlsplit(self.path).path
        if path.endswith("count_tokens"):
            return self._send({"input_tokens": 1})
        if path.endswith(":countTokens"):
            return self._send({"totalTokens": 1})
        wire = wire_of(path)
        if wire is None:
            return self._send({"error": {"message": f"nothing is at {path}"}}, 404)
        body = json.loads(raw)
        self.server.bodies.append(body)
        question = wire.read(body)
        stream = question.stream and not path.endswith(":generateContent")
        answer = self.server.script.answer(question, "\n".join(words(body)))
        self._send_bytes(
            wire.write(answer, stream), "text/event-stream" if stream else "application/json"
        )

    def _note(self) -> None:
        self.server.script.requests.append(f"{self.command} {self.path}")

    def _send(self, value: dict, status: int = 200) -> None:
        self._send_bytes(json.dumps(value).encode(), "application/json", status)

    def _send_bytes(self, body: bytes, kind: str, status: int = 200) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


class Model:
    """The endpoint, from `with` to its end."""

    def __init__(self) -> None:
        self.script = Script()
        self._server = Quiet(("127.0.0.1", 0), Handler)
        self._server.script = self.script
        self._server.bodies = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def bodies(self) -> list[dict]:
        return self._server.bodies

    def __enter__(self) -> "Model":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()
