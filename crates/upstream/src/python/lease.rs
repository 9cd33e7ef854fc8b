//! Leases: who uses a folder that is made once and kept, such as an environment, and which of them nobody needs.
//!
//! A lease is a lock on the folder itself, so it counts between processes and ends with the process that holds it.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use crate::python::fresh;

/// How the name of a folder begins that is being removed.
const DOOMED: &str = ".old-";

/// Folders that are in use for as long as this is kept, or a copy of it.
#[derive(Clone, Default)]
pub struct Lease(Vec<Arc<File>>);

impl Lease {
    /// Takes a folder into use as well; does not wait for one who removes it just now.
    pub fn add(&mut self, folder: &Path) -> io::Result<()> {
        let file = File::open(folder)?;
        file.try_lock_shared()?;
        // It may have been removed while we waited for it, or another may be there by now.
        let (ours, there) = (file.metadata()?, fs::metadata(folder)?);
        if (ours.dev(), ours.ino()) != (there.dev(), there.ino()) {
            return Err(io::ErrorKind::NotFound.into());
        }
        self.0.push(Arc::new(file));
        Ok(())
    }
}

impl Lease {
    /// Both at once.
    pub fn and(mut self, other: &Lease) -> Lease {
        self.0.extend(other.0.iter().cloned());
        self
    }
}

/// It is no part of what tells one worker from another.
impl PartialEq for Lease {
    fn eq(&self, _: &Lease) -> bool {
        true
    }
}

impl Eq for Lease {}

impl fmt::Debug for Lease {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "Lease({})", self.0.len())
    }
}

/// Whether anybody has a lease of a folder.
pub fn is_in_use(folder: &Path) -> bool {
    File::open(folder).is_ok_and(|file| file.try_lock().is_err())
}

/// Says that a folder is the one in use from now on: the newest ones are kept.
pub fn freshen(folder: &Path) {
    // It counts only when there is something to be removed.
    _ = File::open(folder).and_then(|file| file.set_modified(SystemTime::now()));
}

/// Takes a folder that is of no use to anybody out of the way, if it is there.
pub fn set_aside(folder: &Path) -> io::Result<()> {
    let (Some(parent), Some(name)) = (folder.parent(), folder.file_name()) else { return Ok(()) };
    if fs::symlink_metadata(folder).is_err() {
        return Ok(());
    }
    let doomed = parent.join(format!("{DOOMED}{}", name.display()));
    _ = fs::remove_dir_all(&doomed);
    fs::rename(folder, &doomed)?;
    _ = fs::remove_dir_all(doomed);
    Ok(())
}

/// Removes the folders below `parent` that nobody uses, but for so many of the newest.
pub fn tidy(parent: &Path, kept: usize) {
    fresh::sweep(parent);
    let Ok(entries) = fs::read_dir(parent) else { return };
    let is_doomed = |name: &OsStr| name.as_encoded_bytes().starts_with(DOOMED.as_bytes());
    let age = |path: &Path| fs::metadata(path).and_then(|known| known.modified()).ok();
    let mut folders: Vec<(Option<SystemTime>, PathBuf)> = Vec::new();
    // Links are no folders.
    for entry in entries.flatten().filter(|one| one.file_type().is_ok_and(|kind| kind.is_dir())) {
        let (name, path) = (entry.file_name(), entry.path());
        if is_doomed(&name) {
            // One who removed it has ended before the end of it.
            _ = fs::remove_dir_all(path);
        } else if !name.as_encoded_bytes().starts_with(b".") {
            folders.push((age(&path), path));
        }
    }
    folders.sort();
    let excess = folders.len().saturating_sub(kept);
    for (_, folder) in folders.into_iter().take(excess) {
        remove_unused(parent, &folder);
    }
}

fn remove_unused(parent: &Path, folder: &Path) {
    let Ok(file) = File::open(folder) else { return };
    if file.try_lock().is_err() {
        return; // Somebody uses it.
    }
    let Some(name) = folder.file_name() else { return };
    // Under its name it is whole, or not there.
    let doomed = parent.join(format!("{DOOMED}{}", name.display()));
    if fs::rename(folder, &doomed).is_ok() {
        tracing::info!(folder = %folder.display(), "removed, as nobody uses it");
        _ = fs::remove_dir_all(doomed);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::{Duration, SystemTime};

    use super::{Lease, tidy};

    fn names(parent: &Path) -> Vec<String> {
        let entries = fs::read_dir(parent).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn what_is_old_and_not_in_use_is_removed() {
        let parent: PathBuf = std::env::temp_dir().join(format!("lease-{}", std::process::id()));
        for (minutes, name) in (0..).zip(["e", "d", "c", "b", "a"]) {
            let folder = parent.join(name);
            fs::create_dir_all(folder.join("bin")).unwrap();
            let then = SystemTime::now() - Duration::from_mins(minutes);
            fs::File::open(folder).unwrap().set_modified(then).unwrap();
        }
        fs::create_dir(parent.join(".new-1")).unwrap();
        fs::create_dir(parent.join(".old-x")).unwrap();
        std::os::unix::fs::symlink("e", parent.join("current")).unwrap();
        let mut lease = Lease::default();
        lease.add(&parent.join("b")).unwrap();
        let copy = lease.clone();
        drop(lease);
        tidy(&parent, 2);
        assert_eq!(names(&parent), [".new-1", "b", "current", "d", "e"]);
        drop(copy);
        tidy(&parent, 2);
        assert_eq!(names(&parent), [".new-1", "current", "d", "e"]);
        fs::remove_dir_all(parent).unwrap();
    }
}
