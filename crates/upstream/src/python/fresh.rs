//! Folders in the making: beside those that they will join, under a name of their own, until they are whole.
//!
//! Who makes one holds a lock on it. What was left by one who ended before that is swept up by the next.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// How the names of such folders begin.
const START: &str = ".new-";
/// So long after its last change a folder may be one that nobody makes any more.
const ABANDONED_AFTER: Duration = Duration::from_mins(1);
static LAST: AtomicU64 = AtomicU64::new(0);

/// A folder in the making; removed when this goes, unless it has got its name.
pub struct Fresh {
    path: PathBuf,
    _lock: File,
}

impl Fresh {
    /// Makes an empty one below `parent`, which is made as well.
    pub fn make(parent: &Path) -> io::Result<Fresh> {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        sweep(parent);
        // In containers all processes may have the same id, so a name may be taken.
        loop {
            let (own, number) = (std::process::id(), LAST.fetch_add(1, Ordering::Relaxed));
            let path = parent.join(format!("{START}{own}-{number}"));
            match DirBuilder::new().mode(0o700).create(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                made => {
                    made?;
                    let lock = File::open(&path)?;
                    lock.lock_shared()?;
                    return Ok(Fresh { path, _lock: lock });
                }
            }
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it its name, under which there must be nothing.
    pub fn name(self, target: &Path) -> io::Result<()> {
        fs::rename(&self.path, target)
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        _ = fs::remove_dir_all(&self.path);
    }
}

/// Removes what nobody makes any more.
pub fn sweep(parent: &Path) {
    let Ok(entries) = fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let is_fresh = entry.file_name().as_encoded_bytes().starts_with(START.as_bytes());
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_fresh && is_folder && is_abandoned(&entry.path()) {
            _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(folder: &Path) -> bool {
    let Ok(file) = File::open(folder) else { return false };
    let changed = file.metadata().and_then(|known| known.modified());
    // Between making and locking it there is a moment.
    let is_old =
        changed.is_ok_and(|changed| changed.elapsed().is_ok_and(|passed| passed > ABANDONED_AFTER));
    is_old && file.try_lock().is_ok()
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::path::Path;
    use std::time::{Duration, SystemTime};

    use super::{Fresh, sweep};

    #[test]
    fn what_nobody_makes_any_more_is_swept_up() {
        let parent = std::env::temp_dir().join(format!("fresh-{}", std::process::id()));
        let (one, other) = (Fresh::make(&parent).unwrap(), Fresh::make(&parent).unwrap());
        assert_ne!(one.path(), other.path());
        let long_ago = SystemTime::now() - Duration::from_hours(1);
        let age = |path: &Path| File::open(path).unwrap().set_modified(long_ago).unwrap();
        age(one.path());
        for name in [".new-4711", "kept"] {
            fs::create_dir_all(parent.join(name).join("bin")).unwrap();
            age(&parent.join(name));
        }
        fs::create_dir(parent.join(".new-1")).unwrap();
        sweep(&parent);
        assert!(!parent.join(".new-4711").exists());
        assert!(one.path().exists(), "it is being made");
        assert!(parent.join(".new-1").exists(), "it is new");
        one.name(&parent.join("whole")).unwrap();
        let left = other.path().to_owned();
        drop(other);
        assert!(!left.exists() && parent.join("whole").exists());
        fs::remove_dir_all(parent).unwrap();
    }
}
