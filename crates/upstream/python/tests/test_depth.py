"""What is nested too deep for the gateway fails alone: one call, one tool, one file."""

import json
import time
import unittest

from dock import Worker, scan

HEAD = "from typing import Any, Dict, List, Union\nfrom fastmcp import Context\nfrom fastmcp.tools import tool\n"
# The gateway reads so many levels; a few are its own.
READABLE = 120


def depth(value):
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


class Results(unittest.TestCase):
    def test_only_the_call_with_the_deep_result_fails(self):
        source = HEAD + '''
def nest(levels):
    value = []
    for _ in range(levels - 1):
        value = [value]
    return value

@tool
def deep(levels: int) -> Any:
    """Nest."""
    return {"value": nest(levels)}

@tool
async def tell(ctx: Context) -> str:
    """Say something deep, with brackets in strings."""
    await ctx.log(data=nest(300))
    return "[" * 500 + '\\\\"{'
'''
        with Worker({"t.py": source}) as worker:
            self.assertEqual(depth(worker.result("deep", {"levels": 90})["structuredContent"]), 91)
            error = worker.error("deep", {"levels": 110})
            self.assertEqual(error["message"], "the tool returned something that is nested too deep; the most is 100 levels")
            self.assertEqual(len(worker.text("tell")), 503)
            self.assertTrue(worker.messages, "it was told")
            self.assertTrue(all(depth(message) < READABLE for message in worker.messages))


class Definitions(unittest.TestCase):
    def test_deep_default_costs_one_tool(self):
        deep = "[" * 150 + "]" * 150
        source = HEAD + '@tool\ndef a(x: list = %s):\n    """A."""\n\n@tool\ndef b() -> str:\n    """B."""\n    return "b"\n' % deep
        said = "the definition of `a` is nested too deep, by its hints or by a default; the most is 100 levels"
        with Worker({"t.py": source}) as worker:
            self.assertEqual([fault["message"] for fault in worker.ready["faults"]], [said])
            self.assertLess(depth(worker.ready), READABLE)
            self.assertEqual(worker.text("b"), "b")
        found = scan(("t.py", source))[0]
        self.assertEqual([tool["definition"]["name"] for tool in found["tools"]], ["b"])
        self.assertEqual([fault["message"] for fault in found["faults"]], [said])


class Hints(unittest.TestCase):
    ENDLESS = HEAD + 'J = Union[int, List["J"], Dict[str, "J"]]\n@tool\ndef f(x: J, y: int):\n    """F."""\n'
    # Each name stands for two of the one before.
    DOUBLING = HEAD + "A0 = int\n" + "".join(
        "A%d = Union[List[A%d], Dict[str, A%d]]\n" % (n + 1, n, n) for n in range(60)
    ) + '@tool\ndef g(x: A60):\n    """G."""\n'

    def test_alias_of_itself_is_read_at_once_and_not_exactly(self):
        began = time.monotonic()
        found = scan(("t.py", self.ENDLESS), ("u.py", self.DOUBLING))
        self.assertLess(time.monotonic() - began, 3)
        (tool,) = found[0]["tools"]
        self.assertEqual((tool["definition"]["name"], tool["exact"]), ("f", False))
        self.assertEqual(tool["definition"]["inputSchema"]["properties"]["y"], {"type": "integer"})

    def test_worker_says_that_there_is_no_end(self):
        other = HEAD + '@tool\ndef h() -> str:\n    """H."""\n    return "h"\n'
        with Worker({"t.py": self.ENDLESS, "u.py": other}) as worker:
            self.assertEqual(worker.text("h"), "h")
            (fault,) = worker.ready["faults"]
            self.assertIn("no end", fault["message"])

    def test_file_that_takes_too_long_loses_only_its_own_tools(self):
        slow = HEAD + "".join("@tool\ndef s%d(x: A60):\n    '''S.'''\n" % n for n in range(3000))
        slow = slow.replace("@tool", self.DOUBLING[len(HEAD):self.DOUBLING.index("@tool")] + "@tool", 1)
        first, second = scan(("slow.py", slow), ("t.py", self.ENDLESS))
        self.assertEqual((first.get("late"), first["tools"]), (True, []))
        self.assertIn("takes too long", json.dumps(first["faults"]))
        self.assertEqual(len(second["tools"]), 1)


if __name__ == "__main__":
    unittest.main()
