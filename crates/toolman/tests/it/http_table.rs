//! Bad requests over HTTP, one a line: the status and code that they get, and the next one works.

use gateway::auth::Keys;
use serde_json::{Value, json};
use testkit::client::PATIENCE;
use testkit::fake::Script;
use testkit::http::{HttpAnswer, send, send_raw};
use testkit::world::World;
use tokio::io::AsyncWriteExt as _;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::http_rules::{REVISIONS, read_stream, session, start};
use crate::up::{Up, call, request};

/// A POST of any bytes in the session.
async fn post(up: &Up, body: &[u8]) -> HttpAnswer {
    send_raw(&up.address, [head(up, body.len()).as_bytes(), body].concat()).await
}

fn head(up: &Up, length: usize) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nConnection: close\r\nHost: {}\r\nAuthorization: Bearer {}\r\n\
         Mcp-Session-Id: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n\r\n",
        up.address,
        up.token,
        up.session.as_ref().unwrap()
    )
}

/// A request whose parameters are this many levels of arrays.
fn nested(levels: usize) -> Vec<u8> {
    let (open, close) = ("[".repeat(levels), "]".repeat(levels));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{open}{close}}}"#).into_bytes()
}

#[tokio::test]
async fn body_that_is_no_message_gets_its_code_in_every_revision() {
    const PARSE: i32 = -32700;
    const INVALID: i32 = -32600;
    const PARAMS: i32 = -32602;
    let (_folder, mut up) = start("echo").await;
    let (deep, bottomless) = (nested(129), nested(100_000));
    let table: [(&str, &[u8], u16, i32, &str); 22] = [
        ("J01", b"", 400, PARSE, "not valid JSON"),
        ("J01", b" \r\n\t", 400, PARSE, "not valid JSON"),
        ("J01", b"\xef\xbb\xbf{}", 400, PARSE, "not valid JSON"),
        ("J05", &deep, 400, PARSE, "nested deeper than 128 levels"),
        ("J05", &bottomless, 400, PARSE, "nested deeper than 128 levels"),
        ("J06", b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}", 400, PARSE, "not valid"),
        ("J08", br#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, 400, INVALID, "twice"),
        ("J10", br#"{"jsonrpc":"2.0","id":1,"Method":"a"}"#, 400, INVALID, "spelled `method`"),
        ("J10", br#"{"jsonrpc":"2.0","id":1,"method":"a","PARAMS":{}}"#, 400, INVALID, "`params`"),
        ("J12", br#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, INVALID, "`id` must be"),
        ("J14", br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, 400, INVALID, "`id` must be"),
        ("J14", br#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, 400, INVALID, "`id` must be"),
        ("J14", br#"{"jsonrpc":"2.0","id":true,"method":"ping"}"#, 400, INVALID, "`id` must be"),
        ("TD-89", b"{oops", 400, PARSE, "not valid JSON"),
        ("TD-89", b"{}{}", 400, PARSE, "not valid JSON"),
        ("TD-90", br#"{"jsonrpc":"2.0","id":1}"#, 400, INVALID, "`method` is missing"),
        ("TD-90", br#"{"jsonrpc":"2.0","id":1,"method":7}"#, 400, INVALID, "must be a string"),
        ("TD-90", br#"{"id":1,"method":"ping"}"#, 400, INVALID, "`jsonrpc` must be"),
        (
            "J19",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call"}"#,
            200,
            PARAMS,
            "`name` is missing",
        ),
        (
            "J19",
            br#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":7}}"#,
            200,
            PARAMS,
            "must be a string",
        ),
        (
            "J21",
            br#"{"jsonrpc":"2.0","id":1,"method":"no/such"}"#,
            200,
            -32601,
            "`no/such` is not known",
        ),
        ("J21", br#"{"jsonrpc":"2.0","id":1,"method":"Ping"}"#, 200, -32601, "`Ping` is not known"),
    ];
    for revision in REVISIONS {
        session(&mut up, revision).await;
        for (rule, body, status, code, words) in table {
            let answer = post(&up, body).await;
            assert_eq!(answer.status, status, "{revision} {rule}: {}", answer.body);
            let error = answer.json()["error"].clone();
            assert_eq!(error["code"], code, "{revision} {rule}: {error}");
            let message = error["message"].as_str().unwrap();
            assert!(message.contains(words), "{revision} {rule}: {message}");
            assert!(message.len() < 300, "{revision} {rule}: {message}");
        }
        assert_eq!(up.post(&call(1, "a_echo", json!({}))).await.status, 200, "the next one works");
    }
}

#[tokio::test]
async fn batch_that_may_not_be_is_refused_in_a_few_words() {
    // J03, J23
    let (_folder, mut up) = start("echo").await;
    let ping = request(1, "ping", json!({}));
    let million = format!("[1{}]", ",1".repeat(2_000_000));
    for revision in REVISIONS {
        session(&mut up, revision).await;
        let mut refused = vec![million.clone(), json!(vec![&ping; 101]).to_string()];
        if revision == "2025-03-26" {
            let answers = up.post(&json!(vec![&ping; 100])).await.json();
            assert_eq!(answers.as_array().unwrap().len(), 100);
        } else {
            refused.push(json!([&ping]).to_string());
        }
        for body in refused {
            let answer = post(&up, body.as_bytes()).await;
            assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32600)));
            assert!(answer.body.contains("2025-03-26"), "{}", answer.body);
            assert!(answer.body.len() < 500, "an answer to each would fill the memory");
        }
    }
}

#[tokio::test]
async fn stranger_is_refused_on_every_route() {
    // TD-77, TD-85, H03, H05, H07
    let (_folder, up) = start("echo").await;
    let routes = [
        ("POST", "/mcp"),
        ("GET", "/mcp"),
        ("DELETE", "/mcp"),
        ("GET", "/sse"),
        ("POST", "/messages?session_id=x"),
        ("GET", "/tools"),
        ("POST", "/tools/a_echo"),
        ("GET", "/tools/a_echo/schema"),
        ("GET", "/openapi.json"),
        ("GET", "/.well-known/mcp-config"),
        ("GET", "/no/such"),
    ];
    let good = format!("Bearer {}", up.token);
    let spaced = format!("Bearer  {}", up.token);
    let basic = format!("Basic {}", up.token);
    for (method, path) in routes {
        for wrong in ["Bearer", "Bearer ", &spaced, &basic, &up.token, "Bearer x"] {
            let answer = send(&up.address, method, path, &[("Authorization", wrong)], "{}").await;
            assert_eq!(answer.status, 401, "{method} {path} {wrong:?}");
            // What is shown and wrong is told from what is missing.
            let told = "Bearer error=\"invalid_token\"";
            assert_eq!(answer.header("www-authenticate"), Some(told), "{wrong:?}");
            assert!(answer.json()["error"]["message"].is_string());
        }
        let own = ("Authorization", good.as_str());
        for foreign in [
            ("Origin", "https://evil.example"),
            ("Origin", "null"),
            ("Origin", "http://127.0.0.1.evil.example"),
            ("Host", "evil.example"),
        ] {
            let answer = send(&up.address, method, path, &[own, foreign], "{}").await;
            assert_eq!(answer.status, 403, "{method} {path} {foreign:?}");
        }
    }
    for scheme in ["bearer", "BEARER"] {
        let own = format!("{scheme} {}", up.token);
        let own = [("Authorization", own.as_str()), ("Origin", "http://localhost:5173")];
        assert_eq!(send(&up.address, "GET", "/tools", &own, "").await.status, 200, "{scheme}");
    }
}

#[tokio::test]
async fn id_in_use_is_refused_and_the_end_of_a_session_ends_its_calls() {
    // J16, N08
    let (_folder, mut up) = start("never seen").await;
    up.initialize().await;
    let never = call(7, "a_never", json!({})).to_string();
    let under_way = post(&up, never.as_bytes());
    let meanwhile = async {
        let seen = async {
            loop {
                let seen = up.post(&call(8, "a_seen", json!({}))).await.json();
                if seen.to_string().contains("\"never ") {
                    return;
                }
            }
        };
        timeout(PATIENCE, seen).await.expect("the call reaches the upstream");
        let again = up.post(&call(7, "a_seen", json!({}))).await;
        assert_eq!((again.status, &again.json()["error"]["code"]), (400, &json!(-32600)));
        assert!(again.body.contains("use another id"), "{}", again.body);
        assert_eq!(up.send("DELETE", &[], "").await.status, 204);
    };
    let (ended, ()) = tokio::join!(under_way, meanwhile);
    let ended = ended.json();
    assert_eq!(ended["id"], 7);
    assert_eq!(ended["error"]["message"], "the request was cancelled");
}

#[tokio::test]
async fn session_id_is_read_strictly_on_every_method() {
    // N01, N03, TD-68, TD-93
    let (_folder, mut up) = start("echo").await;
    up.initialize().await;
    let own = up.session.clone().unwrap();
    let long = "x".repeat(10 * 1024);
    for (id, status) in [
        (None, 400),
        (Some("nobody"), 404),
        (Some(&own[1..]), 404),
        (Some(&*own.to_uppercase()), 404),
        (Some(&*long), 400),
        (Some("\u{1}"), 400),
        (Some("é"), 400),
    ] {
        up.session = id.map(str::to_owned);
        for (method, body) in [
            ("POST", request(1, "ping", json!({})).to_string()),
            ("GET", String::new()),
            ("DELETE", String::new()),
        ] {
            let answer = up.send(method, &[("Accept", "*/*")], &body).await;
            assert_eq!(answer.status, status, "{method} {id:?}");
        }
    }
    up.session = Some(own);
    assert_eq!(up.post(&request(1, "ping", json!({}))).await.json()["result"], json!({}));
}

#[tokio::test]
async fn event_that_is_no_longer_known_leaves_a_stated_gap() {
    // N04
    let (_folder, mut up) = start("grow").await;
    up.initialize().await;
    up.post(&call(1, "a_grow", json!({}))).await;
    for unknown in ["garbage", "1", "-", "0-x", "99999999999999999999-1", "é"] {
        let more = format!("Last-Event-ID: {unknown}\r\n");
        let heard = read_stream(&up, &more, "some may be missing").await;
        assert!(heard.contains("200 OK"), "{unknown}: {heard}");
    }
}

#[tokio::test]
async fn client_that_leaves_in_the_middle_of_a_body_harms_nobody() {
    // H11
    let (_folder, mut up) = start("echo").await;
    up.initialize().await;
    for part in [&b"{"[..], br#"{"jsonrpc":"2.0","id":1,"#] {
        let mut stream = tokio::net::TcpStream::connect(&up.address).await.unwrap();
        stream.write_all(&[head(&up, 100).as_bytes(), part].concat()).await.unwrap();
    }
    let answer: Value = up.post(&call(1, "a_echo", json!({"n": 1}))).await.json();
    assert_eq!(answer["result"]["structuredContent"], json!({"n": 1}));
}

#[tokio::test]
async fn session_that_was_idle_for_a_day_is_gone() {
    // TD-94, N01: within this process, so that its clock can be put forward.
    let world = World::of([("a", Script::with_tools(["echo"]))]).active(&["*"]).start();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let settings = server::http::Settings::new(Keys::new("s3cret"));
    let stop = CancellationToken::new();
    tokio::spawn(server::http::serve(world.gateway.clone(), listener, settings, stop));
    let own = ("Authorization", "Bearer s3cret");
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let hello = request(0, "initialize", params).to_string();
    let greeted = send(&address, "POST", "/mcp", &[own], &hello).await;
    let id = greeted.header("mcp-session-id").unwrap().to_owned();
    let ping = request(1, "ping", json!({})).to_string();
    for (idle_hours, status) in [(23, 200), (23, 200), (25, 404), (0, 404)] {
        tokio::time::pause();
        tokio::time::advance(std::time::Duration::from_hours(idle_hours)).await;
        tokio::time::resume();
        let headers = [own, ("Mcp-Session-Id", id.as_str())];
        let answer = send(&address, "POST", "/mcp", &headers, &ping).await;
        assert_eq!(answer.status, status, "after {idle_hours} hours");
    }
}
