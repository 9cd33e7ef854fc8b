//! The master key: where it comes from, and whether it is any good.

use std::io;
use std::num::NonZeroU32;
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::files::{self, Links, Privacy};
use crate::key_command;
use crate::limits::{KEY_PIPE_MAX, MASTER_BYTES_MAX, MASTER_CHARS_MIN, WORDY_CHARS_MAX};
use crate::patience;
use crate::seal::{self, KeyBytes};

/// Where a master key may be, from what was asked for and from the environment.
#[derive(Default)]
pub struct Sources {
    /// A file that somebody has named.
    pub file: Option<PathBuf>,
    /// The number of an inherited pipe.
    pub fd: Option<String>,
    /// A program that tells it, with its arguments.
    pub command: Option<String>,
    /// The key itself.
    pub text: Option<Zeroizing<String>>,
    /// Whether a weak key will do.
    pub allows_weak: bool,
}

/// A master key. The keys that are derived from it are remembered: each costs a fifth of a second.
pub struct MasterKey {
    bytes: Zeroizing<Vec<u8>>,
    /// Where it is from, for messages.
    origin: String,
    /// The file it is kept in, if any.
    file: Option<PathBuf>,
    /// Whether it still lies beside that file, as a killed rotation has left it.
    lies_beside: bool,
    /// Why it should not be used, though it may be.
    weakness: Option<&'static str>,
    derived: Mutex<Vec<Derived>>,
}

struct Derived {
    salt: Vec<u8>,
    rounds: NonZeroU32,
    key: KeyBytes,
}

/// How many derived keys are remembered: that of the file, of its new version, and of an old one.
const DERIVED_MAX: usize = 4;

/// The file in the data directory.
pub fn usual_file(folder: &Path) -> PathBuf {
    folder.join("secrets.key")
}

/// What a file is called that will take another one's place.
pub(crate) fn successor(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".new");
    name.into()
}

impl MasterKey {
    /// The key, from the first place that has one; `None` if there is none.
    pub fn find(folder: &Path, sources: &Sources) -> Result<Option<MasterKey>, Error> {
        let key = if let Some(file) = &sources.file {
            let missing = || Error::KeySource {
                origin: format!("`{}`", file.display()),
                problem: "there is no such file".into(),
            };
            Some(MasterKey::of_file(file, Links::Followed)?.ok_or_else(missing)?)
        } else if let Some(key) = MasterKey::of_file(&usual_file(folder), Links::Refused)? {
            Some(key)
        } else if let Some(fd) = &sources.fd {
            Some(MasterKey::of_pipe(fd)?)
        } else if let Some(command) = &sources.command {
            let origin = "SECRETS_KEY_COMMAND".to_owned();
            let key = key_command::ask(command).map_err(|problem| {
                let origin = origin.clone();
                Error::KeySource { origin, problem }
            })?;
            Some(MasterKey::new(without_line_end(key), origin, None))
        } else {
            let text = sources.text.as_ref();
            let bytes = text.map(|text| Zeroizing::new(text.as_bytes().to_vec()));
            bytes.map(|bytes| MasterKey::new(bytes, "SECRETS_KEY".into(), None))
        };
        if let Some(MasterKey { origin, weakness: Some(weakness), .. }) = &key
            && !sources.allows_weak
        {
            return Err(Error::WeakKey { origin: origin.clone(), weakness });
        }
        Ok(key)
    }

    fn new(bytes: Zeroizing<Vec<u8>>, origin: String, file: Option<PathBuf>) -> MasterKey {
        let weakness = weakness(&bytes);
        let (lies_beside, derived) = (false, Mutex::default());
        MasterKey { bytes, origin, file, lies_beside, weakness, derived }
    }

    /// The key in a file, without the end of its line.
    pub(crate) fn of_file(file: &Path, links: Links) -> Result<Option<MasterKey>, Error> {
        let bytes = files::read(file, Privacy::Secret, links, MASTER_BYTES_MAX)?;
        let key = |bytes| {
            let origin = format!("`{}`", file.display());
            MasterKey::new(without_line_end(bytes), origin, Some(file.to_owned()))
        };
        Ok(bytes.map(key))
    }

    /// The key that is about to take the place of the one in `file`.
    pub(crate) fn of_successor(file: &Path) -> Result<Option<MasterKey>, Error> {
        let key = MasterKey::of_file(&successor(file), Links::Refused)?;
        let beside = |key| MasterKey { file: Some(file.to_owned()), lies_beside: true, ..key };
        Ok(key.map(beside))
    }

    pub(crate) fn lies_beside(&self) -> bool {
        self.lies_beside
    }

