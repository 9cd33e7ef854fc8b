"""Lets schemathesis look for faults of what the OpenAPI document of a namespace describes.

`faults.py URL TOKEN NAMESPACE EXAMPLES`: so many examples for each tool, the same in each run.
"""

import os
import subprocess
import sys
import tempfile
import urllib.request

BASE, TOKEN, NAMESPACE, EXAMPLES = sys.argv[1:5]


def main():
    program = os.path.join(os.path.dirname(sys.executable), "schemathesis")
    headers = {"Authorization": f"Bearer {TOKEN}", "X-Namespace": NAMESPACE}
    with tempfile.TemporaryDirectory() as folder:
        file = os.path.join(folder, "openapi.json")
        with urllib.request.urlopen(urllib.request.Request(BASE + "/openapi.json", headers=headers), timeout=30) as answer:
            with open(file, "wb") as out:
                out.write(answer.read())
        # Which namespace is meant the document says.
        found = subprocess.run(
            [program, "run", file, "--url", BASE, "--header", f"Authorization: Bearer {TOKEN}", "--phases", "examples,coverage,fuzzing",
             "--max-examples", EXAMPLES, "--seed", "1", "--generation-database", "none",
             "--suppress-health-check", "all", "--no-color"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert found.returncode == 0, found.stdout
    print(found.stdout, "ok", sep="\n")


main()
