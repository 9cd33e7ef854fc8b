//! A connection of the load: HTTP/1.1 as far as the servers here need it.

use std::net::SocketAddr;

use anyhow::{Context as _, bail, ensure};
use memchr::memmem;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::request::{Dialect, Door};
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_TIME_MAX};

/// One connection, with room that is used again for every answer.
pub struct Wire {
    stream: TcpStream,
    /// What was read and not yet taken.
    read: Vec<u8>,
    body: Vec<u8>,
}

/// The head of an answer.
#[derive(Debug, Default, PartialEq)]
pub struct Head {
    pub status: u16,
    pub session: Option<String>,
    length: Option<usize>,
    is_chunked: bool,
}

impl Wire {
    pub async fn connect(address: SocketAddr) -> anyhow::Result<Wire> {
        let stream = TcpStream::connect(address)
            .await
            .with_context(|| format!("nobody answers at {address}"))?;
        stream.set_nodelay(true)?;
        Ok(Wire { stream, read: Vec::with_capacity(16 * 1024), body: Vec::new() })
    }

    /// The handshake of the legacy era; the others have none. Returns the id of the session.
    pub async fn introduce(&mut self, door: &Door) -> anyhow::Result<Option<String>> {
        if door.dialect != Dialect::Legacy {
            return Ok(None);
        }
        let hello = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
        let head = self.exchange(&door.post(hello, None)).await?;
        let session = head.session;
        ensure!(
            head.status == 200,
            "`initialize` was refused with status {}: {}",
            head.status,
            String::from_utf8_lossy(&self.body)
        );
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        let head = self.exchange(&door.post(ready, session.as_deref())).await?;
        ensure!(head.status < 300, "`initialized` was refused with status {}", head.status);
        Ok(session)
    }

    /// Sends a request and reads the whole answer; its body is left in `body`.
    pub async fn exchange(&mut self, request: &[u8]) -> anyhow::Result<Head> {
        let answer = async {
            self.stream.write_all(request).await?;
            let head = self.head().await?;
            self.body.clear();
            match head.length {
                _ if head.is_chunked => self.chunks().await?,
                Some(length) => self.take(length).await?,
                None if matches!(head.status, 202 | 204) => {}
                None => bail!("an answer without a length; it can't be told where it ends"),
            }
            Ok(head)
        };
        timeout(ANSWER_TIME_MAX, answer).await.context("no answer came in time")?
    }

    /// Sends a request whose answer has no end, and reads its head.
    pub async fn open_stream(&mut self, request: &[u8]) -> anyhow::Result<Head> {
        self.stream.write_all(request).await?;
        timeout(ANSWER_TIME_MAX, self.head()).await.context("no answer came in time")?
    }

    /// The body of the last answer.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    async fn head(&mut self) -> anyhow::Result<Head> {
        loop {
            if let Some(end) = memmem::find(&self.read, b"\r\n\r\n") {
                let head = parse(&self.read[..end]).context("this is no HTTP")?;
                self.read.drain(..end + 4);
                return Ok(head);
            }
            self.fill().await?;
        }
    }

    async fn take(&mut self, length: usize) -> anyhow::Result<()> {
        ensure!(self.body.len() + length <= ANSWER_BYTES_MAX, "the answer is too long");
        let there = self.read.len().min(length);
        self.body.extend(self.read.drain(..there));
        let end = self.body.len() + length - there;
        // Straight into the body: large ones are not copied twice.
        self.body.reserve(length - there);
        while self.body.len() < end {
            let missing = (end - self.body.len()) as u64;
            let read = (&mut self.stream).take(missing).read_buf(&mut self.body).await?;
            ensure!(read > 0, "the connection was closed in the middle of an answer");
        }
        Ok(())
    }

    async fn chunks(&mut self) -> anyhow::Result<()> {
        loop {
            let Some(end) = memmem::find(&self.read, b"\r\n") else {
                self.fill().await?;
                continue;
            };
            let line = std::str::from_utf8(&self.read[..end]).unwrap_or_default();
            let size = line.split(';').next().unwrap_or_default().trim();
            let size = usize::from_str_radix(size, 16).context("a chunk without a size")?;
            self.read.drain(..end + 2);
            self.take(size).await?;
            while self.read.len() < 2 {
                self.fill().await?;
            }
            self.read.drain(..2);
            if size == 0 {
                return Ok(());
            }
        }
    }

    async fn fill(&mut self) -> anyhow::Result<()> {
        let read = self.stream.read_buf(&mut self.read).await?;
        ensure!(read > 0, "the connection was closed");
        Ok(())
    }
}

fn parse(head: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(head).ok()?;
    let mut lines = text.split("\r\n");
    let status = lines.next()?.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
    let mut head = Head { status, ..Head::default() };
    for line in lines {
        let (name, value) = line.split_once(':')?;
        let value = value.trim();
        if name.eq_ignore_ascii_case("content-length") {
            head.length = Some(value.parse().ok()?);
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            head.is_chunked = value.eq_ignore_ascii_case("chunked");
        } else if name.eq_ignore_ascii_case("mcp-session-id") {
            head.session = Some(value.to_owned());
        }
    }
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::{Head, parse};

    #[test]
    fn head_of_an_answer_is_read_whatever_the_case_of_its_names() {
        let text = b"HTTP/1.1 200 OK\r\nContent-Length: 12\r\nMCP-Session-Id: abc";
        let head = parse(text).unwrap();
        let session = Some("abc".to_owned());
        assert_eq!(head, Head { status: 200, session, length: Some(12), is_chunked: false });
        assert!(parse(b"HTTP/1.1 200\r\ntransfer-encoding: chunked").unwrap().is_chunked);
        assert_eq!(parse(b"SSH-2.0-x"), None);
    }
}
