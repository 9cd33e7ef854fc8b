//! A namespace by every door: all revisions of the protocol, both transports, and official client libraries.

use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::http::HttpAnswer;
use testkit::peers::python_program;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::{Data, Dock, HELLO, TOKEN};
use crate::http_rules::REVISIONS;
use crate::real_peers;
use crate::up::request;

const MODERN: &str = "2026-07-28";

/// A session of a namespace, over Streamable HTTP.
pub struct Session(String);

impl Session {
    pub async fn open(dock: &Dock, namespace: &str, revision: &str) -> Session {
        let params = json!({"protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let hello = request(0, "initialize", params).to_string();
        let opened = dock.ask("POST", "/mcp", &[("X-Namespace", namespace)], &hello).await;
        assert_eq!(opened.json()["result"]["protocolVersion"], revision);
        let session = Session(opened.header("mcp-session-id").unwrap().to_owned());
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(session.post(dock, namespace, &initialized).await.status, 202);
        session
    }

    pub fn headers(&self, namespace: &str) -> Vec<(&'static str, String)> {
        vec![("X-Namespace", namespace.to_owned()), ("Mcp-Session-Id", self.0.clone())]
    }

    pub async fn post(&self, dock: &Dock, namespace: &str, message: &Value) -> HttpAnswer {
        let headers = self.headers(namespace);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        dock.ask("POST", "/mcp", &headers, &message.to_string()).await
    }
}

/// Parameters of a request that stands alone.
pub fn modern_params(mut params: Value) -> Value {
    params["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}});
    params
}

pub fn modern_headers<'a>(method: &'a str, name: &'a str) -> Vec<(&'static str, &'a str)> {
    let mut headers = vec![("MCP-Protocol-Version", MODERN), ("Mcp-Method", method)];
    headers.extend((!name.is_empty()).then_some(("Mcp-Name", name)));
    headers
}

/// A stream of events.
struct Stream {
    stream: TcpStream,
    heard: String,
}

impl Stream {
    async fn open(dock: &Dock, head: &str, body: &str) -> Stream {
        let mut stream = TcpStream::connect(&dock.address).await.unwrap();
        let (address, length) = (&dock.address, body.len());
        let text = format!(
            "{head}\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\nAccept: application/json, text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(text.as_bytes()).await.unwrap();
        Stream { stream, heard: String::new() }
    }

    /// Reads until it has said this.
    async fn until(&mut self, words: &str) -> &str {
        let reading = async {
            let mut chunk = [0; 4096];
            while !self.heard.contains(words) {
                let count = self.stream.read(&mut chunk).await.unwrap();
                assert_ne!(count, 0, "it ends before `{words}`: {}", self.heard);
                self.heard += &String::from_utf8_lossy(&chunk[..count]);
            }
        };
        assert!(timeout(PATIENCE, reading).await.is_ok(), "`{words}` is said");
        &self.heard
    }
}

fn names(list: &Value) -> Vec<&str> {
    let tools = list["result"]["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn namespace_is_served_in_every_revision_and_over_both_transports() {
    // TD-07, TD-66, TD-69, TD-70, TD-96, TD-105, TD-106, TD-107, TD-111
    let other = HELLO.replace("hello", "other");
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", &other)]);
    let dock = Dock::start(&data).await;
    let said = json!({"result": "Hello, Ada!"});
    let call = json!({"name": "hello", "arguments": {"name": "Ada"}});
    for revision in REVISIONS {
        let session = Session::open(&dock, "a", revision).await;
        let list = session.post(&dock, "a", &request(1, "tools/list", json!({}))).await.json();
        assert_eq!(names(&list), ["hello"], "{revision}");
        let called = session.post(&dock, "a", &request(2, "tools/call", call.clone())).await;
        let result = &called.json()["result"];
        assert_eq!(result["content"][0]["text"], "Hello, Ada!", "{revision}: {result}");
        if revision >= "2025-06-18" {
            assert_eq!(result["structuredContent"], said, "{revision}: {result}");
        }
        let elsewhere = session.post(&dock, "b", &request(3, "tools/list", json!({}))).await;
        assert_ne!(elsewhere.status, 200, "a session stays with its namespace: {revision}");
    }
    for (namespace, tool) in [("a", "hello"), ("b", "other")] {
        let list = request(1, "tools/list", modern_params(json!({}))).to_string();
        let named = [("X-Namespace", namespace)];
        let headers = [&named[..], &modern_headers("tools/list", "")].concat();
        assert_eq!(names(&dock.ask("POST", "/mcp", &headers, &list).await.json()), [tool]);
        let params = modern_params(json!({"name": tool, "arguments": {"name": "Ada"}}));
        let headers = [&named[..], &modern_headers("tools/call", tool)].concat();
        let body = request(2, "tools/call", params).to_string();
        let called = dock.ask("POST", "/mcp", &headers, &body).await.json();
        assert_eq!(called["result"]["structuredContent"], said, "{called}");
    }

    let mut stream = Stream::open(&dock, "GET /sse HTTP/1.1\r\nX-Namespace: a", "").await;
    stream.until("session_id=").await;
    let heard = stream.until("\n\n").await;
    let path = heard.split("data: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    for named in [&[("X-Namespace", "a")][..], &[][..]] {
        let body = request(7, "tools/call", call.clone()).to_string();
        let sent = dock.ask("POST", &path, named, &body).await;
        assert_eq!(sent.status, 202, "{named:?}: {sent:?}");
        stream.until("Hello, Ada!").await;
        stream.heard.clear();
    }
    let nowhere = dock.ask("GET", "/sse", &[("Accept", "text/event-stream")], "").await;
    assert_eq!(nowhere.status, 400, "{nowhere:?}");
}

#[tokio::test]
async fn reload_is_told_to_the_clients_of_the_namespaces_that_changed() {
    // TD-67, TD-110, TD-114
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    let changed = "notifications/tools/list_changed";
    let mut streams = Vec::new();
    for namespace in ["a", "b"] {
        let session = Session::open(&dock, namespace, "2025-11-25").await;
        let head = format!(
            "GET /mcp HTTP/1.1\r\nX-Namespace: {namespace}\r\nMcp-Session-Id: {}",
            session.0
        );
        let mut stream = Stream::open(&dock, &head, "").await;
        stream.until("200 OK").await;
        let params = modern_params(json!({"notifications": {"toolsListChanged": true}}));
        let listen = request(1, "subscriptions/listen", params).to_string();
        let head = format!(
            "POST /mcp HTTP/1.1\r\nX-Namespace: {namespace}\r\nMCP-Protocol-Version: {MODERN}\r\nMcp-Method: subscriptions/listen"
        );
        let mut listening = Stream::open(&dock, &head, &listen).await;
        listening.until("notifications/subscriptions/acknowledged").await;
        streams.push((session, stream, listening));
    }
    data.write("a/more.py", &HELLO.replace("hello", "more"));
    assert_eq!(dock.reload().await["workers_restarted"], json!(["a"]));
    streams[0].1.until(changed).await;
    streams[0].2.until(changed).await;
    // What comes next is in order: had the other one been told of this, it would have heard it first.
    data.write("b/more.py", &HELLO.replace("hello", "more"));
    assert_eq!(dock.reload().await["workers_restarted"], json!(["b"]));
    for stream in [1, 2] {
        let (_, legacy, modern) = &mut streams[1];
        let stream = if stream == 1 { legacy } else { modern };
        let heard = stream.until(changed).await;
        assert_eq!(heard.matches(changed).count(), 1, "{heard}");
    }
    let list = request(2, "tools/list", json!({}));
    for ((session, ..), namespace) in streams.iter().zip(["a", "b"]) {
        let list = session.post(&dock, namespace, &list).await.json();
        assert_eq!(names(&list), ["hello", "more"], "{namespace}");
    }
}

#[tokio::test]
async fn official_client_libraries_call_every_example() {
    // TD-07, TD-48, TD-107: strict clients hold every result to its schema.
    let _machine = crate::MACHINE.read().await;
    let data = Data::new(&[]).with_examples();
    let dock = Dock::start(&data).await;
    let ticket = json!({"title": "a", "priority": "high", "tags": ["x"], "parent": {"title": "b"}});
    let calls = [
        ("basic-tool", json!({"say_hello": {"name": "Ada"}})),
        (
            "multi-tool",
            json!({"add": {"a": 1, "b": 2.5}, "multiply": {"a": 2, "b": 2.5},
                "reverse": {"text": "abc"}, "count_words": {"text": "a b a"}}),
        ),
        (
            "typed-tool",
            json!({"file_ticket": {"ticket": ticket}, "sum_up": {"numbers": [1, 2, 6], "how": "mean"},
                "swatch": {"red": 1, "green": 2, "blue": 3}}),
        ),
    ];
    let (sdk1, sdk2) = (python_program("sdk1", "python"), python_program("sdk2", "python"));
    let base = format!("http://{}", dock.address);
    for (namespace, calls) in &calls {
        let calls = calls.to_string();
        for (program, script, path) in [
            (sdk1.as_str(), "dock.py", "/mcp"),
            (sdk1.as_str(), "dock.py", "/sse"),
            (sdk2.as_str(), "dock_v2.py", "/mcp"),
            ("node", "dock.mjs", "/mcp"),
            ("node", "dock.mjs", "/sse"),
        ] {
            let url = format!("{base}{path}");
            real_peers::run(program, script, &[&url, TOKEN, namespace, &calls]).await;
        }
    }
}
