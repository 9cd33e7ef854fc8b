//! Personas of hypertool: toolsets that are handed on with the servers that they need.

use std::path::Path;

use catalog::toolset::{Reference, Toolset, limits};
use mcp::text::tame;
use serde::Deserialize;

use super::{Bundle, whole};
use crate::fault::Fault;

/// What the file of a persona may be called.
pub const FILES: [&str; 2] = ["persona.yaml", "persona.yml"];

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Persona {
    name: String,
    description: String,
    version: Option<String>,
    #[serde(default)]
    toolsets: Vec<PersonaToolset>,
    default_toolset: Option<String>,
    #[expect(dead_code, reason = "it is checked, and of no use here")]
    metadata: Option<Metadata>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct PersonaToolset {
    name: String,
    tool_ids: Vec<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[expect(dead_code, reason = "it is checked, and of no use here")]
struct Metadata {
    author: Option<String>,
    tags: Option<Vec<String>>,
    created: Option<String>,
    last_modified: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Servers {
    mcp_servers: serde_json::Map<String, serde_json::Value>,
}

/// Reads a persona, and its `mcp.json` if it has one.
pub fn read(file: &Path, text: &str, servers: Option<&str>) -> Result<Bundle, Fault> {
    let persona: Persona = serde_saphyr::from_str(text).map_err(|error| {
        let words = error.to_string();
        whole(file, &format!("no persona: {}", tame(words.lines().next().unwrap_or_default())))
    })?;
    check(&persona).map_err(|problem| whole(file, &problem))?;
    let mut notes = Vec::new();
    if let Some(servers) = servers {
        let servers: Servers = serde_json::from_str(servers)
            .map_err(|error| whole(file, &format!("its `mcp.json` can't be read: {error}")))?;
        let names: Vec<_> =
            servers.mcp_servers.keys().map(|name| format!("`{}`", tame(name))).collect();
        let names = names.join(", ");
        notes.push(format!(
            "persona `{}` is made for the servers {names} of its `mcp.json`; see that the \
             configuration has them",
            persona.name
        ));
    }
    let toolset = |toolset: &PersonaToolset| Toolset {
        name: toolset.name.as_str().into(),
        description: Some(persona.description.clone())
            .filter(|text| limits::check_description(text).is_ok()),
        version: persona.version.clone(),
        references: toolset
            .tool_ids
            .iter()
            .map(|name| Reference { name: Some(name.as_str().into()), ..Reference::default() })
            .collect(),
        ..Toolset::default()
    };
    let toolsets = persona.toolsets.iter().map(toolset).collect();
    Ok(Bundle { toolsets, last_equipped: persona.default_toolset, notes, ..Bundle::default() })
}

fn check(persona: &Persona) -> Result<(), String> {
    let chars = persona.description.chars().count();
    if !(10..=500).contains(&chars) {
        return Err(format!("`description` has {chars} characters; use 10 to 500"));
    }
    let names: Vec<&str> = persona.toolsets.iter().map(|toolset| toolset.name.as_str()).collect();
    if let Some(twice) = names.iter().enumerate().find(|(at, name)| names[..*at].contains(name)) {
        return Err(format!("toolset `{}` is there twice", tame(twice.1)));
    }
    match &persona.default_toolset {
        Some(name) if !names.contains(&name.as_str()) => {
            Err(format!("`defaultToolset` is `{}`, which is none of `toolsets`", tame(name)))
        }
        _ => Ok(()),
    }
}
