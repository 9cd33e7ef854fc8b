//! Reading a configuration file: what it is, who may write to it, how it is encoded.
//!
//! Whoever can write to it decides which programs run, so a file that strangers can change is
//! refused. What the text means is not known here.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};

use crate::limits::FILE_BYTES_MAX;

/// A file that was read.
#[derive(Debug)]
pub struct Contents {
    pub text: String,
    /// The folder that it lies in, absolute.
    pub folder: PathBuf,
}

/// Reads the file, or says everything that is wrong with it as a whole.
pub fn read(path: &Path) -> Result<Contents, Vec<String>> {
    let unreadable = |error: io::Error| vec![word(&error)];
    // Asked before it is opened: opening a pipe would wait until somebody writes to it.
    let kind = std::fs::metadata(path).map_err(unreadable)?.file_type();
    if kind.is_dir() {
        return Err(vec!["is a folder; pass the file inside it with --config FILE".into()]);
    }
    if !kind.is_file() {
        return Err(vec!["is not a regular file; pass another with --config FILE".into()]);
    }
    let file = File::open(path).map_err(unreadable)?;
    let metadata = file.metadata().map_err(unreadable)?;
    let user = rustix::process::geteuid().as_raw();
    let problems = distrust(path, metadata.uid(), metadata.mode() & 0o7777, user);
    if !problems.is_empty() {
        return Err(problems);
    }
    let too_large = || vec!["over 1 MiB; keep only the configuration in it".to_owned()];
    if metadata.len() > FILE_BYTES_MAX {
        return Err(too_large());
    }
    let mut bytes = Vec::new();
    // It may have grown in the meantime.
    let read = file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes);
    if read.map_err(unreadable)? as u64 > FILE_BYTES_MAX {
        return Err(too_large());
    }
    let path = std::path::absolute(path).map_err(unreadable)?;
    Ok(Contents {
        text: decode(bytes).map_err(|problem| vec![problem])?,
        folder: path.parent().unwrap_or(&path).to_owned(),
    })
}

fn word(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => {
            "no such file; write one (see the README) or pass --config FILE".into()
        }
        kind => format!("can't be read: {kind}; check its path and permissions"),
    }
}

/// Why a file with this owner and mode must not be believed.
fn distrust(path: &Path, owner: u32, mode: u32, user: u32) -> Vec<String> {
    let path = path.display();
    let mut problems = Vec::new();
    if owner != user && owner != 0 {
        problems.push(format!(
            "owned by user {owner} with mode {mode:04o}, but this is user {user}; \
             run `chown {user} {path}`"
        ));
    }
    if mode & 0o002 != 0 {
        problems.push(format!(
            "owned by user {owner} with mode {mode:04o}, so anyone can change it; \
             run `chmod o-w {path}`"
        ));
    }
    problems
}

fn decode(bytes: Vec<u8>) -> Result<String, String> {
    // TOML knows no NUL, so one among the first two bytes is half a character of UTF-16.
    let is_utf16 =
        matches!(bytes[..], [0xff, 0xfe, ..] | [0xfe, 0xff, ..] | [0, _, ..] | [_, 0, ..]);
    let valid_up_to = match String::from_utf8(bytes) {
        Ok(text) if !is_utf16 => return Ok(text),
        Ok(text) => text.find('\0').unwrap_or(0),
        Err(error) => error.utf8_error().valid_up_to(),
    };
    let looks_like = if is_utf16 { ", but UTF-16" } else { "" };
    Err(format!("not UTF-8 at byte {valid_up_to}{looks_like}; save it as UTF-8"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{decode, distrust};

    #[track_caller]
    fn check_trust(owner: u32, mode: u32, user: u32, problems: &[&str]) {
        assert_eq!(distrust(Path::new("tools.toml"), owner, mode, user), problems);
    }

    #[test]
    fn file_of_this_user_or_of_root_is_believed() {
        check_trust(1000, 0o644, 1000, &[]);
        check_trust(1000, 0o660, 1000, &[]);
        check_trust(0, 0o644, 1000, &[]);
        check_trust(0, 0o600, 0, &[]);
    }

    #[test]
    fn file_that_strangers_can_change_is_refused_with_owner_and_mode() {
        // C16
        let owned = "owned by user 1001 with mode 0644, but this is user 1000; \
                     run `chown 1000 tools.toml`";
        check_trust(1001, 0o644, 1000, &[owned]);
        let open = "owned by user 1000 with mode 0666, so anyone can change it; \
                    run `chmod o-w tools.toml`";
        check_trust(1000, 0o666, 1000, &[open]);
        let both = [
            "owned by user 7 with mode 0606, but this is user 0; run `chown 0 tools.toml`",
            "owned by user 7 with mode 0606, so anyone can change it; run `chmod o-w tools.toml`",
        ];
        check_trust(7, 0o606, 0, &both);
    }

    #[test]
    fn other_encodings_are_named_with_the_place() {
        // C01
        let refuse = |bytes: &[u8]| decode(bytes.to_owned()).unwrap_err();
        assert_eq!(refuse(b"a = '\xe4'"), "not UTF-8 at byte 5; save it as UTF-8");
        let from_the_start = "not UTF-8 at byte 0, but UTF-16; save it as UTF-8";
        assert_eq!(refuse(b"\xff\xfea\0"), from_the_start);
        assert_eq!(refuse(b"\xfe\xff\0a"), from_the_start);
        assert_eq!(refuse(b"\0a\0="), from_the_start);
        let unmarked = "not UTF-8 at byte 1, but UTF-16; save it as UTF-8";
        assert_eq!(refuse(b"a\0=\0"), unmarked);
        assert_eq!(decode(b"\xef\xbb\xbf#".to_vec()).unwrap(), "\u{feff}#");
    }
}
