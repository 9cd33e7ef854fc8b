//! Keeping paths apart from what no worker may see. Landlock has no rule that takes something away again, so a
//! folder with such a thing in it is replaced by all else that it holds.

use std::fs;
use std::path::{Path, PathBuf};

/// What a worker is granted, and what is kept from it.
#[derive(Debug, Default)]
pub struct Apart {
    pub granted: Vec<PathBuf>,
    /// Paths that lead into what is closed; nothing of them is granted.
    pub refused: Vec<PathBuf>,
    /// Those of which nothing is granted because too much would have to be named.
    pub too_wide: Vec<PathBuf>,
}

/// How many parts a folder may be replaced by; with more, nothing of it is granted.
const PARTS_MAX: usize = 1_500;
/// How many bytes all of them may have. What is read and what is written, together, has to fit into an argument of a
/// program, which the kernel bounds at 128 KiB.
const BYTES_MAX: usize = 48 * 1024;

/// All of `paths` but what is in, or leads to, a folder of `closed`. What is not there is left out.
pub fn apart(paths: &[PathBuf], closed: &[PathBuf]) -> Apart {
    let closed: Vec<PathBuf> = closed.iter().map(|path| real(path)).collect();
    let mut apart = Apart::default();
    let mut room = BYTES_MAX;
    for path in paths {
        // `/proc/self` is another place for whoever will be granted it.
        if path.starts_with("/proc") {
            apart.granted.push(path.clone());
            continue;
        }
        let Ok(place) = fs::canonicalize(path) else { continue };
        if closed.iter().any(|closed| place.starts_with(closed)) {
            apart.refused.push(path.clone());
            continue;
        }
        let mut parts = Vec::new();
        let is_short = grant(&place, &closed, &mut parts);
        // Each has a line of its own, with a mark.
        let bytes: usize = parts.iter().map(|part| part.as_os_str().len() + 2).sum();
        match room.checked_sub(bytes).filter(|_| is_short) {
            Some(rest) => {
                room = rest;
                apart.granted.extend(parts);
            }
            None => apart.too_wide.push(path.clone()),
        }
    }
    apart.granted.sort();
    apart.granted.dedup();
    apart
}

/// Adds a place that is not closed itself, or its parts; false if there are too many.
fn grant(place: &Path, closed: &[PathBuf], parts: &mut Vec<PathBuf>) -> bool {
    if !closed.iter().any(|closed| closed.starts_with(place)) {
        parts.push(place.to_owned());
        return parts.len() <= PARTS_MAX;
    }
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        let path = entry.path();
        // A link is followed where it is granted, so it is granted nowhere: what it leads to may be elsewhere.
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        let is_closed = closed.iter().any(|closed| path.starts_with(closed));
        if !is_link && !is_closed && !grant(&path, closed, parts) {
            return false;
        }
    }
    true
}

/// A path without links, as far as it is there.
fn real(path: &Path) -> PathBuf {
    if let Ok(real) = fs::canonicalize(path) {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    use super::apart;

    #[test]
    fn folder_around_what_is_closed_is_granted_without_it() {
        let root = std::env::temp_dir().join(format!("toolman-apart-{}", std::process::id()));
        for folder in ["opt/python/bin", "opt/app/data/scratch", "opt/app/bin"] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        fs::write(root.join("opt/app/data/secrets.key"), "hush").unwrap();
        fs::write(root.join("opt/file"), "").unwrap();
        symlink(root.join("opt/app/data"), root.join("opt/link")).unwrap();
        symlink(root.join("opt"), root.join("opt/python/round")).unwrap();
        let root = fs::canonicalize(root).unwrap();
        let closed = [root.join("opt/app/data")];
        let granted = |path: PathBuf| {
            let apart = apart(&[path], &closed);
            let shown = |path: &PathBuf| path.strip_prefix(&root).unwrap().display().to_string();
            (apart.granted.iter().map(shown).collect::<Vec<_>>().join(" "), apart.refused.len())
        };
        let around = ("opt/app/bin opt/file opt/python".to_owned(), 0);
        assert_eq!(granted(root.join("opt")), around);
        // A link to it is the same.
        assert_eq!(granted(root.join("opt/python/round")), around);
        assert_eq!(granted(root.join("opt/python")), ("opt/python".to_owned(), 0));
        for inside in ["opt/app/data", "opt/app/data/secrets.key", "opt/link"] {
            assert_eq!(granted(root.join(inside)), (String::new(), 1), "{inside}");
        }
        assert_eq!(granted(root.join("missing")), (String::new(), 0));
        fs::remove_dir_all(root).unwrap();
    }
}
