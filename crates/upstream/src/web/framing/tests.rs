//! Answers as they come, and what is made of them.

use bytes::{Bytes, BytesMut};

use super::{Fault, Head, take_head};
use crate::limits::{CHUNK_LINE_BYTES_MAX, HEAD_BYTES_MAX, HEAD_FIELDS_MAX, TRAILER_BYTES_MAX};

/// What became of an answer.
#[derive(Debug, PartialEq, Eq)]
struct Taken {
    body: String,
    /// Whether the end of the body was seen.
    is_over: bool,
    is_kept: bool,
    /// What belongs to no answer.
    rest: String,
}

/// Takes an answer that comes in pieces of `size` bytes.
fn take(input: &[u8], size: usize) -> Result<(Option<Head>, Taken), Fault> {
    let mut buffer = BytesMut::new();
    let mut head: Option<Head> = None;
    let mut body = Vec::new();
    for piece in input.chunks(size) {
        buffer.extend_from_slice(piece);
        if head.is_none() {
            head = take_head(&mut buffer)?;
        }
        if let Some(head) = &mut head {
            while let Some(piece) = head.framing.take(&mut buffer)? {
                body.extend_from_slice(&piece);
            }
        }
    }
    let taken = Taken {
        body: String::from_utf8(body).unwrap(),
        is_over: head.as_ref().is_some_and(|head| head.framing.is_over()),
        is_kept: head.as_ref().is_some_and(|head| head.is_kept),
        rest: String::from_utf8(buffer.to_vec()).unwrap(),
    };
    Ok((head, taken))
}

/// However an answer is cut, the same is made of it.
#[track_caller]
fn check(input: &str, expected: Result<(&str, bool, bool, &str), Fault>) {
    let expected = expected.map(|(body, is_over, is_kept, rest)| Taken {
        body: body.to_owned(),
        is_over,
        is_kept,
        rest: rest.to_owned(),
    });
    for size in [1, 2, 3, 7, input.len()] {
        let taken = take(input.as_bytes(), size).map(|(_, taken)| taken);
        assert_eq!(taken, expected, "in pieces of {size}: {input}");
    }
}

#[test]
fn body_ends_where_its_length_says() {
    check("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", Ok(("hello", true, true, "")));
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhelloX", Ok(("hello", true, true, "X")));
    check("HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhel", Ok(("hel", false, true, "")));
    check("HTTP/1.1 202 A\r\ncontent-length: 0\r\n\r\n", Ok(("", true, true, "")));
    let same = "HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\ncontent-length: 2\r\n\r\nhi";
    check(same, Ok(("hi", true, true, "")));
}

#[test]
fn body_of_chunks_ends_after_its_trailer() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: Chunked\r\n\r\n";
    let chunked = |body: &str| format!("{head}{body}");
    check(&chunked("5\r\nhello\r\n0\r\n\r\n"), Ok(("hello", true, true, "")));
    check(&chunked("3;a=b\r\nhel\r\n002 \r\nlo\r\n0\r\n\r\n"), Ok(("hello", true, true, "")));
    check(&chunked("A\r\n0123456789\r\n0\r\nX: y\r\n\r\nZ"), Ok(("0123456789", true, true, "Z")));
    check(&chunked("5\r\nhello\r\n0\r\n"), Ok(("hello", false, true, "")));
    check(&chunked("5\r\nhel"), Ok(("hel", false, true, "")));
}

#[test]
fn body_without_a_length_ends_with_its_connection() {
    check("HTTP/1.1 200 OK\r\n\r\nhello", Ok(("hello", false, false, "")));
    check("HTTP/1.0 200 OK\r\n\r\nhello", Ok(("hello", false, false, "")));
}

#[test]
fn connection_is_kept_unless_the_server_or_its_age_says_otherwise() {
    let with = |version: u8, field: &str| {
        format!("HTTP/1.{version} 200 OK\r\ncontent-length: 2\r\n{field}\r\nhi")
    };
    check(&with(1, ""), Ok(("hi", true, true, "")));
    check(&with(1, "Connection: Close\r\n"), Ok(("hi", true, false, "")));
    check(&with(1, "connection: x, close\r\n"), Ok(("hi", true, false, "")));
    let both = "connection: close\r\nconnection: keep-alive\r\n";
    check(&with(1, both), Ok(("hi", true, false, "")));
    check(&with(0, ""), Ok(("hi", true, false, "")));
    check(&with(0, "connection: Keep-Alive\r\n"), Ok(("hi", true, true, "")));
}

