//! Connections as a server sees them.

use std::sync::Arc;

use bytes::Bytes;
use hyper::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::Plain;
use crate::limits::{IDLE_CONNECTION_TIME, IDLE_CONNECTIONS_MAX, READ_BYTES_MAX, READ_BYTES_MIN};
use crate::web::framing::Fault;
use crate::web::{Body, Failure, Fields, Pool, Request, Web};

const ANSWER: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello";

struct Server(TcpListener);

impl Server {
    async fn start() -> (Server, Web) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let url = format!("http://{address}/mcp?a=b").parse().unwrap();
        (Server(listener), Web::new(&url).unwrap())
    }

    async fn accept(&self) -> TcpStream {
        self.0.accept().await.unwrap().0
    }
}

fn plain(web: &Web) -> &Plain {
    match &web.pool {
        Pool::Plain(plain) => plain,
        Pool::Tls(_) => unreachable!("these servers speak plain HTTP"),
    }
}

/// Reads the head of a request and says something.
async fn answer(stream: &mut TcpStream, said: &str) -> String {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.unwrap());
    }
    stream.write_all(said.as_bytes()).await.unwrap();
    String::from_utf8(head).unwrap()
}

async fn send(web: &Web) -> Result<Body, Failure> {
    let (target, fields, body) = (web.target(), &Fields::new(web.headers()), &Bytes::new());
    let request = Request { method: Method::GET, target, fields, more: &[], body };
    web.send(&request).await.map(|reply| reply.body)
}

async fn call(web: &Web) -> Result<Bytes, Failure> {
    send(web).await?.read_some(100).await
}

async fn has_ended(stream: &mut TcpStream) -> bool {
    stream.read(&mut [0; 1]).await.is_ok_and(|read| read == 0)
}

/// Nothing came, nor was the connection closed.
async fn is_open(stream: &mut TcpStream) -> bool {
    tokio::select! {
        biased;
        _ = stream.read_u8() => false,
        () = tokio::task::yield_now() => true,
    }
}

#[tokio::test]
async fn requests_one_after_the_other_share_a_connection_and_name_the_server() {
    let (server, web) = Server::start().await;
    let serving = async {
        let mut stream = server.accept().await;
        let head = answer(&mut stream, ANSWER).await;
        for said in [
            "HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
            ANSWER,
        ] {
            answer(&mut stream, said).await;
        }
        head
    };
    let calling = async {
        for expected in ["hello", "", "hello", "hello"] {
            assert_eq!(call(&web).await.unwrap(), expected);
        }
    };
    let (head, ()) = tokio::join!(serving, calling);
    let address = server.0.local_addr().unwrap();
    assert!(head.starts_with("GET /mcp?a=b HTTP/1.1\r\n"), "{head}");
    assert!(head.contains(&format!("host: {address}\r\n")), "{head}");
}

#[tokio::test]
async fn connection_that_the_server_closed_meanwhile_is_not_used() {
    let (server, web) = Server::start().await;
    let serve = async || answer(&mut server.accept().await, ANSWER).await;
    for _ in 0..3 {
        let (_, hello) = tokio::join!(serve(), call(&web));
        assert_eq!(hello.unwrap(), "hello");
        // The end of the connection is known before this one is.
        drop(tokio::join!(server.accept(), TcpStream::connect(server.0.local_addr().unwrap())));
    }
}

#[tokio::test]
async fn request_that_was_sent_is_not_sent_again() {
    let (server, web) = Server::start().await;
    let serving = async {
        let mut stream = server.accept().await;
        answer(&mut stream, ANSWER).await;
        answer(&mut stream, "").await;
    };
    let calling = async {
        assert_eq!(call(&web).await.unwrap(), "hello");
        call(&web).await
    };
    let ((), failed) = tokio::join!(serving, calling);
    assert!(matches!(failed, Err(Failure::Broken(_))), "{failed:?}");
}

#[tokio::test]
async fn answer_that_is_dropped_in_the_middle_takes_its_connection_along() {
    let (server, web) = Server::start().await;
    let begun = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel";
    let serving = async {
        let mut first = server.accept().await;
        answer(&mut first, begun).await;
        assert!(has_ended(&mut first).await);
        answer(&mut server.accept().await, ANSWER).await;
    };
    let calling = async {
        let mut body = send(&web).await.unwrap();
        assert_eq!(body.next().await.unwrap().unwrap(), "hel");
        drop(body);
        assert_eq!(call(&web).await.unwrap(), "hello");
    };
    tokio::join!(serving, calling);
}

#[tokio::test]
async fn answer_of_which_no_more_is_wanted_keeps_its_connection_if_it_ends_soon() {
    let (server, web) = Server::start().await;
    let begun = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nhel\r\n";
    let beginning = async {
        let mut stream = server.accept().await;
        answer(&mut stream, begun).await;
        stream
    };
    let (mut stream, body) = tokio::join!(beginning, send(&web));
    let mut body = body.unwrap();
    assert_eq!(body.next().await.unwrap().unwrap(), "hel");
    body.leave();
    assert!(is_open(&mut stream).await);
    stream.write_all(b"2\r\nlo\r\n0\r\n\r\n").await.unwrap();
    let pool = plain(&web);
    while pool.idle().parked.is_empty() {
        tokio::task::yield_now().await;
    }
    let (_, hello) = tokio::join!(answer(&mut stream, ANSWER), call(&web));
    assert_eq!(hello.unwrap(), "hello");
}

