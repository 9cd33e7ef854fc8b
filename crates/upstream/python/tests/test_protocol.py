"""The worker's protocol: frames, requests and answers, and calls that run side by side."""

import json
import sys
import time
import unittest

from dock import SECONDS_MAX, Worker
from waiting_tools import TOOLS


class Protocol(unittest.TestCase):
    def setUp(self):
        self.worker = Worker(TOOLS)
        self.addCleanup(self.worker.__exit__)

    # TD-20: the ready message.
    def test_first_message_says_what_there_is(self):
        ready = self.worker.ready
        self.assertEqual((ready["op"], ready["namespace"]), ("ready", "ns"))
        self.assertEqual([tool["name"] for tool in ready["tools"]],
                         ["echo", "block", "release", "nap", "meet", "chatter", "big"])
        self.assertEqual(ready["exact"], [tool["name"] for tool in ready["tools"]])
        self.assertEqual(ready["files"]["echo"], "t.py")
        self.assertEqual(ready["faults"], [])
        self.assertEqual(ready["python"], "%d.%d.%d" % sys.version_info[:3])
        self.assertIn("fastmcp", ready)

    # TD-22, TD-23, TD-25.
    def test_every_op_is_answered_under_its_id(self):
        self.assertEqual(self.worker.request("ping"),
                         {"id": 1, "ok": True, "result": {"calls": 0, "abandoned": 0}, "latency_ms": 0})
        listed = self.worker.request("tools.list")["result"]["tools"]
        self.assertEqual(listed, self.worker.ready["tools"])
        self.assertEqual(self.worker.request("tools.get_schema", tool="echo")["result"], listed[0])
        self.worker.send({"id": "req-123", "op": "tools.call", "tool": "echo", "arguments": {"text": "hi"}})
        answer = self.worker.answer("req-123")
        self.assertGreaterEqual(answer.pop("latency_ms"), 0)
        self.assertEqual(answer, {"id": "req-123", "ok": True, "result": {
            "content": [{"type": "text", "text": "hi"}], "structuredContent": {"result": "hi"}, "isError": False}})

    # TD-24, TD-26.
    def test_unknown_tools_and_ops_are_refused(self):
        for answer in (self.worker.call("nope"), self.worker.request("tools.get_schema", tool="nope")):
            self.assertEqual(answer["error"]["code"], "tool_not_found")
            self.assertEqual(answer["error"]["message"], "no tool is named `nope` in `ns`")
        self.assertEqual(self.worker.request("tools.eat")["error"]["message"], "the op `tools.eat` is not known")

    # TD-21, W01: split, glued and one-byte frames.
    def test_frames_are_read_however_they_are_cut(self):
        frame = json.dumps({"id": "a", "op": "tools.call", "tool": "echo", "arguments": {"text": "ü\n"}}).encode() + b"\n"
        for index in range(len(frame)):
            self.worker.send_raw(frame[index:index + 1])
        self.assertEqual(self.worker.answer("a")["result"]["content"][0]["text"], "ü\n")
        self.worker.send_raw(b"\n" + frame.replace(b'"a"', b'"b"', 1) + b"  \n" + frame.replace(b'"a"', b'"c"', 1))
        self.assertTrue(self.worker.answer("b")["ok"])
        self.assertTrue(self.worker.answer("c")["ok"])

    # W01: garbage ends the worker, with a code and words of its own.
    def test_garbage_ends_the_worker(self):
        for garbage in (b"not json\n", b"[1]\n", b'"x"\n', b"{}\n", b'{"id":null,"op":"ping"}\n', b"\xff\xfe\n",
                        b'{"id":true,"op":"ping"}\n', b"[" * 100000 + b"\n"):
            with self.subTest(garbage[:20]), Worker(TOOLS) as worker:
                worker.send_raw(garbage)
                self.assertEqual(worker.wait(), 3)
                self.assertIn("worker of `ns`: a frame", worker.log_text())

    # W03: too long a request is refused under its id, and the next one works.
    def test_request_that_is_too_long_is_refused(self):
        long = {"id": 7, "op": "tools.call", "tool": "echo", "arguments": {"text": "x" * (8 << 20)}}
        self.worker.send(long)
        self.assertEqual(self.worker.answer(7)["error"]["message"], "the request is too large")
        self.assertEqual(self.worker.text("echo", {"text": "next"}), "next")

    def test_long_request_without_an_id_at_its_front_ends_the_worker(self):
        with Worker(TOOLS) as worker:
            worker.send_raw(b'{"arguments":"' + b"x" * (9 << 20) + b'","id":7,"op":"ping"}\n')
            self.assertEqual(worker.wait(), 3)

    # W03: "result too large", next call works.
    def test_result_that_is_too_large_is_an_error(self):
        error = self.worker.error("big", {"size": 9 << 20})
        self.assertEqual(error["code"], "internal_error")
        self.assertRegex(error["message"], r"^result too large: \d+ bytes, at most 8388608 are carried$")
        self.assertEqual(len(self.worker.text("big", {"size": 4 << 20})), 4 << 20)

    def test_largest_result_can_be_set(self):
        with Worker(TOOLS, options=["--result-max", "1000"]) as worker:
            self.assertIn("result too large", worker.error("big", {"size": 1000})["message"])
            self.assertEqual(len(worker.text("big", {"size": 500})), 500)

    # A number that Python would refuse to count with is a wrong argument, not garbage.
    def test_enormous_numbers_are_wrong_arguments(self):
        for digits in ("9" * 5000, "1e400", "-1e400"):
            self.worker.send_raw(b'{"id":"n","op":"tools.call","tool":"nap","arguments":{"seconds":%s}}\n' % digits.encode())
            self.assertEqual(self.worker.answer("n")["error"]["code"], "invalid_arguments")

    def test_id_in_use_is_refused_and_the_first_call_still_answered(self):
        self.worker.send({"id": "x", "op": "tools.call", "tool": "block", "arguments": {}})
        self.wait_for("log")
        self.worker.send({"id": "x", "op": "tools.call", "tool": "echo", "arguments": {"text": ""}})
        self.assertEqual(self.worker.answer("x")["error"]["message"], "the id is in use")
        self.worker.result("release")
        self.assertTrue(self.worker.answer("x")["ok"])

    def wait_for(self, op):
        while True:
            message = self.worker.receive()
            if message.get("op") == op:
                return message
            self.worker.messages.append(message)


