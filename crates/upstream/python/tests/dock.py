"""A real worker for tests: spawned as the gateway does, spoken to over its socketpair."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import textwrap

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
WORKER = os.path.join(ROOT, "worker.py")
SCAN = os.path.join(ROOT, "scan.py")
EXAMPLES = os.path.abspath(os.path.join(ROOT, "..", "..", "..", "examples"))
SECONDS_MAX = 30


class Worker:
    """One worker process over a folder of tool files; use as a context manager."""

    def __init__(self, files=None, folder=None, options=(), python=sys.executable, env=None, flags=()):
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = folder or os.path.join(self._temporary.name, "tools")
        for name, text in (files or {}).items():
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(text if isinstance(text, bytes) else textwrap.dedent(text).encode("utf-8"))
        os.makedirs(self.folder, exist_ok=True)
        self.log = tempfile.TemporaryFile()
        ours, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [python, "-I", "-B", *flags, WORKER, "--namespace", "ns", "--tools", self.folder, *options],
            stdin=theirs, stdout=self.log, stderr=subprocess.STDOUT, env=env)
        theirs.close()
        ours.settimeout(SECONDS_MAX)
        self.socket, self._buffer, self._next = ours, b"", 0
        self.messages = []
        self.ready = self.receive()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()
        try:
            self.process.wait(SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            self.log.close()
            self._temporary.cleanup()

    def send(self, message):
        self.send_raw(json.dumps(message).encode("utf-8") + b"\n")

    def send_raw(self, data):
        self.socket.sendall(data)

    def receive(self):
        while b"\n" not in self._buffer:
            data = self.socket.recv(1 << 20)
            if not data:
                raise EOFError("the worker closed the protocol; its log: " + self.log_text())
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return json.loads(line, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))

    def start(self, tool, arguments=None, **members):
        """Sends a call and gives its id."""
        self._next += 1
        self.send(dict({"id": self._next, "op": "tools.call", "tool": tool, "arguments": arguments or {}}, **members))
        return self._next

    def answer(self, id):
        """The answer to an id; other messages are kept in `messages`."""
        for index, message in enumerate(self.messages):
            if message.get("id") == id and "ok" in message:
                return self.messages.pop(index)
        while True:
            message = self.receive()
            if message.get("id") == id and "ok" in message:
                return message
            self.messages.append(message)

    def call(self, tool, arguments=None, **members):
        return self.answer(self.start(tool, arguments, **members))

    def result(self, tool, arguments=None, **members):
        answer = self.call(tool, arguments, **members)
        if not answer["ok"]:
            raise AssertionError(answer["error"])
        return answer["result"]

    def text(self, tool, arguments=None):
        return self.result(tool, arguments)["content"][0]["text"]

    def error(self, tool, arguments=None, **members):
        answer = self.call(tool, arguments, **members)
        if answer["ok"]:
            raise AssertionError("no error but %r" % (answer["result"],))
        return answer["error"]

    def request(self, op, **members):
        self._next += 1
        self.send(dict({"id": self._next, "op": op}, **members))
        return self.answer(self._next)

    def definition(self, name):
        return next(tool for tool in self.ready["tools"] if tool["name"] == name)

    def log_text(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def wait(self):
        return self.process.wait(SECONDS_MAX)


def scan(*sources, python=sys.executable):
    """The findings of the static reader for (file, source) pairs."""
    lines = "".join(json.dumps({"file": file, "source": textwrap.dedent(text)}) + "\n" for file, text in sources)
    done = subprocess.run([python, "-I", "-S", "-B", SCAN], input=lines.encode("utf-8"), stdout=subprocess.PIPE,
                          timeout=SECONDS_MAX * 4, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]