    /// The key that somebody has written into a pipe before we were started.
    ///
    /// It must be a pipe: read once, it is empty for the servers that inherit it from us.
    fn of_pipe(fd: &str) -> Result<MasterKey, Error> {
        let origin = "SECRETS_KEY_FD".to_owned();
        let wrong = |problem: &str| {
            let problem = problem.to_owned();
            Error::KeySource { origin: origin.clone(), problem }
        };
        let number: u32 = fd.trim().parse().map_err(|_| wrong("it is no number"))?;
        if number < 3 {
            return Err(wrong("0, 1 and 2 are taken; use another number"));
        }
        let path = PathBuf::from(format!("/proc/self/fd/{number}"));
        let unreadable = |error: io::Error| wrong(&error.to_string());
        let kind = std::fs::metadata(&path).map_err(unreadable)?.file_type();
        if !kind.is_fifo() {
            return Err(wrong("it is no pipe; name a file with SECRETS_KEY_FILE instead"));
        }
        let pipe = std::fs::File::open(&path).map_err(unreadable)?;
        let bytes = patience::read(pipe, KEY_PIPE_MAX).map_err(|error| match error.kind() {
            io::ErrorKind::TimedOut => wrong(
                "nobody has closed its other end in time; write the key into it, and close it",
            ),
            _ => unreadable(error),
        })?;
        if bytes.len() as u64 > MASTER_BYTES_MAX {
            return Err(wrong("there is more in it than any key has"));
        }
        Ok(MasterKey::new(without_line_end(bytes), origin, None))
    }

    /// Makes a random key and keeps it in a file that must not be there yet.
    pub fn generate(file: &Path) -> Result<MasterKey, Error> {
        let text = random_text()?;
        files::create(file, format!("{}\n", *text).as_bytes(), Privacy::Secret)
            .map_err(|error| Error::File { path: file.to_owned(), deed: "write", error })?;
        let bytes = Zeroizing::new(text.as_bytes().to_vec());
        Ok(MasterKey::new(bytes, format!("`{}`", file.display()), Some(file.to_owned())))
    }

    /// Makes a random key that will take the place of the one in `file`, and writes it beside.
    pub(crate) fn generate_successor(file: &Path) -> Result<MasterKey, Error> {
        let text = random_text()?;
        let fresh = successor(file);
        files::write_new(&fresh, format!("{}\n", *text).as_bytes(), Privacy::Secret)?;
        let bytes = Zeroizing::new(text.as_bytes().to_vec());
        Ok(MasterKey::new(bytes, format!("`{}`", file.display()), Some(file.to_owned())))
    }

    pub fn origin(&self) -> &str {
        &self.origin
    }

    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    pub fn weakness(&self) -> Option<&'static str> {
        self.weakness
    }

    pub(crate) fn derive(&self, salt: &[u8], rounds: NonZeroU32) -> KeyBytes {
        let mut derived = self.derived.lock().unwrap_or_else(PoisonError::into_inner);
        let known = derived.iter().position(|known| known.salt == salt && known.rounds == rounds);
        if let Some(known) = known {
            // The one that was used last is forgotten last.
            let known = derived.remove(known);
            let key = known.key.clone();
            derived.push(known);
            return key;
        }
        let key = seal::derive(&self.bytes, salt, rounds);
        if derived.len() == DERIVED_MAX {
            derived.remove(0);
        }
        derived.push(Derived { salt: salt.to_vec(), rounds, key: key.clone() });
        key
    }
}

/// 256 random bits as text, so that a key can go from a file into a variable and back.
fn random_text() -> Result<Zeroizing<String>, Error> {
    let bytes = seal::new_key()?;
    Ok(Zeroizing::new(URL_SAFE_NO_PAD.encode(&bytes[..])))
}

fn without_line_end(mut bytes: Zeroizing<Vec<u8>>) -> Zeroizing<Vec<u8>> {
    while bytes.last().is_some_and(|last| matches!(last, b'\n' | b'\r')) {
        bytes.pop();
    }
    bytes
}

/// What is wrong with a master key. K08
fn weakness(bytes: &[u8]) -> Option<&'static str> {
    let text = String::from_utf8_lossy(bytes);
    let plain = text.trim().to_lowercase().replace(['-', '_', ' '], "");
    if plain.is_empty() {
        return Some("is empty");
    }
    let usual = ["changeme", "secret", "password"];
    // A long key may begin as it likes.
    if plain.chars().count() < WORDY_CHARS_MAX && usual.iter().any(|word| plain.starts_with(word)) {
        return Some("is one that everybody tries first");
    }
    if text.chars().count() < MASTER_CHARS_MIN {
        return Some("has fewer than 16 characters");
    }
    let first = text.chars().next();
    if text.chars().all(|c| Some(c) == first) {
        return Some("is one character again and again");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::weakness;

    #[test]
    fn weak_master_keys_are_known() {
        // K08, TD-55
        for (key, why) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("change_me", "is one that everybody tries first"),
            ("CHANGE-ME-in-production", "is one that everybody tries first"),
            ("fifteen letters", "has fewer than 16 characters"),
            ("aaaaaaaaaaaaaaaaaaaa", "is one character again and again"),
        ] {
            assert_eq!(weakness(key.as_bytes()), Some(why), "{key:?}");
        }
        for key in ["sixteen letters!", "secret-0123456789-0123456789-0123456789"] {
            assert_eq!(weakness(key.as_bytes()), None);
        }
    }
}
