//! Secrets by name and status; a value is a person's matter, on a terminal. TD-131 … TD-134, TD-157

use std::sync::Arc;

use config::dock::{Folder, Manifest};
use gateway::own_tools::Tool;
use mcp::text::shorten;
use secrets::ledger::{Status, file};
use secrets::names::{Key, Name, NameError, Scope};
use serde_json::{Value, json};

use super::declaring::FILE as MANIFEST;
use super::{Described, Effect, LIST, text};
use crate::desk::Desk;
use crate::error::Error;
use crate::inspection;
use crate::names::NamespaceName;

/// What a namespace declares, by whether it is there.
#[derive(Default)]
pub struct Standing {
    pub satisfied: Vec<String>,
    pub missing: Vec<String>,
    pub placeholders: Vec<String>,
    /// Not set, but the folder has a default.
    pub defaults: Vec<String>,
}

pub fn tools(desk: &Arc<Desk>) -> Vec<Tool> {
    vec![prepare_secret(desk), list_secrets(desk), remove_secret(desk), check_secrets(desk)]
}

/// How it stands with the secrets of a namespace.
pub fn standing(folder: &Folder, statuses: &[(Name, Status)]) -> Standing {
    let mut standing = Standing::default();
    for key in &folder.manifest.secrets {
        let counts = |name: &Name| {
            let is_ours =
                [Scope::Global.as_str(), folder.name.as_str()].contains(&name.scope.as_str());
            is_ours && name.key.as_str() == key
        };
        let has = |wanted| statuses.iter().any(|(name, status)| *status == wanted && counts(name));
        let keys = if has(Status::Set) {
            &mut standing.satisfied
        } else if has(Status::Placeholder) {
            &mut standing.placeholders
        } else if folder.manifest.env.iter().any(|(name, _)| name == key) {
            &mut standing.defaults
        } else {
            &mut standing.missing
        };
        keys.push(key.clone());
    }
    standing
}

fn arguments() -> Value {
    json!({
        "key": {"type": "string", "description": "Such as \"GITHUB_TOKEN\""},
        "namespace": {
            "type": ["string", "null"],
            "description": "Left out: global",
        },
    })
}

/// The scope that a call names.
fn scope(arguments: &Value) -> Result<Scope, Error> {
    match arguments["namespace"].as_str() {
        None => Ok(Scope::Global),
        Some(name) => Ok(Scope::Namespace(NamespaceName::parse(name)?.as_str().into())),
    }
}

fn name(arguments: &Value, read: fn(&str) -> Result<Key, NameError>) -> Result<Name, Error> {
    let key = text(arguments, "key");
    let wrong = |error| Error::Secret(format!("`{}` {error}", shorten(key)));
    Ok(Name { scope: scope(arguments)?, key: read(key).map_err(wrong)? })
}

/// Whether a namespace that would see a secret declares it, or will when what waits is approved.
fn is_declared(desk: &Desk, name: &Name) -> Result<bool, Error> {
    let (key, scope) = (name.key.as_str(), name.scope.as_str());
    for folder in desk.folders() {
        let namespace = folder.name.as_str();
        if ![Scope::Global.as_str(), namespace].contains(&scope) {
            continue;
        }
        let waiting = desk.shelf().waiting(namespace, MANIFEST)?;
        let waiting = waiting.and_then(|text| Manifest::parse(&text).ok()).unwrap_or_default();
        if folder.manifest.secrets.iter().chain(&waiting.secrets).any(|declared| declared == key) {
            return Ok(true);
        }
    }
    Ok(false)
}

fn prepare_secret(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "prepare_secret",
        title: "Prepare a secret",
        description: "Note that a secret (API key, token, password) is needed, so that a person can set it. \
            Takes and returns no value: never ask for one in the chat. Tell the user to run the command in \
            \"instructions\"; then call reload_core and check_secrets. Returns status and declared: if that is \
            false call declare_secret too, or no tool sees it.",
        effect: Effect::Writes,
        input: arguments(),
        required: &["key"],
        output: ("key", "string"),
    }
    .does(desk, |desk, arguments| async move {
        let name = name(&arguments, str::parse)?;
        let status = (desk.safe.prepare)(name.clone()).map_err(Error::Secret)?;
        let (key, scope) = (name.key.as_str(), name.scope.as_str());
        let is_declared = is_declared(&desk, &name)?;
        let mut answer = json!({
            "key": key, "scope": scope,
            "meta_file": file(desk.data.path()).display().to_string(),
            "instructions": format!("Run: {}", desk.command(&format!("secrets set {key} --scope {scope}"))),
            "status": status.as_str(),
            "declared": is_declared,
        });
        if !is_declared {
            answer["next"] =
                "no namespace that sees it declares it: call declare_secret for the one whose tools read it".into();
        }
        Ok(answer)
    })
}

