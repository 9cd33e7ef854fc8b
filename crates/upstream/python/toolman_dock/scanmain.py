"""The static reader's start: a limit on its memory, then line by line.

Files are read by a process of its own, which the kernel kills when it takes too long: Python's parser can't be
interrupted, and one file must not cost the others their list. What counts is the processor's time, as others may keep
the machine busy.
"""

import json
import os
import select
import signal
import time

from .faults import fault
from .plain import to_bytes
from .scanner import scan

LINE_BYTES_MAX = 16 * 1024 * 1024
MEMORY_BYTES_MAX = 1024 * 1024 * 1024
# How much of a processor's time one file may take, and how long all may take together: the gateway waits for 20 seconds.
FILE_SECONDS_MAX = 4
ALL_SECONDS_MAX = 16
LATE = "the file takes too long to be read; are its hints very large?"


class Late(BaseException):
    """A file that takes too long; no handler of ordinary errors may take it for one."""


def run(lines, answers):
    limit_memory()
    until = time.monotonic() + ALL_SECONDS_MAX
    reader = None
    while True:
        line = lines.readline(LINE_BYTES_MAX)
        if not line:
            return 0
        left = until - time.monotonic()
        if is_too_long(line, lines):
            said = to_bytes(empty("the request is too long")) + b"\n"
        elif left <= 0:
            said = given_up(LATE)
        else:
            reader = reader or Reader()
            said = reader.ask(line, left)
            if said is None:
                said, reader = given_up(reader.end()), None
        answers.write(said)
        answers.flush()


def is_too_long(line, lines):
    """Whether a request is over the limit; its rest is passed over."""
    if line.endswith(b"\n") or len(line) < LINE_BYTES_MAX:
        return False
    while line and not line.endswith(b"\n"):
        line = lines.readline(LINE_BYTES_MAX)
    return True


class Reader:
    """The process that reads files."""

    def __init__(self):
        requests, self._requests = os.pipe()
        self._answers, answers = os.pipe()
        self._pid = os.fork()
        if self._pid == 0:
            os.close(self._requests)
            os.close(self._answers)
            serve(requests, answers)
        os.close(requests)
        os.close(answers)

    def ask(self, line, seconds):
        """The answer to a request, or None if there is none in time."""
        until = time.monotonic() + seconds
        # The process reads all of it before it does anything else.
        try:
            rest = memoryview(line.rstrip(b"\n") + b"\n")
            while rest:
                rest = rest[os.write(self._requests, rest):]
        except BrokenPipeError:
            return None
        said = b""
        while not said.endswith(b"\n"):
            ready = select.select([self._answers], [], [], max(0, until - time.monotonic()))[0]
            part = os.read(self._answers, 1 << 16) if ready else b""
            if not part:
                return None
            said += part
        return said

    def end(self):
        """Kills the process; says what was wrong with it."""
        os.close(self._requests)
        os.close(self._answers)
        # One that has ended by itself keeps its number until it is waited for.
        os.kill(self._pid, signal.SIGKILL)
        status = os.waitpid(self._pid, 0)[1]
        is_late = os.WIFSIGNALED(status) and os.WTERMSIG(status) in (signal.SIGXCPU, signal.SIGKILL)
        return LATE if is_late else "Python itself fails as it reads the file"


def serve(requests, answers):
    """Answers requests to the end, in the process that reads files."""
    code = 1
    try:
        signal.signal(signal.SIGPROF, give_up)
        with os.fdopen(requests, "rb") as lines, os.fdopen(answers, "wb") as said:
            for line in lines:
                limit_time()
                said.write(timely(line))
                said.flush()
        code = 0
    finally:
        os._exit(code)


def give_up(*_):
    raise Late


def limit_time():
    """Lets the kernel end us some time after we should have noticed that our time is over."""
    try:
        import resource

        used = resource.getrusage(resource.RUSAGE_SELF)
        most = int(used.ru_utime + used.ru_stime + FILE_SECONDS_MAX) + 2
        hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
        resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    except (ImportError, ValueError, OSError):
        pass


def timely(line):
    """The answer, or that there is none for want of time: others must not wait."""
    try:
        signal.setitimer(signal.ITIMER_PROF, FILE_SECONDS_MAX)
        try:
            return to_bytes(answer(line)) + b"\n"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
    except Late:
        return given_up(LATE)


def given_up(message):
    """What is said of a file that was not read: the next time it may be."""
    return to_bytes(dict(empty(message), late=True, whole=False)) + b"\n"


def limit_memory():
    """A small source can have a large tree; running out is then a fault of that file."""
    try:
        import resource

        _, most = resource.getrlimit(resource.RLIMIT_AS)
        wanted = MEMORY_BYTES_MAX if most == resource.RLIM_INFINITY else min(MEMORY_BYTES_MAX, most)
        resource.setrlimit(resource.RLIMIT_AS, (wanted, most))
    except (ImportError, ValueError, OSError):
        pass


def answer(line):
    try:
        request = json.loads(line)
        file, source = request["file"], request["source"]
        if not isinstance(file, str) or not isinstance(source, str):
            raise TypeError
    except (ValueError, TypeError, KeyError, RecursionError):
        return empty('a request is an object with the strings "file" and "source"')
    return scan(file, source)


def empty(message):
    return {"file": None, "tools": [], "faults": [fault(None, message)], "warnings": [], "variables": []}
