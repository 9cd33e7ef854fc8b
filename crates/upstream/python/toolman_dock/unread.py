"""Whether a file makes tools in ways that reading it does not show.

A loop over functions, a decorator of another file, a server that is handed on: what comes of these only
running tells. In doubt the answer is yes: then the file is run to be listed, which costs a process.
"""

import ast
import sys
from importlib.machinery import PathFinder

from .source import SERVERS, is_main

LIBRARIES = ("builtins", "fastmcp", "mcp")
DECORATORS = ("fastmcp.tools.tool", "fastmcp.tools.function_tool.tool")
# What a server is asked for that makes no tools; its resources and prompts are known by running the file.
HARMLESS = ("run", "run_async", "custom_route", "name")

# What holds nothing, and may be there a hundred thousand times.
DULL = (ast.Constant, ast.expr_context, ast.operator, ast.cmpop, ast.alias)


def is_unread(tree, source, used):
    """`used` has the ids of the expressions whose tools were read."""
    servers = {id(value.func) for value in source.values.values() if isinstance(value, ast.Call)}
    look = _Look(source, used | servers)
    return look.any_of(tree.body) or any(look.is_foreign_decorated(one) for one, _ in source.statements)


class _Look:
    def __init__(self, source, known):
        self.source, self.known = source, known
        # Names that make no tools; a file can have very many.
        self.clean = set()
        self.tops = {id(statement) for statement, _ in source.statements}

    def any_of(self, body):
        todo = [(node, True) for node in body if not is_main(node)]
        while todo:
            node, is_top = todo.pop()
            if isinstance(node, ast.Name) and node.id in self.clean:
                continue
            if self._is_import(node) or self._is_maker(node) or is_top and self._hands_over(node):
                return True
            is_top = is_top and not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            todo.extend((inner, is_top) for inner in self._inside(node))
        return False

    def _inside(self, node):
        """What is in a node, but hints, and expressions whose tools were read."""
        hints = [one for one in (getattr(node, "annotation", None), getattr(node, "returns", None)) if one]
        if isinstance(node, ast.Attribute) and (id(node) in self.known or self.source.is_server(node.value)):
            return []
        return [one for one in ast.iter_child_nodes(node)
                if not isinstance(one, DULL) and not any(one is hint for hint in hints)]

    def _is_import(self, node):
        """An import of the library where its names are not followed."""
        if id(node) in self.tops:
            return False
        if isinstance(node, ast.Import):
            return any(one.name.partition(".")[0] in LIBRARIES for one in node.names)
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = ("tool", "tools", "*") + SERVERS
            return (node.module or "").partition(".")[0] in LIBRARIES and any(one.name in names for one in node.names)
        return False

    def _is_maker(self, node):
        """A decorator, a server or the class of one, at a place that was not understood."""
        if not isinstance(node, (ast.Name, ast.Attribute)) or id(node) in self.known:
            return False
        if isinstance(node.ctx, ast.Store):
            return False
        name = self.source.resolve(node) or ""
        if name in DECORATORS or name.partition(".")[0] in LIBRARIES and name.rpartition(".")[2] in SERVERS:
            return True
        if isinstance(node, ast.Name):
            is_server = bool(self.source.is_server(node))
            if not is_server:
                self.clean.add(node.id)
            return is_server
        server = self.source.is_server(node.value)
        return server is True and node.attr not in HARMLESS or server is None and node.attr in ("tool", "add_tool")

    def _hands_over(self, node):
        """A call, as the file is imported, that gives a function of the file to another one."""
        if not isinstance(node, ast.Call) or not self._is_foreign(node.func):
            return False
        given = list(node.args) + [one.value for one in node.keywords]
        inner = [one for argument in given for one in ast.walk(argument)]
        return any(isinstance(one, ast.Name) and one.id in self.source.functions for one in inner)

    def is_foreign_decorated(self, statement):
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            return False
        made = [one.func if isinstance(one, ast.Call) else one for one in statement.decorator_list]
        return not any(id(one) in self.known for one in made) and any(self._is_foreign(one) for one in made)

    def _is_foreign(self, node):
        """Whether an expression begins with a name of another file, or of a library that may make tools."""
        node = _first(node)
        if not isinstance(node, ast.Name):
            return False
        if node.id in self.source.imports:
            return self._is_imported(node.id)
        value = self.source.values.get(node.id)
        if isinstance(value, ast.Call):
            # One step is enough: what is made of what was made is rare.
            made = _first(value)
            return isinstance(made, ast.Name) and self._is_imported(made.id)
        return self.source.star and node.id not in self.source.bound

    def _is_imported(self, name):
        """Whether a name comes from neither Python itself nor the library."""
        top = self.source.imports.get(name, "builtins").partition(".")[0]
        return top not in LIBRARIES and not _is_standard(top)


def _first(node):
    """What an expression of attributes, calls and subscripts begins with."""
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node


def _is_standard(name):
    # An isolated interpreter without `site` finds nothing but its own library.
    try:
        return bool(name) and (name in sys.builtin_module_names or PathFinder.find_spec(name) is not None)
    except (ImportError, ValueError, AttributeError):
        return False