fn list_secrets(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "list_secrets",
        title: "List secrets",
        description: "List secrets, never values: key, scope (\"global\" or a namespace) and status: \"set\", \
            \"placeholder\" (a person has yet to set it) or \"missing\" (declared, but not there).",
        effect: Effect::Reads,
        input: json!({"namespace": arguments()["namespace"]}),
        required: &[],
        output: LIST,
    }
    .does(desk, |desk, arguments| async move {
        let only = arguments["namespace"].as_str().map(NamespaceName::parse).transpose()?;
        let is_wanted = |scope: &str| only.as_ref().is_none_or(|only| only.as_str() == scope);
        let statuses = (desk.safe.statuses)(()).map_err(Error::Secret)?;
        let row = |key: &str, scope: &str, status: Status| {
            json!({"key": key, "scope": scope, "status": status.as_str()})
        };
        let known = statuses.iter().filter(|(name, _)| is_wanted(name.scope.as_str()));
        let mut rows: Vec<_> = known
            .map(|(name, status)| row(name.key.as_str(), name.scope.as_str(), *status))
            .collect();
        for folder in desk.folders() {
            let namespace = folder.name.as_str();
            if is_wanted(namespace) {
                let missing = standing(&folder, &statuses).missing;
                rows.extend(missing.iter().map(|key| row(key, namespace, Status::Missing)));
            }
        }
        rows.dedup();
        Ok(Value::Array(rows))
    })
}

fn remove_secret(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "remove_secret",
        title: "Remove a secret",
        description: "Remove a secret, value and entry. Ask the user first. Returns removed, key, scope. Next: \
            reload_core, to be sure that no tool still has it.",
        effect: Effect::Destroys,
        input: arguments(),
        required: &["key"],
        output: ("removed", "boolean"),
    }
    .does(desk, |desk, arguments| async move {
        let name = name(&arguments, Key::kept)?;
        let (key, scope) = (name.key.to_string(), name.scope.as_str().to_owned());
        if !(desk.safe.remove)(name).map_err(Error::Secret)? {
            let known = format!("there is no secret `{}` ({scope}); see `list_secrets`", shorten(&key));
            return Err(Error::Secret(known));
        }
        // The removal holds, whether or not a core runs.
        let reloaded = desk.core.reload().await.is_ok();
        Ok(json!({
            "removed": true, "key": key, "scope": scope, "reloaded": reloaded, "next": "call reload_core",
        }))
    })
}

fn check_secrets(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "check_secrets",
        title: "Check the secrets of a namespace",
        description: "Check whether a namespace has the secrets that its tooldock.yaml declares. Returns lists \
            of names: satisfied; missing (call prepare_secret); placeholders (the user must set them); defaults \
            (not set, `env` stands in); undeclared (the code reads them, nothing declares them: call \
            declare_secret). When all are satisfied call reload_core.",
        effect: Effect::Reads,
        input: json!({"namespace": {"type": "string"}}),
        required: &["namespace"],
        output: ("namespace", "string"),
    }
    .does(desk, |desk, arguments| async move {
        let folder = desk.folder(text(&arguments, "namespace"))?;
        let statuses = (desk.safe.statuses)(()).map_err(Error::Secret)?;
        let Standing { satisfied, missing, placeholders, defaults } = standing(&folder, &statuses);
        let sources = inspection::sources(&desk, &folder)?;
        let mut undeclared = Vec::new();
        if !sources.is_empty() {
            let interpreter = desk.interpreter(folder.manifest.python.as_deref()).await?;
            let found = desk.read_sources(&interpreter, &sources).await?;
            undeclared = inspection::undeclared(&folder.manifest, &found);
        }
        let mut answer = json!({
            "namespace": folder.name.as_str(), "satisfied": satisfied, "missing": missing,
            "placeholders": placeholders,
        });
        for (key, names) in [("defaults", defaults), ("undeclared", undeclared)] {
            if !names.is_empty() {
                answer[key] = names.into();
            }
        }
        Ok(answer)
    })
}
