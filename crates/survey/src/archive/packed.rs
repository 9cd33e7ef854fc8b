//! The two formats: what each says of its members.

use std::io::{self, Cursor, Read};

use flate2::read::MultiGzDecoder;
use tar::{Archive, Entry, EntryType};

use super::{Target, damaged, refused};
use crate::error::{Error, Problem};
use crate::limits::{EXTENSION_BYTES_MAX, FILES_MAX};
use crate::path::{parts, stays_inside};

/// Set-user-id and set-group-id.
const RIGHTS: u32 = 0o6000;
/// The kind of a file in its mode, and two of the kinds.
const KIND: u32 = 0o170_000;
const LINK: u32 = 0o120_000;
const PLAIN: u32 = 0o100_000;
const FOLDER: u32 = 0o040_000;

/// What begins each entry of a zip's directory.
const CENTRAL: &[u8] = b"PK\x01\x02";

/// What stands before a member and is meant for it.
#[derive(Default)]
struct Extension {
    name: Option<Vec<u8>>,
    link: Option<Vec<u8>>,
}

pub(super) fn tar_gz(archive: &[u8], target: &mut Target) -> Result<(), Error> {
    // What stands between the members counts too: an endless run of padding must end.
    let most = target.bytes_max.saturating_add((FILES_MAX as u64) * 4096);
    let mut archive = Archive::new(MultiGzDecoder::new(archive).take(most));
    let entries = archive.entries().map_err(|error| damaged(&error))?.raw(true);
    let mut extension = Extension::default();
    for entry in entries {
        let mut entry = entry.map_err(|error| damaged(&error))?;
        target.count()?;
        if !extension.read(&mut entry)? {
            member(&mut entry, std::mem::take(&mut extension), target)?;
        }
    }
    if target.members == 0 {
        return Err(Error::Damaged { reason: "it is empty".to_owned() });
    }
    Ok(())
}

