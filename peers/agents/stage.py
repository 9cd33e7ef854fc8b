"""One run of a client: a folder of its own, Toolman with one server, and an end for all of it."""

import json
import os
import secrets
import signal
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urljoin, urlsplit

from tap import Proxy, Record

# Every process below a run carries this variable, so none is missed at its end.
MARK = "TOOLMAN_AGENTS_RUN"

# How long Toolman and its server may take to start over HTTP.
START_S = 30

# What a client needs of this machine; the rest of its environment is its own.
INHERITED = ("PATH", "LANG", "LC_ALL", "TERM", "TMPDIR")


class Failed(Exception):
    """The stage could not be set; it is no fault of the client."""


class Place:
    """The folder of a run, the mark of its processes, and their environment."""

    def __init__(self, folder: Path, toolman: Path, everything: Path) -> None:
        self.folder = folder
        self.toolman = toolman
        self.mark = secrets.token_hex(8)
        self.token = secrets.token_hex(16)
        self.record = folder / "mcp.jsonl"
        for name in ("home", "project", "server"):
            (folder / name).mkdir(parents=True)
        self.config = folder / "server/tools.toml"
        self.config.write_text(
            f"""\
active_toolsets = ["everything_demo://*"]

[[servers]]
namespace = "everything"
command = "node"
args = ["{everything}"]
"""
        )

    @property
    def environment(self) -> dict[str, str]:
        found = {name: os.environ[name] for name in INHERITED if name in os.environ}
        home = str(self.folder / "home")
        return {**found, "HOME": home, "CI": "1", "NO_COLOR": "1", MARK: self.mark}

    @property
    def arguments(self) -> list[str]:
        return ["--config", str(self.config), "--data-dir", str(self.folder / "server/data")]

    @property
    def stdio(self) -> list[str]:
        """The command by which a client starts Toolman, with an ear in between."""
        tap = Path(__file__).with_name("tap.py")
        return [sys.executable, str(tap), str(self.record), str(self.toolman), *self.arguments]

    @contextmanager
    def http(self):
        """Toolman as a service; gives the URL, behind the ear."""
        command = [str(self.toolman), *self.arguments, "serve", "--listen", "127.0.0.1:0"]
        log = open(self.folder / "toolman.log", "wb")
        process = subprocess.Popen(
            command,
            env={**self.environment, "BEARER_TOKEN": self.token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
        )
        try:
            line = process.stdout.readline().decode()
            url = next((word for word in line.split() if word.startswith("http://")), None)
            if not url:
                raise Failed(f"Toolman did not say where it serves, but: {line!r}")
            self._ready(url)
            parts = urlsplit(url)
            with Proxy((parts.hostname, parts.port), Record(self.record)) as proxy:
                yield f"http://127.0.0.1:{proxy.port}{parts.path}"
        finally:
            process.terminate()
            try:
                process.wait(5)
            except subprocess.TimeoutExpired:
                process.kill()
            log.close()

    def _ready(self, url: str) -> None:
        """Waits until Toolman has its server ready: a service runs before its clients."""
        deadline = time.monotonic() + START_S
        while time.monotonic() < deadline:
            try:
                with urllib.request.urlopen(urljoin(url, "/health"), timeout=START_S) as answer:
                    if json.load(answer)["upstreams"]["ready"]:
                        return
            except OSError:
                pass  # Not yet, or 503 until a server is ready.
            time.sleep(0.1)
        raise Failed(f"Toolman had no server ready within {START_S} s")

    def run(self, command: list[str], more: dict[str, str], limit_s: float) -> dict:
        """Runs a client to its end, or to the limit; keeps what it prints."""
        started = time.monotonic()
        with open(self.folder / "stdout", "wb") as out, open(self.folder / "stderr", "wb") as err:
            process = subprocess.Popen(
                command,
                env={**self.environment, **more},
                cwd=self.folder / "project",
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            timer = threading.Timer(limit_s, process.kill)
            timer.start()
            code = process.wait()
            timer.cancel()
        took = time.monotonic() - started
        return {"exit": code, "late": took >= limit_s, "took_s": round(took, 1)}

    def end_all(self) -> int:
        """Kills whatever the run has left behind, and says how many that were."""
        left = marked(self.mark)
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return len(left)


def marked(mark: str) -> list[int]:
    """The processes that carry the mark, this one aside."""
    wanted = f"{MARK}={mark}".encode()
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                if wanted in (entry / "environ").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                pass
    return found