class Concurrency(unittest.TestCase):
    def setUp(self):
        self.worker = Worker(TOOLS)
        self.addCleanup(self.worker.__exit__)

    wait_for = Protocol.wait_for

    # TD-31: async calls overlap; none of the 64 could return before all are there.
    def test_async_calls_overlap(self):
        ids = [self.worker.start("meet", {"count": 64}) for _ in range(64)]
        for id in ids:
            self.assertEqual(self.worker.answer(id)["result"]["structuredContent"], {"result": 64})

    # FORMATS 2.5: sync tools block the peer's worker; ours answers others meanwhile.
    def test_tool_that_blocks_delays_nobody(self):
        ids = [self.worker.start("block") for _ in range(10)]
        self.wait_for("log")
        self.assertEqual(self.worker.text("echo", {"text": "here"}), "here")
        self.assertTrue(self.worker.request("ping")["ok"])
        self.worker.result("release")
        for id in ids:
            self.assertTrue(self.worker.answer(id)["ok"])

    # L23: frames of many threads never mix.
    def test_messages_of_many_tools_stay_whole(self):
        ids = [self.worker.start("chatter", {"count": 300}) for _ in range(20)]
        ids += [self.worker.start("big", {"size": 200000}) for _ in range(10)]
        for id in ids[:20]:
            self.assertEqual(self.worker.answer(id)["result"]["structuredContent"], {"result": 300})
        for id in ids[20:]:
            self.assertEqual(len(self.worker.answer(id)["result"]["content"][0]["text"]), 200000)
        for id in ids[:20]:
            told = [len(one["data"]) for one in self.worker.messages if one["id"] == id]
            self.assertEqual(told, list(range(300)))

    # TD-32: cancellation of async calls reaches the tool.
    def test_cancel_ends_an_async_call(self):
        id = self.worker.start("nap")
        self.wait_for("log")
        self.worker.send({"op": "cancel", "id": id})
        self.assertEqual(self.worker.answer(id)["error"],
                         {"code": "cancelled", "message": "the call was cancelled", "details": None})
        until = time.monotonic() + SECONDS_MAX
        while "nap was cancelled" not in self.worker.log_text() and time.monotonic() < until:
            self.worker.request("ping")
        self.assertIn("nap was cancelled", self.worker.log_text())

    # TD-32, W09: a sync call is abandoned; the gateway can see that its thread is still busy.
    def test_cancel_abandons_a_sync_call(self):
        id = self.worker.start("block")
        self.wait_for("log")
        self.worker.send({"op": "cancel", "id": id})
        self.assertEqual(self.worker.answer(id)["error"]["code"], "cancelled")
        self.assertEqual(self.worker.request("ping")["result"], {"calls": 0, "abandoned": 1})
        self.worker.result("release")
        until = time.monotonic() + SECONDS_MAX
        while self.worker.request("ping")["result"]["abandoned"] and time.monotonic() < until:
            pass
        self.assertEqual(self.worker.request("ping")["result"]["abandoned"], 0)
        self.assertFalse(any(message.get("id") == id and "ok" in message for message in self.worker.messages))

    def test_cancel_of_nothing_says_nothing(self):
        self.worker.send({"op": "cancel", "id": "unknown"})
        self.worker.send({"op": "cancel"})
        self.worker.send({"op": "cancel", "id": [1]})
        self.assertTrue(self.worker.request("ping")["ok"])
        self.assertEqual(self.worker.messages, [])

    # TD-26, TD-29: deadlines hold for both kinds of tools.
    def test_deadline_ends_a_call(self):
        for tool in ("nap", "block"):
            error = self.worker.error(tool, timeout=0.05)
            self.assertEqual(error, {"code": "execution_timeout", "details": None,
                                     "message": "the tool did not finish within 0.05 s"})
        self.worker.result("release")

    def test_deadline_of_all_calls_can_be_given_at_the_start(self):
        with Worker(TOOLS, options=["--call-timeout", "0.05"]) as worker:
            self.assertEqual(worker.error("nap")["code"], "execution_timeout")
            self.assertTrue(worker.call("nap", {"seconds": 0.0})["ok"])

    # More calls than threads: they wait for one.
    def test_calls_beyond_the_threads_wait_their_turn(self):
        ids = [self.worker.start("block") for _ in range(32)]
        waiting = self.worker.start("echo", {"text": "late"})
        for _ in ids:
            self.wait_for("log")
        self.worker.send({"op": "cancel", "id": ids[0]})
        self.assertEqual(self.worker.answer(ids[0])["error"]["code"], "cancelled")
        self.worker.send({"op": "cancel", "id": waiting})
        self.assertEqual(self.worker.answer(waiting)["error"]["code"], "cancelled")

if __name__ == "__main__":
    unittest.main()
