//! One server of a client's file under our names.

use std::borrow::Cow;

use mcp::names::NAME_MAX;
use mcp::text::shorten;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::{Key, Node};
use crate::fault::Faults;

/// What clients call what we have, too.
const RENAMED: [(&str, &str); 10] = [
    ("serverUrl", "url"),
    ("httpUrl", "url"),
    ("uri", "url"),
    ("cmd", "command"),
    ("environment", "env"),
    ("envs", "env"),
    ("cwd", "workingDirectory"),
    ("includeTools", "tools"),
    ("transportType", "type"),
    ("transport", "type"),
];

/// From here on a timeout is in milliseconds: nobody means so many seconds.
const MILLISECONDS_FROM: f64 = 1_000.0;

/// The name of a server: its own, or one like it that can be used.
pub fn name(key: &Key<'_>, taken: &DeTable<'_>, faults: &mut Faults<'_>) -> String {
    let written = key.get_ref().as_ref();
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let usable: String = written.chars().map(|c| if is_allowed(c) { c } else { '_' }).collect();
    let usable = usable.trim_matches('_');
    let usable = usable.get(..NAME_MAX.min(usable.len())).unwrap_or_default();
    let usable = if usable.is_empty() { "server" } else { usable };
    if usable == written && !taken.contains_key(usable) {
        return usable.to_owned();
    }
    let numbered = |number: u32| {
        let number = format!("_{number}");
        format!("{}{number}", &usable[..usable.len().min(NAME_MAX - number.len())])
    };
    let mut names = std::iter::once(usable.to_owned()).chain((2..).map(numbered));
    let name = names.find(|name| !taken.contains_key(name.as_str())).unwrap_or_default();
    if name != written {
        let written = shorten(written);
        faults.warn(key.span().start, format!("`{written}` is served under the name `{name}`"));
    }
    name
}

/// A server as Toolman's JSON has it.
pub fn server<'t>(
    name: &str,
    node: &Node<'t>,
    hidden: &mut Vec<String>,
    faults: &mut Faults<'_>,
) -> Node<'t> {
    let DeValue::Table(written) = node.get_ref() else { return node.clone() };
    let mut server = DeTable::new();
    for (key, node) in written {
        match key.get_ref().as_ref() {
            "disabled" => {
                if let DeValue::Boolean(is_disabled) = node.get_ref() {
                    let enabled = Spanned::new(node.span(), DeValue::Boolean(!is_disabled));
                    put(&mut server, key, "enabled", enabled);
                }
            }
            "excludeTools" | "disabledTools" | "disabled_tools" => {
                hidden.extend(texts(node).map(|tool| format!("{name}:{tool}")));
            }
            "timeout" => put(&mut server, key, "timeout", timeout(node, faults)),
            "command" => command(key, node, &mut server),
            other => {
                let renamed = RENAMED.iter().find(|(theirs, _)| *theirs == other);
                let own = renamed.map_or(other, |(_, own)| *own);
                // What is written under our own name counts.
                if own == other || !written.contains_key(own) {
                    put(&mut server, key, own, node.clone());
                }
            }
        }
    }
    if server.contains_key("url") && server.contains_key("command") {
        faults.warn(node.span().start, "has a command and an address; the command is started");
        server.remove("url");
    }
    transport(&mut server);
    Spanned::new(node.span(), DeValue::Table(server))
}

/// The transport in our words; what is started needs none.
fn transport(server: &mut DeTable<'_>) {
    let Some((key, node)) = server.get_key_value("type") else { return };
    let (key, at) = (key.clone(), node.span());
    let word = match node.get_ref().as_str() {
        Some("streamableHttp" | "streamable-http" | "streamable_http" | "http") => "http",
        Some("remote") => "auto",
        Some("stdio" | "local") => "",
        _ => return,
    };
    server.remove("type");
    if !word.is_empty() {
        let word = Spanned::new(at, DeValue::String(Cow::Borrowed(word)));
        server.insert(key, word);
    }
}

/// A command may be a list with its arguments, or a table.
fn command<'t>(key: &Key<'t>, node: &Node<'t>, server: &mut DeTable<'t>) {
    match node.get_ref() {
        DeValue::Array(parts) => {
            let mut parts = parts.iter();
            if let Some(program) = parts.next() {
                put(server, key, "command", program.clone());
            }
            let mut args = DeArray::new();
            parts.for_each(|part| args.push(part.clone()));
            put(server, key, "args", Spanned::new(node.span(), DeValue::Array(args)));
        }
        DeValue::Table(parts) => {
            for (part, node) in parts {
                let name = part.get_ref().as_ref();
                let name = if name == "path" { "command" } else { name };
                put(server, part, name, node.clone());
            }
        }
        _ => put(server, key, "command", node.clone()),
    }
}

/// Clients count in seconds or in milliseconds.
fn timeout<'t>(node: &Node<'t>, faults: &mut Faults<'_>) -> Node<'t> {
    let number = match node.get_ref() {
        DeValue::Integer(number) => number.as_str().parse::<f64>().ok(),
        DeValue::Float(number) => number.as_str().parse::<f64>().ok(),
        _ => None,
    };
    match number.filter(|number| *number >= MILLISECONDS_FROM) {
        Some(number) => {
            faults.warn(node.span().start, format!("`timeout` {number} is in milliseconds"));
            Spanned::new(node.span(), DeValue::String(Cow::Owned(format!("{number}ms"))))
        }
        None => node.clone(),
    }
}

fn texts<'a>(node: &'a Node<'_>) -> impl Iterator<Item = &'a str> {
    let elements = match node.get_ref() {
        DeValue::Array(elements) => Some(elements.iter()),
        _ => None,
    };
    elements.into_iter().flatten().filter_map(|element| element.get_ref().as_str())
}

fn put<'t>(table: &mut DeTable<'t>, key: &Key<'t>, name: &str, node: Node<'t>) {
    table.insert(Spanned::new(key.span(), Cow::Owned(name.to_owned())), node);
}
