"""Hints: shapes of living type hints, in the scope of the file that wrote them.

Classes are looked at once for each tool (`Reader.seen`), so that a class which holds itself ends. What
is unknown to us goes to pydantic, if a tool file has imported it; nothing here imports it.
"""

import sys
import typing

from .docs import parse
from .families import MODIFIERS, canonical, compose
from .notes import keywords_of, note
from .plain import enum_value, plain
from .shapes import MISSING, Anything, Choice, Field, Foreign, HintError, Record, either


class Reader:
    """Reads the hints of one tool; `scope` has the names of its file, for hints that are strings."""

    def __init__(self, scope):
        self.scope = scope
        self.seen = {}

    def read(self, hint, scope=None):
        scope = self.scope if scope is None else scope
        # Quotes in a file whose hints are all quoted come twice.
        for _ in range(3):
            if isinstance(hint, typing.ForwardRef):
                hint = hint.__forward_arg__
            if not isinstance(hint, str):
                break
            hint = evaluate(hint, scope)
        if hint is None:
            return compose("builtins.None", ())
        origin = typing.get_origin(hint)
        if origin is None and isinstance(hint, type):
            return self._class(hint, scope)
        if origin is not None:
            return self._generic(hint, origin, scope)
        return self._special(hint, scope)

    def _generic(self, hint, origin, scope):
        arguments = typing.get_args(hint)
        name = name_of(origin)
        if name == "typing.Annotated" or hasattr(hint, "__metadata__"):
            return self._annotated(hint, scope)
        if name == "typing.Literal":
            return literal(arguments)
        if name in MODIFIERS:
            return self.read(arguments[0], scope)
        if hasattr(origin, "__value__"):
            return self.read(hint.__value__, scope)
        if name == "builtins.tuple" and not arguments and hint is not typing.Tuple and hint != tuple:
            arguments = ()
        inner = [one if one is Ellipsis else self.read(one, scope) for one in arguments if one != ()]
        made = compose(name, inner)
        if made is None and name.startswith(("collections.abc.Async", "collections.abc.Coroutine")):
            raise HintError("`%s` can't come as JSON" % name)
        if made is not None:
            return made
        if isinstance(origin, type):
            return self._class(origin, scope, hint)
        return self._unknown(hint)

    def _special(self, hint, scope):
        name = name_of(hint)
        if isinstance(hint, typing.TypeVar):
            if hint.__constraints__:
                return either([self.read(one, scope) for one in hint.__constraints__])
            return Anything() if hint.__bound__ is None else self.read(hint.__bound__, scope)
        if hasattr(hint, "__supertype__"):
            return self.read(hint.__supertype__, scope)
        if hasattr(hint, "__value__"):
            return self.read(hint.__value__, scope)
        made = compose(name, ())
        return self._unknown(hint) if made is None else made

    def _annotated(self, hint, scope):
        made, said = self.read(hint.__origin__, scope), {}
        for mark in hint.__metadata__:
            keywords = keywords_of(mark)
            if keywords is None and type(mark).__module__.partition(".")[0] == "pydantic" \
                    and type(mark).__name__ != "FieldInfo":
                return self._unknown(hint)
            said.update(keywords or {})
        return note(made, said)

    def _class(self, hint, scope, whole=None):
        made = compose(name_of(hint), ())
        if made is not None:
            return made
        if hint in self.seen:
            return self.seen[hint]
        if hasattr(hint, "__members__"):
            members = list(hint)
            made = Choice([enum_value(member) for member in members], members, hint.__name__, described(hint))
            self.seen[hint] = made
            return made
        if hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__get_pydantic_core_schema__"):
            return self._unknown(whole or hint)
        fields = fields_of(hint)
        if fields is None:
            return self._unknown(whole or hint)
        make = None if hasattr(hint, "__total__") else hint
        self.seen[hint] = made = Record(hint.__name__, make, described(hint))
        inner = vars(sys.modules.get(hint.__module__, typing))
        # Classes made inside of functions are not in their module: the tool's own scope is asked too.
        inner = dict(scope, **inner) if inner is not scope else scope
        made.fields = [self._field(hint, name, part, required, default, inner)
                       for name, part, required, default in fields]
        return made

    def _field(self, owner, name, hint, required, default, scope):
        try:
            return Field(name, self.read(hint, scope), required, shown(default))
        except HintError as error:
            raise HintError("field `%s` of `%s`: %s" % (name, owner.__name__, error)) from None

    def _unknown(self, hint):
        pydantic = sys.modules.get("pydantic")
        adapter = getattr(pydantic, "TypeAdapter", None)
        if adapter is not None:
            try:
                adapter = adapter(hint)
                return Foreign(adapter.json_schema(), adapter.json_schema(mode="serialization"), adapter)
            except Exception as error:  # pydantic's own words are the best that can be said of its types.
                raise HintError("pydantic can't make a schema of `%s`: %s" % (spell(hint), first_line(error))) from None
        raise HintError("`%s` can't come as JSON; use a dataclass, a TypedDict or a built-in type" % spell(hint))


