//! Results of many megabytes: they pass whole, and in little memory.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::http::HttpAnswer;
use testkit::processes::peak_kib;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

use crate::folder;
use crate::http_limits::Service;
use crate::up::call;

const SIZE: usize = 30 * 1024 * 1024;

/// A server whose one tool answers with so many bytes as one JSON body, or breaks off in its
/// middle; the result may come before its id, as some libraries write it.
pub async fn site() -> String {
    site_of(text().into()).await
}

/// The same with another text.
pub async fn site_of(text: Arc<str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/mcp", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(serve(stream, Arc::clone(&text)));
        }
    });
    url
}

async fn serve(mut stream: TcpStream, text: Arc<str>) {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    loop {
        let (mut length, mut line) = (0, String::new());
        while reader.read_line(&mut line).await.unwrap_or(0) > 2 {
            let lower = line.to_ascii_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            line.clear();
        }
        let mut body = vec![0; length];
        if length == 0 || reader.read_exact(&mut body).await.is_err() {
            let refusal = b"HTTP/1.1 405 Method Not Allowed\r\ncontent-length: 0\r\n\r\n";
            _ = writer.write_all(refusal).await;
            return;
        }
        let message: Value = serde_json::from_slice(&body).unwrap();
        let (id, arguments) = (&message["id"], &message["params"]["arguments"]);
        let result = match message["method"].as_str().unwrap() {
            "initialize" => json!({"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                "serverInfo": {"name": "large", "version": "1"}}),
            "tools/list" => json!({"tools": [{"name": "big", "inputSchema": {"type": "object"}}]}),
            "tools/call" => json!({"content": [{"type": "text", "text": &*text}]}),
            _ => {
                _ = writer.write_all(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n").await;
                continue;
            }
        };
        let frame = match arguments["order"].as_str() {
            Some("id last") => format!(r#"{{"result":{result},"jsonrpc":"2.0","id":{id}}}"#),
            Some("wrong id") => format!(r#"{{"jsonrpc":"2.0","id":99999,"result":{result}}}"#),
            _ => format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#),
        };
        if let Some(order) =
            arguments["order"].as_str().and_then(|order| order.strip_prefix("event"))
        {
            _ = writer.write_all(event(&frame, order).as_bytes()).await;
            return;
        }
        let breaks = arguments["order"] == "break";
        let sent = if breaks { frame.len() / 2 } else { frame.len() };
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
            frame.len()
        );
        _ = writer.write_all(head.as_bytes()).await;
        if writer.write_all(&frame.as_bytes()[..sent]).await.is_err() || breaks {
            return;
        }
    }
}

/// The same as an event of a stream that ends with its connection.
fn event(frame: &str, order: &str) -> String {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\n";
    let before = format!("{head}: hello\n\n");
    match order {
        " of two lines" => {
            let at = frame.rfind(']').unwrap();
            format!("{before}data: {}\ndata: {}\n\n", &frame[..at], &frame[at..])
        }
        " breaks" => format!("{before}data: {}", &frame[..frame.len() / 2]),
        " with an id" => format!("{before}id: 1\nevent: message\ndata: {frame}\n\n"),
        _ => format!("{before}event: message\r\ndata: {frame}\r\n\r\n"),
    }
}

fn text() -> String {
    "a line with \"quotes\" and é\n".repeat(SIZE / 29)
}

async fn start() -> (Folder, Service) {
    let url = site().await;
    let config = format!("surface = \"filter\"\n[[servers]]\nname = \"a\"\nurl = \"{url}\"\n");
    let folder = Folder::new(env!("CARGO_BIN_EXE_toolman")).with_tools_toml(&config);
    let service = Service::start(&folder, &[]).await;
    (folder, service)
}

async fn big(service: &Service, session: &str, order: &str) -> HttpAnswer {
    let call = call(7, "a_big", json!({"order": order})).to_string();
    service.send("/mcp", &[("Mcp-Session-Id", session)], &call).await
}

#[tokio::test]
async fn large_result_over_http_passes_in_little_memory() {
    let _alone = crate::MACHINE.write().await;
    let (_folder, service) = start().await;
    let service = Arc::new(service);
    service.session().await;
    let before = peak_kib(service.pid);
    let expected = text();
    for order in ["id first", "id last", "event", "event of two lines"] {
        let answers = (0..3).map(|_| {
            let service = Arc::clone(&service);
            tokio::spawn(async move {
                let session = service.session().await;
                big(&service, &session, order).await
            })
        });
        for answer in futures_util::future::join_all(answers).await {
            let answer = answer.unwrap().json();
            assert_eq!(answer["id"], 7, "{order}");
            assert!(answer["result"]["content"][0]["text"] == expected.as_str(), "{order}");
        }
    }
    let grown = peak_kib(service.pid) - before;
    assert!(grown < 3 * 2 * 1024, "{grown} KiB for three results under way");
    // Of a stream that can be resumed the result is held, so that it can be had again.
    let session = service.session().await;
    let answer = big(&service, &session, "event with an id").await.json();
    assert!(answer["result"]["content"][0]["text"] == expected.as_str());
}

#[tokio::test]
async fn result_that_breaks_off_breaks_its_own_answer_alone() {
    let _load = crate::MACHINE.read().await;
    let (_folder, service) = start().await;
    let session = service.session().await;
    for order in ["break", "event breaks"] {
        let mut stream = TcpStream::connect(&service.address).await.unwrap();
        let body = call(1, "a_big", json!({"order": order})).to_string();
        let request = service.post(&session, &body);
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        _ = stream.read_to_end(&mut answer).await;
        assert!(answer.starts_with(b"HTTP/1.1 200"), "it was under way");
        assert!(!answer.ends_with(b"0\r\n\r\n"), "its end is missing, and can be seen to be");
    }
    let wrong = big(&service, &session, "wrong id").await;
    assert!(wrong.body.contains("answers something else"), "{}", &wrong.body[..300]);
    assert_eq!(big(&service, &session, "").await.json()["id"], 7);
}

#[tokio::test]
async fn large_result_over_a_pipe_is_held_once() {
    let _alone = crate::MACHINE.write().await;
    let folder = folder("surface = \"filter\"", &[("a", "big")]);
    let service = Service::start(&folder, &[]).await;
    let session = service.session().await;
    let before = peak_kib(service.pid);
    let call = call(7, "a_big", json!({"bytes": SIZE})).to_string();
    let answer = service.send("/mcp", &[("Mcp-Session-Id", &session)], &call).await.json();
    assert_eq!(answer["result"]["content"][0]["text"].as_str().unwrap().len(), SIZE);
    let grown = peak_kib(service.pid) - before;
    assert!(grown < SIZE as u64 / 1024 * 12 / 10 + 1024, "{grown} KiB for one result");
}
