"""What the tables say must follow from what was recorded."""

import json
import sys
import unittest
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).parents[1]))

import verdict
from model import ARGUMENTS, CONTROL, MESSAGE, WANTED, Script, words
from outcome import NONE, WORKS, Row, Table
from wire import Answer, Chat, Gemini, Messages, Responses, Tool, events

RUN = {"exit": 0, "late": False, "took_s": 1.0}
PREFIX = "mcp__toolman__"
SCHEMA = {"type": "object", "properties": {"message": {"type": "string"}}}


class Agent:
    """A small agent over chat completions: its tools change when it is told."""

    def __init__(self, tools: dict[str, dict], deferred: tuple[str, ...] = ()) -> None:
        self.tools = tools
        self.deferred = deferred
        self.messages: list[dict] = [{"role": "user", "content": "begin"}]
        self.script = Script()

    def ask(self) -> tuple[str, dict] | None:
        listed = {name: schema for name, schema in self.tools.items() if name not in self.deferred}
        functions = [{"name": name, "parameters": schema} for name, schema in listed.items()]
        tools = [{"type": "function", "function": function} for function in functions]
        body = {"messages": self.messages, "tools": tools}
        answer = self.script.answer(Chat.read(body), "\n".join(words(body)))
        message = json.loads(Chat.write(answer, False))["choices"][0]["message"]
        self.messages.append(message)
        if "tool_calls" not in message:
            return None
        function = message["tool_calls"][0]["function"]
        return function["name"], json.loads(function["arguments"])

    def tell(self, result: str) -> None:
        last = self.messages[-1]["tool_calls"][0]["id"]
        self.messages.append({"role": "tool", "tool_call_id": last, "content": result})

    def judged(self) -> dict[str, str]:
        row = Row("agent", "1", "stdio")
        verdict.judge(row, self.script.turns, RUN)
        return row.cells


class Scripts(unittest.TestCase):
    def test_agent_that_lists_at_once_has_every_cell(self) -> None:
        agent = Agent({PREFIX + CONTROL: {}})
        self.assertEqual(agent.ask(), (PREFIX + CONTROL, ARGUMENTS))
        agent.tell("on: everything_echo")
        agent.tools[PREFIX + WANTED] = SCHEMA
        self.assertEqual(agent.ask(), (PREFIX + WANTED, {"message": MESSAGE}))
        agent.tell(f"Echo: {MESSAGE}")
        self.assertIsNone(agent.ask())
        self.assertEqual(set(agent.judged().values()), {WORKS})

    def test_agent_that_lists_late_works_a_turn_later(self) -> None:
        agent = Agent({PREFIX + CONTROL: {}})
        agent.ask()
        agent.tell("on: everything_echo")
        self.assertEqual(agent.ask()[0], PREFIX + WANTED)
        agent.tell("No such tool available")
        agent.tools[PREFIX + WANTED] = SCHEMA
        agent.ask()
        agent.tell(f"Echo: {MESSAGE}")
        agent.ask()
        cells = agent.judged()
        self.assertEqual(cells[verdict.LISTED], "a turn later")
        self.assertEqual(cells[verdict.CALLS], "No such tool available (one turn later it works)")
        self.assertEqual(cells[verdict.DEFINITION], "the model was told only: on: everything_echo")

    def test_tool_that_is_kept_out_of_the_list_is_searched_and_called_by_the_bridge(self) -> None:
        tools = {"tool_search": {}, "tool_call": {}, PREFIX + CONTROL: {}}
        agent = Agent(tools, deferred=(PREFIX + CONTROL,))
        agent.messages[0]["content"] = f"deferred: {PREFIX}{CONTROL}"
        name, arguments = agent.ask()
        self.assertEqual((name, arguments["query"]), ("tool_search", f"select:{PREFIX}{CONTROL}"))
        agent.tell("its schema")
        bridged = ("tool_call", {"name": PREFIX + CONTROL, "arguments": ARGUMENTS})
        self.assertEqual(agent.ask(), bridged)
        agent.tell("on: everything_echo")
        self.assertEqual(agent.ask()[1]["query"], f"select:{PREFIX}{WANTED}")
        agent.tell(f"<function>{PREFIX}{WANTED}</function>")
        self.assertEqual(agent.ask()[1]["name"], PREFIX + WANTED)
        self.assertEqual(agent.judged()[verdict.LISTED], WORKS)

    def test_agent_without_toolman_is_told_from_one_that_never_asked(self) -> None:
        agent = Agent({"bash": {}})
        self.assertIsNone(agent.ask())
        seen = agent.judged()[verdict.SEES]
        self.assertEqual(seen, "the agent asked its model before it had Toolman's tools")
        silent = Agent({}).judged()
        self.assertEqual(silent[verdict.SEES], "the agent never asked its model")
        self.assertEqual(silent[verdict.CALLS], NONE)


