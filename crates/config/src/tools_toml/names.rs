//! What the servers of a file are called.

use std::collections::{HashMap, HashSet};

use mcp::names::{NAME_MAX, UpstreamName};

use super::server::Draft;
use crate::fault::Faults;

/// A name for each of the servers, in their order.
///
/// Names that are written count first: another server that is added must not take them away.
pub fn assign(drafts: &[Draft], faults: &mut Faults<'_>) -> Vec<UpstreamName> {
    let mut written: HashMap<&UpstreamName, usize> = HashMap::new();
    for (name, at) in drafts.iter().filter_map(|draft| draft.name.as_ref()) {
        if let Some(first) = written.get(name) {
            let line = faults.line_of(*first);
            let problem =
                format!("`name` is `{name}` as on line {line}; give each server a name of its own");
            faults.report(*at, problem);
        } else {
            written.insert(name, *at);
        }
    }
    let mut taken: HashSet<String> = written.keys().map(ToString::to_string).collect();
    // How often each default was wanted, so that many of one kind are numbered in one pass.
    let mut wanted: HashMap<String, usize> = HashMap::new();
    let name = |draft: &Draft| match &draft.name {
        Some((name, _)) => name.clone(),
        None => default_name(draft, &mut taken, &mut wanted),
    };
    drafts.iter().map(name).collect()
}

fn default_name(
    draft: &Draft,
    taken: &mut HashSet<String>,
    wanted: &mut HashMap<String, usize>,
) -> UpstreamName {
    let base = match draft.namespace.as_str() {
        "" => format!("server-{}", draft.position),
        namespace => namespace.to_owned(),
    };
    let count = wanted.entry(base.clone()).or_default();
    loop {
        *count += 1;
        let name = numbered(&base, *count);
        if taken.insert(name.clone()) {
            return name.parse().expect("a namespace, cut to leave room for a number, is a name");
        }
    }
}

fn numbered(base: &str, count: usize) -> String {
    if count == 1 {
        return base.to_owned();
    }
    let number = format!("-{count}");
    let room = NAME_MAX - number.len();
    format!("{}{number}", base.get(..room).unwrap_or(base))
}
