//! One HTTP request at a time, written by hand, so that any request can be made.

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::client::PATIENCE;

#[derive(Debug)]
pub struct HttpAnswer {
    pub status: u16,
    head: String,
    pub body: String,
}

impl HttpAnswer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (found, value) = line.split_once(':')?;
            found.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }

    /// The answer, also where something was told before it.
    pub fn json(&self) -> Value {
        if self.header("content-type") == Some("text/event-stream") {
            return self.events().pop().unwrap_or_else(|| panic!("no events: {self:?}"));
        }
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The messages of an event stream.
    pub fn events(&self) -> Vec<Value> {
        let data = self
            .body
            .lines()
            .filter_map(|line| line.strip_prefix("data: "))
            .filter(|data| !data.is_empty());
        data.map(|data| serde_json::from_str(data).unwrap()).collect()
    }
}

/// Sends a request with the headers that every MCP client sends, and these.
pub async fn send(
    address: &str,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpAnswer {
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    let usual = [
        ("Host", address),
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
    ];
    let is_given = |name: &str| headers.iter().any(|(given, _)| given.eq_ignore_ascii_case(name));
    for (name, value) in usual.iter().filter(|(name, _)| !is_given(name)).chain(headers) {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    send_raw(address, &request).await
}

/// Sends text as it is and reads until the server closes.
pub async fn send_raw(address: &str, request: impl AsRef<[u8]>) -> HttpAnswer {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_ref()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap();
    let end = answer.windows(4).position(|end| end == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end].to_vec()).unwrap();
    let body = &answer[end + 4..];
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    let chunked = head.to_ascii_lowercase().contains("transfer-encoding: chunked");
    let body = if chunked { unchunk(body) } else { body.to_owned() };
    HttpAnswer { status, head, body: String::from_utf8(body).unwrap() }
}

/// Chunks may be cut anywhere, also within a character.
fn unchunk(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|end| end == b"\r\n") {
        let size = std::str::from_utf8(&rest[..end]).unwrap();
        let size = usize::from_str_radix(size, 16).unwrap();
        let start = end + 2;
        body.extend_from_slice(&rest[start..start + size]);
        rest = &rest[start + size..];
        rest = rest.strip_prefix(b"\r\n").unwrap_or(rest);
        if size == 0 {
            break;
        }
    }
    body
}
