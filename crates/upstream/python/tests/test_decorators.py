"""Decorators: every way to mark a function as a tool, and the context that it is given."""

import os
import tempfile
import textwrap
import unittest

from dock import Worker


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
                ctx.read_resource("x")
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
            self.assertIn("has no `read_resource`", worker.error("tell_sync")["message"])


class StandIn(unittest.TestCase):
    """`Field` of pydantic, where that is not installed: `-S` leaves out what this machine has."""

    def test_files_of_the_folder_have_field_and_others_see_no_pydantic(self):
        library = """
            try:
                import pydantic
                FOUND = True
            except ImportError:
                FOUND = False
        """
        uses = "from typing import Annotated\nfrom pydantic import Field\nSmall = Annotated[int, Field(le=9)]\n"
        with tempfile.TemporaryDirectory() as elsewhere:
            with open(os.path.join(elsewhere, "probing.py"), "w", encoding="utf-8") as file:
                file.write(textwrap.dedent(library))
            with Worker({"_common.py": uses, "package/__init__.py": "", "package/inner.py": uses, "a.py": """
                import sys
                sys.path.append(%r)
                from pydantic import Field
                import pydantic
                import probing
                from _common import Small
                from package.inner import Small as Other
                from fastmcp.tools import tool

                @tool
                def found(a: Small = 1, b: Other = 1, c: int = Field(default=3, ge=2)) -> list:
                    "Say."
                    import importlib.util
                    return [probing.FOUND, "pydantic" in sys.modules, importlib.util.find_spec("pydantic") is None, c]
            """ % elsewhere}, flags=["-S"]) as worker:
                self.assertEqual(worker.ready["faults"], [])
                self.assertEqual(worker.result("found")["structuredContent"], {"result": [False, False, True, 3]})
                self.assertEqual(worker.error("found", {"a": 10})["code"], "invalid_arguments")

    def test_other_names_of_pydantic_are_missed_with_words(self):
        for text in ("from pydantic import BaseModel\n", "import pydantic\npydantic.BaseModel\n", "import pydantic.fields\n",
                     "from pydantic.fields import FieldInfo\n"):
            with self.subTest(text), Worker({"t.py": text}, flags=["-S"]) as worker:
                self.assertRegex(worker.ready["faults"][0]["message"], "pydantic.*requirements.txt")

    # TD-106.
    def test_every_tool_has_a_title(self):
        with Worker({"t.py": """
            from fastmcp.tools import tool

            @tool
            def get_forecast(): "F."
            @tool("list-openIssues.v2")
            def b(): "B."
            @tool(title="Given")
            def c(): "C."
            @tool(annotations={"title": "Annotated"})
            def d(): "D."
            @tool
            def __(): "E."
        """}) as worker:
            self.assertEqual([(one["name"], one["title"]) for one in worker.ready["tools"]], [
                ("get_forecast", "Get forecast"), ("list-openIssues.v2", "List open Issues v2"), ("c", "Given"),
                ("d", "Annotated"), ("__", "__")])


if __name__ == "__main__":
    unittest.main()
