//! Environment variables that sources read, and which of them look like secrets.

use std::collections::BTreeSet;

use tree_sitter::Node;

use crate::source::{Grammar, Parsed, children, field};

/// Parts of names that secrets have.
const SECRET_WORDS: [&str; 15] = [
    "TOKEN",
    "KEY",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASS",
    "PAT",
    "CREDENTIAL",
    "CREDENTIALS",
    "APIKEY",
    "DSN",
    "COOKIE",
    "PASSPHRASE",
    "BEARER",
    "WEBHOOK",
];
/// Parts that say that it is something about a secret instead.
const PLAIN_WORDS: [&str; 9] =
    ["PATH", "FILE", "DIR", "TTL", "COUNT", "LIMIT", "PUBLIC", "ENABLE", "URI"];

/// Whether a variable's name is that of a secret.
pub fn looks_secret(name: &str) -> bool {
    let words: Vec<&str> = name.split('_').collect();
    words.iter().any(|word| SECRET_WORDS.contains(word))
        && !words.iter().any(|word| PLAIN_WORDS.contains(word))
}

/// Adds the variables that a file reads.
pub fn collect(grammar: Grammar, parsed: &Parsed, names: &mut BTreeSet<String>) {
    parsed.each(|node, _| {
        let found = match grammar {
            Grammar::TypeScript => javascript(parsed, node),
            Grammar::Python => python(parsed, node),
            Grammar::Go => go(parsed, node),
        };
        names.extend(found.into_iter().filter(|name| is_name(name)).map(str::to_owned));
    });
}

/// Whether a text is a name as variables have it.
pub fn is_name(name: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_';
    name.starts_with(|c: char| c.is_ascii_uppercase() || c == '_')
        && name.len() <= 128
        && name.bytes().all(allowed)
}

/// `process.env.NAME`, `process.env["NAME"]`, `const { NAME } = process.env`.
fn javascript<'t>(parsed: &'t Parsed, node: Node<'t>) -> Vec<&'t str> {
    match node.kind() {
        "member_expression" | "subscript_expression" => {
            let is_env =
                field(node, "object").is_some_and(|object| parsed.word(object) == "process.env");
            let key = field(node, "property").or_else(|| field(node, "index"));
            key.filter(|_| is_env)
                .map(|key| parsed.word(key).trim_matches(['"', '\'']))
                .into_iter()
                .collect()
        }
        "variable_declarator" => {
            let is_env =
                field(node, "value").is_some_and(|value| parsed.word(value) == "process.env");
            let pattern =
                field(node, "name").filter(|name| is_env && name.kind() == "object_pattern");
            let parts = pattern.map(children).unwrap_or_default().into_iter();
            parts
                .map(|part| field(part, "key").or_else(|| field(part, "left")).unwrap_or(part))
                .map(|key| parsed.word(key))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// `os.environ["NAME"]`, `os.environ.get("NAME")`, `os.getenv("NAME")`.
fn python<'t>(parsed: &'t Parsed, node: Node<'t>) -> Vec<&'t str> {
    let argument = match node.kind() {
        "subscript" if is_environ(parsed, field(node, "value")) => field(node, "subscript"),
        "call" => {
            let function = field(node, "function");
            let is_get = function.is_some_and(|function| {
                let word = parsed.word(function);
                word == "getenv"
                    || word == "os.getenv"
                    || is_environ(parsed, field(function, "object"))
            });
            let arguments = field(node, "arguments").filter(|_| is_get);
            arguments.and_then(|arguments| children(arguments).into_iter().next())
        }
        _ => None,
    };
    let text = argument.filter(|argument| argument.kind() == "string");
    text.map(|text| parsed.word(text).trim_matches(['"', '\''])).into_iter().collect()
}

fn is_environ(parsed: &Parsed, node: Option<Node>) -> bool {
    node.is_some_and(|node| matches!(parsed.word(node), "os.environ" | "environ"))
}

/// `os.Getenv("NAME")`, `os.LookupEnv("NAME")`.
fn go<'t>(parsed: &'t Parsed, node: Node<'t>) -> Vec<&'t str> {
    if node.kind() != "call_expression" {
        return Vec::new();
    }
    let is_get = field(node, "function")
        .is_some_and(|function| matches!(parsed.word(function), "os.Getenv" | "os.LookupEnv"));
    let arguments = field(node, "arguments").filter(|_| is_get).map(children).unwrap_or_default();
    arguments.first().map(|name| parsed.word(*name).trim_matches('"')).into_iter().collect()
}
