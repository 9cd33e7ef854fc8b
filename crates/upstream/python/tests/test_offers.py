"""Offers: resources and prompts of servers in tool files."""

import unittest

from dock import Worker

FILE = """
    from fastmcp import Context, FastMCP
    from fastmcp.prompts import Message

    mcp = FastMCP("x")

    @mcp.resource("notes://all", title="Notes", mime_type="text/markdown")
    def notes() -> str:
        'All notes.'
        return "# notes"

    @mcp.resource("notes://{folder}/{number}")
    async def note(folder: str, number: int, ctx: Context) -> dict:
        return {"folder": folder, "number": number}

    @mcp.resource("files://{path*}")
    def file(path: str) -> bytes:
        return path.encode()

    @mcp.resource("find://items{?query,limit}")
    def find(query: str = "all", limit: int = 10) -> str:
        return "%s %d" % (query, limit)

    @mcp.prompt
    def review(code: str, language: str = "any") -> str:
        '''Review code.

        Args:
            code: What to look at.
        '''
        return "Review this %s: %s" % (language, code)

    @mcp.prompt("talk", description="Talk.")
    def talk() -> list:
        return ["Hello", Message("Hi", role="assistant"), {"role": "user", "content": {"type": "text", "text": "Bye"}}]
"""


class Offers(unittest.TestCase):
    def test_resources_and_prompts_are_listed_and_asked_for(self):
        with Worker({"t.py": FILE}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(worker.ready["offers"], ["prompts", "resources"])
            self.assertEqual(worker.request("resources.list")["result"]["resources"], [
                {"name": "notes", "title": "Notes", "description": "All notes.", "uri": "notes://all", "mimeType": "text/markdown"}])
            templates = worker.request("templates.list")["result"]["resourceTemplates"]
            self.assertEqual([one["uriTemplate"] for one in templates],
                             ["notes://{folder}/{number}", "files://{path*}", "find://items{?query,limit}"])
            prompts = worker.request("prompts.list")["result"]["prompts"]
            self.assertEqual(prompts[0], {"name": "review", "title": "Review", "description": "Review code.", "arguments": [
                {"name": "code", "required": True, "description": "What to look at."}, {"name": "language", "required": False}]})
            for uri, mime, member, value in (
                    ("notes://all", "text/markdown", "text", "# notes"),
                    ("notes://a/7", "application/json", "text", '{"folder":"a","number":7}'),
                    ("files://a/b", "application/octet-stream", "blob", "YS9i"),
                    ("find://items?query=x&limit=3", "text/plain", "text", "x 3"), ("find://items", "text/plain", "text", "all 10")):
                with self.subTest(uri):
                    self.assertEqual(worker.request("resources.read", uri=uri)["result"],
                                     {"contents": [{"uri": uri, "mimeType": mime, member: value}]})
            text = lambda role, said: {"role": role, "content": {"type": "text", "text": said}}
            self.assertEqual(worker.request("prompts.get", prompt="review", arguments={"code": "x"})["result"],
                             {"description": "Review code.", "messages": [text("user", "Review this any: x")]})
            self.assertEqual(worker.request("prompts.get", prompt="talk")["result"]["messages"],
                             [text("user", "Hello"), text("assistant", "Hi"), text("user", "Bye")])

    def test_what_is_not_there_or_does_not_fit_is_told(self):
        bad = "from fastmcp import FastMCP\nm = FastMCP('y')\n@m.resource('nothing')\ndef f(): return ''\n"
        with Worker({"t.py": FILE, "bad.py": bad}) as worker:
            self.assertIn("the URI of the resource `f` is none", worker.ready["faults"][0]["message"])
            self.assertEqual(worker.request("resources.read", uri="notes:/x")["error"]["code"], "tool_not_found")
            self.assertEqual(worker.request("resources.read", uri="notes://a/x")["error"]["code"], "invalid_arguments")
            self.assertEqual(worker.request("prompts.get", prompt="review")["error"]["code"], "invalid_arguments")
            self.assertEqual(worker.request("prompts.get", prompt="none")["error"]["code"], "tool_not_found")
        with Worker({"t.py": "import os\n"}) as worker:
            self.assertEqual(worker.ready["offers"], [])


if __name__ == "__main__":
    unittest.main()
