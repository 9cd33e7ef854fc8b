//! Where an answer of HTTP/1.1 begins and ends. Pure: bytes in, head and pieces of the body out.
//!
//! Strict: what two readers could take for two different answers is refused.

use std::mem::MaybeUninit;

use bytes::{Buf as _, Bytes, BytesMut};
use httparse::{Header, ParserConfig, Status};
use hyper::StatusCode;

use crate::limits::{CHUNK_LINE_BYTES_MAX, HEAD_BYTES_MAX, HEAD_FIELDS_MAX, TRAILER_BYTES_MAX};

/// What of a head matters.
#[derive(Debug, PartialEq, Eq)]
pub struct Head {
    pub status: StatusCode,
    pub is_event_stream: bool,
    /// Where a redirect leads.
    pub location: Option<Bytes>,
    /// The session that the server names.
    pub session: Option<Bytes>,
    pub framing: Framing,
    /// Whether the connection can be used again afterwards.
    pub is_kept: bool,
}

/// Why an answer can't be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("it is no HTTP/1.1")]
    Malformed,
    #[error("its head is too large")]
    HeadTooLarge,
    #[error("it changes the protocol, unasked")]
    Switched,
    #[error("its `Content-Length` is no number")]
    Length,
    #[error("it has several lengths")]
    Lengths,
    #[error("it has both `Content-Length` and `Transfer-Encoding`")]
    LengthAndCoding,
    #[error("its `Transfer-Encoding` is not `chunked`")]
    Coding,
    #[error("its chunks are malformed")]
    Chunk,
    #[error("a chunk of it is too large")]
    ChunkSize,
    #[error("what follows its last chunk is too large")]
    Trailer,
}

/// Takes the head of an answer out of `buffer`; `None` while it is not whole. What is said before
/// the answer proper (100, 103) is passed over.
pub fn take_head(buffer: &mut BytesMut) -> Result<Option<Head>, Fault> {
    loop {
        let mut fields = [const { MaybeUninit::<Header>::uninit() }; HEAD_FIELDS_MAX];
        let mut response = httparse::Response::new(&mut []);
        let parser = ParserConfig::default();
        let parsed = parser.parse_response_with_uninit_headers(&mut response, buffer, &mut fields);
        let size = match parsed {
            Ok(Status::Complete(size)) if size <= HEAD_BYTES_MAX => size,
            Ok(Status::Partial) if buffer.len() < HEAD_BYTES_MAX => return Ok(None),
            Ok(_) | Err(httparse::Error::TooManyHeaders) => return Err(Fault::HeadTooLarge),
            Err(_) => return Err(Fault::Malformed),
        };
        let status = response.code.and_then(|code| StatusCode::from_u16(code).ok());
        let status = status.ok_or(Fault::Malformed)?;
        if status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Fault::Switched);
        }
        if status.is_informational() {
            buffer.advance(size);
            continue;
        }
        let head = read(status, response.version == Some(1), response.headers)?;
        buffer.advance(size);
        return Ok(Some(head));
    }
}

