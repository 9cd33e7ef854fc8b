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
    let mut spellings = vec![bytes.to_vec()];
    let once = json_escaped(value);
    // JSON within a string of JSON is what many tools answer with.
    for text in &once {
        spellings.extend(json_escaped(text).into_iter().map(String::into_bytes));
    }
    spellings.extend(once.into_iter().map(String::into_bytes));
    spellings.extend(lines(value));
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
    lines.filter(move |line| line.len() < value.len() && tells(line)).map(|line| line.into())
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

/// Hexadecimal and percent-encoded.
fn in_digits(bytes: &[u8]) -> Vec<Vec<u8>> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let keep = |byte: u8| char::from(byte).to_string();
    let upper = |byte: u8| format!("%{byte:02X}");
    let lower = |byte: u8| format!("%{byte:02x}");
    vec![
        each(bytes, |byte| format!("{byte:02x}")),
        each(bytes, |byte| format!("{byte:02X}")),
        each(bytes, |byte| if is_plain(byte) { keep(byte) } else { upper(byte) }),
        each(bytes, |byte| if is_plain(byte) { keep(byte) } else { lower(byte) }),
        // As forms have it.
        each(bytes, |byte| match byte {
            b' ' => "+".into(),
            byte if is_plain(byte) && byte != b'~' || byte == b'*' => keep(byte),
            byte => upper(byte),
        }),
        // As the path of a URL may have it.
        each(bytes, |byte| {
            let stays = is_plain(byte) || b"/:@!$&'()*+,;=".contains(&byte);
            if stays { keep(byte) } else { upper(byte) }
        }),
        each(bytes, upper),
        each(bytes, lower),
    ]
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
