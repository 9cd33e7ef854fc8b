//! `toolman secrets check`: what namespaces declare, and whether it is there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use config::library::text_at;
use mcp::text::{shorten, tame};
use secrets::ledger::Status;
use secrets::names::{Key, Name, Scope};
use secrets::store::{Contents, Store};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::cli::{Cli, Misuse};
use crate::safe::worded;
use crate::{host, terminal};

/// Folders of namespaces that are looked at.
const NAMESPACES_MAX: usize = 1000;

/// The keys that each namespace declares.
type Declared = BTreeMap<String, BTreeSet<Key>>;

/// What all namespaces declare.
fn declared(cli: &Cli, store: &Store) -> Result<Declared, Misuse> {
    let mut declared = in_configuration(cli)?;
    in_folders(&tools(cli, store)?, &mut declared)?;
    Ok(declared)
}

/// Where the folders of namespaces are.
fn tools(cli: &Cli, store: &Store) -> Result<PathBuf, Misuse> {
    let dock = host::configuration(cli)?.and_then(|config| config.dock);
    let tools = dock.and_then(|dock| dock.folder);
    Ok(tools.unwrap_or_else(|| store.folder().join("tools")))
}

/// Whether there is a namespace of this name, though it may declare nothing.
fn is_there(cli: &Cli, store: &Store, namespace: &str) -> Result<bool, Misuse> {
    let is_folder =
        namespace.parse::<Scope>().is_ok() && tools(cli, store)?.join(namespace).is_dir();
    let Some(config) = host::configuration(cli)? else { return Ok(is_folder) };
    let is_named = config.folders.iter().any(|folder| folder.namespace.as_str() == namespace)
        || config.servers.iter().any(|server| server.namespace.as_str() == namespace);
    Ok(is_folder || is_named)
}

/// Of these secrets, those that a namespace declares and that have no value now, each in words. What can't be read
/// declares nothing. TD-59
pub fn gone(cli: &Cli, store: &Store, names: &[&Name]) -> Vec<String> {
    let (Ok(declared), Ok(contents)) = (declared(cli, store), store.read()) else {
        return Vec::new();
    };
    let mut lines = Vec::new();
    for (namespace, keys) in &declared {
        let scope = Scope::of_namespace(namespace).unwrap_or(Scope::Global);
        for key in keys.iter().filter(|key| names.iter().any(|name| name.key == **key)) {
            let name = Name { scope: scope.clone(), key: key.clone() };
            if contents.status(&name) != Status::Set {
                let (whose, command) = (shown(namespace), store.command_to_set(&name));
                lines.push(format!(
                    "{key} is declared by {whose} and has no value now; run `{command}`"
                ));
            }
        }
    }
    lines
}

fn shown(namespace: &str) -> String {
    match namespace {
        "" => "the servers without a namespace".to_owned(),
        namespace => format!("`{}`", tame(namespace)),
    }
}

pub fn check(cli: &Cli, store: &Store, only: Option<&str>, as_json: bool) -> anyhow::Result<i32> {
    let mut declared = declared(cli, store)?;
    if let Some(only) = only {
        let found = declared.remove(only);
        if found.is_none() && !is_there(cli, store, only)? {
            let known = "neither a server of the configuration nor a folder of tools has that name";
            return Err(Misuse(format!("there is no namespace `{}`: {known}", tame(only))).into());
        }
        declared = BTreeMap::from([(only.to_owned(), found.unwrap_or_default())]);
    }
    let contents = store.read().map_err(worded)?;
    let rows: Vec<Row> =
        declared.iter().map(|(namespace, keys)| Row::of(namespace, keys, &contents)).collect();
    let is_fine = rows.iter().all(|row| row.missing.is_empty() && row.placeholders.is_empty());
    let text = if as_json {
        let values: Vec<Value> = rows.iter().map(Row::json).collect();
        match (only, &values[..]) {
            (Some(_), [value]) => format!("{value:#}\n"),
            _ => format!("{:#}\n", json!({"namespaces": values})),
        }
    } else if declared.values().all(BTreeSet::is_empty) {
        "no secret is declared\n".to_owned()
    } else {
        rows.iter().flat_map(|row| row.lines(store)).collect()
    };
    terminal::print(&text)?;
    Ok(i32::from(!is_fine))
}

