"""Arguments: what is let in, what it becomes, and how every fault is named."""

import unittest

from dock import Worker

SOURCE = '''
from __future__ import annotations
import datetime, decimal, enum, pathlib, uuid
from dataclasses import dataclass, field
from typing import *
from pydantic import Field
from fastmcp.tools import tool

class Color(enum.Enum):
    RED = "red"
    BLUE = "blue"

class Level(enum.IntEnum):
    LOW = 1

@dataclass
class Point:
    x: int
    y: float = 0.5
    def __post_init__(self):
        if self.x == 13:
            raise ValueError("unlucky")

@dataclass
class Node:
    value: int
    children: List[Node] = field(default_factory=list)

class Movie(TypedDict):
    name: str

class Pair(NamedTuple):
    left: int
    right: str = "r"

'''

# Hint: values that are let in with what the tool sees, and values that are not with path and message.
TAKEN = [
    ("str", "a", "'a'"), ("int", 5, "5"), ("int", 5.0, "5"), ("float", 1, "1.0"), ("float", 1.5, "1.5"), ("bool", True, "True"),
    ("None", None, "None"), ("Any", {"a": [None]}, "{'a': [None]}"), ("list[int]", [1, 2], "[1, 2]"),
    ("tuple[int, ...]", [1], "(1,)"), ("tuple[int, str]", [1, "a"], "(1, 'a')"), ("set[int]", [1], "{1}"),
    ("frozenset[str]", ["a"], "frozenset({'a'})"), ("dict[str, int]", {"a": 1}, "{'a': 1}"), ("dict[int, str]", {"7": "x"}, "{7: 'x'}"),
    ("Dict[Color, int]", {"red": 1}, "{<Color.RED: 'red'>: 1}"), ("Optional[int]", None, "None"), ("Optional[int]", 3, "3"),
    ("Union[float, int]", 1, "1"), ("Union[int, float]", 1.5, "1.5"), ("Union[str, list[str]]", ["a"], "['a']"),
    ("Union[datetime.date, str]", "2024-01-02", "datetime.date(2024, 1, 2)"), ("Union[datetime.date, str]", "soon", "'soon'"),
    ("Union[Point, Movie]", {"name": "m"}, "{'name': 'm'}"),
    ("Literal['a', 1]", 1, "1"), ("Literal[Color.RED]", "red", "<Color.RED: 'red'>"), ("Color", "blue", "<Color.BLUE: 'blue'>"),
    ("Level", 1, "<Level.LOW: 1>"), ("Point", {"x": 1}, "Point(x=1, y=0.5)"), ("Point", {"x": 1, "y": 2}, "Point(x=1, y=2.0)"),
    ("Node", {"value": 1, "children": [{"value": 2}]}, "Node(value=1, children=[Node(value=2, children=[])])"),
    ("Movie", {"name": "m"}, "{'name': 'm'}"), ("Pair", {"left": 1}, "Pair(left=1, right='r')"),
    ("datetime.datetime", "2024-01-02T03:04:05Z", "datetime.datetime(2024, 1, 2, 3, 4, 5, tzinfo=datetime.timezone.utc)"),
    ("datetime.datetime", "2024-01-02T03:04:05.5+0200", "datetime.datetime(2024, 1, 2, 3, 4, 5, 500000, tzinfo=datetime.timezone(datetime.timedelta(seconds=7200)))"),
    ("datetime.date", "2024-02-29", "datetime.date(2024, 2, 29)"), ("datetime.time", "03:04", "datetime.time(3, 4)"),
    ("datetime.timedelta", "P1DT2H", "datetime.timedelta(days=1, seconds=7200)"), ("datetime.timedelta", "-PT1.5S", "datetime.timedelta(days=-1, seconds=86398, microseconds=500000)"),
    ("uuid.UUID", "12345678-1234-5678-1234-567812345678", "UUID('12345678-1234-5678-1234-567812345678')"),
    ("decimal.Decimal", "1.10", "Decimal('1.10')"), ("decimal.Decimal", 1.5, "Decimal('1.5')"), ("pathlib.Path", "/a/b", "PosixPath('/a/b')"),
    ("bytes", "YQ==", "b'a'"), ("Annotated[int, Field(ge=1, le=3)]", 3, "3"), ("Annotated[Optional[str], Field(max_length=2)]", None, "None"),
    ("Annotated[float, Field(multiple_of=0.1)]", 0.3, "0.3"),
]

