"""Schemas: a table of hints with the schema of each, and a corpus that both readers must agree on."""

import sys
import unittest

from dock import Worker, scan

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
from fastmcp import Context, Field
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
    "Optional[int]": any_of(INT, NULL), "Union[int, str]": any_of(INT, STR), "Union[int, None, str]": any_of(INT, NULL, STR),
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


class Schemas(unittest.TestCase):
    maxDiff = None

    def both(self, source):
        """The definitions of a source, after checking that both readers agree on every one of them."""
        with Worker({"t.py": source}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            live = worker.ready["tools"]
        read = scan(("t.py", source))[0]
        self.assertEqual(read["faults"], [])
        self.assertEqual([one["definition"] for one in read["tools"]], live)
        self.assertEqual([one["definition"]["name"] for one in read["tools"] if not one["exact"]], [])
        return live

    # TD-48.
    def test_hints_become_schemas(self):
        tools = self.both(functions(["p: " + hint for hint in HINTS]))
        for tool, (hint, wanted) in zip(tools, HINTS.items()):
            with self.subTest(hint):
                self.assertEqual(tool["inputSchema"], {"type": "object", "properties": {"p": wanted}, "required": ["p"],
                                                       "additionalProperties": False})

    def test_hints_in_quotes_by_the_future_import_are_the_same(self):
        plain = self.both(functions(["p: " + hint for hint in HINTS]))
        future = self.both("from __future__ import annotations\n" + functions(["p: " + hint for hint in HINTS]))
        self.assertEqual(plain, future)

    def test_new_unions_in_quotes_work_on_old_pythons(self):
        with Worker({"t.py": "from __future__ import annotations\n" + functions(["p: int | list[str] | None"])}) as worker:
            self.assertEqual(worker.definition("f0")["inputSchema"]["properties"]["p"], any_of(INT, array(STR), NULL))

    def test_defaults_are_shown(self):
        tools = self.both(functions(DEFAULTS))
        for tool, (parameter, wanted) in zip(tools, DEFAULTS.items()):
            with self.subTest(parameter):
                self.assertEqual(tool["inputSchema"], {"type": "object", "properties": {"p": wanted},
                                                       "additionalProperties": False})

    def test_other_parameters(self):
        tools = self.both(functions(["**others", "p: int, **others: str", "ctx: Context", "c: Optional[Context] = None", "p"]))
        schemas = [tool["inputSchema"] for tool in tools]
        self.assertEqual(schemas[0], {"type": "object", "properties": {}, "additionalProperties": True})
        self.assertEqual(schemas[1], {"type": "object", "properties": {"p": INT}, "required": ["p"], "additionalProperties": True})
        self.assertEqual(schemas[2], {"type": "object", "properties": {}, "additionalProperties": False})
        self.assertEqual(schemas[3], schemas[2])
        self.assertEqual(schemas[4], {"type": "object", "properties": {"p": {}}, "required": ["p"], "additionalProperties": False})

    # FORMATS 2.5 (6): outputs that are no objects are wrapped.
    def test_return_hints_become_output_schemas(self):
        tools = self.both(functions(returns=OUTPUTS))
        for tool, (hint, wanted) in zip(tools, OUTPUTS.items()):
            with self.subTest(hint):
                self.assertEqual(tool["outputSchema"], {"type": "object", "properties": {"result": wanted},
                                                        "required": ["result"], "x-fastmcp-wrap-result": True})
        for tool, (hint, wanted) in zip(self.both(functions(returns=OBJECT_OUTPUT)), OBJECT_OUTPUT.items()):
            with self.subTest(hint):
                self.assertEqual(tool["outputSchema"], wanted)
        for tool in self.both(functions(returns=NO_OUTPUT) + '@tool\ndef last():\n    """L."""\n'):
            self.assertNotIn("outputSchema", tool)

    def test_recursive_and_repeated_types_are_defined_once(self):
        tools = self.both(functions(["p: Node", "p: Point, q: Point"], ["Node"]))
        node = {"type": "object", "required": ["value"], "additionalProperties": False, "properties": {
            "value": {}, "children": array({"$ref": "#/$defs/Node"}),
            "parent": dict(any_of({"$ref": "#/$defs/Node"}, NULL), default=None)}}
        self.assertEqual(tools[0]["inputSchema"]["properties"]["p"], {"$ref": "#/$defs/Node"})
        self.assertEqual(tools[0]["inputSchema"]["$defs"], {"Node": node})
        self.assertEqual(tools[1]["inputSchema"]["properties"], {"p": {"$ref": "#/$defs/Point"}, "q": {"$ref": "#/$defs/Point"}})
        self.assertEqual(tools[1]["inputSchema"]["$defs"], {"Point": POINT})
        # MCP wants an object at the top of an output schema, not a reference.
        self.assertEqual(tools[2]["outputSchema"]["type"], "object")
        self.assertIn("Node", tools[2]["outputSchema"]["$defs"])

    # A schema stays as small as its source, however its types are nested.
    def test_schemas_do_not_explode(self):
        lines = [HEAD, "@dataclass\nclass C0:\n    a: int\n"]
        for index in range(1, 40):
            lines.append("@dataclass\nclass C%d:\n    a: C%d\n    b: C%d\n    c: C%d\n" % (index, *[index - 1] * 3))
        lines.append('@tool\ndef f(p: C39):\n    """F."""\n')
        tool = self.both("\n".join(lines))[0]
        self.assertEqual(len(tool["inputSchema"]["$defs"]), 39)

    def test_docstrings_describe_tools_and_parameters(self):
        google = '"""Add.\n\n    More of it.\n\n    Note:\n        Kept.\n\n    Args:\n        p: First\n            line.\n        q (int): Second.\n\n    Returns:\n        Nothing.\n    """'
        sphinx = '"""\n    Add.\n\n    :param p: First\n        line.\n    :param int q: Second.\n    :returns: Nothing.\n    """'
        numpy = '"""Add.\n\n    Parameters\n    ----------\n    p : int\n        First\n        line.\n    q\n        Second.\n\n    Returns\n    -------\n    None\n    """'
        source = "from fastmcp.tools import tool\n"
        for index, text in enumerate((google, sphinx, numpy)):
            source += "@tool\ndef f%d(p: int, q: int):\n    %s\n" % (index, text)
        tools = self.both(source)
        self.assertEqual([tool["description"] for tool in tools],
                         ["Add.\n\nMore of it.\n\nNote:\n    Kept.", "Add.", "Add."])
        for tool in tools:
            self.assertEqual(tool["inputSchema"]["properties"],
                             {"p": dict(INT, description="First line."), "q": dict(INT, description="Second.")})

    def test_hint_says_more_than_the_docstring(self):
        tool = self.both('from typing import Annotated\nfrom fastmcp.tools import tool\n@tool(description="D")\n'
                         'def f(p: Annotated[int, "hint"]):\n    """Doc.\n\n    Args:\n        p: doc\n    """\n')[0]
        self.assertEqual((tool["description"], tool["inputSchema"]["properties"]["p"]["description"]), ("D", "hint"))

    def test_given_output_schema_is_kept(self):
        schema = '{"type": "object", "properties": {"a": {"type": "integer"}}}'
        tools = self.both('from fastmcp.tools import tool\n@tool(output_schema=%s)\ndef f() -> str:\n    """F."""\n'
                          '@tool(output_schema=None)\ndef g() -> str:\n    """G."""\n' % schema)
        self.assertEqual(tools[0]["outputSchema"], {"type": "object", "properties": {"a": INT}})
        self.assertNotIn("outputSchema", tools[1])

    def test_typed_dictionaries_know_what_is_required(self):
        if sys.version_info < (3, 11):
            return self.assertFalse(hasattr(__import__("typing"), "NotRequired"))
        for head in ("", "from __future__ import annotations\n"):
            tools = self.both(head + "from typing import Annotated, NotRequired, Required, TypedDict\nfrom fastmcp.tools import tool\n"
                              "class A(TypedDict, total=False):\n    a: Required[int]\n    b: Annotated[int, 'b']\n"
                              "class B(A):\n    c: int\n    d: NotRequired[int]\n"
                              '@tool\ndef f(p: B):\n    """F."""\n')
            self.assertEqual(tools[0]["inputSchema"]["properties"]["p"], {
                "type": "object", "properties": {"a": INT, "b": dict(INT, description="b"), "c": INT, "d": INT},
                "required": ["a", "c"], "additionalProperties": False})


if __name__ == "__main__":
    unittest.main()
