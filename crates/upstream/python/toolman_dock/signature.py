"""Signatures: the parameters of a function, without `inspect` where a function is a plain one.

`inspect` alone costs a third of the time in which a worker should be ready.
"""

import types

from .registry import unwrap

CO_VARARGS, CO_VARKEYWORDS = 0x04, 0x08
CO_GENERATOR, CO_COROUTINE, CO_ASYNC_GENERATOR = 0x20, 0x80, 0x200


class Parameter:
    """One parameter; `place` is positional, either, keyword, rest or others."""

    __slots__ = ("name", "place", "default", "hint", "has_default", "has_hint")

    def __init__(self, name, place, has_default, default, has_hint, hint):
        self.name, self.place = name, place
        self.has_default, self.default = has_default, default
        self.has_hint, self.hint = has_hint, hint


def parameters(function):
    """The parameters of a callable and its return hint, as (parameters, has_return, return_hint, scope)."""
    target = unwrap(function)
    if type(target) is types.FunctionType and "__signature__" not in vars(target):
        return _plain(target)
    return _inspected(function)


def _plain(function):
    code, hints = function.__code__, function.__annotations__
    defaults, named = function.__defaults__ or (), function.__kwdefaults__ or {}
    names, found = code.co_varnames, []
    count = code.co_argcount
    for index in range(count):
        position = index - (count - len(defaults))
        has_default = position >= 0
        found.append(_one(names[index], "positional" if index < code.co_posonlyargcount else "either",
                          has_default, defaults[position] if has_default else None, hints))
    end = count + code.co_kwonlyargcount
    for name in names[count:end]:
        found.append(_one(name, "keyword", name in named, named.get(name), hints))
    if code.co_flags & CO_VARARGS:
        found.append(_one(names[end], "rest", False, None, hints))
        end += 1
    if code.co_flags & CO_VARKEYWORDS:
        found.append(_one(names[end], "others", False, None, hints))
    return found, "return" in hints, hints.get("return"), function.__globals__


def _one(name, place, has_default, default, hints):
    return Parameter(name, place, has_default, default, name in hints, hints.get(name))


def _inspected(function):
    import inspect

    places = dict(zip((inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD,
                       inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.VAR_POSITIONAL,
                       inspect.Parameter.VAR_KEYWORD), ("positional", "either", "keyword", "rest", "others")))
    signature, empty = inspect.signature(function), inspect.Parameter.empty
    found = [Parameter(one.name, places[one.kind], one.default is not empty, one.default,
                       one.annotation is not empty, one.annotation)
             for one in signature.parameters.values()]
    inner = getattr(function, "func", function)
    inner = inner if hasattr(inner, "__globals__") else getattr(type(inner), "__call__", inner)
    scope = getattr(unwrap(inner), "__globals__", {})
    hint = signature.return_annotation
    return found, hint is not empty, hint, scope


def is_async(function):
    """Whether calling the function makes a coroutine. Others may still return one."""
    return bool(flags_of(function) & CO_COROUTINE)


def flags_of(function):
    for _ in range(100):
        function = getattr(function, "func", None) or getattr(function, "__func__", function)
        code = getattr(function, "__code__", None)
        if code is not None:
            return code.co_flags
        call = getattr(type(function), "__call__", None)
        if call is None or call is function or type(call).__name__ in ("wrapper_descriptor", "method-wrapper"):
            return 0
        function = call
    return 0
