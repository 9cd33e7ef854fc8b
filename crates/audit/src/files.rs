//! The files of a trail: `2026-07-28.jsonl`, and `2026-07-28.1.jsonl` for a second process.

use std::io;
use std::path::{Path, PathBuf};

use crate::calendar::Day;
use crate::error::Error;
use crate::limits::SLOTS_MAX;

/// One file: a day of a slot. Ordered by time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileName {
    pub day: Day,
    /// Which of the processes that write at the same time.
    pub slot: usize,
}

impl FileName {
    pub fn in_folder(self, folder: &Path) -> PathBuf {
        let day = self.day;
        folder.join(match self.slot {
            0 => format!("{day}.jsonl"),
            slot => format!("{day}.{slot}.jsonl"),
        })
    }

    pub fn parse(name: &str) -> Option<FileName> {
        let stem = name.strip_suffix(".jsonl")?;
        let (day, slot) = match stem.split_once('.') {
            None => (stem, 0),
            Some((day, slot)) => (day, slot.parse().ok().filter(|slot| *slot > 0)?),
        };
        let found = FileName { day: day.parse().ok()?, slot };
        let is_same = found.in_folder(Path::new("")) == Path::new(name);
        (is_same && slot < SLOTS_MAX).then_some(found)
    }
}

/// All files of a trail in the order of time.
pub fn list(folder: &Path) -> Result<Vec<FileName>, Error> {
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Error::Missing(folder.to_owned()),
        _ => Error::at(folder)(error),
    };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let name = entry.map_err(Error::at(folder))?.file_name();
        files.extend(name.to_str().and_then(FileName::parse));
    }
    files.sort_unstable();
    Ok(files)
}

/// Removes the files of days before `first`; what can't be removed is tried again another day.
pub fn prune(folder: &Path, first: Day) -> Result<(), Error> {
    for file in list(folder)?.into_iter().filter(|file| file.day < first) {
        _ = std::fs::remove_file(file.in_folder(folder));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::FileName;

    #[test]
    fn names_tell_day_and_slot_and_others_are_none() {
        for name in ["2026-07-28.jsonl", "2026-07-28.1.jsonl", "2026-07-28.63.jsonl"] {
            let file = FileName::parse(name).unwrap();
            assert_eq!(file.in_folder(Path::new("")), Path::new(name));
        }
        for name in [
            "2026-07-28.0.jsonl",
            "2026-07-28.01.jsonl",
            "2026-07-28.64.jsonl",
            "2026-07-32.jsonl",
            "2026-07-28.json",
            "slot-0.lock",
        ] {
            assert_eq!(FileName::parse(name), None, "{name}");
        }
    }
}
