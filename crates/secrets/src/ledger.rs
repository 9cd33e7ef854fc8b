//! The ledger: which secrets there are or ought to be, in plain YAML and without a value. TD-50, TD-51
//!
//! ```yaml
//! generation: 3
//! global:
//!   GITHUB_TOKEN:
//!     status: set
//! namespaces:
//!   slack:
//!     SLACK_BOT_TOKEN:
//!       status: placeholder
//! ```
//!
//! `generation` is that of the vault when both were written: an older vault was rolled back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;
use crate::files::{self, Links, Privacy};
use crate::limits::FILE_BYTES_MAX;
use crate::names::{Key, Name, Scope};

/// What is known of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It has a value.
    Set,
    /// It is wanted, and somebody has yet to set it.
    Placeholder,
    /// It ought to have a value and has none, or nobody has ever heard of it.
    Missing,
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Set => "set",
            Status::Placeholder => "placeholder",
            Status::Missing => "missing",
        }
    }
}

/// The ledger, as it was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// That of the vault that was written with it; 0 if none was.
    pub(crate) generation: u64,
    statuses: BTreeMap<Name, Status>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Document {
    generation: Option<u64>,
    global: Option<BTreeMap<String, Remark>>,
    namespaces: Option<BTreeMap<String, Option<BTreeMap<String, Remark>>>>,
}

/// What a file says of a secret: a mapping with its status, or just the status.
#[derive(Deserialize)]
#[serde(untagged)]
enum Remark {
    Mapping { status: Option<String> },
    Word(String),
    Nothing(()),
}

impl Ledger {
    /// Reads the ledger of a data directory; without one it is empty. TD-63
    pub fn read(folder: &Path) -> Result<Ledger, Error> {
        let path = file(folder);
        let wrong = |problem: String| Error::Ledger { path: path.clone(), problem };
        let bytes = files::read(&path, Privacy::Readable, Links::Refused, FILE_BYTES_MAX)?;
        let Some(bytes) = bytes else { return Ok(Ledger::default()) };
        let text = std::str::from_utf8(&bytes).map_err(|_| wrong("it is not UTF-8".into()))?;
        let is_blank = |line: &str| line.trim().is_empty() || line.trim().starts_with('#');
        if text.lines().all(is_blank) {
            return Ok(Ledger::default());
        }
        let document: Document = serde_saphyr::from_str(text).map_err(|error| {
            let error = error.to_string();
            wrong(format!("it can't be read: {}", error.lines().next().unwrap_or_default()))
        })?;
        document.ledger().map_err(wrong)
    }

    /// Writes it down; the lock must be held.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Error> {
        files::replace(&file(folder), self.text().as_bytes(), Privacy::Readable)
    }

    /// What is written of a secret.
    pub fn status(&self, name: &Name) -> Option<Status> {
        self.statuses.get(name).copied()
    }

    pub fn names(&self) -> impl Iterator<Item = (&Name, Status)> {
        self.statuses.iter().map(|(name, status)| (name, *status))
    }

    pub fn note(&mut self, name: Name, status: Status) {
        self.statuses.insert(name, status);
    }

    /// Whether there was anything to forget.
    pub fn forget(&mut self, name: &Name) -> bool {
        self.statuses.remove(name).is_some()
    }

    fn text(&self) -> String {
        let mut text =
            "# Which secrets there are. Never a value: `toolman secrets set` takes those.\n"
                .to_owned();
        if self.generation > 0 {
            _ = writeln!(text, "generation: {}", self.generation);
        }
        let global = self.statuses.iter().filter(|(name, _)| name.scope == Scope::Global);
        section(&mut text, 0, "global", global);
        let mut namespaces: BTreeMap<&str, Vec<_>> = BTreeMap::new();
        for entry in &self.statuses {
            if let Scope::Namespace(namespace) = &entry.0.scope {
                namespaces.entry(namespace).or_default().push(entry);
            }
        }
        if namespaces.is_empty() {
            text += "namespaces: {}\n";
        } else {
            text += "namespaces:\n";
        }
        for (namespace, entries) in namespaces {
            section(&mut text, 2, &spelled(namespace), entries.into_iter());
        }
        text
    }
}

impl Document {
    fn ledger(self) -> Result<Ledger, String> {
        let mut ledger =
            Ledger { generation: self.generation.unwrap_or(0), statuses: BTreeMap::new() };
        let global = (Scope::Global, self.global.unwrap_or_default());
        let namespaces = self.namespaces.unwrap_or_default().into_iter();
        let namespaces = namespaces
            .map(|(name, remarks)| (Scope::Namespace(name.into()), remarks.unwrap_or_default()));
        for (scope, remarks) in std::iter::once(global).chain(namespaces) {
            if scope.as_str().parse::<Scope>().is_err() {
                return Err("it names a namespace that can't be".into());
            }
            for (key, remark) in remarks {
                let key = Key::kept(&key).map_err(|error| format!("a name in it {error}"))?;
                let name = Name { scope: scope.clone(), key };
                ledger.statuses.insert(name, remark.status());
            }
        }
        Ok(ledger)
    }
}

impl Remark {
    fn status(&self) -> Status {
        let word = match self {
            Remark::Mapping { status } => status.as_deref().unwrap_or_default(),
            Remark::Word(word) => word,
            Remark::Nothing(()) => "",
        };
        match word.trim() {
            "set" => Status::Set,
            "placeholder" => Status::Placeholder,
            _ => Status::Missing,
        }
    }
}

/// The ledger's file.
pub fn file(folder: &Path) -> std::path::PathBuf {
    folder.join("secrets.meta.yaml")
}

fn section<'a>(
    text: &mut String,
    indent: usize,
    title: &str,
    entries: impl Iterator<Item = (&'a Name, &'a Status)>,
) {
    let mut entries = entries.peekable();
    if entries.peek().is_none() {
        _ = writeln!(text, "{:indent$}{title}: {{}}", "");
        return;
    }
    _ = writeln!(text, "{:indent$}{title}:", "");
    for (name, status) in entries {
        let (key, status) = (spelled(name.key.as_str()), status.as_str());
        _ = writeln!(text, "{:indent$}  {key}:\n{:indent$}    status: {status}", "", "");
    }
}

/// A name as YAML has it: in quotes if it could be taken for a number or a truth value.
fn spelled(name: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let words = ["y", "n", "yes", "no", "on", "off", "true", "false", "null", "nan", "inf"];
    if name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(is_plain)
        && !words.contains(&name.to_ascii_lowercase().as_str())
    {
        return name.to_owned();
    }
    serde_json::Value::from(name).to_string()
}