/// Reads the fields of a head in one pass.
fn read(status: StatusCode, is_newer: bool, fields: &[Header<'_>]) -> Result<Head, Fault> {
    let mut length = None;
    let mut coding = None;
    let mut closes = false;
    let mut head = Head {
        status,
        is_event_stream: false,
        location: None,
        session: None,
        framing: Framing::Close,
        is_kept: is_newer,
    };
    for Header { name, value } in fields {
        let is = |known: &str| name.eq_ignore_ascii_case(known);
        match name.len() {
            8 if is("location") => head.location = Some(Bytes::copy_from_slice(value)),
            10 if is("connection") => {
                head.is_kept |= names(value, b"keep-alive");
                closes |= names(value, b"close");
            }
            12 if is("content-type") => head.is_event_stream = is_event_stream(value),
            14 if is("content-length") => read_length(value, &mut length)?,
            14 if is("mcp-session-id") => head.session = Some(Bytes::copy_from_slice(value)),
            17 if is("transfer-encoding") => {
                let is_chunked = value.trim_ascii().eq_ignore_ascii_case(b"chunked");
                coding = Some(is_chunked && coding.is_none());
            }
            _ => {}
        }
    }
    head.framing = match (coding, length) {
        _ if matches!(status, StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED) => {
            Framing::Length(0)
        }
        (Some(_), Some(_)) => return Err(Fault::LengthAndCoding),
        (Some(true), None) if is_newer => Framing::Chunks(Chunk::Size),
        (Some(_), None) => return Err(Fault::Coding),
        (None, Some(length)) => Framing::Length(length),
        (None, None) => Framing::Close,
    };
    head.is_kept &= !closes && head.framing != Framing::Close;
    Ok(head)
}

fn names(value: &[u8], wanted: &[u8]) -> bool {
    value.split(|b| *b == b',').any(|word| word.trim_ascii().eq_ignore_ascii_case(wanted))
}

/// Whether a value of `Content-Type` means a stream of events.
pub fn is_event_stream(kind: &[u8]) -> bool {
    const KIND: &[u8] = b"text/event-stream";
    kind.get(..KIND.len()).is_some_and(|kind| kind.eq_ignore_ascii_case(KIND))
}

/// Reads a length; the same one may be repeated.
fn read_length(value: &[u8], length: &mut Option<u64>) -> Result<(), Fault> {
    for number in value.split(|b| *b == b',').map(<[u8]>::trim_ascii) {
        let read = parse(number, 10).ok_or(Fault::Length)?;
        if length.replace(read).is_some_and(|other| other != read) {
            return Err(Fault::Lengths);
        }
    }
    Ok(())
}

/// A number of nothing but digits.
fn parse(digits: &[u8], radix: u32) -> Option<u64> {
    let add = |number: u64, digit: &u8| {
        let digit = char::from(*digit).to_digit(radix)?;
        number.checked_mul(radix.into())?.checked_add(digit.into())
    };
    if digits.is_empty() { None } else { digits.iter().try_fold(0, add) }
}

/// How the end of a body is known, and how much of it is still to come.
#[derive(Debug, PartialEq, Eq)]
pub enum Framing {
    Length(u64),
    Chunks(Chunk),
    /// It ends with the connection.
    Close,
}

/// What comes next in a body of chunks.
#[derive(Debug, PartialEq, Eq)]
pub enum Chunk {
    Size,
    Data(u64),
    /// The end of the line on which the data stands.
    DataEnd,
    /// Lines after the last chunk; so many bytes of them were passed over.
    Trailer(usize),
    Over,
}

impl Framing {
    /// Takes the next piece of the body out of `buffer`, if there is one.
    pub fn take(&mut self, buffer: &mut BytesMut) -> Result<Option<Bytes>, Fault> {
        self.step(buffer)?;
        let mut unknown = u64::MAX;
        let left = match self {
            Framing::Length(left) | Framing::Chunks(Chunk::Data(left)) => left,
            Framing::Chunks(_) => return Ok(None),
            Framing::Close => &mut unknown,
        };
        let size = usize::try_from(*left).unwrap_or(usize::MAX).min(buffer.len());
        if size == 0 {
            return Ok(None);
        }
        *left -= size as u64;
        let piece = buffer.split_to(size).freeze();
        // The end is mostly there already. What is wrong with it is told with the next piece.
        _ = self.step(buffer);
        Ok(Some(piece))
    }

    /// Whether all of the body was taken.
    pub fn is_over(&self) -> bool {
        matches!(self, Framing::Length(0) | Framing::Chunks(Chunk::Over))
    }

    /// How much is known to come.
    pub fn announced(&self) -> u64 {
        match self {
            Framing::Length(left) | Framing::Chunks(Chunk::Data(left)) => *left,
            Framing::Chunks(_) | Framing::Close => 0,
        }
    }

    /// Passes over what stands between the data of chunks.
    fn step(&mut self, buffer: &mut BytesMut) -> Result<(), Fault> {
        let Framing::Chunks(chunk) = self else { return Ok(()) };
        loop {
            let next = match chunk {
                Chunk::Data(0) => Chunk::DataEnd,
                Chunk::Data(_) | Chunk::Over => return Ok(()),
                Chunk::DataEnd if buffer.len() < 2 => return Ok(()),
                Chunk::DataEnd if buffer[..2] == *b"\r\n" => {
                    buffer.advance(2);
                    Chunk::Size
                }
                Chunk::DataEnd => return Err(Fault::Chunk),
                Chunk::Size => {
                    let line = find_line(buffer, CHUNK_LINE_BYTES_MAX, Fault::Chunk)?;
                    let Some(line) = line else { return Ok(()) };
                    let size = chunk_size(line)?;
                    let passed = line.len() + 2;
                    buffer.advance(passed);
                    if size == 0 { Chunk::Trailer(0) } else { Chunk::Data(size) }
                }
                Chunk::Trailer(seen) => {
                    let room = TRAILER_BYTES_MAX - *seen;
                    let Some(line) = find_line(buffer, room, Fault::Trailer)? else {
                        return Ok(());
                    };
                    let (is_last, passed) = (line.is_empty(), line.len() + 2);
                    let seen = *seen + passed;
                    buffer.advance(passed);
                    if is_last { Chunk::Over } else { Chunk::Trailer(seen) }
                }
            };
            *chunk = next;
        }
    }
}

/// The line at the beginning, without its end; `None` while it is not whole.
fn find_line(buffer: &[u8], bytes_max: usize, too_long: Fault) -> Result<Option<&[u8]>, Fault> {
    let seen = &buffer[..buffer.len().min(bytes_max)];
    let Some(end) = memchr::memchr(b'\n', seen) else {
        return if seen.len() < bytes_max { Ok(None) } else { Err(too_long) };
    };
    match seen[..end].strip_suffix(b"\r") {
        Some(line) if memchr::memchr(b'\r', line).is_none() => Ok(Some(line)),
        _ => Err(Fault::Chunk),
    }
}

/// The size that a line gives to a chunk; what follows a semicolon is of no meaning to us.
fn chunk_size(line: &[u8]) -> Result<u64, Fault> {
    let digits = line.split(|b| *b == b';').next().unwrap_or_default().trim_ascii_end();
    if digits.is_empty() || !digits.iter().all(u8::is_ascii_hexdigit) {
        return Err(Fault::Chunk);
    }
    parse(digits, 16).ok_or(Fault::ChunkSize)
}

#[cfg(test)]
mod tests;
