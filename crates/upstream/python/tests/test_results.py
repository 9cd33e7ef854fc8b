"""Results: what tools return, as content blocks and structured content that match the promised schema."""

import json
import unittest

from dock import Worker

HEAD = '''
import datetime, decimal, enum, pathlib, uuid
from collections import OrderedDict, deque, namedtuple
from dataclasses import dataclass
from typing import *
from fastmcp.tools import tool, ToolResult
from fastmcp.utilities.types import Audio, File, Image
from mcp.types import TextContent

class Color(enum.Enum):
    RED = "red"

@dataclass
class Point:
    x: int
    y: Optional["Point"] = None

class Pair(NamedTuple):
    left: int
    right: str

class Movie(TypedDict):
    name: str
'''


def text(value):
    return {"type": "text", "text": value if isinstance(value, str) else json.dumps(value, separators=(",", ":"))}


def same(value, wrapped=False):
    """The result of a value whose text is its JSON."""
    content = [] if value is None else [text(value)]
    return content, {"result": value} if wrapped else value


IMAGE = {"type": "image", "data": "YQ==", "mimeType": "image/png"}
BLOB = {"type": "resource", "resource": {"uri": "file:///bytes", "blob": "YQ==", "mimeType": "application/octet-stream"}}

# Return hint (or None), expression, content, structured content (or None).
RESULTS = [
    (None, "'a'", [text("a")], None), (None, "None", [], None), (None, "5", [text("5")], None), (None, "True", [text("true")], None),
    (None, "1.5", [text("1.5")], None), (None, "[1, 'a']", [text([1, "a"])], None), (None, "{'a': 1}", *same({"a": 1})),
    (None, "Point(1)", *same({"x": 1, "y": None})), (None, "Color.RED", [text('"red"')], None),
    (None, "{1: 2, None: 3, True: 4, (1, 'a'): 5, 1.5: 6}", *same({"1": 4, "null": 3, "1,a": 5, "1.5": 6})),
    (None, "{'a': float('nan'), 'b': [float('inf')]}", *same({"a": None, "b": [None]})), (None, "float('nan')", [text("null")], None),
    (None, "'\\ud800'", [text("\ufffd")], None), (None, "'ü😀'", [text("ü😀")], None),
    ("str", "'a'", *same("a", True)), ("int", "5", *same(5, True)), ("float", "5", *same(5, True)), ("bool", "False", *same(False, True)),
    ("list[int]", "[1]", *same([1], True)), ("list[int]", "(1,)", *same([1], True)), ("set[int]", "{3, 1}", *same([1, 3], True)),
    ("Optional[str]", "None", [], {"result": None}), ("tuple[int, str]", "(1, 'a')", *same([1, "a"], True)),
    ("Iterator[int]", "(n for n in (1, 2))", *same([1, 2], True)), ("list", "map(str, [1])", *same(["1"], True)), ("list", "deque([1])", *same([1], True)),
    ("dict", "{'a': {'b': None}}", *same({"a": {"b": None}})), ("dict", "OrderedDict(a=1)", *same({"a": 1})), ("dict[str, Point]", "{'p': Point(1, Point(2))}", *same({"p": {"x": 1, "y": {"x": 2, "y": None}}})),
    ("dict", "{'type': 'text', 'text': 'data'}", *same({"type": "text", "text": "data"})),
    ("Point", "Point(1)", *same({"x": 1, "y": None})), ("Point", "{'x': 1, 'more': 2}", *same({"x": 1, "more": 2})), ("Pair", "Pair(1, 'r')", *same({"left": 1, "right": "r"})),
    ("Movie", "{'name': 'm'}", *same({"name": "m"})), ("list[Pair]", "[Pair(1, 'r')]", *same([{"left": 1, "right": "r"}], True)),
    ("Color", "Color.RED", [text('"red"')], {"result": "red"}), ("Literal['a']", "'a'", *same("a", True)),
    ("datetime.datetime", "datetime.datetime(2024, 1, 2)", [text('"2024-01-02T00:00:00"')], {"result": "2024-01-02T00:00:00"}),
    ("datetime.timedelta", "datetime.timedelta(days=-1, seconds=1)", [text('"-PT86399S"')], {"result": "-PT86399S"}),
    ("uuid.UUID", "uuid.UUID(int=1)", [text('"00000000-0000-0000-0000-000000000001"')], {"result": "00000000-0000-0000-0000-000000000001"}),
    ("decimal.Decimal", "decimal.Decimal('1.10')", [text('"1.10"')], {"result": "1.10"}), ("pathlib.Path", "pathlib.Path('/a')", [text('"/a"')], {"result": "/a"}),
    (None, "b'a'", [BLOB], None), ("bytes", "b'a'", [BLOB], {"result": "YQ=="}), (None, "[b'a', 'x']", [BLOB, text("x")], None),
    (None, "Image(data=b'a')", [IMAGE], None), ("Image", "Image(data=b'a', format='jpeg')", [dict(IMAGE, mimeType="image/jpeg")], None),
    (None, "Audio(data=b'a', format='mp3')", [{"type": "audio", "data": "YQ==", "mimeType": "audio/mpeg"}], None),
    (None, "File(data=b'a', format='txt', name='n o.txt')", [{"type": "resource", "resource": {"uri": "file:///n%20o.txt", "mimeType": "text/plain", "text": "a"}}], None),
    (None, "File(data=b'\\xff', name='x.bin')", [{"type": "resource", "resource": {"uri": "file:///x.bin", "mimeType": "application/octet-stream", "blob": "/w=="}}], None),
    (None, "['t', Image(data=b'a'), {'k': 1}, None, 5]", [text("t"), IMAGE, text({"k": 1}), text("5")], None),
    ("list", "['t', Image(data=b'a')]", [text("t"), IMAGE], {"result": ["t", IMAGE]}),
    (None, "{'type': 'image', 'data': 'YQ==', 'mimeType': 'image/png'}", [IMAGE], None), (None, "[{'type': 'text', 'text': 'a'}]", [text("a")], None),
    (None, "{'type': 'text', 'other': 1}", *same({"type": "text", "other": 1})), (None, "TextContent(text='a')", [text("a")], None),
    (None, "{'type': 'resource_link', 'uri': 'a://b', 'name': 'n'}", [{"type": "resource_link", "uri": "a://b", "name": "n"}], None),
    (None, "ToolResult(content='a', structured_content={'b': 1})", [text("a")], {"b": 1}), (None, "ToolResult(content=[Image(data=b'a'), 'x'])", [IMAGE, text("x")], None),
    ("Any", "{'a': 1}", *same({"a": 1})), ("None", "'ignored'", [text("ignored")], None),
]