impl Extension {
    /// Whether this entry is no member but tells of the next one.
    fn read<R: Read>(&mut self, entry: &mut Entry<R>) -> Result<bool, Error> {
        match entry.header().entry_type() {
            EntryType::GNULongName => self.name = Some(words(entry)?),
            EntryType::GNULongLink => self.link = Some(words(entry)?),
            EntryType::XHeader => {
                let said = words(entry)?;
                for (key, value) in records(&said)? {
                    match key {
                        b"path" => self.name = Some(value.to_vec()),
                        b"linkpath" => self.link = Some(value.to_vec()),
                        // Members that say their size elsewhere could be read in two ways.
                        b"size" => {
                            return Err(damaged(&"a size that stands outside of its header"));
                        }
                        _ => {}
                    }
                }
            }
            EntryType::XGlobalHeader => drop(words(entry)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

fn member<R: Read>(
    entry: &mut Entry<R>,
    extension: Extension,
    target: &mut Target,
) -> Result<(), Error> {
    let name = extension.name.unwrap_or_else(|| entry.path_bytes().into_owned());
    let lossy = String::from_utf8_lossy(&name).into_owned();
    let name = String::from_utf8(name).map_err(|_| refused(&lossy, Problem::Encoding))?;
    let kind = entry.header().entry_type();
    match kind {
        EntryType::Directory => target.directory(&name),
        EntryType::Regular | EntryType::Continuous => {
            let mode = entry.header().mode().map_err(|error| damaged(&error))?;
            if mode & RIGHTS != 0 {
                return Err(refused(&name, Problem::Rights));
            }
            target.file(&name, entry)
        }
        EntryType::Symlink | EntryType::Link => {
            let to = extension.link.or_else(|| entry.link_name_bytes().map(Vec::from));
            let to = String::from_utf8(to.unwrap_or_default());
            let to = to.map_err(|_| refused(&name, Problem::Encoding))?;
            link(&name, &to, kind == EntryType::Link, target)
        }
        EntryType::Char | EntryType::Block | EntryType::Fifo => {
            Err(refused(&name, Problem::Device))
        }
        _ => Err(refused(&name, Problem::Kind)),
    }
}

/// No link is made, and one that leads out condemns the archive.
fn link(name: &str, to: &str, is_hard: bool, target: &mut Target) -> Result<(), Error> {
    let parts = parts(name).map_err(|problem| refused(name, problem))?;
    // A hard link names its target from the top.
    let from: &[&str] = if is_hard { &[] } else { &parts };
    if to.is_empty() || !stays_inside(from, to) {
        return Err(refused(name, Problem::LinkOut));
    }
    target.done.links_left_out += 1;
    Ok(())
}

/// The content of an entry that tells of the next one.
fn words<R: Read>(entry: &mut Entry<R>) -> Result<Vec<u8>, Error> {
    if entry.size() > EXTENSION_BYTES_MAX {
        return Err(damaged(&"a name of it is too long"));
    }
    let mut words = Vec::new();
    entry.read_to_end(&mut words).map_err(|error| damaged(&error))?;
    if words.last() == Some(&0) {
        words.pop();
    }
    Ok(words)
}

/// A key with its value.
type Record<'a> = (&'a [u8], &'a [u8]);

/// The records of an extended header: `LENGTH key=value\n`.
fn records(mut said: &[u8]) -> Result<Vec<Record<'_>>, Error> {
    let malformed = || damaged(&"an extended header that can't be read");
    let mut records = Vec::new();
    while !said.is_empty() {
        let blank = said.iter().position(|byte| *byte == b' ').ok_or_else(malformed)?;
        let length = std::str::from_utf8(&said[..blank]).ok();
        let length: usize = length.and_then(|text| text.parse().ok()).ok_or_else(malformed)?;
        let record = said.get(blank + 1..length).ok_or_else(malformed)?;
        let record = record.strip_suffix(b"\n").ok_or_else(malformed)?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(malformed)?;
        records.push((&record[..equals], &record[equals + 1..]));
        said = &said[length..];
    }
    Ok(records)
}

pub(super) fn zip(archive: &[u8], target: &mut Target) -> Result<(), Error> {
    // The library reads what is said of all members before anybody can count them.
    if archive.windows(CENTRAL.len()).filter(|bytes| *bytes == CENTRAL).count() > FILES_MAX {
        return Err(Error::TooMany { most: FILES_MAX });
    }
    let opened = zip::ZipArchive::new(Cursor::new(archive));
    let mut archive = opened.map_err(|error| damaged(&error))?;
    if archive.len() > FILES_MAX {
        return Err(Error::TooMany { most: FILES_MAX });
    }
    for index in 0..archive.len() {
        target.count()?;
        let raw = archive.by_index_raw(index).map_err(|error| damaged(&error))?;
        let lossy = String::from_utf8_lossy(raw.name_raw()).into_owned();
        let name = String::from_utf8(raw.name_raw().to_vec());
        let name = name.map_err(|_| refused(&lossy, Problem::Encoding))?;
        let mode = raw.unix_mode().unwrap_or(PLAIN);
        let (is_folder, is_encrypted) = (name.ends_with('/'), raw.encrypted());
        drop(raw);
        if is_encrypted {
            return Err(refused(&name, Problem::Encrypted));
        }
        let kind = mode & KIND;
        if kind == LINK {
            let mut to = String::new();
            let mut member = archive.by_index(index).map_err(|error| damaged(&error))?;
            let read = member.by_ref().take(EXTENSION_BYTES_MAX).read_to_string(&mut to);
            read.map_err(|error: io::Error| damaged(&error))?;
            drop(member);
            link(&name, &to, false, target)?;
            continue;
        }
        if kind != PLAIN && kind != 0 && !(kind == FOLDER && is_folder) {
            return Err(refused(&name, Problem::Device));
        }
        if is_folder {
            target.directory(&name)?;
            continue;
        }
        if mode & RIGHTS != 0 {
            return Err(refused(&name, Problem::Rights));
        }
        let mut member = archive.by_index(index).map_err(|error| damaged(&error))?;
        target.file(&name, &mut member)?;
    }
    Ok(())
}
