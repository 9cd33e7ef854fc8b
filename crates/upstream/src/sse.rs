//! Server-sent events: bytes in, events out, with a bound on the size of an event.
//!
//! Reads nothing itself; the owner pushes chunks as they come. What the data means is not known
//! here.

mod remainder;

use std::time::Duration;

use bytes::{Buf as _, Bytes, BytesMut};

pub use remainder::Remainder;

/// How much of an oversized event is kept, to find out what it was about.
const HEAD: usize = 4096;
/// What stands before the data on its line.
const FIELD: usize = "data: ".len();
/// Longer identifiers are not kept: they would have to be sent back.
const ID_BYTES_MAX: usize = 1024;
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Its name, `message` unless given, and its data.
    Message { name: Bytes, data: Bytes },
    /// Over the bound; it was thrown away but for its beginning.
    TooLarge { head: Bytes },
}

/// Collects input and hands out events.
#[derive(Debug)]
pub struct Decoder {
    buffer: BytesMut,
    /// How far the buffer is known to hold no end of a line.
    searched: usize,
    bytes_max: usize,
    has_begun: bool,
    /// The last line ended with CR, so that an LF belongs to it.
    after_cr: bool,
    name: Option<Bytes>,
    data: Data,
    /// The beginning of an event that is over the bound, until it is told of.
    oversized: Option<Bytes>,
    /// The event is over the bound; what follows of it is passed over.
    skips: bool,
    last_id: Option<Bytes>,
    retry: Option<Duration>,
}

/// The data of an event so far. One line, the usual case, is not copied.
#[derive(Debug, Default)]
enum Data {
    #[default]
    None,
    Line(Bytes),
    Lines(BytesMut),
}

impl Decoder {
    pub fn new(bytes_max: usize) -> Decoder {
        Decoder {
            buffer: BytesMut::new(),
            searched: 0,
            bytes_max,
            has_begun: false,
            after_cr: false,
            name: None,
            data: Data::None,
            oversized: None,
            skips: false,
            last_id: None,
            retry: None,
        }
    }

    pub fn push(&mut self, chunk: &[u8]) {
        self.buffer.extend_from_slice(chunk);
    }

    /// Begins a new stream that goes on where the last one broke off.
    pub fn resume(&mut self) {
        let (last_id, retry) = (self.last_id.take(), self.retry);
        *self = Decoder { last_id, retry, ..Decoder::new(self.bytes_max) };
    }

    /// The data so far of an event that is more than so much in its first line, and not over yet.
    pub fn unfinished(&self, bytes_min: usize) -> Option<Bytes> {
        let has_none = matches!(self.data, Data::None) && !self.skips;
        let value = self.buffer.strip_prefix(b"data:").filter(|_| has_none)?;
        let value = value.strip_prefix(b" ").unwrap_or(value);
        (value.len() > bytes_min).then(|| Bytes::copy_from_slice(value))
    }

    /// The identifier from which the stream can be resumed.
    pub fn last_id(&self) -> Option<&Bytes> {
        self.last_id.as_ref()
    }

    /// How long the server wants us to wait before we come back.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    /// The next whole event, if there is one.
    pub fn next_event(&mut self) -> Option<Event> {
        while let Some(line) = self.next_line() {
            if line.is_empty() {
                if let Some(event) = self.dispatch() {
                    return Some(event);
                }
            } else {
                self.take_line(&line);
            }
            if self.oversized.is_some() {
                break;
            }
        }
        // Told at once: its end may never come.
        self.oversized.take().map(|head| Event::TooLarge { head })
    }

    fn next_line(&mut self) -> Option<Bytes> {
        if !self.has_begun {
            if self.buffer.len() < BYTE_ORDER_MARK.len()
                && BYTE_ORDER_MARK.starts_with(&self.buffer)
            {
                return None;
            }
            if self.buffer.starts_with(BYTE_ORDER_MARK) {
                self.buffer.advance(BYTE_ORDER_MARK.len());
            }
            self.has_begun = true;
        }
        if self.after_cr && !self.buffer.is_empty() {
            self.after_cr = false;
            if self.buffer[0] == b'\n' {
                self.buffer.advance(1);
            }
        }
        let Some(step) = memchr::memchr2(b'\n', b'\r', &self.buffer[self.searched..]) else {
            self.searched = self.buffer.len();
            self.shed();
            return None;
        };
        let line = self.buffer.split_to(self.searched + step).freeze();
        self.searched = 0;
        self.after_cr = self.buffer[0] == b'\r';
        self.buffer.advance(1);
        Some(line)
    }

    /// Gives up an unfinished line that is over the bound. Its end is still to come.
    fn shed(&mut self) {
        if self.buffer.len() > self.bytes_max + FIELD {
            self.mark_oversized();
            // What remains has the look of a comment, which says nothing.
            self.buffer = BytesMut::from(&b":"[..]);
            self.searched = 1;
        }
    }

    fn mark_oversized(&mut self) {
        if !self.skips {
            let head = match &self.data {
                Data::Line(line) => line,
                Data::Lines(lines) => &lines[..],
                Data::None => self.buffer.strip_prefix(b"data:").unwrap_or(&self.buffer),
            };
            self.oversized = Some(Bytes::copy_from_slice(&head[..head.len().min(HEAD)]));
        }
        self.skips = true;
        self.data = Data::None;
    }

    fn take_line(&mut self, line: &Bytes) {
        let colon = memchr::memchr(b':', line);
        let (field, value) = match colon {
            None => (&line[..], Bytes::new()),
            Some(0) => return,
            Some(at) => {
                let skip = at + 1 + usize::from(line.get(at + 1) == Some(&b' '));
                (&line[..at], line.slice(skip..))
            }
        };
        match field {
            b"data" => self.add_data(value),
            b"event" => self.name = Some(value),
            b"id" if value.len() <= ID_BYTES_MAX && !value.contains(&0) => {
                self.last_id = (!value.is_empty()).then_some(value);
            }
            b"retry" => {
                let millis = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
                self.retry = millis.map(Duration::from_millis).or(self.retry);
            }
            _ => {}
        }
    }

    fn add_data(&mut self, value: Bytes) {
        if self.skips {
            return;
        }
        self.data = match std::mem::take(&mut self.data) {
            Data::None => Data::Line(value),
            Data::Line(first) => {
                let mut lines = BytesMut::from(&first[..]);
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
            Data::Lines(mut lines) => {
                lines.extend_from_slice(b"\n");
                lines.extend_from_slice(&value);
                Data::Lines(lines)
            }
        };
        let len = match &self.data {
            Data::None => 0,
            Data::Line(line) => line.len(),
            Data::Lines(lines) => lines.len(),
        };
        if len > self.bytes_max {
            self.mark_oversized();
        }
    }

    /// Ends the event; one without data is none.
    fn dispatch(&mut self) -> Option<Event> {
        let name = self.name.take().filter(|name| !name.is_empty());
        let data = match std::mem::take(&mut self.data) {
            Data::None => Bytes::new(),
            Data::Line(line) => line,
            Data::Lines(lines) => lines.freeze(),
        };
        if std::mem::take(&mut self.skips) {
            return None;
        }
        let name = name.unwrap_or_else(|| Bytes::from_static(b"message"));
        (!data.is_empty()).then_some(Event::Message { name, data })
    }
}

#[cfg(test)]
mod tests;
