"""Offers: the resources and prompts of servers in tool files, and how they are read.

A function of one is called like a tool: its parameters come from the URI or from the arguments of the prompt, and a
`Context` is given to it. What it returns becomes contents or messages of MCP.
"""

import re

from .definition import title_of
from .intake import converted
from .plain import plain, to_json
from .registry import MARKS_MAX, first_line
from .results import Broken
from .shapes import HintError, Scalar, bare
from .tools import build

RESOURCE, TEMPLATE, PROMPT = "resource", "template", "prompt"
OFFERS = []
URI_LENGTH_MAX = 2048


class Offer:
    """A function that was marked as a resource or prompt."""

    def __init__(self, kind, key, function, options, file, line):
        self.kind, self.key, self.function, self.options = kind, key, function, options
        self.file, self.line = file, line


def mark(kind, key, function, options, frame):
    """Notes a resource or prompt. The function comes back as it was."""
    if len(OFFERS) >= MARKS_MAX:
        raise RuntimeError("a namespace can have %d resources and prompts at most" % MARKS_MAX)
    file = frame.f_globals.get("__file__")
    OFFERS.append(Offer(kind, key, function, options, file, first_line(function, frame.f_lineno)))
    return function


class Offered:
    """A resource, a template or a prompt that can be asked for."""

    def __init__(self, kind, key, tool, definition):
        self.kind, self.key, self.tool, self.definition = kind, key, tool, definition
        self.name = definition["name"]
        self.asynchronous, self.function, self.run = tool.asynchronous, tool.function, None
        self._pattern = pattern(key) if kind == TEMPLATE else None
        self.uri = None

    def is_exact(self):
        return False

    def match(self, uri):
        """The parameters that a URI has for a template, or None if it is none of it."""
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: value for name, value in found.groupdict().items() if value is not None}

    def bind(self, arguments, context):
        given = {name: value for name, value in arguments.items() if name != URI}
        for field in self.tool.fields:
            # All of them come as text, also where a folder is strict.
            shape, value = bare(field.shape), given.get(field.name)
            if isinstance(shape, Scalar) and shape.kind != "string" and isinstance(value, str):
                made = converted(shape.kind, value)
                given[field.name] = value if made is None else made
        return self.tool.bind(given, context)

    def result(self, value, arguments):
        if self.kind == PROMPT:
            return messages(value, self.definition.get("description"))
        return contents(value, arguments[URI], self.definition.get("mimeType"))


# The member that carries the URI to the result; no parameter has such a name.
URI = "\0uri"


def make(offer):
    """What a marked function offers; HintError says why it can't."""
    options = offer.options
    name = options.get("name") or getattr(offer.function, "__name__", None) or "resource"
    # The name of a resource may be any text: only what is called like a tool is named like one.
    tool = build(offer.function, {"name": re.sub(r"[^A-Za-z0-9_.-]", "_", str(name))[:100] or "offer"})
    kind, key = offer.kind, offer.key
    definition = {"name": str(name), "title": options.get("title") or title_of(str(name))}
    text = options.get("description") or tool.definition.get("description")
    if text:
        definition["description"] = str(text)
    if kind == PROMPT:
        schema = tool.definition["inputSchema"]
        required = schema.get("required", ())
        definition["arguments"] = [
            dict({"name": one, "required": one in required},
                 **({"description": part["description"]} if "description" in part else {}))
            for one, part in schema["properties"].items()]
        key = str(name)
    else:
        if not isinstance(key, str) or "://" not in key or len(key) > URI_LENGTH_MAX:
            raise HintError("the URI of the resource `%s` is none" % name)
        kind = TEMPLATE if "{" in key else RESOURCE
        definition["uriTemplate" if kind == TEMPLATE else "uri"] = key
        if options.get("mime_type"):
            definition["mimeType"] = str(options["mime_type"])
    return Offered(kind, key, tool, definition)


def pattern(template):
    """The regular expression of a template: `{name}` is a step of a path, `{name*}` several, `{?a,b}` a query."""
    made, rest = "", template
    while rest:
        before, opened, rest = rest.partition("{")
        made += re.escape(before)
        if not opened:
            break
        inner, closed, rest = rest.partition("}")
        if not closed or not re.fullmatch(r"\??\w+\*?(,\w+)*", inner):
            raise HintError("the URI template `%s` can't be read" % template[:100])
        if inner.startswith("?"):
            made += r"(?:\?(?:%s)*)?" % "|".join("%s=(?P<%s>[^&]*)&?" % (name, name) for name in inner[1:].split(","))
        elif inner.endswith("*"):
            made += "(?P<%s>.+)" % inner[:-1]
        else:
            made += "(?P<%s>[^/?]+)" % inner
    return re.compile(made)


def contents(value, uri, mime):
    """What a resource has given, as MCP has it."""
    several = getattr(value, "contents", None)
    parts = several if isinstance(several, list) else value if _is_contents(value) else [value]
    return {"contents": [_content(part, uri, mime) for part in parts]}


def _is_contents(value):
    return isinstance(value, list) and bool(value) and all(hasattr(part, "mime_type") for part in value)


def _content(value, uri, mime):
    if hasattr(value, "content") and hasattr(value, "mime_type"):
        value, mime = value.content, value.mime_type or mime
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"uri": uri, "mimeType": mime or "application/octet-stream", "blob": plain(value)}
    if isinstance(value, str):
        return {"uri": uri, "mimeType": mime or "text/plain", "text": plain(value)}
    return {"uri": uri, "mimeType": mime or "application/json", "text": to_json(plain(value))}


def messages(value, description):
    """What a prompt has given, as MCP has it."""
    description = getattr(value, "description", None) or description
    value = getattr(value, "messages", value)
    made = {"messages": [_message(one) for one in (value if isinstance(value, (list, tuple)) else [value])]}
    if isinstance(description, str):
        made["description"] = description
    return made


def _message(one):
    if isinstance(one, Message):
        one = {"role": one.role, "content": one.content}
    elif not isinstance(one, (str, dict)):
        one = plain(one)
    if isinstance(one, dict) and one.get("role") in ("user", "assistant"):
        content = one.get("content")
        content = content if isinstance(content, dict) and "type" in content else _text(content)
        return {"role": one["role"], "content": plain(content)}
    return {"role": "user", "content": _text(one)}


def _text(value):
    if value is None:
        raise Broken("a message of the prompt is empty")
    return {"type": "text", "text": value if isinstance(value, str) else to_json(plain(value))}


class Message:
    """A message of a prompt."""

    def __init__(self, content, role="user"):
        self.content, self.role = content, role


class UserMessage(Message):
    """What a person says."""


class AssistantMessage(Message):
    """What a model says."""

    def __init__(self, content, role="assistant"):
        super().__init__(content, role)
