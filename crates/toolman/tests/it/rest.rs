//! Tools over plain HTTP.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::{HttpAnswer, send, send_raw};
use testkit::peers::python_program;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;

use crate::http_rules::start;
use crate::up::{Up, request};
use crate::{TOOLMAN, fake, folder, real_peers};

/// A request with the token.
async fn ask(up: &Up, method: &str, path: &str, body: &str) -> HttpAnswer {
    let bearer = format!("Bearer {}", up.token);
    send(&up.address, method, path, &[("Authorization", &bearer)], body).await
}

async fn get(up: &Up, path: &str) -> HttpAnswer {
    ask(up, "GET", path, "").await
}

pub async fn call(up: &Up, name: &str, arguments: &Value) -> HttpAnswer {
    ask(up, "POST", &format!("/tools/{name}"), &arguments.to_string()).await
}

/// Lets a validator read the document.
pub async fn check_document(up: &Up) {
    check_document_and_call(up, &[]).await;
}

/// The same, wherever it is served.
pub async fn check_document_at(address: &str, token: &str) {
    let base = format!("http://{address}");
    let program = python_program("checks", "python");
    real_peers::run(&program, "openapi.py", &[&base, token]).await;
}

async fn check_document_and_call(up: &Up, call: &[&str]) {
    let base = format!("http://{}", up.address);
    let arguments = [&[base.as_str(), up.token.as_str()], call].concat();
    real_peers::run(&python_program("checks", "python"), "openapi.py", &arguments).await;
}

/// The frame in which MCP sends a result.
fn frame(result: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"result":{result}}}"#)
}

