//! Namespaces: which there are, new ones, and their end. TD-120 … TD-122

use std::sync::Arc;

use gateway::own_tools::Tool;
use serde_json::{Value, json};

use super::secrets::{Standing, standing};
use super::{Described, Effect, LIST, text};
use crate::desk::Desk;
use crate::error::Error;
use crate::limits::FILE_BYTES_MAX;
use crate::names::NamespaceName;

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![list_namespaces(desk), create_namespace(desk), delete_namespace(desk)]
}

fn list_namespaces(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "list_namespaces",
        title: "List namespaces",
        description: "List all namespaces (folders of Python tools): name, tool_count, has_requirements, \
            secrets_status (\"ok\", \"missing\", \"placeholders\": a person has yet to set some, or \
            \"no_secrets_needed\"). Next: list_tools or create_namespace.",
        effect: Effect::Reads,
        input: json!({}),
        required: &[],
        output: LIST,
    }
    .does(desk, |desk, _| async move { listed(&desk).await })
}

async fn listed(desk: &Desk) -> Result<Value, Error> {
    let folders = desk.folders();
    let statuses = (desk.safe.statuses)(()).map_err(Error::Secret)?;
    let sources: Vec<_> =
        folders.iter().flat_map(|folder| folder.sources.iter().cloned()).collect();
    let mut counts = Vec::new();
    if !sources.is_empty() {
        let interpreter = desk.interpreter(None).await?;
        let found = desk.read_sources(&interpreter, &sources).await?;
        counts.extend(found.iter().map(|findings| findings.tools.len()));
    }
    let mut counts = counts.into_iter();
    let mut rows = Vec::new();
    for folder in &folders {
        let name = folder.name.as_str();
        let tool_count: usize = counts.by_ref().take(folder.sources.len()).sum();
        let requirements = format!("{name}/requirements.txt");
        let has_requirements =
            matches!(desk.tools.read(&requirements, FILE_BYTES_MAX), Ok(Some(_)));
        let Standing { satisfied, missing, placeholders, defaults } = standing(folder, &statuses);
        let secrets_status = if !missing.is_empty() {
            "missing"
        } else if !placeholders.is_empty() {
            "placeholders"
        } else if satisfied.is_empty() && defaults.is_empty() {
            "no_secrets_needed"
        } else {
            "ok"
        };
        rows.push(json!({
            "name": name, "tool_count": tool_count, "has_requirements": has_requirements,
            "secrets_status": secrets_status,
        }));
    }
    Ok(Value::Array(rows))
}

fn create_namespace(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "create_namespace",
        title: "Create a namespace",
        description: "Create an empty namespace: a folder for files of Python tools. Fails if the name is taken \
            or not allowed (\"_system\" is reserved). Returns created and path. Next: write_tool, reload_core.",
        effect: Effect::Writes,
        input: json!({"name": {"type": "string", "description": "Lowercase letters, digits and hyphens, such as \"github\""}}),
        required: &["name"],
        output: ("created", "boolean"),
    }
    .does(desk, |desk, arguments| async move {
        let namespace = NamespaceName::parse(text(&arguments, "name"))?;
        let name = namespace.as_str();
        let path = desk.tools.shown(name);
        if !desk.tools.make_folder(name)? {
            return Err(Error::NamespaceExists { name: name.to_owned(), path });
        }
        Ok(json!({
            "created": true, "path": path,
            "next": "write a file of tools into it with write_tool, then call reload_core",
        }))
    })
}

fn delete_namespace(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "delete_namespace",
        title: "Delete a namespace",
        description: "Delete a namespace with all its files and packages. Only a person can bring it back: ask \
            the user first. Served until reload_core. Returns deleted and name.",
        effect: Effect::Destroys,
        input: json!({"name": {"type": "string"}}),
        required: &["name"],
        output: ("deleted", "boolean"),
    }
    .does(desk, |desk, arguments| async move { deleted(&desk, text(&arguments, "name")) })
}

fn deleted(desk: &Desk, name: &str) -> Result<Value, Error> {
    let namespace = desk.namespace(name)?;
    let name = namespace.as_str();
    desk.shelf().put_away(name)?;
    for parent in ["venvs", "scratch", "served", "pending"] {
        if desk.data.has_folder(parent)? {
            desk.data.remove_folder(&format!("{parent}/{name}"))?;
        }
    }
    Ok(json!({
        "deleted": true, "name": name, "next": "call reload_core so that the core no longer serves it",
    }))
}
