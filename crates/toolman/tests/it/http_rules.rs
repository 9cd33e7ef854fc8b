//! The rules of Streamable HTTP in the revisions that begin with `initialize`.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::time::timeout;

use crate::up::{Up, call, request};
use crate::{TOOLMAN, folder};

pub const REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

fn hello(revision: &str) -> String {
    let params = json!({"protocolVersion": revision, "capabilities": {}});
    request(0, "initialize", params).to_string()
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

/// A session of this revision, ready for requests.
pub async fn session(up: &mut Up, revision: &str) {
    up.session = None;
    let answer = up.send("POST", &[], &hello(revision)).await;
    assert_eq!(answer.json()["result"]["protocolVersion"], revision);
    up.session = answer.header("mcp-session-id").map(str::to_owned);
    assert_eq!(up.send("POST", &[], INITIALIZED).await.status, 202);
}

pub async fn start(tools: &str) -> (Folder, Up) {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", tools)]);
    let up = Up::start(&folder).await;
    (folder, up)
}

#[tokio::test]
async fn session_is_opened_pinned_to_its_revision_and_required() {
    // TD-66, TD-84, TD-92, TD-93, TD-96, TD-97, TD-98, TD-105, TD-109, TC-28, TC-33
    let (_folder, mut up) = start("echo").await;
    let ping = request(1, "ping", json!({})).to_string();
    let mut seen = Vec::new();
    for revision in REVISIONS {
        session(&mut up, revision).await;
        seen.push(up.session.clone().unwrap());
        let own = [("MCP-Protocol-Version", revision)];
        assert_eq!(up.send("POST", &own, &ping).await.json()["result"], json!({}));
        assert_eq!(up.send("POST", &[], &ping).await.status, 200, "absent: the session's");
        for other in REVISIONS.iter().filter(|other| **other != revision) {
            let other = [("MCP-Protocol-Version", *other)];
            assert_eq!(up.send("POST", &other, &ping).await.status, 400, "{revision} {other:?}");
        }
        let unknown = [("MCP-Protocol-Version", "2099-01-01")];
        assert_eq!(up.send("POST", &unknown, &ping).await.status, 400);
    }
    seen.dedup();
    assert_eq!(seen.len(), 4, "ids are unique");
    // TD-99: judged by the rules of 2025-03-26, by which JSON alone may be accepted.
    up.session = None;
    let alone = [("Accept", "application/json")];
    assert_eq!(up.send("POST", &alone, &ping).await.status, 400, "a session is needed");
    let long = "x".repeat(10_000);
    for (id, status) in [("nobody", 404), ("a b", 404), (long.as_str(), 400)] {
        up.session = Some(id.to_owned());
        assert_eq!(up.send("POST", &[], &ping).await.status, status);
    }
    // TD-152: the header may come with `initialize` as well.
    up.session = None;
    let own = [("MCP-Protocol-Version", "2025-11-25")];
    assert_eq!(up.send("POST", &own, &hello("2025-11-25")).await.status, 200);
}

#[tokio::test]
async fn accept_and_content_type_are_held_to_the_revision() {
    // TD-81, TD-82, TD-83
    let (_folder, mut up) = start("echo").await;
    let ping = request(1, "ping", json!({})).to_string();
    for revision in REVISIONS {
        session(&mut up, revision).await;
        let alone = if revision < "2025-06-18" { 200 } else { 406 };
        for (accept, status) in [
            ("application/json, text/event-stream", 200),
            ("*/*", 200),
            ("application/json", alone),
            ("text/event-stream", 406),
            ("text/html", 406),
        ] {
            let answer = up.send("POST", &[("Accept", accept)], &ping).await;
            assert_eq!(answer.status, status, "{revision} {accept}");
        }
    }
    for (content_type, status) in [
        ("application/json; charset=UTF-8", 200),
        ("application/json; charset=utf-16", 415),
        ("text/plain", 415),
        ("*/*", 415),
    ] {
        let answer = up.send("POST", &[("Content-Type", content_type)], &ping).await;
        assert_eq!(answer.status, status, "{content_type}");
    }
    assert_eq!(up.send("GET", &[("Accept", "application/json")], "").await.status, 406);
}

#[tokio::test]
async fn messages_get_the_status_that_is_prescribed() {
    // TD-86, TD-88, TD-89, TD-90, TD-91, TD-95
    let (_folder, mut up) = start("echo").await;
    up.session = None;
    let answer = up.send("POST", &[], &hello("2025-11-25")).await;
    up.session = answer.header("mcp-session-id").map(str::to_owned);
    let early = up.post(&request(1, "tools/list", json!({}))).await;
    assert_eq!(early.status, 400);
    assert!(early.body.contains("must wait until `notifications/initialized` is sent"));
    assert_eq!(up.post(&request(1, "ping", json!({}))).await.status, 200);
    for (body, status, code) in [
        (INITIALIZED.to_owned(), 202, Value::Null),
        (json!({"jsonrpc": "2.0", "id": 7, "result": {}}).to_string(), 202, Value::Null),
        ("{oops".to_owned(), 400, json!(-32700)),
        (String::new(), 400, json!(-32700)),
        (json!({"jsonrpc": "2.0", "id": 7}).to_string(), 400, json!(-32600)),
        (json!([{"jsonrpc": "2.0", "id": 7, "method": "ping"}]).to_string(), 400, json!(-32600)),
        (request(7, "no/such", json!({})).to_string(), 200, json!(-32601)),
        (request(7, "tools/call", json!({})).to_string(), 200, json!(-32602)),
    ] {
        let answer = up.send("POST", &[], &body).await;
        assert_eq!(answer.status, status, "{body}");
        match status {
            202 => assert_eq!(answer.body, ""),
            _ => assert_eq!(answer.json()["error"]["code"], code, "{body}"),
        }
    }
    // TD-68, TC-30: also with the body that some clients send.
    assert_eq!(up.send("DELETE", &[], "").await.status, 204);
    assert_eq!(up.post(&request(1, "ping", json!({}))).await.status, 404);
}

#[tokio::test]
async fn batches_are_taken_in_the_one_revision_that_has_them() {
    // TD-87
    let (_folder, mut up) = start("echo").await;
    let messages = json!([
        request(1, "ping", json!({})),
        {"jsonrpc": "2.0", "method": "notifications/x"},
        call(2, "a_echo", json!({"n": 1})),
        {"jsonrpc": "2.0", "id": 3},
    ]);
    for revision in REVISIONS {
        session(&mut up, revision).await;
        let answer = up.post(&messages).await;
        if revision != "2025-03-26" {
            assert_eq!(answer.status, 400, "{revision}");
            continue;
        }
        let answers = answer.json();
        assert_eq!(answers[0]["result"], json!({}));
        assert_eq!(answers[1]["result"]["structuredContent"], json!({"n": 1}));
        assert_eq!(answers[2]["error"]["code"], -32600);
        let notices = json!([{"jsonrpc": "2.0", "method": "notifications/x"}]);
        let answer = up.post(&notices).await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
        assert_eq!(up.post(&json!([])).await.status, 400);
    }
}

#[tokio::test]
async fn batches_are_taken_on_stdio_too() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let mut toolman = folder.start_raw();
    let params = json!({"protocolVersion": "2025-03-26", "capabilities": {}});
    toolman.client.request("initialize", params).await;
    toolman.client.send(INITIALIZED).await;
    let messages = json!([request(8, "ping", json!({})), call(9, "a_echo", json!({}))]);
    toolman.client.send(&messages.to_string()).await;
    let answers: Value = serde_json::from_str(&toolman.client.next_array().await).unwrap();
    assert_eq!((&answers[0]["id"], &answers[1]["id"]), (&json!(8), &json!(9)));
}