# Return hint, expression, message: a promise that was not kept.
BROKEN = [
    ("str", "None", "the tool returned null where it promised a string"), ("str", "5", "the tool returned 5 where it promised a string"),
    ("int", "'5'", 'the tool returned "5" where it promised an integer'), ("float", "float('nan')", "the tool returned null where it promised a number"),
    ("list[int]", "[1, 'a']", 'the tool returned "a" at `/1` where it promised an integer'), ("dict", "[1]", "the tool returned text where its output schema promises an object"),
    ("dict", "None", "the tool returned nothing where its output schema promises an object"), ("Movie", "{}", "the tool returned an object without it where it promised the member `name`"),
    ("Point", "Point('1')", 'the tool returned "1" at `/x` where it promised an integer'), ("Literal['a']", "'b'", 'the tool returned "b" where it promised one of its choices'),
    ("dict[str, int]", "{'a': 1.5}", "the tool returned 1.5 at `/a` where it promised an integer"), ("Optional[int]", "'x'", 'the tool returned "x" where it promised an integer or null'),
    ("int", "True", "the tool returned true where it promised an integer"), ("dict", "ToolResult(content='x')", "the tool returned text where its output schema promises an object"),
    (None, "object()", "the tool returned something that JSON can't hold: a value of type `object` has no JSON form"),
    (None, "(lambda l: l.append(l) or l)([])", "the tool returned something that is nested too deep, or that contains itself"),
    (None, "{'k': lambda: 1}", "the tool returned something that JSON can't hold: a value of type `function` has no JSON form"),
]


