"""Intake: arguments as they came into the values that a tool asked for, with every fault named.

A scalar is converted as FastMCP does (`"5"` is an integer, `"yes"` is true), unless the folder is strict. Then the one
widening is that of JSON itself, where 1 and 1.0 are the same number.
"""

import re

from .notes import spoken
from .plain import to_json
from .shapes import (
    Anything, Array, Choice, Either, Fixed, Foreign, Map, Noted, Record, Scalar, Text,
)
from .texts import from_text

TRUE, FALSE = ("1", "on", "t", "true", "y", "yes"), ("0", "off", "f", "false", "n", "no")
# Digits of a number in a string; Python's own limit is about as high.
DIGITS_MAX = 4300


class Strictness:
    """Whether scalars of another kind are refused; said once, as the worker starts."""

    is_strict = False


def take(shape, value, path, errors, exact=False):
    """The Python value for a JSON value. Faults are added to `errors`; `exact` refuses 1 for a float."""
    kind = type(shape)
    if kind is Scalar:
        return _scalar(shape.kind, value, path, errors, exact)
    if kind is Anything:
        return value
    if kind is Text:
        return _text(shape.format, value, path, errors)
    if kind is Array:
        return _array(shape, value, path, errors, exact)
    if kind is Map:
        return _map(shape, value, path, errors, exact)
    if kind is Either:
        return _either(shape, value, path, errors)
    if kind is Noted:
        made = take(shape.shape, value, path, errors, exact)
        if shape.limits:
            is_converted = isinstance(value, (str, bool)) and type(made) in (int, float)
            _limits(shape.limits, made if is_converted else value, path, errors)
        return made
    if kind is Choice:
        return _choice(shape, value, path, errors)
    if kind is Record:
        return _record(shape, value, path, errors, exact)
    if kind is Fixed:
        return _fixed(shape, value, path, errors, exact)
    if kind is Foreign:
        return _foreign(shape, value, path, errors)
    return value


def refuse(path, expected, value, errors):
    errors.append({"path": path, "message": "expected %s, got %s" % (expected, brief(value))})


def brief(value):
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "an array"
    text = to_json(value) if not isinstance(value, float) or finite(value) else "a number beyond all limits"
    return text if len(text) <= 60 else text[:57] + "…"


def finite(value):
    return value - value == 0


def _scalar(kind, value, path, errors, exact):
    if kind == "string" and isinstance(value, str):
        return value
    if kind == "boolean" and isinstance(value, bool):
        return value
    if kind == "null" and value is None:
        return None
    if not isinstance(value, bool):
        if kind == "integer":
            if isinstance(value, int):
                return value
            if isinstance(value, float) and value.is_integer():
                return int(value)
        if kind == "number":
            if isinstance(value, float) and finite(value):
                return value
            if isinstance(value, int) and not exact:
                try:
                    return float(value)
                except OverflowError:
                    pass
    if not exact and not Strictness.is_strict:
        made = converted(kind, value)
        if made is not None:
            return made
    refuse(path, spoken(Scalar(kind)), value, errors)


def converted(kind, value):
    """A scalar as one of another kind, by the rules of pydantic's lax mode; None if it can't be."""
    if kind == "boolean":
        if isinstance(value, str):
            word = value.lower()
            return True if word in TRUE else False if word in FALSE else None
        return {0: False, 1: True}.get(value) if isinstance(value, (int, float)) else None
    if kind not in ("integer", "number") or not isinstance(value, (str, bool)) or len(str(value)) > DIGITS_MAX:
        return None
    try:
        made = int(value) if kind == "integer" else float(value)
    except ValueError:
        # `5.0` is an integer, too, as long as nothing is lost.
        whole = re.fullmatch(r"\s*([+-]?\d+)\.0*\s*", value) if kind == "integer" else None
        return int(whole.group(1)) if whole else None
    return made if kind == "integer" or finite(made) else None


def _text(format, value, path, errors):
    if format == "decimal" and isinstance(value, (int, float)) and not isinstance(value, bool):
        value = to_json(value)
    if isinstance(value, str):
        try:
            return from_text(format, value)
        except (ValueError, ArithmeticError):
            pass
    refuse(path, spoken(Text(format)), value, errors)


def _array(shape, value, path, errors, exact):
    if not isinstance(value, list):
        return refuse(path, "an array", value, errors)
    before = len(errors)
    made = [take(shape.item, one, "%s/%d" % (path, index), errors, exact) for index, one in enumerate(value)]
    if shape.build == "list" or len(errors) > before:
        return made
    if shape.build == "tuple":
        return tuple(made)
    try:
        unique = set(made) if shape.build == "set" else frozenset(made)
    except TypeError as error:
        return errors.append({"path": path, "message": "can't be a set: %s" % error})
    if len(unique) < len(made):
        errors.append({"path": path, "message": "the items must differ from each other"})
    return unique


def _fixed(shape, value, path, errors, exact):
    if not isinstance(value, list) or len(value) != len(shape.items):
        return refuse(path, "an array of %d items" % len(shape.items), value, errors)
    return tuple(take(item, one, "%s/%d" % (path, index), errors, exact)
                 for index, (item, one) in enumerate(zip(shape.items, value)))


