//! The remainder of an event: its data is handed out as it comes, from the middle of a line on.

use bytes::{Bytes, BytesMut};

const FIELD: &[u8] = b"data:";

/// Where the next byte stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum At {
    /// In the data.
    #[default]
    Data,
    /// At the beginning of a line, perhaps behind so many letters of `data:`.
    Start {
        matched: usize,
    },
    /// Before the data of a further line, which may have a blank.
    Value,
    /// In a line that says something else.
    Other,
    Over,
}

#[derive(Debug, Default)]
pub struct Remainder {
    at: At,
    /// The last line ended with CR, so that an LF belongs to it.
    after_cr: bool,
}

impl Remainder {
    /// The data in a further chunk; what follows the event is left out.
    pub fn next(&mut self, chunk: &Bytes) -> Bytes {
        let mut made = BytesMut::new();
        let mut rest = chunk.clone();
        loop {
            if self.at == At::Data {
                let line = memchr::memchr2(b'\n', b'\r', &rest).unwrap_or(rest.len());
                let data = rest.split_to(line);
                // One line, or a part of it, is not copied.
                if rest.is_empty() && made.is_empty() {
                    return data;
                }
                made.extend_from_slice(&data);
            }
            let Some(&byte) = rest.first() else { return made.freeze() };
            if self.step(byte) {
                rest = rest.slice(1..);
            }
            if self.at == At::Over {
                return made.freeze();
            }
            if self.at == At::Value {
                // Lines of data are one text, with an LF between them.
                made.extend_from_slice(b"\n");
            }
        }
    }

    /// Whether the event has ended.
    pub fn is_over(&self) -> bool {
        self.at == At::Over
    }

    /// Takes a byte that is no data, and says whether it was used up.
    fn step(&mut self, byte: u8) -> bool {
        if std::mem::take(&mut self.after_cr) && byte == b'\n' {
            return true;
        }
        let is_end = matches!(byte, b'\n' | b'\r');
        self.at = match self.at {
            At::Start { matched: 0 } if is_end => At::Over,
            At::Data | At::Start { .. } | At::Value | At::Other if is_end => {
                At::Start { matched: 0 }
            }
            At::Start { matched } if FIELD.get(matched) == Some(&byte) => {
                if matched + 1 == FIELD.len() {
                    At::Value
                } else {
                    At::Start { matched: matched + 1 }
                }
            }
            At::Start { .. } | At::Other => At::Other,
            At::Value | At::Data => {
                self.at = At::Data;
                return byte == b' ';
            }
            At::Over => At::Over,
        };
        self.after_cr = byte == b'\r';
        true
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Remainder;

    /// What is left of an event, by pieces of a size, and whether it has ended.
    fn rest(text: &str, size: usize) -> (String, bool) {
        let mut remainder = Remainder::default();
        let mut data = Vec::new();
        for piece in text.as_bytes().chunks(size) {
            data.extend(remainder.next(&Bytes::copy_from_slice(piece)));
        }
        (String::from_utf8(data).unwrap(), remainder.is_over())
    }

    #[test]
    fn rest_of_an_event_is_its_data_wherever_it_is_cut() {
        for (text, data, is_over) in [
            ("a: b", "a: b", false),
            ("ab\n", "ab", false),
            ("ab\n\n", "ab", true),
            ("ab\r\n\r\n", "ab", true),
            ("ab\r\r", "ab", true),
            ("ab\n\ndata: c\n\n", "ab", true),
            ("ab\ndata: c\ndata:d\ndata:  e\n\n", "ab\nc\nd\n e", true),
            ("ab\r\ndata: c\r\n\r\n", "ab\nc", true),
            ("ab\nid: data: 7\ndat: x\n: data\ndatax: y\n\n", "ab", true),
            ("ab\ndata:\ndata: c\n\n", "ab\n\nc", true),
            ("\n\n", "", true),
        ] {
            for size in 1..=text.len() {
                assert_eq!(rest(text, size), (data.to_owned(), is_over), "{text:?} by {size}");
            }
        }
    }
}
