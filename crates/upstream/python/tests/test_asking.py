"""Asking: what a tool asks of the client of its call, and what it keeps between calls."""

import time
import unittest

from dock import Worker

TOOLS = """
    from dataclasses import dataclass
    from typing import Literal
    from fastmcp import Context
    from fastmcp.server.elicitation import AcceptedElicitation, DeclinedElicitation
    from fastmcp.tools import tool

    @dataclass
    class Trip:
        place: str
        days: int = 2

    KINDS = {"scalar": int, "record": Trip, "choice": ["a", "b"], "literal": Literal["x", "y"], "nothing": None}

    @tool
    async def ask(kind: str, ctx: Context) -> str:
        'Ask.'
        result = await ctx.elicit("Well?", response_type=KINDS[kind])
        if isinstance(result, AcceptedElicitation):
            return "accept %r" % (result.data,)
        return "%s %s" % (result.action, isinstance(result, DeclinedElicitation))

    @tool
    async def write(ctx: Context) -> str:
        'Write.'
        said = await ctx.sample(["Hello", {"role": "assistant", "content": "Yes?"}], system_prompt="Be brief", temperature=0.5)
        return said.text

    @tool
    async def roots(ctx: Context) -> list:
        'List.'
        return await ctx.list_roots()

    @tool
    async def count(ctx: Context) -> str:
        'Count.'
        seen = (await ctx.get_state("seen", 0)) + 1
        await ctx.set_state("seen", seen)
        return "%s %d" % (ctx.session_id, seen)
"""


def asked(worker, tool, arguments, reply, **more):
    """The question of a call, and the answer of the call when it was replied to."""
    id = worker.start(tool, arguments, **more)
    question = worker.receive()
    while question.get("op") != "ask":
        question = worker.receive()
    worker.send(dict({"op": "answer", "id": question["ask"]}, **reply))
    return question, worker.answer(id)


class Asking(unittest.TestCase):
    def test_person_is_asked_for_values_of_a_type(self):
        with Worker({"t.py": TOOLS}) as worker:
            self.assertEqual(worker.ready["faults"], [])
            value = lambda schema: {"type": "object", "properties": {"value": schema}, "required": ["value"]}
            record = {"type": "object", "properties": {"place": {"type": "string"}, "days": {"type": "integer", "default": 2}}, "required": ["place"]}
            for kind, schema, content, seen in (
                    ("scalar", value({"type": "integer"}), {"value": 5}, "accept 5"),
                    ("record", record, {"place": "Ulm"}, "accept Trip(place='Ulm', days=2)"),
                    ("choice", value({"enum": ["a", "b"], "type": "string"}), {"value": "b"}, "accept 'b'"),
                    ("literal", value({"enum": ["x", "y"], "type": "string"}), {"value": "y"}, "accept 'y'"),
                    ("nothing", {"type": "object", "properties": {}}, {}, "accept {}")):
                with self.subTest(kind):
                    question, answer = asked(worker, "ask", {"kind": kind}, {"result": {"action": "accept", "content": content}})
                    self.assertEqual((question["method"], question["params"]),
                                     ("elicitation/create", {"message": "Well?", "requestedSchema": schema}))
                    self.assertEqual(answer["result"]["content"][0]["text"], seen)
            for action, seen in (("decline", "decline True"), ("cancel", "cancel True")):
                answer = asked(worker, "ask", {"kind": "scalar"}, {"result": {"action": action}})[1]
                self.assertEqual(answer["result"]["content"][0]["text"], seen)

    def test_question_that_nobody_answers_ends_the_call_in_words(self):
        with Worker({"t.py": TOOLS}) as worker:
            answer = asked(worker, "ask", {"kind": "scalar"}, {"error": {"code": -32601, "message": "no client could answer"}})[1]
            self.assertEqual(answer["error"]["message"], "the tool has asked, and nobody could answer: elicitation/create: no client could answer")
            answer = asked(worker, "ask", {"kind": "scalar"}, {"result": {"action": "accept", "content": {"value": "x"}}})[1]
            self.assertIn("the answer does not fit: /: expected an integer", answer["error"]["message"])
            worker.send({"op": "answer", "id": 99, "result": {}})
            self.assertEqual(worker.text("count"), "None 1")

    def test_model_of_the_client_is_asked(self):
        with Worker({"t.py": TOOLS}) as worker:
            question, answer = asked(worker, "write", {}, {"result": {"role": "assistant", "model": "m", "content": {"type": "text", "text": "Hi"}}})
            self.assertEqual(question["params"], {"messages": [
                {"role": "user", "content": {"type": "text", "text": "Hello"}}, {"role": "assistant", "content": {"type": "text", "text": "Yes?"}}],
                "maxTokens": 512, "systemPrompt": "Be brief", "temperature": 0.5})
            self.assertEqual(answer["result"]["content"][0]["text"], "Hi")
            self.assertEqual(asked(worker, "roots", {}, {"result": {"roots": [{"uri": "file:///a"}]}})[1]["result"]["structuredContent"],
                             {"result": [{"uri": "file:///a"}]})

    def test_time_of_a_call_stands_still_while_it_asks(self):
        with Worker({"t.py": TOOLS}) as worker:
            id = worker.start("ask", {"kind": "scalar"}, timeout=0.5)
            question = worker.receive()
            time.sleep(1.2)
            worker.send({"op": "answer", "id": question["ask"], "result": {"action": "decline"}})
            self.assertTrue(worker.answer(id)["ok"])

    def test_cancelled_call_takes_its_question_back(self):
        with Worker({"t.py": TOOLS}) as worker:
            id = worker.start("ask", {"kind": "scalar"})
            question = worker.receive()
            worker.send({"op": "cancel", "id": id})
            self.assertEqual(worker.answer(id)["error"]["code"], "cancelled")
            while not any(message.get("op") == "unask" for message in worker.messages):
                worker.messages.append(worker.receive())
            self.assertEqual(question["ask"], next(message["ask"] for message in worker.messages if message.get("op") == "unask"))

    def test_state_is_kept_for_a_session(self):
        with Worker({"t.py": TOOLS}) as worker:
            said = [worker.result("count", {}, session=session)["content"][0]["text"] for session in ("a", "a", "b", "a")]
            self.assertEqual(said, ["a 1", "a 2", "b 1", "a 3"])
            self.assertEqual([worker.text("count"), worker.text("count")], ["None 1", "None 1"])


if __name__ == "__main__":
    unittest.main()
