"""Wants: the variables of the environment that a source reads, by the names that are written there."""

import ast

VARIABLES_MAX = 100


def variables(tree, source):
    """Names of variables, each once, in the order in which they are read."""
    found = {}
    for node in ast.walk(tree):
        name = _name(node, source)
        if name is not None and len(found) < VARIABLES_MAX:
            found[name] = True
    return list(found)


def _name(node, source):
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load) and _full(node.value, source) == "os.environ":
        key = node.slice
    elif isinstance(node, ast.Call) and node.args and _full(node.func, source) in ("os.getenv", "os.environ.get"):
        key = node.args[0]
    else:
        return None
    # Python 3.8 puts an index around it.
    key = getattr(key, "value", key) if type(key).__name__ == "Index" else key
    return key.value if isinstance(key, ast.Constant) and isinstance(key.value, str) else None


def _full(node, source):
    """A dotted name; `os` is what it is called, also where it is imported in a function."""
    steps = []
    while isinstance(node, ast.Attribute):
        steps.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    first = source.imports.get(node.id, node.id)
    return ".".join([first] + steps[::-1])
