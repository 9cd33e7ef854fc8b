"""Families: shapes composed by the names of types, alike for living hints and for source text.

A name is the place where a type is defined (`builtins.list`, `datetime.date`); `canonical` brings the
other names of the same type (`typing.List`) to it.
"""

from .shapes import (
    NULL, Anything, Array, Content, Fixed, HintError, Injected, Map, Scalar, Text, either,
)

LEAVES = {
    "builtins.str": lambda: Scalar("string"),
    "builtins.int": lambda: Scalar("integer"),
    "builtins.float": lambda: Scalar("number"),
    "builtins.bool": lambda: Scalar("boolean"),
    "builtins.None": lambda: NULL,
    "builtins.NoneType": lambda: NULL,
    "types.NoneType": lambda: NULL,
    "builtins.object": Anything,
    "typing.Any": Anything,
    "builtins.bytes": lambda: Text("byte"),
    "builtins.bytearray": lambda: Text("byte"),
    "datetime.datetime": lambda: Text("date-time"),
    "datetime.date": lambda: Text("date"),
    "datetime.time": lambda: Text("time"),
    "datetime.timedelta": lambda: Text("duration"),
    "uuid.UUID": lambda: Text("uuid"),
    "decimal.Decimal": lambda: Text("decimal"),
    "pathlib.Path": lambda: Text("path"),
    "pathlib.PurePath": lambda: Text("path"),
    "pathlib.PosixPath": lambda: Text("path"),
    "os.PathLike": lambda: Text("path"),
}

SEQUENCES = {
    "builtins.list": "list",
    "collections.deque": "list",
    "collections.abc.Sequence": "list",
    "collections.abc.MutableSequence": "list",
    "collections.abc.Collection": "list",
    "collections.abc.Iterable": "list",
    "builtins.set": "set",
    "collections.abc.Set": "set",
    "collections.abc.MutableSet": "set",
    "builtins.frozenset": "frozenset",
}

# What a function may promise to return, though nobody could pass it in.
STREAMS = ("collections.abc.Iterator", "collections.abc.Generator")

MAPPINGS = (
    "builtins.dict", "collections.OrderedDict", "collections.defaultdict",
    "collections.abc.Mapping", "collections.abc.MutableMapping",
)

# What stands around a hint and changes nothing in its shape.
MODIFIERS = ("typing.Required", "typing.NotRequired", "typing.ReadOnly", "typing.Final", "dataclasses.InitVar")

UNIONS = ("typing.Union", "types.UnionType")

TYPING = {
    "List": "builtins.list", "Set": "builtins.set", "FrozenSet": "builtins.frozenset",
    "Tuple": "builtins.tuple", "Dict": "builtins.dict", "Text": "builtins.str", "Type": "builtins.type",
    "Deque": "collections.deque", "DefaultDict": "collections.defaultdict",
    "OrderedDict": "collections.OrderedDict", "AbstractSet": "collections.abc.Set",
    "Sequence": "collections.abc.Sequence", "MutableSequence": "collections.abc.MutableSequence",
    "MutableSet": "collections.abc.MutableSet", "Mapping": "collections.abc.Mapping",
    "MutableMapping": "collections.abc.MutableMapping", "Collection": "collections.abc.Collection",
    "Iterable": "collections.abc.Iterable", "Iterator": "collections.abc.Iterator",
    "Generator": "collections.abc.Generator", "Callable": "collections.abc.Callable",
}

CONTEXTS = ("fastmcp.Context", "mcp.server.Context")
CONTENT_NAMES = (
    "Image", "Audio", "File", "TextContent", "ImageContent", "AudioContent", "EmbeddedResource",
    "ResourceLink", "ContentBlock", "ToolResult", "CallToolResult",
)
LIBRARIES = ("fastmcp", "mcp", "mcp_types")


def canonical(name):
    """The one name of a type that has several."""
    # Parametrised classes of pydantic carry their arguments in their name.
    module, _, last = name.partition("[")[0].rpartition(".")
    if module == "typing_extensions":
        module = "typing"
    if module.startswith("pathlib."):
        module = "pathlib"
    if module == "typing" and last in TYPING:
        return TYPING[last]
    top = module.partition(".")[0]
    if top in LIBRARIES:
        if last == "Context":
            return CONTEXTS[0]
        if last in CONTENT_NAMES:
            return "fastmcp." + last
    return module + "." + last


def compose(name, arguments):
    """The shape of a known type with its arguments (shapes), or None for a type of nobody's family."""
    if name in LEAVES and not arguments:
        return LEAVES[name]()
    if name in SEQUENCES or name in STREAMS:
        return Array(arguments[0] if arguments else Anything(), SEQUENCES.get(name, "list"))
    if name == "builtins.tuple":
        if not arguments:
            return Array(Anything(), "tuple")
        if arguments[-1] is Ellipsis:
            return Array(arguments[0], "tuple")
        return Fixed(list(arguments))
    if name in MAPPINGS:
        key, value = arguments if len(arguments) == 2 else (Scalar("string"), Anything())
        return Map(key, value)
    if name in UNIONS:
        return either(arguments)
    if name == "typing.Optional":
        return either(list(arguments) + [NULL])
    if name in CONTEXTS:
        return Injected()
    if name.startswith("fastmcp.") and name[8:] in CONTENT_NAMES:
        return Content()
    if name in ("builtins.type", "collections.abc.Callable"):
        raise HintError("`%s` can't come as JSON" % name.rpartition(".")[2])
    return None
