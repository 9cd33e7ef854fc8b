//! Files beneath one folder and nowhere else, whatever anybody does to that folder meanwhile.
//!
//! The kernel resolves each path, from an open folder, without `..`, links and other file systems' tricks; there
//! is no moment between looking and opening.

use std::ffi::CString;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rustix::fs::{
    AtFlags, Dir, FileType, Mode, OFlags, RenameFlags, ResolveFlags, fstat, mkdirat, openat2,
    renameat, renameat_with, statat, unlinkat,
};
use rustix::io::Errno;

use crate::error::Error;
use crate::limits::{ENTRIES_MAX, LOCK_PAUSE, LOCK_WAIT_MAX};

const BENEATH: ResolveFlags =
    ResolveFlags::BENEATH.union(ResolveFlags::NO_SYMLINKS).union(ResolveFlags::NO_MAGICLINKS);
const FOLDER: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::CLOEXEC);

/// An open folder, and the paths in it that can be used. Paths are relative, with `/` between names.
#[derive(Debug)]
pub struct Root {
    path: PathBuf,
    folder: OwnedFd,
}

impl Root {
    /// Opens a folder, which is made if need be.
    pub fn open(path: &Path) -> Result<Root, Error> {
        use std::os::unix::fs::DirBuilderExt as _;
        let wrong = |error| failed(&path.display().to_string(), "used", error);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(wrong)?;
        let path = std::fs::canonicalize(path).map_err(wrong)?;
        let folder = rustix::fs::open(&path, FOLDER, Mode::empty()).map_err(|e| wrong(e.into()))?;
        Ok(Root { path, folder })
    }

    /// Where the folder was when it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A path as people see it.
    pub fn shown(&self, path: &str) -> String {
        self.path.join(path).display().to_string()
    }

    /// Reads a file; `None` if there is none.
    pub fn read(&self, path: &str, bytes_max: usize) -> Result<Option<Vec<u8>>, Error> {
        // A pipe would be waited for.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOFOLLOW;
        let Some(file) = self.resolve(path, flags)? else { return Ok(None) };
        let status = fstat(&file).map_err(|error| failed(path, "read", error.into()))?;
        if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile {
            return Err(Error::Path {
                path: path.into(),
                problem: "is no plain file; remove it, or use another name",
            });
        }
        let mut bytes = Vec::new();
        let most = bytes_max as u64 + 1;
        let read = File::from(file).take(most).read_to_end(&mut bytes);
        read.map_err(|error| failed(path, "read", error))?;
        if bytes.len() > bytes_max {
            return Err(Error::Path {
                path: path.into(),
                problem: "is too large to be read; split it",
            });
        }
        Ok(Some(bytes))
    }

    /// The same for text.
    pub fn read_text(&self, path: &str, bytes_max: usize) -> Result<Option<String>, Error> {
        let Some(bytes) = self.read(path, bytes_max)? else { return Ok(None) };
        let text = String::from_utf8(bytes);
        text.map(Some).map_err(|_| Error::Path {
            path: path.into(),
            problem: "is not UTF-8; save it as UTF-8",
        })
    }

