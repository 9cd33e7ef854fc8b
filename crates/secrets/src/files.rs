//! The files of the safe: who may have touched them, and how they are replaced.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use rustix::fs::OFlags;
use zeroize::Zeroizing;

use crate::error::Error;

/// Who else may read a file.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Privacy {
    /// Nobody.
    Secret,
    /// Everybody; but nobody else writes to it.
    Readable,
}

/// Whether a link is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Links {
    Refused,
    /// For a file that somebody has named, who may name a link.
    Followed,
}

/// The contents of a file; `None` if it is not there.
pub fn read(
    path: &Path,
    privacy: Privacy,
    links: Links,
    bytes_max: u64,
) -> Result<Option<Zeroizing<Vec<u8>>>, Error> {
    let wrong = |error| Error::File { path: path.to_owned(), deed: "read", error };
    let distrust = |problem: &str| Error::Distrusted {
        path: path.to_owned(),
        problem: problem.replace("FILE", &path.display().to_string()),
    };
    // Without waiting: opening a pipe would wait until somebody writes to it.
    let mut flags = OFlags::NONBLOCK;
    if links == Links::Refused {
        flags |= OFlags::NOFOLLOW;
    }
    let opened = OpenOptions::new().read(true).custom_flags(flags.bits().cast_signed()).open(path);
    let mut file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(distrust("is a link, which is not followed; put the file itself there"));
        }
        Err(error) => return Err(wrong(error)),
    };
    let metadata = file.metadata().map_err(wrong)?;
    if !metadata.is_file() {
        return Err(distrust("is no regular file; remove it"));
    }
    let user = rustix::process::geteuid().as_raw();
    if let Some(problem) = distrusted(metadata.uid(), metadata.mode() & 0o7777, user, privacy) {
        return Err(distrust(&problem));
    }
    if metadata.len() > bytes_max {
        return Err(distrust(&format!("has over {bytes_max} bytes; it is not of ours")));
    }
    let mut bytes = Zeroizing::new(Vec::new());
    // One more than it says and may have, so that it need not grow, and is seen if it does.
    let room = usize::try_from(metadata.len()).unwrap_or(0) + 1;
    bytes.reserve_exact(room);
    let read = (&mut file).take(bytes_max + 1).read_to_end(&mut bytes).map_err(wrong)?;
    if read as u64 > bytes_max {
        return Err(distrust(&format!("has over {bytes_max} bytes; it is not of ours")));
    }
    Ok(Some(bytes))
}

/// Why a file with this owner and mode must not be believed, with what to do. K06
fn distrusted(owner: u32, mode: u32, user: u32, privacy: Privacy) -> Option<String> {
    if owner != user {
        return Some(format!(
            "is owned by user {owner}, but this is user {user}; run `chown {user} FILE`"
        ));
    }
    match privacy {
        Privacy::Secret if mode & 0o077 != 0 => Some(format!(
            "has mode {mode:04o}, so others may read or change it; run `chmod 600 FILE`"
        )),
        Privacy::Readable if mode & 0o022 != 0 => {
            Some(format!("has mode {mode:04o}, so others may change it; run `chmod go-w FILE`"))
        }
        _ => None,
    }
}

/// Replaces a file at once: it holds the old bytes or the new ones, never a part, also after a crash.
///
/// The lock must be held: what a killed process has left behind is overwritten.
pub fn replace(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), Error> {
    let mut fresh = path.as_os_str().to_owned();
    fresh.push(".new");
    let fresh = Path::new(&fresh);
    write_new(fresh, bytes, privacy)?;
    put_in_place(fresh, path)
}

/// Writes a file anew, down to the disk.
pub fn write_new(path: &Path, bytes: &[u8], privacy: Privacy) -> Result<(), Error> {
    let wrong = |error| Error::File { path: path.to_owned(), deed: "write", error };
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(wrong(error)),
        _ => {}
    }
    create(path, bytes, privacy).map_err(wrong)
}

/// Writes a file that must not be there yet.
pub fn create(path: &Path, bytes: &[u8], privacy: Privacy) -> io::Result<()> {
    let mode = if privacy == Privacy::Secret { 0o600 } else { 0o644 };
    let mut file = OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

pub fn put_in_place(fresh: &Path, path: &Path) -> Result<(), Error> {
    let wrong = |error| Error::File { path: path.to_owned(), deed: "replace", error };
    std::fs::rename(fresh, path).map_err(wrong)?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let folder = folder.unwrap_or(Path::new("."));
    File::open(folder).and_then(|folder| folder.sync_all()).map_err(wrong)
}

#[cfg(test)]
mod tests {
    use super::{Privacy, distrusted};

    #[test]
    fn file_of_others_or_for_others_is_refused_with_the_fix() {
        // K06
        let problem = |owner, mode, privacy| distrusted(owner, mode, 1000, privacy);
        assert_eq!(problem(1000, 0o600, Privacy::Secret), None);
        assert_eq!(problem(1000, 0o400, Privacy::Secret), None);
        assert_eq!(problem(1000, 0o644, Privacy::Readable), None);
        let open = "has mode 0644, so others may read or change it; run `chmod 600 FILE`";
        assert_eq!(problem(1000, 0o644, Privacy::Secret).as_deref(), Some(open));
        let writable = "has mode 0664, so others may change it; run `chmod go-w FILE`";
        assert_eq!(problem(1000, 0o664, Privacy::Readable).as_deref(), Some(writable));
        let owned = "is owned by user 0, but this is user 1000; run `chown 1000 FILE`";
        assert_eq!(problem(0, 0o600, Privacy::Secret).as_deref(), Some(owned));
    }
}
