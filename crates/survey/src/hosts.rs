//! Hosts that sources call: those of addresses that stand as texts in the code.

use std::collections::BTreeSet;

use crate::source::Parsed;

/// Hosts that are named and not called: schemas, examples, this machine.
const NAMED_ONLY: [&str; 12] = [
    "localhost",
    "127.0.0.1",
    "0.0.0.0",
    "[::1]",
    "json-schema.org",
    "www.w3.org",
    "schema.org",
    "example.com",
    "www.example.com",
    "spdx.org",
    "modelcontextprotocol.io",
    "static.modelcontextprotocol.io",
];

/// Adds the hosts of a file.
pub fn collect(parsed: &Parsed, hosts: &mut BTreeSet<String>) {
    parsed.each(|node, above| {
        let is_text = matches!(
            node.kind(),
            "string_fragment"
                | "string_content"
                | "interpreted_string_literal_content"
                | "raw_string_literal_content"
        );
        if is_text {
            // A text that stands alone is a comment of Python.
            let outer = above.len().checked_sub(2).and_then(|at| above.get(at));
            let is_comment = outer.is_some_and(|outer| outer.kind() == "expression_statement");
            if !is_comment {
                hosts.extend(host(parsed.word(node)));
            }
        }
    });
}

/// The host of a text that is an address from its beginning.
pub fn host(text: &str) -> Option<String> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let rest = rest.or_else(|| text.strip_prefix("wss://"))?;
    let end = rest.find(['/', '?', '#', ' ', '\n', '$', '{', '%']).unwrap_or(rest.len());
    let authority = &rest[..end];
    let authority = authority.rsplit('@').next().unwrap_or(authority);
    let name = authority.split(':').next().unwrap_or(authority).to_lowercase();
    let is_name = name.contains('.')
        && name.split('.').all(|part| !part.is_empty())
        && name.chars().all(|letter| letter.is_ascii_alphanumeric() || ".-".contains(letter));
    (is_name && !NAMED_ONLY.contains(&name.as_str())).then_some(name)
}
