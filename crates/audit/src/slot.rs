//! A slot: the right to write a chain, held by one process at a time.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use crate::chain::{Link, hash};
use crate::entry::Event;
use crate::error::Error;
use crate::files::{self, FileName};
use crate::limits::SLOTS_MAX;
use crate::tail::{self, Tail};

pub struct Slot {
    pub number: usize,
    /// Where its chain has ended.
    pub link: Link,
    /// What is to be said of a line that a former process has left unfinished.
    pub torn: Option<Event<'static>>,
    /// Held for as long as the slot is; the system lets go of it however the process ends.
    _lock: File,
}

impl Slot {
    /// Takes the first slot that is free.
    pub fn take(folder: &Path) -> Result<Slot, Error> {
        for number in 0..SLOTS_MAX {
            let path = folder.join(format!("slot-{number}.lock"));
            let mut options = OpenOptions::new();
            let lock = options.create(true).truncate(false).write(true).mode(0o600).open(&path);
            let lock = lock.map_err(Error::at(&path))?;
            match lock.try_lock() {
                Ok(()) => return Slot::go_on(folder, number, lock),
                Err(TryLockError::WouldBlock) => {}
                Err(TryLockError::Error(error)) => return Err(Error::at(&path)(error)),
            }
        }
        Err(Error::Crowded(folder.to_owned()))
    }

    /// Finds where the chain of a slot has ended.
    fn go_on(folder: &Path, number: usize, lock: File) -> Result<Slot, Error> {
        let mut slot = Slot { number, link: Link::default(), torn: None, _lock: lock };
        let files: Vec<FileName> = files::list(folder)?;
        for file in files.into_iter().rev().filter(|file| file.slot == number) {
            let path = file.in_folder(folder);
            let Tail { line, torn, .. } = tail::read(&path).map_err(Error::at(&path))?;
            if !torn.is_empty() && slot.torn.is_none() {
                slot.torn = Some(Event::Torn { bytes: torn.len() as u64, sha256: hash(&torn) });
            }
            if let Some(line) = line {
                slot.link = Link::of(&line);
                break;
            }
        }
        Ok(slot)
    }
}