/// What one namespace lacks, as ToolDock tells it.
struct Row {
    namespace: String,
    satisfied: Vec<Key>,
    missing: Vec<Key>,
    placeholders: Vec<Key>,
}

impl Row {
    fn of(namespace: &str, keys: &BTreeSet<Key>, contents: &Contents) -> Row {
        let mut row = Row {
            namespace: namespace.to_owned(),
            satisfied: Vec::new(),
            missing: Vec::new(),
            placeholders: Vec::new(),
        };
        let scope = Scope::of_namespace(namespace).unwrap_or(Scope::Global);
        for key in keys {
            let name = Name { scope: scope.clone(), key: key.clone() };
            match contents.status(&name) {
                Status::Set => row.satisfied.push(key.clone()),
                Status::Placeholder => row.placeholders.push(key.clone()),
                Status::Missing => row.missing.push(key.clone()),
            }
        }
        row
    }

    fn json(&self) -> Value {
        let texts = |keys: &[Key]| keys.iter().map(ToString::to_string).collect::<Vec<_>>();
        json!({
            "namespace": self.namespace, "satisfied": texts(&self.satisfied),
            "missing": texts(&self.missing), "placeholders": texts(&self.placeholders),
        })
    }

    fn lines(&self, store: &Store) -> Vec<String> {
        let namespace = shown(&self.namespace);
        let line = |key: &Key, state: &str| format!("{key} of {namespace}: {state}\n");
        let unset = |key: &Key, state: &str| {
            let name = Name { scope: Scope::Global, key: key.clone() };
            line(key, &format!("{state}; run `{}`", store.command_to_set(&name)))
        };
        let satisfied = self.satisfied.iter().map(|key| line(key, "set"));
        let placeholders = self.placeholders.iter().map(|key| unset(key, "placeholder"));
        let missing = self.missing.iter().map(|key| unset(key, "missing"));
        satisfied.chain(placeholders).chain(missing).collect()
    }
}

/// By `${secret:…}`.
fn in_configuration(cli: &Cli) -> Result<Declared, Misuse> {
    let mut declared = Declared::new();
    let Some(config) = host::configuration(cli)? else { return Ok(declared) };
    for folder in &config.folders {
        let manifest = folder.read().manifest;
        let written = manifest.env.iter().flat_map(|(_, value)| value.secrets());
        let mut keys: BTreeSet<Key> = written.map(|name| name.key.clone()).collect();
        // One that is no name is reported when the folder is served.
        keys.extend(manifest.secrets.iter().filter_map(|key| key.parse().ok()));
        if !keys.is_empty() {
            declared.entry(folder.namespace.as_str().to_owned()).or_default().extend(keys);
        }
    }
    for server in config.servers {
        let names = server.settings.launch.secrets();
        if !names.is_empty() {
            let keys = declared.entry(server.namespace.as_str().to_owned()).or_default();
            keys.extend(names.into_iter().map(|name| name.key));
        }
    }
    Ok(declared)
}

/// By `secrets:` of `tooldock.yaml`.
fn in_folders(tools: &Path, declared: &mut Declared) -> Result<(), Misuse> {
    #[derive(Deserialize)]
    struct Settings {
        #[serde(default)]
        secrets: Option<Vec<String>>,
    }
    let Ok(folders) = std::fs::read_dir(tools) else { return Ok(()) };
    for folder in folders.flatten().take(NAMESPACES_MAX) {
        let Ok(namespace) = folder.file_name().into_string() else { continue };
        if namespace.starts_with(['.', '_']) || namespace.parse::<Scope>().is_err() {
            continue;
        }
        let file = folder.path().join("tooldock.yaml");
        let wrong = |problem: &str| Misuse(format!("{}: {problem}", file.display()));
        let text = text_at(&file).map_err(|fault| Misuse(fault.to_string()))?;
        let Some(text) = text else { continue };
        if text.trim().is_empty() {
            continue;
        }
        let settings: Settings = serde_saphyr::from_str(&text)
            .map_err(|_| wrong("it can't be read, or `secrets` is no list of names"))?;
        let keys = declared.entry(namespace).or_default();
        for key in settings.secrets.unwrap_or_default() {
            let parsed = key
                .parse()
                .map_err(|error| wrong(&format!("the secret `{}` {error}", shorten(&key))))?;
            keys.insert(parsed);
        }
    }
    Ok(())
}
