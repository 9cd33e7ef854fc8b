//! A response too large to be held: its result passes piece by piece, only its frame is read.

use bytes::Bytes;

use crate::json::{DEPTH_MAX, Scanner};
use crate::rpc::{self, Message, Outcome, Raw, Rejection};

/// Of what stands around a result, more than this is none of a response.
const FRAME_BYTES_MAX: usize = 4096;

/// A response whose result is passing.
#[derive(Debug)]
pub struct Passing {
    /// What stands around the result, with `{}` in its place once it has passed.
    frame: Vec<u8>,
    nesting: Nesting,
}

impl Passing {
    /// Begins with the first piece of a response; gives the part of it that is the result.
    ///
    /// `None` where no result that is an object begins in it.
    pub fn begin(first: &Bytes) -> Option<(Passing, Bytes)> {
        let start = result_start(first)?;
        if start > FRAME_BYTES_MAX {
            return None;
        }
        let (frame, nesting) = (first[..start].to_vec(), Nesting::default());
        let mut passing = Passing { frame, nesting };
        let part = passing.next(&first.slice(start..))?;
        Some((passing, part))
    }

    /// The part of a further piece that is the result; `None` where it is no response any more.
    pub fn next(&mut self, piece: &Bytes) -> Option<Bytes> {
        let end = if self.nesting.is_over { 0 } else { self.nesting.feed(piece)? };
        let rest = piece.get(end..)?;
        if self.nesting.is_over && end > 0 {
            self.frame.extend_from_slice(b"{}");
        }
        if self.frame.len() + rest.len() > 2 * FRAME_BYTES_MAX {
            return None;
        }
        if self.nesting.is_over {
            self.frame.extend_from_slice(rest);
        }
        Some(piece.slice(..end))
    }

    /// The id under which the result was sent, when all has come.
    pub fn finish(self) -> Result<Raw, Rejection> {
        match rpc::parse(&self.frame.into())? {
            Message::Response { id, outcome: Outcome::Result(_) } => Ok(id),
            _ => Err(Rejection::malformed("it is no result")),
        }
    }

    /// The id, if it has come before the result.
    pub fn early_id(&self) -> Option<Raw> {
        let start = if self.nesting.is_over { return None } else { &self.frame };
        let frame = [start, b"{}}".as_slice()].concat();
        match rpc::parse(&frame.into()) {
            Ok(Message::Response { id, .. }) => Some(id),
            _ => None,
        }
    }
}

/// Where the result begins in the first piece of a response.
fn result_start(piece: &[u8]) -> Option<usize> {
    let mut scanner = Scanner::new(piece);
    scanner.enter(b'{').ok()?;
    loop {
        let name = scanner.string().ok()?;
        scanner.expect(b':').ok()?;
        if piece.get(name.start..name.end) == Some(b"result".as_slice()) {
            return (scanner.peek() == Some(b'{')).then(|| scanner.at());
        }
        scanner.value().ok()?;
        scanner.expect(b',').ok()?;
    }
}

/// How deep the end of the last piece lies in a value.
#[derive(Debug, Default)]
struct Nesting {
    depth: usize,
    is_in_string: bool,
    /// Whether the last byte was a backslash in a string.
    is_escaped: bool,
    is_over: bool,
}

impl Nesting {
    /// How much of a piece belongs to the value; `None` where it nests too deeply.
    fn feed(&mut self, piece: &[u8]) -> Option<usize> {
        let mut at = 0;
        while let Some(&byte) = piece.get(at) {
            at += 1;
            if std::mem::take(&mut self.is_escaped) {
                continue;
            }
            if self.is_in_string {
                at = self.pass_string(piece, at - 1);
                continue;
            }
            match byte {
                b'"' => self.is_in_string = true,
                // The frame is a level, too.
                b'{' | b'[' if self.depth + 1 == DEPTH_MAX => return None,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    if self.depth == 0 {
                        self.is_over = true;
                        return Some(at);
                    }
                }
                _ => {}
            }
        }
        Some(piece.len())
    }

    /// Passes over a string from `at` on; where it ends, or the piece does.
    ///
    /// Only quotes are looked for: text has escapes on every line, but hardly any quotes.
    fn pass_string(&mut self, piece: &[u8], mut at: usize) -> usize {
        loop {
            let rest = &piece[at..];
            let quote = memchr::memchr(b'"', rest);
            let before = &rest[..quote.unwrap_or(rest.len())];
            let backslashes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
            let is_escaped = backslashes % 2 == 1;
            match quote {
                None => {
                    self.is_escaped = is_escaped;
                    return piece.len();
                }
                Some(step) => at += step + 1,
            }
            if !is_escaped {
                self.is_in_string = false;
                return at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::Passing;

    /// What passes of a response that comes in pieces of a size, and the id it ends with.
    fn pass(text: &str, size: usize) -> Option<(String, String)> {
        let first = Bytes::copy_from_slice(&text.as_bytes()[..text.len().min(60)]);
        let (mut passing, part) = Passing::begin(&first)?;
        let mut passed = part.to_vec();
        for piece in text.as_bytes()[first.len()..].chunks(size) {
            passed.extend(passing.next(&Bytes::copy_from_slice(piece))?);
        }
        let id = passing.finish().ok()?;
        Some((String::from_utf8(passed).unwrap(), String::from_utf8(id.as_bytes().into()).unwrap()))
    }

    #[test]
    fn result_passes_as_it_is_wherever_it_is_cut_and_its_frame_is_read() {
        let result = r#"{"content":[{"text":"a\"}]\\","n":[1,{}]}],"é":"}\\\\\"]\n\\"}"#;
        for frame in [
            r#"{"jsonrpc":"2.0","id":7,"result":R}"#,
            r#" { "result" : R , "id" : 7, "jsonrpc" : "2.0" } "#,
            r#"{"id":7,"result":R,"jsonrpc":"2.0"}"#,
        ] {
            let text = frame.replace('R', result);
            for size in 1..text.len() {
                let passed = pass(&text, size).unwrap();
                assert_eq!(passed, (result.to_owned(), "7".to_owned()), "{text} by {size}");
            }
        }
    }

    #[test]
    fn what_is_no_result_does_not_pass() {
        let long = "x".repeat(100);
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":7,"error":{{"m":"{long}"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":"{long}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"m":"{long}"}}"#),
            format!(r#"{{"jsonrpc":"2.0","result":{{"m":"{long}"}}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"m":"{long}"}},"result":{{}}}}"#),
            format!(r#"[{{"jsonrpc":"2.0","id":7,"result":{{"m":"{long}"}}}}]"#),
            format!(
                r#"{{"jsonrpc":"2.0","id":7,"result":{{"m":{}{}}}}}"#,
                "[".repeat(127),
                "]".repeat(127)
            ),
        ] {
            assert_eq!(pass(&text, 16), None, "{text}");
        }
    }

    #[test]
    fn id_is_known_early_where_it_comes_first() {
        let begin = |text: &'static str| Passing::begin(&Bytes::from_static(text.as_bytes()));
        let (passing, _) = begin(r#"{"jsonrpc":"2.0","id":"7","result":{"a":"#).unwrap();
        assert_eq!(passing.early_id().unwrap().as_bytes(), b"\"7\"");
        let (passing, _) = begin(r#"{"result":{"a":"#).unwrap();
        assert_eq!(passing.early_id(), None);
    }
}
