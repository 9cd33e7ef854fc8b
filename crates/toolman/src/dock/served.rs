//! What is served of a folder: a copy of it as it was read.
//!
//! A worker may be started, or import something, at any time; it must run what was looked at, and not what somebody
//! is writing just then.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use config::dock::Folder;
use config::limits::{DOCK_BYTES_MAX, DOCK_FILES_MAX};

/// Digits of the version that names a copy.
const VERSION_DIGITS: usize = 16;

/// Copies a folder below `parent`, unless it is there as it is; where the copy is.
pub fn copy(folder: &Folder, parent: &Path) -> io::Result<PathBuf> {
    let name = &folder.version[..VERSION_DIGITS.min(folder.version.len())];
    let target = parent.join(name);
    if target.is_dir() {
        return Ok(target);
    }
    let fresh = parent.join(format!(".new-{}", std::process::id()));
    _ = fs::remove_dir_all(&fresh);
    fs::create_dir_all(&fresh)?;
    let mut room = Room { files: DOCK_FILES_MAX, bytes: DOCK_BYTES_MAX as u64 };
    let root = fs::canonicalize(&folder.path)?;
    let copied = copy_all(&root, &folder.path, &fresh, &mut room);
    if let Err(error) = copied.and_then(|()| fs::rename(&fresh, &target)) {
        _ = fs::remove_dir_all(&fresh);
        return Err(error);
    }
    Ok(target)
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
        let target = copy(&found[0], &copies).unwrap();
        assert_eq!(fs::read_to_string(target.join("t.py")).unwrap(), "x = 1");
        assert!(target.join("data/d.json").exists() && !target.join("link").exists());
        assert_eq!(copy(&found[0], &copies).unwrap(), target);
    }
}