#[test]
fn some_answers_have_no_body_whatever_they_say() {
    for status in [204, 304] {
        let answer = format!("HTTP/1.1 {status} X\r\ncontent-length: 5\r\n\r\n");
        check(&answer, Ok(("", true, true, "")));
    }
    let early = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n";
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi";
    check(&format!("{early}{answer}"), Ok(("hi", true, true, "")));
    check("HTTP/1.1 101 Switching Protocols\r\n\r\n", Err(Fault::Switched));
}

#[test]
fn answer_that_can_be_read_in_two_ways_is_refused() {
    let with = |fields: &str| format!("HTTP/1.1 200 OK\r\n{fields}\r\nhello");
    for lengths in
        ["content-length: 5\r\ncontent-length: 6\r\n", "content-length: 5, 6\r\n"].map(with)
    {
        check(&lengths, Err(Fault::Lengths));
    }
    for length in ["-5", "+5", "5x", "", "0x5", "5 5", "18446744073709551616", "5,"] {
        check(&with(&format!("content-length: {length}\r\n")), Err(Fault::Length));
    }
    let both = "transfer-encoding: chunked\r\ncontent-length: 5\r\n";
    check(&with(both), Err(Fault::LengthAndCoding));
    for coding in ["gzip, chunked", "chunked, chunked", "identity", "xchunked"] {
        check(&with(&format!("transfer-encoding: {coding}\r\n")), Err(Fault::Coding));
    }
    let twice = "transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n";
    check(&with(twice), Err(Fault::Coding));
    check("HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", Err(Fault::Coding));
}

#[test]
fn chunks_that_can_be_read_in_two_ways_are_refused() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunked = |body: &str| format!("{head}{body}");
    for body in [
        "5\nhello\r\n",
        "5\r\nhelloX\r\n",
        "5\r\nhello\n0\r\n\r\n",
        "-5\r\nhello\r\n",
        "0x5\r\nhello\r\n",
        " 5\r\nhello\r\n",
        "\r\nhello\r\n",
        ";a\r\nhello\r\n",
        "5;a\rb\r\nhello\r\n",
        "0\r\nx\n\r\n",
    ] {
        check(&chunked(body), Err(Fault::Chunk));
    }
    check(&chunked("10000000000000000\r\n"), Err(Fault::ChunkSize));
    check(&chunked("FFFFFFFFFFFFFFFF\r\nx"), Ok(("x", false, true, "")));
}

#[test]
fn what_never_ends_is_refused() {
    let fields = "x: y\r\n".repeat(HEAD_FIELDS_MAX + 1);
    check(&format!("HTTP/1.1 200 OK\r\n{fields}\r\n"), Err(Fault::HeadTooLarge));
    let endless = |start: &str, bytes: usize| format!("{start}{}", "x".repeat(bytes));
    let refused = |input: &str| take(input.as_bytes(), 1024).unwrap_err();
    let head = endless("HTTP/1.1 200 OK\r\nx: ", HEAD_BYTES_MAX);
    assert_eq!(refused(&head), Fault::HeadTooLarge);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let line = endless(&format!("{chunked}5;"), CHUNK_LINE_BYTES_MAX);
    assert_eq!(refused(&line), Fault::Chunk);
    let trailer = endless(&format!("{chunked}0\r\nx: y\r\n"), TRAILER_BYTES_MAX);
    assert_eq!(refused(&trailer), Fault::Trailer);
}

#[test]
fn what_is_no_http_is_refused() {
    for input in ["hello there, who is it?", "HTTP/2 200 OK\r\n\r\n", "HTTP/1.1 2 OK\r\n\r\n"] {
        let failed = take(input.as_bytes(), input.len()).unwrap_err();
        assert_eq!(failed, Fault::Malformed, "{input}");
    }
}

#[test]
fn fields_that_matter_are_found_in_any_spelling() {
    let answer = "HTTP/1.1 307 X\r\nLOCATION: /there\r\nMcp-Session-Id: s1\r\n\
        Content-Type: Text/Event-Stream; charset=utf-8\r\ncontent-length: 0\r\n\r\n";
    let (head, _) = take(answer.as_bytes(), answer.len()).unwrap();
    let head = head.unwrap();
    assert_eq!(head.status, 307);
    assert_eq!(head.location, Some(Bytes::from_static(b"/there")));
    assert_eq!(head.session, Some(Bytes::from_static(b"s1")));
    assert!(head.is_event_stream);
}