REFUSED = [
    ("str", 5, "", "expected a string, got 5"), ("int", "5", "", 'expected an integer, got "5"'), ("int", True, "", "expected an integer, got true"),
    ("int", 1.5, "", "expected an integer, got 1.5"), ("float", "1", "", 'expected a number, got "1"'), ("float", False, "", "expected a number, got false"),
    ("bool", 1, "", "expected true or false, got 1"), ("None", 0, "", "expected null, got 0"), ("str", None, "", "expected a string, got null"),
    ("list[int]", [1, "2", None], "/1", 'expected an integer, got "2"'), ("list[int]", {"a": 1}, "", "expected an array, got an object"),
    ("tuple[int, str]", [1], "", "expected an array of 2 items, got an array"), ("set[int]", [1, 1], "", "the items must differ from each other"),
    ("dict[str, int]", {"a/b~": "x"}, "/a~1b~0", 'expected an integer, got "x"'), ("dict[str, int]", [], "", "expected an object, got an array"),
    ("dict[int, int]", {"x": 1}, "/x", "the name `x` must be a number"), ("Optional[int]", "1", "", 'expected an integer, got "1"'),
    ("Union[int, bool]", "x", "", 'expected an integer or true or false, got "x"'), ("Union[Point, int]", {"x": "1"}, "/x", 'expected an integer, got "1"'),
    ("Literal['a', 1]", True, "", 'expected one of "a", 1, got true'), ("Color", "RED", "", 'expected one of "red", "blue", got "RED"'),
    ("Point", {}, "/x", "is missing"), ("Point", {"x": 1, "z": 1}, "/z", "is not known here"), ("Point", {"x": 13}, "", "ValueError: unlucky"),
    ("Node", {"value": 1, "children": [{"value": 2, "children": [{}]}]}, "/children/0/children/0/value", "is missing"),
    ("datetime.date", "2024-02-30", "", 'expected a string (date), got "2024-02-30"'), ("datetime.date", "20240201", "", 'expected a string (date), got "20240201"'),
    ("datetime.datetime", "yesterday", "", 'expected a string (date-time), got "yesterday"'), ("datetime.timedelta", "P", "", 'expected a string (duration), got "P"'),
    ("uuid.UUID", "12", "", 'expected a string (uuid), got "12"'), ("decimal.Decimal", "x", "", 'expected a string (decimal), got "x"'),
    ("bytes", "a", "", 'expected a string (byte), got "a"'), ("bytes", "ü", "", 'expected a string (byte), got "ü"'), ("pathlib.Path", "a\0", "", 'expected a string (path), got "a\\u0000"'),
    ("Annotated[int, Field(ge=1)]", 0, "", "must be at least 1"), ("Annotated[int, Field(multiple_of=3)]", 4, "", "must be a multiple of 3"),
    ("Annotated[str, Field(min_length=2)]", "a", "", "must have at least 2 characters"), ("Annotated[list, Field(max_length=1)]", [1, 2], "", "must have at most 1 items"),
    ("Annotated[str, Field(pattern='^a')]", "b", "", "must match the pattern `^a`"), ("str", 12345678901234567890, "", "expected a string, got 12345678901234567890"),
]


def source(hints):
    return SOURCE + "".join('@tool\ndef f%d(p: %s):\n    """F."""\n    return repr(p)\n' % (index, hint)
                            for index, hint in enumerate(hints))


