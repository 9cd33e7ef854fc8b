"""How a worker begins by hand, and how it ends."""

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from dock import SECONDS_MAX, WORKER, Worker
from waiting_tools import TOOLS


class End(unittest.TestCase):
    # TD-25: shutdown finishes what runs, refuses what is new, exits 0.
    def test_shutdown_waits_for_calls_under_way(self):
        with Worker(TOOLS) as worker:
            nap = worker.start("nap", {"seconds": 0.2})
            worker.receive()
            worker.send({"id": "end", "op": "shutdown", "grace": 20})
            late = worker.start("echo", {"text": "late"})
            self.assertEqual(worker.answer(late)["error"],
                             {"code": "cancelled", "message": "the worker is shutting down", "details": None})
            self.assertTrue(worker.answer(nap)["ok"])
            self.assertTrue(worker.answer("end")["ok"])
            self.assertEqual(worker.wait(), 0)

    def test_shutdown_cancels_after_its_grace(self):
        with Worker(TOOLS) as worker:
            ids = [worker.start("nap"), worker.start("block")]
            for _ in ids:
                worker.receive()
            worker.send({"id": "end", "op": "shutdown", "grace": 0.05})
            for id in ids:
                self.assertEqual(worker.answer(id)["error"]["code"], "cancelled")
            self.assertTrue(worker.answer("end")["ok"])
            self.assertEqual(worker.wait(), 0)

    # L06: when the gateway is gone, so is the worker, whatever its tools do.
    def test_end_of_the_protocol_ends_the_worker(self):
        with Worker(TOOLS) as worker:
            for tool in ("nap", "block"):
                worker.start(tool)
                worker.receive()
            worker.socket.shutdown(socket.SHUT_RDWR)
            self.assertEqual(worker.wait(), 0)
            self.assertIn("nap was cancelled", worker.log_text())

    # TD-19: a worker that a person starts, with a socket at a path.
    def test_worker_can_be_started_by_hand(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "ns.sock")
            process = subprocess.Popen(
                [sys.executable, "-I", "-B", WORKER, "--namespace", "ns", "--socket", path, "--tools", folder,
                 "--venv", "/nowhere"], stdin=subprocess.DEVNULL)
            try:
                until = time.monotonic() + SECONDS_MAX
                while not os.path.exists(path) and time.monotonic() < until:
                    time.sleep(0.005)
                with socket.socket(socket.AF_UNIX) as client:
                    client.settimeout(SECONDS_MAX)
                    client.connect(path)
                    with client.makefile("rwb") as stream:
                        self.assertEqual(json.loads(stream.readline())["tools"], [])
                        stream.write(b'{"id":1,"op":"shutdown"}\n')
                        stream.flush()
                        self.assertTrue(json.loads(stream.readline())["ok"])
                self.assertEqual(process.wait(SECONDS_MAX), 0)
            finally:
                process.kill()
                process.wait()

    def test_wrong_use_is_told(self):
        for arguments, words in (([], "usage:"), (["--namespace", "a", "--tools", "b", "--call-timeout", "x"], "usage:"),
                                 (["--namespace", "a", "--tools", "b"], "stdin is not a socket")):
            done = subprocess.run([sys.executable, "-I", "-B", WORKER, *arguments], stdin=subprocess.DEVNULL,
                                  stderr=subprocess.PIPE, timeout=SECONDS_MAX)
            self.assertEqual(done.returncode, 2)
            self.assertIn(words, done.stderr.decode())


if __name__ == "__main__":
    unittest.main()
