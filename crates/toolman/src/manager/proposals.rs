//! Servers of the registry that a model has proposed: shown to a person, who has them written into `tools.toml`.
//!
//! Nothing is started by that; whoever starts toolman the next time starts them.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use config::Surroundings;
use manager::beneath::Root;
use manager::sources::proposal::{FOLDER, Proposal};
use mcp::text::tame;

use super::diff::diff;
use crate::cli::Misuse;
use crate::host;

/// What all of them are called with, as files are with their namespace.
const KIND: &str = "servers";

/// All that wait, by the names that `toolman approve` takes; of those that can't be read, why.
pub fn all_waiting(data: &Root) -> anyhow::Result<Vec<(String, Result<Proposal, String>)>> {
    let mut found = Vec::new();
    for file in data.names(FOLDER)? {
        let Some(name) = file.strip_suffix(".json").filter(|name| !name.starts_with('.')) else {
            continue;
        };
        if let Some(proposal) = Proposal::read(data, name).transpose() {
            found.push((format!("{KIND}/{name}"), proposal.map_err(|error| error.to_string())));
        }
    }
    Ok(found)
}

/// What a person must know of one: who says so, what is started, what it is handed.
pub fn shown(proposal: &Proposal) -> String {
    let mut text = format!(
        "proposed by a model, from `{}` of the registry; with your rights it will run:\n{}",
        tame(&proposal.server),
        diff("", &proposal.entry)
    );
    if !proposal.secrets.is_empty() {
        _ = writeln!(text, "it is handed the secrets {}", listed(&proposal.secrets));
    }
    if !proposal.to_fill.is_empty() {
        let names = listed(&proposal.to_fill);
        _ = writeln!(text, "set these variables before you start toolman, or it won't: {names}");
    }
    text
}

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", tame(name))).collect::<Vec<_>>().join(", ")
}

/// Throws one away, if it is still what was shown; whether it was.
pub fn reject(data: &Root, shown: &Proposal) -> anyhow::Result<bool> {
    let _lock = data.lock("manager.lock")?;
    if Proposal::read(data, &shown.namespace)?.as_ref() != Some(shown) {
        return Ok(false);
    }
    Ok(data.remove(&format!("{FOLDER}/{}.json", shown.namespace))?)
}

/// Throws one away that can't be read; whether it still was such a one.
pub fn reject_unread(data: &Root, name: &str) -> anyhow::Result<bool> {
    let _lock = data.lock("manager.lock")?;
    let name = name.strip_prefix(KIND).and_then(|name| name.strip_prefix('/')).unwrap_or(name);
    if Proposal::read(data, name).is_ok() {
        return Ok(false);
    }
    Ok(data.remove(&format!("{FOLDER}/{name}.json"))?)
}

/// Writes one into the configuration, if it is still what was shown; where, if it was.
pub fn approve(data: &Root, shown: &Proposal, file: &Path) -> anyhow::Result<Option<PathBuf>> {
    let _lock = data.lock("manager.lock")?;
    if Proposal::read(data, &shown.namespace)?.as_ref() != Some(shown) {
        return Ok(None);
    }
    // A link leads to the file that is meant.
    let file = fs::canonicalize(file)
        .map_err(|error| Misuse(format!("can't use `{}`: {error}", file.display())))?;
    let before = fs::read_to_string(&file).with_context(|| unread(&file))?;
    let after = with_entry(&before, &shown.entry);
    check(&file, &before, &after, shown)?;
    replace(&file, &before, &after)?;
    data.remove(&format!("{FOLDER}/{}.json", shown.namespace))?;
    Ok(Some(file))
}

fn unread(file: &Path) -> String {
    format!("can't read `{}`", file.display())
}

/// A configuration with one more entry at its end; nothing of it is touched.
fn with_entry(text: &str, entry: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{entry}")
}

/// Refuses what would not be a good configuration with exactly one more server.
fn check(file: &Path, before: &str, after: &str, shown: &Proposal) -> Result<(), Misuse> {
    let folder = file.parent().unwrap_or(Path::new("/"));
    // What a person has yet to set is told; it is no fault of the file.
    let environment = |name: &str| {
        let is_told = shown.to_fill.iter().any(|told| told == name);
        std::env::var(name).ok().or_else(|| is_told.then(|| "1".to_owned()))
    };
    let surroundings = Surroundings { file, folder, environment: &environment };
    let by_hand = |problem: &str| {
        Misuse(format!(
            "{problem}\nnothing was changed; add the entry to `{}` by hand, or throw it away with `--reject`",
            file.display()
        ))
    };
    let read = |text: &str| config::parse(text, &surroundings);
    let old = read(before).map_err(|faults| host::misuse(&faults))?;
    let new = read(after).map_err(|faults| by_hand(&host::misuse(&faults).to_string()))?;
    let is_it = |server: &config::Server| server.namespace.as_str() == shown.namespace;
    if old.servers.iter().any(is_it) {
        let name = tame(&shown.namespace);
        return Err(by_hand(&format!("the file has a server `{name}` already")));
    }
    if new.servers.len() != old.servers.len() + 1 || !new.servers.iter().any(is_it) {
        return Err(by_hand("the file is no `tools.toml` that an entry can be added to"));
    }
    Ok(())
}

/// Replaces a file at once, unless it is not what it was; its mode stays.
fn replace(file: &Path, before: &str, after: &str) -> anyhow::Result<()> {
    let mut name = file.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.new", std::process::id()));
    let fresh = file.with_file_name(name);
    let written = || -> anyhow::Result<()> {
        _ = fs::remove_file(&fresh);
        let mut options = OpenOptions::new();
        let mut new = options.write(true).create_new(true).mode(0o600).open(&fresh)?;
        new.write_all(after.as_bytes())?;
        new.set_permissions(fs::metadata(file)?.permissions())?;
        new.sync_all()?;
        if fs::read_to_string(file)? != before {
            anyhow::bail!("somebody has changed it meanwhile; look again");
        }
        Ok(fs::rename(&fresh, file)?)
    };
    written()
        .inspect_err(|_| _ = fs::remove_file(&fresh))
        .with_context(|| format!("can't write `{}`", file.display()))
}

#[cfg(test)]
mod tests {
    use super::with_entry;

    #[test]
    fn entry_stands_apart_from_what_was_there() {
        assert_eq!(with_entry("", "[[servers]]\n"), "[[servers]]\n");
        for before in ["# mine", "# mine\n", "# mine\n\n"] {
            assert_eq!(with_entry(before, "[[servers]]\n"), "# mine\n\n[[servers]]\n");
        }
    }
}
