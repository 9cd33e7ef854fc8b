//! A folder of strangers' files: listed and read without following a link.

use std::fs::{self, File};
use std::io::Read as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, FileType, Mode, OFlags, openat};
use rustix::io::Errno;

use crate::error::{Error, Problem};
use crate::limits::FILES_MAX;
use crate::path::{parts, shown};

/// Folders that hold what others wrote, or nothing to read.
const SKIPPED: [&str; 9] = [
    ".git",
    "node_modules",
    ".venv",
    "venv",
    "__pycache__",
    "site-packages",
    "vendor",
    ".tox",
    ".mypy_cache",
];

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Relative, with slashes.
    pub path: String,
    pub bytes: u64,
}

/// The files of a folder, in order.
#[derive(Clone, Debug, Default)]
pub struct Listing {
    pub files: Vec<Listed>,
    /// Whether there are more than are listed.
    pub is_cut: bool,
}

/// Lists the plain files beneath a folder.
pub fn list(root: &Path) -> Result<Listing, Error> {
    let mut listing = Listing::default();
    let mut folders = vec![PathBuf::new()];
    let mut seen = 0;
    while let Some(folder) = folders.pop() {
        let at = root.join(&folder);
        let unreadable = |source| Error::Io {
            what: format!("folder `{}`", shown(&folder.to_string_lossy())),
            source,
        };
        for entry in fs::read_dir(&at).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            seen += 1;
            if seen > FILES_MAX {
                listing.is_cut = true;
                break;
            }
            // Not followed: a link is a file of its own kind here.
            let Ok(about) = entry.metadata() else { continue };
            let Ok(name) = entry.file_name().into_string() else { continue };
            if about.is_dir() && !SKIPPED.contains(&name.as_str()) {
                folders.push(folder.join(name));
            } else if about.is_file() {
                let path = folder.join(name).to_string_lossy().into_owned();
                listing.files.push(Listed { path, bytes: about.len() });
            }
        }
    }
    listing.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(listing)
}

/// Reads a text beneath a folder. No part of the path may be a link, and none may be `.git`. TD-136
pub fn read(root: &Path, path: &str, bytes_max: u64) -> Result<String, Error> {
    let refused = |problem| Error::Path { path: shown(path), problem };
    let parts = parts(path).map_err(refused)?;
    if parts.iter().any(|part| part.eq_ignore_ascii_case(".git")) {
        return Err(refused(Problem::Git));
    }
    let unusable =
        |source: Errno| Error::Io { what: format!("`{}`", shown(path)), source: source.into() };
    let folder = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let mut at: OwnedFd = openat(CWD, root, folder, Mode::empty()).map_err(unusable)?;
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        // A pipe must not be waited for.
        let flags =
            if is_last { OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC } else { folder };
        at =
            openat(&at, *part, flags | OFlags::NOFOLLOW, Mode::empty()).map_err(
                |error| match error {
                    Errno::LOOP => refused(Problem::Link),
                    Errno::NOENT | Errno::NOTDIR => Error::NoFile { path: shown(path) },
                    other => unusable(other),
                },
            )?;
    }
    let about = rustix::fs::fstat(&at).map_err(unusable)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(Error::NoFile { path: shown(path) });
    }
    let bytes = u64::try_from(about.st_size).unwrap_or(u64::MAX);
    if bytes > bytes_max {
        return Err(Error::FileTooLarge { path: shown(path), bytes, most: bytes_max });
    }
    let mut content = Vec::new();
    let read = File::from(at).take(bytes_max).read_to_end(&mut content);
    read.map_err(|source| Error::Io { what: format!("`{}`", shown(path)), source })?;
    if content.contains(&0) {
        return Err(Error::NoText { path: shown(path) });
    }
    String::from_utf8(content).map_err(|_| Error::NoText { path: shown(path) })
}
