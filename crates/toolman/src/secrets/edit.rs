//! `toolman secrets edit`: all secrets at once in an editor. TD-59
//!
//! They lie on a desk of their own while they are edited, and are wiped afterwards.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use secrets::error::Error;
use secrets::ledger::Status;
use secrets::names::{Key, Name, Scope};
use secrets::store::{Contents, Store};
use secrets::value::SecretValue;
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};
use zeroize::Zeroizing;

use super::declared;
use super::desk::Desk;
use crate::cli::{Cli, Misuse};
use crate::safe::worded;
use crate::secrets::warn_of;
use crate::terminal;

const INTERRUPTED: i32 = 143;

pub async fn run(cli: &Cli, store: &Store) -> anyhow::Result<i32> {
    super::ensure_key(store)?;
    let lock = store.lock().map_err(worded)?;
    let before = store.read().map_err(worded)?;
    let desk = Desk::open(store.folder())?;
    let file = desk.folder().join("secrets.yaml");
    write_private(&file, document(&before)?.as_bytes())?;
    let known: BTreeSet<Name> = before.statuses().into_iter().map(|(name, _)| name).collect();
    let edited = loop {
        if !edit(&file).await? {
            return Ok(INTERRUPTED);
        }
        let text = Zeroizing::new(std::fs::read_to_string(&file)?);
        match parse(&text, &known) {
            Ok(edited) => break edited,
            Err(problem) if std::io::stdin().is_terminal() && wants_another_go(&problem)? => {}
            Err(problem) => anyhow::bail!("{problem}; nothing was changed"),
        }
    };
    let changes = changes(&before, &known, edited)?;
    if changes.is_empty() {
        terminal::print("nothing was changed\n")?;
        return Ok(0);
    }
    let apply = |contents: &mut Contents| {
        for (name, change) in &changes {
            contents.ledger.forget(name);
            match change {
                Change::Set(value) => contents.vault.set(name.clone(), value)?,
                Change::Placeholder => {
                    contents.vault.remove(name);
                    contents.ledger.note(name.clone(), Status::Placeholder);
                }
                Change::Removed => _ = contents.vault.remove(name),
            }
        }
        Ok::<_, Error>(())
    };
    store.update_locked(&lock, apply).map_err(worded)?;
    for (name, change) in &changes {
        if let Change::Set(value) = change {
            warn_of(&name.key, value);
        }
        let deed = match change {
            Change::Set(_) => "set",
            Change::Placeholder => "emptied",
            Change::Removed => "removed",
        };
        terminal::print(&format!("{deed} `{}` ({})\n", name.key, name.scope))?;
    }
    let names: Vec<&Name> = changes.iter().map(|(name, _)| name).collect();
    for line in declared::gone(cli, store, &names) {
        terminal::complain(&format!("toolman: {line}"));
    }
    Ok(0)
}

enum Change {
    Set(SecretValue),
    Placeholder,
    Removed,
}

/// What the editor shows: YAML with every value in quotes.
fn document(contents: &Contents) -> anyhow::Result<Zeroizing<String>> {
    let mut text = Zeroizing::new(String::with_capacity(256 * 1024));
    text.push_str(
        "# Secrets of toolman. An empty value is a placeholder; a line that is deleted is a secret\n\
         # that is removed. Save and leave to encrypt them.\n",
    );
    let mut scope = None;
    let statuses = contents.statuses();
    if !statuses.iter().any(|(name, _)| name.scope == Scope::Global) {
        text.push_str("global: {}\n");
    }
    if !statuses.iter().any(|(name, _)| name.scope != Scope::Global) {
        text.push_str("namespaces: {}\n");
    }
    // Global ones come first in their order.
    for (name, _) in &statuses {
        let indent = if name.scope == Scope::Global { 2 } else { 4 };
        if scope != Some(&name.scope) {
            if name.scope == Scope::Global {
                text.push_str("global:\n");
            } else {
                if scope.is_none_or(|scope| *scope == Scope::Global) {
                    text.push_str("namespaces:\n");
                }
                writeln!(text, "  {:?}:", name.scope.as_str())?;
            }
        }
        scope = Some(&name.scope);
        let value = contents.vault.value(name).map_err(worded)?;
        let value = value.as_ref().map_or("", SecretValue::expose);
        let quoted = Zeroizing::new(serde_json::Value::from(value).to_string());
        let key = serde_json::Value::from(name.key.as_str());
        writeln!(text, "{:indent$}{key}: {}", "", *quoted)?;
    }
    Ok(text)
}

