//! `toolman secrets`: the safe, from the command line. No output ever holds a value. TD-65

mod declared;
pub mod desk;
mod dotenv;
mod edit;

use std::io::IsTerminal as _;
use std::path::Path;

use comfy_table::Table;
use mcp::text::{shorten, tame};
use secrets::error::Error;
use secrets::ledger::Status;
use secrets::limits::VALUE_BYTES_MAX;
use secrets::names::{Key, Name, Scope};
use secrets::redact;
use secrets::store::{Contents, Store};
use secrets::value::SecretValue;
use serde_json::{Value, json};

use crate::cli::secrets::{Format, Secrets, Which};
use crate::cli::{Cli, Misuse};
use crate::prompt::{self, Answer};
use crate::safe::{self, worded};
use crate::terminal;

/// The exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;

pub async fn run(cli: &Cli, command: &Secrets) -> anyhow::Result<i32> {
    let store = safe::required(cli)?;
    match command {
        Secrets::Set { which, stray, json } => {
            if !stray.is_empty() {
                let reason = "a value on the command line can be read by others, and stays in the \
                    history of the shell; leave it out: it is asked for, or read from stdin";
                return Err(Misuse(reason.into()).into());
            }
            set(&store, name(which)?, *json).await
        }
        Secrets::Edit => edit::run(cli, &store).await,
        Secrets::List { scope, json } => list(&store, scope.as_deref(), *json),
        Secrets::Check { namespace, json } => {
            declared::check(cli, &store, namespace.as_deref(), *json)
        }
        Secrets::Prepare { which, json } => prepare(&store, &name(which)?, *json),
        Secrets::Rm { which, json } => remove(&store, &kept_name(which)?, *json),
        Secrets::Rotate { data: true, .. } => {
            store.renew_data_key().map_err(worded)?;
            terminal::print("every value is encrypted anew\n")?;
            Ok(0)
        }
        Secrets::Rotate { new_key_file, .. } => rotate(&store, new_key_file.as_deref()),
        Secrets::Import { file, scope, json } => import(&store, file, scope, *json),
        Secrets::Export { format: Format::Fernet, file } => export(&store, file),
    }
}

fn name(which: &Which) -> Result<Name, Misuse> {
    let key = which.named.as_deref().or(which.key.as_deref()).unwrap_or_default();
    let wrong = |error| Misuse(format!("`{}` {error}", shorten(key)));
    Ok(Name { scope: scope(&which.scope)?, key: key.parse().map_err(wrong)? })
}

/// The same for a secret that is there already: an older program may have been less strict with names.
fn kept_name(which: &Which) -> Result<Name, Misuse> {
    let key = which.named.as_deref().or(which.key.as_deref()).unwrap_or_default();
    let wrong = |error| Misuse(format!("`{}` {error}", shorten(key)));
    Ok(Name { scope: scope(&which.scope)?, key: Key::kept(key).map_err(wrong)? })
}

fn scope(text: &str) -> Result<Scope, Misuse> {
    text.parse().map_err(|error| Misuse(format!("`{}` {error}", shorten(text))))
}

async fn set(store: &Store, name: Name, as_json: bool) -> anyhow::Result<i32> {
    ensure_key(store)?;
    // Whatever is wrong with the safe is said before anybody types.
    store.read().map_err(worded)?;
    let value = if std::io::stdin().is_terminal() {
        match prompt::ask_twice(&format!("value of {} ({})", name.key, name.scope)).await? {
            Answer::Text(text) => text,
            Answer::Interrupted => return Ok(INTERRUPTED),
        }
    } else {
        prompt::read_all(VALUE_BYTES_MAX)?
    };
    let value = SecretValue::from_bytes(&value)?;
    store.update(|contents| contents.vault.set(name.clone(), &value)).map_err(worded)?;
    warn_of(&name.key, &value);
    tell(as_json, &shown(&name, Status::Set), &format!("set `{}` ({})", name.key, name.scope))
}

