"""Checks the OpenAPI document of a running Toolman: that it is one, and that it tells the truth.

`openapi.py URL TOKEN [NAME ARGUMENTS]`: the tool of this name is called as the document says.
"""

import json
import sys
import urllib.request

from jsonschema.validators import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from referencing import Registry, Resource
from referencing.jsonschema import DRAFT202012

BASE, TOKEN = sys.argv[1:3]


def ask(method, path, body=None):
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = body.encode() if body is not None else None
    request = urllib.request.Request(BASE + path, data, headers, method=method)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def main():
    document = ask("GET", "/openapi.json")
    OpenAPIV31SpecValidator(document).validate()
    listed = {tool["name"]: tool for tool in ask("GET", "/tools")["tools"]}
    paths = document["paths"]
    # The operator's own paths stand beside those of the tools.
    operations = {path: item["post"] for path, item in paths.items() if path.startswith("/tools/")}
    assert set(operations) == {"/tools/" + name.replace("/", "%2F") for name in listed}
    ids = [operation["operationId"] for item in paths.values() for operation in item.values()]
    assert len(set(ids)) == len(ids), ids
    assert document["security"] == [{"bearer": []}]

    resource = Resource.from_contents(document, default_specification=DRAFT202012)
    registry = Registry().with_resource("urn:document", resource)

    def check(schema, instance):
        # Refers to it by its place, as a reader of the document would.
        reference = schema["$ref"] if "$ref" in schema else None
        whole = {"$ref": "urn:document" + reference} if reference else schema
        return list(Draft202012Validator(whole, registry=registry).iter_errors(instance))

    for operation in operations.values():
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        check(schema, {})  # Every reference must lead somewhere.

    if len(sys.argv) > 3:
        name, arguments = sys.argv[3:5]
        operation = operations["/tools/" + name]
        schema = operation["requestBody"]["content"]["application/json"]["schema"]
        assert not check(schema, json.loads(arguments)), schema
        assert check(schema, {"root": {"children": []}}), "a wrong tree is found"
        result = ask("POST", "/tools/" + name, arguments)
        key = operation["operationId"]
        output = {"$ref": f"#/components/schemas/{key}.output"}
        assert not check(output, result["structuredContent"]), result
        assert check(output, {"root": 7}), "a wrong result is found"
    print("ok")


main()
