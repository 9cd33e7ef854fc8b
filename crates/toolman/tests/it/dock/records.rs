//! What stays of the dock on the disk, and what its settings do.

use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send_raw;
use testkit::processes::kill;
use tokio::time::timeout;

use super::{Data, Dock, HELLO, TOKEN};
use crate::TOOLMAN;
use crate::up::request;

/// All calls that are recorded below a data directory.
fn calls(data: &Path) -> Vec<Value> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(data.join("logs/audit")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "jsonl") {
            let text = std::fs::read_to_string(path).unwrap();
            let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
            found.extend(lines.filter(|line| line["event"] == "call"));
        }
    }
    found
}

#[tokio::test]
async fn each_call_is_a_line_of_the_day_and_old_days_are_forgotten() {
    // TD-16, TD-33, TD-35
    let data = Data::new(&[("a/t.py", HELLO)]);
    let logs = data.path().join("logs/audit");
    std::fs::create_dir_all(&logs).unwrap();
    std::fs::write(logs.join("2020-01-01.jsonl"), "").unwrap();
    let mut dock = Dock::start_with(&data, &[("LOG_RETENTION_DAYS", "7")]).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.call("a", "hello", &json!({"name": 5})).await.status, 422);
    kill("-TERM", dock.child.id().unwrap());
    timeout(PATIENCE, dock.child.wait()).await.unwrap().unwrap();
    let calls = calls(data.path());
    assert_eq!(calls.len(), 2, "{calls:?}");
    assert_eq!((&calls[0]["namespace"], &calls[0]["item"]), (&json!("a"), &json!("hello")));
    assert_eq!((&calls[0]["status"], &calls[1]["status"]), (&json!("ok"), &json!("tool_error")));
    for key in ["request", "revision"] {
        assert!(!calls[0][key].as_str().unwrap().is_empty(), "{key}: {}", calls[0]);
    }
    assert!(calls[0]["latency_us"].as_u64().unwrap() > 0);
    assert!(!logs.join("2020-01-01.jsonl").exists(), "it is older than seven days");
}

#[tokio::test]
async fn folders_are_all_there_is_to_know() {
    // TD-02, TD-04
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO)]);
    let mut dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    kill("-KILL", dock.child.id().unwrap());
    timeout(PATIENCE, dock.child.wait()).await.unwrap().unwrap();
    data.remove("b");
    // Nothing but the files is kept: the same folder elsewhere is the same dock.
    let elsewhere = Data::new(&[]);
    let text = std::fs::read_to_string(data.path().join("tools/a/t.py")).unwrap();
    elsewhere.write("a/t.py", &text);
    for data in [&data, &elsewhere] {
        let dock = Dock::start(data).await;
        let names = dock.ask("GET", "/namespaces", &[], "").await.json();
        assert_eq!(names["namespaces"], json!(["a"]));
        assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    }
}

#[tokio::test]
async fn data_directory_may_be_named_from_where_one_stands() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    let mut command = Folder::new(TOOLMAN).command(&["check", "--data-dir", "."]);
    let output = command.current_dir(data.path()).output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("all is well"), "{text}");
}

#[tokio::test]
async fn payload_over_the_limit_is_refused_and_costs_nobody_anything() {
    // TD-14
    let data = Data::new(&[("a/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    for (path, status) in [("/tools/hello", 413), ("/mcp", 413)] {
        // It is refused by its announced length.
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: {}\r\nConnection: close\r\nAuthorization: Bearer {TOKEN}\r\n\
             X-Namespace: a\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\n\
             Content-Length: 99999999\r\n\r\n{{",
            dock.address
        );
        let answer = send_raw(&dock.address, &head).await;
        assert_eq!(answer.status, status, "{path}: {answer:?}");
    }
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
}

#[tokio::test]
async fn settings_of_the_environment_count() {
    // TD-85, TD-112, TD-145, TD-146
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let data = Data::new(&[("a/t.py", HELLO)]);
    let mut command = Folder::new(TOOLMAN).command(&["serve"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    for (name, value) in [
        ("BEARER_TOKEN", TOKEN),
        ("CORE_PORT", &port.to_string()),
        ("CORS_ORIGINS", "*"),
        ("ENABLE_LEGACY_MCP", "off"),
        ("LOG_LEVEL", "INFO"),
        ("TOOLDOCK_UID", "4294967000"),
        ("MCP_SUPPORTED_VERSIONS", "2025-06-18"),
    ] {
        command.env(name, value);
    }
    let (stdout, stderr) = (Stdio::piped(), Stdio::piped());
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    let mut child = command.stdin(Stdio::null()).stdout(stdout).stderr(stderr).spawn().unwrap();
    let mut lines =
        tokio::io::AsyncBufReadExt::lines(tokio::io::BufReader::new(child.stdout.take().unwrap()));
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(line.ends_with(&format!("http://127.0.0.1:{port}/mcp")), "{line}");
    let dock = Dock { child, address: format!("127.0.0.1:{port}") };
    let page = [("Origin", "https://anywhere.example"), ("X-Namespace", "a")];
    let answer = dock.ask("GET", "/tools", &page, "").await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.header("access-control-allow-origin"), Some("https://anywhere.example"));
    assert_eq!(dock.ask("GET", "/sse", &[("X-Namespace", "a")], "").await.status, 404);
    let version = [("X-Namespace", "a"), ("MCP-Protocol-Version", "2025-11-25")];
    let list = request(1, "tools/list", json!({})).to_string();
    assert_eq!(dock.ask("POST", "/mcp", &version, &list).await.status, 400);
    kill("-TERM", dock.child.id().unwrap());
    let output = timeout(PATIENCE, dock.child.wait_with_output()).await.unwrap().unwrap();
    let output = String::from_utf8(output.stderr).unwrap();
    assert!(output.contains("INFO"), "{output}");
    assert!(output.contains("TOOLDOCK_UID is 4294967000, but this process has"), "{output}");
    assert!(output.contains("CORS_ORIGINS lets pages of all origins in"), "{output}");
}
