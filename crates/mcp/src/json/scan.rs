//! One pass over JSON text: strict, without recursion, without memory of its own.
//!
//! Says where values begin and end. Why a text is no JSON is left to whoever can word it.

#![expect(
    clippy::inline_always,
    reason = "every byte of a message passes here, and the rest is built for size"
)]

use super::DEPTH_MAX;

/// The text is no JSON, or nests too deeply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Syntax,
    TooDeep,
}

/// A place in a text that is being read.
#[derive(Clone, Copy, Debug)]
pub struct Scanner<'a> {
    text: &'a [u8],
    at: usize,
    /// How many objects and arrays the next value lies in.
    depth: usize,
}

/// A string as it was written, between its quotes.
#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub start: usize,
    pub end: usize,
    pub has_escapes: bool,
}

type Step<T> = Result<T, Stop>;

impl<'a> Scanner<'a> {
    pub fn new(text: &'a [u8]) -> Scanner<'a> {
        Scanner { text, at: 0, depth: 0 }
    }

    pub fn at(&self) -> usize {
        self.at
    }

    /// The next byte that is no whitespace; it is not taken.
    #[inline(always)]
    pub fn peek(&mut self) -> Option<u8> {
        loop {
            let byte = *self.text.get(self.at)?;
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\t' | b'\r') {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// Takes `byte`, which must come next.
    #[inline(always)]
    pub fn expect(&mut self, byte: u8) -> Step<()> {
        if self.take(byte) { Ok(()) } else { Err(Stop::Syntax) }
    }

    /// Takes the bracket that opens what the next values lie in.
    pub fn enter(&mut self, bracket: u8) -> Step<()> {
        self.expect(bracket)?;
        self.depth += 1;
        Ok(())
    }

    /// Takes `byte` if it comes next.
    #[inline(always)]
    pub fn take(&mut self, byte: u8) -> bool {
        // Mostly there is no whitespace to look for.
        let is_next = self.text.get(self.at) == Some(&byte) || self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// The text must end here.
    pub fn finish(&mut self) -> Step<()> {
        if self.peek().is_none() { Ok(()) } else { Err(Stop::Syntax) }
    }

    /// Takes a string.
    #[inline(always)]
    pub fn string(&mut self) -> Step<Written> {
        self.expect(b'"')?;
        let start = self.at;
        let (end, has_escapes) = string_end(self.text, start)?;
        self.at = end;
        Ok(Written { start, end: end - 1, has_escapes })
    }

    /// Takes a value; where it began.
    #[inline(always)]
    pub fn value(&mut self) -> Step<usize> {
        let first = self.peek();
        let start = self.at;
        self.at = match first {
            Some(b'{' | b'[') => nested_end(self.text, start, self.depth)?,
            first => plain_end(self.text, start, first)?,
        };
        Ok(start)
    }
}

/// Where an object or an array ends that begins here, so deep already.
fn nested_end(text: &[u8], start: usize, outside: usize) -> Step<usize> {
    // All of it in registers: nothing here is pointed to.
    let mut here = Scanner { text, at: start, depth: outside };
    // Which of the open ones are objects: a bit each, the innermost lowest.
    let mut objects = 0_u128;
    loop {
        match here.peek() {
            Some(open @ (b'{' | b'[')) => {
                here.at += 1;
                if here.depth == DEPTH_MAX {
                    return Err(Stop::TooDeep);
                }
                let is_object = open == b'{';
                if !here.take(if is_object { b'}' } else { b']' }) {
                    here.depth += 1;
                    objects = objects << 1 | u128::from(is_object);
                    if is_object {
                        here.key()?;
                    }
                    continue;
                }
            }
            first => here.at = plain_end(text, here.at, first)?,
        }
        // A value has ended, and with it perhaps what holds it.
        loop {
            if here.depth == outside {
                return Ok(here.at);
            }
            let is_object = objects & 1 == 1;
            let next = here.peek();
            here.at += 1;
            match next {
                Some(b',') => {
                    if is_object {
                        here.key()?;
                    }
                    break;
                }
                Some(b'}') if is_object => {}
                Some(b']') if !is_object => {}
                _ => return Err(Stop::Syntax),
            }
            objects >>= 1;
            here.depth -= 1;
        }
    }
}

impl Scanner<'_> {
    #[inline(always)]
    fn key(&mut self) -> Step<()> {
        self.string()?;
        self.expect(b':')
    }
}

/// Where a value ends that begins here, with this byte, and holds no others.
#[inline(always)]
fn plain_end(text: &[u8], at: usize, first: Option<u8>) -> Step<usize> {
    let word = |word: &[u8]| {
        let is_there = text.get(at..).is_some_and(|rest| rest.starts_with(word));
        if is_there { Ok(at + word.len()) } else { Err(Stop::Syntax) }
    };
    match first {
        Some(b'"') => string_end(text, at + 1).map(|(end, _)| end),
        Some(b't') => word(b"true"),
        Some(b'f') => word(b"false"),
        Some(b'n') => word(b"null"),
        _ => Ok(at + number_len(text.get(at..).unwrap_or_default())?),
    }
}

/// Where a string ends whose first quote stands before `at`, behind its last; whether it holds escapes.
#[inline(always)]
fn string_end(text: &[u8], mut at: usize) -> Step<(usize, bool)> {
    let mut has_escapes = false;
    loop {
        at += plain_len(text.get(at..).unwrap_or_default());
        match text.get(at) {
            Some(b'"') => return Ok((at + 1, has_escapes)),
            Some(b'\\') => {
                has_escapes = true;
                at += escape_len(text.get(at + 1..).unwrap_or_default())?;
            }
            _ => return Err(Stop::Syntax),
        }
    }
}

/// How long an escape is whose backslash stands before `rest`.
fn escape_len(rest: &[u8]) -> Step<usize> {
    match rest {
        [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => Ok(2),
        [b'u', a, b, c, d, ..] if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) => {
            Ok(6)
        }
        _ => Err(Stop::Syntax),
    }
}

/// How long the number is that `text` begins with.
fn number_len(text: &[u8]) -> Step<usize> {
    let mut at = usize::from(text.first() == Some(&b'-'));
    if text.get(at) == Some(&b'0') {
        at += 1;
    } else {
        at += digits_len(text, at)?;
    }
    if text.get(at) == Some(&b'.') {
        at += 1;
        at += digits_len(text, at)?;
    }
    if let Some(b'e' | b'E') = text.get(at) {
        at += 1;
        at += usize::from(matches!(text.get(at), Some(b'+' | b'-')));
        at += digits_len(text, at)?;
    }
    Ok(at)
}

#[inline]
fn digits_len(text: &[u8], at: usize) -> Step<usize> {
    let rest = text.get(at..).unwrap_or_default();
    match rest.iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(Stop::Syntax),
        count => Ok(count),
    }
}

/// How many bytes come before the first quote, backslash or control character.
#[inline]
pub fn plain_len(text: &[u8]) -> usize {
    // Most strings are short.
    if let Some((first, rest)) = text.split_first_chunk() {
        let special = special_bytes(u64::from_le_bytes(*first));
        return match special {
            0 => first.len() + long_plain_len(rest),
            special => special.trailing_zeros() as usize / 8,
        };
    }
    long_plain_len(text)
}

/// The same, for text that is likely to be long.
#[inline(never)]
fn long_plain_len(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((word, after)) = rest.split_first_chunk() {
        let special = special_bytes(u64::from_le_bytes(*word));
        if special != 0 {
            return text.len() - rest.len() + special.trailing_zeros() as usize / 8;
        }
        rest = after;
    }
    let is_special = |byte: &u8| matches!(byte, b'"' | b'\\' | 0..=0x1f);
    text.len() - rest.len() + rest.iter().position(is_special).unwrap_or(rest.len())
}

/// Sets the high bit of each byte that is a quote, a backslash or a control character.
///
/// Bits above the lowest that is set may be wrong: a borrow reaches the next byte.
fn special_bytes(word: u64) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGHS: u64 = u64::from_le_bytes([0x80; 8]);
    let zeros = |word: u64| word.wrapping_sub(ONES) & !word;
    let quotes = zeros(word ^ u64::from_le_bytes([b'"'; 8]));
    let backslashes = zeros(word ^ u64::from_le_bytes([b'\\'; 8]));
    let controls = word.wrapping_sub(ONES * 0x20) & !word;
    (quotes | backslashes | controls) & HIGHS
}
