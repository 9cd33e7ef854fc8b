"""Records in source text: the fields of dataclasses, typed dictionaries and named tuples."""

import ast

from .families import canonical
from .shapes import MISSING, Field

FIELD_CALL = "dataclasses.field"


def record_kind(node, source):
    """The function that reads the fields of a class, or None if it is no record."""
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if source.resolve(target) == "dataclasses.dataclass":
            return dataclass_fields
    names = [canonical(source.resolve(base) or ".") for base in node.bases]
    if "typing.NamedTuple" in names:
        return named_tuple_fields
    if "typing.TypedDict" in names:
        return typed_dict_fields
    for base in node.bases:
        if isinstance(base, ast.Name) and base.id in source.classes and source.classes[base.id] is not node:
            kind = record_kind(source.classes[base.id], source)
            if kind is typed_dict_fields:
                return kind
    return None


def annotated(node, reader):
    """The annotated names of a class body with their hints and values."""
    for statement in node.body:
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            hint = statement.annotation
            outer = hint.value if isinstance(hint, ast.Subscript) else hint
            name = canonical(reader.source.resolve(outer) or ".")
            if name not in ("typing.ClassVar", "dataclasses.KW_ONLY"):
                yield statement.target.id, hint, statement.value, name


def inherited(node, reader, kind, skip):
    """The fields of the bases, in the order of the language; an unknown base makes the class inexact."""
    found = {}
    for base in reversed(node.bases):
        if isinstance(base, ast.Name) and base.id in reader.source.classes:
            owner = reader.source.classes[base.id]
            if owner is not node and record_kind(owner, reader.source) is kind:
                for field in kind(owner, reader):
                    found[field.name] = field
                continue
        outer = base.value if isinstance(base, ast.Subscript) else base
        if canonical(reader.source.resolve(outer) or ".") not in skip:
            reader.exact = False
    return found


def dataclass_fields(node, reader):
    found = inherited(node, reader, dataclass_fields, ("builtins.object", "typing.Generic", "abc.ABC", "typing.Protocol"))
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if reader.source.resolve(target) != "dataclasses.dataclass":
            reader.exact = False
    for name, hint, value, _ in annotated(node, reader):
        if isinstance(value, ast.Call) and reader.source.resolve(value.func) == FIELD_CALL:
            field = _from_call(name, hint, value, reader)
        else:
            field = reader.field(name, hint, value)
        if field is not None:
            found[name] = field
        else:
            found.pop(name, None)
    return list(found.values())


def _from_call(name, hint, call, reader):
    given = {one.arg: one.value for one in call.keywords}
    init = given.get("init")
    if isinstance(init, ast.Constant) and init.value is False:
        return None
    made = reader.field(name, hint, given.get("default"))
    if "default_factory" in given:
        made = Field(name, made.shape, False, MISSING)
    return made


def named_tuple_fields(node, reader):
    return [reader.field(name, hint, value) for name, hint, value, _ in annotated(node, reader)]


def typed_dict_fields(node, reader):
    total = next((one.value.value for one in node.keywords
                  if one.arg == "total" and isinstance(one.value, ast.Constant)), True)
    found = inherited(node, reader, typed_dict_fields, ("typing.TypedDict", "typing.Generic"))
    for name, hint, _, outer in annotated(node, reader):
        required = {"typing.Required": True, "typing.NotRequired": False}.get(outer, bool(total))
        found[name] = Field(name, reader.read(hint), required)
    return list(found.values())