def evaluate(text, scope):
    """The object that a hint in quotes means."""
    try:
        return eval(text, scope)  # The text is part of a tool file that is being run anyway.
    except TypeError as error:
        if sys.version_info < (3, 10) and "|" in text:
            return eval(unions(text), dict(scope, __toolman_union__=typing.Union))
        raise HintError("the hint `%s` can't be evaluated: %s" % (text, error)) from None
    except NameError as error:
        raise HintError("the hint `%s` can't be resolved: %s; import it at the top of the file, "
                        "outside of `if TYPE_CHECKING`" % (text, error)) from None
    except Exception as error:
        raise HintError("the hint `%s` can't be evaluated: %s" % (text, first_line(error))) from None


def unions(text):
    """The code of a hint in which `X | Y` is written for a Python that does not know it yet."""
    import ast

    class Rewrite(ast.NodeTransformer):
        def visit_BinOp(self, node):
            self.generic_visit(node)
            if not isinstance(node.op, ast.BitOr):
                return node
            both = ast.Tuple([node.left, node.right], ast.Load())
            return ast.Subscript(ast.Name("__toolman_union__", ast.Load()), both, ast.Load())

    return compile(ast.fix_missing_locations(Rewrite().visit(ast.parse(text, mode="eval"))), "<hint>", "eval")


def name_of(hint):
    module = getattr(hint, "__module__", None) or "typing"
    name = getattr(hint, "__qualname__", None) or getattr(hint, "_name", None) or getattr(hint, "__name__", None)
    return canonical("%s.%s" % (module, name or repr(hint).rpartition(".")[2]))


def literal(values):
    made = []
    for value in values:
        one = enum_value(value) if hasattr(type(value), "__members__") else plain(value)
        if not any(one is seen or (type(one) is type(seen) and one == seen) for seen in made):
            made.append(one)
    members = list(values) if any(hasattr(type(value), "__members__") for value in values) else None
    return Choice(made, members if members and len(members) == len(made) else None)


def fields_of(hint):
    """The fields of a record as (name, hint, required, default), or None if a class is no record."""
    if hasattr(hint, "__dataclass_fields__"):
        return [one for one in map(_dataclass_field, hint.__dataclass_fields__.values()) if one]
    if hasattr(hint, "__total__") and hasattr(hint, "__required_keys__"):
        return [(name, part, _is_required(hint, name, part), MISSING)
                for name, part in all_annotations(hint).items()]
    if issubclass(hint, tuple) and isinstance(getattr(hint, "_fields", None), tuple):
        hints, defaults = all_annotations(hint), hint._field_defaults
        return [(name, hints.get(name, typing.Any), name not in defaults, defaults.get(name, MISSING))
                for name in hint._fields]
    return None


def all_annotations(hint):
    made = {}
    for one in reversed(hint.__mro__ if not hasattr(hint, "__total__") else (hint,)):
        made.update(getattr(one, "__annotations__", None) or {})
    return made


def _dataclass_field(field):
    if field._field_type.name == "_FIELD_CLASSVAR" or not field.init:
        return None
    missing = sys.modules["dataclasses"].MISSING
    default = MISSING if field.default is missing else field.default
    required = default is MISSING and field.default_factory is missing
    hint = field.type
    return (field.name, getattr(hint, "type", hint) if type(hint).__name__ == "InitVar" else hint,
            required, default)


def _is_required(owner, name, hint):
    # Hints in quotes hide `NotRequired` from the class itself, so the text is asked as well.
    text = getattr(hint, "__forward_arg__", hint if isinstance(hint, str) else "").replace(" ", "")
    if "NotRequired[" in text:
        return False
    if "Required[" in text:
        return True
    return name in owner.__required_keys__


def described(hint):
    """What a class says about itself, not what the library wrote for it."""
    text = vars(hint).get("__doc__")
    if not isinstance(text, str) or text == "An enumeration." or text.startswith(hint.__name__ + "("):
        return None
    return parse(text)[0]


def shown(default):
    """A default as a schema shows it: nothing if it has no JSON form."""
    if default is MISSING:
        return MISSING
    try:
        made = plain(default)
    except Exception:
        return MISSING
    return MISSING if made is None and default is not None else made


def spell(hint):
    return getattr(hint, "__qualname__", None) or str(hint).replace("typing.", "")


def first_line(error):
    return (str(error).strip().split("\n") or [""])[0][:300] or type(error).__name__