class Arguments(unittest.TestCase):
    # TD-149.
    def test_values_become_what_the_hint_says(self):
        with Worker({"t.py": source([one[0] for one in TAKEN])}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            for index, (hint, value, seen) in enumerate(TAKEN):
                with self.subTest(hint, value=value):
                    self.assertEqual(worker.text("f%d" % index, {"p": value}), seen)

    # TD-108, TD-149; FORMATS 2.5 (8): the peer takes 5 for a string.
    def test_values_that_do_not_fit_are_refused(self):
        with Worker({"t.py": source([one[0] for one in REFUSED])}, options=("--strict",)) as worker:
            self.assertEqual(worker.ready["faults"], [])
            for index, (hint, value, path, message) in enumerate(REFUSED):
                with self.subTest(hint, value=value):
                    error = worker.error("f%d" % index, {"p": value})
                    self.assertEqual(error["code"], "invalid_arguments")
                    self.assertEqual(error["details"]["errors"][0], {"path": "/p" + path, "message": message})

    # As FastMCP, that is pydantic's lax mode, does.
    def test_scalars_are_converted_unless_the_folder_is_strict(self):
        taken = [("int", "5", "5"), ("int", " -1 ", "-1"), ("int", "5.0", "5"), ("int", True, "1"), ("float", "1.5", "1.5"), ("float", "1e3", "1000.0"),
                 ("bool", "Yes", "True"), ("bool", "off", "False"), ("bool", 1, "True"), ("Optional[int]", "1", "1"), ("list[int]", ["1", 2], "[1, 2]"),
                 ("Union[int, str]", "1", "'1'"), ("Point", {"x": "1", "y": "2"}, "Point(x=1, y=2.0)"), ("Annotated[int, Field(ge=1)]", "3", "3")]
        refused = [("int", "five"), ("int", "5.5"), ("int", ""), ("int", "1" * 5000), ("float", "nan"), ("float", "inf"), ("bool", "2"), ("bool", 2), ("str", 5),
                   ("str", True), ("Annotated[int, Field(ge=1)]", "0"), ("Literal['a', 1]", "1"), ("None", "")]
        with Worker({"t.py": source([one[0] for one in taken + refused])}) as worker:
            for index, (hint, value, seen) in enumerate(taken):
                with self.subTest(hint, value=value):
                    self.assertEqual(worker.text("f%d" % index, {"p": value}), seen)
            for index, (hint, value) in enumerate(refused, len(taken)):
                with self.subTest(hint, value=value):
                    self.assertEqual(worker.error("f%d" % index, {"p": value})["code"], "invalid_arguments")

    def test_every_fault_is_named(self):
        with Worker({"t.py": '''
            from fastmcp.tools import tool

            @tool
            def f(a: int, b: list[str], /, c: dict[str, float], *, d: bool = False) -> str:
                """F."""
                return repr((a, b, c, d))
        '''}) as worker:
            error = worker.error("f", {"b": ["x", 1, 2], "c": {"k": "v"}, "e": 0})
            self.assertEqual(error["details"]["errors"], [
                {"path": "/a", "message": "is missing"}, {"path": "/b/1", "message": "expected a string, got 1"},
                {"path": "/b/2", "message": "expected a string, got 2"},
                {"path": "/c/k", "message": 'expected a number, got "v"'}, {"path": "/e", "message": "is not known here"}])
            self.assertTrue(error["message"].startswith("/a: is missing; /b/1: expected a string, got 1; "))
            self.assertEqual(worker.text("f", {"a": 1, "b": [], "c": {}}), "(1, [], {}, False)")
            self.assertEqual(worker.error("f", [1])["message"], "the arguments must be an object")
            worker.send({"id": "none", "op": "tools.call", "tool": "f"})
            self.assertEqual(worker.answer("none")["error"]["details"]["errors"][0]["message"], "is missing")

    def test_defaults_and_other_names_arrive(self):
        with Worker({"t.py": '''
            from pydantic import Field
            from fastmcp.tools import tool

            @tool
            def f(a: int = 1, b: list = Field(default_factory=list, description="b"), c: int = Field(7, ge=1),
                  d: int = Field(..., le=5), **rest) -> str:
                """F."""
                b.append(a)
                return repr((a, b, c, d, rest))

            @tool
            def g(a: int = 1, b: int = 2, /, c: int = 3) -> str:
                """G."""
                return repr((a, b, c))
        '''}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            for _ in range(2):
                self.assertEqual(worker.text("f", {"d": 5, "z": [1]}), "(1, [1], 7, 5, {'z': [1]})")
            self.assertEqual(worker.error("f", {"c": 0})["details"]["errors"], [
                {"path": "/c", "message": "must be at least 1"}, {"path": "/d", "message": "is missing"}])
            self.assertEqual(worker.text("g", {"c": 9, "a": 8}), "(8, 2, 9)")


if __name__ == "__main__":
    unittest.main()
