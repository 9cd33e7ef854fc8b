//! The safe in a data directory: read by many, written by one at a time. TD-56, TD-57

use std::fs::DirBuilder;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::{self, Error};
use crate::fernet;
use crate::files::{self, Links, Privacy};
use crate::ledger::{Ledger, Status};
use crate::limits::{FILE_BYTES_MAX, WANTED_MAX};
use crate::lock::Lock;
use crate::master::{self, MasterKey, Sources};
use crate::names::{Name, Scope};
use crate::value::SecretValue;
use crate::vault::Vault;
use crate::witness::{Objection, Witness};

pub struct Store {
    folder: PathBuf,
    sources: Sources,
    /// What time it is, for the file.
    clock: fn() -> String,
    master: Mutex<Option<Arc<MasterKey>>>,
    witness: Witness,
    /// The folder, where people have to be told.
    place: Option<PathBuf>,
}

/// What the safe holds, at one moment.
pub struct Contents {
    pub vault: Vault,
    pub ledger: Ledger,
    /// The folder, where people have to be told.
    place: Option<PathBuf>,
}

/// Tells one state of the vault and its key from another without opening them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark([Option<FileMark>; 2]);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct FileMark {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl std::fmt::Debug for Store {
    fn fmt(&self, formatter: &mut std::fmt::Formatter) -> std::fmt::Result {
        formatter.debug_struct("Store").field("folder", &self.folder).finish_non_exhaustive()
    }
}

impl Store {
    /// The safe of a data directory, which may not be there yet. Nothing is read.
    pub fn new(folder: PathBuf, sources: Sources, clock: fn() -> String) -> Store {
        let witness = Witness::of(&folder, None);
        Store { folder, sources, clock, master: Mutex::default(), witness, place: None }
    }

    /// The same, which has to be named to whoever is told to set a secret: it is not the usual one.
    pub fn to_be_named(mut self) -> Store {
        self.place = Some(self.folder.clone());
        self
    }

    /// The same, which remembers in another folder how far the safe has come.
    pub fn with_memory(mut self, memory: &Path) -> Store {
        self.witness = Witness::of(&self.folder, Some(memory));
        self
    }

