"""The static reader: what it finds, what it is not sure of, and sources that are meant to break it."""

import json
import os
import subprocess
import sys
import tempfile
import unittest

from dock import SCAN, SECONDS_MAX, Worker, scan


def one(text):
    return scan(("t.py", text))[0]


def names(text):
    return [(tool["definition"]["name"], tool["exact"]) for tool in one(text)["tools"]]


class Finding(unittest.TestCase):
    def test_nothing_is_run(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ran")
            found = one("from fastmcp.tools import tool\nopen(%r, 'w')\n@tool\ndef f():\n    '''F.'''\nraise SystemExit\n" % path)
            self.assertEqual([tool["definition"]["name"] for tool in found["tools"]], ["f"])
            self.assertFalse(os.path.exists(path))

    # TD-151: the decorators are recognised by the imports of the file.
    def test_every_way_to_mark_a_tool_is_found(self):
        source = '''
            import fastmcp
            import fastmcp.tools
            import fastmcp.tools as ft
            from fastmcp import FastMCP, tools as other
            from fastmcp.tools import tool, tool as mark
            from mcp.server.fastmcp import FastMCP as Server
            mcp = FastMCP("x")
            server: Server = Server()
            @tool
            def a(): "A."
            @mark()
            def b(): "B."
            @tool("c", title="T", tags={"y", "x"}, meta={"k": 1}, annotations={"readOnlyHint": True})
            async def c2(): "C."
            @fastmcp.tools.tool(name="d")
            def d2(): "D."
            @ft.tool
            def e(): "E."
            @other.tool
            def f(): "F."
            @mcp.tool
            def g(): "G."
            @server.tool(description="H!")
            def h(): "H."
            def i(): "I."
            mcp.add_tool(i)
            def j(): "J."
            mcp.tool("j2")(j)
            def k(): "K."
            k3 = tool(k, name="k2")
            @tool(enabled=False)
            def off(): "Off."
            @mcp.resource("a://b")
            def resource(): "No."
            @print
            def printed(): "No."
            def plain(): "No."
            class X:
                def tool(self): "No."
        '''
        with Worker({"t.py": source}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            found = one(source)
            self.assertEqual([tool["definition"] for tool in found["tools"]], worker.ready["tools"])
            self.assertTrue(all(tool["exact"] for tool in found["tools"]))
            self.assertEqual([tool["definition"]["name"] for tool in found["tools"]],
                             ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j2", "k2"])

    # The README's own smoke test of the peer defines a local `tool`: that is no tool of ours.
    def test_other_things_named_tool_are_not(self):
        self.assertEqual(names("def tool(f): return f\n@tool\ndef a(): 'A.'\n"), [])
        self.assertEqual(names("from other import tool\n@tool\ndef a(): 'A.'\n"), [])
        self.assertEqual(names("from fastmcp import Client\n@Client.tool\ndef a(): 'A.'\n"), [])
        self.assertEqual(names("from fastmcp.tools import tool\ndef a():\n    @tool\n    def b(): 'B.'\n"), [])
        self.assertEqual(names("if __name__ == '__main__':\n    from fastmcp.tools import tool\n    @tool\n    def b(): 'B.'\n"), [])

    def test_what_only_running_would_tell_is_not_exact(self):
        head = "from typing import Optional\nimport os, third\nfrom fastmcp.tools import tool\nfrom _common import mcp, Thing\nfrom dataclasses import dataclass\n"
        for text in (
            "@tool\ndef f(p: Thing): 'F.'\n", "@tool\ndef f(p: third.Thing): 'F.'\n", "@tool\ndef f(p: int = os.getpid()): 'F.'\n",
            "@tool\n@third.wrap\ndef f(): 'F.'\n", "@mcp.tool\ndef f(): 'F.'\n", "if os.name:\n    @tool\n    def f(): 'F.'\n",
            "@tool(description=third.TEXT)\ndef f(): 'F.'\n", "X = int\nX = str\n@tool\ndef f(p: X): 'F.'\n", "@tool(**third.options)\ndef f(): 'F.'\n",
            "class C:\n    pass\n@tool\ndef f(p: C): 'F.'\n", "@dataclass\nclass C(Thing):\n    a: int\n@tool\ndef f(p: C): 'F.'\n",
            "@tool\ndef f() -> Thing: 'F.'\n", "try:\n    from a import B\nexcept ImportError:\n    from c import B\n@tool\ndef f(p: B): 'F.'\n",
            "def int(): pass\n@tool\ndef f(p: int): 'F.'\n", "from os import *\n@tool\ndef f(p: int): 'F.'\n",
        ):
            with self.subTest(text):
                self.assertEqual(names(head + text), [("f", False)])
        definition = one(head + "@tool\ndef f(p: Optional[Thing], q: int = third.Q): 'F.'\n")["tools"][0]["definition"]
        self.assertEqual(definition["inputSchema"]["properties"], {"p": {"anyOf": [{}, {"type": "null"}]}, "q": {"type": "integer"}})
        self.assertEqual(definition["inputSchema"]["required"], ["p"])

    # F03, TD-126: each named with its line.
    def test_missing_docstrings_and_hints_are_warnings(self):
        found = one('from fastmcp.tools import tool\n\n@tool\ndef f(a,\n      b: int, *, c=1, **d):\n    return 1\n'
                    '@tool(description="Given.")\ndef g(): ...\n')
        self.assertEqual(found["warnings"], [
            {"file": "t.py", "line": 4, "column": 1, "message": "the tool `f` has no docstring", "traceback": None},
            {"file": "t.py", "line": 4, "column": 7, "message": "the parameter `a` of `f` has no type hint", "traceback": None},
            {"file": "t.py", "line": 5, "column": 18, "message": "the parameter `c` of `f` has no type hint", "traceback": None}])
        self.assertEqual([(tool["line"], tool["column"]) for tool in found["tools"]], [(4, 1), (8, 1)])

    # Faults are worded like the worker's, at the same lines.
    def test_faults_are_those_of_the_worker(self):
        head = "from collections.abc import Callable\nfrom fastmcp.tools import tool\n"
        for text in ("@tool\ndef f(*args): 'F.'\n", "@tool('two words')\ndef f(): 'F.'\n", "@tool\nasync def f():\n    'F.'\n    yield 1\n",
                     "@tool\ndef f(p: Callable): 'F.'\n", "@tool\ndef f(): 'F.'\n@tool\ndef f(): 'F.'\n", "@tool(output_schema={'type': 'array'})\ndef f(): 'F.'\n",
                     "@tool(annotations={'readOnlyHint': 1})\ndef f(): 'F.'\n", "x = 1\ndef f(:\n",
                     "class C:\n    @tool\n    def f(self, a: int): 'F.'\n", "class C:\n    @tool('g')\n    async def f(cls): 'F.'\n"):
            with self.subTest(text), Worker({"t.py": head + text}) as worker:
                self.assertEqual(one(head + text)["faults"], worker.ready["faults"])
                self.assertEqual(len(worker.ready["faults"]), 1)


class Whole(unittest.TestCase):
    """Whether reading a file shows all that running it would."""

    def test_files_whose_tools_all_stand_there_are_whole(self):
        head = "from fastmcp import FastMCP\nfrom fastmcp.tools import tool\nimport functools, os\nmcp = FastMCP('x')\n"
        for text in ("", "@tool\ndef f(): 'F.'\n", "@mcp.tool\ndef f(): 'F.'\n", "def f(): 'F.'\nmcp.add_tool(f)\n", "def f(): 'F.'\ntool(f)\n",
                     "@functools.lru_cache\ndef f(): 'F.'\n", "def f(): 'F.'\nprint(f)\n", "def f(:\n",
                     "if __name__ == '__main__':\n    for f in ():\n        tool(f)\n    mcp.run()\n", "def f(server: FastMCP): 'F.'\n",
                     "def outer(f): return f\n@outer\ndef f(): 'F.'\n", "if os.name:\n    @tool\n    def f(): 'F.'\n"):
            with self.subTest(text):
                self.assertTrue(one(head + text)["whole"])
        self.assertTrue(one("def tool(f): return f\n@tool\ndef a(): 'A.'\n")["whole"])

    # TD-38: the worker's own report is the truth; it has to run for that.
    def test_files_of_which_only_running_tells_are_not(self):
        head = ("from fastmcp import FastMCP\nfrom fastmcp.tools import tool\nimport _common, third\nfrom _common import mark, served\n"
                "mcp = FastMCP('x')\ndef a(): 'A.'\ndef b(): 'B.'\n")
        for text in ("for f in (a, b):\n    tool(f)\n", "[tool(f) for f in (a, b)]\n", "list(map(tool, (a, b)))\n", "mcp.add_tool(third.make(a))\n",
                     "for f in (a, b):\n    mcp.add_tool(f)\n", "@mark\ndef f(): 'F.'\n", "@_common.mark()\ndef f(): 'F.'\n", "mark(a)\n", "served.add_tool(a)\n",
                     "for f in (a, b):\n    served.tool(f)\n", "third.register(mcp)\n", "t = tool\n@t\ndef f(): 'F.'\n", "def make(f): return tool(f)\nmake(a)\n",
                     "def make():\n    return FastMCP('y')\nother = make()\n", "@tool(name=third.NAME)\ndef f(): 'F.'\n", "@tool(**third.OPTIONS)\ndef f(): 'F.'\n",
                     "@mcp.resource('a://b')\ndef f(): 'F.'\n", "@mcp.prompt\ndef f(): 'F.'\n", "class Mine(FastMCP): pass\n", "mcp.mount(served)\n", "getattr(mcp, 'tool')(a)\n", "@tool(enabled=third.ON)\ndef f(): 'F.'\n"):
            with self.subTest(text):
                self.assertFalse(one(head + text)["whole"])
        for text in ("from other import tool\n@tool\ndef a(): 'A.'\n", "from other import *\n@tool\ndef a(): 'A.'\n", "from . import tool\n@tool\ndef a(): 'A.'\n",
                     "def go():\n    from fastmcp.tools import tool\n    tool(go)\ngo()\n", "import fastmcp.tools as t\nfor f in ():\n    t.tool(f)\n"):
            with self.subTest(text):
                self.assertFalse(one(text)["whole"])

    def test_variables_that_a_file_reads_are_named(self):
        text = ("import os\nfrom os import environ, getenv as get\nA = os.environ['A']\nB = environ.get('B', 'b')\nC = get('C')\nD = os.getenv(NAME)\n"
                "def f():\n    import os\n    os.environ['SET'] = 'x'\n    return os.environ['A'], os.environ[\"E\"], {}['F'], other.environ['G']\n")
        self.assertEqual(one(text)["variables"], ["A", "B", "C", "E"])

    def test_files_with_schemas_that_only_running_tells_are_not(self):
        head = ("from dataclasses import dataclass\nfrom enum import Enum\nfrom typing import TypedDict\nimport fastmcp\nfrom fastmcp.tools import tool\n"
                "from pydantic import BaseModel\nfrom _common import Model, LIMIT\nclass Own(BaseModel):\n    a: int\n"
                "@dataclass\nclass Point:\n    x: int\nclass Kind(Enum):\n    A = 1\nclass Told(TypedDict):\n    x: int\n")
        for hint, is_whole in (("Own", False), ("list[Own] | None", False), ("Model", False), ("'Model'", False), ("int = LIMIT", False),
                               ("Point", True), ("Kind", True), ("Told", True), ("dict[str, list[Point]]", True), ("fastmcp.Context", True)):
            with self.subTest(hint):
                self.assertEqual(one(head + "@tool\ndef f(a: %s): 'F.'\n" % hint)["whole"], is_whole)
        self.assertFalse(one(head + "@tool\ndef f() -> Model: 'F.'\n")["whole"])


class Hostile(unittest.TestCase):
    # What holds up or kills the parser, which is written in C, costs no other file its list.
    def test_file_that_hangs_or_kills_the_reader_costs_itself_only(self):
        driver = """
import collections, itertools, os, sys
sys.path.insert(0, %r)
from toolman_dock import scanmain
read = scanmain.scan
def scan(file, text):
    if file == "hangs.py":
        collections.deque(itertools.repeat(0), maxlen=0)
    if file == "kills.py":
        os.abort()
    return read(file, text)
scanmain.scan, scanmain.FILE_SECONDS_MAX = scan, 0.2
sys.exit(scanmain.run(sys.stdin.buffer, sys.stdout.buffer))
""" % os.path.dirname(SCAN)
        files = ("a.py", "hangs.py", "b.py", "kills.py", "c.py")
        source = "from fastmcp.tools import tool\n@tool\ndef f(): 'F.'\n"
        lines = "".join(json.dumps({"file": file, "source": source}) + "\n" for file in files)
        done = subprocess.run([sys.executable, "-I", "-S", "-B", "-c", driver], input=lines.encode(), stdout=subprocess.PIPE,
                              timeout=SECONDS_MAX, check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([(one["file"], one["whole"], one.get("late")) for one in found],
                         [("a.py", True, None), (None, False, True), ("b.py", True, None), (None, False, True), ("c.py", True, None)])
        self.assertIn("takes too long", found[1]["faults"][0]["message"])
        self.assertIn("Python itself fails", found[3]["faults"][0]["message"])

    # F01.
    def test_syntax_errors_have_their_place(self):
        fault = one("x = 1\n\ndef f(a b):\n    pass\n")["faults"][0]
        self.assertEqual((fault["line"], fault["column"]), (3, 9))
        self.assertTrue(fault["message"].startswith("syntax error: "))

    def test_sources_that_are_meant_to_break_a_reader(self):
        deep = 100000
        sources = {
            "parentheses": "x = " + "(" * deep + ")" * deep, "lists": "x = " + "[" * 90 + "]" * 90, "minus": "x = " + "-" * deep + "1",
            "plus": "x = " + "+".join(["1"] * deep), "attributes": "x = a" + ".b" * deep, "calls": "x = a" + "()" * deep,
            "blocks": "".join(" " * index + "if x:\n" for index in range(95)) + " " * 95 + "pass\n",
            "lambdas": "x = " + "lambda: " * deep + "1", "nul": "x = 1\0", "escape": "x = '\\N{no such}'",
            "union": "from fastmcp.tools import tool\n@tool\ndef f(p: " + "|".join(["int"] * 2000) + "): 'F.'\n",
            "optional": "from typing import Optional\nfrom fastmcp.tools import tool\n@tool\ndef f(p: " + "Optional[" * 150 + "int" + "]" * 150 + "): 'F.'\n",
            "quotes": "from fastmcp.tools import tool\n@tool\ndef f(p: '''\"\"\"'int'\"\"\"'''): 'F.'\n",
            "default": "from fastmcp.tools import tool\n@tool\ndef f(p=" + "-" * 3000 + "1): 'F.'\n",
            "alias": "from fastmcp.tools import tool\nX = Y\nY = X\n@tool\ndef f(p: X, q=X): 'F.'\n", "itself": "from fastmcp.tools import tool\nX = X\n@tool\ndef f(p: X = X): 'F.'\n",
            "bases": "from dataclasses import dataclass\nfrom fastmcp.tools import tool\n@dataclass\nclass A(B): a: int\n@dataclass\nclass B(A): b: int\n@tool\ndef f(p: A): 'F.'\n",
            "large": "#" * (1 << 20) + "\n", "numbers": "x = (" + "1," * 400000 + ")", "digits": "x = " + "9" * 10000, "surrogate": "x = '\ud800'",
            "encoding": "# -*- coding: no-such -*-\nx = 1\n", "empty": "", "bom": "\ufeffx = 1\n", "carriage": "x = 1\r\ry = 2\r\n",
        }
        found = scan(*sources.items())
        self.assertEqual([one["file"] for one in found], list(sources))
        faults = {one["file"]: [fault["message"] for fault in one["faults"]] for one in found}
        for name in ("parentheses", "minus", "lambdas", "nul", "escape", "large", "surrogate"):
            self.assertEqual(len(faults[name]), 1, name)
        self.assertEqual(faults["large"], ["the file is over 1048576 bytes"])
        for name in ("lists", "empty", "bom", "union", "alias", "itself"):
            self.assertEqual(faults[name], [], name)

    def test_requests_that_are_none_are_told(self):
        lines = [b"", b"nonsense", b"[]", b'{"file":1,"source":""}', b'{"file":"a.py"}', b"\xff", b"[" * 100000,
                 json.dumps({"file": "a.py", "source": "x" * (17 << 20)}).encode(), b'{"file":"z.py","source":""}']
        done = subprocess.run([sys.executable, "-I", "-S", "-B", SCAN], input=b"\n".join(lines) + b"\n",
                              stdout=subprocess.PIPE, timeout=SECONDS_MAX, check=True)
        found = [json.loads(line) for line in done.stdout.splitlines()]
        self.assertEqual([one["file"] for one in found], [None] * 8 + ["z.py"])
        self.assertEqual(found[7]["faults"][0]["message"], "the request is too long")


if __name__ == "__main__":
    unittest.main()
