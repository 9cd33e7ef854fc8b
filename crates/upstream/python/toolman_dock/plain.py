"""Plain: Python values as JSON values, and JSON values as text.

Whatever a tool returns becomes something that every JSON reader accepts: keys are strings, numbers are
finite, strings are whole characters.
"""

import json

_compact = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class NotJson(Exception):
    """A value that has no JSON form."""


def plain(value):
    """The JSON form of a value."""
    kind = type(value)
    if value is None or kind is str or kind is bool or kind is int:
        return value
    if kind is float:
        return value if value == value and value not in (float("inf"), float("-inf")) else None
    if kind is dict:
        return {key if type(key) is str else key_text(key): plain(part) for key, part in value.items()}
    if kind is list:
        return [plain(part) for part in value]
    return _other(value, kind)


def _other(value, kind):
    fields = getattr(kind, "_fields", None)
    if isinstance(value, tuple) and isinstance(fields, tuple):
        return {name: plain(part) for name, part in zip(fields, value)}
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, (set, frozenset)):
        # Sets have no order of their own; a stable one keeps definitions and results comparable.
        return sorted((plain(part) for part in value), key=to_json)
    if hasattr(kind, "__members__") and hasattr(value, "value"):
        return enum_value(value)
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return plain(float(value))
    if isinstance(value, dict):
        return plain(dict(value))
    if isinstance(value, (bytes, bytearray, memoryview)):
        import base64

        return base64.b64encode(bytes(value)).decode("ascii")
    if hasattr(kind, "__dataclass_fields__"):
        return {name: plain(getattr(value, name)) for name, field in kind.__dataclass_fields__.items()
                if getattr(field, "_field_type", None) is not None
                and field._field_type.name == "_FIELD" and hasattr(value, name)}
    if hasattr(value, "model_dump"):
        return plain(value.model_dump(mode="json", by_alias=True))
    return _by_name(value, kind)


def _by_name(value, kind):
    # Compared by name, so that modules which no tool uses are not imported to ask.
    for one in kind.__mro__:
        name = one.__module__ + "." + one.__qualname__
        if name in ("datetime.datetime", "datetime.date", "datetime.time"):
            return value.isoformat()
        if name == "datetime.timedelta":
            return duration(value)
        if name in ("uuid.UUID", "decimal.Decimal") or one.__module__.split(".")[0] in ("pathlib", "ipaddress"):
            return str(value)
        if name == "numpy.generic":
            made = value.item()
            # Numbers that Python has no kind of its own for stay what they are.
            return plain(made) if type(made) is not kind else plain(float(made))
        if name == "numpy.ndarray":
            return plain(value.tolist())
        if name == "collections.deque":
            return [plain(part) for part in value]
    if hasattr(value, "keys") and hasattr(value, "__getitem__"):
        return {key_text(key): plain(value[key]) for key in value.keys()}
    if hasattr(value, "__next__") or kind.__module__ in ("builtins", "collections", "collections.abc") \
            and hasattr(value, "__iter__"):
        return [plain(part) for part in value]
    if "__str__" in kind.__dict__ and hasattr(value, "__get_pydantic_core_schema__"):
        return str(value)
    raise NotJson("a value of type `%s` has no JSON form" % kind.__qualname__)


def enum_value(member):
    """What stands for a member of an enumeration."""
    return enum_json(member.value, member.name)


def enum_json(value, name):
    """The value of a member if JSON has it, else its name."""
    if hasattr(type(value), "__members__"):
        return enum_value(value)
    if value is None or isinstance(value, (str, int)):
        return plain(value)
    if isinstance(value, float) and plain(value) is not None:
        return plain(value)
    return name


def key_text(key):
    if key is None or isinstance(key, (bool, float)):
        return to_json(plain(key))
    if isinstance(key, tuple):
        return ",".join(key_text(part) for part in key)
    made = plain(key)
    return made if isinstance(made, str) else to_json(made)


def duration(value):
    """A time span as ISO 8601 writes it."""
    sign, micro = ("-", -1) if value.days < 0 else ("", 1)
    micro *= (value.days * 86400 + value.seconds) * 1000000 + value.microseconds
    seconds, micro = divmod(micro, 1000000)
    days, seconds = divmod(seconds, 86400)
    fraction = (".%06d" % micro).rstrip("0") if micro else ""
    return "%sP%sT%d%sS" % (sign, "%dD" % days if days else "", seconds, fraction)


def to_json(value):
    """The text of a JSON value."""
    return _compact(value)


def to_bytes(value):
    """The text of a JSON value in UTF-8; half characters, which UTF-8 can't write, are replaced."""
    text = _compact(value)
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace").encode("utf-8")
