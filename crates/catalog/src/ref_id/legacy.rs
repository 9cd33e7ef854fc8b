//! Ref ids of hypertool: a hash over some members of a definition, as ECMAScript writes them.
//!
//! The description is not among them, so that such an id says less than one of ours. It is over the name, the
//! server, both schemas and the annotations, in this order; what a definition lacks is left out.

use aws_lc_rs::digest::{SHA256, digest};
use mcp::json::{canonical, elements, entries, quote};
use mcp::text::hexadecimal;

/// Members that its library puts first in a schema; older versions knew fewer, or changed nothing.
const SCHEMAS: [&[&str]; 3] = [&[], &["type", "properties"], &["type", "properties", "required"]];
/// The same in annotations.
const ANNOTATIONS: [&[&str]; 2] =
    [&[], &["title", "readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"]];

/// All hashes by which hypertool, in any version, would know a tool that its server defines so.
pub fn hashes(name: &str, server: &str, definition: &str) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    for input in SCHEMAS {
        for output in SCHEMAS {
            for annotations in ANNOTATIONS {
                texts.extend(hashed(name, server, definition, [input, output, annotations]));
            }
        }
    }
    // Most definitions are written in that order already.
    texts.sort_unstable();
    texts.dedup();
    texts.iter().map(|text| hexadecimal(digest(&SHA256, text.as_bytes()).as_ref())).collect()
}

/// The digits of a ref id that may be one of hypertool, with or without a prefix.
pub fn hash_of(ref_id: &str) -> Option<&str> {
    let hash = ref_id.strip_prefix("sha256:").unwrap_or(ref_id);
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    (hash.len() == 64 && hash.bytes().all(is_digit)).then_some(hash)
}

fn hashed(name: &str, server: &str, definition: &str, first: [&[&str]; 3]) -> Option<String> {
    let members = entries(definition).ok()?;
    let mut text = format!("{{\"name\":{},\"serverName\":{}", quote(name), quote(server));
    for (key, first) in ["inputSchema", "outputSchema", "annotations"].into_iter().zip(first) {
        if let Some((_, value)) = members.iter().find(|(name, _)| name == key) {
            text += &format!(",\"{key}\":{}", write(value, first)?);
        }
    }
    Some(text + "}")
}

/// A value as ECMAScript writes it, with these members of it first; `None` if that is not clear.
fn write(text: &str, first: &[&str]) -> Option<String> {
    match text.as_bytes().first()? {
        b'{' => {
            let mut members = entries(text).ok()?;
            let place = |name: &str| first.iter().position(|known| *known == name);
            // Names that are indices come first, then the others in the order in which they were written.
            members.sort_by_key(|(name, _)| (index(name), place(name).unwrap_or(first.len())));
            let written = members.iter().map(|(name, value)| {
                let is_twice = members.iter().filter(|(other, _)| other == name).count() > 1;
                let value = if is_twice { None } else { write(value, &[]) };
                Some(format!("{}:{}", quote(name), value?))
            });
            let written: Option<Vec<_>> = written.collect();
            Some(format!("{{{}}}", written?.join(",")))
        }
        b'[' => {
            let written: Option<Vec<_>> =
                elements(text).ok()?.into_iter().map(|value| write(value, &[])).collect();
            Some(format!("[{}]", written?.join(",")))
        }
        _ => canonical::canonical(text).ok(),
    }
}

/// Where a member stands because of its name: an index by its number, anything else behind.
fn index(name: &str) -> u32 {
    let number = name.parse::<u32>().ok().filter(|number| number.to_string() == name);
    number.unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{hash_of, hashed, hashes, write};

    #[test]
    fn values_are_written_as_ecmascript_does() {
        // `JSON.stringify(JSON.parse(text))`
        for (text, written) in [
            (
                r#"{ "b" : [1.0, 1e21, -0, "\u00e9\u0007"], "a" : null }"#,
                r#"{"b":[1,1e+21,0,"é\u0007"],"a":null}"#,
            ),
            (r#"{"b":1,"10":2,"2":3,"01":4}"#, r#"{"2":3,"10":2,"b":1,"01":4}"#),
        ] {
            assert_eq!(write(text, &[]).unwrap(), written);
        }
        assert_eq!(write(r#"{"a":1,"a":2}"#, &[]), None);
        assert_eq!(
            write(r#"{"x":1,"t":{"t":1},"a":2}"#, &["a", "t"]).unwrap(),
            r#"{"a":2,"t":{"t":1},"x":1}"#
        );
    }

    #[test]
    fn hash_is_over_some_members_in_a_fixed_order() {
        let definition = r#"{"annotations":{"readOnlyHint":true},"description":"x","name":"log",
            "inputSchema":{"properties":{},"type":"object"}}"#;
        let text = hashed("log", "git", definition, [&["type", "properties"], &[], &[]]).unwrap();
        let expected = r#"{"name":"log","serverName":"git","inputSchema":{"type":"object","properties":{}},"annotations":{"readOnlyHint":true}}"#;
        assert_eq!(text, expected);
        // As it is written, or with what is known first: two texts, however many ways lead to them.
        assert_eq!(hashes("log", "git", definition).len(), 2);
    }

    #[test]
    fn only_a_hash_is_looked_at() {
        let hash = "0123456789abcdef".repeat(4);
        assert_eq!(hash_of(&hash), Some(hash.as_str()));
        assert_eq!(hash_of(&format!("sha256:{hash}")), Some(hash.as_str()));
        assert_eq!(hash_of("abc"), None);
        assert_eq!(hash_of(&hash.to_uppercase()), None);
    }
}
