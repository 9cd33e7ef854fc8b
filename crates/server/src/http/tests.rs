//! What becomes of slow, silent and greedy clients, on a clock that does not keep us waiting.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use catalog::surface::Surface;
use gateway::auth::Keys;
use gateway::{Gateway, Settings as GatewaySettings};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::Frame;
use hyper::client::conn::http2;
use hyper::{Request, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex};
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

use super::endpoint::Endpoint;
use super::{Settings, body, connection, open};
use crate::limits::{ANSWER_STALL_MAX, BODIES_BYTES_MAX, IDLE_TICKS, MESSAGE_BYTES_MAX};

type Body = UnsyncBoxBody<Bytes, std::convert::Infallible>;

/// Held by tests whose requests have bodies: there is one room for all of them.
static ROOM: Mutex<()> = Mutex::const_new(());

const TOKEN: &str = "0123456789abcdef";
const HEALTH: &str = "GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n";
const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}"#;

fn door(ttl: Duration) -> Arc<Endpoint> {
    let settings = GatewaySettings::new(Surface::default(), Vec::new());
    let gateway = Gateway::start(settings, &Spawner::new("no guard"));
    let mut settings = Settings::new(Keys::new(TOKEN));
    settings.session_ttl = ttl;
    open(gateway, settings, true, CancellationToken::new())
}

/// A connection with so much room for bytes on their way.
fn connect_with(room: usize) -> DuplexStream {
    let (ours, theirs) = duplex(room);
    let endpoint = door(Duration::from_hours(1));
    tokio::spawn(async move {
        let member = endpoint.crowd.join().await;
        connection::serve(theirs, &member.traffic, endpoint).await;
    });
    ours
}

