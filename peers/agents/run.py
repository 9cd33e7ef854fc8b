"""Tries Toolman with real coding agents and client libraries, and keeps the tables of a page.

`cargo xtask agents` installs what this needs and calls it. Each client runs by itself, in a home of
its own, with a bounded time, and everything that it started ends with it. The exit code is 1 if
something that works in the committed table did not.
"""

import argparse
import json
import shutil
import sys
import tempfile
from contextlib import nullcontext
from pathlib import Path

# The scripts lie in the source tree, where no cache belongs.
sys.dont_write_bytecode = True

import coding
import libraries
import verdict
from model import Model
from outcome import Row, Table
from stage import Failed, Place

LIMIT_S = 90

AGENTS_TABLE = "coding agents"
LIBRARIES_TABLE = "client libraries"


def main() -> int:
    options = arguments()
    known = [*coding.AGENTS, *libraries.LIBRARIES]
    unknown = set(options.names) - {client.key for client in known}
    if unknown:
        named = ", ".join(client.key for client in known)
        wrong = ", ".join(sorted(unknown))
        print(f"error: no client is named {wrong}; there are: {named}", file=sys.stderr)
        return 2
    chosen = [client for client in known if not options.names or client.key in options.names]
    if options.needs:
        print("\n".join(sorted({need for client in chosen for need in client.needs})))
        return 0
    if not (options.toolman and options.peers and options.page):
        print("error: run it as `cargo xtask agents`", file=sys.stderr)
        return 2
    page = options.page.read_text()
    folder = Path(tempfile.mkdtemp(prefix="toolman-agents-"))
    tables = {
        AGENTS_TABLE: Table(AGENTS_TABLE, verdict.COLUMNS),
        LIBRARIES_TABLE: Table(LIBRARIES_TABLE, libraries.COLUMNS),
    }
    report = []
    try:
        for client in chosen:
            for over in options.over or ("stdio", "http"):
                if over in getattr(client, "over", ("stdio", "http")):
                    name, row, record = one(client, over, folder, options)
                    report.append(record)
                    if Table(name, tables[name].columns, [row]).worse_than(page):
                        print("that was better before; once more, as a busy machine may be why")
                        name, row, record = one(client, over, folder / "again", options)
                        report.append(record)
                    tables[name].rows.append(row)
    finally:
        if options.keep:
            print(f"the recordings are in {folder}")
        else:
            shutil.rmtree(folder, ignore_errors=True)
    if options.json:
        options.json.write_text(json.dumps(report, indent=2) + "\n")
    return conclude(list(tables.values()), page, options)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="cargo xtask agents", description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="CLIENT", help="the clients to try [all]")
    parser.add_argument("--over", action="append", choices=("stdio", "http"), help="one transport")
    parser.add_argument("--keep", action="store_true", help="keep what was recorded and printed")
    parser.add_argument("--release", action="store_true", help="try the optimised binary")
    parser.add_argument("--bless", action="store_true", help="write the tables of the page anew")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write every step as JSON")
    for name in ("toolman", "peers", "page"):
        parser.add_argument(f"--{name}", type=Path, help=argparse.SUPPRESS)
    # Prints what must be installed for these clients, and tries nothing.
    parser.add_argument("--needs", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def one(client, over: str, folder: Path, options) -> tuple[str, Row, dict]:
    """One client over one transport: its table, its row there, and all that was seen."""
    peers = options.peers.resolve()
    row = Row(client.name, client.version(peers), over)
    is_agent = isinstance(client, coding.Agent)
    parts = []
    for part in ("agent",) if is_agent else client.parts:
        everything = peers / "npm/node_modules/@modelcontextprotocol/server-everything/dist/index.js"
        name = folder / f"{client.key}-{over}-{part}"
        place = Place(name, options.toolman.resolve(), everything)
        try:
            act = try_agent if is_agent else try_library
            record = act(client, over, place, row, peers, part)
        except Failed as failure:
            sys.exit(f"error: {failure}")
        finally:
            left = place.end_all()
        record |= {"left_behind": left, "observed": verdict.observed(place.record)}
        parts.append({"part": part, **record})
    if not is_agent:
        libraries.own_faults(client, row)
    print(Table("", COLUMNS[is_agent], [row]).plain(), flush=True)
    about = {"client": client.key, "over": over, "version": row.version, "cells": row.cells}
    return TABLES[is_agent], row, {**about, "parts": parts}


COLUMNS = {True: verdict.COLUMNS, False: libraries.COLUMNS}
TABLES = {True: AGENTS_TABLE, False: LIBRARIES_TABLE}


def try_agent(agent, over: str, place: Place, row: Row, peers: Path, _part: str) -> dict:
    with Model() as model, service(place, over) as url:
        stage = coding.Stage(
            home=place.folder / "home",
            packages=peers / "agents/npm/node_modules",
            model=model.url,
            command=None if url else place.stdio,
            url=url,
            token=place.token,
        )
        command = agent.command(stage)
        run = place.run(command, stage.environment, LIMIT_S)
    verdict.judge(row, model.script.turns, run)
    return kept(place, model, run)


def try_library(library, over: str, place: Place, row: Row, peers: Path, part: str) -> dict:
    with Model() as model, service(place, over) as url:
        server = [url, place.token] if url else place.stdio
        command = library.command(peers, part, server)
        run = place.run(command, {"SCRIPTED_MODEL": f"{model.url}/v1"}, LIMIT_S)
    out, err = place.folder / "stdout", place.folder / "stderr"
    steps = libraries.judge(row, part, out, err, run, model.script.turns)
    return {"steps": steps, **kept(place, model, run)}


def kept(place: Place, model: Model, run: dict) -> dict:
    (place.folder / "requests.json").write_text(json.dumps(model.bodies, indent=1))
    return {"run": run, "turns": model.script.turns}


def service(place: Place, over: str):
    return place.http() if over == "http" else nullcontext()


def conclude(tables: list[Table], page: str, options) -> int:
    worse = [line for table in tables for line in table.worse_than(page)]
    for line in worse:
        print(f"worse: {line}")
    if options.bless:
        for table in tables:
            page = table.put_into(page)
        options.page.write_text(page)
        return 0
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
