//! Newline framing of stdio: bytes in, frames out, with a bound on the length of a line.
//!
//! Reads nothing itself; the owner fills the buffer.

use bytes::{Buf, Bytes, BytesMut};

use crate::rpc::Raw;

/// How much of each end of an oversized line is kept, to find out which request it answered.
const EDGE: usize = 4096;

/// One line of input.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// A line without its newline; never blank.
    Frame(Bytes),
    /// A line over the bound; it was thrown away but for its two ends.
    TooLong { head: Bytes, tail: Bytes },
}

/// Collects input and hands out lines.
#[derive(Debug)]
pub struct Lines {
    buffer: BytesMut,
    /// How far the buffer is known to hold no newline.
    searched: usize,
    line_max: usize,
    oversized: Option<Bytes>,
}

impl Lines {
    pub fn new(line_max: usize) -> Lines {
        Lines { buffer: BytesMut::new(), searched: 0, line_max, oversized: None }
    }

    /// Where to append input.
    pub fn buffer(&mut self) -> &mut BytesMut {
        // Room for one read; a long line grows it further by doubling.
        self.buffer.reserve(8 * 1024);
        &mut self.buffer
    }

    /// The next whole line, if there is one.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let Some(step) = memchr::memchr(b'\n', &self.buffer[self.searched..]) else {
                self.searched = self.buffer.len();
                self.shed();
                return None;
            };
            let line = self.buffer.split_to(self.searched + step).freeze();
            self.buffer.advance(1);
            self.searched = 0;
            if let Some(head) = self.oversized.take() {
                return Some(Line::TooLong { head, tail: tail_of(&line) });
            }
            if line.len() > self.line_max {
                return Some(Line::TooLong { head: head_of(&line), tail: tail_of(&line) });
            }
            if !line.trim_ascii().is_empty() {
                return Some(Line::Frame(line));
            }
        }
    }

    /// What is left when the input has ended without a newline.
    pub fn last_line(&mut self) -> Option<Line> {
        self.buffer.extend_from_slice(b"\n");
        self.next_line()
    }

    /// Gives up an unfinished line that is over the bound, all but its ends.
    fn shed(&mut self) {
        let over = self.buffer.len() > self.line_max;
        if self.oversized.is_none() && over {
            self.oversized = Some(head_of(&self.buffer));
        }
        if self.oversized.is_some() && self.buffer.len() > EDGE {
            let tail = tail_of(&self.buffer);
            // A new buffer, so that the memory of the long line is given back.
            self.buffer = BytesMut::from(tail.as_ref());
            self.searched = self.buffer.len();
        }
    }
}

fn head_of(line: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&line[..line.len().min(EDGE)])
}

fn tail_of(line: &[u8]) -> Bytes {
    Bytes::copy_from_slice(&line[line.len().saturating_sub(EDGE)..])
}

/// Which way a message goes whose id is to be guessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    Request,
    Answer,
}

/// The id of a message that could not be parsed, from the two ends of its line.
///
/// A guess by design: the caller checks it against what is pending, or answers under it what
/// would go unanswered otherwise.
pub fn guess_id(head: &[u8], tail: &[u8], direction: Direction) -> Option<Raw> {
    let find = |text: &[u8], key: &str| memchr::memmem::find(text, key.as_bytes());
    let is_request = find(head, "\"method\"").or_else(|| find(tail, "\"method\"")).is_some();
    if !head.trim_ascii_start().starts_with(b"{") || is_request != (direction == Direction::Request)
    {
        return None;
    }
    // What lies before the payload, or after it, is the envelope.
    let payload = ["\"result\"", "\"error\"", "\"params\""].iter();
    let payload = payload.filter_map(|key| find(head, key)).min().unwrap_or(head.len());
    let in_head = find(&head[..payload], "\"id\"").map(|at| &head[at..]);
    let text = in_head.or_else(|| Some(&tail[memchr::memmem::rfind(tail, b"\"id\"")?..]))?;
    let value = text["\"id\"".len()..].trim_ascii_start().strip_prefix(b":")?.trim_ascii_start();
    let len = match value.first()? {
        b'"' => 2 + memchr::memchr2(b'"', b'\\', &value[1..])?,
        _ => value.iter().take_while(|b| b.is_ascii_digit() || **b == b'-').count(),
    };
    let id = value.get(..len).filter(|id| !id.is_empty() && !id.ends_with(b"\\"))?;
    Some(Raw::trusted(Bytes::copy_from_slice(id)))
}

/// `frame` on one line: newlines between JSON tokens become blanks.
pub fn one_line(frame: Bytes) -> Bytes {
    if memchr::memchr2(b'\n', b'\r', &frame).is_none() {
        return frame;
    }
    frame.iter().map(|b| if matches!(b, b'\n' | b'\r') { b' ' } else { *b }).collect()
}

#[cfg(test)]
mod tests;
