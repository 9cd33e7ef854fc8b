"""Strict readers: what the official SDK and a real JSON Schema validator say of our definitions and results."""

import json
import os
import subprocess
import unittest

from interpreters import python

import hint_tables
import test_results
from dock import EXAMPLES, SECONDS_MAX, Worker

CHECK = '''
import json, sys
import jsonschema
import mcp.types
given = json.load(sys.stdin)
for definition in given["definitions"]:
    mcp.types.Tool.model_validate(definition)
    for key in ("inputSchema", "outputSchema"):
        if key in definition:
            assert definition[key]["type"] == "object", definition
            jsonschema.Draft202012Validator.check_schema(definition[key])
for result, schema in given["results"]:
    mcp.types.CallToolResult.model_validate(result)
    if schema is not None:
        jsonschema.Draft202012Validator(schema).validate(result["structuredContent"])
print("fine")
'''


class Strict(unittest.TestCase):
    def check(self, definitions, results=()):
        done = subprocess.run([python("fastmcp2"), "-I", "-c", CHECK], timeout=SECONDS_MAX * 4, capture_output=True,
                              input=json.dumps({"definitions": definitions, "results": list(results)}).encode())
        self.assertEqual(done.stdout, b"fine\n", done.stderr.decode()[-3000:])

    # TD-106; FORMATS 2.5 (6).
    def test_definitions_are_accepted(self):
        sources = [hint_tables.functions(["p: " + hint for hint in hint_tables.HINTS]),
                   hint_tables.functions(hint_tables.DEFAULTS),
                   hint_tables.functions(returns=list(hint_tables.OUTPUTS) + list(hint_tables.OBJECT_OUTPUT) + ["Node"])]
        for source in sources:
            with Worker({"t.py": source}) as worker:
                self.assertEqual(worker.ready["faults"], [])
                self.check(worker.ready["tools"])
        for name in ("basic-tool", "multi-tool", "typed-tool"):
            with Worker(folder=os.path.join(EXAMPLES, name)) as worker:
                self.check(worker.ready["tools"])

    # TD-107; FORMATS 2.5 (6): the peer's results make the Python SDK raise on every tool with a return hint.
    def test_results_are_accepted(self):
        with Worker({"t.py": test_results.source(test_results.RESULTS)}) as worker:
            schemas = {tool["name"]: tool.get("outputSchema") for tool in worker.ready["tools"]}
            self.check(worker.ready["tools"], [[worker.result(name), schema] for name, schema in schemas.items()])


if __name__ == "__main__":
    unittest.main()
