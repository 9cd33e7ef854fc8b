"""Lets a generator make a client of the OpenAPI document of a namespace, and calls every tool with it.

`generated.py URL TOKEN NAMESPACE CALLS`: CALLS is an object with the arguments of each tool and the structured content
that is expected, which may be null.
"""

import importlib
import json
import os
import subprocess
import sys
import tempfile
import typing
import urllib.request

BASE, TOKEN, NAMESPACE = sys.argv[1:4]
CALLS = json.loads(sys.argv[4])
HEADERS = {"Authorization": f"Bearer {TOKEN}", "X-Namespace": NAMESPACE}


def generate(folder):
    request = urllib.request.Request(BASE + "/openapi.json", headers=HEADERS)
    with urllib.request.urlopen(request, timeout=30) as answer:
        document = json.load(answer)
    file = os.path.join(folder, "openapi.json")
    with open(file, "w", encoding="utf-8") as out:
        json.dump(document, out)
    programs = os.path.dirname(sys.executable)
    path = programs + os.pathsep + os.environ.get("PATH", "")
    made = subprocess.run(
        [os.path.join(programs, "openapi-python-client"), "generate", "--path", file, "--meta", "none",
         "--output-path", os.path.join(folder, "made"), "--fail-on-warning"],
        env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120)
    # What it can't understand it leaves out, with a warning.
    assert made.returncode == 0, made.stdout
    return [item["post"]["operationId"] for path, item in document["paths"].items() if path.startswith("/tools/")]


def call(client, tool):
    operation = importlib.import_module(f"made.api.default.{tool}")
    arguments, expected = CALLS[tool]
    # A body that may be left out is a model or nothing.
    hint = operation.sync_detailed.__annotations__["body"]
    model = next(one for one in typing.get_args(hint) or (hint,) if hasattr(one, "from_dict"))
    answer = operation.sync_detailed(client=client, body=model.from_dict(arguments))
    assert answer.status_code == 200, (tool, answer)
    assert answer.parsed is not None and not answer.parsed.is_error, (tool, answer)
    said = answer.parsed.to_dict()
    assert said["content"] and said.get("structuredContent") == expected, (tool, said)


def main():
    with tempfile.TemporaryDirectory() as folder:
        tools = generate(folder)
        assert sorted(tools) == sorted(CALLS), tools
        sys.path.insert(0, folder)
        made = importlib.import_module("made")
        # Which namespace is meant the document says.
        client = made.AuthenticatedClient(base_url=BASE, token=TOKEN, timeout=60)
        for tool in tools:
            call(client, tool)
    print("ok")


main()