/// Opens a stream by GET and reads until it holds `words`.
pub async fn read_stream(up: &Up, more: &str, words: &str) -> String {
    let mut stream = tokio::net::TcpStream::connect(&up.address).await.unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\
         Authorization: Bearer {}\r\nMcp-Session-Id: {}\r\n{more}\r\n",
        up.address,
        up.token,
        up.session.as_ref().unwrap()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    read_until(&mut stream, String::new(), words).await
}

#[tokio::test]
async fn events_are_numbered_and_a_lost_stream_goes_on() {
    // TD-67, TD-101, TD-102, TC-29
    let (_folder, mut up) = start("stroll").await;
    up.initialize().await;
    let params = json!({"name": "a_stroll", "_meta": {"progressToken": "p"}});
    let message = request(1, "tools/call", params);
    // The client leaves after the first event; in these revisions that cancels nothing.
    let leaving = timeout(std::time::Duration::from_millis(450), up.post(&message)).await;
    assert!(leaving.is_err(), "it is still under way");
    let rest = read_stream(&up, "Last-Event-ID: 1-1\r\n", "id: 1-4").await;
    assert!(!rest.contains("id: 1-1"), "{rest}");
    let places: Vec<_> = ["id: 1-2", "id: 1-3", "id: 1-4"].map(|id| rest.find(id).unwrap()).into();
    assert!(places.is_sorted(), "{rest}");
    let again = read_stream(&up, "Last-Event-ID: 1-3\r\n", "id: 1-4").await;
    assert!(again.contains("\"text\":\"ok\""), "{again}");
    let gap = read_stream(&up, "Last-Event-ID: garbage\r\n", "some may be missing").await;
    assert!(gap.contains("text/event-stream"));
}