fn list(store: &Store, only: Option<&str>, as_json: bool) -> anyhow::Result<i32> {
    let only = only.map(scope).transpose()?;
    let mut statuses = store.read().map_err(worded)?.statuses();
    statuses.retain(|(name, _)| only.as_ref().is_none_or(|only| name.scope == *only));
    if as_json {
        let rows: Vec<Value> = statuses.iter().map(|(name, status)| shown(name, *status)).collect();
        terminal::print(&format!("{:#}\n", json!({"secrets": rows})))?;
        return Ok(0);
    }
    if statuses.is_empty() {
        terminal::print("there are no secrets; set one with `toolman secrets set KEY`\n")?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    for (name, status) in &statuses {
        table.add_row([tame(name.key.as_str()), name.scope.to_string(), status.as_str().into()]);
    }
    terminal::print(&format!("{table}\n"))?;
    Ok(0)
}

fn prepare(store: &Store, name: &Name, as_json: bool) -> anyhow::Result<i32> {
    let status = store.want(name).map_err(worded)?;
    let fix = store.unset(name.clone());
    let words = match status {
        Status::Set => format!("`{}` ({}) is set already", name.key, name.scope),
        _ => fix.to_string(),
    };
    tell(as_json, &shown(name, status), &words)
}

/// Removes a secret, value and all; whether there was one.
pub fn forget(store: &Store, name: &Name) -> Result<bool, Error> {
    let contents = store.read()?;
    if !contents.statuses().iter().any(|(known, _)| known == name) {
        return Ok(false);
    }
    if contents.vault.holds(name) {
        let removal = |contents: &mut Contents| {
            contents.ledger.forget(name);
            contents.vault.remove(name);
            Ok::<_, Error>(())
        };
        store.update(removal)?;
    } else {
        store.update_ledger(|ledger| ledger.forget(name))?;
    }
    Ok(true)
}

fn remove(store: &Store, name: &Name, as_json: bool) -> anyhow::Result<i32> {
    let (key, scope) = (tame(name.key.as_str()), &name.scope);
    if !forget(store, name).map_err(worded)? {
        anyhow::bail!("there is no secret `{key}` ({scope}); see `toolman secrets list`");
    }
    let value = json!({"key": name.key.as_str(), "scope": scope.as_str(), "removed": true});
    tell(as_json, &value, &format!("removed `{key}` ({scope})"))
}

fn rotate(store: &Store, file: Option<&Path>) -> anyhow::Result<i32> {
    let key = store.rotate(file).map_err(worded)?;
    let key = key.display();
    let more = match file {
        Some(_) => "; from now on toolman must be given that one",
        None => "; keep a copy of it",
    };
    terminal::print(&format!("the master key is now the one in `{key}`{more}\n"))?;
    Ok(0)
}

fn import(store: &Store, file: &Path, of: &str, as_json: bool) -> anyhow::Result<i32> {
    let scope = scope(of)?;
    let values = dotenv::read(file)?;
    ensure_key(store)?;
    let mut keys = Vec::new();
    let set_all = |contents: &mut Contents| {
        for (key, value) in &values {
            keys.push(key.to_string());
            contents.vault.set(Name { scope: scope.clone(), key: key.clone() }, value)?;
        }
        Ok::<_, Error>(())
    };
    store.update(set_all).map_err(worded)?;
    for (key, value) in &values {
        warn_of(key, value);
    }
    let words = format!(
        "set {} ({scope}); `{}` still holds the values: delete it if nothing else needs it",
        keys.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", "),
        file.display()
    );
    tell(as_json, &json!({"scope": scope.as_str(), "set": keys}), &words)
}

fn export(store: &Store, file: &Path) -> anyhow::Result<i32> {
    use std::io::Write as _;
    use std::os::unix::fs::OpenOptionsExt as _;
    let text = store.export_fernet().map_err(worded)?;
    let shown = file.display();
    let wrong =
        |error| Misuse(format!("can't write `{shown}`: {error}; name a file that is not there"));
    let mut options = std::fs::OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(0o600).open(file).map_err(wrong)?;
    file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
    terminal::print(&format!("wrote `{shown}`; the same master key opens it\n"))?;
    Ok(0)
}

/// Says so where a value can't be hidden as others are.
pub(crate) fn warn_of(key: &Key, value: &SecretValue) {
    if let Some(caveat) = redact::caveat(value) {
        terminal::complain(&format!("toolman: `{key}` {caveat}"));
    }
}

/// Makes a master key where there is none, so that a newcomer needs nothing.
pub fn ensure_key(store: &Store) -> anyhow::Result<()> {
    if let Some(file) = store.ensure_key().map_err(worded)? {
        let file = file.display();
        terminal::complain(&format!(
            "toolman: made a key for secrets, `{file}`; keep a copy of it"
        ));
    }
    Ok(())
}

fn shown(name: &Name, status: Status) -> Value {
    json!({"key": name.key.as_str(), "scope": name.scope.as_str(), "status": status.as_str()})
}

fn tell(as_json: bool, value: &Value, words: &str) -> anyhow::Result<i32> {
    terminal::print(&if as_json { format!("{value:#}\n") } else { format!("{words}\n") })?;
    Ok(0)
}
