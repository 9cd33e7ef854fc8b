"""The static reader's start: a limit on its memory, then line by line."""

import json

from .faults import fault
from .plain import to_bytes
from .scanner import scan

LINE_BYTES_MAX = 16 * 1024 * 1024
MEMORY_BYTES_MAX = 1024 * 1024 * 1024


def run(lines, answers):
    limit_memory()
    while True:
        line = lines.readline(LINE_BYTES_MAX)
        if not line:
            return 0
        answers.write(to_bytes(answer(line, lines)) + b"\n")
        answers.flush()


def limit_memory():
    """A small source can have a large tree; running out is then a fault of that file."""
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = MEMORY_BYTES_MAX if most == resource.RLIM_INFINITY else min(MEMORY_BYTES_MAX, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    except (ImportError, ValueError, OSError):
        pass


def answer(line, lines):
    if not line.endswith(b"\n") and len(line) >= LINE_BYTES_MAX:
        while line and not line.endswith(b"\n"):
            line = lines.readline(LINE_BYTES_MAX)
        return empty(None, "the request is too long")
    try:
        request = json.loads(line)
        file, source = request["file"], request["source"]
        if not isinstance(file, str) or not isinstance(source, str):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        return empty(None, 'a request is an object with the strings "file" and "source"')
    return scan(file, source)


def empty(file, message):
    return {"file": file, "tools": [], "faults": [fault(file, message)], "warnings": []}