#[tokio::test]
async fn client_that_names_streams_first_gets_one() {
    let (_folder, mut up) = start("echo").await;
    let ping = request(1, "ping", json!({})).to_string();
    for (revision, primer) in [("2025-06-18", false), ("2025-11-25", true)] {
        session(&mut up, revision).await;
        let accept = [("Accept", "text/event-stream, application/json")];
        let answer = up.send("POST", &accept, &ping).await;
        assert_eq!(answer.header("content-type"), Some("text/event-stream"));
        assert!(answer.body.contains("id: 1-1\nevent: message\ndata: {"), "{}", answer.body);
        assert_eq!(answer.body.starts_with("id: 1-0\nretry: 1000\ndata:\n\n"), primer);
    }
}

#[tokio::test]
async fn what_happens_before_the_stream_is_opened_is_told_then() {
    // TD-103, TD-110
    let (_folder, mut up) = start("grow").await;
    up.initialize().await;
    up.post(&call(1, "a_grow", json!({}))).await;
    let changed = "notifications/tools/list_changed";
    assert!(read_stream(&up, "", changed).await.contains("id: 0-1"));
    // Two streams at once: each message comes on one of them. Which numbers they have hangs on whether it was noticed that
    // the stream before is gone.
    let soon = std::time::Duration::from_secs(2);
    let act = async {
        tokio::time::sleep(soon / 4).await;
        let off = json!({"tools_on": [], "tools_off": ["a_grow"], "resources_on": [], "resources_off": []});
        up.post(&call(2, "toolman_activate", off)).await
    };
    let (one, other, _) = tokio::join!(
        timeout(soon, read_stream(&up, "", changed)),
        timeout(soon, read_stream(&up, "", changed)),
        act
    );
    assert!(one.is_ok() != other.is_ok(), "on exactly one: {one:?} {other:?}");
}

#[tokio::test]
async fn probes_need_no_token() {
    // TD-74, TF-46, TC-26
    let folder = folder("", &[("a", "echo"), ("down", "--crash")]);
    let up = Up::start(&folder).await;
    // TF-46, TF-47
    for path in ["/health", "/healthz", "/readyz"] {
        let answer = send(&up.address, "GET", path, &[], "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(
            answer.json(),
            json!({"status": "degraded", "upstreams": {"ready": 1, "total": 2}})
        );
        let foreign = [("Host", "evil.example")];
        assert_eq!(send(&up.address, "GET", path, &foreign, "").await.status, 403);
    }
}

