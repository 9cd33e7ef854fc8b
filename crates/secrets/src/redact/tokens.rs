//! What a JSON text is made of, as far as it matters to what can be taken out of it.

use std::ops::Range;

use memchr::{memchr, memchr2};

use super::Find;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// Letters of a string, as they are.
    Letters,
    /// One letter of a string, in another spelling.
    Escape,
    /// A number, or a word.
    Scalar,
    /// Quotation marks, brackets and what else stands between values.
    Structure,
}

/// A part of the text; all of them, one after the other, are the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub kind: Kind,
    pub span: Range<usize>,
    /// Counts the quotation marks before it: what has the same count is in the same string.
    pub marks: usize,
    /// Whether more of it may follow the end of the text.
    pub is_open: bool,
}

/// Reads a text, or a piece that begins where a token does.
pub(super) struct Tokens<'a> {
    text: &'a [u8],
    at: usize,
    marks: usize,
    /// Whether a string is being read.
    pub in_string: bool,
}

impl<'a> Tokens<'a> {
    pub fn new(text: &'a [u8], in_string: bool) -> Tokens<'a> {
        Tokens { text, at: 0, marks: 0, in_string }
    }
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        let rest = &self.text[self.at..];
        let first = *rest.first()?;
        let marks = self.marks;
        let (kind, length) = if first == b'"' {
            self.in_string = !self.in_string;
            self.marks += 1;
            (Kind::Structure, 1)
        } else if self.in_string && first == b'\\' {
            (Kind::Escape, if rest.get(1) == Some(&b'u') { 6 } else { 2 })
        } else if self.in_string {
            (Kind::Letters, memchr2(b'"', b'\\', rest).unwrap_or(rest.len()))
        } else if is_scalar(first) {
            let end = rest.iter().position(|byte| !is_scalar(*byte));
            (Kind::Scalar, end.unwrap_or(rest.len()))
        } else {
            let rest = &rest[..memchr(b'"', rest).unwrap_or(rest.len())];
            let end = rest.iter().position(|byte| is_scalar(*byte));
            (Kind::Structure, end.unwrap_or(rest.len()))
        };
        let span = self.at..self.text.len().min(self.at + length);
        self.at = span.end;
        let is_open = match kind {
            Kind::Escape => span.len() < length,
            Kind::Scalar => span.end == self.text.len(),
            Kind::Letters | Kind::Structure => false,
        };
        Some(Token { kind, span, marks, is_open })
    }
}

fn is_scalar(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.')
}

/// Makes finds fit the text, so that it is JSON without them; `None` if that can't be.
pub(super) fn fit(text: &[u8], in_string: bool, mut finds: Vec<Find>) -> Option<Vec<Find>> {
    let mut places: Vec<usize> =
        finds.iter().flat_map(|find| [find.span.start, find.span.end - 1]).collect();
    places.sort_unstable();
    places.dedup();
    let mut tokens: Vec<Token> = Vec::new();
    let mut wanted = places.into_iter().peekable();
    for token in Tokens::new(text, in_string) {
        let mut is_wanted = false;
        while wanted.next_if(|place| *place < token.span.end).is_some() {
            is_wanted = true;
        }
        if is_wanted {
            tokens.push(token);
        }
    }
    let token_at = |place: usize| {
        let after = tokens.partition_point(|token| token.span.start <= place);
        tokens.get(after.checked_sub(1)?).filter(|token| token.span.end > place)
    };
    for find in &mut finds {
        let (first, last) = (token_at(find.span.start)?, token_at(find.span.end - 1)?);
        let is_text = |token: &Token| matches!(token.kind, Kind::Letters | Kind::Escape);
        if first.kind == Kind::Scalar && first.span == last.span {
            find.span = first.span.clone();
            find.is_bare = true;
        } else if is_text(first) && is_text(last) && first.marks == last.marks {
            // Half a letter is none.
            if first.kind == Kind::Escape {
                find.span.start = first.span.start;
            }
            if last.kind == Kind::Escape {
                find.span.end = last.span.end;
            }
        } else {
            return None;
        }
    }
    finds.sort_unstable_by_key(|find| (find.span.start, usize::MAX - find.span.end));
    Some(finds)
}
