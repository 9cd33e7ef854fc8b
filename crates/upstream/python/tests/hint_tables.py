"""Tables of hints, defaults and return hints, with the schema of each."""

import sys

HEAD = '''
import dataclasses, datetime, decimal, enum, pathlib, typing, uuid
import collections.abc
import typing as t
from dataclasses import dataclass, field
from datetime import date, datetime as moment
from enum import Enum, IntEnum, auto
from pathlib import Path
from typing import (Annotated, Any, ClassVar, Dict, FrozenSet, Iterable, List, Literal, Mapping, NamedTuple, Optional,
                    Sequence, Set, Tuple, TypedDict, Union)
from uuid import UUID
from fastmcp import Context
from pydantic import Field
from fastmcp.tools import tool
from fastmcp.utilities.types import Image

class Color(Enum):
    """A colour."""
    RED = "red"
    BLUE = "blue"
    ROUGE = "red"
    def shade(self): return self.name

class Level(IntEnum):
    LOW = auto()
    HIGH = 5
    HIGHER = auto()

class Odd(enum.Enum):
    PAIR = (1, 2)
    NUMBER = 1.5

@dataclass
class Point:
    x: int
    y: float = 0.5
    """Not a docstring of the class."""
    limit: ClassVar[int] = 3
    secret: int = field(default=0, init=False)

@dataclass(order=True)
class Named(Point):
    """A point with a name.

    Args:
        label: Its name.
    """
    label: str = "here"
    tags: List[str] = field(default_factory=list)
    color: Color = Color.RED

@dataclasses.dataclass
class Node:
    value: Any
    children: "list[Node]" = dataclasses.field(default_factory=list)
    parent: Optional["Node"] = None

class Movie(TypedDict):
    """A film."""
    name: str
    year: int

class Partial(Movie, total=False):
    rating: float

class Pair(NamedTuple):
    left: int
    right: str = "r"

Number = Union[int, float]
DEFAULT = 12
'''

INT, STR, NUM, NULL = {"type": "integer"}, {"type": "string"}, {"type": "number"}, {"type": "null"}
COLOR = {"enum": ["red", "blue"], "type": "string", "description": "A colour."}
POINT = {"type": "object", "properties": {"x": INT, "y": {"type": "number", "default": 0.5}}, "required": ["x"],
         "additionalProperties": False}


def fmt(name):
    return {"type": "string", "format": name}


def any_of(*options):
    return {"anyOf": list(options)}


def array(items):
    return {"type": "array", "items": items}


# Hint: schema of a required parameter.
HINTS = {
    "str": STR, "int": INT, "float": NUM, "bool": {"type": "boolean"}, "None": NULL, "Any": {}, "object": {},
    "list": array({}), "List": array({}), "list[int]": array(INT), "List[str]": array(STR), "t.List[int]": array(INT),
    "Sequence[int]": array(INT), "collections.abc.Sequence[int]": array(INT), "Iterable[str]": array(STR),
    "tuple": array({}), "Tuple": array({}), "tuple[int, ...]": array(INT), "Tuple[str, ...]": array(STR),
    "tuple[int, str]": {"type": "array", "prefixItems": [INT, STR], "minItems": 2, "maxItems": 2},
    "set[int]": dict(array(INT), uniqueItems=True), "FrozenSet[str]": dict(array(STR), uniqueItems=True),
    "Set": dict(array({}), uniqueItems=True), "frozenset": dict(array({}), uniqueItems=True),
    "dict": {"type": "object", "additionalProperties": True}, "Dict": {"type": "object", "additionalProperties": True},
    "dict[str, int]": {"type": "object", "additionalProperties": INT},
    "Mapping[str, list[int]]": {"type": "object", "additionalProperties": array(INT)},
    "Dict[int, str]": {"type": "object", "additionalProperties": STR},
    "dict[Literal['a', 'b'], int]": {"type": "object", "additionalProperties": INT, "propertyNames": {"enum": ["a", "b"]}},
    "dict[str, Any]": {"type": "object", "additionalProperties": True},
    "Optional[int]": any_of(INT, NULL), "Union[int, str]": any_of(INT, STR), "Union[int, None, str]": any_of(INT, STR, NULL),
    "Union[int, int]": INT, "Optional[Union[int, Optional[str]]]": any_of(INT, STR, NULL),
    "t.Optional[t.List[int]]": any_of(array(INT), NULL),
    "Literal['a', 'b']": {"enum": ["a", "b"], "type": "string"}, "Literal[1]": {"enum": [1], "type": "integer"},
    "Literal['a', 1, None]": {"enum": ["a", 1, None]}, "Literal[True, False]": {"enum": [True, False], "type": "boolean"},
    "Literal[Color.RED, 'x']": {"enum": ["red", "x"], "type": "string"}, "typing.Literal[-1]": {"enum": [-1], "type": "integer"},
    "Color": COLOR, "Level": {"enum": [1, 5, 6], "type": "integer"}, "Odd": {"enum": ["PAIR", 1.5]},
    "Point": POINT, "list[Point]": array(POINT), "Optional[Point]": any_of(POINT, NULL),
    "Named": {"type": "object", "required": ["x"], "additionalProperties": False, "description": "A point with a name.",
              "properties": {"x": INT, "y": {"type": "number", "default": 0.5}, "label": {"type": "string", "default": "here"},
                             "tags": array(STR), "color": dict(COLOR, default="red")}},
    "Movie": {"type": "object", "properties": {"name": STR, "year": INT}, "required": ["name", "year"],
              "additionalProperties": False, "description": "A film."},
    "Partial": {"type": "object", "properties": {"name": STR, "year": INT, "rating": NUM},
                "required": ["name", "year"], "additionalProperties": False},
    "Pair": {"type": "object", "properties": {"left": INT, "right": {"type": "string", "default": "r"}},
             "required": ["left"], "additionalProperties": False},
    "datetime.datetime": fmt("date-time"), "moment": fmt("date-time"), "date": fmt("date"), "datetime.time": fmt("time"),
    "datetime.timedelta": fmt("duration"), "UUID": fmt("uuid"), "Path": fmt("path"), "pathlib.PurePath": fmt("path"),
    "decimal.Decimal": any_of(fmt("decimal"), NUM), "bytes": dict(fmt("byte"), contentEncoding="base64"),
    "Annotated[int, 'How many']": dict(INT, description="How many"),
    "Annotated[int, Field(description='n', ge=1, lt=9)]": dict(INT, description="n", minimum=1, exclusiveMaximum=9),
    "Annotated[str, Field(min_length=1, max_length=3, pattern='^a')]": dict(STR, minLength=1, maxLength=3, pattern="^a"),
    "Annotated[list[int], Field(min_length=1)]": dict(array(INT), minItems=1),
    "Annotated[Optional[int], Field(gt=0, description='d')]": dict(any_of(dict(INT, exclusiveMinimum=0), NULL), description="d"),
    "list[Annotated[float, Field(multiple_of=0.5, examples=[1.5])]]": array(dict(NUM, multipleOf=0.5, examples=[1.5])),
    "Number": any_of(INT, NUM), "'int'": INT, "list['Point']": array(POINT), "Optional['Color']": any_of(COLOR, NULL),
}
if sys.version_info >= (3, 10):
    HINTS.update({"int | None": any_of(INT, NULL), "int | str | list[int]": any_of(INT, STR, array(INT)),
                  "'Point | None'": any_of(POINT, NULL)})

