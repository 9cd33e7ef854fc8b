"""Loading: which files are tool files, how decorators are written, and what a broken file costs."""

import unittest

from dock import Worker

ONE = '''
    from fastmcp.tools import tool

    @tool
    def {name}() -> str:
        """One."""
        return "{name}"
'''


def tool(name):
    return ONE.format(name=name)


class Files(unittest.TestCase):
    # TD-38 to TD-41, TD-45.
    def test_only_tool_files_are_loaded(self):
        with Worker({
            "b.py": tool("b"), "a.py": tool("a"), "_hidden.py": tool("hidden"), ".dot.py": tool("dot"),
            "__pycache__/c.py": tool("c"), ".git/d.py": tool("d"), "sub/e.py": tool("e"), "plain.py": "x = 1\n",
            "requirements.txt": "", "tooldock.yaml": "", "README.md": "", "LICENSE": "", "with-dash.py": tool("dash"),
            "with.dot.py": tool("dotted"), ".py": tool("nameless"),
        }) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(worker.ready["files"], {
                "a": "a.py", "b": "b.py", "dash": "with-dash.py", "dotted": "with.dot.py"})
            self.assertEqual(worker.text("dotted"), "dotted")

    # TD-43.
    def test_empty_folder_is_an_empty_namespace(self):
        with Worker({}) as worker:
            self.assertEqual((worker.ready["tools"], worker.ready["faults"]), ([], []))

    def test_missing_folder_is_a_fault(self):
        with Worker(options=["--tools", "/nowhere/at/all"]) as worker:
            self.assertEqual(worker.ready["faults"][0]["message"], "the folder can't be read: No such file or directory")

    def test_files_can_import_each_other(self):
        with Worker({
            "a.py": '''
                from fastmcp.tools import tool
                from _common import double
                from helpers import add
                from package.inner import triple
                from .z import base
                import b

                @tool
                def calculate(n: int) -> int:
                    """Calculate."""
                    return triple(double(add(n, base()))) + b.SEVEN
            ''',
            "_common.py": "def double(n):\n    return 2 * n\n",
            "helpers.py": '''
                from fastmcp.tools import tool
                print("helpers was executed")

                @tool
                def add(a: int, b: int) -> int:
                    """Add."""
                    return a + b
            ''',
            "package/__init__.py": "",
            "package/inner.py": "def triple(n):\n    return 3 * n\n",
            "b.py": "import a\nSEVEN = 7\n",
            "z.py": 'from fastmcp.tools import tool\n\n@tool\ndef base() -> int:\n    """Base."""\n    return 1\n',
        }) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(worker.ready["files"], {"calculate": "a.py", "add": "helpers.py", "base": "z.py"})
            self.assertEqual(worker.text("calculate", {"n": 1}), "19")
            self.assertEqual(worker.log_text().count("helpers was executed"), 1)

    def test_libraries_come_before_siblings(self):
        with Worker({"calendar.py": tool("calendar"), "t.py": '''
            import calendar
            from fastmcp.tools import tool

            @tool
            def leap(year: int) -> bool:
                """Tell leap years."""
                return calendar.isleap(year)
        '''}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(worker.text("leap", {"year": 2024}), "true")


class Broken(unittest.TestCase):
    def fault(self, text, **more):
        with Worker(dict({"broken.py": text, "a.py": tool("a"), "z.py": tool("z")}, **more)) as worker:
            self.assertEqual(sorted(worker.ready["files"]), ["a", "z"])
            self.assertEqual(worker.text("z"), "z")
            self.assertEqual(len(worker.ready["faults"]), 1, worker.ready["faults"])
            fault = worker.ready["faults"][0]
            self.assertEqual(fault["file"], "broken.py")
            return fault

    # TD-44, F09; FORMATS 2.5 (2): one bad file stops the peer's whole core.
    def test_broken_file_loses_only_its_own_tools(self):
        fault = self.fault("x = 1\ndef f(:\n")
        self.assertEqual((fault["line"], fault["column"]), (2, 7))
        self.assertIn("syntax error", fault["message"])
        fault = self.fault("\n\n1 / 0\n")
        self.assertEqual((fault["line"], fault["message"]), (3, "ZeroDivisionError: division by zero"))
        self.assertIn('File "broken.py", line 3', fault["traceback"])
        fault = self.fault("import surely_missing\n")
        self.assertEqual(fault["message"], "the package `surely_missing` is not installed; add it to requirements.txt")
        self.assertIn("sys.exit(3)", self.fault("import sys\nsys.exit(3)\n")["message"])
        self.assertIn("KeyboardInterrupt", self.fault("raise KeyboardInterrupt\n")["message"])
        self.assertIn("Odd", self.fault("class Odd(BaseException): pass\nraise Odd\n")["message"])
        self.assertIn("null bytes", self.fault(b"x = 1\0\n")["message"])
        self.assertIn("utf-8", self.fault(b"x = '\xff\xfe'\n")["message"].lower())
        self.assertIn("over 1048576 bytes", self.fault("#" * (1 << 20) + "\n")["message"])
        self.assertIn("(in `_helper.py`)", self.fault("import _helper\n", **{"_helper.py": "def"})["message"])

    def test_file_that_was_reached_before_it_broke_gives_no_tools(self):
        fault = self.fault(tool("lost") + "\n    raise ValueError('late')\n")
        self.assertEqual((fault["message"], fault["line"]), ("ValueError: late", 9))

    # U01 and DESIGN 3: names.
    def test_names_that_are_not_allowed_are_faults(self):
        for name in ("two words", "", "ü", "x" * 129, "a/b", "\\x1b[8m"):
            text = ONE.replace("@tool", '@tool(name="%s")' % name) if name else None
            if text:
                self.assertIn("is not allowed; use 1 to 128 letters", self.fault(text.format(name="f"))["message"])

    def test_first_file_keeps_a_contested_name(self):
        fault = self.fault(tool("a"))
        self.assertEqual(fault["message"], "the tool `a` is already defined in `a.py`, which keeps the name")
        self.assertEqual(fault["line"], 4)

    def test_functions_that_no_caller_could_call_are_faults(self):
        for signature, words in (
            ("(*things)", "takes `*things`, which has no names for a caller; use a list"),
            ("(f: callable)", "the parameter `f` of `f`: `callable` can't come as JSON; use a dataclass"),
            ("(f: type)", "`type` can't come as JSON"),
            ("(f: 'Missing')", "the hint `Missing` can't be resolved"),
            ("(f: 'list[')", "the hint `list[` can't be evaluated"),
            ("(f: range)", "`range` can't come as JSON; use a dataclass, a TypedDict or a built-in type"),
        ):
            with self.subTest(signature):
                self.assertIn(words, self.fault('from fastmcp.tools import tool\n@tool\ndef f%s:\n    """F."""\n' % signature)["message"])
        self.assertIn("async generator", self.fault(
            'from fastmcp.tools import tool\n@tool\nasync def f():\n    """F."""\n    yield 1\n')["message"])

    def test_wrong_options_are_faults(self):
        for options, words in (("output_schema={'type': 'string'}", "must be an object schema"),
                               ("annotations={'readOnlyHint': 'yes'}", "`readOnlyHint` in `annotations` must be True or False"),
                               ("annotations=5", "`annotations` must be a dictionary"), ("meta=[1]", "`meta` must be a dictionary"),
                               ("title=5", "`title` of the tool `f` must be a string")):
            with self.subTest(options):
                text = ONE.replace("@tool", "@tool(%s)" % options.replace("{", "{{").replace("}", "}}"))
                self.assertIn(words, self.fault(text.format(name="f"))["message"])


class Decorators(unittest.TestCase):
    # TD-38, TD-49, TD-106; FORMATS 2.5 (1): the seed's own pattern can't run with the peer's pinned library.
    def test_every_way_to_mark_a_tool(self):
        with Worker({"t.py": '''
            import fastmcp.tools as ft
            from fastmcp import FastMCP
            from fastmcp.tools import tool
            from mcp.server.fastmcp import FastMCP as Other

            mcp, other = FastMCP("x"), Other("y", instructions="z")

            @tool
            def a(): "A."
            @tool()
            def b(): "B."
            @tool("c")
            def b2(): "C."
            @tool(name="d", title="D!", description="About d.", tags={"y", "x"}, meta={"k": [1]},
                  annotations={"readOnlyHint": True, "title": None}, enabled=True)
            def b3(): "D."
            @tool(enabled=False)
            def off(): "Off."
            @ft.tool
            def e(): "E."
            @mcp.tool
            def f(): "F."
            @mcp.tool()
            def g(): "G."
            @mcp.tool("h", icons=[1])
            async def h2(): "H."
            @other.tool(name="i")
            def i2(): "I."
            def j(): "J."
            mcp.add_tool(j)
            def k(): "K."
            mcp.tool(k, name="k2")
            l = tool(name="l")(lambda: 5)
            class M:
                "M as an object."
                def __call__(self, n: int = 1) -> int: return n
                async def method(self, n: int) -> int: return n + 1
            tool(M(), name="m")
            tool(M().method, name="n")
            import functools
            tool(functools.partial(M(), 7), name="o")
            @mcp.resource("x://y")
            def resource(): "No tool."
            assert a() is None and callable(f), "decorated functions stay functions"
            if __name__ == "__main__":
                mcp.run()
        '''}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual([tool["name"] for tool in worker.ready["tools"]],
                             ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k2", "l", "m", "n", "o"])
            self.assertEqual(worker.definition("d"), {
                "name": "d", "title": "D!", "description": "About d.",
                "inputSchema": {"type": "object", "properties": {}, "additionalProperties": False},
                "annotations": {"readOnlyHint": True}, "_meta": {"k": [1], "fastmcp": {"tags": ["x", "y"]}}})
            self.assertEqual(worker.text("l"), "5")
            self.assertEqual(worker.text("m", {"n": 3}), "3")
            self.assertEqual(worker.text("n", {"n": 3}), "4")
            self.assertEqual(worker.text("o"), "7")
            self.assertTrue(worker.call("h")["ok"])

    def test_wrappers_keep_the_signature_of_what_they_wrap(self):
        with Worker({"t.py": '''
            import functools
            from fastmcp.tools import tool

            def loud(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return function(*args, **kwargs).upper()
                return wrapper

            def late(function):
                @functools.wraps(function)
                def wrapper(*args, **kwargs):
                    return function(*args, **kwargs)
                return wrapper

            @tool
            @loud
            def say(word: str, times: int = 1) -> str:
                """Say it."""
                return word * times

            @tool
            @late
            async def later(word: str) -> str:
                """Say it later."""
                return word
        '''}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(list(worker.definition("say")["inputSchema"]["properties"]), ["word", "times"])
            self.assertEqual(worker.text("say", {"word": "a", "times": 2}), "AA")
            self.assertEqual(worker.text("later", {"word": "b"}), "b")

    # The context is injected, and never part of a schema.
    def test_context_tells_while_a_call_runs(self):
        with Worker({"t.py": '''
            from __future__ import annotations
            from typing import Optional
            import fastmcp
            from fastmcp import Context
            from fastmcp.tools import tool

            @tool
            async def tell(n: int, ctx: Context, other: Optional[Context] = None, third: fastmcp.Context | None = None) -> str:
                """Tell."""
                await ctx.debug("d")
                await ctx.info({"a": 1}, logger_name="l")
                await other.warning("w")
                await third.error("e", extra={"k": {1}})
                await ctx.log("m", level="notice")
                await ctx.log("alert", "mcp puts the level first")
                await ctx.report_progress(1, 2, "half")
                await ctx.report_progress(progress=2)
                return ctx.request_id

            @tool
            def tell_sync(ctx: Context):
                """Tell without awaiting."""
                ctx.info("s")
                ctx.sample("x")
        '''}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(list(worker.definition("tell")["inputSchema"]["properties"]), ["n"])
            self.assertEqual(worker.error("tell", {"n": 1, "ctx": 1})["details"]["errors"],
                             [{"path": "/ctx", "message": "is not known here"}])
            self.assertEqual(worker.result("tell", {"n": 1}, progress=True)["content"][0]["text"], "2")
            told = [{key: value for key, value in one.items() if key != "id"} for one in worker.messages]
            log = lambda level, data, logger=None: {"op": "log", "level": level, "logger": logger, "data": data}
            self.assertEqual(told, [
                log("debug", "d"), log("info", {"a": 1}, "l"), log("warning", "w"),
                log("error", {"msg": "e", "extra": {"k": [1]}}), log("notice", "m"),
                log("alert", "mcp puts the level first"),
                {"op": "progress", "progress": 1, "total": 2, "message": "half"},
                {"op": "progress", "progress": 2, "total": None, "message": None}])
            self.assertTrue(all(one["id"] == 2 for one in worker.messages))
            worker.messages.clear()
            worker.result("tell", {"n": 1})
            self.assertNotIn("progress", [one["op"] for one in worker.messages])
            self.assertIn("has no `sample`", worker.error("tell_sync")["message"])


if __name__ == "__main__":
    unittest.main()
