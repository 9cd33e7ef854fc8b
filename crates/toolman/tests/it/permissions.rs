//! The surface `permission`: each client has the toolsets that it is granted, and nothing else.

use serde_json::{Value, json};

use crate::folder;
use crate::up::Up;

const TOOLSETS: &str = r#"
surface = "permission"
[http]
trusted_peers = ["127.0.0.0/8"]
[toolsets]
read = ["git:echo", "hub:tree", "git:r://a"]
[toolsets.write]
description = "All that changes something"
tools = ["git:*"]
"#;

const SERVERS: [(&str, &str); 2] = [("git", "echo fail --resource r://a"), ("hub", "echo tree")];

const HELLO: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

#[tokio::test]
async fn header_grants_toolsets_where_that_is_enabled() {
    // TC-07, TC-08, TC-09, TC-24, TC-34
    let text = format!("{TOOLSETS}[permissions]\nsource = \"headers\"\n");
    let up = Up::start(&folder(&text, &SERVERS)).await;
    let granted = |names| [("mcp-client-id", "c1"), ("mcp-toolset-permissions", names)];
    assert_eq!(up.tools(&granted("read")).await, ["read.echo", "read.tree"]);
    let both = ["read.echo", "read.tree", "write.echo", "write.fail"];
    assert_eq!(up.tools(&granted("write, read, nonsense")).await, both);
    // In two toolsets it is the same tool, whatever it is called.
    for name in ["read.echo", "write.echo", "git_echo", "git:echo"] {
        let path = format!("/tools/{name}");
        let called = up.ask("POST", &path, &granted("read,write"), "{}").await;
        assert_eq!(called.json()["x-first"], 1.1, "{name}: {}", called.body);
    }
    for name in ["write.fail", "git_fail", "fail", "git.fail", "hub_echo"] {
        let path = format!("/tools/{name}");
        assert_eq!(up.ask("POST", &path, &granted("read"), "{}").await.status, 404, "{name}");
    }
    for nothing in ["", "nonsense", "READ", "read;write"] {
        let denied = up.ask("POST", "/mcp", &granted(nothing), HELLO).await;
        assert_eq!(denied.status, 403, "{nothing:?}");
        assert!(denied.body.contains("access denied"), "{}", denied.body);
    }
    assert_eq!(up.ask("POST", "/mcp", &[("mcp-client-id", "c1")], HELLO).await.status, 403);
}

#[tokio::test]
async fn session_sees_what_it_was_granted_and_a_changed_grant_is_a_new_session() {
    let text = format!("{TOOLSETS}[permissions]\nsource = \"headers\"\n");
    let up = Up::start(&folder(&text, &SERVERS)).await;
    let mut headers = vec![("mcp-client-id", "c1"), ("mcp-toolset-permissions", "read")];
    let opened = up.ask("POST", "/mcp", &headers, HELLO).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    headers.push(("mcp-session-id", &session));
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    assert_eq!(up.ask("POST", "/mcp", &headers, &ready).await.status, 202);
    let list = |method: &str| json!({"jsonrpc": "2.0", "id": 2, "method": method}).to_string();
    let listed = up.ask("POST", "/mcp", &headers, &list("tools/list")).await.json();
    let names: Vec<&Value> =
        listed["result"]["tools"].as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    assert_eq!(names, ["read.echo", "read.tree"]);
    let listed = up.ask("POST", "/mcp", &headers, &list("resources/list")).await.json();
    assert_eq!(listed["result"]["resources"][0]["uri"], "git_r://a");
    headers[1].1 = "read,write";
    assert_eq!(up.ask("POST", "/mcp", &headers, &list("tools/list")).await.status, 404);
}

#[tokio::test]
async fn config_grants_by_client_and_the_header_counts_for_nothing() {
    // TC-08, TC-13
    let text = format!(
        "{TOOLSETS}[permissions]\ndefault = [\"read\"]\n[permissions.clients]\n\
         \"ops-*\" = [\"write\"]\n\"ops-1\" = [\"read\", \"write\"]\n"
    );
    let up = Up::start(&folder(&text, &SERVERS)).await;
    let client = |name| [("mcp-client-id", name), ("mcp-toolset-permissions", "write")];
    assert_eq!(up.tools(&client("anybody")).await, ["read.echo", "read.tree"]);
    assert_eq!(up.tools(&client("ops-2")).await, ["write.echo", "write.fail"]);
    assert_eq!(up.tools(&client("ops-1")).await.len(), 4);
}

#[tokio::test]
async fn client_must_name_itself_unless_its_id_is_derived() {
    // TC-15, TC-16, TC-17
    let text = format!("{TOOLSETS}[permissions]\ndefault = [\"read\"]\n");
    let up = Up::start(&folder(&text, &SERVERS)).await;
    for (method, body) in [("POST", HELLO), ("GET", ""), ("DELETE", "")] {
        let answer = up.ask(method, "/mcp", &[("mcp-session-id", "x")], body).await;
        assert_eq!(answer.status, 400, "{method}");
        assert!(answer.body.contains("name your client in `mcp-client-id`"), "{}", answer.body);
    }
    let text = format!("{text}client_id = \"derive\"\n");
    let up = Up::start(&folder(&text, &SERVERS)).await;
    assert_eq!(up.tools(&[]).await, ["read.echo", "read.tree"]);
}
