//! What is served of a folder: a copy of it, and what is read there.
//!
//! A worker may be started, or import something, at any time; it must run what was looked at, and not what somebody
//! is writing just then.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use config::dock::Folder;
use config::dock::files::{self, Found};
use config::limits::{DOCK_BYTES_MAX, DOCK_FILES_MAX};
use upstream::python::fresh::Fresh;
use upstream::python::lease::{Lease, is_in_use};

/// Digits of the version that names a copy.
const VERSION_DIGITS: usize = 16;
/// How often a copy is made that others remove or make at the same moment.
const TRIES_MAX: usize = 3;

/// A folder as it lies in a copy below `parent`, which is made unless it is there, and a lease of that. What is written
/// meanwhile counts as it came into the copy: that is what is read, and what is run.
pub fn copy(folder: &Folder, parent: &Path) -> io::Result<(Folder, Lease)> {
    let place = |version: &str| parent.join(&version[..VERSION_DIGITS.min(version.len())]);
    let mut version = folder.version.clone();
    let mut last = io::Error::other("it changes all the time");
    for _ in 0..TRIES_MAX {
        let target = place(&version);
        let is_used = is_in_use(&target);
        let mut lease = Lease::default();
        if lease.add(&target).is_ok() {
            let mut copied = folder.at(target.clone());
            // A tool that is not confined may write there; that is left alone while its worker runs.
            if copied.version == version || is_used {
                copied.version = version;
                return Ok((with_remarks(copied, folder), lease));
            }
            // Somebody was there, or the machine ended while it was written.
            drop(lease);
            fs::remove_dir_all(&target)?;
        }
        let fresh = Fresh::make(parent)?;
        let mut room = Room { files: DOCK_FILES_MAX, bytes: DOCK_BYTES_MAX as u64 };
        let root = fs::canonicalize(&folder.path)?;
        copy_all(&root, &folder.path, fresh.path(), &mut room)?;
        version = folder.at(fresh.path().to_owned()).version;
        // If it is there already, it is taken from there.
        if let Err(error) = fresh.name(&place(&version)) {
            last = error;
        }
    }
    Err(last)
}

/// A copy, with what is wrong with the folder itself: links and pipes are not copied.
fn with_remarks(mut copied: Folder, folder: &Folder) -> Folder {
    copied.is_refused |= folder.is_refused;
    for fault in &folder.faults {
        if !copied.faults.contains(fault) {
            copied.faults.push(fault.clone());
        }
    }
    copied
}

/// How much more is copied.
struct Room {
    files: usize,
    bytes: u64,
}

fn copy_all(root: &Path, from: &Path, to: &Path, room: &mut Room) -> io::Result<()> {
    for name in files::names(from)? {
        let too_much = || io::Error::other("it holds too much to be copied");
        room.files = room.files.checked_sub(1).ok_or_else(too_much)?;
        let (path, target) = (from.join(&name), to.join(&name));
        match files::look(root, &path) {
            Ok(Found::Folder) => {
                fs::create_dir(&target)?;
                copy_all(root, &path, &target, room)?;
            }
            Ok(Found::File(file)) => {
                let mut permissions = file.metadata()?.permissions();
                // The copy is ours, and its worker may have no more rights than its owner has.
                permissions.set_mode(permissions.mode() | 0o400);
                let mut copied = File::create_new(&target)?;
                let length = io::copy(&mut file.take(room.bytes + 1), &mut copied)?;
                room.bytes = room.bytes.checked_sub(length).ok_or_else(too_much)?;
                copied.set_permissions(permissions)?;
            }
            // It is none of the folder; whoever reads that says so.
            Err(_) => {}
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use config::dock::folders;
    use tempfile::TempDir;

    use super::copy;

    #[test]
    fn copy_that_is_not_what_it_was_is_not_served() {
        let root = TempDir::new().unwrap();
        let (tools, copies) = (root.path().join("tools"), root.path().join("served"));
        fs::create_dir_all(tools.join("a")).unwrap();
        fs::write(tools.join("a/t.py"), "x = 1").unwrap();
        let (found, _) = folders(&tools);
        let target = copy(&found[0], &copies).unwrap().0.path;
        fs::write(target.join("t.py"), "x = 2").unwrap();
        let (copied, _lease) = copy(&found[0], &copies).unwrap();
        assert_eq!(fs::read_to_string(copied.path.join("t.py")).unwrap(), "x = 1");
    }

    #[test]
    fn copy_is_what_was_read_without_what_leads_out_of_it() {
        let root = TempDir::new().unwrap();
        let (tools, copies) = (root.path().join("tools"), root.path().join("served"));
        fs::create_dir_all(tools.join("a/data")).unwrap();
        fs::write(tools.join("a/t.py"), "x = 1").unwrap();
        fs::write(tools.join("a/data/d.json"), "{}").unwrap();
        fs::write(root.path().join("secret"), "hush").unwrap();
        symlink(root.path().join("secret"), tools.join("a/link")).unwrap();
        let (found, _) = folders(&tools);
        let target = copy(&found[0], &copies).unwrap().0.path;
        assert_eq!(fs::read_to_string(target.join("t.py")).unwrap(), "x = 1");
        assert!(target.join("data/d.json").exists() && !target.join("link").exists());
        assert_eq!(copy(&found[0], &copies).unwrap().0.path, target);
        // What is written between reading and copying is read from the copy.
        fs::write(tools.join("a/t.py"), "x = 2").unwrap();
        let (found, _) = folders(&tools);
        fs::write(tools.join("a/t.py"), "x = 3").unwrap();
        let (copied, _lease) = copy(&found[0], &copies).unwrap();
        assert_eq!(copied.sources[0].text, "x = 3");
        assert_eq!(copied.version, found[0].at(copied.path.clone()).version);
        assert_ne!(copied.version, found[0].version);
        let left = fs::read_dir(&copies)
            .unwrap()
            .filter(|entry| entry.as_ref().unwrap().file_name().to_str().unwrap().starts_with('.'));
        assert_eq!(left.count(), 0, "nothing unfinished stays");
    }
}
