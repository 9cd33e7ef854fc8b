//! The files of a folder of tools: which of them count, and how they are opened without harm.
//!
//! Whoever writes there may leave pipes, devices, links that lead elsewhere, and files that never end. What is read and
//! what is copied go through here, so that both are the same.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use rustix::fs::OFlags;

/// Something in a folder of tools.
pub enum Found {
    Folder,
    /// Open for reading, and a file for sure.
    File(File),
}

/// The names in a folder that count, in order. Files that begin with `_` are no tools, but tools import them.
pub fn names(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        if let Ok(name) = entry?.file_name().into_string()
            && !name.starts_with('.')
            && name != "__pycache__"
        {
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

/// What lies at a path below `root`, which has no links in it; or why it is none of the folder.
pub fn look(root: &Path, path: &Path) -> Result<Found, String> {
    let worded = |error: io::Error| format!("can't be read: {error}");
    let known = fs::symlink_metadata(path).map_err(worded)?;
    if known.is_dir() {
        return Ok(Found::Folder);
    }
    if !known.is_symlink() {
        return open(path).map(Found::File);
    }
    let real = fs::canonicalize(path)
        .map_err(|error| format!("is a link that can't be followed: {error}"))?;
    if !real.starts_with(root) {
        return Err("is a link that leads out of the folder; put the file itself there".into());
    }
    if real.is_dir() {
        return Err("is a link to a folder; put the folder itself there".into());
    }
    open(&real).map(Found::File)
}

/// Opens a file, if it is one: a pipe would hold up who opens it, and a device need not end.
fn open(path: &Path) -> Result<File, String> {
    let worded = |error: io::Error| format!("can't be read: {error}");
    let no_file = || Err("is no file; pipes, sockets and devices are not served".to_owned());
    if !fs::symlink_metadata(path).map_err(worded)?.is_file() {
        return no_file();
    }
    // It may be another by now.
    let flags = (OFlags::NONBLOCK | OFlags::NOFOLLOW).bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(worded)?;
    if file.metadata().map_err(worded)?.is_file() { Ok(file) } else { no_file() }
}

/// All of a file, if that is not too much.
pub fn bytes(file: File, bytes_max: usize) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    let read = file.take(bytes_max as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| format!("can't be read: {error}"))?;
    if bytes.len() > bytes_max {
        return Err(format!("is larger than {bytes_max} bytes"));
    }
    Ok(bytes)
}
