"""Shapes: the common form of a type hint, whether it was met alive or in source text.

`hints` makes shapes from Python objects, `reading` from syntax trees, `families` composes both by the
names of the types; `schema` renders shapes as JSON Schema and `intake` turns arguments into values.
So the definitions of a file that was only read and of one that was imported can't drift apart.
"""

MISSING = type("Missing", (), {"__repr__": lambda self: "MISSING", "__bool__": lambda self: False})()


class HintError(Exception):
    """A type hint that no JSON value can satisfy, or that can't be understood."""


class Shape:
    __slots__ = ()


class Anything(Shape):
    """Any JSON value. `known` is false where a hint could not be resolved from the source alone."""

    __slots__ = ("known",)

    def __init__(self, known=True):
        self.known = known


class Scalar(Shape):
    """A JSON type without parts: string, integer, number, boolean or null."""

    __slots__ = ("kind",)

    def __init__(self, kind):
        self.kind = kind


class Text(Shape):
    """A value that travels as a string of a certain format, such as a date."""

    __slots__ = ("format",)

    def __init__(self, format):
        self.format = format


class Array(Shape):
    """Any number of items; `build` names the Python container that a tool gets."""

    __slots__ = ("item", "build")

    def __init__(self, item, build="list"):
        self.item, self.build = item, build


class Fixed(Shape):
    """A tuple of a known length."""

    __slots__ = ("items",)

    def __init__(self, items):
        self.items = items


class Map(Shape):
    """An object with free keys."""

    __slots__ = ("key", "value")

    def __init__(self, key, value):
        self.key, self.value = key, value


class Either(Shape):
    """One of several shapes, tried in this order."""

    __slots__ = ("options",)

    def __init__(self, options):
        self.options = options


class Choice(Shape):
    """One of several values. For an enumeration `members` has its members, in the order of `values`."""

    __slots__ = ("values", "members", "name", "description")

    def __init__(self, values, members=None, name=None, description=None):
        self.values, self.members, self.name, self.description = values, members, name, description


class Field:
    """A named part of a record."""

    __slots__ = ("name", "shape", "required", "default", "description")

    def __init__(self, name, shape, required=True, default=MISSING, description=None):
        self.name, self.shape, self.required, self.default = name, shape, required, default
        self.description = description


class Record(Shape):
    """A dataclass, typed dictionary or named tuple; `fields` is filled after the shape exists, for recursion."""

    __slots__ = ("name", "fields", "make", "description")

    def __init__(self, name, make=None, description=None):
        self.name, self.make, self.description, self.fields = name, make, description, ()


class Noted(Shape):
    """A shape with words about it (description, examples) and limits on it (JSON Schema keywords)."""

    __slots__ = ("shape", "words", "limits")

    def __init__(self, shape, words, limits):
        self.shape, self.words, self.limits = shape, words, limits


class Foreign(Shape):
    """A type that pydantic knows and we do not: its schema, and the adapter that validates."""

    __slots__ = ("schema", "output", "adapter")

    def __init__(self, schema, output, adapter):
        self.schema, self.output, self.adapter = schema, output, adapter


class Content(Shape):
    """Content blocks of MCP: they are results as they are, so there is no output schema."""

    __slots__ = ()


class Injected(Shape):
    """The context of a call: given by the worker, never by the caller."""

    __slots__ = ()


NULL = Scalar("null")


def either(options):
    """A union without nesting and without the same shape twice; null comes last.

    `typing` keeps one object for unions that differ only in order, so the place of None is an accident.
    """
    flat = []
    for option in options:
        for one in option.options if isinstance(option, Either) else (option,):
            if not any(one is seen or same(one, seen) for seen in flat):
                flat.append(one)
    flat.sort(key=lambda one: isinstance(one, Scalar) and one.kind == "null")
    return flat[0] if len(flat) == 1 else Either(flat)


def same(one, other):
    """Whether two leaves are the same; larger shapes are only the same if they are one object."""
    if type(one) is not type(other):
        return False
    if isinstance(one, Scalar):
        return one.kind == other.kind
    if isinstance(one, Text):
        return one.format == other.format
    return isinstance(one, Content)


def bare(shape):
    """The shape below its notes."""
    while isinstance(shape, Noted):
        shape = shape.shape
    return shape


def accepts_null(shape):
    shape = bare(shape)
    if isinstance(shape, Either):
        return any(accepts_null(option) for option in shape.options)
    if isinstance(shape, Choice):
        return None in shape.values
    if isinstance(shape, Foreign):
        return True
    return isinstance(shape, Anything) or (isinstance(shape, Scalar) and shape.kind == "null")


def parts(shape):
    """The shapes directly inside a shape."""
    if isinstance(shape, Array):
        return (shape.item,)
    if isinstance(shape, Fixed):
        return tuple(shape.items)
    if isinstance(shape, Map):
        return (shape.key, shape.value)
    if isinstance(shape, Either):
        return tuple(shape.options)
    if isinstance(shape, Noted):
        return (shape.shape,)
    if isinstance(shape, Record):
        return tuple(field.shape for field in shape.fields)
    return ()


def walk(shape):
    """Every shape below and including this one, each once."""
    seen, todo, found = set(), [shape], []
    while todo:
        one = todo.pop()
        if id(one) not in seen:
            seen.add(id(one))
            found.append(one)
            todo.extend(parts(one))
    return found


def holds(shape, kind):
    return any(isinstance(one, kind) for one in walk(shape))


def is_context(shape):
    """Whether a parameter of this shape is the context of the call, also an optional one."""
    shape = bare(shape)
    if isinstance(shape, Either):
        return any(is_context(option) for option in shape.options)
    return isinstance(shape, Injected)
