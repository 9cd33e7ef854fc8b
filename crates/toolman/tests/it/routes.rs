//! Paths of the operator's own that call a tool each.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::http::{HttpAnswer, send};

use crate::folder;
use crate::http_limits::{Service, TOKEN};
use crate::rest::check_document_at;

const ROUTES: &str = r#"
surface = "filter"
[tokens.ci]
token = "another-token-that-nobody-guesses"
[agents.ci]
allowed_servers = ["b"]
[default_policy]
allow_unknown_tools = true
[[routes]]
method = "GET"
path = "/api/things/{id}"
tool = "a_echo"
description = "One thing"
[routes.request_schema]
required = ["id"]
properties = { id = { type = "integer", minimum = 1 }, tag = { type = "array", items = { type = "string" } }, deep = { type = "boolean" } }
additionalProperties = false
[[routes]]
path = "/api/things/{id}"
tool = "a:echo"
response_schema = '{"required": ["done"], "properties": {"secret": false}}'
[[routes]]
path = "/api/fail"
tool = "a_fail"
[[routes]]
path = "/api/picky"
tool = "a_picky"
[[routes]]
path = "/api/error"
tool = "a_error"
[[routes]]
path = "/api/gone"
tool = "a_nothing"
"#;

async fn start() -> (Folder, Service) {
    let folder = folder(ROUTES, &[("a", "echo fail error picky"), ("b", "echo")]);
    let service = Service::start(&folder, &[]).await;
    (folder, service)
}

fn code(answer: &HttpAnswer) -> (u16, Value) {
    (answer.status, answer.json()["error"]["code"].clone())
}

#[tokio::test]
async fn route_calls_its_tool_with_what_path_query_and_body_say() {
    // TC-32
    let (_folder, service) = start().await;
    let answer = service.send("/api/things/7?deep=true&tag=x&tag=y%20z", &[], "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.json(), json!({"id": 7, "deep": true, "tag": ["x", "y z"]}));
    // Without a schema of its own the tool's own tells the types.
    let answer = service.send("/api/things/n%2F1?x=3", &[], r#"{"done": {"by": 1.50}}"#).await;
    assert_eq!(answer.json(), json!({"id": "n/1", "x": 3, "done": {"by": 1.50}}));
    let document = service.send("/openapi.json", &[], "").await.json();
    let path = &document["paths"]["/api/things/{id}"];
    assert_eq!(path["get"]["description"], "One thing");
    let id = json!({
        "name": "id", "in": "path", "required": true, "schema": {"type": "integer", "minimum": 1},
    });
    assert_eq!(path["get"]["parameters"][0], id);
    assert_eq!(path["get"]["parameters"][1]["in"], "query");
    assert!(path["post"]["requestBody"].is_object());
    assert!(document["paths"].get("/api/gone").is_none(), "its tool is not there");
    check_document_at(&service.address, TOKEN).await;
}

#[tokio::test]
async fn every_failure_of_a_route_has_its_code() {
    // TC-32
    let (_folder, service) = start().await;
    for (path, body, field, words) in [
        ("/api/things/seven", "", "/id", "is not of type \"integer\""),
        ("/api/things/0", "", "/id", "less than the minimum"),
        ("/api/things/1?other=2", "", "", "'other' was unexpected"),
        ("/api/things/1?id=2", "", "/id", "it is said twice; say it in one place"),
        ("/api/things/1?deep=true&deep=false", "", "/deep", "it is said twice"),
        ("/api/things/1?x=%zz", "", "", "the query is not encoded well"),
        ("/api/things/1", "[1]", "", "the body must be a JSON object"),
        ("/api/things/1", "{\"id\": 2}", "/id", "it is said twice"),
        ("/api/picky", "{}", "", "`x` must be a number"),
    ] {
        let answer = service.send(path, &[], body).await;
        assert_eq!(code(&answer), (400, json!("VALIDATION_ERROR")), "{path}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["details"][0]["path"], field, "{answer:?}");
        assert!(error["message"].as_str().unwrap().contains(words), "{answer:?}");
    }
    let fails = service.send("/api/fail", &[], "{}").await;
    assert_eq!(code(&fails), (500, json!("INTERNAL_ERROR")), "{fails:?}");
    assert_eq!(fails.json()["error"]["message"], "it failed");
    assert_eq!(code(&service.send("/api/error", &[], "{}").await), (500, json!("INTERNAL_ERROR")));
    for body in ["{}", r#"{"done": 1, "secret": "hush"}"#] {
        let answer = service.send("/api/things/1", &[], body).await;
        assert_eq!(code(&answer), (500, json!("RESPONSE_VALIDATION_ERROR")), "{answer:?}");
        assert!(!answer.body.contains("hush"), "{answer:?}");
    }
    let gone = service.send("/api/gone", &[], "{}").await;
    assert_eq!(code(&gone), (404, json!("tool_not_found")));
}

#[tokio::test]
async fn routes_obey_the_token_and_the_ceiling() {
    // TC-32
    let (_folder, service) = start().await;
    let body = r#"{"done": 1}"#;
    let ask = async |bearer: &str, method: &str| {
        let headers = [("Authorization", bearer)];
        send(&service.address, method, "/api/things/1", &headers, body).await
    };
    assert_eq!(code(&ask("Bearer wrong", "POST").await), (401, json!("unauthorized")));
    let refused = ask("Bearer another-token-that-nobody-guesses", "POST").await;
    assert_eq!(code(&refused), (404, json!("tool_not_found")), "{refused:?}");
    assert_eq!(ask(&format!("Bearer {TOKEN}"), "POST").await.status, 200);
    let other = ask(&format!("Bearer {TOKEN}"), "PUT").await;
    assert_eq!((other.status, other.header("allow")), (405, Some("GET, POST")));
    let headers = [("Authorization", "Bearer another-token-that-nobody-guesses")];
    let document = send(&service.address, "GET", "/openapi.json", &headers, "").await.json();
    assert!(document["paths"].get("/api/things/{id}").is_none(), "{document}");
}
