//! What can go wrong with the safe, in words that never hold a value.

use std::io;
use std::path::{Path, PathBuf};

use crate::limits::WANTED_MAX;
use crate::names::{Name, Scope};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "wrong key or damaged file: `{}` does not open with the key from {origin}; \
         give the key that it was written with, or put a copy of it back",
        .path.display()
    )]
    WrongKey { path: PathBuf, origin: String },

    #[error("`{}` is damaged: {problem}; put a copy of it back", .path.display())]
    Damaged { path: PathBuf, problem: &'static str },

    #[error(
        "`{}` was changed by somebody without the key: an entry is missing, added or in another \
         place; put a copy of it back",
        .path.display()
    )]
    Altered { path: PathBuf },

    #[error(
        "`{}` was rolled back: it is of generation {found}, but generation {known} was written; \
         put the newest copy back, or {remedy}",
        .path.display()
    )]
    RolledBack { path: PathBuf, found: u64, known: u64, remedy: String },

    #[error("`{}` is of version {version}, which this toolman does not know; use a newer one", .path.display())]
    Version { path: PathBuf, version: u64 },

    #[error(
        "there is no key for `{}`; set SECRETS_KEY_FILE or SECRETS_KEY, or pass `--key-file FILE`",
        .path.display()
    )]
    NoKey { path: PathBuf },

    #[error(
        "the master key from {origin} {weakness}; use a random one of 32 characters or more, or \
         set ALLOW_INSECURE_SECRETS=1 where nothing is at stake"
    )]
    WeakKey { origin: String, weakness: &'static str },

    #[error("can't take the master key from {origin}: {problem}")]
    KeySource { origin: String, problem: String },

    #[error("the secrets are locked by pid {pid}; try again when it has ended")]
    Locked { pid: String },

    #[error("`{}` {problem}", .path.display())]
    Distrusted { path: PathBuf, problem: String },

    #[error("can't {deed} `{}`: {error}", .path.display())]
    File { path: PathBuf, deed: &'static str, error: io::Error },

    #[error("`{}`: {problem}; mend the file: it is not written to", .path.display())]
    Ledger { path: PathBuf, problem: String },

    #[error("secret `{}` is not set; run `{}`", .name.key, command(.name, .place.as_deref()))]
    Unset {
        name: Name,
        /// Where it is looked for, if that has to be said.
        place: Option<PathBuf>,
    },

    #[error(
        "{WANTED_MAX} secrets are wanted and not set, which is all that there may be; set some, or remove them \
         with `toolman secrets rm KEY`"
    )]
    Crowded,

    #[error(
        "the system gives no random numbers, or can't encrypt; see its own log, and start anew"
    )]
    Crypto,
}

/// What sets a secret: it names the scope and the data directory where it needs to.
pub(crate) fn command(name: &Name, place: Option<&Path>) -> String {
    let mut text = format!("toolman secrets set {}", name.key);
    if let Scope::Namespace(namespace) = &name.scope {
        text += &format!(" --scope {namespace}");
    }
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    if let Some(place) = place.map(|place| place.display().to_string()) {
        text += " --data-dir ";
        if place.chars().all(is_plain) {
            text += &place;
        } else {
            text += &format!("'{}'", place.replace('\'', r"'\''"));
        }
    }
    text
}

impl Error {
    /// Whether it is for whoever has set it up: the use is wrong, not the world.
    pub fn is_misuse(&self) -> bool {
        matches!(
            self,
            Error::NoKey { .. }
                | Error::WeakKey { .. }
                | Error::KeySource { .. }
                | Error::Distrusted { .. }
        )
    }
}

/// Why a text can't be the value of a secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ValueError {
    #[error("the value is empty; nothing was set")]
    Empty,
    #[error("the value has over 64 KiB; nothing was set")]
    TooLong,
    #[error("the value holds a NUL, which no process can be given; nothing was set")]
    Nul,
    #[error("the value is not UTF-8; nothing was set")]
    NotText,
}
