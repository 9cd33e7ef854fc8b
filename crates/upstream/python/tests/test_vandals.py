"""Tools that misbehave: what they do to their streams, files and process stays their own trouble."""

import unittest

from dock import Worker

HEAD = '''
    import os, sys
    from fastmcp.tools import tool

    @tool
    def fine() -> str:
        """Still works, and prints."""
        print("fine was here")
        return "fine"
'''


def vandal(body, **more):
    """A worker with a tool `vandal` of this body, called once, and its answer."""
    text = HEAD + '''
    @tool
    def vandal():
        """Break something."""
        ''' + body + "\n"
    worker = Worker(dict({"t.py": text}, **more))
    return worker, worker.call("vandal")


class Streams(unittest.TestCase):
    def check(self, body, ok=True, logged=None):
        worker, answer = vandal(body)
        with worker:
            self.assertEqual(answer["ok"], ok, answer)
            self.assertEqual(worker.text("fine"), "fine")
            self.assertIn("fine was here", worker.log_text())
            if logged is not None:
                self.assertIn(logged, worker.log_text())
            return answer

    # W07: whatever tools print, the protocol is not touched.
    def test_prints_go_to_the_log(self):
        self.check('print("hello", file=sys.stderr); print("x" * 5_000_000); sys.stdout.write("half a line")',
                   logged="x" * 1000)
        self.check('print(\'{"id":1,"ok":true}\'); os.write(1, b"raw\\n")', logged="raw")
        self.check('os.system("echo from a child")', logged="from a child")
        self.check('print("\\ud800 half a character")', logged="\\ud800")

    def test_closed_streams_are_put_back(self):
        self.check("os.close(1)")
        self.check("os.close(1); os.close(2); os.close(0)")
        self.check("sys.stdout.close()")
        self.check("sys.stdout = sys.stderr = None")
        self.check("os.closerange(0, 20)")

    def test_stdin_is_empty(self):
        answer = self.check("return sys.stdin.read()")
        self.assertEqual(answer["result"]["content"], [{"type": "text", "text": ""}])
        self.assertIn("EOFError", self.check("input()", ok=False)["error"]["message"])

    # W05: `sys.exit` and its kin are errors of one call.
    def test_exit_is_an_error_of_one_call(self):
        error = self.check("sys.exit(4)", ok=False)["error"]
        self.assertEqual((error["code"], error["message"]), ("internal_error", "the tool called sys.exit(4)"))
        self.assertIn("KeyboardInterrupt", self.check("raise KeyboardInterrupt", ok=False)["error"]["message"])
        self.assertIn("GeneratorExit", self.check("raise GeneratorExit", ok=False)["error"]["message"])

    def test_forked_child_neither_answers_nor_holds_the_protocol(self):
        worker, answer = vandal("return os.fork() == 0")
        with worker:
            self.assertEqual(answer["result"]["content"][0]["text"], "false")
            self.assertEqual(worker.text("fine"), "fine")
            self.assertEqual(worker.messages, [])

    # Nothing can be done about it, but the reason is told and the gateway can start anew.
    def test_tool_that_closes_everything_ends_its_worker(self):
        body = '    @tool\n    def vandal():\n        "Close everything."\n        os.closerange(3, 1024)\n'
        with Worker({"t.py": HEAD + body}) as worker:
            worker.start("vandal")
            worker.send({"id": "x", "op": "ping"})
            self.assertEqual(worker.wait(), 3)
            self.assertIn("a tool has closed the descriptor of the protocol", worker.log_text())

    # Not even the log is left to say it in; a call that goes on is over when its time is.
    def test_tool_that_closes_the_log_as_well_ends_its_worker(self):
        for kind, rest in (("def", "pass"), ("async def", "await asyncio.sleep(60)"), ("def", "time.sleep(60)")):
            body = ('    import asyncio, time\n    @tool\n    %s vandal():\n        "Close everything."\n'
                    '        os.closerange(0, 1024)\n        %s\n' % (kind, rest))
            with self.subTest(rest=rest), Worker({"t.py": HEAD + body}) as worker:
                worker.start("vandal", timeout=1)
                self.assertEqual(worker.wait(), 3)

    def test_global_changes_do_not_reach_the_runtime(self):
        self.check("import json; json.dumps = json.loads = json.JSONEncoder = None")
        self.check("os.chdir('/'); os.environ.clear(); sys.path.clear(); sys.meta_path.clear()")
        self.check("sys.modules.pop('json'); import builtins; builtins.print = builtins.print")
        self.check("sys.setrecursionlimit(200)")
        self.check("import threading; threading.current_thread().name = None")