    /// Replaces a file at once: it holds the old or the new bytes, never a part. Its folder must be there.
    pub fn replace(&self, path: &str, bytes: &[u8]) -> Result<(), Error> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (folder, name) = self.parent(path)?;
        match statat(&folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(status) if FileType::from_raw_mode(status.st_mode) != FileType::RegularFile => {
                return Err(Error::Path {
                    path: path.into(),
                    problem: "is no plain file; remove it, or use another name",
                });
            }
            _ => {}
        }
        let wrong = |error: io::Error| failed(path, "written", error);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let fresh = format!(".new-{}-{count}", std::process::id());
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::CLOEXEC;
        // What was left by one that was killed under the same number.
        _ = unlinkat(&folder, &fresh, AtFlags::empty());
        let mode = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::ROTH;
        let file = openat2(&folder, &fresh, flags, mode, BENEATH).map_err(|e| wrong(e.into()))?;
        let mut file = File::from(file);
        let written = file
            .write_all(bytes)
            .and_then(|()| file.sync_all())
            .and_then(|()| Ok(renameat(&folder, &fresh, &folder, name)?));
        if let Err(error) = written {
            _ = unlinkat(&folder, &fresh, AtFlags::empty());
            return Err(wrong(error));
        }
        rustix::fs::fsync(&folder).map_err(|error| wrong(error.into()))
    }

    /// Removes a file; whether there was one.
    pub fn remove(&self, path: &str) -> Result<bool, Error> {
        let (folder, name) = self.parent(path)?;
        match unlinkat(&folder, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(failed(path, "removed", error.into())),
        }
    }

    /// Makes a folder and those above it; whether it is new.
    pub fn make_folder(&self, path: &str) -> Result<bool, Error> {
        let mut is_new = false;
        let ends = path.match_indices('/').map(|(at, _)| at).chain([path.len()]);
        for end in ends {
            let (folder, name) = self.parent(&path[..end])?;
            is_new = match mkdirat(&folder, name, Mode::RWXU) {
                Ok(()) => true,
                Err(Errno::EXIST) => false,
                Err(error) => return Err(failed(path, "made", error.into())),
            };
        }
        // It may be a file, or a link to elsewhere.
        self.folder(path)?;
        Ok(is_new)
    }

    /// Whether there is such a folder.
    pub fn has_folder(&self, path: &str) -> Result<bool, Error> {
        Ok(self.resolve(path, FOLDER)?.is_some())
    }

    /// The names in a folder, sorted; none if it is not there.
    pub fn names(&self, path: &str) -> Result<Vec<String>, Error> {
        let Some(folder) = self.resolve(path, FOLDER)? else { return Ok(Vec::new()) };
        let entries =
            Dir::read_from(&folder).map_err(|error| failed(path, "read", error.into()))?;
        let name = |entry: rustix::io::Result<rustix::fs::DirEntry>| {
            entry.ok()?.file_name().to_str().ok().map(str::to_owned)
        };
        let names = entries.filter_map(name).filter(|name| name != "." && name != "..");
        let mut names: Vec<_> = names.take(ENTRIES_MAX).collect();
        names.sort();
        Ok(names)
    }

    /// Removes a folder with all that is in it; whether there was one. Links are removed, not followed.
    ///
    /// It vanishes at once, and is emptied afterwards.
    pub fn remove_folder(&self, path: &str) -> Result<bool, Error> {
        if !self.has_folder(path)? {
            return Ok(false);
        }
        let (parent, name) = self.parent(path)?;
        let gone = format!(".gone-{}-{name}", std::process::id());
        let wrong = |error: Errno| failed(path, "removed", error.into());
        _ = empty(&parent, &gone);
        renameat_with(&parent, name, &parent, &gone, RenameFlags::NOREPLACE).map_err(wrong)?;
        empty(&parent, &gone).map_err(wrong)?;
        Ok(true)
    }

    /// Removes what killed processes left in a folder: files that were never finished, or folders that were to go.
    pub fn sweep(&self, path: &str, prefix: &str) -> Result<(), Error> {
        for name in self.names(path)?.iter().filter(|name| name.starts_with(prefix)) {
            let Some(folder) = self.resolve(path, FOLDER)? else { return Ok(()) };
            empty(&folder, name).map_err(|error| failed(path, "swept", error.into()))?;
        }
        Ok(())
    }

    /// Gives a folder another name, which nothing has yet.
    pub fn rename_folder(&self, from: &str, to: &str) -> Result<(), Error> {
        let ((old, old_name), (new, new_name)) = (self.parent(from)?, self.parent(to)?);
        renameat_with(&old, old_name, &new, new_name, RenameFlags::NOREPLACE)
            .map_err(|error| failed(to, "made", error.into()))
    }

    /// Moves a folder beneath another root; whether that can be: not if it is on another disk.
    pub fn hand_over(&self, from: &str, root: &Root, to: &str) -> Result<bool, Error> {
        let ((old, old_name), (new, new_name)) = (self.parent(from)?, root.parent(to)?);
        match renameat_with(&old, old_name, &new, new_name, RenameFlags::NOREPLACE) {
            Ok(()) => Ok(true),
            Err(Errno::XDEV) => Ok(false),
            Err(error) => Err(failed(from, "moved", error.into())),
        }
    }

    /// Waits to be the only one who holds a file for that; until it is dropped. It says who holds it.
    pub fn lock(&self, path: &str) -> Result<File, Error> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let wrong = |error: io::Error| failed(path, "locked", error);
        check(path)?;
        let file = openat2(&self.folder, path, flags, Mode::RUSR | Mode::WUSR, BENEATH);
        let mut file = File::from(file.map_err(|error| wrong(error.into()))?);
        let latest = Instant::now() + LOCK_WAIT_MAX;
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
                Err(TryLockError::WouldBlock) if Instant::now() > latest => {
                    let mut holder = String::new();
                    _ = file.take(20).read_to_string(&mut holder);
                    return Err(Error::Locked { holder: holder.trim().to_owned() });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
        // For those who wait in vain; without it they wait as well.
        _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
        Ok(file)
    }

    /// Opens a folder that must be there.
    pub fn folder(&self, path: &str) -> Result<OwnedFd, Error> {
        let folder = self.resolve(path, FOLDER)?;
        folder.ok_or_else(|| Error::Path {
            path: path.into(),
            problem: "is not there; make it first",
        })
    }

    /// The folder that a path is in, and its last name.
    fn parent<'p>(&self, path: &'p str) -> Result<(OwnedFd, &'p str), Error> {
        check(path)?;
        match path.rsplit_once('/') {
            Some((folder, name)) => Ok((self.folder(folder)?, name)),
            None => Ok((self.resolve(".", FOLDER)?.ok_or_else(|| vanished(path))?, path)),
        }
    }

    /// Opens what a path means; `None` if there is nothing.
    fn resolve(&self, path: &str, flags: OFlags) -> Result<Option<OwnedFd>, Error> {
        if path != "." {
            check(path)?;
        }
        match openat2(&self.folder, path, flags, Mode::empty(), BENEATH) {
            Ok(file) => Ok(Some(file)),
            Err(Errno::NOENT) => Ok(None),
            Err(Errno::LOOP | Errno::XDEV) => Err(Error::Path {
                path: path.into(),
                problem: "leads over a link, which is refused; put what it leads to in its place",
            }),
            Err(error) => Err(failed(path, "opened", error.into())),
        }
    }
}

