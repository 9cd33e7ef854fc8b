//! Secrets by name and status; a value is a person's matter, on a terminal. TD-131 … TD-134, TD-157

use std::sync::Arc;

use config::dock::Folder;
use gateway::own_tools::Tool;
use mcp::text::shorten;
use secrets::ledger::{Status, file};
use secrets::names::{Key, Name, NameError, Scope};
use serde_json::{Value, json};

use super::{Described, Effect, list, object, quoted, text};
use crate::desk::Desk;
use crate::error::Error;
use crate::names::NamespaceName;

/// What a namespace declares, by whether it is there.
#[derive(Default)]
pub struct Standing {
    pub satisfied: Vec<String>,
    pub missing: Vec<String>,
    pub placeholders: Vec<String>,
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
        } else {
            &mut standing.missing
        };
        keys.push(key.clone());
    }
    standing
}

fn arguments() -> Value {
    json!({
        "key": {"type": "string", "description": "Name of the secret, such as \"GITHUB_TOKEN\""},
        "namespace": {
            "type": ["string", "null"],
            "description": "The one namespace that the secret is for; leave it out for a global secret",
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

fn prepare_secret(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "prepare_secret",
        title: "Prepare a secret",
        description: "Note that a secret (an API key, a token, a password) is needed, so that a person can set its \
            value. This tool NEVER takes or returns a value, and you must never ask the user to type one into the \
            chat.\n\nSteps:\n1. Call this with the key, and with the namespace if the secret is for that one alone.\
            \n2. Tell the user to run the command in \"instructions\": it asks for the value without showing it.\n3. \
            When the user says it is done, call `reload_core`, then `check_secrets`.\n\nReturns key, scope, meta_file, \
            instructions and status.",
        effect: Effect::Writes,
        input: arguments(),
        required: &["key"],
        output: object(
            &json!({
                "key": {"type": "string"}, "scope": {"type": "string"}, "meta_file": {"type": "string"},
                "instructions": {"type": "string"}, "status": {"enum": ["set", "placeholder", "missing"]},
            }),
            &["key", "scope", "meta_file", "instructions"],
        ),
    }
    .does(desk, |desk, arguments| async move {
        let name = name(&arguments, str::parse)?;
        let status = (desk.safe.prepare)(name.clone()).map_err(Error::Secret)?;
        let data = quoted(&desk.data.path().display().to_string());
        let (key, scope) = (name.key.as_str(), name.scope.as_str());
        Ok(json!({
            "key": key, "scope": scope,
            "meta_file": file(desk.data.path()).display().to_string(),
            "instructions": format!("Run: toolman secrets set {key} --scope {scope} --data-dir {data}"),
            "status": status.as_str(),
        }))
    })
}

fn list_secrets(desk: &Arc<Desk>) -> Tool {
    Described {
        name: "list_secrets",
        title: "List secrets",
        description: "List secrets by name and status. Values are NEVER shown, not even masked.\n\nWithout a namespace \
            all are listed (global ones and those of namespaces), with it those of that namespace alone. Returns a \
            list; for each its key, its scope (\"global\" or a namespace) and its status: \"set\", \"placeholder\" (a \
            person has yet to set it) or \"missing\" (a namespace declares it, and there is none).",
        effect: Effect::Reads,
        input: json!({"namespace": arguments()["namespace"]}),
        required: &[],
        output: list(&object(
            &json!({
                "key": {"type": "string"}, "scope": {"type": "string"},
                "status": {"enum": ["set", "placeholder", "missing"]},
            }),
            &["key", "scope", "status"],
        )),
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
        description: "Remove a secret entirely: its value and its entry. Ask the user before you call this.\n\nLeave \
            out the namespace for a global secret. Returns removed (true), key and scope. The core is asked to reload \
            by itself; call `reload_core` once more to be sure that no tool still has the value.",
        effect: Effect::Destroys,
        input: arguments(),
        required: &["key"],
        output: object(
            &json!({
                "removed": {"type": "boolean"}, "key": {"type": "string"}, "scope": {"type": "string"},
                "reloaded": {"type": "boolean"}, "next": {"type": "string"},
            }),
            &["removed", "key", "scope"],
        ),
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
        description: "Check whether a namespace has all the secrets that its tooldock.yaml declares.\n\nReturns \
            namespace and three lists of names: satisfied, missing, placeholders.\n\nNext:\n- for each in \"missing\": \
            call `prepare_secret`, then tell the user to run the command it returns\n- for each in \"placeholders\": \
            tell the user to set it (`prepare_secret` tells the command again)\n- when all are satisfied: call \
            `reload_core`; the namespace is ready.",
        effect: Effect::Reads,
        input: json!({"namespace": {"type": "string", "description": "The namespace to check"}}),
        required: &["namespace"],
        output: object(
            &json!({
                "namespace": {"type": "string"},
                "satisfied": {"type": "array", "items": {"type": "string"}},
                "missing": {"type": "array", "items": {"type": "string"}},
                "placeholders": {"type": "array", "items": {"type": "string"}},
            }),
            &["namespace", "satisfied", "missing", "placeholders"],
        ),
    }
    .does(desk, |desk, arguments| async move {
        let folder = desk.folder(text(&arguments, "namespace"))?;
        let statuses = (desk.safe.statuses)(()).map_err(Error::Secret)?;
        let Standing { satisfied, missing, placeholders } = standing(&folder, &statuses);
        Ok(json!({
            "namespace": folder.name.as_str(), "satisfied": satisfied, "missing": missing,
            "placeholders": placeholders,
        }))
    })
}
