//! The spellings in which a value is looked for: plain, as JSON escapes it, base64 at any offset, hexadecimal,
//! percent-encoded.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};
use zeroize::{Zeroize, Zeroizing};

use crate::limits::{LINE_BYTES_MIN, REDACTED_BYTES_MAX, SPELLING_BYTES_MAX};

/// All the ways in which a value is looked for, each once, in parts of a bounded length; or only the likeliest.
pub(super) fn of(value: &str, all: bool) -> Vec<Vec<u8>> {
    let value = start(value);
    let bytes = value.as_bytes();
    let mut spellings: Vec<Vec<u8>> = lines(value).collect();
    // JSON within a string of JSON is what many tools answer with, and others within that.
    let mut texts = vec![value.to_owned(), represented(value)];
    for _ in 0..JSON_LEVELS {
        texts.sort_unstable();
        texts.dedup();
        spellings.extend(texts.iter().map(|text| text.as_bytes().to_vec()));
        let deeper = texts.iter().flat_map(|text| json_escaped(text)).collect();
        std::mem::replace(&mut texts, deeper).iter_mut().for_each(Zeroize::zeroize);
    }
    if all {
        for offset in 0..3 {
            spellings.extend(base64_at(bytes, offset));
        }
        spellings.extend(in_digits(bytes));
    }
    spellings.sort_unstable();
    spellings.dedup();
    let mut parts: Vec<Vec<u8>> = spellings.iter().flat_map(|text| divided(text)).collect();
    spellings.iter_mut().for_each(Zeroize::zeroize);
    parts.sort_unstable();
    parts.dedup();
    parts
}

/// Plain, and how often JSON may have escaped it.
const JSON_LEVELS: usize = 4;

/// A value as Python shows it in a traceback.
fn represented(value: &str) -> String {
    let escaped = value.replace('\\', "\\\\").replace('\n', "\\n");
    escaped.replace('\r', "\\r").replace('\t', "\\t")
}

/// So much of a value as is looked for.
fn start(value: &str) -> &str {
    let end =
        (0..=value.len().min(REDACTED_BYTES_MAX)).rev().find(|at| value.is_char_boundary(*at));
    &value[..end.unwrap_or(0)]
}

/// Lines that tell by themselves: those of a private key may be shown one by one.
fn lines(value: &str) -> impl Iterator<Item = Vec<u8>> {
    let lines = value.lines().flat_map(|line| line.split("\\n")).map(str::trim);
    let tells = |line: &&str| line.len() >= LINE_BYTES_MIN && !line.contains(char::is_whitespace);
    lines.filter(move |line| line.len() < value.len() && tells(line)).map(Into::into)
}

/// A spelling in parts of a bounded length, none of them short, so that little has to be held back of a stream.
fn divided(spelling: &[u8]) -> Vec<Vec<u8>> {
    let (mut parts, mut rest) = (Vec::new(), spelling);
    while rest.len() >= 2 * SPELLING_BYTES_MAX {
        // Not within a letter.
        let is_inside = |at: &usize| rest[*at] & 0xc0 == 0x80;
        let at = (SPELLING_BYTES_MAX..rest.len()).find(|at| !is_inside(at)).unwrap_or(rest.len());
        let (part, more) = rest.split_at(at);
        parts.push(part.to_vec());
        rest = more;
    }
    parts.push(rest.to_vec());
    parts
}

/// What percent-encoding leaves as it is, besides letters, digits, `-`, `.` and `_`: little, as RFC 3986, form encoding,
/// Python and the functions of JavaScript have it, the path and the query of a URL.
const KEPT: [&str; 9] =
    ["", "~", "*", "/", "/~", "~!*'()", "~!*'();,/?:@&=+$#", "~/:@!$&'()*+,;=", "~/?:@!$'()*,;"];

/// Hexadecimal and percent-encoded, which differ in what is kept and in how digits are written.
fn in_digits(bytes: &[u8]) -> Vec<Vec<u8>> {
    let lower = |byte: u8| format!("{byte:02x}");
    let upper = |byte: u8| format!("{byte:02X}");
    let mut spellings = vec![each(bytes, lower), each(bytes, upper)];
    for digits in [lower as fn(u8) -> String, upper] {
        spellings.push(each(bytes, |byte| format!("%{}", digits(byte))));
        for kept in KEPT {
            let is_kept = |byte: u8| {
                byte.is_ascii_alphanumeric()
                    || b"-._".contains(&byte)
                    || kept.as_bytes().contains(&byte)
            };
            for space in ["%20", "+"] {
                spellings.push(each(bytes, |byte| match byte {
                    b' ' => space.to_owned(),
                    byte if is_kept(byte) => char::from(byte).to_string(),
                    byte => format!("%{}", digits(byte)),
                }));
            }
        }
    }
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
fn json_escaped(value: &str) -> Vec<String> {
    let quoted = Zeroizing::new(serde_json::Value::from(value).to_string());
    let inside = &quoted[1..quoted.len() - 1];
    let mut spellings = vec![inside.to_owned(), inside.replace('/', "\\/")];
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
        spellings.push(ascii);
    }
    spellings.sort_unstable();
    spellings.dedup();
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
