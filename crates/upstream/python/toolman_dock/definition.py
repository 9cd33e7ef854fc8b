"""Definitions: what is known of a tool, from source or alive, as the definition that MCP lists."""

import re

from .depth import DEPTH_MAX, is_too_deep
from .notes import nullable
from .plain import plain, to_bytes
from .schema import input_schema, output_schema
from .shapes import Anything, Content, HintError, Noted, Scalar, bare, holds

NAME_LENGTH_MAX = 128
DEFINITION_BYTES_MAX = 256 * 1024
NAME_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-")
OPTIONS = ("name", "title", "description", "tags", "annotations", "meta", "output_schema", "enabled")


def name_fault(name):
    """What is wrong with a tool's name, or None."""
    if isinstance(name, str) and 0 < len(name) <= NAME_LENGTH_MAX and NAME_LETTERS.issuperset(name):
        return None
    shown = name if isinstance(name, str) else repr(name)
    return ("the tool name `%s` is not allowed; use 1 to %d letters, digits, `_`, `.` or `-`"
            % (shown[:80].encode("ascii", "backslashreplace").decode("ascii"), NAME_LENGTH_MAX))


def method_fault(name, owner, first):
    """What is wrong with a tool in a class whose first parameter is this, or None."""
    if first not in ("self", "cls"):
        return None
    return ("the tool `%s` is a method of `%s`: nobody could pass `%s`; move it out of the class, or mark the method of an "
            "object" % (name, owner, first))


def admit_default(field):
    """A parameter whose default is None takes null too: callers send what the schema shows."""
    if not field.required and field.default is None:
        field.shape = nullable(field.shape)
    return field


def output_of(shape):
    """The output schema of a return hint and whether results are wrapped; (None, False) for none."""
    if shape is None:
        return None, False
    inner = bare(shape)
    if isinstance(inner, Anything) or (isinstance(inner, Scalar) and inner.kind == "null") or holds(shape, Content):
        return None, False
    return output_schema(shape)


def given_output(schema):
    """The output schema that a decorator gave."""
    if schema is None:
        return None, False
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise HintError('`output_schema` must be an object schema with `"type": "object"`, or None')
    return plain(schema), bool(schema.get("x-fastmcp-wrap-result"))


def title_of(name, annotations=None):
    """What people are shown where the author gives no title: that of the annotations, else the name in words."""
    given = annotations.get("title") if isinstance(annotations, dict) else getattr(annotations, "title", None)
    if isinstance(given, str) and given:
        return given
    words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[_.-]+", " ", name).strip() or name
    return words[:1].upper() + words[1:]


def define(name, options, described, fields, extra, output):
    """The definition of a tool. `described` is the docstring's description."""
    made = {"name": name}
    for key in ("title", "description"):
        if options.get(key) is not None and not isinstance(options[key], str):
            raise HintError("`%s` of the tool `%s` must be a string" % (key, name))
    made["title"] = options.get("title") or title_of(name, options.get("annotations"))
    text = options.get("description") or described
    if text:
        made["description"] = text
    made["inputSchema"] = input_schema(fields, extra)
    if output is not None:
        made["outputSchema"] = output
    annotations = options.get("annotations")
    if annotations is not None:
        annotations = {key: value for key, value in plain_annotations(annotations).items() if value is not None}
        if annotations:
            made["annotations"] = annotations
    meta = plain(options.get("meta") or {})
    if not isinstance(meta, dict):
        raise HintError("`meta` must be a dictionary")
    if options.get("tags"):
        meta["fastmcp"] = dict(meta.get("fastmcp") or {}, tags=sorted(str(tag) for tag in options["tags"]))
    if meta:
        made["_meta"] = meta
    text = to_bytes(made)
    if is_too_deep(text):
        raise HintError("the definition of `%s` is nested too deep, by its hints or by a default; the most is %d levels"
                        % (name, DEPTH_MAX))
    size = len(text)
    if size > DEFINITION_BYTES_MAX:
        raise HintError("the definition of `%s` has %d bytes; the most is %d" % (name, size, DEFINITION_BYTES_MAX))
    return made


def plain_annotations(annotations):
    made = plain(annotations)
    if not isinstance(made, dict):
        raise HintError("`annotations` must be a dictionary")
    for name, value in made.items():
        wanted = str if name == "title" else bool if name.endswith("Hint") else object
        if value is not None and not isinstance(value, wanted):
            raise HintError("`%s` in `annotations` must be %s" % (name, "a string" if wanted is str else "True or False"))
    return made


def describe(fields, told):
    """Gives parameters the descriptions of the docstring, where a hint says nothing itself."""
    for field in fields:
        own = field.shape.words.get("description") if isinstance(field.shape, Noted) else None
        if own is None and told.get(field.name):
            field.description = told[field.name]
    return fields