# Parameter: its schema; None for no entry. These are not required.
DEFAULTS = {
    "p: int = 5": dict(INT, default=5), "p: int = -1": dict(INT, default=-1), "p: str = 'a'": dict(STR, default="a"),
    "p: int = None": dict(any_of(INT, NULL), default=None), "p: Optional[int] = None": dict(any_of(INT, NULL), default=None),
    "p: Annotated[int, 'n'] = None": dict(any_of(INT, NULL), default=None, description="n"),
    "p=3": {"default": 3}, "p=None": {"default": None}, "p: list = []": dict(array({}), default=[]),
    "p: tuple = (1, 2)": dict(array({}), default=[1, 2]), "p: dict = {'a': [1.5, None, True]}":
        {"type": "object", "additionalProperties": True, "default": {"a": [1.5, None, True]}},
    "p: set = {'b', 'a'}": dict(array({}), uniqueItems=True, default=["a", "b"]),
    "p: Color = Color.BLUE": dict(COLOR, default="blue"), "p: int = DEFAULT": dict(INT, default=12),
    "p: int = Field(4, ge=1, description='d')": dict(INT, default=4, minimum=1, description="d"),
    "p: list = Field(default_factory=list)": array({}), "p: bytes = b'a'": dict(fmt("byte"), contentEncoding="base64", default="YQ=="),
    "*, p: int = 1": dict(INT, default=1), "p: int = 1, /": dict(INT, default=1), "p: dict = dict()":
        {"type": "object", "additionalProperties": True, "default": {}},
}

OUTPUTS = {
    "str": STR, "int": INT, "list[int]": array(INT), "Optional[str]": any_of(STR, NULL), "Color": COLOR,
    "bytes": dict(fmt("byte"), contentEncoding="base64"), "tuple[int, str]":
        {"type": "array", "prefixItems": [INT, STR], "minItems": 2, "maxItems": 2},
    "typing.Iterator[int]": array(INT), "Union[Movie, None]": any_of(
        {"type": "object", "properties": {"name": STR, "year": INT}, "required": ["name", "year"], "description": "A film."}, NULL),
}
NO_OUTPUT = ["None", "Any", "Image", "list[Image]", "Union[str, Image]", "list[Union[Image, str]]", "object"]
OBJECT_OUTPUT = {
    "dict": {"type": "object", "additionalProperties": True}, "dict[str, int]": {"type": "object", "additionalProperties": INT},
    "Movie": {"type": "object", "properties": {"name": STR, "year": INT}, "required": ["name", "year"], "description": "A film."},
    "Point": {"type": "object", "properties": {"x": INT, "y": {"type": "number", "default": 0.5}}, "required": ["x"]},
    "Annotated[Pair, 'p']": {"type": "object", "properties": {"left": INT, "right": {"type": "string", "default": "r"}}, "required": ["left"]},
}


def functions(parameters=(), returns=()):
    """A source with one tool for each entry, named f0, f1, …"""
    lines = [HEAD]
    for index, (parameter, result) in enumerate([(one, None) for one in parameters] + [("", one) for one in returns]):
        arrow = "" if result is None else " -> " + result
        lines.append('@tool\ndef f%d(%s)%s:\n    """F."""\n' % (index, parameter, arrow))
    return "\n".join(lines)
