//! The library of saved toolsets: `toolsets.json` of the data directory.
//!
//! Beside it `equipped-toolset` has the name of the one that is equipped, so that every member of the file is
//! a toolset, as other readers of it expect. What callers have chosen is in `selections.json`.

mod selections;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use audit::calendar;
use catalog::toolset::{Owner, Toolset};
use config::library::{Bundle, bundle, bytes, saved, text_at};
use gateway::library::{Document, Store};

use crate::cli::Cli;
use crate::data_dir;
use crate::toolset::exchange::hypertool;

/// How long another process may hold the lock: it reads and writes two files.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(10);
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// Bytes of the file with the name of the equipped toolset.
const EQUIPPED_BYTES_MAX: u64 = 1024;

#[derive(Debug)]
pub struct Library {
    /// The data directory, or why there is none: that is told to whoever wants to save something.
    folder: Result<PathBuf, String>,
    /// Where hypertool keeps its files, which are read as they are.
    hypertool: Option<PathBuf>,
    /// Set once it was said that they can't be read.
    has_complained: AtomicBool,
}

impl Library {
    pub fn of(cli: &Cli) -> Library {
        Library {
            folder: data_dir::folder(cli).map_err(|misuse| misuse.to_string()),
            hypertool: hypertool().filter(|folder| {
                ["toolsets.json", "config.json"].iter().any(|file| folder.join(file).is_file())
            }),
            has_complained: AtomicBool::new(false),
        }
    }

    /// The same with what stands in hypertool's own files, where we have nothing of that name. HT-34, HT-38
    fn with_borrowed(&self, mut document: Document) -> Document {
        let Some(folder) = &self.hypertool else { return document };
        let bundle = bundle(folder).unwrap_or_else(|fault| {
            if !self.has_complained.swap(true, Ordering::Relaxed) {
                tracing::warn!("toolsets of hypertool can't be read: {fault}");
            }
            Bundle::default()
        });
        for toolset in bundle.toolsets {
            let toolset = Toolset { owner: Owner::Operator, ..toolset };
            if toolset.check().is_ok() && !document.toolsets.contains_key(&toolset.name) {
                document.borrowed.insert(toolset.name.clone());
                document.toolsets.insert(toolset.name.clone(), Arc::new(toolset));
            }
        }
        document
    }

    /// The folder, made if need be.
    fn folder(&self) -> Result<&Path, String> {
        let folder = self.folder.as_ref().map_err(Clone::clone)?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
            let folder = folder.display();
            format!("can't use the data directory `{folder}`: {error}; name another one")
        })?;
        Ok(folder)
    }
}

impl Store for Library {
    fn read(&self) -> Result<Document, String> {
        let Ok(folder) = &self.folder else { return Ok(self.with_borrowed(Document::default())) };
        let text = contents(folder)?;
        Ok(self.with_borrowed(document(folder, &members(folder, &text)?)))
    }

    fn update(
        &self,
        change: &mut dyn FnMut(&mut Document) -> Result<(), String>,
    ) -> Result<Document, String> {
        let folder = self.folder()?;
        let _lock = lock(&folder.join("toolsets.lock"))?;
        let text = contents(folder)?;
        let members = members(folder, &text)?;
        let before = self.with_borrowed(document(folder, &members));
        let mut after = before.clone();
        change(&mut after)?;
        let mut borrowed = before.borrowed.iter();
        if let Some(key) = borrowed.find(|key| !after.toolsets.contains_key(*key)) {
            let folder = self.hypertool.as_deref().unwrap_or(Path::new("")).display();
            return Err(format!("`{key}` is hypertool's, in `{folder}`; delete it there"));
        }
        let mut changes: Vec<Fresh> = Vec::new();
        if !is_same(&before, &after) {
            stamp(&before, &mut after);
            let text = rewritten(&members, &before, &after);
            changes.push(Fresh::write(&folder.join("toolsets.json"), &text)?);
        }
        if after.last_equipped != before.last_equipped {
            let name = after.last_equipped.as_deref().unwrap_or_default();
            changes.push(Fresh::write(&folder.join("equipped-toolset"), &format!("{name}\n"))?);
        }
        // Both are on the disk by now: what is left to do hardly fails.
        changes.into_iter().try_for_each(Fresh::put_in_place)?;
        Ok(after)
    }
}

fn contents(folder: &Path) -> Result<String, String> {
    let text = text_at(&folder.join("toolsets.json")).map_err(|fault| fault.to_string())?;
    Ok(text.unwrap_or_else(|| "{}".to_owned()))
}

fn members<'t>(folder: &Path, text: &'t str) -> Result<Vec<saved::Saved<'t>>, String> {
    saved::read(&folder.join("toolsets.json"), text).map_err(|fault| {
        format!("{fault}; mend the file, or move it away to begin anew: it is not written to")
    })
}

