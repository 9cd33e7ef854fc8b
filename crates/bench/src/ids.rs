//! The id of a message, found by looking at its bytes alone.

use std::ops::Range;

use memchr::memchr2;

/// Where the id of a message is: the value of the member `id` of the outermost object.
///
/// It expects JSON and does not check it. It looks no further than the id.
pub fn find(frame: &[u8]) -> Option<Range<usize>> {
    let mut depth = 0_u32;
    let mut at = 0;
    while at < frame.len() {
        match frame[at] {
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.checked_sub(1)?,
            b'"' => {
                let end = end_of_string(frame, at)?;
                if depth == 1 && &frame[at..end] == b"\"id\"" {
                    let colon = skip_space(frame, end);
                    if frame.get(colon) == Some(&b':') {
                        return value(frame, skip_space(frame, colon + 1));
                    }
                }
                at = end;
                continue;
            }
            _ => {}
        }
        at += 1;
    }
    None
}

/// The message with another id.
pub fn replace(frame: &[u8], place: Range<usize>, id: &[u8]) -> Vec<u8> {
    let mut replaced = Vec::with_capacity(frame.len() + id.len());
    replaced.extend_from_slice(&frame[..place.start]);
    replaced.extend_from_slice(id);
    replaced.extend_from_slice(&frame[place.end..]);
    replaced
}

/// The place behind the string that begins at `start`.
fn end_of_string(frame: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        let rest = frame.get(at..)?;
        let found = at + memchr2(b'"', b'\\', rest)?;
        if frame[found] == b'"' {
            return Some(found + 1);
        }
        at = found + 2;
    }
}

fn skip_space(frame: &[u8], from: usize) -> usize {
    let rest = frame.get(from..).unwrap_or_default();
    from + rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count()
}

fn value(frame: &[u8], start: usize) -> Option<Range<usize>> {
    if frame.get(start)? == &b'"' {
        return Some(start..end_of_string(frame, start)?);
    }
    let is_part = |byte: &&u8| !matches!(byte, b',' | b'}' | b' ' | b'\t' | b'\r' | b'\n');
    let length = frame[start..].iter().take_while(is_part).count();
    Some(start..start + length)
}

#[cfg(test)]
mod tests {
    use super::{find, replace};

    #[track_caller]
    fn check(frame: &str, id: Option<&str>) {
        assert_eq!(find(frame.as_bytes()).map(|place| &frame[place]), id, "{frame}");
    }

    #[test]
    fn id_is_found_wherever_it_stands_in_the_outermost_object() {
        check(r#"{"jsonrpc":"2.0","id":7,"result":{}}"#, Some("7"));
        check(r#"{"result":{"id":1},"id" : "a\"b" }"#, Some(r#""a\"b""#));
        check(r#"{"result":[{"id":1}],"id":9}"#, Some("9"));
        check(r#"{"id":null}"#, Some("null"));
    }

    #[test]
    fn what_only_looks_like_an_id_is_none() {
        check(r#"{"method":"id","params":{"id":1}}"#, None);
        check(r#"{"text":"\"id\":5"}"#, None);
        check(r#"{"id"#, None);
        check("", None);
    }

    #[test]
    fn only_the_id_is_exchanged() {
        let frame = br#"{"id":"abc","result":{"id":1}}"#;
        let replaced = replace(frame, find(frame).unwrap(), b"42");
        assert_eq!(replaced, br#"{"id":42,"result":{"id":1}}"#);
    }
}
