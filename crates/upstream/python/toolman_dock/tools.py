"""Tools: a marked function with its definition, and how arguments become a call of it."""

import types

from .definition import admit_default, define, describe, given_output, method_fault, name_fault, output_of
from .docs import parse
from .hints import Reader, shown
from .intake import take_fields
from .notes import keywords_of, note
from .registry import unwrap
from .shapes import MISSING, Anything, Field, Foreign, HintError, holds, is_context
from .signature import CO_ASYNC_GENERATOR, flags_of, is_async, parameters


class InvalidArguments(Exception):
    """Arguments that do not fit a tool; `errors` names every fault."""

    def __init__(self, errors):
        super().__init__("; ".join("%s: %s" % (one["path"] or "/", one["message"]) for one in errors[:5]))
        self.errors = errors


class Tool:
    """A tool that can be called. `run` is set for tools that know themselves how to (of a real library)."""

    def __init__(self, name, function, definition):
        self.name, self.function, self.definition = name, function, definition
        self.fields, self.extra, self.positional, self.contexts = (), False, (), ()
        self.output, self.wrapped, self.adapter = definition.get("outputSchema"), False, None
        self.defaults, self.asynchronous, self.run = {}, False, None

    def is_exact(self):
        """Whether types, names and limits of its schema mean what we do with arguments; models go by rules of their own."""
        return self.run is None and not any(holds(field.shape, Foreign) for field in self.fields)

    def bind(self, arguments, context):
        """The positional and named arguments of the call."""
        errors = []
        values = take_fields(self.fields, arguments, "", errors, self.extra)
        if errors:
            raise InvalidArguments(errors[:50])
        for name, make in self.defaults.items():
            if name not in values:
                values[name] = make()
        for name in self.contexts:
            values[name] = context
        first = []
        for name in self.positional:
            if name not in values:
                break
            first.append(values.pop(name))
        return first, values


def build(function, options):
    """The tool of a marked function; HintError says why it can't be one."""
    name = options.get("name") or getattr(function, "__name__", None) or type(function).__name__
    fault = name_fault(name)
    if fault:
        raise HintError(fault)
    if flags_of(function) & CO_ASYNC_GENERATOR:
        raise HintError("the tool `%s` is an async generator; return a list instead" % name)
    found, has_return, return_hint, scope = parameters(function)
    owner = getattr(function, "__qualname__", "").rpartition(".")[0]
    if found and owner and not owner.endswith("<locals>") and isinstance(function, types.FunctionType):
        fault = method_fault(name, owner, found[0].name)
        if fault:
            raise HintError(fault)
    reader = Reader(scope)
    tool = Tool(name, function, {})
    fields, contexts, positional = [], [], []
    for parameter in found:
        if parameter.place == "rest":
            raise HintError("the tool `%s` takes `*%s`, which has no names for a caller; use a list" % (name, parameter.name))
        if parameter.place == "others":
            tool.extra = True
            continue
        field = _field(name, parameter, reader, tool)
        if is_context(field.shape):
            contexts.append(field.name)
        else:
            fields.append(field)
        if parameter.place == "positional":
            positional.append(field.name)
    described, told = parse(getattr(unwrap(function), "__doc__", None) or None)
    tool.fields, tool.contexts, tool.positional = describe(fields, told), contexts, positional
    tool.output, tool.wrapped, tool.adapter = _output(options, has_return, return_hint, reader)
    tool.asynchronous = is_async(function)
    tool.definition = define(name, options, described, fields, tool.extra, tool.output)
    return tool


def _field(tool_name, parameter, reader, tool):
    try:
        shape = reader.read(parameter.hint) if parameter.has_hint else Anything()
    except HintError as error:
        raise HintError("the parameter `%s` of `%s`: %s" % (parameter.name, tool_name, error)) from None
    default, required = parameter.default if parameter.has_default else MISSING, not parameter.has_default
    keywords = _field_keywords(default)
    if keywords is not None:
        shape = note(shape, keywords)
        default, factory = keywords.get("default", MISSING), keywords.get("default_factory")
        required = default is MISSING and factory is None
        if not required:
            value = default
            tool.defaults[parameter.name] = factory if factory is not None else (lambda: value)
    return admit_default(Field(parameter.name, shape, required, shown(default)))


def _field_keywords(default):
    """The keywords of a `Field(...)` that stands where a default does, or None."""
    if hasattr(default, "__toolman_field__"):
        said = dict(default.__toolman_field__)
    elif type(default).__name__ == "FieldInfo" and type(default).__module__.startswith("pydantic"):
        said = keywords_of(default) or {}
        said["default"], said["default_factory"] = default.default, default.default_factory
    else:
        return None
    # Both libraries say "required" with a value of their own, or with an ellipsis.
    if "default" in said and (said["default"] is Ellipsis or type(said["default"]).__name__ == "PydanticUndefinedType"):
        del said["default"]
    return said


def _output(options, has_return, hint, reader):
    if "output_schema" in options and options["output_schema"] is not Ellipsis:
        return given_output(options["output_schema"]) + (None,)
    if not has_return:
        return None, False, None
    try:
        shape = reader.read(hint)
        return output_of(shape) + (getattr(shape, "adapter", None),)
    except HintError:
        # A result that can't be promised can still be returned.
        return None, False, None
