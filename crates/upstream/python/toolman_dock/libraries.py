"""Libraries: the tools of a real fastmcp or mcp that is installed in the environment.

A tool made from a function is served by its function, with our schema, validation and context: so a file
means the same whether the library is installed or not. Tools that have no function of their own
(transformed ones, proxies) keep the library's schema and are run by the library.
"""

import os
import sys

from .definition import OPTIONS, name_fault, title_of
from .offers import PROMPT, RESOURCE, Offer
from .plain import plain
from .registry import Mark, first_line, unwrap
from .shapes import HintError
from .tools import Tool, build

# Which file was the first to show a tool of a server, for tools that no function ties to a file.
SERVED = {}
TOOL_CLASSES = ("FastMCP", "MCPServer")


def marks(module, path, known):
    """What the module's servers, and the library's own decorator, hold."""
    values = list(vars(module).values())
    found, names = [], set()
    for server in values:
        if _of_library(type(server)) and _is_server(server):
            for tool in server_tools(server):
                names.add(tool.name)
                mark = _mark(tool, path)
                if mark is not None and (not _is_built(mark) or _first(server, tool, path)):
                    found.append(mark)
    for value in values:
        # The decorators of newer servers leave this mark as well; the server knows more of such a tool.
        meta = getattr(value, "__fastmcp__", None) if callable(value) else None
        if getattr(meta, "type", None) == "tool" and (meta.name or value.__name__) not in names:
            found.append(Mark(value, _options(meta), path, first_line(value)))
    seen, kept = set(known), []
    for mark in found:
        if id(mark.function) not in seen:
            seen.add(id(mark.function))
            code = getattr(unwrap(mark.function), "__code__", None)
            if code is None or code.co_filename == path:
                kept.append(mark)
    return kept


def _is_built(mark):
    return bool(mark.options.get("built") or mark.options.get("fault"))


def _first(server, tool, path):
    """Whether a tool without a function of its own belongs to this file, of all that import its server."""
    for _ in range(20):
        code = getattr(unwrap(getattr(tool, "fn", None)), "__code__", None)
        parent = getattr(tool, "parent_tool", None)
        if parent is None:
            break
        tool = parent
    if code is not None:
        return code.co_filename == path
    key = (id(server), tool.name)
    return SERVED.setdefault(key, path) == path


def _of_library(kind):
    return any(one.__module__.partition(".")[0] in ("fastmcp", "mcp") for one in kind.__mro__)


def _is_server(value):
    return any(one.__name__ in TOOL_CLASSES for one in type(value).__mro__)


def server_tools(server):
    """The tool objects of a server, whatever its version calls the way to them."""
    manager = getattr(server, "_tool_manager", None)
    tools = getattr(manager, "_tools", None)
    if isinstance(tools, dict):
        return list(tools.values())
    for name in ("list_tools", "get_tools"):
        if hasattr(server, name):
            import asyncio

            tools = asyncio.run(getattr(server, name)())
            return list(tools.values()) if isinstance(tools, dict) else list(tools)
    return []


def server_offers(module, path):
    """The resources and prompts of a module's servers, as far as functions of this file give them."""
    found = []
    for server in list(vars(module).values()):
        if not (_of_library(type(server)) and _is_server(server)):
            continue
        for kind, name, managed in ((RESOURCE, "resources", ("_resource_manager", "_resources")),
                                    (RESOURCE, "resource_templates", ("_resource_manager", "_templates")),
                                    (PROMPT, "prompts", ("_prompt_manager", "_prompts"))):
            for one in _held(server, name, managed):
                function = _original(getattr(one, "fn", None), path)
                if function is None:
                    continue
                key = getattr(one, "uri_template", None) or getattr(one, "uri", None)
                options = {option: getattr(one, option, None) for option in ("name", "title", "description", "mime_type")}
                found.append(Offer(kind, None if key is None else str(key), function, options, path, first_line(function)))
    return found


def _original(function, path):
    """The function of this file that a library may have put into one of its own; it would ask for a context of its own."""
    inner = unwrap(function)
    cells = [cell.cell_contents for cell in getattr(inner, "__closure__", None) or () if callable(cell.cell_contents)]
    for one in [function] + cells:
        code = getattr(unwrap(one), "__code__", None)
        if code is not None and code.co_filename == path:
            return one
    return None


def _held(server, name, managed):
    """What a server holds of a kind, whatever its version calls the way to it."""
    held = getattr(getattr(server, managed[0], None), managed[1], None)
    if isinstance(held, dict):
        return list(held.values())
    for way in ("list_" + name, "get_" + name):
        if hasattr(server, way):
            import asyncio

            held = asyncio.run(getattr(server, way)())
            return list(held.values()) if isinstance(held, dict) else list(held)
    return []


def _mark(tool, path):
    function = getattr(tool, "fn", None)
    options = _options(tool)
    if options.get("enabled") is False:
        return None
    if function is not None and _is_plain(tool, function, options):
        return Mark(function, options, path, first_line(function))
    try:
        return Mark(_run_by_library(tool), dict(options, built=True), path, None)
    except HintError as error:
        return Mark(tool, {"fault": str(error)}, path, None)


def _is_plain(tool, function, options):
    """Whether the library gives the function exactly what a caller gives the tool.

    It fills parameters by itself (`Depends`) and leaves others out (`exclude_args`); those it must run.
    """
    if type(tool).__name__ not in ("FunctionTool", "Tool"):
        return False
    listed = (getattr(tool, "parameters", None) or {}).get("properties")
    try:
        ours = build(function, options).definition["inputSchema"]["properties"]
    except HintError:
        return True
    return listed is None or set(listed) == set(ours)


def _options(source):
    found = {}
    for name in OPTIONS:
        if name == "output_schema":
            continue
        value = getattr(source, name, None)
        if value is not None and not callable(value):
            found[name] = value
    if "annotations" in found:
        dumped = found["annotations"]
        if hasattr(dumped, "model_dump"):
            found["annotations"] = dumped.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found


def _run_by_library(tool):
    fault = name_fault(tool.name)
    if fault:
        raise HintError(fault)
    definition = tool.to_mcp_tool().model_dump(mode="json", by_alias=True, exclude_none=True)
    definition["name"] = tool.name
    definition.setdefault("title", title_of(tool.name, definition.get("annotations")))
    made = Tool(tool.name, tool, plain(definition))
    made.extra, made.asynchronous = True, True
    made.wrapped = bool((made.output or {}).get("x-fastmcp-wrap-result"))

    async def run(arguments):
        return await tool.run(arguments)

    made.run = run
    return made


def version():
    """The version of the real fastmcp that this interpreter has, or None; asked without importing it."""
    for folder in sys.path:
        if folder.endswith("-packages"):
            try:
                names = os.listdir(folder)
            except OSError:
                continue
            for name in names:
                if name.startswith("fastmcp-") and name.endswith(".dist-info"):
                    return name[len("fastmcp-"):-len(".dist-info")]
    return None