fn names(answer: &HttpAnswer) -> Vec<String> {
    let list = answer.json();
    let tools = list["tools"].as_array().unwrap().iter();
    tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn arguments_that_are_not_utf8_are_refused() {
    // J06
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let up = Up::start(&folder).await;
    let head = format!(
        "POST /tools/a_echo HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nContent-Length: 10\r\n\r\n",
        up.address, up.token
    );
    let request = [head.as_bytes(), b"{\"x\":\"\xff\xfe\"}"].concat();
    assert_eq!(testkit::http::send_raw(&up.address, request).await.status, 400);
}

#[tokio::test]
async fn tools_are_listed_as_over_mcp_byte_for_byte() {
    // TD-06, TD-71, TD-106
    let (_folder, mut up) = start("echo tree").await;
    up.initialize().await;
    let listed = get(&up, "/tools").await;
    assert_eq!(listed.header("content-type"), Some("application/json"));
    let over_mcp = up.post(&request(1, "tools/list", json!({}))).await;
    assert_eq!(over_mcp.body, frame(&listed.body));
    let tool = &listed.json()["tools"][2];
    assert_eq!(tool["name"], "a_tree");
    for member in ["title", "description", "inputSchema", "outputSchema", "annotations"] {
        assert!(!tool[member].is_null(), "{member}");
    }
}

#[tokio::test]
async fn call_is_answered_as_over_mcp_byte_for_byte() {
    // TD-06, TD-72, TD-107: one engine, so numbers, order and unknown members survive here too.
    let (_folder, mut up) = start("echo fail").await;
    up.initialize().await;
    let exact = r#"{"z":9007199254740993, "a":1e400,"s":"é\u0041"}"#;
    for (name, arguments) in [
        ("a_echo", exact),
        ("a_echo", "{}"),
        ("a:echo", "{}"),
        ("a_fail", "{}"),
        ("toolman_activate", r#"{"tools_on":["a_ecko"]}"#),
        ("toolman_activate", "{}"),
    ] {
        let rest = ask(&up, "POST", &format!("/tools/{name}"), arguments).await;
        assert_eq!(rest.status, 200, "{name}: {}", rest.body);
        let call = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"{name}","arguments":{arguments}}}}}"#
        );
        let over_mcp = up.send("POST", &[], &call).await;
        assert_eq!(over_mcp.body, frame(&rest.body), "{name}");
    }
    let echo = ask(&up, "POST", "/tools/a_echo", &format!("{exact}\n")).await;
    assert!(echo.body.contains(&format!(r#""structuredContent":{exact}"#)), "{}", echo.body);
    assert_eq!(call(&up, "a_fail", &json!({})).await.json()["isError"], true);
}

#[tokio::test]
async fn body_may_be_missing_but_not_large_or_unnamed() {
    let (_folder, up) = start("echo").await;
    let post = |more: &str| {
        let head = "POST /tools/a_echo HTTP/1.1\r\nConnection: close";
        format!("{head}\r\nHost: {}\r\nAuthorization: Bearer {}\r\n{more}", up.address, up.token)
    };
    let plain = send_raw(&up.address, &post("\r\n")).await;
    assert_eq!((plain.status, &plain.json()["structuredContent"]), (200, &json!({})));
    let unsaid = send_raw(&up.address, &post("Content-Length: 2\r\n\r\n{}")).await;
    assert_eq!(unsaid.status, 415, "a body must be said to be JSON");
    let large = "Content-Type: application/json\r\nContent-Length: 5000000\r\n\r\n";
    let large = send_raw(&up.address, &post(large)).await;
    assert_eq!(large.status, 413, "its size is enough to refuse it");
    assert_eq!(large.json()["error"]["code"], "payload_too_large");
}

#[tokio::test]
async fn schemas_of_a_tool_are_given_for_every_spelling_of_its_name() {
    // TD-73
    let (_folder, up) = start("echo tree").await;
    let tree = testkit::fake::tool("tree");
    let both = json!({"inputSchema": tree["inputSchema"], "outputSchema": tree["outputSchema"]});
    for name in ["a_tree", "a:tree", "a%3Atree", "tree"] {
        assert_eq!(get(&up, &format!("/tools/{name}/schema")).await.json(), both, "{name}");
    }
    let echo = json!({"inputSchema": testkit::fake::tool("echo")["inputSchema"]});
    assert_eq!(get(&up, "/tools/a_echo/schema").await.json(), echo);
    let control = get(&up, "/tools/toolman_activate/schema").await.json();
    assert_eq!(control["inputSchema"]["type"], "object");
    let unknown = get(&up, "/tools/a_tre/schema").await;
    assert_eq!(unknown.status, 404);
    assert!(unknown.body.contains("did you mean `a_tree`?"), "{}", unknown.body);
}

#[tokio::test]
async fn wrong_use_is_refused_in_one_format() {
    // TD-80, TD-108, H26
    let (_folder, up) = start("echo picky error").await;
    let deep = format!("{}{}", r#"{"a":"#.repeat(200), "}".repeat(200));
    for (method, path, body, status, code, words) in [
        ("POST", "/tools/a_ecko", "{}", 404, "tool_not_found", "did you mean `a_echo`?"),
        ("POST", "/tools/..%2f..%2freload", "{}", 404, "tool_not_found", "`../../reload`"),
        ("POST", "/tools/a_echo", "{oops", 400, "bad_request", "not valid JSON"),
        ("POST", "/tools/a_echo", "[1]", 400, "bad_request", "not a JSON object"),
        ("POST", "/tools/a_echo", deep.as_str(), 400, "bad_request", "nested deeper"),
        ("POST", "/tools/%zz", "{}", 400, "bad_request", "write `%` as `%25`"),
        ("POST", "/tools/a_picky", "{}", 422, "invalid_arguments", "`x` must be a number"),
        ("POST", "/tools/a_error", "{}", 502, "upstream_error", "no"),
        ("POST", "/tools", "{}", 405, "method_not_allowed", "use GET here"),
        ("DELETE", "/tools/a_echo", "", 405, "method_not_allowed", "use POST here"),
        ("POST", "/tools/a_echo/schema", "{}", 405, "method_not_allowed", "use GET here"),
        ("PUT", "/openapi.json", "{}", 405, "method_not_allowed", "use GET here"),
        ("GET", "/", "", 404, "not_found", "REST at `/tools`"),
        ("GET", "/tools/", "", 404, "not_found", "REST at `/tools`"),
        ("POST", "//mcp", "{}", 404, "not_found", "MCP is at `/mcp`"),
        ("POST", "/MCP", "{}", 404, "not_found", "MCP is at `/mcp`"),
    ] {
        let answer = ask(&up, method, path, body).await;
        assert_eq!(answer.status, status, "{method} {path}: {}", answer.body);
        let error = answer.json();
        assert_eq!(error["error"]["code"], code, "{path}");
        assert!(error["error"]["message"].as_str().unwrap().contains(words), "{error}");
        assert_eq!(answer.header("allow").is_some(), status == 405, "{method} {path}");
        let stranger = send(&up.address, method, path, &[], "").await;
        assert_eq!(stranger.status, 401, "{path} is never past the token");
        assert_eq!(stranger.json()["error"]["code"], "unauthorized");
        assert_eq!(stranger.header("www-authenticate"), Some("Bearer"));
        let foreign = [("Origin", "https://evil.example")];
        let foreigner = send(&up.address, method, path, &foreign, "").await;
        assert_eq!(
            (foreigner.status, &foreigner.json()["error"]["code"]),
            (403, &json!("forbidden"))
        );
    }
    // What the upstream said comes along, byte for byte.
    let error = call(&up, "a_error", &json!({})).await.body;
    let said = r#""details":{"code":-32050,"message":"no","data":{"big":12345678901234567890}}"#;
    assert!(error.contains(said), "{error}");
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str()), ("Content-Type", "text/plain")];
    let plain = send(&up.address, "POST", "/tools/a_echo", &headers, "{}").await;
    assert_eq!(
        (plain.status, &plain.json()["error"]["code"]),
        (415, &json!("unsupported_media_type"))
    );
}

#[tokio::test]
async fn upstream_that_dies_or_is_silent_is_told_by_the_status() {
    let server = |namespace: &str, tools: &str| {
        let command = fake(tools);
        format!(
            "[[servers]]\nnamespace = \"{namespace}\"\ntimeout = \"1s\"\ncommand = \"{command}\"\n"
        )
    };
    let text = format!(
        "active_toolsets = [\"*\"]\n{}{}",
        server("a", "never die"),
        server("b", "never echo")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let up = Up::start(&folder).await;
    let none = json!({});
    let silent = call(&up, "b_never", &none).await;
    assert_eq!(
        (silent.status, &silent.json()["error"]["code"]),
        (504, &json!("execution_timeout"))
    );
    assert!(silent.body.contains("upstream `b` was silent for 1s"), "{}", silent.body);
    // Another call is under way when it dies.
    let (caught, dying) = tokio::join!(call(&up, "a_never", &none), call(&up, "a_die", &none));
    for answer in [caught, dying] {
        assert_eq!(answer.status, 502, "{}", answer.body);
        assert_eq!(answer.json()["error"]["code"], "upstream_failed");
        assert!(answer.body.contains("dying as told"), "{}", answer.body);
    }
    assert_eq!(call(&up, "b_echo", &none).await.status, 200, "others go on");
    let has_it = |names: Vec<String>| names.iter().any(|name| name == "a_die");
    let gone = async { while has_it(names(&get(&up, "/tools").await)) {} };
    timeout(PATIENCE, gone).await.expect("its tools leave the catalog");
    let dead = call(&up, "a_die", &none).await;
    assert_eq!((dead.status, dead.body.contains("dying as told")), (502, true), "{}", dead.body);
}

#[tokio::test]
async fn selection_belongs_to_the_caller_and_not_to_sessions() {
    let folder = folder("active_toolsets = [\"a_echo\"]", &[("a", "echo fail")]);
    let mut up = Up::start(&folder).await;
    up.initialize().await;
    assert_eq!(names(&get(&up, "/tools").await), ["toolman_activate", "a_echo"]);
    for refused in [call(&up, "a_fail", &json!({})).await, get(&up, "/tools/a_fail/schema").await] {
        assert_eq!(refused.status, 404);
        let message = refused.json()["error"]["message"].clone();
        assert!(message.as_str().unwrap().contains("`tools_on` of `toolman_activate` first"));
    }
    let lists =
        json!({"tools_on": ["a_fail"], "tools_off": [], "resources_on": [], "resources_off": []});
    assert_eq!(call(&up, "toolman_activate", &lists).await.json()["isError"], false);
    assert_eq!(names(&get(&up, "/tools").await), ["toolman_activate", "a_echo", "a_fail"]);
    assert_eq!(call(&up, "a_fail", &json!({})).await.status, 200);
    let session = up.post(&request(1, "tools/list", json!({}))).await.json();
    assert_eq!(session["result"]["tools"].as_array().unwrap().len(), 2, "a session has its own");
}

#[tokio::test]
async fn calls_go_on_side_by_side_and_nobody_is_there_to_be_asked() {
    let (_folder, up) = start("slow ask log").await;
    let slow = json!({"ms": 50});
    let slowly = || call(&up, "a_slow", &slow);
    let (one, other, third) = tokio::join!(slowly(), slowly(), slowly());
    for answer in [one, other, third] {
        assert_eq!(answer.status, 200, "{}", answer.body);
    }
    let sampling = json!({"method": "sampling/createMessage", "params": {}});
    let answer = call(&up, "a_ask", &sampling).await.json();
    assert!(answer["structuredContent"]["refused"]["code"].is_number(), "{answer}");
    assert_eq!(call(&up, "a_log", &json!({})).await.status, 200);
}

#[tokio::test]
async fn client_that_leaves_cancels_its_call() {
    let (_folder, up) = start("never seen").await;
    let call_never = format!(
        "POST /tools/a_never HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\r\n",
        up.address, up.token
    );
    let mut stream = tokio::net::TcpStream::connect(&up.address).await.unwrap();
    stream.write_all(call_never.as_bytes()).await.unwrap();
    let seen = async |what: &str| {
        let told = async { while !call(&up, "a_seen", &json!({})).await.body.contains(what) {} };
        timeout(PATIENCE, told).await.expect("the upstream is told");
    };
    seen("never").await;
    drop(stream);
    seen("notifications/cancelled").await;
}

#[tokio::test]
async fn openapi_document_is_valid_and_tells_the_truth() {
    let _loud = crate::MACHINE.read().await;
    let (_folder, up) = start("echo tree ns/x ns.x ns_x").await;
    let tree = json!({"root": {"label": "oak", "children": [{"label": "leaf"}]}}).to_string();
    check_document_and_call(&up, &["a_tree", &tree]).await;
    let document = get(&up, "/openapi.json").await.json();
    assert_eq!(document["openapi"], "3.1.0");
    let paths = document["paths"].as_object().unwrap();
    let safe = paths.keys().find_map(|path| path.strip_prefix("/tools/a_ns_x_"));
    let safe = format!("a_ns_x_{}", safe.expect("a name that is not legal is shown under another"));
    let operation = &paths[&format!("/tools/{safe}")]["post"];
    assert_eq!(operation["operationId"], safe.as_str());
    assert_eq!(document["paths"]["/tools/a_tree"]["post"]["summary"], "Plant a tree");
    assert_eq!(call(&up, "a_ns%2Fx", &json!({"n": 1})).await.json()["structuredContent"]["n"], 1);
}

#[tokio::test]
async fn stubs_are_listed_but_not_described() {
    let head = "active_toolsets = [\"a_echo\"]\ninactive = \"stub\"";
    let folder = folder(head, &[("a", "echo off")]);
    let up = Up::start(&folder).await;
    assert_eq!(names(&get(&up, "/tools").await), ["toolman_activate", "a_echo", "a_off"]);
    let document = get(&up, "/openapi.json").await.json();
    let paths: Vec<_> = document["paths"].as_object().unwrap().keys().collect();
    assert_eq!(paths, ["/tools/toolman_activate", "/tools/a_echo"]);
    assert_eq!(get(&up, "/tools/a_off/schema").await.status, 404);
}

#[tokio::test]
async fn surface_without_control_tools_has_none_here_either() {
    let folder = folder("surface = \"filter\"", &[("a", "echo")]);
    let up = Up::start(&folder).await;
    assert_eq!(names(&get(&up, "/tools").await), ["a_echo"]);
    let unknown = call(&up, "toolman_activate", &json!({})).await;
    assert_eq!((unknown.status, &unknown.json()["error"]["code"]), (404, &json!("tool_not_found")));
}

#[tokio::test]
async fn what_a_client_may_configure_is_told_as_a_schema() {
    // TC-31
    let (_folder, up) = start("echo").await;
    let answer = get(&up, "/.well-known/mcp-config").await;
    assert_eq!(answer.header("content-type"), Some("application/schema+json"));
    let schema = answer.json();
    assert_eq!(schema["$schema"], "https://json-schema.org/draft/2020-12/schema");
    assert_eq!(schema["type"], "object");
    assert_eq!(
        (&schema["properties"], &schema["additionalProperties"]),
        (&json!({}), &json!(false))
    );
}
