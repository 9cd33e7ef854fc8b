//! JSON as people write it in settings: with comments, and with commas before a closing bracket.

use std::borrow::Cow;

/// The same text as plain JSON: what JSON does not know is blank, so that every place stays where it is.
pub fn plain(text: &str) -> Cow<'_, str> {
    let mut bytes = Cow::Borrowed(text.as_bytes());
    let mut at = 0;
    // The last comma that nothing but blanks and comments follow.
    let mut comma = None;
    while let Some(&byte) = text.as_bytes().get(at) {
        let rest = &text.as_bytes()[at..];
        let length = match byte {
            b'"' => string(rest),
            b'/' if rest.starts_with(b"//") => {
                let length = rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len());
                blank(&mut bytes, at, length);
                at += length;
                continue;
            }
            b'/' if rest.starts_with(b"/*") => {
                let end = rest[2..].windows(2).position(|pair| pair == b"*/");
                let length = end.map_or(rest.len(), |end| end + 4);
                blank(&mut bytes, at, length);
                at += length;
                continue;
            }
            _ => 1,
        };
        match byte {
            b',' => comma = Some(at),
            b'}' | b']' => {
                if let Some(comma) = comma.take() {
                    blank(&mut bytes, comma, 1);
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => comma = None,
        }
        at += length;
    }
    match bytes {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        // Whole comments and single commas were replaced, so it is text still.
        Cow::Owned(bytes) => String::from_utf8(bytes).map_or(Cow::Borrowed(text), Cow::Owned),
    }
}

/// The length of the string that begins here, with its quotes.
fn string(text: &[u8]) -> usize {
    let mut is_escaped = false;
    for (at, byte) in text.iter().enumerate().skip(1) {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// Leaves lines where they are.
fn blank(bytes: &mut Cow<'_, [u8]>, at: usize, length: usize) {
    for byte in &mut bytes.to_mut()[at..at + length] {
        if !matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[track_caller]
    fn check(text: &str, meaning: &str) {
        let found = plain(text);
        assert_eq!(found.len(), text.len(), "every place stays where it is");
        assert_eq!(found.lines().count(), text.lines().count());
        assert_eq!(found.split_whitespace().collect::<String>(), meaning);
    }

    #[test]
    fn comments_and_last_commas_become_blanks() {
        check("{\"a\": 1, // x\n}", "{\"a\":1}");
        check("{/* ä */\"a\": [1, 2, /* 3 */ ],}", "{\"a\":[1,2]}");
        check("// x\n{}\n// y", "{}");
        check("{ /* open", "{");
        check("{,}", "{}");
    }

    #[test]
    fn all_else_stays_as_it_is() {
        for text in
            ["{\"a\": 1}", "{\"a\": \"// \\\" /* ,}\"}", "[1,, 2]", "{ \"open", "/", "", "5 / 2"]
        {
            assert_eq!(plain(text), text);
        }
    }
}
