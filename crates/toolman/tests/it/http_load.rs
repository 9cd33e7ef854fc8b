//! Many clients of the HTTP door, and clients that do not read.

use serde_json::json;
use testkit::client::PATIENCE;
use testkit::processes::resident_kib;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

use crate::folder;
use crate::http_limits::{Service, TOKEN};
use crate::up::{call, request};

/// Opens the standing stream of a session and waits for its head.
async fn open_stream(service: &Service, session: &str) -> TcpStream {
    let mut stream = TcpStream::connect(&service.address).await.unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\n\
         Authorization: Bearer {TOKEN}\r\nMcp-Session-Id: {session}\r\n\r\n",
        service.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut first = [0; 12];
    timeout(PATIENCE, stream.read_exact(&mut first)).await.unwrap().unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn thousand_sessions_with_streams_cost_little() {
    // L11
    let _alone = crate::MACHINE.write().await;
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let service = Service::start(&folder, &[]).await;
    service.session().await;
    let before = resident_kib(service.pid);
    let mut streams = Vec::new();
    let mut last = String::new();
    for _ in 0..999 {
        last = service.session().await;
        streams.push(open_stream(&service, &last).await);
    }
    let grown = resident_kib(service.pid).saturating_sub(before);
    assert!(grown <= 48 * 1024, "{grown} KiB more for a thousand sessions");
    assert_eq!(service.figure("toolman_sessions").await, 1_000);
    let echo = call(7, "a_echo", json!({})).to_string();
    let answer = service.send("/mcp", &[("Mcp-Session-Id", &last)], &echo).await;
    assert_eq!(answer.json()["result"]["content"][0]["text"], "ok");
}

#[tokio::test]
async fn client_that_never_reads_its_answer_slows_nobody() {
    // L08, N06
    let _load = crate::MACHINE.read().await;
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "chatter echo")]);
    let service = Service::start(&folder, &[]).await;
    let deaf = service.session().await;
    let mut unread = Vec::new();
    for id in 1..=8 {
        let socket = TcpSocket::new_v4().unwrap();
        socket.set_recv_buffer_size(4096).unwrap();
        let mut stream = socket.connect(service.address.parse().unwrap()).await.unwrap();
        let body = request(id, "tools/call", json!({"name": "a_chatter"})).to_string();
        stream.write_all(service.post(&deaf, &body).as_bytes()).await.unwrap();
        unread.push(stream);
    }
    let session = service.session().await;
    for id in 1..=50 {
        let echo = call(id, "a_echo", json!({"n": id})).to_string();
        let answer = service.send("/mcp", &[("Mcp-Session-Id", &session)], &echo).await;
        assert_eq!(answer.status, 200);
        assert!(answer.body.contains(&format!("\"n\":{id}")), "{}", answer.body);
    }
    assert!(resident_kib(service.pid) < 200 * 1024, "what is not read is not kept for ever");
}
