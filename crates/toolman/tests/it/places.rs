//! Where a client connects decides what it is shown: namespaces and further endpoints.

use serde_json::{Value, json};
use testkit::http::{HttpAnswer, send};

use crate::folder;
use crate::up::Up;

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

async fn ask(
    up: &Up,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    let bearer = format!("Bearer {}", up.token);
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend(headers);
    send(&up.address, method, path, &all, body).await
}

/// The names of the tools in a session that is opened at `path` with these headers.
async fn tools_at(up: &Up, path: &str, headers: &[(&str, &str)]) -> Vec<String> {
    let opened = ask(up, "POST", path, headers, HELLO).await;
    assert_eq!(opened.status, 200, "{}", opened.body);
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let mut all = vec![("Mcp-Session-Id", session.as_str())];
    all.extend(headers);
    ask(up, "POST", path, &all, INITIALIZED).await;
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}).to_string();
    let answer = ask(up, "POST", path, &all, &list).await;
    names(&answer.json()["result"])
}

fn names(list: &Value) -> Vec<String> {
    let tools = list["tools"].as_array().expect("there is a list");
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn surface_namespace_shows_one_namespace_under_bare_names() {
    // TD-75, TD-78, TD-79
    let head = "surface = \"namespace\"";
    let folder = folder(head, &[("git", "echo fail"), ("hub", "echo")]);
    let up = Up::start(&folder).await;
    let git = [("X-Namespace", "git")];
    assert_eq!(tools_at(&up, "/mcp", &git).await, ["echo", "fail"]);
    assert_eq!(tools_at(&up, "/mcp", &[("X-Namespace", "hub")]).await, ["echo"]);
    let list = ask(&up, "GET", "/tools", &git, "").await;
    assert_eq!(names(&list.json()), ["echo", "fail"]);
    let call = ask(&up, "POST", "/tools/fail", &git, "{}").await;
    assert_eq!((call.status, &call.json()["isError"]), (200, &json!(true)));
    let hidden = ask(&up, "POST", "/tools/fail", &[("X-Namespace", "hub")], "{}").await;
    assert_eq!(hidden.status, 404, "it is not in this namespace: {}", hidden.body);
    for spelling in ["git_fail", "git:fail", "git.fail"] {
        let path = format!("/tools/{spelling}");
        let hidden = ask(&up, "POST", &path, &[("X-Namespace", "hub")], "{}").await;
        assert_eq!(hidden.status, 404, "{spelling}");
    }
    for (headers, status, words) in [
        (&[][..], 400, "name a namespace in `X-Namespace`; there are `git`, `hub`"),
        (&[("X-Namespace", "none")], 404, "there is no such namespace; there are `git`, `hub`"),
    ] {
        for (method, path, body) in [("POST", "/mcp", HELLO), ("GET", "/tools", "")] {
            let answer = ask(&up, method, path, headers, body).await;
            assert_eq!(answer.status, status, "{path}");
            assert!(answer.body.contains(words), "{}", answer.body);
        }
    }
    let listed = ask(&up, "GET", "/namespaces", &[], "").await;
    assert_eq!(listed.json(), json!({"namespaces": ["git", "hub"]}));
    assert_eq!(send(&up.address, "GET", "/namespaces", &[], "").await.status, 401);
}

#[tokio::test]
async fn session_belongs_to_the_place_where_it_was_opened() {
    let folder = folder("surface = \"namespace\"", &[("git", "echo"), ("hub", "echo")]);
    let up = Up::start(&folder).await;
    let opened = ask(&up, "POST", "/mcp", &[("X-Namespace", "git")], HELLO).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let ping = json!({"jsonrpc": "2.0", "id": 2, "method": "ping"}).to_string();
    for (namespace, status) in [("git", 200), ("hub", 404)] {
        let headers = [("X-Namespace", namespace), ("Mcp-Session-Id", session.as_str())];
        assert_eq!(ask(&up, "POST", "/mcp", &headers, &ping).await.status, status, "{namespace}");
    }
    let elsewhere = [("X-Namespace", "hub"), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(ask(&up, "DELETE", "/mcp", &elsewhere, "").await.status, 404);
}

#[tokio::test]
async fn any_surface_is_narrowed_by_the_header() {
    let folder = folder("active_toolsets = [\"*\"]", &[("git", "echo"), ("hub", "echo")]);
    let up = Up::start(&folder).await;
    let all = ["toolman_activate", "git_echo", "hub_echo"];
    assert_eq!(tools_at(&up, "/mcp", &[]).await, all);
    let git = [("X-Namespace", "git")];
    assert_eq!(tools_at(&up, "/mcp", &git).await, ["toolman_activate", "git_echo"]);
}

#[tokio::test]
async fn further_endpoints_show_what_they_are_told_to() {
    // TC-32
    let head = "[[endpoints]]\npath = \"/mcp/all\"\nsurface = \"filter\"\n\
                [[endpoints]]\npath = \"/git\"\nsurface = \"namespace\"\nnamespace = \"git\"\n";
    let folder = folder(head, &[("git", "echo"), ("hub", "echo")]);
    let up = Up::start(&folder).await;
    assert_eq!(tools_at(&up, "/mcp", &[]).await, ["toolman_activate"]);
    assert_eq!(tools_at(&up, "/mcp/all", &[]).await, ["git_echo", "hub_echo"]);
    assert_eq!(tools_at(&up, "/git", &[]).await, ["echo"]);
    assert_eq!(ask(&up, "POST", "/git", &[("X-Namespace", "hub")], HELLO).await.status, 404);
    let foreign = [("Host", "evil.example")];
    assert_eq!(ask(&up, "POST", "/git", &foreign, HELLO).await.status, 403);
    assert_eq!(send(&up.address, "POST", "/git", &[], HELLO).await.status, 401);
}

#[tokio::test]
async fn client_on_stdin_names_its_namespace() {
    let folder = folder("surface = \"namespace\"", &[("git", "echo"), ("hub", "echo")]);
    for (arguments, words) in [
        (&[][..], "needs `--namespace NAME` here; there are git, hub"),
        (&["--namespace", "none"], "names none of the namespaces; there are git, hub"),
    ] {
        let output = folder.run(arguments).await;
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(words), "{stderr}");
    }
}
