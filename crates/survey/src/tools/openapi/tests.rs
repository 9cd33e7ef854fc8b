//! Operations of `OpenAPI` documents.

use crate::tools::testing::{check, surveyed};

const YAML: &str = r##"openapi: 3.1.0
servers: [{url: "https://api.pets.test/v1"}]
paths:
  /pets/{id}:
    parameters:
      - {name: id, in: path, required: true, schema: {type: integer}}
    get:
      operationId: getPet
      summary: One pet
    put:
      description: Changes it
      requestBody:
        content:
          application/json:
            schema: {$ref: "#/components/schemas/Pet"}
components:
  schemas:
    Pet: {type: object, required: [name], properties: {name: {type: string, description: its name}}}
"##;

#[test]
fn operations_are_told_of_like_tools() {
    check(
        &[("api/openapi.yaml", YAML)],
        "getPet api/openapi.yaml:4 (id:integer!) One pet\n\
         put_pets_id api/openapi.yaml:4 (id:integer!, name:string!=its name) Changes it\n",
    );
    let report = surveyed(&[("api/openapi.yaml", YAML)]);
    assert_eq!(report.framework, Some("openapi"));
    assert_eq!(report.apis_called, ["api.pets.test"]);
}

#[test]
fn code_counts_more_than_a_document() {
    let index = "server.tool('a', 'A', handler);\n";
    check(&[("openapi.yaml", YAML), ("index.js", index)], "a index.js:1 () A\n");
}

#[test]
fn references_out_of_the_document_are_not_followed() {
    let text = r##"{"openapi": "3.0.0", "paths": {"/a": {"get": {"operationId": "a", "parameters": [
        {"$ref": "https://elsewhere.test/x.json"}, {"$ref": "#/paths/~1a/get/parameters/1"}]}}}}"##;
    check(&[("openapi.json", text)], "a openapi.json:1 () \n");
}