class Errors(unittest.TestCase):
    def error(self, body, **more):
        worker, answer = vandal(body, **more)
        with worker:
            self.assertEqual(worker.text("fine"), "fine")
        self.assertFalse(answer["ok"], answer)
        return answer["error"], worker.folder

    # TD-24, TD-107: what an author needs, and nothing of the machine.
    def test_exceptions_have_their_type_text_and_a_short_traceback(self):
        error, folder = self.error("import helper; helper.fail()",
                                   **{"helper.py": "def fail():\n    return 1 / 0\n"})
        self.assertEqual((error["code"], error["message"]), ("internal_error", "ZeroDivisionError: division by zero"))
        trace = error["details"]["traceback"]
        self.assertIn('File "t.py", line 14, in vandal', trace)
        self.assertIn('File "helper.py", line 2, in fail', trace)
        self.assertNotIn("toolman_dock", trace)
        self.assertNotIn(folder, trace)

    def test_chained_exceptions_are_trimmed_too(self):
        error, folder = self.error("""
        try:
            open("/nowhere/at/all")
        except OSError as error:
            raise ValueError("wrapped") from error""")
        self.assertIn("FileNotFoundError", error["details"]["traceback"])
        self.assertEqual(error["details"]["traceback"].count('File "t.py"'), 2)
        self.assertNotIn(folder, error["details"]["traceback"])

    def test_tracebacks_are_cut(self):
        error, _ = self.error("raise ValueError('x' * 100000)")
        self.assertLessEqual(len(error["details"]["traceback"]), 16 * 1024)
        self.assertLess(len(error["message"]), 5000)

    def test_endless_recursion_is_an_error(self):
        error, _ = self.error("f = lambda: f()\n        f()")
        self.assertIn("RecursionError", error["message"])

    def test_exception_that_can_not_be_printed_is_still_answered(self):
        error, _ = self.error("""
        class Nasty(Exception):
            def __str__(self):
                raise RuntimeError("no")
        raise Nasty""")
        self.assertEqual(error["message"], "Nasty: (its text can't be made)")

    # TD-26: dependency errors name the package.
    def test_missing_package_is_a_dependency_error(self):
        error, _ = self.error("import surely_missing.part")
        self.assertEqual(error["code"], "dependency_error")
        self.assertEqual(error["message"], "the package `surely_missing` is not installed; add it to requirements.txt")
        error, _ = self.error("from json import nothing_like_it")
        self.assertEqual(error["code"], "dependency_error")
        self.assertIn("cannot import name 'nothing_like_it'", error["message"])

    def test_tool_error_speaks_for_itself(self):
        error, _ = self.error("from fastmcp.exceptions import ToolError; raise ToolError('try a smaller one')")
        self.assertEqual(error, {"code": "internal_error", "message": "try a smaller one", "details": None})


class Names(unittest.TestCase):
    # User modules that are named like the standard library, or like us.
    def test_files_named_like_libraries_harm_nobody(self):
        names = ("json", "asyncio", "typing", "traceback", "inspect", "base64", "datetime", "dataclasses", "re",
                 "toolman_dock", "toolman_tools", "fastmcp", "mcp", "site", "threading", "email")
        text = '''
            import asyncio, dataclasses, datetime, json, typing
            from fastmcp.tools import tool

            @tool
            async def of_%s(when: datetime.date, n: typing.Optional[int] = None) -> str:
                """Named like a library."""
                await asyncio.sleep(0)
                return json.dumps(when.isoformat())
        '''
        with Worker({name + ".py": text % name for name in names}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            self.assertEqual(sorted(worker.ready["files"]), sorted("of_" + name for name in names))
            for name in names:
                self.assertEqual(worker.text("of_" + name, {"when": "2024-02-29"}), '"2024-02-29"')
                self.assertEqual(worker.error("of_" + name, {"when": "no"})["code"], "invalid_arguments")

    # Contexts of calls are their own.
    def test_context_variables_are_not_shared_between_calls(self):
        with Worker({"t.py": '''
            import contextvars
            from fastmcp.tools import tool
            seen = contextvars.ContextVar("seen", default=0)

            @tool
            def count() -> int:
                """Count."""
                seen.set(seen.get() + 1)
                return seen.get()

            @tool
            async def count_async() -> int:
                """Count."""
                seen.set(seen.get() + 1)
                return seen.get()
        '''}) as worker:
            for tool in ("count", "count_async") * 3:
                self.assertEqual(worker.text(tool), "1")


class Limits(unittest.TestCase):
    def test_what_the_system_denies_names_the_setting(self):
        for body, held, words in (
                ("raise PermissionError(13, 'Permission denied', '/x')", "sandbox", "name the path under `write` or `read` in tooldock.yaml"),
                ("raise PermissionError(1, 'Operation not permitted')", "network", "set `network: true` in tooldock.yaml"),
                ("raise PermissionError(1, 'Operation not permitted')", "sandbox", "set `sandbox: false`"),
                ("raise PermissionError(1, 'Operation not permitted')", "", "PermissionError: [Errno 1] Operation not permitted"),
                ("os.environ['MY_KEY']", "", "KeyError: 'MY_KEY'; there is no variable `MY_KEY`: if it is a secret, name it under `secrets:` in tooldock.yaml, "
                 "and set it with `toolman secrets set MY_KEY --scope ns`"),
                ("{}['MY_KEY']", "", "KeyError: 'MY_KEY'"),
                ("raise RuntimeError(\"can't start new thread\")", "", "raise `processes` in tooldock.yaml"),
                ("raise BlockingIOError(11, 'Resource temporarily unavailable')", "", "a namespace has no more than `processes` in tooldock.yaml allows")):
            text = HEAD + "\n    @tool\n    def vandal():\n        'Break.'\n        " + body + "\n"
            with self.subTest(body, held=held), Worker({"t.py": text}, options=("--held-by", held)) as worker:
                message = worker.error("vandal")["message"]
                self.assertTrue(words in message and (held or not message.startswith("Perm") or message == words), message)


if __name__ == "__main__":
    unittest.main()
