//! Paths that strangers name: taken apart and checked, so that they stay beneath a folder.

use crate::error::Problem;
use crate::limits::{PATH_BYTES_MAX, PATH_PARTS_MAX};

/// The longest name that file systems take.
const NAME_BYTES_MAX: usize = 255;

/// The parts of a relative path; `.` and doubled slashes say nothing and are dropped.
pub fn parts(path: &str) -> Result<Vec<&str>, Problem> {
    if path.is_empty() {
        return Err(Problem::Empty);
    }
    if path.len() > PATH_BYTES_MAX {
        return Err(Problem::Long);
    }
    if path.chars().any(char::is_control) {
        return Err(Problem::Control);
    }
    if path.starts_with('/') {
        return Err(Problem::Absolute);
    }
    if path.contains('\\') {
        return Err(Problem::Backslash);
    }
    let mut letters = path.chars();
    if letters.next().is_some_and(|first| first.is_ascii_alphabetic())
        && letters.next() == Some(':')
    {
        return Err(Problem::Drive);
    }
    let parts: Vec<&str> =
        path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(Problem::Parent);
    }
    if parts.is_empty() {
        return Err(Problem::Empty);
    }
    if parts.len() > PATH_PARTS_MAX || parts.iter().any(|part| part.len() > NAME_BYTES_MAX) {
        return Err(Problem::Long);
    }
    Ok(parts)
}

/// Whether a link at `from` to `target` stays beneath the folder that both are in.
pub fn stays_inside(from: &[&str], target: &str) -> bool {
    if target.starts_with('/') || target.contains('\\') {
        return false;
    }
    let mut depth = from.len().saturating_sub(1);
    for part in target.split('/') {
        match part {
            "" | "." => {}
            ".." if depth == 0 => return false,
            ".." => depth -= 1,
            _ => depth += 1,
        }
    }
    true
}

/// What follows the last point of a file's name.
pub fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or("", |(_, extension)| extension)
}

/// A name of a stranger, fit for a message.
pub fn shown(name: &str) -> String {
    let mut shown: String = name.chars().take(80).flat_map(char::escape_debug).collect();
    if name.chars().count() > 80 {
        shown.push('…');
    }
    shown
}
