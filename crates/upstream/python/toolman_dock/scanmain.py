"""The static reader's start: a limit on its memory, then line by line."""

import json
import signal
import time

from .faults import fault
from .plain import to_bytes
from .scanner import scan

LINE_BYTES_MAX = 16 * 1024 * 1024
MEMORY_BYTES_MAX = 1024 * 1024 * 1024
# How long one file may take, and all of them together: the gateway waits for 20 seconds.
FILE_SECONDS_MAX = 4
ALL_SECONDS_MAX = 14
LEAST_SECONDS = 0.05


class Late(BaseException):
    """A file that takes too long; no handler of ordinary errors may take it for one."""


def run(lines, answers):
    limit_memory()
    signal.signal(signal.SIGALRM, give_up)
    until = time.monotonic() + ALL_SECONDS_MAX
    while True:
        line = lines.readline(LINE_BYTES_MAX)
        if not line:
            return 0
        left = max(LEAST_SECONDS, min(FILE_SECONDS_MAX, until - time.monotonic()))
        answers.write(to_bytes(timely(line, lines, left)) + b"\n")
        answers.flush()


def give_up(*_):
    raise Late


def timely(line, lines, seconds):
    """The answer, or that there is none for want of time: others must not wait."""
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return answer(line, lines)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
    except Late:
        return dict(empty(None, "the file takes too long to be read; are its hints very large?"), late=True)


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
