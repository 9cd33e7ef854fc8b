"""Loading: which files are tool files, and what a broken file costs."""

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

    # TD-38: a helper that marks functions of tool files makes tools of those files.
    def test_functions_marked_by_a_helper_are_tools_of_their_own_file(self):
        helper = "from fastmcp.tools import tool\ndef register(f):\n    return tool(f)\n"
        marked = "from {0} import register\n@register\ndef {1}():\n    'One.'\n"
        with Worker({"_common.py": helper, "inner/__init__.py": helper, "a.py": marked.format("_common", "a"),
                     "z.py": marked.format("inner", "z")}) as worker:
            self.assertEqual((worker.ready["files"], worker.ready["faults"]), ({"a": "a.py", "z": "z.py"}, []))

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
        self.assertEqual(fault["code"], "dependency_error")
        self.assertEqual(self.fault("raise OSError\n")["code"], "internal_error")
        self.assertIn("sys.exit(3)", self.fault("import sys\nsys.exit(3)\n")["message"])
        self.assertIn("KeyboardInterrupt", self.fault("raise KeyboardInterrupt\n")["message"])
        self.assertIn("Odd", self.fault("class Odd(BaseException): pass\nraise Odd\n")["message"])
        self.assertIn("null bytes", self.fault(b"x = 1\0\n")["message"])
        self.assertIn("utf-8", self.fault(b"x = '\xff\xfe'\n")["message"].lower())
        self.assertIn("over 1048576 bytes", self.fault("#" * (1 << 20) + "\n")["message"])
        self.assertIn("(in `_helper.py`)", self.fault("import _helper\n", **{"_helper.py": "def"})["message"])

    # Nobody could pass `self`; methods of objects, and functions that only stand in a class, are tools like others.
    def test_method_of_a_class_is_no_tool(self):
        head = "from fastmcp.tools import tool\nclass C:\n"
        fault = self.fault(head + "    @tool\n    def f(self, a: int): 'F.'\n")
        self.assertEqual(fault["line"], 3)
        self.assertIn("the tool `f` is a method of `C`: nobody could pass `self`", fault["message"])
        with Worker({"t.py": head + "    def f(self): 'F.'\n    @staticmethod\n    @tool\n    def g(x: int): 'G.'\ntool(C().f)\n"}) as worker:
            self.assertEqual((sorted(worker.ready["files"]), worker.ready["faults"]), (["f", "g"], []))

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
            ("(f: __import__('typing').Annotated[str, __import__('pydantic').Field(pattern='[')])", "the pattern `[` is not a regular expression"),
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
                               ("description='x' * 300000", "the definition of `f` has 300"), ("title=5", "`title` of the tool `f` must be a string")):
            with self.subTest(options):
                text = ONE.replace("@tool", "@tool(%s)" % options.replace("{", "{{").replace("}", "}}"))
                self.assertIn(words, self.fault(text.format(name="f"))["message"])

if __name__ == "__main__":
    unittest.main()
