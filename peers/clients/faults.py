"""Lets schemathesis look for faults of what the OpenAPI document of a namespace describes.

`faults.py URL TOKEN NAMESPACE EXAMPLES`: so many examples for each tool, the same in each run.
"""

import os
import subprocess
import sys
import tempfile

BASE, TOKEN, NAMESPACE, EXAMPLES = sys.argv[1:5]


def main():
    program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    with tempfile.TemporaryDirectory() as folder:
        found = subprocess.run(
            [program, "run", BASE + "/openapi.json", "--header", f"Authorization: Bearer {TOKEN}",
             "--header", f"X-Namespace: {NAMESPACE}", "--phases", "examples,coverage,fuzzing",
             "--max-examples", EXAMPLES, "--seed", "1", "--generation-database", "none",
             "--suppress-health-check", "all", "--no-color"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert found.returncode == 0, found.stdout
    print(found.stdout, "ok", sep="\n")


main()
