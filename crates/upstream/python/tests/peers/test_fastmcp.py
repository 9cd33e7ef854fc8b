"""The same tool files with a real fastmcp in the environment: 2.14, where the seed's pattern fails, and the newest."""

import os
import unittest

from interpreters import python

from dock import EXAMPLES, Worker, scan

SOURCE = '''
from typing import Annotated, Optional
from pydantic import Field
from fastmcp import Context, FastMCP
from fastmcp.exceptions import ToolError
from fastmcp.tools import tool
from fastmcp.utilities.types import Image

mcp = FastMCP("x")

@tool
def plain(x: int = 1) -> str:
    """Plain."""
    return str(x)

@tool(name="named", title="Named", tags={"b", "a"}, annotations={"readOnlyHint": True}, meta={"k": 1})
async def other(n: Annotated[int, Field(ge=1, description="how many")], ctx: Optional[Context] = None) -> list[int]:
    """Named."""
    await ctx.info("told")
    await ctx.report_progress(n, 2 * n, "half")
    return [n]

@mcp.tool
def of_server(x: int = Field(5, le=9)) -> dict:
    """Of a server."""
    return {"x": x}

@mcp.tool("renamed", tags={"z"})
async def of_server_too(ctx: Context) -> str:
    """Of a server too."""
    await ctx.warning("careful")
    await ctx.log("noted", level="notice")
    return ctx.request_id

@mcp.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"a", format="png")

@mcp.tool
def fails():
    """Fails."""
    raise ToolError("be nice")
'''

EXTRA = '''
@mcp.resource("notes://all", mime_type="text/markdown")
def notes() -> str:
    """All notes."""
    return "# notes"

@mcp.resource("notes://{name}/text")
async def note(name: str, ctx: Context) -> dict:
    """One note."""
    await ctx.info("told")
    return {"name": name}

@mcp.prompt
def review(code: str) -> str:
    """Review."""
    return "Review: " + code

@mcp.tool
def whole() -> ToolResult:
    """A whole result."""
    return ToolResult(content="text", structured_content={"k": 1})

@mcp.tool
def block() -> TextContent:
    """A block of mcp."""
    return TextContent(type="text", text="t")

@mcp.tool(annotations=ToolAnnotations(readOnlyHint=True))
def annotated():
    """Annotated."""

def added(x: str) -> str:
    """Added."""
    return x

mcp.add_tool(Tool.from_function(added))
mcp.add_tool(Tool.from_tool(Tool.from_function(added), name="transformed", transform_args={"x": ArgTransform(name="y")}))
'''

IMPORTS = {
    "fastmcp2": "from fastmcp.tools.tool import Tool, ToolResult\nfrom fastmcp.tools.tool_transform import ArgTransform\n"
                "import fastmcp.tools.tool\nassert fastmcp.tools.tool.Tool is Tool\n"
                "from mcp.types import TextContent, ToolAnnotations\n",
    "fastmcp": "from fastmcp.tools import Tool, ToolResult\nfrom fastmcp.tools.tool_transform import ArgTransform\n"
               "from mcp.types import TextContent, ToolAnnotations\n",
}


