//! `SECRETS_KEY` out of our environment: handed from this program to itself, in memory that no list of processes shows.
//!
//! A process can't change what `/proc` shows of the environment that it was started with. So we become the same program
//! once more, in the same process, without the variable; the key is in a file in memory that is emptied when it was
//! read. Where the variable is not set, that is a look at two variables.

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::process::CommandExt as _;
use std::process::Command;
use std::sync::OnceLock;

use rustix::fs::{MemfdFlags, memfd_create};
use zeroize::Zeroizing;

const VARIABLE: &str = "SECRETS_KEY";
/// The number of the file in memory.
const HANDED: &str = "TOOLMAN_KEY_HANDED";
/// What such a file is called, so that no other is taken for it.
const NAME: &str = "toolman-key";

static KEY: OnceLock<Option<Zeroizing<String>>> = OnceLock::new();

/// The key that the environment has named, if it has.
pub fn key() -> Option<Zeroizing<String>> {
    match KEY.get() {
        Some(key) => key.clone(),
        // It could not be handed over.
        None => std::env::var(VARIABLE).ok().map(Into::into),
    }
}

/// Takes the key out of our environment, by becoming this program once more; or the key that was taken out of it.
///
/// To be called before there are other threads. It returns what is wrong if that can't be done.
pub fn receive() -> Result<(), String> {
    if let Some(key) = std::env::var_os(VARIABLE) {
        let error = hand_over(&key);
        return Err(format!(
            "SECRETS_KEY can't be taken out of our environment: {error}; name a file with SECRETS_KEY_FILE instead"
        ));
    }
    let handed = std::env::var(HANDED).ok().and_then(|number| number.parse::<u32>().ok());
    // A key that is no text is none.
    let text = |bytes: Zeroizing<Vec<u8>>| {
        std::str::from_utf8(&bytes).ok().map(|text| Zeroizing::new(text.to_owned()))
    };
    _ = KEY.set(handed.and_then(read).and_then(text));
    Ok(())
}

/// Becomes this program once more; if it comes back, why that was not possible.
fn hand_over(key: &OsStr) -> io::Error {
    let become_again = || -> io::Result<io::Error> {
        // It is inherited, and by nobody else: nobody is started before the next program has read it.
        let mut file = File::from(memfd_create(NAME, MemfdFlags::empty())?);
        file.write_all(key.as_bytes())?;
        let mut arguments = std::env::args_os();
        let mut command = Command::new(std::env::current_exe()?);
        command.arg0(arguments.next().unwrap_or_default()).args(arguments);
        command.env_remove(VARIABLE).env(HANDED, file.as_raw_fd().to_string());
        Ok(command.exec())
    };
    become_again().unwrap_or_else(|error| error)
}

/// Reads the file in memory and empties it; `None` if it is none of ours.
fn read(number: u32) -> Option<Zeroizing<Vec<u8>>> {
    let path = format!("/proc/self/fd/{number}");
    let target = std::fs::read_link(&path).ok()?;
    if !target.to_str()?.starts_with(&format!("/memfd:{NAME}")) {
        return None;
    }
    let mut file = OpenOptions::new().read(true).write(true).open(&path).ok()?;
    // With room for all of it, so that no copy is left behind as it grows.
    let room = usize::try_from(file.metadata().ok()?.len()).ok()?.checked_add(1)?;
    let mut bytes = Zeroizing::new(Vec::with_capacity(room));
    file.read_to_end(&mut bytes).ok()?;
    let zeros = vec![0; bytes.len()];
    _ = file.rewind().and_then(|()| file.write_all(&zeros)).and_then(|()| file.set_len(0));
    Some(bytes)
}
