//! What the tools of a worker print, in a file: bounded, turned over when it is full, for its owner only.
//!
//! Whoever reads from the worker never waits for the disk: what comes faster than it is written is counted and lost.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::limits::{PRINTED_BYTES_MAX, PRINTED_WAITING_MAX};

/// The file of one worker. Its clones, and all of the same path, write to the same one.
#[derive(Debug)]
pub struct Printed {
    path: PathBuf,
    waiting: Mutex<Waiting>,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// How many bytes were lost since something was written.
    lost: u64,
    is_being_written: bool,
    has_failed: bool,
}

impl Printed {
    pub fn new(path: PathBuf) -> Arc<Printed> {
        Arc::new(Printed { path, waiting: Mutex::default() })
    }

    /// Writes it soon; never waits.
    pub(crate) fn add(self: &Arc<Self>, bytes: &[u8]) {
        let mut waiting = self.waiting();
        let room = PRINTED_WAITING_MAX.saturating_sub(waiting.bytes.len());
        let taken = if waiting.lost == 0 { bytes.len().min(room) } else { 0 };
        waiting.bytes.extend_from_slice(&bytes[..taken]);
        waiting.lost += (bytes.len() - taken) as u64;
        if !std::mem::replace(&mut waiting.is_being_written, true) {
            let printed = Arc::clone(self);
            tokio::task::spawn_blocking(move || printed.write_all());
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn write_all(&self) {
        loop {
            let mut waiting = self.waiting();
            let mut bytes = std::mem::take(&mut waiting.bytes);
            let lost = std::mem::take(&mut waiting.lost);
            if bytes.is_empty() && lost == 0 {
                waiting.is_being_written = false;
                return;
            }
            let has_failed = waiting.has_failed;
            drop(waiting);
            if lost > 0 {
                let line_end = if bytes.ends_with(b"\n") { "" } else { "\n" };
                let note = format!("{line_end}[{lost} bytes came too fast and are not kept]\n");
                bytes.extend_from_slice(note.as_bytes());
            }
            let written = append(&self.path, &bytes);
            if let Err(error) = &written
                && !has_failed
            {
                let path = self.path.display();
                tracing::warn!(%error, %path, "what tools print can't be written down");
            }
            self.waiting().has_failed = written.is_err();
        }
    }
}

/// Where a file that is full goes.
pub fn former(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".1");
    name.into()
}

/// Adds to the file; a full one is turned over first. It is opened anew each time, as another process may have turned it over.
fn append(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = open(path)?;
    if file.metadata()?.len() + bytes.len() as u64 > PRINTED_BYTES_MAX {
        fs::rename(path, former(path))?;
        file = open(path)?;
    }
    file.write_all(bytes)
}

fn open(path: &Path) -> io::Result<File> {
    let open = || OpenOptions::new().append(true).create(true).mode(0o600).open(path);
    match open() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let folder = path.parent().unwrap_or(path);
            DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
            open()
        }
        opened => opened,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::PathBuf;
    use std::time::Duration;

    use super::{Printed, former};
    use crate::limits::{PRINTED_BYTES_MAX, PRINTED_WAITING_MAX};

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("printed-{name}-{}", std::process::id()))
    }

    async fn written(printed: &Printed) {
        while printed.waiting().is_being_written {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    #[tokio::test]
    async fn file_is_turned_over_when_it_is_full_and_is_for_its_owner_only() {
        let folder = folder("turned");
        let path = folder.join("logs/a.log");
        let printed = Printed::new(path.clone());
        let part = vec![b'x'; 100_000];
        for _ in 0..50 {
            printed.add(&part);
            written(&printed).await;
        }
        printed.add(b"the end\n");
        written(&printed).await;
        for path in [path.clone(), former(&path)] {
            let known = path.metadata().unwrap();
            assert!(known.len() <= PRINTED_BYTES_MAX && known.len() > 100_000, "{}", known.len());
            assert_eq!(known.permissions().mode() & 0o777, 0o600);
        }
        assert!(std::fs::read(&path).unwrap().ends_with(b"xthe end\n"));
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[tokio::test]
    async fn what_comes_too_fast_is_counted() {
        let folder = folder("fast");
        let path = folder.join("a.log");
        let printed = Printed::new(path.clone());
        // As if somebody were writing already.
        printed.waiting().is_being_written = true;
        printed.add(&vec![b'x'; PRINTED_WAITING_MAX + 10]);
        printed.add(b"more\n");
        printed.write_all();
        printed.add(b"later\n");
        written(&printed).await;
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.ends_with("x\n[15 bytes came too fast and are not kept]\nlater\n"));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
