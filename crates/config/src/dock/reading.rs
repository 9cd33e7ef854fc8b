//! A folder of tools as it is read: its files, and a hash over all of them.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use aws_lc_rs::digest::{Context, SHA256};
use mcp::text::hexadecimal;

use super::files::{self, Found};
use super::manifest::Manifest;
use crate::limits::{DOCK_BYTES_MAX, DOCK_FILES_MAX, TOOL_FILE_BYTES_MAX};

/// What a folder says of itself.
const MANIFEST: &str = "tooldock.yaml";
/// How others would spell it.
const MISSPELT: &str = "tooldock.yml";
/// How much of a file is read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// A folder that is being read.
pub struct Reading {
    /// Where it is, without links.
    root: PathBuf,
    context: Context,
    bytes: usize,
    files: usize,
    pub faults: Vec<String>,
    /// Whether it must not be served: what its own file forbids is not known, or not all of it was looked at.
    pub is_refused: bool,
}

impl Reading {
    pub fn new(folder: &Path) -> Reading {
        Reading {
            root: fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned()),
            context: Context::new(&SHA256),
            bytes: 0,
            files: 0,
            faults: Vec::new(),
            is_refused: false,
        }
    }

    /// What the folder says of itself; one that says what can't be read is refused, as it may forbid something.
    pub fn manifest(&mut self, folder: &Path) -> Manifest {
        let is_there = |name: &str| match fs::symlink_metadata(folder.join(name)) {
            Err(error) => error.kind() != io::ErrorKind::NotFound,
            Ok(_) => true,
        };
        if is_there(MISSPELT) {
            self.refuse(MISSPELT, vec![format!("is not read; name it `{MANIFEST}`")]);
        }
        if !is_there(MANIFEST) {
            return Manifest::default();
        }
        let text = match files::look(&self.root, &folder.join(MANIFEST)) {
            Ok(Found::File(file)) => files::bytes(file, TOOL_FILE_BYTES_MAX),
            Ok(Found::Folder) => Err("is a folder".to_owned()),
            Err(problem) => Err(problem),
        };
        let text = text.and_then(|bytes| {
            String::from_utf8(bytes).map_err(|_| "is not UTF-8; save it as such".to_owned())
        });
        match text.map_err(|problem| vec![problem]).and_then(|text| Manifest::parse(&text)) {
            Ok(manifest) => manifest,
            Err(problems) => {
                self.refuse(MANIFEST, problems);
                Manifest::default()
            }
        }
    }

    fn refuse(&mut self, file: &str, problems: Vec<String>) {
        self.is_refused = true;
        self.complain(file, problems);
    }

    /// Reads all of the folder into the hash; the texts of those files right in it that mean something to us.
    pub fn texts(&mut self, folder: &Path) -> Vec<(String, String)> {
        let mut texts = Vec::new();
        self.take_in(folder, "", &mut texts);
        texts
    }

    fn take_in(&mut self, folder: &Path, within: &str, texts: &mut Vec<(String, String)>) {
        let names = files::names(folder).unwrap_or_else(|error| {
            let place = if within.is_empty() { String::new() } else { format!("{within}: ") };
            self.faults.push(format!("{place}can't be read: {error}"));
            Vec::new()
        });
        for name in names {
            self.files += 1;
            if self.is_too_much() {
                return;
            }
            let (path, relative) = (folder.join(&name), format!("{within}{name}"));
            let is_meant = within.is_empty() && is_text_of_ours(&name);
            match files::look(&self.root, &path) {
                Ok(Found::Folder) => {
                    self.note(b"folder", &relative, &[]);
                    self.take_in(&path, &format!("{relative}/"), texts);
                }
                Ok(Found::File(file)) => match self.hash(file, &relative, is_meant) {
                    Ok(Some(bytes)) => match String::from_utf8(bytes) {
                        Ok(text) => texts.push((name, text)),
                        Err(_) => self.faults.push(format!("{relative}: is not UTF-8")),
                    },
                    Ok(None) => {}
                    Err(problem) => self.faults.push(format!("{relative}: {problem}")),
                },
                // Others may be there for people.
                Err(problem) if is_meant || is_python(&name) => {
                    self.faults.push(format!("{relative}: {problem}"));
                }
                Err(_) => {}
            }
        }
    }

    /// Hashes a file; what it holds if that is wanted.
    fn hash(
        &mut self,
        mut file: File,
        relative: &str,
        is_kept: bool,
    ) -> Result<Option<Vec<u8>>, String> {
        let worded = |error: io::Error| format!("can't be read: {error}");
        let mode = file.metadata().map_err(worded)?.permissions().mode();
        let mut own = Context::new(&SHA256);
        let (mut kept, mut piece) = (Vec::new(), vec![0; PIECE_BYTES]);
        loop {
            let length = file.read(&mut piece).map_err(worded)?;
            if length == 0 {
                break;
            }
            own.update(&piece[..length]);
            self.bytes = self.bytes.saturating_add(length);
            if self.is_too_much() {
                return Ok(None);
            }
            if is_kept && kept.len() <= TOOL_FILE_BYTES_MAX {
                kept.extend_from_slice(&piece[..length]);
            }
        }
        let kind = if mode & 0o111 == 0 { &b"file"[..] } else { b"program" };
        self.note(kind, relative, own.finish().as_ref());
        if kept.len() > TOOL_FILE_BYTES_MAX {
            return Err("is larger than 1 MiB".into());
        }
        Ok(is_kept.then_some(kept))
    }

    fn note(&mut self, kind: &[u8], relative: &str, digest: &[u8]) {
        for part in [kind, relative.as_bytes(), digest] {
            self.context.update(&(part.len() as u64).to_le_bytes());
            self.context.update(part);
        }
    }

    /// Whether the folder holds more than is read and copied; then it is refused, which is said once.
    fn is_too_much(&mut self) -> bool {
        if self.files <= DOCK_FILES_MAX && self.bytes <= DOCK_BYTES_MAX {
            return false;
        }
        let mib = DOCK_BYTES_MAX / 1024 / 1024;
        let problem = format!(
            "holds more than {DOCK_FILES_MAX} files or {mib} MiB; keep data elsewhere, and name it under `read` in {MANIFEST}"
        );
        if !self.faults.contains(&problem) {
            self.is_refused = true;
            self.faults.push(problem);
        }
        true
    }

    pub fn complain(&mut self, file: &str, problems: Vec<String>) {
        self.faults.extend(problems.into_iter().map(|problem| format!("{file}: {problem}")));
    }

    /// A hash over all that the folder holds.
    pub fn version(&self) -> String {
        hexadecimal(self.context.clone().finish().as_ref())
    }
}

/// Whether a file right in the folder is read by us.
fn is_text_of_ours(name: &str) -> bool {
    matches!(name, "requirements.txt" | "pyproject.toml")
        || is_python(name) && !name.starts_with('_')
}

fn is_python(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "py")
}
