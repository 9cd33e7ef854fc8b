//! One writer at a time: `secrets.lock`.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Instant;

use rustix::fs::OFlags;

use crate::error::Error;
use crate::limits::{LOCK_PAUSE, LOCK_WAIT_MAX};

/// Held until it is dropped; the system lets go of it however the process ends.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Waits a little for another writer, then says who it is. K10
    pub fn take(path: &Path) -> Result<Lock, Error> {
        let wrong = |error| Error::File { path: path.to_owned(), deed: "lock", error };
        let mut options = OpenOptions::new();
        options.create(true).truncate(false).read(true).write(true).mode(0o600);
        let flags = OFlags::NOFOLLOW.bits().cast_signed();
        let mut file = options.custom_flags(flags).open(path).map_err(wrong)?;
        let started = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => break,
                Err(TryLockError::Error(error)) => return Err(wrong(error)),
                Err(TryLockError::WouldBlock) if started.elapsed() > LOCK_WAIT_MAX => {
                    return Err(Error::Locked { pid: holder(&mut file) });
                }
                Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            }
        }
        // For people only: the lock holds whether or not its holder can be named.
        _ = file.set_len(0).and_then(|()| file.rewind());
        _ = writeln!(file, "{}", std::process::id());
        Ok(Lock { _file: file })
    }
}

fn holder(file: &mut File) -> String {
    let mut pid = String::new();
    _ = file.take(16).read_to_string(&mut pid);
    let pid = pid.trim();
    if pid.is_empty() || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
        return "unknown".into();
    }
    pid.to_owned()
}
