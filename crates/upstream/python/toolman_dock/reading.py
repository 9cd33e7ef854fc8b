"""Reading: shapes of type hints in source text, by the names that they are written with.

What can't be known without running the file becomes "anything", and `exact` turns false.
"""

import ast

from .docs import parse
from .families import MODIFIERS, canonical, compose
from .notes import KNOWN, note
from .plain import enum_json, plain
from .shapes import MISSING, Anything, Choice, Field, Record, either

DEPTH_MAX = 100
# Parts of the hints of one tool: names that stand for two of a kind double with each of them.
READS_MAX = 20000
ENUMS = {"enum.Enum": "plain", "enum.IntEnum": "plain", "enum.StrEnum": "text", "enum.ReprEnum": "plain"}
EMPTY = {"builtins.list": [], "builtins.dict": {}, "builtins.set": [], "builtins.tuple": [], "builtins.frozenset": []}


class Unknown(Exception):
    """A value that only running the file would tell."""


class HintReader:
    """Reads the hints of one tool; `exact` says whether all of it was understood."""

    def __init__(self, source):
        self.source, self.exact, self.seen, self._depth = source, True, {}, 0
        self._reads, self._open = 0, set()

    def read(self, node):
        self._depth += 1
        self._reads += 1
        try:
            is_bounded = self._depth <= DEPTH_MAX and self._reads <= READS_MAX
            return self._read(node) if is_bounded else self._unknown()
        finally:
            self._depth -= 1

    def _unknown(self):
        self.exact = False
        return Anything(known=False)

    def _read(self, node):
        if isinstance(node, ast.Constant):
            if node.value is None:
                return compose("builtins.None", ())
            if isinstance(node.value, str):
                try:
                    return self.read(ast.parse(node.value.strip(), mode="eval").body)
                except (SyntaxError, ValueError):
                    return self._unknown()
            return self._unknown()
        if isinstance(node, (ast.Name, ast.Attribute)):
            return self._named(node)
        if isinstance(node, ast.Subscript):
            return self._subscript(node)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return either([self.read(node.left), self.read(node.right)])
        return self._unknown()

    def _named(self, node):
        if not self.source.is_sure(node):
            return self._unknown()
        if isinstance(node, ast.Name):
            if node.id in self.source.classes:
                return self._class(self.source.classes[node.id])
            value = self.source.values.get(node.id)
            if isinstance(value, ast.AST):
                return self._alias(node.id, value)
        name = self.source.resolve(node)
        made = None if name is None else compose(canonical(name), ())
        return self._unknown() if made is None else made

    def _alias(self, name, value):
        if isinstance(value, (ast.Call, ast.Constant)) or name in self._open:
            # A name that stands for something with itself in it has no end.
            return self._unknown()
        self._open.add(name)
        try:
            return self.read(value)
        finally:
            self._open.discard(name)

    def _subscript(self, node):
        parts = list(node.slice.elts) if isinstance(node.slice, ast.Tuple) else [node.slice]
        name = self.source.resolve(node.value) if self.source.is_sure(node.value) else None
        if name is None:
            if isinstance(node.value, ast.Name) and node.value.id in self.source.classes:
                self.exact = False
                return self._class(self.source.classes[node.value.id])
            return self._unknown()
        name = canonical(name)
        if name == "typing.Literal":
            return self._literal(parts)
        if name == "typing.Annotated":
            return self._annotated(parts)
        if name in MODIFIERS:
            return self.read(parts[0])
        arguments = [Ellipsis if isinstance(one, ast.Constant) and one.value is Ellipsis else self.read(one)
                     for one in parts]
        made = compose(name, arguments)
        return self._unknown() if made is None else made

    def _literal(self, parts):
        try:
            values, kept = [self.value(part) for part in parts], []
        except Unknown:
            return self._unknown()
        for value in values:
            if not any(type(value) is type(seen) and value == seen for seen in kept):
                kept.append(value)
        return Choice(kept)

    def _annotated(self, parts):
        made, said = self.read(parts[0]), {}
        for part in parts[1:]:
            if isinstance(part, ast.Constant) and isinstance(part.value, str):
                said["description"] = part.value
            elif isinstance(part, ast.Call):
                said.update(self.keywords(part) or {})
            else:
                self.exact = False
        return note(made, said)

    def keywords(self, call):
        """The keywords of a call of `Field`, or None if it is another call."""
        name = (self.source.resolve(call.func) or "").rpartition(".")
        if name[2] != "Field" or name[0].partition(".")[0] != "pydantic":
            self.exact = False
            return None
        said = {}
        given = [("default", one) for one in call.args[:1]]
        for key, value in given + [(one.arg, one.value) for one in call.keywords]:
            if isinstance(value, ast.Constant) and value.value is Ellipsis:
                continue
            try:
                said[key] = True if key == "default_factory" else self.value(value)
            except Unknown:
                self.exact = False
                if key == "default":
                    said["default_factory"] = True
            if key not in KNOWN:
                self.exact = False
        return said

    def value(self, node):
        """The JSON form of a value in the source: literals, and members of enumerations in the file."""
        try:
            return plain(ast.literal_eval(node))
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            pass
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and self.source.is_sure(node.value):
            owner = self.source.classes.get(node.value.id)
            made = self._enum(owner) if owner is not None else None
            if made is not None and node.attr in made.members:
                return made.values[made.members.index(node.attr)]
        if isinstance(node, ast.Name) and self.source.is_sure(node):
            value = self.source.values.get(node.id)
            # One step only: names that stand for names can go round in circles.
            if isinstance(value, ast.AST) and not isinstance(value, ast.Name):
                return self.value(value)
        if isinstance(node, ast.Call) and not node.args and not node.keywords:
            name = self.source.resolve(node.func)
            if name in EMPTY:
                return EMPTY[name]
        raise Unknown

    def _class(self, node):
        if node.name in self.seen:
            return self.seen[node.name]
        made = self._enum(node)
        if made is not None:
            self.seen[node.name] = made
            return made
        from .records import record_kind

        kind = record_kind(node, self.source)
        if kind is None:
            return self._unknown()
        self.seen[node.name] = made = Record(node.name, None, described(node))
        made.fields = kind(node, self)
        return made

    def _enum(self, node):
        kinds = [ENUMS.get(canonical(self.source.resolve(base) or ".")) for base in node.bases]
        kind = next((one for one in kinds if one), None)
        if kind is None or node.decorator_list and not self._all_unique(node):
            return None
        values, names, last = [], [], 0
        seen = []
        for statement in node.body:
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            if not isinstance(target, ast.Name) or target.id.startswith("_"):
                continue
            value = self._member(statement.value, target.id, kind, last)
            if any(type(value) is type(one) and value == one for one in seen):
                continue
            last = value if isinstance(value, int) else last
            seen.append(value)
            values.append(enum_json(value, target.id))
            names.append(target.id)
        return Choice(values, names, node.name, described(node))

    def _all_unique(self, node):
        return all(self.source.resolve(one) == "enum.unique" for one in node.decorator_list)

    def _member(self, node, name, kind, last):
        if isinstance(node, ast.Call) and self.source.resolve(node.func) == "enum.auto":
            return name.lower() if kind == "text" else last + 1
        try:
            return ast.literal_eval(node)
        except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
            self.exact = False
            return name

    def field(self, name, hint, default):
        """A field of a record or a parameter; `default` is a node or None."""
        shape = self.read(hint) if hint is not None else Anything()
        required, shown = default is None, MISSING
        if default is not None:
            if isinstance(default, ast.Call) and (self.source.resolve(default.func) or "").endswith(".Field"):
                said = self.keywords(default) or {}
                shape = note(shape, said)
                shown = said.get("default", MISSING)
                required = shown is MISSING and not said.get("default_factory")
            else:
                try:
                    shown = self.value(default)
                except Unknown:
                    self.exact = False
        return Field(name, shape, required, shown)


def described(node):
    from .source import docstring

    return parse(docstring(node))[0]