fn document(folder: &Path, members: &[saved::Saved<'_>]) -> Document {
    let toolsets = members.iter().filter_map(|member| member.toolset.clone());
    let toolsets: BTreeMap<_, _> =
        toolsets.map(|toolset| (toolset.key().into(), Arc::new(toolset))).collect();
    // Without it nothing is equipped: nothing worse.
    let equipped = bytes(&folder.join("equipped-toolset"), EQUIPPED_BYTES_MAX).unwrap_or_default();
    let equipped = String::from_utf8_lossy(&equipped);
    let equipped = Some(equipped.trim()).filter(|name| !name.is_empty());
    Document { toolsets, last_equipped: equipped.map(Into::into), ..Document::default() }
}

/// Whether there are the same toolsets: what nobody has changed is still the same value.
fn is_same(before: &Document, after: &Document) -> bool {
    let mut pairs = before.toolsets.iter().zip(&after.toolsets);
    before.toolsets.len() == after.toolsets.len()
        && pairs.all(|(old, new)| old.0 == new.0 && Arc::ptr_eq(old.1, new.1))
}

/// Writes into what has changed when it has.
fn stamp(before: &Document, after: &mut Document) {
    let now = calendar::moment_text(SystemTime::now());
    for (name, toolset) in &mut after.toolsets {
        let known = before.toolsets.get(name);
        if known.is_some_and(|known| Arc::ptr_eq(known, toolset)) {
            continue;
        }
        let toolset = Arc::make_mut(toolset);
        let created = known.and_then(|known| known.created_at.clone());
        toolset.created_at = toolset.created_at.take().or(created).or_else(|| Some(now.clone()));
        toolset.last_modified = Some(now.clone());
    }
}

/// The file with the changes: what has not changed stays as it was written, in its place.
fn rewritten(members: &[saved::Saved<'_>], before: &Document, after: &Document) -> String {
    let mut written: Vec<(String, String)> = Vec::new();
    let mut known = BTreeSet::new();
    for member in members {
        let Some(key) = member.toolset.as_ref().map(Toolset::key) else {
            written.push((member.name.clone(), member.text.to_owned()));
            continue;
        };
        if !known.insert(key.clone()) {
            continue; // It stands there twice, under two names; they are one.
        }
        let text = match (before.toolsets.get(&*key), after.toolsets.get(&*key)) {
            (Some(old), Some(new)) if Arc::ptr_eq(old, new) => member.text.to_owned(),
            (_, Some(new)) => saved::member(new, Some(member.text)),
            (_, None) => continue,
        };
        written.push((name_in_file(&key, after), text));
    }
    let is_borrowed = |key: &str, toolset: &Arc<Toolset>| {
        let former = before.toolsets.get(key).filter(|_| before.borrowed.contains(key));
        former.is_some_and(|former| Arc::ptr_eq(former, toolset))
    };
    let new = after.toolsets.iter().filter(|(key, _)| !known.contains(&***key));
    let new = new.filter(|(key, toolset)| !is_borrowed(key, toolset));
    written.extend(new.map(|(key, new)| (name_in_file(key, after), saved::member(new, None))));
    saved::file(written.iter().map(|(name, text)| (&**name, text.clone())))
}

/// The member that a toolset is in the file: its name, unless that is another one's, the operator's first.
fn name_in_file(key: &str, all: &Document) -> String {
    let Some(toolset) = all.toolsets.get(key) else { return key.to_owned() };
    let same = all.toolsets.values().filter(|other| other.name == toolset.name);
    let first = same.min_by_key(|other| (other.owner != Owner::Operator, other.key()));
    match first {
        Some(first) if Arc::ptr_eq(first, toolset) => toolset.name.to_string(),
        _ => key.to_owned(),
    }
}

/// Held until it is dropped; the system lets go of it however the process ends.
fn lock(path: &Path) -> Result<File, String> {
    let wrong = |error: io::Error| format!("can't lock `{}`: {error}", path.display());
    let mut options = OpenOptions::new();
    let file = options.create(true).truncate(false).write(true).mode(0o600).open(path);
    let file = file.map_err(wrong)?;
    let started = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::Error(error)) => return Err(wrong(error)),
            Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_WAIT_MAX => {
                let path = path.display();
                return Err(format!("another process holds `{path}`; try again when it has ended"));
            }
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
        }
    }
}

/// A new text of a file, on the disk beside it.
struct Fresh {
    path: PathBuf,
    fresh: PathBuf,
}

impl Fresh {
    /// The lock must be held: what a process has left that was killed is overwritten.
    fn write(path: &Path, text: &str) -> Result<Fresh, String> {
        // A link to the file stays one.
        let path = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let fresh = path.with_extension("new");
        let wrong =
            |error| format!("can't write `{}`: {error}; nothing was saved", fresh.display());
        let mut options = OpenOptions::new();
        let file = options.create(true).truncate(true).write(true).mode(0o600).open(&fresh);
        let mut file = file.map_err(wrong)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(wrong)?;
        Ok(Fresh { path, fresh })
    }

    fn put_in_place(self) -> Result<(), String> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        let renamed = std::fs::rename(&self.fresh, &self.path);
        let written = renamed.and_then(|()| File::open(folder)?.sync_all());
        written.map_err(|error| format!("can't replace `{}`: {error}", self.path.display()))
    }
}