/// Refuses what is no path of plain names, though the kernel would refuse it as well.
fn check(path: &str) -> Result<(), Error> {
    let is_plain = |name: &str| !name.is_empty() && name != "." && name != "..";
    if path.contains('\0') || !path.split('/').all(is_plain) {
        let problem = "is no path beneath the folder; leave out `..`, `.` and a leading `/`";
        return Err(Error::Path { path: mcp::text::shorten(path), problem });
    }
    Ok(())
}

/// Removes a folder, or whatever is there, with all that is in it: folders within it are moved up beside it first, so
/// that no depth is too deep and no name too long.
fn empty(parent: &OwnedFd, name: &str) -> rustix::io::Result<()> {
    let mut open = vec![CString::new(name).map_err(|_| Errno::INVAL)?];
    let mut moved = 0_u64;
    while let Some(name) = open.pop() {
        let folder = match openat2(parent, &name, FOLDER, Mode::empty(), BENEATH) {
            Ok(folder) => folder,
            Err(Errno::NOENT) => continue,
            Err(Errno::NOTDIR | Errno::LOOP) => {
                unlinkat(parent, &name, AtFlags::empty())?;
                continue;
            }
            Err(error) => return Err(error),
        };
        let first = open.len();
        for entry in Dir::read_from(&folder)? {
            let entry = entry?;
            let inner = entry.file_name();
            if matches!(inner.to_bytes(), b"." | b"..") {
                continue;
            }
            match unlinkat(&folder, inner, AtFlags::empty()) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(Errno::ISDIR | Errno::PERM) => {
                    moved += 1;
                    let mut beside = name.to_bytes().to_vec();
                    beside.truncate(100);
                    beside.extend(format!("-{moved}").bytes());
                    let beside = CString::new(beside).map_err(|_| Errno::INVAL)?;
                    renameat_with(&folder, inner, parent, &beside, RenameFlags::NOREPLACE)?;
                    open.push(beside);
                }
                Err(error) => return Err(error),
            }
        }
        drop(folder);
        match unlinkat(parent, &name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => {}
            // Its listing changed meanwhile: once more, after what came out of it.
            Err(Errno::NOTEMPTY) if open.len() > first => open.insert(first, name),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn vanished(path: &str) -> Error {
    Error::Path {
        path: path.into(),
        problem: "is in a folder that is gone; start the manager anew",
    }
}

fn failed(path: &str, deed: &'static str, error: io::Error) -> Error {
    Error::File { path: path.to_owned(), deed, error }
}