def source(entries):
    made = [HEAD]
    for index, entry in enumerate(entries):
        arrow = "" if entry[0] is None else " -> " + entry[0]
        made.append('@tool\ndef f%d()%s:\n    """F."""\n    return %s\n' % (index, arrow, entry[1]))
    return "\n".join(made)


class Results(unittest.TestCase):
    # TD-107.
    def test_values_become_results(self):
        with Worker({"t.py": source(RESULTS)}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            for index, (hint, expression, content, structured) in enumerate(RESULTS):
                with self.subTest(hint, expression=expression):
                    wanted = {"content": content, "isError": False}
                    if structured is not None:
                        wanted["structuredContent"] = structured
                    self.assertEqual(worker.result("f%d" % index), wanted)

    # FORMATS 2.5 (6): strict clients raise on results that do not match the output schema, so none leaves.
    def test_broken_promises_are_errors(self):
        with Worker({"t.py": source(BROKEN)}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            for index, (hint, expression, message) in enumerate(BROKEN):
                with self.subTest(hint, expression=expression):
                    error = worker.error("f%d" % index)
                    self.assertEqual((error["code"], error["message"]), ("internal_error", message))

    def test_given_schemas_are_checked_too(self):
        with Worker({"t.py": '''
            from fastmcp.tools import tool

            @tool(output_schema={"type": "object", "required": ["a"], "additionalProperties": False,
                                 "properties": {"a": {"type": ["integer", "null"], "minimum": 1}, "b": {"$ref": "#/$defs/B"}},
                                 "$defs": {"B": {"type": "array", "items": {"const": 1}, "uniqueItems": True}}})
            def f(value: dict):
                """F."""
                return value
        '''}) as worker:
            for value in ({"a": 1}, {"a": None, "b": [1]}):
                self.assertEqual(worker.result("f", {"value": value})["structuredContent"], value)
            for value in ({}, {"a": 0}, {"a": "x"}, {"a": 1, "c": 1}, {"a": 1, "b": [2]}, {"a": 1, "b": [1, 1]}):
                with self.subTest(value):
                    self.assertIn("where it promised", worker.error("f", {"value": value})["message"])

    def test_scalars_and_arrays_of_numpy_are_the_numbers_that_they_hold(self):
        numpy = """
            class generic:
                def __init__(self, value): self.value = value
                def item(self): return self.value
            class int64(generic): pass
            class longdouble(generic):
                def item(self): return self
                def __float__(self): return 1.5
            class ndarray:
                def tolist(self): return [1, [2.5]]
            generic.__module__ = ndarray.__module__ = "numpy"
        """
        with Worker({"_numpy.py": numpy, "t.py": HEAD + """import _numpy as numpy

@tool
def f() -> dict:
    'F.'
    return {"n": numpy.int64(7), "flag": numpy.generic(True), "long": numpy.longdouble(0), "array": numpy.ndarray()}

@tool
def g() -> int:
    'G.'
    return numpy.int64(7)
"""}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(worker.result("f")["structuredContent"], {"n": 7, "flag": True, "long": 1.5, "array": [1, [2.5]]})
            self.assertEqual(worker.result("g")["structuredContent"], {"result": 7})

    def test_file_that_is_missing_is_an_error_of_the_tool(self):
        with Worker({"t.py": HEAD + '@tool\ndef f():\n    """F."""\n    return Image(path="/nowhere.png")\n'
                                    '@tool\ndef g():\n    """G."""\n    return Image()\n'}) as worker:
            self.assertIn("FileNotFoundError", worker.error("f")["message"])
            self.assertEqual(worker.error("g")["message"], "ValueError: give either `path` or `data`")


if __name__ == "__main__":
    unittest.main()
