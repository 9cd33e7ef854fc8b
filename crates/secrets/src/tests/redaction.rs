//! Values in texts that leave the house.

use std::sync::Arc;

use super::{name, value};
use crate::redact::{Piece, Redactor, Stream, caveat};

/// The text without the values, and whose they were; the same text if there are none.
fn scan(secrets: &[(&str, &str)], text: &str) -> (String, Vec<String>) {
    let secrets: Vec<_> = secrets.iter().map(|(path, text)| (name(path), value(text))).collect();
    let redactor = Redactor::new(secrets.iter().map(|(name, value)| (name, value)));
    match redactor.scan(text.as_bytes()) {
        None => (text.to_owned(), Vec::new()),
        Some(redaction) => (
            String::from_utf8(redaction.text).unwrap(),
            redaction.names.iter().map(crate::names::Name::path).collect(),
        ),
    }
}

#[track_caller]
fn check(secret: &str, text: &str, expected: &str) {
    let (redacted, names) = scan(&[("global/TOKEN", secret)], text);
    assert_eq!(redacted, expected);
    assert_eq!(names.len(), usize::from(text != expected));
}

#[test]
fn value_is_found_in_every_spelling() {
    check(
        "hunter2!",
        "the key is hunter2!, twice hunter2!.",
        "the key is [redacted:TOKEN], twice [redacted:TOKEN].",
    );
    check("hunter2!", "68756e7465723221", "[redacted:TOKEN]");
    check("hunter2~", "68756E746572327E", "[redacted:TOKEN]");
    check("hunter2 ?", "q=hunter2%20%3F&q=hunter2+%3F", "q=[redacted:TOKEN]&q=[redacted:TOKEN]");
    check("hunter2/?", "hunter2%2f%3f or hunter2/%3F", "[redacted:TOKEN] or [redacted:TOKEN]");
    check("hunter2!", "%68%75%6E%74%65%72%32%21", "[redacted:TOKEN]");
    check(
        "say \"hé\"",
        r#"{"a":"say \"hé\"","b":"say \"h\u00e9\""}"#,
        r#"{"a":"[redacted:TOKEN]","b":"[redacted:TOKEN]"}"#,
    );
    check("two\nlines", r#""two\nlines""#, r#""[redacted:TOKEN]""#);
    check("a/b/c/d", r#""a\/b\/c\/d""#, r#""[redacted:TOKEN]""#);
}

#[test]
fn value_is_found_in_base64_wherever_it_begins_and_ends() {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    for secret in ["hunter", "hunter2", "hunter22", "hu\u{ff}\u{3ff}nter?>"] {
        for before in ["", "a", "ab", "abc"] {
            for after in ["", "x", "xy", "xyz"] {
                let text = format!("{before}{secret}{after}");
                for encoded in [STANDARD.encode(&text), URL_SAFE.encode(&text)] {
                    let (redacted, names) = scan(&[("global/TOKEN", secret)], &encoded);
                    assert_eq!(names, ["global/TOKEN"], "{text}: {redacted}");
                    assert!(redacted.contains("[redacted:TOKEN]"));
                    // At most a few bits at its edges are left.
                    let left = redacted.replace("[redacted:TOKEN]", "").replace('=', "").len();
                    assert!(left * 6 <= (before.len() + after.len()) * 8 + 20, "{redacted}");
                }
            }
        }
    }
}

#[test]
fn of_two_values_that_share_bytes_neither_is_left_in_part() {
    let secrets = [("a/ONE", "abcdefgh"), ("b/TWO", "fghijklm"), ("c/THREE", "abcdefghijklmnop")];
    let (text, names) = scan(&secrets, "<abcdefghijklm>");
    assert_eq!(
        (text.as_str(), &names[..]),
        ("<[redacted:ONE]>", &["a/ONE".into(), "b/TWO".into()][..])
    );
    let (text, names) = scan(&secrets, "<abcdefghijklmnop>");
    assert_eq!((text.as_str(), names.len()), ("<[redacted:THREE]>", 3));
}

#[test]
fn short_values_and_texts_without_any_are_left_alone() {
    check("12345", "12345", "12345");
    check("123456", "12345 6", "12345 6");
    let none = Redactor::new(std::iter::empty());
    assert!(none.scan(b"anything").is_none());
}

#[test]
fn five_hundred_values_are_found_in_one_go() {
    let secrets: Vec<_> = (0..500)
        .map(|number| {
            (
                name(&format!("global/CANARY_{number}")),
                value(&format!("canary-{number:04}-{}", number * 7919)),
            )
        })
        .collect();
    let redactor = Redactor::new(secrets.iter().map(|(name, value)| (name, value)));
    for (name, value) in &secrets {
        let text = format!("{{\"result\":\"{}\"}}", value.expose());
        let redaction = redactor.scan(text.as_bytes()).unwrap();
        assert!(redaction.names.contains(name));
        assert!(!String::from_utf8(redaction.text).unwrap().contains(value.expose()));
    }
    let clean = "canary-without-number ".repeat(50_000);
    assert!(redactor.scan(clean.as_bytes()).is_none());
}

/// A text of JSON without the values; `None` if it can't be told apart from them.
fn scan_json(secret: &str, text: &str) -> Option<String> {
    let (name, value) = (name("global/TOKEN"), value(secret));
    let redactor = Redactor::new(std::iter::once((&name, &value)));
    serde_json::from_str::<serde_json::Value>(text).unwrap();
    match redactor.scan_json(text.as_bytes()) {
        None => Some(text.to_owned()),
        Some(Err(_)) => None,
        Some(Ok(redaction)) => {
            serde_json::from_slice::<serde_json::Value>(&redaction.text).unwrap();
            Some(String::from_utf8(redaction.text).unwrap())
        }
    }
}

#[track_caller]
fn check_json(secret: &str, text: &str, expected: &str) {
    assert_eq!(scan_json(secret, text).as_deref(), Some(expected));
}

#[test]
fn json_without_the_values_is_still_json() {
    check_json(
        "hunter2",
        r#"{"hunter2":["hunter2"]}"#,
        r#"{"[redacted:TOKEN]":["[redacted:TOKEN]"]}"#,
    );
    check_json("1234567", r#"{"a":1234567,"b":1}"#, r#"{"a":"[redacted:TOKEN]","b":1}"#);
    check_json("234567", r"[-1.2345678e9,2]", r#"["[redacted:TOKEN]",2]"#);
    // A value that begins or ends within an escape.
    check_json("nobody knows", r#""a\nobody knows""#, r#""a[redacted:TOKEN]""#);
    check_json("00e9 and more", r#""a\u00e9 and more""#, r#""a[redacted:TOKEN]""#);
    check_json("tail of it\\", r#""tail of it\\\n""#, r#""[redacted:TOKEN]\n""#);
    // JSON within a string of JSON.
    let inner = serde_json::Value::from("a \"quoted\" é\nvalue").to_string();
    let outer = serde_json::json!({"text": inner}).to_string();
    check_json("a \"quoted\" é\nvalue", &outer, r#"{"text":"\"[redacted:TOKEN]\""}"#);
    assert_eq!(
        scan_json(r#"{"type":"#, r#"[{"type":"text"}]"#),
        None,
        "structure can't be cut out"
    );
    assert_eq!(scan_json(r#"one","two"#, r#"["one","two"]"#), None);
}

#[test]
fn lines_of_a_private_key_are_found_one_by_one() {
    let line = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASCBKcwggSjAgEA";
    let key = format!("-----BEGIN PRIVATE KEY-----\n{line}\nAAAA\n-----END PRIVATE KEY-----\n");
    check_json(&key, &format!(r#"["{line}","AAAA"]"#), r#"["[redacted:TOKEN]","AAAA"]"#);
    let account = serde_json::json!({"type": "service", "private_key": key}).to_string();
    check_json(&account, &format!(r#"["{line}"]"#), r#"["[redacted:TOKEN]"]"#);
    check_json(&account, r#"[{"type": "service"}]"#, r#"[{"type": "service"}]"#);
}

#[test]
fn long_values_are_found_in_parts_and_have_one_mark() {
    let long: String = (0..700).map(|number: u32| number.to_string() + "é").collect();
    check(&long, &format!("<{long}>"), "<[redacted:TOKEN]>");
    let hexadecimal: String = long
        .bytes()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)]))
        .collect();
    check(&long, &format!("<{hexadecimal}>"), "<[redacted:TOKEN]>");
    assert_eq!(caveat(&value(&long)), None);
    let longer = "0123456789".repeat(500);
    assert!(caveat(&value(&longer)).unwrap().contains("only those that come first"));
    assert!(caveat(&value("12345")).unwrap().contains("fewer than 6 bytes"));
}

/// What passes when a text comes in these pieces, and how often a value was found.
fn pass(redactor: &Arc<Redactor>, pieces: &[&[u8]]) -> (String, usize) {
    let mut stream = Stream::new(Arc::clone(redactor));
    let (mut passed, mut found) = (Vec::new(), 0);
    for piece in pieces {
        match stream.push(piece).unwrap() {
            Piece::AsIs(length) => passed.extend_from_slice(&piece[..length]),
            Piece::Instead { text, names } => {
                passed.extend_from_slice(&text);
                found += names.len();
            }
        }
    }
    let (text, names) = stream.finish().unwrap();
    passed.extend_from_slice(&text);
    (String::from_utf8(passed).unwrap(), found + names.len())
}

#[test]
fn value_that_lies_across_pieces_is_found_wherever_they_are_cut() {
    let secrets = [("a/ONE", "hunter2é\n"), ("b/TWO", "é\nand more"), ("c/THREE", "7654321")];
    let secrets = secrets.map(|(path, text)| (name(path), value(text)));
    let redactor = Arc::new(Redactor::new(secrets.iter().map(|(name, value)| (name, value))));
    let text = r#"{"a":"x hunter2\u00e9\nand more hunter2é\n","b":-7654321,"c":[7654321,765432],"d":"\\hunter"}"#;
    let expected = r#"{"a":"x [redacted:ONE] [redacted:ONE]","b":"[redacted:THREE]","c":["[redacted:THREE]",765432],"d":"\\hunter"}"#;
    let bytes = text.as_bytes();
    let whole = redactor.scan_json(bytes).unwrap().unwrap();
    assert_eq!(String::from_utf8(whole.text).unwrap(), expected);
    for first in 0..=bytes.len() {
        for second in first..=bytes.len() {
            let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
            let (passed, found) = pass(&redactor, &pieces);
            assert_eq!(passed, expected, "{first} {second}");
            assert!(found >= 3, "{found}");
        }
    }
    let single: Vec<&[u8]> = bytes.chunks(1).collect();
    assert_eq!(pass(&redactor, &single).0, expected);
    let mut stream = Stream::new(redactor);
    assert_eq!(stream.push(br#"{"a":"nothing to see"}"#), Ok(Piece::AsIs(22)));
}

#[test]
fn never_more_is_held_back_than_the_longest_spelling() {
    let (name, value) = (name("global/TOKEN"), value("aaaaaaaa"));
    let redactor = Arc::new(Redactor::new(std::iter::once((&name, &value))));
    for start in ["\"", ""] {
        for filler in ["a", " ", "1", "%", "\\u0061", "[", "é"] {
            let mut stream = Stream::new(Arc::clone(&redactor));
            stream.push(start.as_bytes()).unwrap();
            for _ in 0..50 {
                stream.push(filler.repeat(4096).as_bytes()).unwrap();
            }
            let (rest, _) = stream.finish().unwrap();
            assert!(rest.len() < 2048, "{start}{filler}: {}", rest.len());
        }
    }
}
