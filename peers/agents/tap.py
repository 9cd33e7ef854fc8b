"""Listens in on what a client and Toolman say to each other, and changes nothing of it.

Over stdio it is a program between the two: `tap.py RECORD TOOLMAN [ARGUMENT…]`. Over HTTP it is a
`Proxy` in front of a server. Each message is one line of JSON in RECORD: when it passed, who sent
it, and the message itself, cut where it is long.
"""

import http.client
import json
import os
import subprocess
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

# What is kept of a long message; `toolman_activate` brings a whole catalog.
KEPT_MAX = 20_000

HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "host", "content-length"}


class Record:
    def __init__(self, path: Path) -> None:
        self._file = open(path, "a", buffering=1)
        self._lock = threading.Lock()

    def note(self, sender: str, text: bytes | str, **more) -> None:
        text = text.decode(errors="replace") if isinstance(text, bytes) else text
        line = {"at": time.time(), "from": sender, **more, **summary(text)}
        with self._lock:
            self._file.write(json.dumps(line) + "\n")


def summary(text: str) -> dict:
    """What a reader of the record looks for, beside the message itself."""
    try:
        message = json.loads(text)
    except ValueError:
        return {"text": text[:KEPT_MAX]} if text.strip() else {}
    found: dict = {"length": len(text), "text": text[:KEPT_MAX]}
    if isinstance(message, dict):
        params = message.get("params")
        found["method"] = message.get("method")
        found["id"] = message.get("id")
        if isinstance(params, dict):
            found["name"] = params.get("name")
            found["client"] = params.get("clientInfo")
            found["revision"] = params.get("protocolVersion")
            found["modern"] = modern(params.get("_meta"))
        result = message.get("result")
        if isinstance(result, dict) and isinstance(result.get("tools"), list):
            found["tools"] = [tool.get("name") for tool in result["tools"]]
    return {key: value for key, value in found.items() if value is not None}


def modern(meta) -> dict | None:
    """What a request that stands alone says of its sender."""
    if not isinstance(meta, dict):
        return None
    said = {key: value for key, value in meta.items() if key.startswith("io.modelcontextprotocol/")}
    return said or None


def over_stdio(record: Record, command: list[str]) -> int:
    child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def forward(source, sink, sender: str) -> None:
        for line in iter(source.readline, b""):
            record.note(sender, line)
            try:
                sink.write(line)
                sink.flush()
            except OSError:
                break
        try:
            sink.close()
        except OSError:
            pass

    inward = threading.Thread(
        target=forward, args=(sys.stdin.buffer, child.stdin, "client"), daemon=True
    )
    inward.start()
    forward(child.stdout, sys.stdout.buffer, "toolman")
    return child.wait()


class Quiet(ThreadingHTTPServer):
    """A client that hangs up is nothing to complain about."""

    daemon_threads = True

    def handle_error(self, *_) -> None:
        pass


class Proxy:
    """A server on loopback that passes everything on to another, from `with` to its end."""

    def __init__(self, target: tuple[str, int], record: Record) -> None:
        self._server = Quiet(("127.0.0.1", 0), Passing)
        self._server.target = target
        self._server.record = record

    @property
    def port(self) -> int:
        return self._server.server_address[1]

    def __enter__(self) -> "Proxy":
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_) -> None:
        self._server.shutdown()
        self._server.server_close()


class Passing(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def _pass(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        about = {"http": f"{self.command} {self.path}"}
        session = self.headers.get("mcp-session-id")
        self.server.record.note("client", body, **about, session=session)
        upstream = http.client.HTTPConnection(*self.server.target)
        headers = {
            name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP
        }
        try:
            upstream.request(self.command, self.path, body or None, headers)
            self._answer(upstream.getresponse(), about)
        except OSError:
            self.close_connection = True
        finally:
            upstream.close()

    do_GET = do_POST = do_DELETE = do_OPTIONS = do_HEAD = _pass

    def _answer(self, response: http.client.HTTPResponse, about: dict) -> None:
        about = {**about, "status": response.status}
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        if response.getheader("content-type", "").startswith("text/event-stream"):
            self.send_header("transfer-encoding", "chunked")
            self.end_headers()
            self.wfile.flush()
            while line := response.readline():
                if line.startswith(b"data:"):
                    self.server.record.note("toolman", line[5:].strip(), **about)
                self.wfile.write(b"%x\r\n%s\r\n" % (len(line), line))
            self.wfile.write(b"0\r\n\r\n")
            return
        body = response.read()
        self.server.record.note("toolman", body, **about)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(f"usage: {sys.argv[0]} RECORD TOOLMAN [ARGUMENT…]")
    # The end of the client is the end of stdin, and that is for Toolman to act on.
    code = over_stdio(Record(Path(sys.argv[1])), sys.argv[2:])
    os._exit(code if code >= 0 else 1)
