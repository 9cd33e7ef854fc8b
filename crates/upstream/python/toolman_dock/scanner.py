"""The scanner: the tools of a file that is read and never run.

Definitions equal those of the worker wherever the source alone decides them; `exact` says where it does not, and
`whole` whether these are all that running the file could show, with all of their schemas.
"""

import ast

from .definition import OPTIONS, admit_default, define, describe, given_output, method_fault, name_fault, output_of
from .docs import parse
from .faults import fault
from .reading import HintReader, Unknown
from .shapes import HintError, is_context
from .source import Source, docstring
from .unread import DECORATORS, is_unread
from .wants import variables

SOURCE_BYTES_MAX = 1024 * 1024


class Marked:
    """A function that is marked as a tool: its node, the options of its mark, whether all is sure."""

    def __init__(self, node, options, exact):
        self.node, self.options, self.exact = node, options, exact
        self.line = min([one.lineno for one in node.decorator_list] + [node.lineno])


def scan(file, text):
    """The tools, faults and warnings of one source."""
    found = {"file": file, "tools": [], "faults": [], "warnings": [], "variables": [], "whole": True}
    try:
        if len(text.encode("utf-8")) > SOURCE_BYTES_MAX:
            found["faults"].append(fault(file, "the file is over %d bytes" % SOURCE_BYTES_MAX))
            return found
        tree = ast.parse(text[1:] if text.startswith("\ufeff") else text)
        source = Source(tree)
        _scan(source, file, found)
        _refuse_methods(source, file, found)
        found["variables"] = variables(tree, source)
        # Who imports nothing has nothing to make tools with.
        has_others = "import" in text and (source.unnamed or is_unread(tree, source, source.used))
        found["whole"] = found["whole"] and not has_others
    except SyntaxError as error:
        found["faults"].append(fault(file, "syntax error: %s" % error.msg, error.lineno, error.offset))
    except UnicodeEncodeError:
        found["faults"].append(fault(file, "the file is not UTF-8 text"))
    except (RecursionError, MemoryError):
        found["faults"].append(fault(file, "the file is nested too deep, or too large, to be read"))
        found["whole"] = False
    except ValueError as error:
        found["faults"].append(fault(file, "the file can't be read: %s" % error))
    return found


def _scan(source, file, found):
    names = {}
    for marked in _marked(source):
        if marked.options.get("enabled") is False:
            continue
        reader = HintReader(source)
        try:
            definition = _define(marked, reader)
        except HintError as error:
            found["faults"].append(fault(file, str(error), marked.line))
            continue
        name = definition["name"]
        if name in names:
            found["faults"].append(fault(file, "the tool `%s` is already defined in `%s`, which keeps the name"
                                         % (name, file), marked.line))
            continue
        names[name] = True
        # A schema of which a part is unknown, such as a model of pydantic, is told by the worker.
        found["whole"] = found["whole"] and reader.exact
        _warn(marked, definition, reader, file, found["warnings"])
        found["tools"].append({"definition": definition, "line": marked.node.lineno, "mark": marked.line,
                               "column": marked.node.col_offset + 1, "exact": marked.exact and reader.exact})


def _refuse_methods(source, file, found):
    """Functions of classes that are marked as tools but want an object first."""
    owners = [one for one, _ in source.statements if isinstance(one, ast.ClassDef)]
    for owner in owners:
        for node in owner.body:
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            first = next((one.arg for one, _ in _arguments(node.args)), None)
            if method_fault(node.name, owner.name, first) is None:
                continue
            for options, _ in filter(None, [_mark(one, source) for one in node.decorator_list]):
                wrong = method_fault(options.get("name") or node.name, owner.name, first)
                found["faults"].append(fault(file, wrong, Marked(node, options, False).line))


def _marked(source):
    """Every function that is decorated as a tool, or handed to a decorator or server, in order."""
    for statement, sure in source.statements:
        if isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            marks = [_mark(one, source) for one in statement.decorator_list]
            for mark in reversed([one for one in marks if one is not None]):
                options, exact = mark
                yield Marked(statement, options, exact and sure and len(marks) == 1)
        elif isinstance(statement, (ast.Expr, ast.Assign)) and isinstance(statement.value, ast.Call):
            marked = _handed(statement.value, source, sure)
            if marked is not None:
                yield marked


def _mark(decorator, source):
    """The options of a decorator and whether they are sure, or None if it makes no tool."""
    call = decorator if isinstance(decorator, ast.Call) else None
    made = call.func if call else decorator
    sure = _makes_tools(made, source)
    if sure is None:
        return None
    source.used.add(id(made))
    return _options(call, source, sure) if call else ({}, sure)


