//! Values in texts that leave the house.

use super::{name, value};
use crate::redact::Redactor;

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
        "the key is [redacted], twice [redacted].",
    );
    check("hunter2!", "68756e7465723221", "[redacted]");
    check("hunter2~", "68756E746572327E", "[redacted]");
    check("hunter2 ?", "q=hunter2%20%3F&q=hunter2+%3F", "q=[redacted]&q=[redacted]");
    check("hunter2/?", "hunter2%2f%3f or hunter2/%3F", "[redacted] or [redacted]");
    check("hunter2!", "%68%75%6E%74%65%72%32%21", "[redacted]");
    check(
        "say \"hé\"",
        r#"{"a":"say \"hé\"","b":"say \"h\u00e9\""}"#,
        r#"{"a":"[redacted]","b":"[redacted]"}"#,
    );
    check("two\nlines", r#""two\nlines""#, r#""[redacted]""#);
    check("a/b/c/d", r#""a\/b\/c\/d""#, r#""[redacted]""#);
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
                    assert!(redacted.contains("[redacted]"));
                    // At most a few bits at its edges are left.
                    let left = redacted.replace("[redacted]", "").replace('=', "").len();
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
        ("<[redacted]>", &["a/ONE".into(), "b/TWO".into()][..])
    );
    let (text, names) = scan(&secrets, "<abcdefghijklmnop>");
    assert_eq!((text.as_str(), names.len()), ("<[redacted]>", 3));
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