#[tokio::test]
async fn service_is_ready_while_a_server_is() {
    for (head, status) in
        [("", 200), ("[http]\nready_when = \"any\"", 200), ("[http]\nready_when = \"all\"", 503)]
    {
        let folder = folder(head, &[("a", "echo"), ("down", "--crash")]);
        let up = Up::start(&folder).await;
        assert_eq!(send(&up.address, "GET", "/readyz", &[], "").await.status, status, "{head}");
        assert_eq!(send(&up.address, "GET", "/healthz", &[], "").await.status, 200);
    }
    let folder = folder("", &[("down", "--crash")]);
    let up = Up::start(&folder).await;
    let answer = send(&up.address, "GET", "/readyz", &[], "").await;
    assert_eq!((answer.status, &answer.json()["status"]), (503, &json!("degraded")));
}

#[tokio::test]
async fn service_needs_a_good_token_where_others_can_reach_it() {
    let folder = folder("", &[("a", "echo")]);
    std::fs::write(folder.path().join("weak"), "change_me\n").unwrap();
    for (arguments, words) in [
        (&["serve", "--listen", "0.0.0.0:0"][..], "a token of yours is needed"),
        (&["serve", "--token-file", "weak"], "is too weak"),
        (&["serve", "--token-file", "none"], "can't read the token file `none`"),
        (&["serve", "--listen", "nonsense"], "invalid socket address"),
    ] {
        let output = folder.run(arguments).await;
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(words), "{stderr}");
    }
    let missing = Folder::new(TOOLMAN).run(&["serve"]).await;
    assert_eq!(missing.status.code(), Some(2), "a service has no demo");
}

#[tokio::test]
async fn oldest_transport_is_served_on_two_paths() {
    // TD-69, TD-70, TD-111, TD-153
    let (_folder, up) = start("echo").await;
    let mut stream = tokio::net::TcpStream::connect(&up.address).await.unwrap();
    let head = format!(
        "GET /sse HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nAuthorization: Bearer {}\r\n\r\n",
        up.address, up.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut heard = read_until(&mut stream, String::new(), "session_id=").await;
    assert!(heard.contains("event: endpoint\ndata: /messages?session_id="), "{heard}");
    heard = read_until(&mut stream, heard, "\n\n\r\n").await;
    let path = heard.split("data: ").nth(1).unwrap().lines().next().unwrap().to_owned();
    let bearer = format!("Bearer {}", up.token);
    let post = |body: Value| {
        let (address, path, bearer) = (up.address.clone(), path.clone(), bearer.clone());
        async move {
            let headers = [("Authorization", bearer.as_str())];
            send(&address, "POST", &path, &headers, &body.to_string()).await
        }
    };
    // Without a handshake, as some callers do.
    assert_eq!(post(call(7, "a_echo", json!({"n": 1}))).await.status, 202);
    heard = read_until(&mut stream, heard, "\"id\":7").await;
    assert!(heard.contains("event: message"), "{heard}");
    assert_eq!(post(json!({"jsonrpc": "2.0"})).await.status, 400);
    drop(stream);
    let gone = async { while post(request(8, "ping", json!({}))).await.status != 404 {} };
    timeout(PATIENCE, gone).await.expect("the session ends with its stream");
}

#[tokio::test]
async fn oldest_transport_can_be_switched_off() {
    // TD-112
    let folder = folder("", &[("a", "echo")]);
    let up = Up::start_with(&folder, &[("ENABLE_LEGACY_MCP", "false")]).await;
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str())];
    assert_eq!(send(&up.address, "GET", "/sse", &headers, "").await.status, 404);
}

async fn read_until(stream: &mut tokio::net::TcpStream, mut heard: String, words: &str) -> String {
    let mut chunk = [0; 4096];
    while !heard.contains(words) {
        let count = timeout(PATIENCE, stream.read(&mut chunk)).await.unwrap().unwrap();
        assert!(count > 0, "{heard}");
        heard += &String::from_utf8_lossy(&chunk[..count]);
    }
    heard
}