    pub fn vault_file(&self) -> PathBuf {
        self.folder.join("secrets.enc")
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The state of the files, for whoever wants to know when it is another.
    pub fn mark(&self) -> Mark {
        let mark = |path: PathBuf| {
            let metadata = std::fs::symlink_metadata(path).ok()?;
            let changed = (metadata.ctime(), metadata.ctime_nsec());
            Some(FileMark { inode: metadata.ino(), length: metadata.len(), changed })
        };
        Mark([mark(self.vault_file()), mark(master::usual_file(&self.folder))])
    }

    /// The master key; `None` if there is none anywhere.
    pub fn master(&self) -> Result<Option<Arc<MasterKey>>, Error> {
        let mut known = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        if known.is_none() {
            *known = MasterKey::find(&self.folder, &self.sources)?.map(Arc::new);
        }
        Ok(known.clone())
    }

    /// Makes a master key in the data directory if there is none, and nothing that needs one; its file.
    pub fn ensure_key(&self) -> Result<Option<PathBuf>, Error> {
        if self.master()?.is_some() {
            return Ok(None);
        }
        let _lock = self.lock()?;
        if self.master()?.is_some() {
            return Ok(None);
        }
        if self.vault_file().symlink_metadata().is_ok() {
            return Err(Error::NoKey { path: self.vault_file() });
        }
        let file = master::usual_file(&self.folder);
        let key = MasterKey::generate_successor(&file)?;
        files::put_in_place(&master::successor(&file), &file)?;
        self.remember(Arc::new(key));
        Ok(Some(file))
    }

    /// Everything; without files it is empty. TD-63
    pub fn read(&self) -> Result<Contents, Error> {
        // In this order: a writer replaces the vault first, so what is read is never too old for the others.
        let testimony = self.witness.recall();
        let ledger = Ledger::read(&self.folder)?;
        let path = self.vault_file();
        let bytes = files::read(&path, Privacy::Secret, Links::Refused, FILE_BYTES_MAX)?;
        let Some(bytes) = bytes else {
            let vault = Vault::new((self.clock)(), ledger.generation)?;
            return Ok(Contents { vault, ledger, place: self.place.clone() });
        };
        let master = self.master()?.ok_or_else(|| Error::NoKey { path: path.clone() })?;
        let vault = match Vault::open(&bytes, &master, &path) {
            Err(error @ Error::WrongKey { .. }) => {
                self.open_with_another(&bytes, &master)?.ok_or(error)?
            }
            opened => opened?,
        };
        if vault.generation() < ledger.generation {
            let (found, known) = (vault.generation(), ledger.generation);
            let remedy = "delete `generation` in `secrets.meta.yaml` to accept it".into();
            return Err(Error::RolledBack { path, found, known, remedy });
        }
        if let Some(Objection { known, remedy }) = testimony.objects_to(&vault) {
            return Err(Error::RolledBack { path, found: vault.generation(), known, remedy });
        }
        self.witness.see(&vault);
        Ok(Contents { vault, ledger, place: self.place.clone() })
    }

    /// Opens the vault with the key that has taken the place of the one we know, or is about to.
    fn open_with_another(&self, bytes: &[u8], known: &MasterKey) -> Result<Option<Vault>, Error> {
        let Some(file) = known.file() else { return Ok(None) };
        let replaced = MasterKey::of_file(file, Links::Followed)?;
        for key in [replaced, MasterKey::of_successor(file)?].into_iter().flatten() {
            if let Ok(vault) = Vault::open(bytes, &key, &self.vault_file()) {
                self.remember(Arc::new(key));
                return Ok(Some(vault));
            }
        }
        Ok(None)
    }

    /// Changes values and ledger together, alone.
    pub fn update<T, E: From<Error>>(
        &self,
        change: impl FnOnce(&mut Contents) -> Result<T, E>,
    ) -> Result<T, E> {
        let lock = self.lock()?;
        self.update_locked(&lock, change)
    }

    /// The same for whoever holds the lock already.
    pub fn update_locked<T, E: From<Error>>(
        &self,
        _lock: &Lock,
        change: impl FnOnce(&mut Contents) -> Result<T, E>,
    ) -> Result<T, E> {
        let mut contents = self.read()?;
        let outcome = change(&mut contents)?;
        let master = self.master()?.ok_or_else(|| Error::NoKey { path: self.vault_file() })?;
        self.finish_rotation(&master)?;
        self.write(&mut contents, &master)?;
        Ok(outcome)
    }

    /// Changes the ledger alone, for which no key is needed.
    pub fn update_ledger<T>(&self, change: impl FnOnce(&mut Ledger) -> T) -> Result<T, Error> {
        let _lock = self.lock()?;
        let mut ledger = Ledger::read(&self.folder)?;
        let outcome = change(&mut ledger);
        ledger.write(&self.folder)?;
        Ok(outcome)
    }

    /// Notes that a secret is wanted; how it stands with it. No key is needed, unless it is said to have a value.
    pub fn want(&self, name: &Name) -> Result<Status, Error> {
        let _lock = self.lock()?;
        let mut ledger = Ledger::read(&self.folder)?;
        let noted = ledger.status(name);
        // The value may be gone, though the ledger has it; without the key nobody knows.
        let is_there = || self.read().map_or(true, |contents| contents.vault.holds(name));
        if noted == Some(Status::Set) && is_there() {
            return Ok(Status::Set);
        }
        let wanted = ledger.names().filter(|(_, status)| *status == Status::Placeholder).count();
        if noted.is_none() && wanted >= WANTED_MAX {
            return Err(Error::Crowded);
        }
        ledger.note(name.clone(), Status::Placeholder);
        ledger.write(&self.folder)?;
        Ok(Status::Placeholder)
    }

    /// What a person runs to set a secret of this safe.
    pub fn command_to_set(&self, name: &Name) -> String {
        error::command(name, self.place.as_deref())
    }

    /// What is said of a secret that is not set.
    pub fn unset(&self, name: Name) -> Error {
        Error::Unset { name, place: self.place.clone() }
    }

    /// Waits to be the only writer.
    pub fn lock(&self) -> Result<Lock, Error> {
        let folder = &self.folder;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|error| {
            Error::File { path: folder.clone(), deed: "use the data directory", error }
        })?;
        Lock::take(&folder.join("secrets.lock"))
    }

    fn write(&self, contents: &mut Contents, master: &MasterKey) -> Result<(), Error> {
        let Contents { vault, ledger, .. } = contents;
        let text = vault.write(master)?;
        files::replace(&self.vault_file(), text.as_bytes(), Privacy::Secret)?;
        self.witness.testify(vault);
        ledger.generation = vault.generation();
        for name in vault.names() {
            ledger.note(name.clone(), Status::Set);
        }
        ledger.write(&self.folder)
    }

    /// Encrypts every value anew under another data key.
    pub fn renew_data_key(&self) -> Result<(), Error> {
        self.update(|contents| contents.vault.renew())
    }

