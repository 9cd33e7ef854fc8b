"""What the recorded turns of a coding agent prove."""

import json
import re
from pathlib import Path

from outcome import NONE, WORKS, Row
from model import CONTROL, MESSAGE, WANTED

COLUMNS = (
    "sees `toolman_activate`",
    "definition reaches the model",
    "listed or found in the next turn",
    "call works in the next turn",
)
SEES, DEFINITION, LISTED, CALLS = COLUMNS


def judge(row: Row, turns: list[dict], run: dict) -> None:
    first = next((turn for turn in turns if turn["step"].endswith("activate")), None)
    if first is None:
        row.cells = dict.fromkeys(COLUMNS, NONE)
        row.cells[SEES] = missing(turns, run)
        return
    row.cells[SEES] = WORKS
    told = next((turn for turn in turns if (turn["called"] or "").endswith(CONTROL)), None)
    if told is None:
        row.cells |= dict.fromkeys((DEFINITION, LISTED, CALLS), NONE)
        row.cells[CALLS] = f"the result of `{CONTROL}` never came back{ending(run)}"
        return
    before = [turn for turn in turns if turn["step"] != "see"]
    knows = any(turn["knows_definition"] for turn in before)
    row.cells[DEFINITION] = WORKS if knows else f"the model was told only: {brief(told['result'])}"
    row.cells[LISTED] = listed(turns, told)
    row.cells[CALLS] = calls(turns, run)


def calls(turns: list[dict], run: dict) -> str:
    seen = [turn for turn in turns if turn["step"] == "see"]
    tries = [turn["result"] or "" for turn in turns if turn["step"] == "call"]
    if not seen and len(tries) > 1:
        # The agent keeps no call of a tool that it does not know, only its complaint.
        return brief(tries[1].removeprefix(tries[0]).strip())
    if not seen:
        return f"`{WANTED}` was not called{ending(run)}"
    if MESSAGE in (seen[0]["result"] or ""):
        return WORKS
    later = any(MESSAGE in (turn["result"] or "") for turn in seen)
    late = " (one turn later it works)" if later else ""
    return f"{brief(seen[0]['result'] or 'nothing came back')}{late}"


def listed(turns: list[dict], told: dict) -> str:
    """By the list of the next turn; where the agent has a search instead, by what that finds."""
    if told["wanted"]:
        return WORKS
    if told["step"].startswith("search"):
        after = turns[turns.index(told) + 1 :][:1]
        if any(turn["wanted"] or turn["wanted_found"] for turn in after):
            return WORKS
        return "its search did not find it"
    return "a turn later" if any(turn["wanted"] for turn in turns) else "never"


def missing(turns: list[dict], run: dict) -> str:
    if turns:
        return "the agent asked its model before it had Toolman's tools"
    return f"the agent never asked its model{ending(run)}"


def ending(run: dict) -> str:
    if run["late"]:
        return f"; it was ended after {run['took_s']} s"
    return f"; it ended with {run['exit']}" if run["exit"] else ""


def brief(text: str) -> str:
    """An excerpt that is the same in every run: without ports and times."""
    flat = re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1", " ".join(text.split()))
    flat = re.sub(r"\d+\.\d+ seconds", "… seconds", flat)
    return flat if len(flat) <= 120 else f"{flat[:120]}…"


def observed(record: Path) -> dict:
    """What the wire says of the client: who it is, its era, and when it listed again."""
    found: dict = {"lists": 0, "listed_again_after_ms": [], "sessions": 0}
    changed_at = None
    lines = record.read_text().splitlines() if record.exists() else []
    for line in map(json.loads, lines):
        method = line.get("method")
        if method == "initialize":
            found["sessions"] += 1
            found |= {"client": line.get("client"), "revision": line.get("revision")}
        elif method == "server/discover" and line.get("modern"):
            said = {key.rsplit("/", 1)[1]: value for key, value in line["modern"].items()}
            found |= {"client": said.get("clientInfo"), "revision": said.get("protocolVersion")}
        elif method == "notifications/tools/list_changed":
            changed_at = line["at"]
        elif method == "tools/list":
            found["lists"] += 1
            if changed_at is not None:
                waited = round((line["at"] - changed_at) * 1000)
                found["listed_again_after_ms"].append(waited)
                changed_at = None
    return found
