"""Source: the names of a file that is read and not run, and what they mean.

Only what stands at the top of a file is followed. A name that is bound twice, or under a condition, is
not sure, and whoever relies on it is told so.
"""

import ast
import builtins

CONDITIONAL = tuple(getattr(ast, name) for name in ("If", "Try", "TryStar", "With", "For", "While") if hasattr(ast, name))
SERVERS = ("FastMCP", "MCPServer")


class Source:
    """The top of a file: imports, classes, functions and simple assignments."""

    def __init__(self, tree):
        self.imports, self.classes, self.functions, self.values = {}, {}, {}, {}
        self.bound, self.unsure, self.star = {}, set(), False
        self.statements = []
        # Which expressions have shown their tools, and whether some have shown no name.
        self.used, self.unnamed = set(), False
        self._collect(tree.body, True)

    def _collect(self, body, sure):
        for statement in body:
            if isinstance(statement, CONDITIONAL):
                if not is_main(statement):
                    for inner in _blocks(statement):
                        self._collect(inner, False)
                continue
            self.statements.append((statement, sure))
            self._bind(statement, sure)

    def _bind(self, statement, sure):
        if isinstance(statement, ast.Import):
            for one in statement.names:
                name = one.asname or one.name.partition(".")[0]
                self._name(name, self.imports, one.name if one.asname else name, sure)
        elif isinstance(statement, ast.ImportFrom):
            module = "." * statement.level + (statement.module or "")
            for one in statement.names:
                if one.name == "*":
                    self.star = True
                else:
                    self._name(one.asname or one.name, self.imports, module + "." + one.name, sure)
        elif isinstance(statement, ast.ClassDef):
            self._name(statement.name, self.classes, statement, sure)
        elif isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            self._name(statement.name, self.functions, statement, sure)
        elif isinstance(statement, ast.Assign):
            for target in statement.targets:
                for name in _targets(target):
                    value = statement.value if isinstance(target, ast.Name) else None
                    self._name(name, self.values, value, sure)
        elif isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            self._name(statement.target.id, self.values, statement.value, sure)
        elif isinstance(statement, ast.AugAssign):
            self.unsure.update(_targets(statement.target))
        elif type(statement).__name__ == "TypeAlias":
            self._name(statement.name.id, self.values, statement.value, sure)

    def _name(self, name, table, value, sure):
        if name in self.bound or not sure:
            if not (table is self.imports and self.imports.get(name) == value):
                self.unsure.add(name)
        self.bound[name] = True
        table.setdefault(name, value)

    def resolve(self, node):
        """The full name that an expression of names means, or None."""
        if isinstance(node, ast.Name):
            if node.id in self.imports:
                return self.imports[node.id]
            if node.id in self.bound or self.star:
                return None
            return "builtins." + node.id if hasattr(builtins, node.id) else None
        if isinstance(node, ast.Attribute):
            base = self.resolve(node.value)
            return None if base is None else base + "." + node.attr
        return None

    def is_sure(self, node):
        while isinstance(node, ast.Attribute):
            node = node.value
        return isinstance(node, ast.Name) and node.id not in self.unsure

    def is_server(self, node):
        """Whether a name stands for a server: True, False, or None if it comes from another file."""
        if not isinstance(node, ast.Name):
            return False
        value = self.values.get(node.id)
        if isinstance(value, ast.Call):
            name = self.resolve(value.func) or ""
            return name.partition(".")[0] in ("fastmcp", "mcp") and name.rpartition(".")[2] in SERVERS
        return None if node.id in self.imports and not isinstance(value, ast.AST) else False


def is_main(statement):
    test = getattr(statement, "test", None)
    return (isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__")


def _blocks(statement):
    for name in ("body", "orelse", "finalbody"):
        yield getattr(statement, name, None) or []
    for handler in getattr(statement, "handlers", ()):
        yield handler.body


def _targets(target):
    if isinstance(target, ast.Name):
        return [target.id]
    if isinstance(target, (ast.Tuple, ast.List)):
        return [name for one in target.elts for name in _targets(one)]
    return []


def docstring(node):
    """The docstring as it stands in the source."""
    first = node.body[0] if node.body else None
    value = getattr(first, "value", None) if isinstance(first, ast.Expr) else None
    return value.value if isinstance(value, ast.Constant) and isinstance(value.value, str) else None
