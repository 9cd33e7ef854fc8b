//! What can go wrong with the safe, in words that never hold a value.

use std::io;
use std::path::PathBuf;

use crate::names::{Name, Scope};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "wrong key or damaged file: `{}` does not open with the key from {origin}",
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

    #[error("`{}` is of version {version}, which this toolman does not know", .path.display())]
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

    #[error("secret `{}` is not set; run `toolman secrets set {}{}`", .0.key, .0.key, option(.0))]
    Unset(Name),

    #[error("the system gives no random numbers, or can't encrypt")]
    Crypto,
}

/// How a command line names the scope of a secret, where it needs to.
fn option(name: &Name) -> String {
    match &name.scope {
        Scope::Global => String::new(),
        Scope::Namespace(namespace) => format!(" --scope {namespace}"),
    }
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
