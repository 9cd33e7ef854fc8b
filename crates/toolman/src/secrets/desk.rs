//! The desk: where values lie while they are edited. A folder of this user alone, in memory where there is such a
//! place, that no worker can find: its name can't be guessed, and workers can't list the folders it may be in.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use aws_lc_rs::rand;
use mcp::text::hexadecimal;
use rustix::process::geteuid;

use crate::terminal;

/// How these folders are called; what can't be guessed follows.
const NAME: &str = "toolman-secrets-";
/// How often another name is tried: somebody who sweeps may be quicker than we.
const TRIES: usize = 8;
/// The kinds of file systems that are in memory: `tmpfs` and `ramfs`.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// A folder to edit in. Wiped when dropped.
pub struct Desk {
    folder: PathBuf,
    /// Held as long as the desk is in use, and let go by the kernel if we are killed.
    _lock: File,
}

impl Desk {
    /// A desk in memory, or else in the data directory, which no worker may read either.
    pub fn open(data: &Path) -> anyhow::Result<Desk> {
        for place in places() {
            if is_in_memory(&place)
                && let Ok(desk) = Desk::make(&place)
            {
                return Ok(desk);
            }
        }
        terminal::complain("toolman: no place in memory can be written to; a file is used instead");
        Desk::make(data).with_context(|| format!("can't write to `{}`", data.display()))
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn make(place: &Path) -> io::Result<Desk> {
        for _ in 0..TRIES {
            let mut random = [0; 16];
            rand::fill(&mut random).map_err(|_| io::Error::other("no random numbers"))?;
            let folder = place.join(format!("{NAME}{}", hexadecimal(&random)));
            DirBuilder::new().mode(0o700).create(&folder)?;
            let Ok(lock) = File::open(&folder) else { continue };
            if lock.try_lock().is_ok() && folder.exists() {
                return Ok(Desk { folder, _lock: lock });
            }
        }
        Err(io::Error::other("somebody removes what is made there"))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        wipe(&self.folder);
    }
}

/// Where a desk may be: what is of this user alone comes first.
fn places() -> impl Iterator<Item = PathBuf> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let usual = format!("/run/user/{}", geteuid().as_raw());
    let usual = [usual.as_str(), "/run", "/dev/shm"].map(PathBuf::from);
    runtime.filter(|path| path.is_absolute()).into_iter().chain(usual)
}

fn is_in_memory(place: &Path) -> bool {
    let kind = rustix::fs::statfs(place).ok().and_then(|known| u64::try_from(known.f_type).ok());
    kind.is_some_and(|kind| IN_MEMORY.contains(&kind))
}

/// Wipes what killed processes have left: desks that nobody holds.
pub fn sweep(data: &Path) {
    for place in places().chain([data.to_owned()]) {
        for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
            let is_desk = entry.file_name().to_str().is_some_and(|name| name.starts_with(NAME));
            let is_ours = || {
                let metadata = entry.metadata();
                metadata.is_ok_and(|it| it.is_dir() && it.uid() == geteuid().as_raw())
            };
            if is_desk
                && is_ours()
                && let Ok(lock) = File::open(entry.path())
                && lock.try_lock().is_ok()
            {
                wipe(&entry.path());
            }
        }
    }
}

/// Overwrites and removes all files of a folder: editors leave copies beside what they edit.
fn wipe(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if let Ok(metadata) = entry.metadata()
            && metadata.is_file()
            && let Ok(mut file) = OpenOptions::new().write(true).open(entry.path())
        {
            let mut left = metadata.len();
            let zeros = [0; 4096];
            while left > 0 {
                let some = usize::try_from(left).map_or(zeros.len(), |left| left.min(zeros.len()));
                if file.write_all(&zeros[..some]).is_err() {
                    break;
                }
                left -= some as u64;
            }
            _ = file.sync_all();
        }
    }
    _ = std::fs::remove_dir_all(folder);
}
