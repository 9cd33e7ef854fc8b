//! Archives of strangers, unpacked by ourselves: each member is looked at, then written as a plain file.
//!
//! Nothing is written but beneath the new folder: no links, no modes, no owners, no times. An archive that is refused
//! leaves nothing behind. TD-141; HARDENING A04, A06, A08.

mod packed;
#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::error::{Error, Problem};
use crate::limits::{FILES_MAX, RATIO_MAX, RATIO_SLACK_BYTES, UNPACKED_BYTES_MAX};
use crate::path::{parts, shown};

/// How an archive is packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    TarGz,
    Zip,
}

impl Format {
    /// By the end of a file's name, as registries name them.
    pub fn of(name: &str) -> Result<Format, Error> {
        let ends = |ends: &[&str]| ends.iter().any(|end| name.ends_with(end));
        if ends(&[".tgz", ".tar.gz"]) {
            return Ok(Format::TarGz);
        }
        if ends(&[".whl", ".zip", ".mcpb"]) {
            return Ok(Format::Zip);
        }
        Err(Error::Format { name: shown(name) })
    }
}

/// What was unpacked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unpacked {
    pub files: usize,
    pub bytes: u64,
    /// Links that stay inside; they are not made.
    pub links_left_out: usize,
}

/// Unpacks an archive into a folder that is not there yet. If it fails, the folder is not there afterwards either.
pub fn unpack(archive: &[u8], format: Format, into: &Path) -> Result<Unpacked, Error> {
    let made = DirBuilder::new().mode(0o700).create(into);
    made.map_err(|source| Error::Io { what: format!("`{}`", into.display()), source })?;
    let mut target = Target::new(into, archive.len() as u64);
    let unpacked = match format {
        Format::TarGz => packed::tar_gz(archive, &mut target),
        Format::Zip => packed::zip(archive, &mut target),
    };
    if let Err(error) = unpacked {
        _ = fs::remove_dir_all(into);
        return Err(error);
    }
    Ok(target.done)
}

/// Where members are written, and how much may still come.
struct Target<'a> {
    folder: &'a Path,
    bytes_max: u64,
    /// Whether the ratio is what bounds the bytes.
    is_bound_by_ratio: bool,
    members: usize,
    folders: HashSet<PathBuf>,
    done: Unpacked,
}

impl<'a> Target<'a> {
    fn new(folder: &'a Path, packed_bytes: u64) -> Target<'a> {
        let by_ratio = packed_bytes.saturating_mul(RATIO_MAX).saturating_add(RATIO_SLACK_BYTES);
        Target {
            folder,
            bytes_max: by_ratio.min(UNPACKED_BYTES_MAX),
            is_bound_by_ratio: by_ratio < UNPACKED_BYTES_MAX,
            members: 0,
            folders: HashSet::new(),
            done: Unpacked { files: 0, bytes: 0, links_left_out: 0 },
        }
    }

    /// Counts a member, whatever it is.
    fn count(&mut self) -> Result<(), Error> {
        self.members += 1;
        if self.members > FILES_MAX { Err(Error::TooMany { most: FILES_MAX }) } else { Ok(()) }
    }

    fn too_large(&self) -> Error {
        if self.is_bound_by_ratio {
            Error::Bomb { times: RATIO_MAX }
        } else {
            Error::TooLarge { most: UNPACKED_BYTES_MAX }
        }
    }

    fn directory(&mut self, name: &str) -> Result<(), Error> {
        let parts = parts(name).map_err(|problem| refused(name, problem))?;
        self.make_folders(name, &parts)
    }

    /// Writes one file; `content` may be endless.
    fn file(&mut self, name: &str, content: &mut impl Read) -> Result<(), Error> {
        let parts = parts(name).map_err(|problem| refused(name, problem))?;
        let (_, folders) = parts.split_last().ok_or_else(|| refused(name, Problem::Empty))?;
        self.make_folders(name, folders)?;
        let path = self.folder.join(parts.join("/"));
        let opened = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        let mut file = opened.map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => refused(name, Problem::Twice),
            _ => Error::Io { what: format!("member `{}`", shown(name)), source: error },
        })?;
        let mut chunk = vec![0; 64 * 1024];
        loop {
            let count = content.read(&mut chunk).map_err(|error| damaged(&error))?;
            if count == 0 {
                break;
            }
            self.done.bytes += count as u64;
            if self.done.bytes > self.bytes_max {
                return Err(self.too_large());
            }
            let written = file.write_all(&chunk[..count]);
            written.map_err(|source| Error::Io {
                what: format!("`{}`", self.folder.display()),
                source,
            })?;
        }
        self.done.files += 1;
        Ok(())
    }

    /// Makes folders one by one, each of them ours: what is there already was made here, or is a file.
    fn make_folders(&mut self, name: &str, parts: &[&str]) -> Result<(), Error> {
        let mut path = self.folder.to_owned();
        for part in parts {
            path.push(part);
            if self.folders.contains(&path) {
                continue;
            }
            let made = DirBuilder::new().mode(0o700).create(&path);
            made.map_err(|error| match error.kind() {
                io::ErrorKind::AlreadyExists => refused(name, Problem::Twice),
                _ => Error::Io { what: format!("member `{}`", shown(name)), source: error },
            })?;
            if self.folders.len() >= FILES_MAX {
                return Err(Error::TooMany { most: FILES_MAX });
            }
            self.folders.insert(path.clone());
        }
        Ok(())
    }
}

fn refused(name: &str, problem: Problem) -> Error {
    Error::Member { member: shown(name), problem }
}

fn damaged(error: &dyn std::fmt::Display) -> Error {
    Error::Damaged { reason: shown(&error.to_string()) }
}
