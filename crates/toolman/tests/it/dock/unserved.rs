//! Folders that offer nothing now, as they are still to be read or not served: nobody takes them for empty.

use serde_json::{Value, json};

use super::installing::{command, early, gated, health};
use super::{Data, Dock, HELLO};
use crate::up::request;

/// A request of the modern era; its answer as it is.
async fn ask_mcp(dock: &Dock, namespace: &str, method: &str, subject: &Value) -> Value {
    let mut params = json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}}});
    let mut headers = vec![
        ("X-Namespace", namespace),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", method),
    ];
    if let Some(name) = subject["name"].as_str() {
        headers.push(("Mcp-Name", name));
        params["name"] = subject["name"].clone();
        params["arguments"] = json!({});
    }
    let body = request(1, method, params).to_string();
    dock.ask("POST", "/mcp", &headers, &body).await.json()
}

#[tokio::test]
async fn folder_that_takes_long_to_be_read_is_neither_empty_nor_unknown() {
    // TD-18, TD-114
    let data = Data::new(&[("quick/t.py", HELLO), ("slow/t.py", HELLO)]);
    let (python, gate) = gated(&data).await;
    // It is waited for no longer than a call may take.
    data.write("slow/tooldock.yaml", &format!("python: {}\ntimeout: 1\n", python.display()));
    let dock = early(command(&data, &[]), &data).await;
    health(&dock, "quick", |quick| quick["state"] == "resting").await;
    let slow = [("X-Namespace", "slow")];
    for (method, path) in [
        ("GET", "/tools"),
        ("POST", "/tools/hello"),
        ("GET", "/tools/hello/schema"),
        ("GET", "/openapi.json"),
    ] {
        let answer = dock.ask(method, path, &slow, "").await;
        assert_eq!((answer.status, answer.header("Retry-After")), (503, Some("1")), "{path}");
        let told = "upstream `slow` is not ready after 1s: its files are still being read";
        assert!(answer.body.contains(told), "{path}: {answer:?}");
    }
    let listed = ask_mcp(&dock, "slow", "tools/list", &Value::Null).await;
    assert_eq!(listed["error"]["code"], -32603, "{listed}");
    assert!(listed["error"]["message"].as_str().unwrap().contains("still being read"), "{listed}");
    let called = ask_mcp(&dock, "slow", "tools/call", &json!({"name": "hello"})).await;
    assert_eq!(called["result"]["isError"], true, "{called}");
    assert!(called.to_string().contains("still being read"), "{called}");
    std::fs::write(gate, "").unwrap();
    health(&dock, "slow", |slow| slow["state"] == "resting").await;
    assert_eq!(dock.tools("slow").await, ["hello"]);
}

#[tokio::test]
async fn folder_that_is_not_served_gives_its_reason() {
    // TD-44
    let data = Data::new(&[
        ("good/t.py", HELLO),
        ("bad/t.py", HELLO),
        ("bad/tooldock.yaml", "nonsense: true\n"),
    ]);
    let dock = Dock::start(&data).await;
    let bad = [("X-Namespace", "bad")];
    let listed = dock.ask("GET", "/tools", &bad, "").await.json();
    assert_eq!(listed["tools"], json!([]), "{listed}");
    let reason = listed["_meta"]["toolman/unserved"]["bad"].as_str().unwrap();
    assert!(reason.starts_with("is not served: tooldock.yaml"), "{reason}");
    for (method, path) in [("POST", "/tools/hello"), ("GET", "/tools/hello/schema")] {
        let answer = dock.ask(method, path, &bad, "").await;
        assert_eq!(answer.status, 502, "{path}: {answer:?}");
        assert!(answer.body.contains(reason), "{path}: {answer:?}");
    }
    let listed = ask_mcp(&dock, "bad", "tools/list", &Value::Null).await["result"].clone();
    assert_eq!(listed["_meta"]["toolman/unserved"]["bad"], reason, "{listed}");
    let called = ask_mcp(&dock, "bad", "tools/call", &json!({"name": "hello"})).await;
    assert!(called["result"]["content"][0]["text"].as_str().unwrap().contains(reason), "{called}");
    let good = dock.ask("GET", "/tools", &[("X-Namespace", "good")], "").await.json();
    assert_eq!(good["_meta"], Value::Null, "others are none of its business: {good}");
}

/// A class of another file, whose schema no reading of one file tells.
const POINT: &str =
    "from dataclasses import dataclass\n\n@dataclass\nclass Point:\n    x: int\n    y: int = 0\n";
const SHIFT: &str = "from fastmcp.tools import tool\nfrom _point import Point\n\n@tool\ndef shift(c: Point) -> int:\n    \"\"\"Shift.\"\"\"\n    return c.x + c.y\n";

#[tokio::test]
async fn schema_that_the_source_does_not_tell_is_whole_before_the_first_call() {
    // TD-38, TD-151
    let data =
        Data::new(&[("told/t.py", HELLO), ("untold/t.py", SHIFT), ("untold/_point.py", POINT)]);
    let dock = Dock::start(&data).await;
    let wanted = json!({"type": "object", "properties": {"x": {"type": "integer"},
        "y": {"type": "integer", "default": 0}}, "required": ["x"], "additionalProperties": false});
    let untold = [("X-Namespace", "untold")];
    let listed = dock.ask("GET", "/tools", &untold, "").await.json();
    assert_eq!(listed["tools"][0]["inputSchema"]["properties"]["c"], wanted, "{listed}");
    assert_eq!(dock.workers("untold").len(), 1);
    assert_eq!(dock.tools("told").await, ["hello"]);
    assert!(dock.workers("told").is_empty(), "its source tells all");
}
