//! The witness: how far a safe has come, remembered apart from it.
//!
//! Who puts back older copies of both the vault and the ledger is noticed by what he has not put back: the memory
//! of a running process, and a small file outside of the data directory. It is no secret, and it is bound to one
//! safe by the moment that was made in: another one in its place begins anew.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use crate::files::{self, Links, Privacy};
use crate::limits::MASTER_BYTES_MAX;
use crate::vault::Vault;

/// What is known of a safe.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Seen {
    created_at: String,
    generation: u64,
}

impl Seen {
    fn is_later_than(&self, vault: &Vault) -> bool {
        self.created_at == vault.created_at() && self.generation > vault.generation()
    }
}

pub(crate) struct Witness {
    /// Where it is written down, if anywhere.
    file: Option<PathBuf>,
    seen: Mutex<Option<Seen>>,
}

/// What a witness knew at one moment.
pub(crate) struct Testimony {
    seen: Option<Seen>,
    written: Option<Seen>,
    file: Option<PathBuf>,
}

/// A generation that was seen, and what is to be done to accept an older one.
pub(crate) struct Objection {
    pub known: u64,
    pub remedy: String,
}

impl Witness {
    /// The witness of the safe in a folder, which may write into another one.
    pub fn of(folder: &Path, memory: Option<&Path>) -> Witness {
        let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
        let name = digest(&SHA256, folder.as_os_str().as_encoded_bytes());
        let name = URL_SAFE_NO_PAD.encode(&name.as_ref()[..16]);
        Witness { file: memory.map(|memory| memory.join(name)), seen: Mutex::default() }
    }

    /// What is known now, to be asked before a vault is read: while it is, a later one may be written.
    pub fn recall(&self) -> Testimony {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Testimony { seen, written: self.read(), file: self.file.clone() }
    }

    /// Remembers a vault that was read, unless a later one was.
    pub fn see(&self, vault: &Vault) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if !seen.as_ref().is_some_and(|seen| seen.is_later_than(vault)) {
            let (created_at, generation) = (vault.created_at().to_owned(), vault.generation());
            *seen = Some(Seen { created_at, generation });
        }
    }

    /// Writes down that a vault was written; where that can't be, nothing else is worse.
    pub fn testify(&self, vault: &Vault) {
        self.see(vault);
        let Some((file, folder)) = self.file.as_ref().and_then(|file| Some((file, file.parent()?)))
        else {
            return;
        };
        let text = format!("{} {}\n", vault.generation(), vault.created_at());
        if DirBuilder::new().recursive(true).mode(0o700).create(folder).is_ok() {
            _ = files::replace(file, text.as_bytes(), Privacy::Secret);
        }
    }

    fn read(&self) -> Option<Seen> {
        let file = self.file.as_ref()?;
        let bytes = files::read(file, Privacy::Secret, Links::Refused, MASTER_BYTES_MAX);
        let bytes = bytes.ok().flatten()?;
        let (generation, created_at) = std::str::from_utf8(&bytes).ok()?.trim().split_once(' ')?;
        Some(Seen { created_at: created_at.to_owned(), generation: generation.parse().ok()? })
    }
}

impl Testimony {
    /// What speaks against a vault that was read after this was recalled: that a later one was seen before.
    pub fn objects_to(self, vault: &Vault) -> Option<Objection> {
        let is_later = |seen: &Seen| seen.is_later_than(vault);
        if let Some(seen) = self.seen.filter(is_later) {
            let remedy = "start toolman anew to accept it".to_owned();
            return Some(Objection { known: seen.generation, remedy });
        }
        let (file, seen) = (self.file?, self.written.filter(is_later)?);
        let remedy = format!("delete `{}` to accept it", file.display());
        Some(Objection { known: seen.generation, remedy })
    }
}
