//! Archives of personas: tar and gzip, unpacked in memory and nowhere else.

use std::io::Read as _;
use std::path::{Component, Path};

use flate2::read::MultiGzDecoder;
use mcp::text::shorten;

use super::persona;
use crate::limits::{ARCHIVE_ENTRIES_MAX, PERSONA_BYTES_MAX, UNPACKED_BYTES_MAX};

/// How gzip begins.
pub const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The files of an archive that count.
#[derive(Debug)]
pub struct Unpacked {
    pub persona: String,
    pub servers: Option<String>,
}

/// Finds the files of a persona, at the top or in one folder; the rest is passed over, unless it is a trap.
pub fn unpack(bytes: &[u8]) -> Result<Unpacked, String> {
    let mut unpacked = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(UNPACKED_BYTES_MAX + 1).read_to_end(&mut unpacked);
    let broken = |error: std::io::Error| format!("no archive that can be read: {error}");
    read.map_err(broken)?;
    if unpacked.len() as u64 > UNPACKED_BYTES_MAX {
        return Err("unpacks to more than 16 MiB; that is too large for a persona".into());
    }
    let (mut persona, mut servers) = (None, None);
    let mut archive = tar::Archive::new(unpacked.as_slice());
    for (count, entry) in archive.entries().map_err(broken)?.enumerate() {
        if count == ARCHIVE_ENTRIES_MAX {
            return Err(format!("has more than {ARCHIVE_ENTRIES_MAX} entries"));
        }
        let mut entry = entry.map_err(broken)?;
        let path = entry.path().map_err(broken)?.into_owned();
        let shown = shorten(&path.to_string_lossy());
        let kind = entry.header().entry_type();
        if !kind.is_file() && !kind.is_dir() {
            return Err(format!("`{shown}` is neither a file nor a folder; it is not unpacked"));
        }
        let Some(place) = place(&path) else {
            return Err(format!("`{shown}` leads out of the archive; it is not unpacked"));
        };
        let slot = match place.as_slice() {
            [name] | [_, name] if persona::FILES.contains(name) => &mut persona,
            ["mcp.json"] | [_, "mcp.json"] => &mut servers,
            _ => continue,
        };
        if !kind.is_file() {
            continue;
        }
        if entry.size() > PERSONA_BYTES_MAX {
            return Err(format!("`{shown}` has over 1 MiB; that is too large for a persona"));
        }
        let mut text = String::new();
        entry.read_to_string(&mut text).map_err(broken)?;
        if slot.replace(text).is_some() {
            return Err(format!("`{shown}` is there twice"));
        }
    }
    let persona = persona.ok_or("has no `persona.yaml`")?;
    Ok(Unpacked { persona, servers })
}

/// The names on the way to an entry; `None` if it leads elsewhere.
fn place(path: &Path) -> Option<Vec<&str>> {
    let mut names = Vec::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            // A name that is no text is none of ours.
            Component::Normal(name) => names.push(name.to_str().unwrap_or_default()),
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    Some(names)
}
