"""Schemas: a table of hints with the schema of each, and a corpus that both readers must agree on."""

import sys
import unittest

from dock import Worker, scan
from hint_tables import (
    DEFAULTS, HEAD, HINTS, INT, NO_OUTPUT, NULL, OBJECT_OUTPUT, OUTPUTS, POINT, STR, any_of, array, functions,
)


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

    # Hints inside of hints, every one with its neighbours: what is read can't drift from what is run.
    def test_nested_hints_are_the_same_read_and_alive(self):
        hints = [hint for hint in HINTS if hint not in ("tuple[int, ...]", "Tuple[str, ...]")]
        nested = []
        for index, hint in enumerate(hints):
            other, third = hints[(index + 7) % len(hints)], hints[(index + 19) % len(hints)]
            nested += ["list[%s]" % hint, "Optional[%s]" % hint, "Dict[str, Tuple[%s, %s]]" % (hint, other),
                       "Union[%s, List[%s], Mapping[str, %s]]" % (hint, other, third), "Annotated[%s, 'told']" % hint,
                       "Union[Annotated[%s, Field(description='d')], None, %s]" % (hint, third)]
        self.assertGreater(len(nested), 400)
        self.both(functions(["p: " + hint for hint in nested], nested))

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
