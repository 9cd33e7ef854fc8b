//! Looking at folders by itself: a reload when they have changed and been quiet for a while. TD-118

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::reload::Reloader;

/// How often folders are looked at.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// How long folders that change all the time are waited for, at least.
const RESTLESS_MIN: Duration = Duration::from_secs(5);
/// How deep, and how many files.
const DEPTH_MAX: usize = 8;
const FILES_MAX: usize = 20_000;

/// Somebody who serves folders, or knows who does.
pub trait Watched: Send + Sync + 'static {
    /// What tells the folders from what they were; see [`look`].
    fn look(&self) -> impl Future<Output = u64> + Send;

    fn reload(&self) -> impl Future<Output = ()> + Send;
}

impl Watched for Arc<Reloader> {
    async fn look(&self) -> u64 {
        Reloader::look(self).await
    }

    async fn reload(&self) {
        self.begin_reload().await;
    }
}

/// Reloads whenever something has changed and then stayed the same for `quiet`; or never stays the same, after a while.
pub async fn watch(watched: impl Watched, quiet: Duration) {
    let mut served = watched.look().await;
    loop {
        sleep(LOOK_EVERY).await;
        let mut seen = watched.look().await;
        if seen == served {
            continue;
        }
        // Whoever writes several files is waited for, but not one who never ends.
        let latest = Instant::now() + (quiet * 10).max(RESTLESS_MIN);
        loop {
            sleep(quiet.max(Duration::from_millis(10))).await;
            let now = watched.look().await;
            if now == seen || Instant::now() >= latest {
                seen = now;
                break;
            }
            seen = now;
        }
        served = seen;
        watched.reload().await;
    }
}

/// What tells one state of folders from another, without reading any file.
pub fn look(folders: &[PathBuf]) -> u64 {
    let mut hasher = DefaultHasher::new();
    let mut left = FILES_MAX;
    for folder in folders {
        look_into(folder, 0, &mut left, &mut hasher);
    }
    hasher.finish()
}

fn look_into(folder: &Path, depth: usize, left: &mut usize, hasher: &mut DefaultHasher) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut names: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
    names.sort();
    for name in names {
        let path = folder.join(&name);
        let Ok(known) = fs::symlink_metadata(&path) else { continue };
        let is_hidden = name.to_str().is_some_and(|name| name.starts_with('.'));
        if is_hidden || name == "__pycache__" || *left == 0 {
            continue;
        }
        *left -= 1;
        (&name, known.len(), known.modified().ok(), known.is_dir()).hash(hasher);
        if known.is_dir() && depth < DEPTH_MAX {
            look_into(&path, depth + 1, left, hasher);
        }
    }
}
