"""The standard streams: the protocol is moved out of everybody's reach, the log stays where it was.

Tools may print, close or replace what they like: the protocol is on a descriptor of its own that children
do not inherit.
"""

import os
import stat
import sys

PRIVATE_FD_MIN = 200
# The exit code of a worker that can't be talked to, or can't run its tools, any longer.
EXIT_GARBAGE = 3


def private(fd):
    """A copy of a descriptor, high up and not inherited."""
    import fcntl

    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, PRIVATE_FD_MIN)
    except OSError:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def is_socket(fd):
    try:
        return stat.S_ISSOCK(os.fstat(fd).st_mode)
    except OSError:
        return False


def take_protocol():
    """The private descriptor of the socket that is fd 0; fd 0 itself becomes empty."""
    made = private(0)
    silence_stdin()
    return made


def silence_stdin():
    empty = os.open(os.devnull, os.O_RDONLY)
    if empty != 0:
        os.dup2(empty, 0, inheritable=True)
        os.close(empty)


def listen(path):
    """The descriptor of the one connection that is accepted on a Unix socket at a path."""
    import socket

    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    mask = os.umask(0o177)
    try:
        server.bind(path + "~")
    finally:
        os.umask(mask)
    try:
        server.listen(1)
        # Only now: who sees the path can connect to it.
        os.rename(path + "~", path)
        connection, _ = server.accept()
    finally:
        server.close()
        os.unlink(path)
    return connection.detach()


class Log:
    """Descriptors 1 and 2 as they were, to be put back when a tool has closed them."""

    def __init__(self):
        self._kept = {fd: private(fd) for fd in (1, 2) if self._open(fd)}
        self._streams = {}
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None:
                stream.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)
            self._streams[name] = stream

    @staticmethod
    def _open(fd):
        try:
            os.fstat(fd)
            return True
        except OSError:
            return False

    def mend(self):
        """Undoes what would break the next tool: a closed descriptor, a closed or missing stream."""
        for fd, kept in self._kept.items():
            if not self._open(fd):
                try:
                    os.dup2(kept, fd)
                except OSError:
                    pass
        for name, stream in self._streams.items():
            current = getattr(sys, name, None)
            if current is None or getattr(current, "closed", False):
                if stream is not None and stream.closed:
                    stream = open(1 if name == "stdout" else 2, "w", buffering=1, encoding="utf-8",
                                  errors="backslashreplace", closefd=False)
                    self._streams[name] = stream
                setattr(sys, name, stream)


def say(text):
    """Writes to the log, unless a tool has closed that for good."""
    try:
        sys.stderr.write(text)
    except Exception:
        pass


def leave(code):
    """Ends the process now; what was printed is flushed, but nobody is waited for longer than half a second."""
    import threading

    def flush():
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except Exception:
                pass

    thread = threading.Thread(target=flush, daemon=True)
    thread.start()
    thread.join(0.5)
    os._exit(code)
