"""The worker's start: options, streams, tools, then `ready` and the desk."""

import os
import sys

from . import stdio
from .calls import Limits
from .desk import Desk
from .intake import Strictness
from .libraries import version
from .loader import load
from .offers import PROMPT
from .shim import install
from .wire import FRAME_BYTES_MAX, Closed, Wire

USAGE = ("usage: worker.py --namespace NS --tools DIR [--call-timeout S] [--result-max BYTES] "
         "[--socket PATH] [--venv DIR] [--strict] [--held-by sandbox,network] [--program WORDS]\n")
PYTHON = "%d.%d.%d" % sys.version_info[:3]


def options(arguments):
    """The options as a dictionary, or None if they are not understood."""
    found, rest = {}, list(arguments)
    while rest:
        name, equals, value = rest.pop(0).partition("=")
        if name == "--strict":
            found["strict"] = True
            continue
        if name not in ("--namespace", "--tools", "--call-timeout", "--result-max", "--socket", "--venv", "--held-by", "--program"):
            return None
        if not equals:
            if not rest:
                return None
            value = rest.pop(0)
        found[name[2:]] = value
    try:
        found["call-timeout"] = float(found["call-timeout"]) if "call-timeout" in found else None
        found["result-max"] = int(found.get("result-max", FRAME_BYTES_MAX))
    except ValueError:
        return None
    return found if "namespace" in found and "tools" in found else None


def run(arguments):
    found = options(arguments)
    if found is None:
        sys.stderr.write(USAGE)
        return 2
    sys.dont_write_bytecode = True
    if stdio.is_socket(0):
        fd = stdio.take_protocol()
    elif "socket" in found:
        stdio.silence_stdin()
        fd = stdio.private(stdio.listen(found["socket"]))
    else:
        sys.stderr.write("stdin is not a socket; the gateway starts workers with one, people give --socket PATH\n")
        return 2
    log = stdio.Log()
    wire = Wire(fd)
    folder = os.path.abspath(found["tools"])
    Strictness.is_strict = "strict" in found
    Limits.namespace, Limits.program = found["namespace"], found.get("program", "toolman")
    Limits.settings = tuple(found.get("held-by", "").split(","))
    install()
    loaded = load(folder)
    log.mend()
    try:
        wire.send({
            "op": "ready", "namespace": found["namespace"],
            "tools": [tool.definition for tool in loaded.tools.values()],
            "exact": [name for name, tool in loaded.tools.items() if tool.is_exact()],
            "offers": sorted({"prompts" if kind == PROMPT else "resources" for kind, _ in loaded.offers}),
            "files": loaded.files, "faults": loaded.faults, "python": PYTHON, "fastmcp": version(),
        })
    except Closed:
        return 0
    return Desk(wire, found["namespace"], folder, loaded, found["call-timeout"], found["result-max"], log.mend).serve()
