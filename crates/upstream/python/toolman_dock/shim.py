"""The shim: the modules `fastmcp` and `mcp.server.fastmcp` for interpreters that have no such library.

A finder at the end of the search provides them, so an installed library always wins. They hold what tool
files use: the decorators, `Context`, the helpers for media, the exceptions. `Field` of `pydantic`, which whoever has
fastmcp has too, is in `standin`.
"""

import sys
import types
from importlib.machinery import ModuleSpec

from .answers import AcceptedElicitation, CancelledElicitation, DeclinedElicitation
from .context import Context
from .faults import add
from .media import Audio, File, Image
from .offers import PROMPT, RESOURCE, AssistantMessage, Message, UserMessage, mark as offer
from .registry import decorate, mark, tool


class ToolError(Exception):
    """An error whose text is meant for the caller."""


class FastMCPError(Exception):
    """The base of fastmcp's errors, for files that catch it."""


class FastMCP:
    """Stands where a server would: it only collects tools, resources and prompts."""

    def __init__(self, name=None, *_, **__):
        self.name = name

    def tool(self, name_or_fn=None, **options):
        return decorate(name_or_fn, options, sys._getframe(1))

    def add_tool(self, function, name=None, **options):
        inner = getattr(function, "fn", function)
        if name is not None:
            options["name"] = name
        return mark(inner, options, sys._getframe(1))

    def resource(self, uri, **options):
        frame = sys._getframe(1)
        return lambda function: offer(RESOURCE, uri, function, options, frame)

    def prompt(self, name_or_fn=None, **options):
        frame = sys._getframe(1)
        if isinstance(name_or_fn, str):
            options["name"] = name_or_fn
        elif name_or_fn is not None:
            return offer(PROMPT, None, name_or_fn, options, frame)
        return lambda function: offer(PROMPT, None, function, options, frame)

    def run(self, *_, **__):
        raise RuntimeError("the dock runs this server; call `run` only below `if __name__ == \"__main__\"`")

    run_async = run

    def __getattr__(self, name):
        if name == "custom_route":
            return _ignored
        raise AttributeError("the built-in FastMCP has no `%s`; %s" % (name, add("fastmcp")))


def _ignored(*_, **__):
    """Routes are not served by the dock; their functions stay what they are."""
    return lambda function: function


class ToolResult:
    """A whole result: content for people, structured content for programs."""

    def __init__(self, content=None, structured_content=None, meta=None):
        self.content, self.structured_content, self.meta = content, structured_content, meta


def _block(name, kind):
    """A content block as `mcp.types` has it: named members in, a dictionary out."""
    def new(self, **members):
        dict.__init__(self, members, **({"type": kind} if kind else {}))

    return type(name, (dict,), {"__init__": new, "__module__": "mcp.types"})


for _kind, _module in ((Context, "fastmcp.server.context"), (Image, "fastmcp.utilities.types"),
                       (Audio, "fastmcp.utilities.types"), (File, "fastmcp.utilities.types"),
                       (ToolResult, "fastmcp.tools.tool"), (ToolError, "fastmcp.exceptions"),
                       (FastMCP, "fastmcp.server"), (FastMCPError, "fastmcp.exceptions")):
    # Where a tool file would find them in the real library: hints are told apart by that.
    _kind.__module__ = _module

TYPES = {name: _block(name, kind) for name, kind in (
    ("TextContent", "text"), ("ImageContent", "image"), ("AudioContent", "audio"),
    ("EmbeddedResource", "resource"), ("ResourceLink", "resource_link"), ("ToolAnnotations", None))}

EXPORTS = {
    "fastmcp": {"FastMCP": FastMCP, "Context": Context, "Image": Image, "__version__": "0"},
    "fastmcp.tools": {"tool": tool, "ToolResult": ToolResult},
    "fastmcp.tools.tool": {"ToolResult": ToolResult},
    "fastmcp.exceptions": {"ToolError": ToolError, "FastMCPError": FastMCPError},
    "fastmcp.server": {"FastMCP": FastMCP, "Context": Context},
    "fastmcp.server.context": {"Context": Context},
    "fastmcp.server.elicitation": {kind.__name__: kind for kind in (AcceptedElicitation, DeclinedElicitation, CancelledElicitation)},
    "fastmcp.prompts": {"Message": Message},
    "fastmcp.prompts.prompt": {"Message": Message},
    "mcp.server.fastmcp.prompts": {},
    "mcp.server.fastmcp.prompts.base": {"Message": Message, "UserMessage": UserMessage, "AssistantMessage": AssistantMessage},
    "fastmcp.utilities": {},
    "fastmcp.utilities.types": {"Image": Image, "Audio": Audio, "File": File},
    "mcp": {},
    "mcp.types": TYPES,
    "mcp.server": {},
    "mcp.server.fastmcp": {"FastMCP": FastMCP, "Context": Context, "Image": Image, "Audio": Audio},
    "mcp.server.fastmcp.exceptions": {"ToolError": ToolError},
}


class CallableModule(types.ModuleType):
    """A module that is a decorator as well: `fastmcp.tools.tool` is one or the other, by version."""

    def __call__(self, name_or_fn=None, **options):
        return decorate(name_or_fn, options, sys._getframe(1))


class ShimFinder:
    """Finds the modules above, where nobody else did."""

    def find_spec(self, name, path=None, target=None):
        if name not in EXPORTS:
            return None
        top = name.partition(".")[0]
        parent = sys.modules.get(top)
        if parent is not None and parent is not self and not hasattr(parent, "__toolman_shim__"):
            # A real library that lacks this module must say so itself.
            return None
        return ModuleSpec(name, self, origin="toolman", is_package=True)

    def create_module(self, spec):
        return CallableModule(spec.name) if spec.name == "fastmcp.tools.tool" else None

    def exec_module(self, module):
        module.__toolman_shim__ = True
        module.__path__ = []
        for name, value in EXPORTS[module.__name__].items():
            setattr(module, name, value)


class ToolModuleFinder:
    """Makes the module `fastmcp.tools.tool` of the real fastmcp 2 a decorator, when it is loaded.

    There `from fastmcp.tools import tool` gives a module, so the pattern that newer versions document would
    fail. The module keeps its attributes and its identity; only its class changes.
    """

    def find_spec(self, name, path=None, target=None):
        if name != "fastmcp.tools.tool" or path is None:
            return None
        from importlib.machinery import PathFinder

        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = PatchingLoader(spec.loader)
        return spec


class PatchingLoader:
    """Loads as the loader below does, then changes the class of the module."""

    def __init__(self, inner):
        self._inner = inner

    def __getattr__(self, name):
        return getattr(self._inner, name)

    def create_module(self, spec):
        return self._inner.create_module(spec)

    def exec_module(self, module):
        self._inner.exec_module(module)
        module.__class__ = CallableModule


def install():
    sys.meta_path.insert(0, ToolModuleFinder())
    sys.meta_path.append(ShimFinder())
