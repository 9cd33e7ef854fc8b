//! The end of a file: its last line that is one, and what comes after it.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use crate::entry::Line;
use crate::limits::LINE_BYTES_MAX;

/// How a file ends.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// The last line that was written to its end.
    pub line: Option<Vec<u8>>,
    /// What follows it: a line that was not.
    pub torn: Vec<u8>,
    /// Whether the file ends within a line.
    pub is_open: bool,
}

/// Reads the end of a file; there may be none.
pub fn read(path: &Path) -> io::Result<Tail> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tail::default()),
        file => file?,
    };
    let length = file.metadata()?.len();
    // Two lines, of which the second may be torn.
    let window = length.min(2 * LINE_BYTES_MAX as u64);
    file.seek(SeekFrom::Start(length - window))?;
    let mut end = Vec::new();
    file.take(window).read_to_end(&mut end)?;
    let is_open = end.last().is_some_and(|byte| *byte != b'\n');
    let mut rest = end.strip_suffix(b"\n").unwrap_or(&end);
    // What ends the text is no whole line where no newline follows it.
    let mut is_whole = !is_open;
    loop {
        let start = rest.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        let line = &rest[start..];
        if is_whole && serde_json::from_slice::<Line>(line).is_ok() {
            let torn = end.get(rest.len() + 1..).unwrap_or_default();
            let torn = torn.strip_suffix(b"\n").unwrap_or(torn).to_vec();
            return Ok(Tail { line: Some(line.to_vec()), torn, is_open });
        }
        is_whole = true;
        if start == 0 {
            let torn = end.strip_suffix(b"\n").unwrap_or(&end).to_vec();
            return Ok(Tail { line: None, torn, is_open });
        }
        rest = &rest[..start - 1];
    }
}
