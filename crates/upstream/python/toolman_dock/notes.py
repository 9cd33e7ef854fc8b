"""Notes: what `Annotated[...]` and `Field(...)` say about a shape, in the keywords of JSON Schema.

The keywords of `Field` are those of pydantic, so that its objects and ours, and calls of `Field` in
source text, end in the same place.
"""

import re

from .plain import to_json
from .shapes import (
    NULL, Array, Choice, Either, Fixed, Foreign, HintError, Map, Noted, Record, Scalar, Text, accepts_null, bare,
    either,
)

NUMBER = {"ge": "minimum", "gt": "exclusiveMinimum", "le": "maximum", "lt": "exclusiveMaximum",
          "multiple_of": "multipleOf"}
LENGTH = {"min_length": "min", "max_length": "max"}
WORDS = ("description", "examples", "title", "deprecated")
# What `Field` may be given without changing what a caller sees.
SILENT = ("default", "default_factory", "repr", "init", "init_var", "kw_only", "exclude", "frozen",
          "validate_default", "strict")
KNOWN = tuple(NUMBER) + tuple(LENGTH) + WORDS + ("pattern",) + SILENT


def keywords_of(mark):
    """The keywords of one object in `Annotated`, or None if it means nothing to us."""
    if isinstance(mark, str):
        return {"description": mark}
    said = {}
    own = getattr(mark, "__toolman_field__", None)
    if own is not None:
        return {key: value for key, value in own.items() if value is not None}
    for name in tuple(NUMBER) + tuple(LENGTH) + ("pattern",):
        value = getattr(mark, name, None)
        if value is not None and not callable(value):
            said[name] = getattr(value, "pattern", value)
    for inner in getattr(mark, "metadata", None) or ():
        said.update(keywords_of(inner) or {})
    for name in WORDS:
        value = getattr(mark, name, None)
        if value is not None and not callable(value):
            said[name] = value
    documentation = getattr(mark, "documentation", None)
    if isinstance(documentation, str):
        said["description"] = documentation
    return said or None


def note(shape, said):
    """The shape with these keywords on it."""
    words = {key: said[key] for key in WORDS if said.get(key) is not None}
    limits = {key: value for key, value in said.items() if key in NUMBER or key in LENGTH or key == "pattern"}
    if limits:
        shape = limit(shape, limits)
    return Noted(shape, words, {}) if words else shape


def limit(shape, said):
    """Puts limits where they bear: in a union on each option that they can hold for."""
    inner = bare(shape)
    if isinstance(inner, Either) and inner is shape:
        return Either([option if isinstance(option, Scalar) and option.kind == "null" else limit(option, said)
                       for option in inner.options])
    limits = {}
    for key, value in said.items():
        if key in NUMBER and numeric(inner) and plain_number(value):
            limits[NUMBER[key]] = value
        elif key in LENGTH and sized(inner) and isinstance(value, int):
            limits[LENGTH[key] + sized(inner)] = value
        elif key == "pattern" and isinstance(inner, Scalar) and inner.kind == "string" and isinstance(value, str):
            limits["pattern"] = whole_pattern(value)
    return Noted(shape, {}, limits) if limits else shape


def whole_pattern(text):
    try:
        re.compile(text)
        return text
    except re.error as error:
        raise HintError("the pattern `%s` is not a regular expression: %s" % (text[:80], error)) from None


def plain_number(value):
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def numeric(shape):
    return isinstance(shape, Scalar) and shape.kind in ("integer", "number")


def sized(shape):
    if isinstance(shape, Scalar) and shape.kind == "string":
        return "Length"
    if isinstance(shape, Array):
        return "Items"
    return "Properties" if isinstance(shape, Map) else None


def nullable(shape):
    """The same shape, or null: what a default of None means, hint or no hint."""
    if accepts_null(shape):
        return shape
    if isinstance(shape, Noted) and shape.words and not shape.limits:
        return Noted(nullable(shape.shape), shape.words, {})
    return either([shape, NULL])


def spoken(shape):
    """What kind of value a shape is, in words for an error."""
    shape = bare(shape)
    if isinstance(shape, Scalar):
        return {"string": "a string", "integer": "an integer", "number": "a number",
                "boolean": "true or false", "null": "null"}[shape.kind]
    if isinstance(shape, Text):
        return "a string (%s)" % shape.format
    if isinstance(shape, (Array, Fixed)):
        return "an array"
    if isinstance(shape, (Map, Record)):
        return "an object"
    if isinstance(shape, Choice):
        shown = ", ".join(to_json(value) for value in shape.values[:12])
        return "one of " + shown + (", …" if len(shape.values) > 12 else "")
    if isinstance(shape, Either):
        return " or ".join(spoken(option) for option in shape.options)
    return "a value of its model" if isinstance(shape, Foreign) else "a value"
