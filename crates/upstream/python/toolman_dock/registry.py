"""The registry: which functions were marked as tools, by which file, in which order.

The decorators of the shim end here, and the patched one of fastmcp 2. A mark belongs to the file whose
code applied the decorator, so a tool that another file imports is not a tool of that file as well. Where that was
a helper, which is no tool file, the loader asks which file the function is of.
"""

import sys

from .definition import OPTIONS

MARKS = []
MARKS_MAX = 10000


class Mark:
    """One function with the options that it was decorated with."""

    __slots__ = ("function", "options", "file", "line")

    def __init__(self, function, options, file, line):
        self.function, self.options, self.file, self.line = function, options, file, line


def mark(function, options, frame):
    """Notes a tool. The function comes back as it was, so that other code can call it."""
    if len(MARKS) >= MARKS_MAX:
        raise RuntimeError("a namespace can have %d tools at most" % MARKS_MAX)
    if not callable(function):
        raise TypeError("@tool is for functions, not for `%s`" % type(function).__name__)
    file = frame.f_globals.get("__file__")
    MARKS.append(Mark(function, options, file, first_line(function, frame.f_lineno)))
    return function


def first_line(function, otherwise=None):
    code = getattr(unwrap(function), "__code__", None)
    return code.co_firstlineno if code is not None else otherwise


def unwrap(function):
    """The function below its decorators; a chain that bites its tail ends."""
    for _ in range(100):
        inner = getattr(function, "__wrapped__", None)
        if inner is None:
            return function
        function = inner
    return function


def tool(name_or_fn=None, **options):
    """Marks a function as a tool: `@tool`, `@tool()`, `@tool("name")` or `@tool(name="name", ...)`."""
    return decorate(name_or_fn, options, sys._getframe(1))


def decorate(name_or_fn, options, frame):
    # Options that say nothing to a gateway (icons, task, ...) are let pass, so that files stay portable.
    options = {key: value for key, value in options.items() if key in OPTIONS}
    if isinstance(name_or_fn, str):
        if options.get("name") is not None:
            raise TypeError("the name of a tool is given twice")
        options["name"] = name_or_fn
    elif name_or_fn is not None:
        return mark(name_or_fn, options, frame)

    def apply(function):
        return mark(function, options, sys._getframe(1))

    return apply