class Wires(unittest.TestCase):
    """What is written as an answer is read again as what was said before."""

    CALL = Answer(tool=Tool("echo", "", {}, "ns__"), arguments={"a": 1}, number=7)

    def check(self, wire, body: dict) -> None:
        [call] = wire.read(body).calls
        self.assertEqual((call.target, call.arguments, call.result), ("ns__echo", {"a": 1}, "said"))

    def test_responses(self) -> None:
        item = json.loads(Responses.write(self.CALL, False))["output"][0]
        told = {"type": "function_call_output", "call_id": item["call_id"], "output": "said"}
        self.check(Responses, {"input": [item, told]})

    def test_chat_completions(self) -> None:
        message = json.loads(Chat.write(self.CALL, False))["choices"][0]["message"]
        told = {"role": "tool", "tool_call_id": "call_7", "content": "said"}
        self.check(Chat, {"messages": [message, told]})

    def test_calls_that_are_written_down_as_words(self) -> None:
        function = {"name": "ns__echo", "arguments": {"a": 1}}
        calling = f"Calling tools:\n{[{'id': 'call_7', 'type': 'function', 'function': function}]}"
        told = {"role": "user", "content": [{"type": "text", "text": "Observation:\nsaid"}]}
        body = {"messages": [{"role": "assistant", "content": calling}, told]}
        [call] = Chat.read(body).calls
        self.assertEqual((call.target, call.result), ("ns__echo", "Observation:\nsaid"))

    def test_call_of_a_tool_that_the_agent_does_not_know(self) -> None:
        function = {"name": "invalid", "arguments": json.dumps({"tool": "echo", "error": "?"})}
        calls = [{"id": "call_1", "function": function}]
        [call] = Chat.read({"messages": [{"role": "assistant", "tool_calls": calls}]}).calls
        self.assertEqual(call.target, "echo")

    def test_messages(self) -> None:
        content = json.loads(Messages.write(self.CALL, False))["content"]
        told = {"type": "tool_result", "tool_use_id": "toolu_7", "content": "said"}
        assistant = {"role": "assistant", "content": content}
        self.check(Messages, {"messages": [assistant, {"role": "user", "content": [told]}]})

    def test_gemini(self) -> None:
        content = json.loads(Gemini.write(self.CALL, False))["candidates"][0]["content"]
        told = {"functionResponse": {"name": "ns__echo", "response": {"output": "said"}}}
        self.check(Gemini, {"contents": [content, {"role": "user", "parts": [told]}]})

    def test_events_carry_their_names(self) -> None:
        self.assertEqual(events([("a", {"b": 1}), ("", "[DONE]")]), b'event: a\ndata: {"b": 1}\n\ndata: [DONE]\n\n')


class Tables(unittest.TestCase):
    PAGE = "before\n<!-- t: begin -->\n<!-- t: end -->\nafter\n"

    def table(self, **cells: str) -> Table:
        return Table("t", ("one", "two"), [Row("client", "1.0", "http", cells)])

    def test_a_table_that_is_written_is_read_again(self) -> None:
        page = self.table(one=WORKS, two="a | b\nc").put_into(self.PAGE)
        [row] = self.table().read(page)
        self.assertEqual((row.client, row.over, row.works), ("client", "http", {"one"}))
        self.assertTrue(page.startswith("before\n") and page.endswith("after\n"))

    def test_what_worked_before_and_does_not_now_is_told(self) -> None:
        page = self.table(one=WORKS, two="no").put_into(self.PAGE)
        self.assertEqual(self.table(one=WORKS, two=WORKS).worse_than(page), [])
        worse = self.table(one="broken", two=WORKS).worse_than(page)
        self.assertEqual(worse, ["client over http: `one` worked before; now: broken"])

    def test_rows_that_were_not_run_stay(self) -> None:
        other = Table("t", ("one", "two"), [Row("other", "2", "stdio", {"one": WORKS})])
        page = other.put_into(self.table(one=WORKS).put_into(self.PAGE))
        self.assertEqual([row.client for row in other.read(page)], ["client", "other"])


if __name__ == "__main__":
    unittest.main()
