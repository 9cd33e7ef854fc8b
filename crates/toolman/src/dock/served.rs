//! What is served of a folder: a copy of it as it was read.
//!
//! A worker may be started, or import something, at any time; it must run what was looked at, and not what somebody
//! is writing just then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use config::dock::Folder;
use config::limits::{DOCK_BYTES_MAX, DOCK_FILES_MAX};

/// Copies of one folder that are kept: workers that are being retired may still read theirs.
const COPIES_MAX: usize = 4;
/// Digits of the version that names a copy.
const VERSION_DIGITS: usize = 16;

/// A folder as it lies in a copy below `parent`, which is made unless it is there. What is written meanwhile counts as it
/// came into the copy: that is what is read, and what is run.
pub fn copy(folder: &Folder, parent: &Path) -> io::Result<Folder> {
    let place = |version: &str| parent.join(&version[..VERSION_DIGITS.min(version.len())]);
    let target = place(&folder.version);
    if target.is_dir() {
        let mut copied = folder.clone();
        copied.path = target;
        return Ok(copied);
    }
    let fresh = parent.join(format!(".new-{}", std::process::id()));
    _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh)?;
    let mut room = Room { files: DOCK_FILES_MAX, bytes: DOCK_BYTES_MAX as u64 };
    let root = fs::canonicalize(&folder.path)?;
    if let Err(error) = copy_all(&root, &folder.path, &fresh, &mut room) {
        _ = fs::remove_dir_all(&fresh);
        return Err(error);
    }
    let mut copied = folder.at(fresh.clone());
    copied.path = place(&copied.version);
    if copied.path.is_dir() {
        fs::remove_dir_all(&fresh)?;
        return Ok(copied);
    }
    if let Err(error) = fs::rename(&fresh, &copied.path) {
        _ = fs::remove_dir_all(&fresh);
        return Err(error);
    }
    forget_old(parent, &copied.path);
    Ok(copied)
}

/// How much more is copied.
struct Room {
    files: usize,
    bytes: u64,
}

fn copy_all(root: &Path, from: &Path, to: &Path, room: &mut Room) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let name = entry.file_name();
        let is_ignored = name.to_str().is_none_or(|name| name.starts_with('.'));
        let path = entry.path();
        // A link that leads out of the folder is none of it.
        let is_inside = fs::canonicalize(&path).is_ok_and(|real| real.starts_with(root));
        if is_ignored || name == "__pycache__" || !is_inside {
            continue;
        }
        if path.is_dir() {
            let is_link = fs::symlink_metadata(&path)?.is_symlink();
            if !is_link {
                fs::create_dir(to.join(&name))?;
                copy_all(root, &path, &to.join(&name), room)?;
            }
            continue;
        }
        if !path.is_file() {
            continue;
        }
        let length = fs::metadata(&path)?.len();
        let left = room.files.checked_sub(1).zip(room.bytes.checked_sub(length));
        let Some((files, bytes)) = left else {
            return Err(io::Error::other("it holds too much to be copied"));
        };
        *room = Room { files, bytes };
        fs::copy(&path, to.join(&name))?;
    }
    Ok(())
}

/// Removes the oldest copies.
fn forget_old(parent: &Path, newest: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    let age = |path: &PathBuf| fs::metadata(path).and_then(|known| known.modified()).ok();
    let mut copies: Vec<(Option<SystemTime>, PathBuf)> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path != newest)
        .map(|path| (age(&path), path))
        .collect();
    copies.sort();
    let excess = copies.len().saturating_sub(COPIES_MAX - 1);
    for (_, path) in copies.into_iter().take(excess) {
        _ = fs::remove_dir_all(path);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use config::dock::folders;
    use tempfile::TempDir;

    use super::copy;

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
        let target = copy(&found[0], &copies).unwrap().path;
        assert_eq!(fs::read_to_string(target.join("t.py")).unwrap(), "x = 1");
        assert!(target.join("data/d.json").exists() && !target.join("link").exists());
        assert_eq!(copy(&found[0], &copies).unwrap().path, target);
        // What is written between reading and copying is read from the copy.
        fs::write(tools.join("a/t.py"), "x = 2").unwrap();
        let (found, _) = folders(&tools);
        fs::write(tools.join("a/t.py"), "x = 3").unwrap();
        let copied = copy(&found[0], &copies).unwrap();
        assert_eq!(copied.sources[0].text, "x = 3");
        assert_eq!(copied.version, found[0].at(copied.path.clone()).version);
        assert_ne!(copied.version, found[0].version);
        for version in 0..10 {
            fs::write(tools.join("a/t.py"), format!("x = {version}")).unwrap();
            copy(&folders(&tools).0[0], &copies).unwrap();
        }
        assert_eq!(fs::read_dir(&copies).unwrap().count(), 4);
    }
}
