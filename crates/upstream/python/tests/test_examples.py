"""The examples are loaded, agree with what the static reader says of them, and work."""

import os
import unittest

from dock import EXAMPLES, Worker, scan


def both(name):
    """The definitions of an example folder, alive and read."""
    folder = os.path.join(EXAMPLES, name)
    with Worker(folder=folder) as worker:
        ready = worker.ready
    sources = []
    for file in sorted(os.listdir(folder)):
        if file.endswith(".py"):
            with open(os.path.join(folder, file), encoding="utf-8") as source:
                sources.append((file, source.read()))
    return ready, [tool for found in scan(*sources) for tool in found["tools"]]


class Examples(unittest.TestCase):
    # TD-36, TD-38, TD-48, TD-49: the seed's pattern works as it is written.
    def test_alive_and_read_definitions_are_equal(self):
        for name in ("basic-tool", "multi-tool", "typed-tool"):
            with self.subTest(name):
                ready, read = both(name)
                self.assertEqual(ready["faults"], [])
                self.assertEqual([tool["definition"] for tool in read], ready["tools"])
                self.assertTrue(all(tool["exact"] for tool in read))

    def test_hello_greets(self):
        with Worker(folder=os.path.join(EXAMPLES, "basic-tool")) as worker:
            self.assertEqual(worker.text("say_hello"), "Hello, World!")
            self.assertEqual(worker.text("say_hello", {"name": "Ada"}), "Hello, Ada!")
            self.assertEqual(worker.ready["files"], {"say_hello": "hello.py"})

    def test_typed_example_takes_records_and_returns_them(self):
        with Worker(folder=os.path.join(EXAMPLES, "typed-tool")) as worker:
            done = worker.result("file_ticket", {"ticket": {"title": "a", "priority": "high"}, "dry_run": True})
            self.assertEqual(done["structuredContent"],
                             {"title": "a", "priority": "high", "tags": ["dry-run"], "parent": None})
            error = worker.error("file_ticket", {"ticket": {"title": 1, "parent": {"priority": "urgent"}}})
            self.assertEqual([one["path"] for one in error["details"]["errors"]],
                             ["/ticket/title", "/ticket/parent/title", "/ticket/parent/priority"])
            image = worker.result("swatch", {"red": 1, "green": 2, "blue": 3})["content"][0]
            self.assertEqual((image["type"], image["mimeType"]), ("image", "image/png"))

    def test_typed_example_reports_progress_when_asked(self):
        with Worker(folder=os.path.join(EXAMPLES, "typed-tool")) as worker:
            done = worker.result("sum_up", {"numbers": [1, 2, 6], "how": "mean"}, progress=True)
            self.assertEqual(done["structuredContent"], {"result": 3.0})
            self.assertEqual([(one["progress"], one["total"]) for one in worker.messages if one["op"] == "progress"],
                             [(1, 3), (2, 3), (3, 3)])


if __name__ == "__main__":
    unittest.main()
