"""Asking: questions that a tool has for the client of its call, by way of the gateway.

A person may take long to answer: until then the time of the call stands still, as it does at the gateway, which answers
every question in the end.
"""

import asyncio
import sys
import time

from .answers import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from .hints import Reader
from .intake import take
from .plain import plain
from .schema import Writer
from .shapes import Choice, Foreign, HintError, Record, bare

ASKS_MAX = 32
MAX_TOKENS = 512


class Unanswered(Exception):
    """A question that nobody could answer."""


class Asks:
    """The questions that wait for an answer."""

    def __init__(self, tell):
        self._tell, self._open, self._last = tell, {}, 0

    async def ask(self, call, method, params):
        """The result that a client gives; `Unanswered` if there is none."""
        if len(self._open) >= ASKS_MAX:
            raise Unanswered("%d questions wait for an answer; more are not asked" % ASKS_MAX)
        loop = asyncio.get_running_loop()
        self._last += 1
        number, answered = self._last, loop.create_future()
        self._open[number] = (loop, answered)
        call.asking += 1
        try:
            self._tell(call, {"op": "ask", "ask": number, "method": method, "params": plain(params)})
            frame = await answered
        except asyncio.CancelledError:
            self._tell(call, {"op": "unask", "ask": number})
            raise
        finally:
            self._open.pop(number, None)
            if call.deadline is not None:
                call.deadline = time.monotonic() + call.seconds
            call.asking -= 1
        if "error" in frame:
            said = frame["error"].get("message") if isinstance(frame["error"], dict) else None
            raise Unanswered("%s: %s" % (method, said or "refused"))
        return frame.get("result") or {}

    def settle(self, frame):
        """Takes an answer, on the main thread."""
        loop, answered = self._open.get(frame.get("id"), (None, None))
        if loop is not None:
            loop.call_soon_threadsafe(lambda: answered.done() or answered.set_result(frame))


async def elicit(ask, message, response_type, scope):
    """Asks a person; the answer is of the type that was asked for."""
    shape, is_wrapped = _shape(response_type, scope)
    schema = {"type": "object", "properties": {}}
    if shape is not None:
        writer = Writer([shape], closed=True)
        schema = writer.finish(dict(writer.write(shape)))
        if is_wrapped:
            schema = {"type": "object", "properties": {"value": schema}, "required": ["value"]}
    schema.pop("additionalProperties", None)
    result = await ask("elicitation/create", {"message": str(message), "requestedSchema": schema})
    if result.get("action") != "accept":
        kind = CancelledElicitation if result.get("action") == "cancel" else DeclinedElicitation
        return _of_library(kind)(action=kind.action)
    content = result.get("content") or {}
    data = _taken(shape, content.get("value") if is_wrapped else content) if shape is not None else {}
    return _of_library(AcceptedElicitation)(action="accept", data=data)


def _shape(response_type, scope):
    """The shape of an answer, and whether it is a single value that must be put into an object."""
    if response_type is None:
        return None, False
    if isinstance(response_type, (list, tuple)) and all(isinstance(one, str) for one in response_type):
        return Choice(list(response_type)), True
    shape = Reader(scope).read(response_type)
    return shape, not isinstance(bare(shape), (Record, Foreign))


def _taken(shape, content):
    errors = []
    made = take(shape, content, "", errors)
    if errors:
        raise Unanswered("the answer does not fit: %s: %s" % (errors[0]["path"] or "/", errors[0]["message"]))
    return made


def _of_library(kind):
    """The class of the real library, where a file may compare with it."""
    return getattr(sys.modules.get(kind.__module__), kind.__name__, kind)


class Sampled:
    """What a model of the client has written."""

    def __init__(self, said):
        self.role, self.content = said.get("role"), said.get("content")
        self.model, self.stop_reason = said.get("model"), said.get("stopReason")
        blocks = self.content if isinstance(self.content, list) else [self.content]
        texts = [one.get("text", "") for one in blocks if isinstance(one, dict) and one.get("type") == "text"]
        self.text = self.result = "".join(texts)

    def __str__(self):
        return self.text


async def sample(ask, messages, system_prompt=None, temperature=None, max_tokens=None, model_preferences=None, **_):
    """Lets a model of the client write."""
    listed = messages if isinstance(messages, (list, tuple)) else [messages]
    params = {"messages": [_message(one) for one in listed], "maxTokens": max_tokens or MAX_TOKENS}
    if isinstance(model_preferences, str):
        model_preferences = [model_preferences]
    if isinstance(model_preferences, (list, tuple)):
        model_preferences = {"hints": [{"name": name} for name in model_preferences]}
    for name, value in (("systemPrompt", system_prompt), ("temperature", temperature),
                        ("modelPreferences", model_preferences)):
        if value is not None:
            params[name] = value
    return Sampled(await ask("sampling/createMessage", params))


def _message(one):
    if isinstance(one, str):
        return {"role": "user", "content": {"type": "text", "text": one}}
    made = plain(one)
    if not isinstance(made, dict):
        raise HintError("a message for `sample` is a string, or has a role and content")
    if "role" not in made:
        return {"role": "user", "content": made}
    if isinstance(made.get("content"), str):
        made["content"] = {"type": "text", "text": made["content"]}
    return {"role": made["role"], "content": made.get("content")}
