//! The folder that the peers are installed into, held by one run at a time.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{self, Failure};

/// `target/peers`, locked for as long as this value, or a program that it started, lives.
pub struct Site {
    home: PathBuf,
    lock: File,
}

impl Site {
    /// Takes the folder, after a run that holds it now has ended.
    pub fn open(home: &Path) -> Result<Site, String> {
        let cannot = |problem| format!("cannot lock {}: {problem}", home.display());
        fs::create_dir_all(home).map_err(cannot)?;
        let lock = File::options()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(home.join("lock"))
            .map_err(cannot)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                eprintln!(
                    "xtask: waiting for another `cargo xtask` to finish installing the peers"
                );
                lock.lock().map_err(cannot)?;
            }
            Err(TryLockError::Error(problem)) => return Err(cannot(problem)),
        }
        Ok(Site { home: home.to_owned(), lock })
    }

    /// Runs a program quietly, here.
    pub fn run(&self, command: &mut Command) -> Result<String, Failure> {
        self.run_in(&self.home, command)
    }

    /// Runs a program quietly in another folder, which must exist.
    pub fn run_in(&self, directory: &Path, command: &mut Command) -> Result<String, Failure> {
        program::run(command, directory, &self.lock)
    }
}