def _map(shape, value, path, errors, exact):
    if not isinstance(value, dict):
        return refuse(path, "an object", value, errors)
    made = {}
    for name, one in value.items():
        place = path + "/" + escape(name)
        made[_key(shape.key, name, place, errors)] = take(shape.value, one, place, errors, exact)
    return made


def _key(shape, name, path, errors):
    inner = shape
    while isinstance(inner, Noted):
        inner = inner.shape
    if isinstance(inner, Scalar) and inner.kind in ("integer", "number"):
        try:
            return int(name) if inner.kind == "integer" else float(name)
        except ValueError:
            errors.append({"path": path, "message": "the name `%s` must be a number" % name[:60]})
            return name
    if isinstance(inner, (Text, Choice)) or (isinstance(inner, Scalar) and inner.kind == "string"):
        before = len(errors)
        made = take(shape, name, path, errors)
        return made if len(errors) == before else name
    return name


def _either(shape, value, path, errors):
    # Exact matches first: an integer given for `float | int` stays one.
    for exact in (True, False):
        for option in shape.options:
            found = []
            made = take(option, value, path, found, exact)
            if not found:
                return made
    others = [option for option in shape.options if not (isinstance(option, Scalar) and option.kind == "null")]
    if len(others) == 1:
        return take(others[0], value, path, errors)
    alike = [option for option in others if _alike(option, value)]
    if len(alike) == 1:
        return take(alike[0], value, path, errors)
    refuse(path, spoken(shape), value, errors)


def _alike(option, value):
    while isinstance(option, Noted):
        option = option.shape
    if isinstance(value, dict):
        return isinstance(option, (Record, Map, Foreign))
    if isinstance(value, list):
        return isinstance(option, (Array, Fixed, Foreign))
    return False


def _choice(shape, value, path, errors):
    for index, one in enumerate(shape.values):
        if one == value and isinstance(one, bool) == isinstance(value, bool) and (one is None) == (value is None):
            return shape.members[index] if shape.members else one
    refuse(path, spoken(shape), value, errors)


def _record(shape, value, path, errors, exact):
    if not isinstance(value, dict):
        return refuse(path, "an object", value, errors)
    before = len(errors)
    made = take_fields(shape.fields, value, path, errors, False, exact)
    if len(errors) > before or shape.make is None:
        return made
    try:
        return shape.make(**made)
    except Exception as error:  # What a class checks by itself is the caller's fault too.
        errors.append({"path": path, "message": "%s: %s" % (type(error).__name__, str(error)[:300])})


def take_fields(fields, value, path, errors, extra, exact=False):
    """The values of named parts; unknown names are faults unless `extra` lets them pass as they are."""
    made = {}
    for field in fields:
        place = path + "/" + escape(field.name)
        if field.name in value:
            made[field.name] = take(field.shape, value[field.name], place, errors, exact)
        elif field.required:
            errors.append({"path": place, "message": "is missing"})
    known = {field.name for field in fields}
    for name in value:
        if name not in known:
            if extra:
                made[name] = value[name]
            else:
                errors.append({"path": path + "/" + escape(name), "message": "is not known here"})
    return made


def _foreign(shape, value, path, errors):
    try:
        # Pydantic's JSON reading: dates come as text.
        return shape.adapter.validate_json(to_json(value), strict=Strictness.is_strict)
    except ValueError as error:
        faults = getattr(error, "errors", None)
        if not callable(faults):
            return errors.append({"path": path, "message": str(error)[:300]})
        for fault in faults(include_url=False, include_context=False, include_input=False):
            place = path + "".join("/" + escape(str(step)) for step in fault.get("loc", ()))
            errors.append({"path": place, "message": fault.get("msg", "does not fit")})


def _limits(limits, value, path, errors):
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    size = len(value) if isinstance(value, (str, list, dict)) else None
    for keyword, limit in limits.items():
        if keyword == "pattern":
            if isinstance(value, str) and re.search(limit, value) is None:
                errors.append({"path": path, "message": "must match the pattern `%s`" % limit})
        elif keyword.startswith(("min", "max")) and keyword[3:] in ("Length", "Items", "Properties"):
            if size is not None and (size < limit if keyword[:3] == "min" else size > limit):
                words = ("at least" if keyword[:3] == "min" else "at most", limit, NOUNS[keyword[3:]])
                errors.append({"path": path, "message": "must have %s %d %s" % words})
        elif number and not COMPARE[keyword][1](value, limit):
            errors.append({"path": path, "message": "must be %s %s" % (COMPARE[keyword][0], limit)})


NOUNS = {"Length": "characters", "Items": "items", "Properties": "members"}
COMPARE = {
    "minimum": ("at least", lambda value, limit: value >= limit),
    "exclusiveMinimum": ("more than", lambda value, limit: value > limit),
    "maximum": ("at most", lambda value, limit: value <= limit),
    "exclusiveMaximum": ("less than", lambda value, limit: value < limit),
    "multipleOf": ("a multiple of", lambda value, limit: is_multiple(value, limit)),
}


def is_multiple(value, limit):
    if limit == 0 or (isinstance(value, int) and isinstance(limit, int)):
        return limit == 0 or value % limit == 0
    try:
        return abs(value / limit - round(value / limit)) < 1e-9
    except OverflowError:
        return False


def escape(name):
    """A name as a step of a JSON Pointer."""
    return name.replace("~", "~0").replace("/", "~1")
