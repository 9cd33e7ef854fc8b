"""The four languages that coding agents speak to a model, reduced to what a script needs.

`read` makes a `Question` of a request: the tools that are offered and what has been said so far.
`write` makes the bytes of an answer: one call of a tool, or a text. Each exists for OpenAI's
responses, OpenAI's chat completions, Anthropic's messages and Gemini's content.
"""

import ast
import json
from dataclasses import dataclass, field

# Tools in whose name agents write down calls of others, and the argument with the other's name: those
# that they keep out of the list (Qwen Code), those that they do not know (opencode).
BRIDGES = {"tool_call": "name", "invalid": "tool"}

# How smolagents writes calls into the words of a message, and their results into the next.
CALLING = "Calling tools:"
OBSERVED = "Observation:"


@dataclass
class Tool:
    """A tool as it is offered to the model; `group` is Codex's namespace around it."""

    name: str
    description: str
    schema: dict
    group: str = ""

    @property
    def full_name(self) -> str:
        return f"{self.group}{self.name}"


@dataclass
class Called:
    """A call that the model made before, and what it was told since; None if nothing."""

    name: str
    arguments: dict = field(default_factory=dict)
    result: str | None = None

    @property
    def target(self) -> str:
        """The tool that was meant, also where another tool calls it."""
        through = self.arguments.get(BRIDGES.get(self.name, ""))
        return through if isinstance(through, str) else self.name


@dataclass
class Question:
    tools: list[Tool] = field(default_factory=list)
    calls: list[Called] = field(default_factory=list)
    stream: bool = True


@dataclass
class Answer:
    """A call of a tool, or words."""

    tool: Tool | None = None
    arguments: dict = field(default_factory=dict)
    words: str = ""
    number: int = 0

    @property
    def id(self) -> str:
        return f"call_{self.number}"


