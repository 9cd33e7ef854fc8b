//! Manifests of packages: what they depend on, and which framework that is.

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use serde_json::Value;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// Dependencies by name, with what the manifest says of the version.
pub type Dependencies = BTreeMap<String, String>;

/// Whether a file is a manifest by its name.
pub fn is_manifest(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let names = [
        "package.json",
        "pyproject.toml",
        "setup.cfg",
        "go.mod",
        "Cargo.toml",
        "METADATA",
        "PKG-INFO",
    ];
    names.contains(&name) || is_requirements(name)
}

fn is_requirements(name: &str) -> bool {
    name.starts_with("requirements") && crate::path::extension(name) == "txt"
}

/// Reads the dependencies of a manifest; one that can't be read has none.
pub fn dependencies(path: &str, text: &str) -> Dependencies {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name {
        "package.json" => package_json(text),
        "pyproject.toml" => pyproject(text),
        "setup.cfg" => setup_cfg(text),
        "go.mod" => go_mod(text),
        "Cargo.toml" => cargo(text),
        "METADATA" | "PKG-INFO" => metadata(text),
        _ => text.lines().filter_map(requirement).collect(),
    }
}

fn package_json(text: &str) -> Dependencies {
    let manifest: Value = serde_json::from_str(text).unwrap_or_default();
    let tables = ["dependencies", "peerDependencies", "optionalDependencies"];
    let all = tables.iter().filter_map(|table| manifest[*table].as_object()).flatten();
    all.map(|(name, version)| (name.clone(), version.as_str().unwrap_or_default().to_owned()))
        .collect()
}

fn pyproject(text: &str) -> Dependencies {
    let Ok(manifest) = DeTable::parse(text) else { return Dependencies::new() };
    let manifest = manifest.get_ref();
    let listed = inner(manifest, &["project", "dependencies"]).and_then(DeValue::as_array);
    let lines = listed.into_iter().flat_map(|list| list.iter());
    let mut found: Dependencies =
        lines.filter_map(|line| requirement(line.get_ref().as_str()?)).collect();
    let poetry = inner(manifest, &["tool", "poetry", "dependencies"]);
    found.extend(versions(poetry).filter(|(name, _)| name != "python"));
    found
}

/// The value at a path of keys.
fn inner<'a>(table: &'a DeTable<'a>, keys: &[&str]) -> Option<&'a DeValue<'a>> {
    let (first, rest) = keys.split_first()?;
    let value = table.get(*first).map(Spanned::get_ref)?;
    if rest.is_empty() { Some(value) } else { inner(value.as_table()?, rest) }
}

/// Names and versions of a table of dependencies.
fn versions<'a>(table: Option<&'a DeValue<'a>>) -> impl Iterator<Item = (String, String)> + 'a {
    let table = table.and_then(DeValue::as_table);
    table.into_iter().flat_map(|table| table.iter()).map(|(name, version)| {
        let version = version.get_ref();
        let told = version.as_table().and_then(|table| inner(table, &["version"]));
        let version = version.as_str().or_else(|| told.and_then(DeValue::as_str));
        (name.get_ref().to_string(), version.unwrap_or_default().to_owned())
    })
}

fn setup_cfg(text: &str) -> Dependencies {
    let mut is_inside = false;
    let mut found = Dependencies::new();
    for line in text.lines() {
        if let Some(rest) = line.trim().strip_prefix("install_requires") {
            is_inside = true;
            found.extend(requirement(rest.trim_start_matches([' ', '='])));
        } else if is_inside && line.starts_with([' ', '\t']) {
            found.extend(requirement(line));
        } else if !line.trim().is_empty() {
            is_inside = false;
        }
    }
    found
}

fn go_mod(text: &str) -> Dependencies {
    let mut is_inside = false;
    let mut found = Dependencies::new();
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["require", "("] => is_inside = true,
            [")"] => is_inside = false,
            ["require", name, version] => drop(found.insert(name.to_owned(), version.to_owned())),
            [name, version] if is_inside => drop(found.insert(name.to_owned(), version.to_owned())),
            _ => {}
        }
    }
    found
}

fn cargo(text: &str) -> Dependencies {
    let Ok(manifest) = DeTable::parse(text) else { return Dependencies::new() };
    let manifest = manifest.get_ref();
    let shared = inner(manifest, &["workspace", "dependencies"]);
    versions(shared).chain(versions(inner(manifest, &["dependencies"]))).collect()
}

/// What a built package of Python says of itself.
fn metadata(text: &str) -> Dependencies {
    let head = text.split("\n\n").next().unwrap_or_default();
    let lines = head.lines().filter_map(|line| line.strip_prefix("Requires-Dist:"));
    lines.filter(|line| !line.contains("extra ==")).filter_map(requirement).collect()
}

/// One requirement of Python: its name, and what follows it.
fn requirement(line: &str) -> Option<(String, String)> {
    let line = line.split(" #").next().unwrap_or_default().trim();
    if line.is_empty() || line.starts_with(['#', '-']) {
        return None;
    }
    let end = line
        .find(|c: char| !(c.is_ascii_alphanumeric() || "-_.".contains(c)))
        .unwrap_or(line.len());
    let (name, rest) = line.split_at(end);
    let version = rest.split(';').next().unwrap_or_default();
    let version = if version.starts_with('[') {
        version.split(']').nth(1).unwrap_or_default()
    } else {
        version
    };
    (!name.is_empty())
        .then(|| (name.to_owned(), version.trim().trim_matches(['(', ')']).to_owned()))
}

/// The framework that dependencies and names of modules tell of.
pub fn framework(dependencies: &Dependencies) -> Option<&'static str> {
    let has = |name: &str| dependencies.contains_key(name);
    let begins = |start: &str| dependencies.keys().any(|name| name.starts_with(start));
    if has("fastmcp") {
        return Some("fastmcp");
    }
    if begins("@modelcontextprotocol/") || has("mcp-framework") {
        return Some("mcp-sdk");
    }
    if has("mcp") {
        return Some("mcp");
    }
    if has("rmcp") {
        return Some("rmcp");
    }
    if begins("github.com/mark3labs/mcp-go") {
        return Some("mcp-go");
    }
    if begins("github.com/modelcontextprotocol/go-sdk") {
        return Some("go-sdk");
    }
    None
}
