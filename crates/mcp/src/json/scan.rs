//! One pass over JSON text: strict, without recursion, without memory of its own.
//!
//! Says where values begin and end. Why a text is no JSON is left to whoever can word it.

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
    #[inline]
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
    pub fn expect(&mut self, byte: u8) -> Step<()> {
        if self.peek() != Some(byte) {
            return Err(Stop::Syntax);
        }
        self.at += 1;
        Ok(())
    }

    /// Takes the bracket that opens what the next values lie in.
    pub fn enter(&mut self, bracket: u8) -> Step<()> {
        self.expect(bracket)?;
        self.depth += 1;
        Ok(())
    }

    /// Takes `byte` if it comes next.
    pub fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    /// The text must end here.
    pub fn finish(&mut self) -> Step<()> {
        if self.peek().is_none() { Ok(()) } else { Err(Stop::Syntax) }
    }

    /// Takes a string.
    #[inline]
    pub fn string(&mut self) -> Step<Written> {
        self.expect(b'"')?;
        let start = self.at;
        let has_escapes = self.rest_of_string()?;
        Ok(Written { start, end: self.at - 1, has_escapes })
    }

    /// Takes a string whose first quote is taken; whether it holds escapes.
    fn rest_of_string(&mut self) -> Step<bool> {
        let mut has_escapes = false;
        loop {
            self.at += plain_len(self.text.get(self.at..).unwrap_or_default());
            match self.text.get(self.at) {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(has_escapes);
                }
                Some(b'\\') => {
                    has_escapes = true;
                    self.escape()?;
                }
                _ => return Err(Stop::Syntax),
            }
        }
    }

    fn escape(&mut self) -> Step<()> {
        let rest = self.text.get(self.at + 1..).unwrap_or_default();
        match rest {
            [b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't', ..] => self.at += 2,
            [b'u', a, b, c, d, ..]
                if [a, b, c, d].iter().all(|digit| digit.is_ascii_hexdigit()) =>
            {
                self.at += 6;
            }
            _ => return Err(Stop::Syntax),
        }
        Ok(())
    }

    /// Takes a value; where it began.
    pub fn value(&mut self) -> Step<usize> {
        let first = self.peek();
        let start = self.at;
        match first {
            Some(b'{' | b'[') => self.nested()?,
            first => self.plain(first)?,
        }
        Ok(start)
    }

    /// Takes an object or an array.
    fn nested(&mut self) -> Step<()> {
        // Which of the open ones are objects: a bit each, the innermost lowest.
        let mut objects = 0_u128;
        let mut depth = 0;
        loop {
            match self.peek() {
                Some(open @ (b'{' | b'[')) => {
                    self.at += 1;
                    if self.depth + depth == DEPTH_MAX {
                        return Err(Stop::TooDeep);
                    }
                    let is_object = open == b'{';
                    if !self.take(if is_object { b'}' } else { b']' }) {
                        depth += 1;
                        objects = objects << 1 | u128::from(is_object);
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                first => self.plain(first)?,
            }
            // A value has ended, and with it perhaps what holds it.
            loop {
                if depth == 0 {
                    return Ok(());
                }
                let is_object = objects & 1 == 1;
                let next = self.peek();
                self.at += 1;
                match next {
                    Some(b',') => {
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    Some(b'}') if is_object => {}
                    Some(b']') if !is_object => {}
                    _ => return Err(Stop::Syntax),
                }
                objects >>= 1;
                depth -= 1;
            }
        }
    }

    /// Takes a value that holds no others and begins with this byte.
    #[inline]
    fn plain(&mut self, first: Option<u8>) -> Step<()> {
        match first {
            Some(b'"') => {
                self.at += 1;
                self.rest_of_string().map(|_| ())
            }
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => self.number(),
        }
    }

    #[inline]
    fn key(&mut self) -> Step<()> {
        self.string()?;
        self.expect(b':')
    }

    fn word(&mut self, word: &[u8]) -> Step<()> {
        if !self.text.get(self.at..).is_some_and(|rest| rest.starts_with(word)) {
            return Err(Stop::Syntax);
        }
        self.at += word.len();
        Ok(())
    }

    fn number(&mut self) -> Step<()> {
        self.at += usize::from(self.text.get(self.at) == Some(&b'-'));
        if self.text.get(self.at) == Some(&b'0') {
            self.at += 1;
        } else {
            self.digits()?;
        }
        if self.text.get(self.at) == Some(&b'.') {
            self.at += 1;
            self.digits()?;
        }
        if let Some(b'e' | b'E') = self.text.get(self.at) {
            self.at += 1;
            self.at += usize::from(matches!(self.text.get(self.at), Some(b'+' | b'-')));
            self.digits()?;
        }
        Ok(())
    }

    fn digits(&mut self) -> Step<()> {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let count = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        if count == 0 { Err(Stop::Syntax) } else { Ok(()) }
    }
}

/// How many bytes come before the first quote, backslash or control character.
#[inline]
fn plain_len(text: &[u8]) -> usize {
    let mut rest = text;
    while let Some((chunk, after)) = rest.split_first_chunk::<8>() {
        let special = special_bytes(u64::from_le_bytes(*chunk));
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