/// What was edited, as text; an error says where it is wrong and shows nothing of it.
fn parse(text: &str, known: &BTreeSet<Name>) -> Result<BTreeMap<Name, String>, String> {
    type Values = BTreeMap<String, Option<String>>;
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        #[serde(default)]
        global: Option<Values>,
        #[serde(default)]
        namespaces: Option<BTreeMap<String, Option<Values>>>,
    }
    let document: Document = serde_saphyr::from_str(text).map_err(|error| {
        let place = error.location().map(|at| format!(" at line {}", at.line()));
        let place = place.unwrap_or_default();
        format!("this is not YAML with `global` and `namespaces` of names and texts{place}")
    })?;
    let mut edited = BTreeMap::new();
    let namespaces = document.namespaces.unwrap_or_default().into_iter();
    let namespaces = namespaces.map(|(scope, values)| (scope, values.unwrap_or_default()));
    let global = ("global".to_owned(), document.global.unwrap_or_default());
    for (scope, values) in std::iter::once(global).chain(namespaces) {
        let scope: Scope = scope.parse().map_err(|error| format!("`{scope}` {error}"))?;
        for (key, value) in values {
            let wrong = |error| format!("`{key}` {error}");
            let name = Name { scope: scope.clone(), key: Key::kept(&key).map_err(wrong)? };
            if !known.contains(&name) {
                key.parse::<Key>().map_err(wrong)?;
            }
            edited.insert(name, value.unwrap_or_default());
        }
    }
    Ok(edited)
}

/// What is another than before.
fn changes(
    before: &Contents,
    known: &BTreeSet<Name>,
    mut edited: BTreeMap<Name, String>,
) -> anyhow::Result<Vec<(Name, Change)>> {
    let mut changes = Vec::new();
    for name in known {
        if !edited.contains_key(name) {
            changes.push((name.clone(), Change::Removed));
        }
    }
    while let Some((name, text)) = edited.pop_first() {
        let text = Zeroizing::new(text);
        let old = before.vault.value(&name).map_err(worded)?;
        let is_same = old.as_ref().map_or("", SecretValue::expose) == *text;
        if is_same && known.contains(&name) {
            continue;
        }
        let change = if text.is_empty() {
            Change::Placeholder
        } else {
            let wrong = |error| anyhow::anyhow!("`{}`: {error}", name.key);
            Change::Set(SecretValue::new(text).map_err(wrong)?)
        };
        changes.push((name, change));
    }
    Ok(changes)
}

fn wants_another_go(problem: &str) -> anyhow::Result<bool> {
    write!(std::io::stderr(), "{problem}\nedit again? [Y/n] ")?;
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(!answer.trim().to_lowercase().starts_with('n'))
}

/// Runs the editor; `false` if we were told to end meanwhile.
async fn edit(file: &Path) -> anyhow::Result<bool> {
    let named = |name| std::env::var(name).ok().filter(|editor| !editor.trim().is_empty());
    let editor = named("VISUAL").or_else(|| named("EDITOR")).unwrap_or_else(|| "vi".into());
    // Ctrl-C is the editor's; what tells us to end must not leave the values behind.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut command = tokio::process::Command::new("/bin/sh");
    command.arg("-c").arg(format!("{editor} \"$1\"")).arg("toolman").arg(file).kill_on_drop(true);
    let own = ["BEARER_TOKEN", "CORE_TOKEN", "MANAGER_INTERNAL_TOKEN"];
    for name in own.into_iter().chain(["SECRETS_KEY", "SECRETS_KEY_FD"]) {
        command.env_remove(name);
    }
    let running = command.status();
    tokio::pin!(running);
    loop {
        tokio::select! {
            status = &mut running => {
                let status = status.map_err(|error| Misuse(format!("can't run `{editor}`: {error}")))?;
                if !status.success() {
                    anyhow::bail!("`{editor}` has failed ({status}); nothing was changed");
                }
                return Ok(true);
            }
            _ = interrupted.recv() => {}
            _ = terminated.recv() => return Ok(false),
            _ = hung_up.recv() => return Ok(false),
        }
    }
}

fn write_private(file: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(file)?.write_all(bytes)
}
