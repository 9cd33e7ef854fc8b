"""The wire: newline-delimited JSON over one stream socket, bounded in both directions.

Writes are whole frames, one after the other, from whichever thread has something to say. There is no
queue: who writes waits until the gateway has read, and if it does not read for a minute, the worker ends.
"""

import errno
import json
import os
import select
import threading
import time

from .plain import to_bytes

FRAME_BYTES_MAX = 8 * 1024 * 1024
HEAD_BYTES = 4096
WRITE_SECONDS_MAX = 60
READ_BYTES = 64 * 1024

# Taken now: a tool that tampers with the module `json` must not reach the protocol.
_decode = json.JSONDecoder().decode
_decode_enormous = json.JSONDecoder(parse_int=lambda digits: int(digits) if len(digits) < 1000 else float(digits)).decode
_JSONDecodeError = json.JSONDecodeError


class Closed(Exception):
    """The other end is gone, or does not read."""


class Garbage(Exception):
    """A frame that is no message: the streams of both sides no longer agree."""


class Oversized:
    """Stands for a frame that was too long and was skipped; `head` is its beginning."""

    def __init__(self, head):
        self.head = head

    def id(self):
        """The id, if the frame begins with it: further in, another member could have that name."""
        import re

        found = re.match(rb'\s*\{\s*"id"\s*:\s*("(?:[^"\\]|\\.){0,1000}"|-?\d{1,18})\s*[,}]', self.head)
        return _decode(found.group(1).decode()) if found else None


class Wire:
    """One connection, as a non-blocking file descriptor that nobody else holds."""

    def __init__(self, fd, frame_max=FRAME_BYTES_MAX):
        os.set_blocking(fd, False)
        self._fd, self._frame_max = fd, frame_max
        self._lock = threading.Lock()
        self._poll = select.poll()
        self._poll.register(fd, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(fd, select.POLLOUT)
        self._pieces, self._size, self._head = [], 0, None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self):
        """A child that a tool forks must neither answer nor keep the connection open."""
        if self._fd >= 0:  # It is closed already in a child of a child.
            os.close(self._fd)
        self._fd = -1
        self._lock = threading.Lock()

    def frames(self, timeout):
        """The frames that have arrived within the time: messages, or `Oversized`."""
        if not self._poll.poll(None if timeout is None else max(0, int(timeout * 1000) + 1)):
            return []
        try:
            data = os.read(self._fd, READ_BYTES)
        except BlockingIOError:
            return []
        except OSError as error:
            raise self._lost(error) from None
        if not data:
            raise Closed("the other end has closed")
        return self._split(data)

    def _split(self, data):
        found = []
        lines = data.split(b"\n")
        for index, piece in enumerate(lines):
            self._keep(piece)
            if index + 1 < len(lines):
                frame = self._take()
                if frame is not None:
                    found.append(frame)
        return found

    def _keep(self, piece):
        self._size += len(piece)
        if self._head is not None:
            return
        self._pieces.append(piece)
        if self._size > self._frame_max:
            self._head = b"".join(self._pieces)[:HEAD_BYTES]
            self._pieces = []

    def _take(self):
        head, text = self._head, b"".join(self._pieces)
        self._pieces, self._size, self._head = [], 0, None
        if head is not None:
            return Oversized(head)
        return parse(text) if text.strip() else None

    def send(self, message):
        self.send_bytes(to_bytes(message))

    def send_bytes(self, text):
        view = memoryview(text + b"\n")
        with self._lock:
            until = None
            while view:
                try:
                    view = view[os.write(self._fd, view):]
                    until = None
                except BlockingIOError:
                    until = until or time.monotonic() + WRITE_SECONDS_MAX
                    if time.monotonic() > until:
                        raise Closed("the other end does not read") from None
                    self._writable.poll(1000)
                except OSError as error:
                    raise self._lost(error) from None

    def _lost(self, error):
        if error.errno == errno.EBADF and self._fd != -1:
            return Garbage("a tool has closed the descriptor of the protocol")
        return Closed(error.strerror)


def _loads(text):
    try:
        return _decode(text)
    except _JSONDecodeError:
        raise
    except ValueError:
        # A number of thousands of digits is JSON, though Python won't count with it: it is as good as infinite.
        return _decode_enormous(text)


def parse(text):
    try:
        message = _loads(text.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise Garbage("a frame is not JSON: %s" % str(error)[:200]) from None
    if not isinstance(message, dict):
        raise Garbage("a frame is not an object")
    return message