def _makes_tools(node, source):
    """Whether an expression is the decorator: sure (True), likely (False) or not (None)."""
    name = source.resolve(node)
    if name in DECORATORS:
        return source.is_sure(node)
    if isinstance(node, ast.Attribute) and node.attr == "tool":
        server = source.is_server(node.value)
        if server:
            return source.is_sure(node.value)
        if server is None and name is not None and name.partition(".")[0] not in ("builtins", "fastmcp", "mcp"):
            return False
    return None


def _handed(call, source, sure):
    """`tool(f)`, `server.tool("name")(f)` and `server.add_tool(f)` as statements."""
    function = source.functions.get(call.args[0].id) if call.args and isinstance(call.args[0], ast.Name) else None
    if function is None:
        return None
    adds = isinstance(call.func, ast.Attribute) and call.func.attr == "add_tool" and source.is_server(call.func.value)
    if adds or _makes_tools(call.func, source) is not None:
        source.used.add(id(call.func))
        options, exact = _options(ast.Call(call.func, call.args[1:], call.keywords), source, sure)
    elif isinstance(call.func, ast.Call) and _makes_tools(call.func.func, source) is not None:
        source.used.add(id(call.func.func))
        options, exact = _options(call.func, source, sure)
    else:
        return None
    return Marked(function, options, exact and not function.decorator_list)


def _options(call, source, sure):
    options, reader = {}, HintReader(source)
    given = [("name", one) for one in call.args[:1]] + [(one.arg, one.value) for one in call.keywords]
    for key, node in given:
        if key not in OPTIONS:
            sure = sure and key is not None
            source.unnamed = source.unnamed or key is None
            continue
        try:
            options[key] = _annotations(node, reader) if key == "annotations" else reader.value(node)
        except Unknown:
            sure = False
            source.unnamed = source.unnamed or key in ("name", "enabled")
    return options, sure


def _annotations(node, reader):
    if isinstance(node, ast.Call) and (reader.source.resolve(node.func) or "").endswith(".ToolAnnotations"):
        return {one.arg: reader.value(one.value) for one in node.keywords}
    return reader.value(node)


def _define(marked, reader):
    node, options = marked.node, marked.options
    name = options.get("name") or node.name
    wrong = name_fault(name)
    if wrong:
        raise HintError(wrong)
    if isinstance(node, ast.AsyncFunctionDef) and _yields(node):
        raise HintError("the tool `%s` is an async generator; return a list instead" % name)
    if node.args.vararg is not None:
        raise HintError("the tool `%s` takes `*%s`, which has no names for a caller; use a list"
                        % (name, node.args.vararg.arg))
    fields = []
    for argument, default in _arguments(node.args):
        try:
            field = admit_default(reader.field(argument.arg, argument.annotation, default))
        except HintError as error:
            raise HintError("the parameter `%s` of `%s`: %s" % (argument.arg, name, error)) from None
        if not is_context(field.shape):
            fields.append(field)
    described, told = parse(docstring(node))
    output = _output(node, options, reader)
    return define(name, options, described, describe(fields, told), node.args.kwarg is not None, output)


def _output(node, options, reader):
    if "output_schema" in options:
        return given_output(options["output_schema"])[0]
    if node.returns is None:
        return None
    try:
        shape = reader.read(node.returns)
    except HintError:
        return None
    return output_of(shape)[0]


def _arguments(arguments):
    """Every named parameter with the node of its default."""
    places = list(arguments.posonlyargs) + list(arguments.args)
    defaults = [None] * (len(places) - len(arguments.defaults)) + list(arguments.defaults)
    return list(zip(places, defaults)) + list(zip(arguments.kwonlyargs, arguments.kw_defaults))


def _yields(node):
    todo = list(node.body)
    while todo:
        one = todo.pop()
        if isinstance(one, (ast.Yield, ast.YieldFrom)):
            return True
        if not isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)):
            todo.extend(ast.iter_child_nodes(one))
    return False


def _warn(marked, definition, reader, file, warnings):
    node = marked.node
    if docstring(node) is None and not marked.options.get("description"):
        warnings.append(fault(file, "the tool `%s` has no docstring" % definition["name"], node.lineno,
                              node.col_offset + 1))
    for argument, _ in _arguments(node.args):
        if argument.annotation is None:
            warnings.append(fault(file, "the parameter `%s` of `%s` has no type hint"
                                  % (argument.arg, definition["name"]), argument.lineno, argument.col_offset + 1))
