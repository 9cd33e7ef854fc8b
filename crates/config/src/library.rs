//! Files of toolsets: those that users have saved, and those of hypertool.
//!
//! Read here and made into text; where they are kept is known to whoever writes them.

mod archive;
mod persona;
pub mod saved;

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use catalog::toolset::Toolset;
use mcp::json;

use crate::fault::Fault;
use crate::library::saved::Text;
use crate::limits::{ARCHIVE_BYTES_MAX, LIBRARY_BYTES_MAX, PERSONA_BYTES_MAX};

/// What a file or folder brings.
#[derive(Debug, Default)]
pub struct Bundle {
    pub toolsets: Vec<Toolset>,
    pub groups: Vec<Group>,
    /// What was equipped where it comes from.
    pub last_equipped: Option<String>,
    /// What else a person should know.
    pub notes: Vec<String>,
}

/// A group of servers: all of their tools.
#[derive(Debug)]
pub struct Group {
    pub name: String,
    pub description: Option<String>,
    pub servers: Vec<String>,
}

/// Reads what is at `path`, whatever it is: toolsets as they are saved or exported, hypertool's `config.json` and
/// `groups.json` or the folder that they are in, a persona's folder or archive.
pub fn bundle(path: &Path) -> Result<Bundle, Fault> {
    if path.is_dir() {
        return folder(path);
    }
    let is_persona = path.file_name().is_some_and(|name| persona::FILES.iter().any(|f| name == *f));
    if is_persona {
        return persona_at(path, &path.with_file_name("mcp.json"));
    }
    let bytes = bytes(path, LIBRARY_BYTES_MAX)?;
    if bytes.starts_with(&archive::MAGIC) {
        if bytes.len() as u64 > ARCHIVE_BYTES_MAX {
            return Err(whole(path, "over 4 MiB; that is too large for a persona"));
        }
        let unpacked = archive::unpack(&bytes).map_err(|problem| whole(path, &problem))?;
        return persona::read(path, &unpacked.persona, unpacked.servers.as_deref());
    }
    json_text(path, &text(path, bytes)?)
}

fn folder(path: &Path) -> Result<Bundle, Fault> {
    if let Some(file) = persona::FILES.iter().map(|file| path.join(file)).find(|f| f.is_file()) {
        return persona_at(&file, &path.join("mcp.json"));
    }
    let mut all = Bundle::default();
    let names = ["toolsets.json", "config.json", "groups.json"];
    let files: Vec<PathBuf> =
        names.iter().map(|name| path.join(name)).filter(|file| file.is_file()).collect();
    if files.is_empty() {
        let problem =
            "has none of `persona.yaml`, `toolsets.json`, `config.json` and `groups.json`";
        return Err(whole(path, &format!("{problem}; name another file or folder")));
    }
    for file in files {
        let Bundle { toolsets, groups, last_equipped, notes } = bundle(&file)?;
        for toolset in toolsets {
            // What was written to `toolsets.json` is the newer one.
            if !all.toolsets.iter().any(|known| known.name == toolset.name) {
                all.toolsets.push(toolset);
            }
        }
        all.groups.extend(groups);
        all.last_equipped = all.last_equipped.or(last_equipped);
        all.notes.extend(notes);
    }
    Ok(all)
}

fn persona_at(file: &Path, servers: &Path) -> Result<Bundle, Fault> {
    let read = |path: &Path| text(path, bytes(path, PERSONA_BYTES_MAX)?);
    let servers = servers.is_file().then(|| read(servers)).transpose()?;
    persona::read(file, &read(file)?, servers.as_deref())
}

fn json_text(path: &Path, text: &str) -> Result<Bundle, Fault> {
    let text = Text { file: path, text };
    let members = text.entries()?;
    let of = |name: &str| members.iter().find(|(key, _)| key == name).map(|(_, value)| *value);
    if let Some(groups) = of("groups").filter(|value| value.starts_with('[')) {
        return Ok(Bundle { groups: text.groups(groups)?, ..Bundle::default() });
    }
    let is_settings =
        |value: &&str| matches!(json::members(value.as_bytes(), ["tools"]), Ok([None]));
    let (toolsets, last_equipped) = match of("toolsets").filter(is_settings) {
        Some(toolsets) => {
            let name = of("lastEquippedToolset").and_then(json::string);
            (text.toolsets(toolsets)?, name.map(String::from))
        }
        None => (saved::read(path, text.text)?, None),
    };
    let toolsets = toolsets.into_iter().filter_map(|saved| saved.toolset).collect();
    Ok(Bundle { toolsets, last_equipped, ..Bundle::default() })
}

/// The bytes of a file that is not too large.
pub fn bytes(path: &Path, max: u64) -> Result<Vec<u8>, Fault> {
    let unreadable = |error: std::io::Error| {
        whole(path, &format!("can't be read: {}; check its path and permissions", error.kind()))
    };
    let is_file = std::fs::metadata(path).map_err(unreadable)?.is_file();
    if !is_file {
        return Err(whole(path, "is not a regular file; name another"));
    }
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(unreadable)?;
    file.take(max + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > max {
        return Err(whole(path, &format!("over {} MiB; that is too large", max >> 20)));
    }
    Ok(bytes)
}

fn text(path: &Path, bytes: Vec<u8>) -> Result<String, Fault> {
    String::from_utf8(bytes).map_err(|_| whole(path, "is not UTF-8; save it as UTF-8"))
}

/// A fault of a whole file.
fn whole(path: &Path, problem: &str) -> Fault {
    Fault { file: path.to_owned(), place: None, problem: problem.to_owned() }
}

/// The text of the file of saved toolsets; `None` where there is no such file yet.
pub fn text_at(path: &Path) -> Result<Option<String>, Fault> {
    use std::io::ErrorKind::{NotADirectory, NotFound};
    match std::fs::metadata(path) {
        Err(error) if matches!(error.kind(), NotFound | NotADirectory) => Ok(None),
        _ => text(path, bytes(path, LIBRARY_BYTES_MAX)?).map(Some),
    }
}

#[cfg(test)]
mod tests;
