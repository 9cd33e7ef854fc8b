//! Files of MCP clients: `mcpServers` and its relatives, with what each client keeps beside it.
//!
//! They are translated into Toolman's JSON before they are read, each value with its place. What means something else
//! there is mapped, what means nothing here is left out, and both are told.

mod inputs;
mod servers;

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use catalog::error::quoted;
use mcp::text::shorten;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::Surroundings;
use crate::fault::Faults;

type Key<'t> = Spanned<DeString<'t>>;
type Node<'t> = Spanned<DeValue<'t>>;

/// Where clients keep their servers.
const KEYS: [&str; 5] = ["mcpServers", "servers", "context_servers", "amp.mcpServers", "mcp"];

/// Folders of a project in which clients keep such a file.
const FOLDERS: [&str; 8] =
    [".vscode", ".cursor", ".gemini", ".roo", ".kiro", ".zed", ".windsurf", ".amazonq"];

/// A file of a client under our names.
pub struct Translated<'t> {
    pub table: DeTable<'t>,
    /// Tools that are not to be seen, as `server:tool`.
    pub hidden: Vec<String>,
}

/// Whether a table is such a file.
pub fn is_meant(table: &DeTable<'_>, file: &Path) -> bool {
    let has = |key: &str| matches!(value(table, key), Some(DeValue::Table(_)));
    let is_named_so = file.file_name().is_some_and(|name| name == "mcp.json");
    ["mcpServers", "context_servers", "amp.mcpServers", "mcp"].into_iter().any(has)
        || has("servers") && (table.contains_key("inputs") || is_named_so)
        || matches!(value(table, "projects"), Some(DeValue::Table(projects))
            if projects.values().any(|project| table_of(project, "mcpServers").is_some()))
}

/// Whether a text is likely to be one: what it has beside its servers is nobody's here.
pub fn is_likely(text: &str) -> bool {
    ["\"mcpServers\"", "\"context_servers\"", "\"amp.mcpServers\"", "\"mcp\""]
        .into_iter()
        .any(|key| text.contains(key))
}

/// The folder in which its servers run: that of the project, where the file lies in one of the client's own.
pub fn folder(folder: &Path) -> PathBuf {
    let name = folder.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let project = folder.parent().filter(|_| FOLDERS.contains(&name));
    project.unwrap_or(folder).to_owned()
}

/// The same table with all servers under `servers`.
pub fn translate<'t>(
    table: &DeTable<'t>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Translated<'t> {
    let inputs = inputs::Inputs::of(table, surroundings, faults);
    let mut found: Vec<(Key<'t>, Node<'t>)> = Vec::new();
    for key in KEYS {
        if let Some(DeValue::Table(servers)) = value(table, key) {
            add(&mut found, servers);
        }
    }
    projects(table, surroundings, &mut found, faults);
    let mut servers = DeTable::new();
    let mut hidden = Vec::new();
    for (key, node) in found {
        let name = servers::name(&key, &servers, faults);
        let node = servers::server(&name, &inputs.fill(&node), &mut hidden, faults);
        servers.insert(Spanned::new(key.span(), Cow::Owned(name)), node);
    }
    let mut translated = DeTable::new();
    let is_taken = |key: &str| KEYS.contains(&key) || matches!(key, "inputs" | "projects");
    for (key, node) in table.iter().filter(|(key, _)| !is_taken(key.get_ref())) {
        translated.insert(key.clone(), node.clone());
    }
    let keys = KEYS.iter().filter_map(|key| table.get_key_value(*key));
    let place = keys.map(|(key, node)| (key.span(), node.span())).next().unwrap_or((0..0, 0..0));
    let key = Spanned::new(place.0, Cow::Borrowed("servers"));
    translated.insert(key, Spanned::new(place.1, DeValue::Table(servers)));
    Translated { table: translated, hidden }
}

/// What a client keeps for single folders counts for the one in which we are, and before what it has for all.
fn projects<'t>(
    table: &DeTable<'t>,
    surroundings: &Surroundings<'_>,
    found: &mut Vec<(Key<'t>, Node<'t>)>,
    faults: &mut Faults<'_>,
) {
    let Some((key, node)) = table.get_key_value("projects") else { return };
    let DeValue::Table(projects) = node.get_ref() else { return };
    let here = (surroundings.environment)("PWD").map(PathBuf::from);
    let mut others = Vec::new();
    for (path, project) in projects {
        let Some(servers) = table_of(project, "mcpServers").filter(|table| !table.is_empty())
        else {
            continue;
        };
        let folder = Path::new(path.get_ref().as_ref());
        if folder == surroundings.folder || here.as_deref() == Some(folder) {
            let names: Vec<_> = servers.keys().map(|key| key.get_ref().clone()).collect();
            found.retain(|(key, _)| !names.contains(key.get_ref()));
            add(found, servers);
        } else {
            others.push(shorten(path.get_ref()));
        }
    }
    if !others.is_empty() {
        let words = format!("servers of the projects {} are left out", quoted(&others));
        faults.warn(key.span().start, words);
    }
}

/// In the order of the text.
fn add<'t>(found: &mut Vec<(Key<'t>, Node<'t>)>, servers: &DeTable<'t>) {
    let mut entries: Vec<_> = servers.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    found.extend(entries.into_iter().map(|(key, node)| (key.clone(), node.clone())));
}

fn value<'a, 't>(table: &'a DeTable<'t>, key: &str) -> Option<&'a DeValue<'t>> {
    table.get(key).map(Spanned::get_ref)
}

fn table_of<'a, 't>(node: &'a Node<'t>, key: &str) -> Option<&'a DeTable<'t>> {
    match node.get_ref() {
        DeValue::Table(table) => match value(table, key) {
            Some(DeValue::Table(table)) => Some(table),
            _ => None,
        },
        _ => None,
    }
}

#[cfg(test)]
mod tests;