#[tokio::test]
async fn connection_that_is_not_used_is_closed_after_its_time() {
    let (server, web) = Server::start().await;
    let serving = async {
        let mut stream = server.accept().await;
        answer(&mut stream, ANSWER).await;
        stream
    };
    let (mut stream, hello) = tokio::join!(serving, call(&web));
    assert_eq!(hello.unwrap(), "hello");
    tokio::time::pause();
    let began = Instant::now();
    assert!(has_ended(&mut stream).await);
    let waited = began.elapsed();
    assert!(waited > IDLE_CONNECTION_TIME / 2 && waited < IDLE_CONNECTION_TIME * 2, "{waited:?}");
    assert!(!plain(&web).idle().is_swept);
}

#[tokio::test]
async fn no_more_connections_are_kept_than_allowed() {
    let (server, web) = Server::start().await;
    let calls = IDLE_CONNECTIONS_MAX + 4;
    // All wait for their answers at the same time, so that each has a connection.
    let serving = async {
        let mut streams = Vec::new();
        for _ in 0..calls {
            streams.push(server.accept().await);
        }
        for stream in &mut streams {
            answer(stream, ANSWER).await;
        }
        streams
    };
    let web = Arc::new(web);
    let mut calling = JoinSet::new();
    for _ in 0..calls {
        let web = Arc::clone(&web);
        calling.spawn(async move { assert_eq!(call(&web).await.unwrap(), "hello") });
    }
    let calling = async { _ = calling.join_all().await };
    let (_streams, ()) = tokio::join!(serving, calling);
    assert_eq!(plain(&web).idle().parked.len(), IDLE_CONNECTIONS_MAX);
}

#[tokio::test]
async fn answer_that_is_cut_off_or_malformed_says_so_and_its_connection_is_given_up() {
    let (server, web) = Server::start().await;
    let failing = async |said: &str| {
        let serving = async { answer(&mut server.accept().await, said).await };
        tokio::join!(serving, call(&web)).1.unwrap_err()
    };
    let cut_off = Failure::Broken("it was closed before the answer was whole".into());
    assert_eq!(failing("HTTP/1.1 200 OK\r\ncontent-le").await, cut_off);
    assert_eq!(failing("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel").await, cut_off);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    assert_eq!(failing(&format!("{chunked}5\r\nhello\r\n")).await, cut_off);
    assert_eq!(failing("hello\r\n").await, Failure::Malformed(Fault::Malformed));
    let chunks = failing(&format!("{chunked}5\r\nhello!\r\n")).await;
    assert_eq!(chunks, Failure::Malformed(Fault::Chunk));
    assert!(plain(&web).idle().parked.is_empty());
}

#[tokio::test]
async fn large_request_is_sent_whole_also_when_its_answer_begins_before() {
    let (server, web) = Server::start().await;
    let (size, bytes) = (8 * 1024 * 1024, Bytes::from(vec![b'x'; 8 * 1024 * 1024]));
    let serving = async {
        let mut stream = server.accept().await;
        let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
        let head = answer(&mut stream, early).await;
        assert!(head.contains(&format!("content-length: {size}\r\n")), "{head}");
        let mut body = vec![0; size];
        stream.read_exact(&mut body).await.unwrap();
        stream.write_all(b"hello").await.unwrap();
        assert!(body.iter().all(|byte| *byte == b'x'));
        answer(&mut stream, ANSWER).await;
    };
    let calling = async {
        let (target, fields) = (web.target(), &Fields::new(web.headers()));
        let request = Request { method: Method::POST, target, fields, more: &[], body: &bytes };
        let mut reply = web.send(&request).await.unwrap();
        assert_eq!(reply.body.read_some(100).await.unwrap(), "hello");
        assert_eq!(call(&web).await.unwrap(), "hello");
    };
    tokio::join!(serving, calling);
}

#[tokio::test]
async fn large_answer_comes_in_pieces_and_leaves_no_large_room_behind() {
    let (server, web) = Server::start().await;
    let size = 4 * READ_BYTES_MAX;
    let said = format!("HTTP/1.1 200 OK\r\ncontent-length: {size}\r\n\r\n{}", "x".repeat(size));
    let serving = async {
        let mut stream = server.accept().await;
        answer(&mut stream, &said).await;
        stream
    };
    let calling = async {
        let mut body = send(&web).await.unwrap();
        let mut came = 0;
        while let Some(piece) = body.next().await.unwrap() {
            assert!(piece.len() <= 2 * READ_BYTES_MAX, "{}", piece.len());
            came += piece.len();
        }
        assert_eq!(came, size);
    };
    let (_stream, ()) = tokio::join!(serving, calling);
    assert_eq!(plain(&web).idle().parked[0].link.room(), READ_BYTES_MIN);
}
