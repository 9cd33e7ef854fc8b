//! Finding values in texts that leave the house, in the spellings that programs use.
//!
//! Plain, as JSON escapes it, base64 at any offset, hexadecimal, percent-encoded. Looking costs little where
//! nothing is found, which is nearly always.

use std::ops::Range;

use aho_corasick::AhoCorasick;
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::{Zeroize, Zeroizing};

use crate::limits::REDACTED_BYTES_MIN;
use crate::names::Name;
use crate::value::SecretValue;

/// What stands where a value stood. It can stand in a JSON string.
pub const REDACTED: &str = "[redacted]";

/// A text without the values, and whose they were.
#[derive(Debug, PartialEq, Eq)]
pub struct Redaction {
    pub text: Vec<u8>,
    /// In order, each once.
    pub names: Vec<Name>,
}

/// Looks for values. It holds them, so it is neither shown nor copied.
pub struct Redactor {
    search: Option<AhoCorasick>,
    /// Whose spelling each pattern is.
    owners: Vec<usize>,
    names: Vec<Name>,
}

impl Redactor {
    /// Values under six bytes are not looked for: they would be found everywhere.
    pub fn new<'a>(secrets: impl Iterator<Item = (&'a Name, &'a SecretValue)>) -> Redactor {
        let (mut names, mut owners, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        for (name, value) in secrets {
            if value.expose().len() < REDACTED_BYTES_MIN {
                continue;
            }
            for spelling in spellings(value.expose()) {
                owners.push(names.len());
                patterns.push(spelling);
            }
            names.push(name.clone());
        }
        // It fails for gigabytes of patterns only; values are bounded, and so is their number.
        let search = if patterns.is_empty() { None } else { AhoCorasick::new(&patterns).ok() };
        patterns.iter_mut().for_each(Zeroize::zeroize);
        Redactor { search, owners, names }
    }

    /// The text without the values in it; `None` if there are none, as nearly always.
    pub fn scan(&self, text: &[u8]) -> Option<Redaction> {
        let search = self.search.as_ref()?;
        if !search.is_match(text) {
            return None;
        }
        let mut owners = Vec::new();
        let mut spans: Vec<Range<usize>> = Vec::new();
        // Also those that overlap: of two values that share bytes neither must be left in part.
        for found in search.find_overlapping_iter(text) {
            owners.push(self.owners[found.pattern().as_usize()]);
            spans.push(found.range());
        }
        owners.sort_unstable();
        owners.dedup();
        let names = owners.into_iter().map(|owner| self.names[owner].clone()).collect();
        Some(Redaction { text: without(text, spans), names })
    }
}

/// The text with a mark in the place of each span.
fn without(text: &[u8], mut spans: Vec<Range<usize>>) -> Vec<u8> {
    spans.sort_unstable_by_key(|span| span.start);
    let mut kept = Vec::with_capacity(text.len());
    let mut end = 0;
    for span in spans {
        if span.start >= end {
            kept.extend_from_slice(&text[end..span.start]);
            kept.extend_from_slice(REDACTED.as_bytes());
        }
        end = end.max(span.end);
    }
    kept.extend_from_slice(&text[end..]);
    kept
}

/// All the ways in which a value is looked for, each once.
fn spellings(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut spellings = vec![bytes.to_vec()];
    spellings.extend(json_escaped(value));
    for offset in 0..3 {
        spellings.extend(base64_at(bytes, offset));
    }
    spellings.push(each(bytes, |byte| format!("{byte:02x}")));
    spellings.push(each(bytes, |byte| format!("{byte:02X}")));
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let keep = |byte: u8| char::from(byte).to_string();
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    spellings.push(each(bytes, |byte| if is_plain(byte) { keep(byte) } else { upper(byte) }));
    spellings.push(each(bytes, |byte| if is_plain(byte) { keep(byte) } else { lower(byte) }));
    // As forms have it.
    spellings.push(each(bytes, |byte| match byte {
        b' ' => "+".into(),
        byte if is_plain(byte) && byte != b'~' || byte == b'*' => keep(byte),
        byte => upper(byte),
    }));
    // As the path of a URL may have it.
    spellings.push(each(bytes, |byte| {
        if is_plain(byte) || b"/:@!$&'()*+,;=".contains(&byte) { keep(byte) } else { upper(byte) }
    }));
    spellings.push(each(bytes, upper));
    spellings.push(each(bytes, lower));
    spellings.sort_unstable();
    spellings.dedup();
    spellings
}

fn each(bytes: &[u8], spell: impl Fn(u8) -> String) -> Vec<u8> {
    let mut spelling = Vec::with_capacity(bytes.len() * 3);
    for byte in bytes {
        spelling.extend_from_slice(spell(*byte).as_bytes());
    }
    spelling
}

/// The value inside a JSON string: as most write it, and with every letter beyond ASCII as `\u….`
fn json_escaped(value: &str) -> Vec<Vec<u8>> {
    let quoted = Zeroizing::new(serde_json::Value::from(value).to_string());
    let inside = &quoted[1..quoted.len() - 1];
    let mut spellings = vec![inside.as_bytes().to_vec(), inside.replace('/', "\\/").into_bytes()];
    for upper in [false, true] {
        let mut ascii = String::with_capacity(inside.len());
        for character in inside.chars() {
            if character.is_ascii() {
                ascii.push(character);
                continue;
            }
            for unit in character.encode_utf16(&mut [0; 2]) {
                let unit = if upper { format!("\\u{unit:04X}") } else { format!("\\u{unit:04x}") };
                ascii.push_str(&unit);
            }
        }
        spellings.push(ascii.into_bytes());
    }
    spellings
}

/// What the value alone decides of its base64, if so many bytes modulo 3 stand before it.
fn base64_at(bytes: &[u8], offset: usize) -> [Vec<u8>; 2] {
    let mut shifted = Zeroizing::new(vec![0; offset]);
    shifted.reserve_exact(bytes.len());
    shifted.extend_from_slice(bytes);
    let first = (offset * 8).div_ceil(6);
    let last = shifted.len() * 8 / 6;
    [&STANDARD_NO_PAD, &URL_SAFE_NO_PAD].map(|engine| {
        let encoded = Zeroizing::new(engine.encode(&shifted[..]));
        encoded.as_bytes()[first..last].to_vec()
    })
}