fn post(length: &str) -> String {
    format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nAccept: */*\r\n{length}\r\n\r\n"
    )
}

/// What comes until the connection is closed, and after how many seconds that is.
async fn read_to_end(stream: &mut DuplexStream) -> (String, u64) {
    let (began, mut text) = (Instant::now(), Vec::new());
    // One that is dropped without more words is closed, too.
    _ = timeout(Duration::from_hours(1), stream.read_to_end(&mut text)).await.expect("an end");
    (String::from_utf8(text).unwrap(), began.elapsed().as_secs())
}

#[tokio::test(start_paused = true)]
async fn client_that_does_not_send_its_head_is_left_after_ten_seconds() {
    // H09, L18
    for head in ["", "P", "POST /mcp HTTP/1.1\r\nHost: loc", "PRI * HTTP/2.0\r\n\r\nSM"] {
        let mut stream = connect_with(1024);
        stream.write_all(head.as_bytes()).await.unwrap();
        let (_, seconds) = read_to_end(&mut stream).await;
        assert_eq!(seconds, 10, "{head:?}");
    }
    // One byte a second does not help.
    let mut stream = connect_with(1024);
    let began = Instant::now();
    for byte in post("").as_bytes() {
        if stream.write_all(&[*byte]).await.is_err() {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert!(began.elapsed() <= Duration::from_secs(12), "{:?}", began.elapsed());
}

#[tokio::test(start_paused = true)]
async fn connection_that_is_no_longer_used_is_closed() {
    let mut stream = connect_with(1024);
    stream.write_all(HEALTH.as_bytes()).await.unwrap();
    let (text, seconds) = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert_eq!(seconds, 10);
}

#[tokio::test(start_paused = true)]
async fn body_that_stops_or_drips_is_answered_with_408() {
    // H11, L18
    let _room = ROOM.lock().await;
    let mut stream = connect_with(64 * 1024);
    let head = post("Content-Length: 100");
    stream.write_all(format!("{head}abc").as_bytes()).await.unwrap();
    let (text, seconds) = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 408"), "{text}");
    assert!(text.contains("connection: close"), "{text}");
    assert!((10..=15).contains(&seconds), "{seconds}");

    let (reader, mut writer) = tokio::io::split(connect_with(64 * 1024));
    let mut stream = reader;
    writer.write_all(post("Content-Length: 100000").as_bytes()).await.unwrap();
    let dripping = tokio::spawn(async move {
        // A tenth of what is asked for.
        while writer.write_all(&[b' '; 100]).await.is_ok() {
            sleep(Duration::from_secs(1)).await;
        }
    });
    let began = Instant::now();
    let mut start = [0; 12];
    stream.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 408");
    assert!(began.elapsed() <= Duration::from_secs(13), "{:?}", began.elapsed());
    dripping.abort();
}

#[tokio::test(start_paused = true)]
async fn body_that_is_slow_but_steady_is_taken() {
    let _room = ROOM.lock().await;
    let (mut reader, mut writer) = tokio::io::split(connect_with(64 * 1024));
    let padding = 40 * 2048;
    let length = format!("Content-Length: {}", padding + PING.len());
    writer.write_all(post(&length).as_bytes()).await.unwrap();
    for _ in 0..40 {
        writer.write_all(&[b' '; 2048]).await.unwrap();
        sleep(Duration::from_secs(1)).await;
    }
    writer.write_all(PING.as_bytes()).await.unwrap();
    let mut start = [0; 12];
    reader.read_exact(&mut start).await.unwrap();
    assert_eq!(&start, b"HTTP/1.1 200");
}

#[tokio::test(start_paused = true)]
async fn client_that_never_reads_is_given_up() {
    // The answer does not fit into the room that there is.
    let mut stream = connect_with(64);
    stream.write_all(HEALTH.as_bytes()).await.unwrap();
    let second = Duration::from_secs(1);
    sleep(ANSWER_STALL_MAX.saturating_sub(second)).await;
    stream.write_all(b"G").await.expect("it is still waited for");
    sleep(2 * second).await;
    assert!(stream.write_all(b"E").await.is_err(), "the connection is gone");
}

#[tokio::test(start_paused = true)]
async fn room_for_bodies_is_bounded_and_given_back() {
    // L13
    let _room = ROOM.lock().await;
    let mut kept = Vec::new();
    for _ in 0..BODIES_BYTES_MAX / MESSAGE_BYTES_MAX {
        let body = Full::new(Bytes::from(vec![b' '; MESSAGE_BYTES_MAX]));
        kept.push(body::read(body).await.unwrap());
    }
    assert_eq!(body::bytes_in_flight(), BODIES_BYTES_MAX);
    let request = format!("{}{PING}", post(&format!("Content-Length: {}", PING.len())));
    let mut stream = connect_with(4096);
    stream.write_all(request.as_bytes()).await.unwrap();
    let (text, _) = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 503"), "{text}");
    assert!(text.contains("retry-after: 1"), "{text}");
    drop(kept);
    let mut stream = connect_with(4096);
    stream.write_all(request.as_bytes()).await.unwrap();
    let (text, _) = read_to_end(&mut stream).await;
    assert!(text.starts_with("HTTP/1.1 200"), "{text}");
    assert_eq!(body::bytes_in_flight(), 0, "nothing is kept of it");
}

#[tokio::test(start_paused = true)]
async fn sessions_that_nobody_uses_are_forgotten() {
    // TD-94
    let endpoint = door(Duration::from_mins(1));
    let id = endpoint.sessions.admit(gateway::auth::local(None), &endpoint.gateway.place()).open();
    let session = endpoint.sessions.find(&id).unwrap();
    let reader = session.streams.read(super::streams::STANDING, None);
    drop(session);
    sleep(Duration::from_mins(2)).await;
    endpoint.sessions.expire();
    assert_eq!(endpoint.sessions.count(), 1, "its stream is read");
    drop(reader);
    let other =
        endpoint.sessions.admit(gateway::auth::local(None), &endpoint.gateway.place()).open();
    sleep(Duration::from_secs(61)).await;
    assert!(endpoint.sessions.find(&other).is_none(), "even before anybody looks for old ones");
    assert_eq!(endpoint.sessions.count(), 1);
    endpoint.sessions.expire();
    assert_eq!(endpoint.sessions.count(), 0);
}

/// A client of HTTP/2 and a task that ends with the connection.
async fn connect_h2(window: u32) -> (http2::SendRequest<Body>, JoinHandle<()>) {
    let io = TokioIo::new(connect_with(1024 * 1024));
    let (sender, connection) = http2::Builder::new(TokioExecutor::new())
        .initial_stream_window_size(window)
        .handshake(io)
        .await
        .unwrap();
    (sender, tokio::spawn(async move { _ = connection.await }))
}

#[tokio::test(start_paused = true)]
async fn every_request_of_a_connection_names_its_host() {
    // What one request has shown counts for the next one only if that is for the same host.
    let (mut sender, _connection) = connect_h2(64 * 1024).await;
    for (host, status) in [("localhost", 200), ("evil.example", 403), ("localhost", 200)] {
        let request = Request::get(format!("http://{host}/metrics"))
            .header("authorization", format!("Bearer {TOKEN}"))
            .body(Full::default().boxed_unsync());
        let answer = sender.send_request(request.unwrap()).await.unwrap();
        assert_eq!(answer.status(), status, "{host}");
    }
}

fn health() -> Request<Body> {
    Request::get("http://localhost/health").body(Full::default().boxed_unsync()).unwrap()
}

#[tokio::test(start_paused = true)]
async fn http2_connection_is_served_and_closed_when_idle() {
    let (mut sender, connection) = connect_h2(65_535).await;
    let response = sender.send_request(health()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert!(!response.into_body().collect().await.unwrap().to_bytes().is_empty());
    let began = Instant::now();
    connection.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), IDLE_TICKS);
}

#[tokio::test(start_paused = true)]
async fn http2_heads_are_bounded_too() {
    // H13
    let (mut sender, _connection) = connect_h2(65_535).await;
    for (count, size, status) in [(60, 8, 200), (65, 8, 431), (10, 4096, 431)] {
        let mut request = health();
        for number in 0..count {
            let name: hyper::header::HeaderName = format!("x-{number}").parse().unwrap();
            request.headers_mut().insert(name, "y".repeat(size).parse().unwrap());
        }
        let response = sender.send_request(request).await.unwrap();
        assert_eq!(response.status(), status, "{count} headers of {size} bytes");
    }
    let mut request = health();
    request.headers_mut().insert("host", "evil.example".parse().unwrap());
    assert_eq!(sender.send_request(request).await.unwrap().status(), 400, "two names");
}

#[tokio::test(start_paused = true)]
async fn http2_client_that_gives_no_room_for_an_answer_is_given_up() {
    let (mut sender, connection) = connect_h2(0).await;
    let response = sender.send_request(health()).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    let began = Instant::now();
    connection.await.unwrap();
    assert_eq!(began.elapsed().as_secs(), ANSWER_STALL_MAX.as_secs());
    assert!(response.into_body().collect().await.is_err());
}

#[tokio::test(start_paused = true)]
async fn http2_body_that_stops_is_answered_with_408_and_harms_no_other_request() {
    // H11
    let _room = ROOM.lock().await;
    let (mut sender, _connection) = connect_h2(65_535).await;
    let first = futures_util::stream::iter([Ok(Frame::data(Bytes::from_static(b"{")))]);
    let never = futures_util::stream::pending();
    let body = StreamBody::new(Box::pin(futures_util::StreamExt::chain(first, never)));
    let request = |body: Body| {
        Request::post("http://localhost/mcp")
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("content-type", "application/json")
            .header("accept", "*/*")
            .body(body)
            .unwrap()
    };
    let stopped = sender.send_request(request(body.boxed_unsync()));
    let began = Instant::now();
    assert_eq!(stopped.await.unwrap().status(), StatusCode::REQUEST_TIMEOUT);
    assert!(began.elapsed() <= Duration::from_secs(15), "{:?}", began.elapsed());
    let whole = Full::new(Bytes::from_static(PING.as_bytes()));
    let answered = sender.send_request(request(whole.boxed_unsync())).await;
    assert_eq!(answered.unwrap().status(), StatusCode::OK);
}
