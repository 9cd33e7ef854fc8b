"""Results: what a tool returned, as a whole result of `tools/call`."""

from .check import check
from .media import resource_uri
from .plain import plain, to_json

BLOCKS = {
    "text": {"text": str}, "image": {"data": str, "mimeType": str}, "audio": {"data": str, "mimeType": str},
    "resource": {"resource": dict}, "resource_link": {"uri": str, "name": str},
}


class Broken(Exception):
    """A tool that returned something other than it promised."""


def call_result(tool, value):
    """The result; `Broken` if the value does not match the tool's output schema."""
    if hasattr(value, "__next__"):
        value = list(value)
    whole = _whole(value)
    if whole is not None:
        return _checked(tool, whole)
    if tool.adapter is not None:
        value = _adapted(tool, value)
    made = {"content": _content(value, tool), "isError": False}
    structured = _structured(tool, value)
    if structured is not None:
        made["structuredContent"] = structured
    return _checked(tool, made)


def _adapted(tool, value):
    try:
        value = tool.adapter.validate_python(value)
        return tool.adapter.dump_python(value, mode="json", by_alias=True)
    except ValueError as error:
        raise Broken("the tool returned a value that its return hint does not allow: %s" % str(error)[:500]) from None


def _structured(tool, value):
    if tool.output is None and not isinstance(value, (dict, tuple)) and _is_leaf(value):
        return None
    if tool.output is None and _has_blocks(value):
        return None
    made = _unblocked(value)
    if tool.wrapped:
        return {"result": made}
    return made if isinstance(made, dict) else None


def _is_leaf(value):
    return value is None or isinstance(value, (str, bytes, bytearray, memoryview, bool, int, float, list))


def _checked(tool, made):
    if tool.output is not None and not made.get("isError"):
        if "structuredContent" not in made:
            raise Broken("the tool returned %s where its output schema promises an object" % _kind(made))
        fault = check(tool.output, made["structuredContent"])
        if fault is not None:
            path, expected, found = fault
            if tool.wrapped and path.startswith("/result"):
                path = path[len("/result"):]
            place = " at `%s`" % path if path else ""
            raise Broken("the tool returned %s%s where it promised %s" % (found, place, expected))
    return made


def _kind(made):
    return "text" if made["content"] else "nothing"


def _content(value, tool):
    if value is None:
        return []
    block = _block(value, tool.output is None)
    if block is not None:
        return [block]
    if isinstance(value, (list, tuple)) and _has_blocks(value, tool.output is None):
        made = []
        for one in value:
            made.extend([] if one is None else [_block(one, True) or _text(one)])
        return made
    return [_text(value)]


def _text(value):
    if isinstance(value, str):
        return {"type": "text", "text": plain(value)}
    return {"type": "text", "text": to_json(plain(value))}


def _has_blocks(value, dictionaries=True):
    if isinstance(value, (list, tuple)):
        return any(_block_like(one, dictionaries) for one in value)
    return _block_like(value, dictionaries)


def _block_like(value, dictionaries):
    if isinstance(value, (bytes, bytearray, memoryview)) or _helper(value) is not None:
        return True
    if isinstance(value, dict):
        return dictionaries and _is_block(value)
    return _is_model(value) and getattr(value, "type", None) in BLOCKS


def _block(value, dictionaries):
    """The content block that a value is, or None."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"type": "resource", "resource": {"uri": resource_uri("bytes"), "blob": plain(value),
                                                 "mimeType": "application/octet-stream"}}
    helper = _helper(value)
    if helper is not None:
        return _dump(helper())
    if isinstance(value, dict):
        return plain(value) if dictionaries and _is_block(value) else None
    if _is_model(value) and getattr(value, "type", None) in BLOCKS:
        return _dump(value)
    return None


def _helper(value):
    for name in ("to_block", "to_image_content", "to_audio_content", "to_resource_content"):
        made = getattr(type(value), name, None)
        if made is not None:
            return getattr(value, name)
    return None


def _is_block(value):
    members = BLOCKS.get(value.get("type")) if isinstance(value.get("type"), str) else None
    return members is not None and all(isinstance(value.get(name), kind) for name, kind in members.items())


def _is_model(value):
    return hasattr(type(value), "model_dump")


def _dump(block):
    if isinstance(block, dict):
        return plain(block)
    return plain(block.model_dump(mode="json", by_alias=True, exclude_none=True))


def _unblocked(value):
    """The value with its blocks as data: what a promise of a list means when it holds pictures."""
    if isinstance(value, (list, tuple)) and not hasattr(type(value), "_fields"):
        return [_unblocked(one) for one in value]
    helper = _helper(value)
    if helper is not None:
        return _dump(helper())
    return plain(value)


def _whole(value):
    """A value that is a whole result already: of fastmcp, of mcp, or of the shim."""
    if value is None or isinstance(value, (str, dict, list, int)):
        return None
    if hasattr(value, "structured_content") and hasattr(value, "content"):
        content, structured = value.content, value.structured_content
        made = {"content": _blocks(content), "isError": bool(getattr(value, "is_error", False))}
        if structured is not None:
            made["structuredContent"] = plain(structured)
        meta = getattr(value, "meta", None)
        if meta:
            made["_meta"] = plain(meta)
        return made
    if hasattr(value, "structuredContent") and hasattr(value, "content") and _is_model(value):
        made = _dump(value)
        made.setdefault("isError", False)
        return made
    return None


def _blocks(content):
    if content is None:
        return []
    made = []
    for one in content if isinstance(content, (list, tuple)) else [content]:
        made.append(_block(one, True) or _text(one))
    return made