class RealFastmcp:
    name, version = None, None

    @classmethod
    def setUpClass(cls):
        source = SOURCE + "\n" + IMPORTS[cls.name] + EXTRA
        cls.worker = Worker({"t.py": source, "other.py": "from t import mcp, plain\n"}, python=python(cls.name))
        cls.addClassCleanup(cls.worker.__exit__)

    def test_ready_names_the_library(self):
        self.assertEqual(self.worker.ready["faults"], [])
        self.assertTrue(self.worker.ready["fastmcp"].startswith(self.version), self.worker.ready["fastmcp"])

    # TD-49; FORMATS 2.5 (1): in 2.14.5 `fastmcp.tools.tool` is a module, and `@tool` raises.
    def test_definitions_are_those_without_the_library(self):
        alive = {tool["name"]: tool for tool in self.worker.ready["tools"]}
        for tool in scan(("t.py", SOURCE))[0]["tools"]:
            with self.subTest(tool["definition"]["name"]):
                self.assertTrue(tool["exact"])
                self.assertEqual(alive[tool["definition"]["name"]], tool["definition"])
        self.assertEqual(set(self.worker.ready["files"].values()), {"t.py"})

    def test_tools_work(self):
        self.assertEqual(self.worker.text("plain", {"x": 3}), "3")
        self.assertEqual(self.worker.result("of_server")["structuredContent"], {"x": 5})
        self.assertEqual(self.worker.error("of_server", {"x": 10})["code"], "invalid_arguments")
        self.assertEqual(self.worker.result("of_server", {"x": "1"})["structuredContent"], {"x": 1}, "as the library does")
        self.assertEqual(self.worker.error("of_server", {"x": "one"})["code"], "invalid_arguments")
        self.assertEqual(self.worker.result("picture")["content"], [{"type": "image", "data": "YQ==", "mimeType": "image/png"}])
        self.assertEqual(self.worker.error("fails"), {"code": "internal_error", "message": "be nice", "details": None})
        self.assertEqual(self.worker.result("whole"), {"content": [{"type": "text", "text": "text"}],
                                                       "structuredContent": {"k": 1}, "isError": False})
        self.assertEqual(self.worker.result("block")["content"], [{"type": "text", "text": "t"}])
        self.assertEqual(self.worker.definition("annotated")["annotations"], {"readOnlyHint": True})
        self.assertEqual(self.worker.text("added", {"x": "a"}), "a")

    def test_resources_and_prompts_of_its_servers_are_served(self):
        self.assertEqual(self.worker.ready["offers"], ["prompts", "resources"])
        self.assertEqual([(one["uri"], one["mimeType"]) for one in self.worker.request("resources.list")["result"]["resources"]],
                         [("notes://all", "text/markdown")])
        self.assertEqual([one["uriTemplate"] for one in self.worker.request("templates.list")["result"]["resourceTemplates"]],
                         ["notes://{name}/text"])
        self.assertEqual(self.worker.request("prompts.list")["result"]["prompts"][0]["arguments"], [{"name": "code", "required": True}])
        self.assertEqual(self.worker.request("resources.read", uri="notes://all")["result"]["contents"][0]["text"], "# notes")
        self.assertEqual(self.worker.request("resources.read", uri="notes://a/text")["result"]["contents"][0]["text"], '{"name":"a"}')
        self.assertEqual(self.worker.request("prompts.get", prompt="review", arguments={"code": "x"})["result"]["messages"],
                         [{"role": "user", "content": {"type": "text", "text": "Review: x"}}])

    # Tools without a function of their own are run by the library.
    def test_transformed_tools_are_run_by_the_library(self):
        self.assertEqual(list(self.worker.definition("transformed")["inputSchema"]["properties"]), ["y"])
        self.assertEqual(self.worker.text("transformed", {"y": "b"}), "b")

    # What the library fills in by itself is not asked of a caller.
    def test_parameters_of_the_library_are_left_to_it(self):
        with Worker({"t.py": '''
            from fastmcp import FastMCP
            from fastmcp.dependencies import Depends
            mcp = FastMCP("x")

            def base() -> int:
                return 10

            @mcp.tool
            def add(n: int, base: int = Depends(base)) -> int:
                """Add."""
                return n + base
        '''}, python=python(self.name)) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(list(worker.definition("add")["inputSchema"]["properties"]), ["n"])
            self.assertEqual(worker.text("add", {"n": 1}), "11")

    def test_context_of_the_library_is_given(self):
        self.worker.messages.clear()
        self.assertEqual(self.worker.result("named", {"n": 2}, progress=True)["structuredContent"], {"result": [2]})
        self.assertEqual([one["op"] for one in self.worker.messages], ["log", "progress"])
        self.worker.messages.clear()
        answer = self.worker.call("renamed")
        self.assertEqual(answer["result"]["content"][0]["text"], str(answer["id"]))
        self.assertEqual([(one["level"], one["data"]) for one in self.worker.messages],
                         [("warning", "careful"), ("notice", "noted")])

    def test_examples_work(self):
        for folder, tool, arguments, text in (("basic-tool", "say_hello", {}, "Hello, World!"),
                                              ("multi-tool", "add", {"a": 1, "b": 2}, "3.0"),
                                              ("typed-tool", "sum_up", {"numbers": [1, 2]}, "3.0")):
            with self.subTest(folder), Worker(folder=os.path.join(EXAMPLES, folder), python=python(self.name)) as worker:
                self.assertEqual(worker.ready["faults"], [])
                self.assertEqual(worker.text(tool, arguments), text)


class Fastmcp2(RealFastmcp, unittest.TestCase):
    name, version = "fastmcp2", "2.14."

    # The server of the official SDK, version 1.
    def test_tools_of_the_sdk_server_are_served(self):
        with Worker({"t.py": '''
            from mcp.server.fastmcp import Context, FastMCP
            mcp = FastMCP("x")

            @mcp.tool(title="T")
            async def add(a: int, b: int, ctx: Context) -> int:
                """Add."""
                await ctx.info("adding")
                return a + b
        '''}, python=python(self.name)) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(list(worker.definition("add")["inputSchema"]["properties"]), ["a", "b"])
            self.assertEqual(worker.text("add", {"a": 1, "b": 2}), "3")
            self.assertEqual(worker.messages[0]["data"], "adding")


class NewestFastmcp(RealFastmcp, unittest.TestCase):
    name, version = "fastmcp", ""


if __name__ == "__main__":
    unittest.main()