def flat(content) -> str:
    """The text that a model reads, wherever in the structure it stands."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n".join(flat(part) for part in content)
    if isinstance(content, dict):
        for key in ("text", "content", "output"):
            if key in content:
                return flat(content[key])
    return json.dumps(content)


def parsed(arguments) -> dict:
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return {}
    return arguments if isinstance(arguments, dict) else {}


def joined(made: dict[str, Called], results: dict[str, str]) -> list[Called]:
    for call_id, result in results.items():
        if call_id in made:
            made[call_id].result = result
    return list(made.values())


def events(pairs) -> bytes:
    """Server-sent events, with names where there are any."""
    lines = []
    for name, data in pairs:
        if name:
            lines.append(f"event: {name}\n")
        body = data if isinstance(data, str) else json.dumps(data)
        lines.append(f"data: {body}\n\n")
    return "".join(lines).encode()


class Responses:
    """`POST /v1/responses`, as Codex speaks it."""

    @staticmethod
    def read(body: dict) -> Question:
        tools = []
        for tool in body.get("tools", []):
            if tool.get("type") == "namespace":
                tools += [Responses.tool(inner, tool["name"]) for inner in tool.get("tools", [])]
            else:
                tools.append(Responses.tool(tool, ""))
        made, results = {}, {}
        items = body.get("input", [])
        for item in items if isinstance(items, list) else []:
            if item.get("type") == "function_call":
                made[item["call_id"]] = Called(
                    item.get("namespace", "") + item["name"], parsed(item.get("arguments"))
                )
            elif item.get("type") == "function_call_output":
                results[item["call_id"]] = flat(item.get("output"))
        return Question(tools, joined(made, results), body.get("stream", False))

    @staticmethod
    def tool(tool: dict, group: str) -> Tool:
        name = tool.get("name") or tool.get("type", "")
        return Tool(name, tool.get("description", ""), tool.get("parameters") or {}, group)

    @staticmethod
    def write(answer: Answer, stream: bool) -> bytes:
        item: dict
        if answer.tool:
            item = {
                "type": "function_call",
                "id": f"fc_{answer.number}",
                "call_id": answer.id,
                "name": answer.tool.name,
                "arguments": json.dumps(answer.arguments),
                "status": "completed",
            }
            if answer.tool.group:
                item["namespace"] = answer.tool.group
        else:
            item = {
                "type": "message",
                "id": f"msg_{answer.number}",
                "role": "assistant",
                "status": "completed",
                "content": [{"type": "output_text", "text": answer.words, "annotations": []}],
            }
        usage = {
            "input_tokens": 1,
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": 1,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": 2,
        }
        whole = {
            "id": f"resp_{answer.number}",
            "object": "response",
            "created_at": 0,
            "model": "scripted",
            "status": "completed",
            "output": [item],
            "parallel_tool_calls": False,
            "tools": [],
            "tool_choice": "auto",
            "usage": usage,
        }
        if not stream:
            return json.dumps(whole).encode()
        begun = {**whole, "status": "in_progress", "output": [], "usage": None}
        steps = [
            {"type": "response.created", "response": begun},
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": whole},
        ]
        numbered = [{**step, "sequence_number": at} for at, step in enumerate(steps)]
        return events((step["type"], step) for step in numbered)


class Chat:
    """`POST /v1/chat/completions`."""

    @staticmethod
    def read(body: dict) -> Question:
        tools = [
            Chat.tool(tool["function"])
            for tool in body.get("tools") or []
            if tool.get("type") == "function"
        ]
        made, results = {}, {}
        for message in body.get("messages", []):
            for call in message.get("tool_calls") or []:
                made[call["id"]] = Called(
                    call["function"]["name"], parsed(call["function"].get("arguments"))
                )
            said = flat(message.get("content"))
            if message.get("role") == "tool":
                results[message["tool_call_id"]] = said
            elif CALLING in said and message.get("role") == "assistant":
                for call in ast.literal_eval(said.split(CALLING, 1)[1].strip()):
                    function = call["function"]
                    made[call["id"]] = Called(function["name"], parsed(function["arguments"]))
            elif OBSERVED in said or said.startswith("Error"):
                results |= {id: said for id in made if id not in results}
        return Question(tools, joined(made, results), body.get("stream", False))

    @staticmethod
    def tool(function: dict) -> Tool:
        schema = function.get("parameters") or {}
        return Tool(function["name"], function.get("description", ""), schema)

    @staticmethod
    def write(answer: Answer, stream: bool) -> bytes:
        message: dict = {"role": "assistant", "content": answer.words or None}
        if answer.tool:
            function = {"name": answer.tool.full_name, "arguments": json.dumps(answer.arguments)}
            message["tool_calls"] = [
                {"index": 0, "id": answer.id, "type": "function", "function": function}
            ]
        reason = "tool_calls" if answer.tool else "stop"
        head = {"id": f"chat_{answer.number}", "created": 0, "model": "scripted"}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        if not stream:
            choice = {"index": 0, "message": message, "finish_reason": reason}
            whole = {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
            return json.dumps(whole).encode()
        head["object"] = "chat.completion.chunk"
        first = {"index": 0, "delta": message, "finish_reason": None}
        last = {"index": 0, "delta": {}, "finish_reason": reason}
        return events(
            [
                ("", {**head, "choices": [first]}),
                ("", {**head, "choices": [last]}),
                ("", {**head, "choices": [], "usage": usage}),
                ("", "[DONE]"),
            ]
        )


class Messages:
    """`POST /v1/messages`, as Claude Code speaks it."""

    @staticmethod
    def read(body: dict) -> Question:
        tools = [
            Tool(tool["name"], tool.get("description", ""), tool.get("input_schema") or {})
            for tool in body.get("tools") or []
        ]
        made, results = {}, {}
        for message in body.get("messages", []):
            content = message.get("content")
            for part in content if isinstance(content, list) else []:
                if part.get("type") == "tool_use":
                    made[part["id"]] = Called(part["name"], parsed(part.get("input")))
                elif part.get("type") == "tool_result":
                    results[part["tool_use_id"]] = flat(part.get("content"))
        return Question(tools, joined(made, results), body.get("stream", False))

    @staticmethod
    def write(answer: Answer, stream: bool) -> bytes:
        usage = {"input_tokens": 1, "output_tokens": 1}
        reason = "tool_use" if answer.tool else "end_turn"
        if answer.tool:
            block = {"type": "tool_use", "id": f"toolu_{answer.number}", "name": answer.tool.full_name}
            empty, whole_block = {**block, "input": {}}, {**block, "input": answer.arguments}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(answer.arguments)}
        else:
            empty, whole_block = {"type": "text", "text": ""}, {"type": "text", "text": answer.words}
            delta = {"type": "text_delta", "text": answer.words}
        message = {
            "id": f"msg_{answer.number}",
            "type": "message",
            "role": "assistant",
            "model": "scripted",
            "content": [whole_block],
            "stop_reason": reason,
            "stop_sequence": None,
            "usage": usage,
        }
        if not stream:
            return json.dumps(message).encode()
        begun = {**message, "content": [], "stop_reason": None}
        ending = {"stop_reason": reason, "stop_sequence": None}
        steps = [
            {"type": "message_start", "message": begun},
            {"type": "content_block_start", "index": 0, "content_block": empty},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": ending, "usage": {"output_tokens": 1}},
            {"type": "message_stop"},
        ]
        return events((step["type"], step) for step in steps)


class Gemini:
    """`POST /v1beta/models/…:generateContent`, and its streaming sister."""

    @staticmethod
    def read(body: dict) -> Question:
        tools = []
        for group in body.get("tools") or []:
            for tool in group.get("functionDeclarations") or []:
                schema = tool.get("parametersJsonSchema") or tool.get("parameters") or {}
                tools.append(Tool(tool["name"], tool.get("description", ""), schema))
        calls: list[Called] = []
        for content in body.get("contents") or []:
            for part in content.get("parts") or []:
                if "functionCall" in part:
                    made = part["functionCall"]
                    calls.append(Called(made["name"], parsed(made.get("args"))))
                elif "functionResponse" in part:
                    # Without ids, a result belongs to the first call of its name that waits.
                    said = part["functionResponse"]
                    text = flat(said.get("response"))
                    for call in calls:
                        if call.name == said.get("name") and call.result is None:
                            call.result = text
                            break
        return Question(tools, calls)

    @staticmethod
    def write(answer: Answer, stream: bool) -> bytes:
        part: dict = {"text": answer.words}
        if answer.tool:
            part = {"functionCall": {"name": answer.tool.full_name, "args": answer.arguments}}
        candidate = {
            "content": {"role": "model", "parts": [part]},
            "finishReason": "STOP",
            "index": 0,
        }
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        whole = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted"}
        return events([("", whole)]) if stream else json.dumps(whole).encode()


def wire_of(path: str):
    """Which of them a request speaks; None for what is no question to a model."""
    if path.endswith("/responses"):
        return Responses
    if path.endswith("/chat/completions"):
        return Chat
    if path.endswith("/messages"):
        return Messages
    if path.endswith((":generateContent", ":streamGenerateContent")):
        return Gemini
    return None