    /// Takes another master key: that of `file`, made if need be, or a new one in the place of the old.
    ///
    /// Its file is told. The values are not touched.
    pub fn rotate(&self, file: Option<&Path>) -> Result<PathBuf, Error> {
        let _lock = self.lock()?;
        let mut contents = self.read()?;
        let old = self.master()?.ok_or_else(|| Error::NoKey { path: self.vault_file() })?;
        self.finish_rotation(&old)?;
        contents.vault.unwrapped();
        let Some(file) = file else {
            let file = old.file().map(Path::to_owned).ok_or_else(|| Error::KeySource {
                origin: old.origin().to_owned(),
                problem: "it can't be replaced there; name a file for the new key with \
                    `--new-key-file FILE`"
                    .into(),
            })?;
            let new = MasterKey::generate_successor(&file)?;
            self.write(&mut contents, &new)?;
            // Killed here, the key is found beside its place: see `open_with_another`.
            files::put_in_place(&master::successor(&file), &file)?;
            self.remember(Arc::new(new));
            return Ok(file);
        };
        let new = match MasterKey::of_file(file, Links::Followed)? {
            Some(new) => new,
            None => MasterKey::generate(file)?,
        };
        if let (Some(weakness), false) = (new.weakness(), self.sources.allows_weak) {
            return Err(Error::WeakKey { origin: new.origin().to_owned(), weakness });
        }
        self.write(&mut contents, &new)?;
        self.remember(Arc::new(new));
        Ok(file.to_owned())
    }

    /// Puts a key in its place that a killed rotation has left beside it.
    fn finish_rotation(&self, master: &MasterKey) -> Result<(), Error> {
        let Some(file) = master.file().filter(|_| master.lies_beside()) else { return Ok(()) };
        files::put_in_place(&master::successor(file), file)?;
        if let Some(key) = MasterKey::of_file(file, Links::Followed)? {
            self.remember(Arc::new(key));
        }
        Ok(())
    }

    fn remember(&self, master: Arc<MasterKey>) {
        *self.master.lock().unwrap_or_else(PoisonError::into_inner) = Some(master);
    }

    /// The text of a file that ToolDock reads. TD-54
    pub fn export_fernet(&self) -> Result<String, Error> {
        let contents = self.read()?;
        let master = self.master()?.ok_or_else(|| Error::NoKey { path: self.vault_file() })?;
        fernet::write(&contents.all()?, &master, (self.clock)())
    }
}

impl Contents {
    /// The secret that counts for a name: of its namespace if it has one, else the global one. TD-60
    pub fn found(&self, name: &Name) -> Option<Name> {
        if self.vault.holds(name) {
            return Some(name.clone());
        }
        let global = Name { scope: Scope::Global, key: name.key.clone() };
        self.vault.holds(&global).then_some(global)
    }

    /// The value that counts for a name.
    pub fn value(&self, name: &Name) -> Result<SecretValue, Error> {
        let unset = || Error::Unset {
            name: Name { scope: Scope::Global, key: name.key.clone() },
            place: self.place.clone(),
        };
        let found = self.found(name).ok_or_else(unset)?;
        self.vault.value(&found)?.ok_or_else(unset)
    }

    /// Which value counts for a name, and since when: another answer means another value.
    pub fn version(&self, name: &Name) -> Option<(Scope, u64)> {
        let found = self.found(name)?;
        let generation = self.vault.set_in(&found)?;
        Some((found.scope, generation))
    }

    /// What a namespace is told of a secret. TD-64
    pub fn status(&self, name: &Name) -> Status {
        if self.found(name).is_some() {
            return Status::Set;
        }
        let global = Name { scope: Scope::Global, key: name.key.clone() };
        let noted = [name, &global].into_iter().find_map(|name| self.ledger.status(name));
        match noted {
            Some(Status::Placeholder) => Status::Placeholder,
            // It says `set`, but the value is gone.
            _ => Status::Missing,
        }
    }

    /// Every secret that is known, with what is known of it.
    pub fn statuses(&self) -> Vec<(Name, Status)> {
        let mut names: Vec<Name> = self.vault.names().cloned().collect();
        names.extend(self.ledger.names().map(|(name, _)| name.clone()));
        names.sort();
        names.dedup();
        let status = |name: &Name| match self.ledger.status(name) {
            _ if self.vault.holds(name) => Status::Set,
            Some(Status::Placeholder) => Status::Placeholder,
            _ => Status::Missing,
        };
        names.into_iter().map(|name| (name.clone(), status(&name))).collect()
    }

    /// Every value.
    pub fn all(&self) -> Result<Vec<(Name, SecretValue)>, Error> {
        let mut all = Vec::new();
        for name in self.vault.names() {
            if let Some(value) = self.vault.value(name)? {
                all.push((name.clone(), value));
            }
        }
        Ok(all)
    }
}
