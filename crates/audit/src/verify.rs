//! Walking the chains: whether every line is where it was written, and as it was.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use crate::chain::{Link, hash};
use crate::entry::{Event, Line};
use crate::error::Error;
use crate::files;
use crate::limits::LINE_BYTES_MAX;
use crate::reader::{Text, each_line};

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    pub files: usize,
    pub records: u64,
    /// Lines that were not written to their end, as the line after each says.
    pub torn: u64,
    /// Records that could not be written, as the trail itself says.
    pub lost: u64,
    /// Values of secrets that were hidden.
    pub hidden: u64,
    /// The first place of each chain where it is broken.
    pub broken: Vec<Broken>,
    /// The last line of each chain: whoever keeps these knows later that nothing was cut off.
    pub heads: Vec<Head>,
}

/// A place where a chain is broken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Broken {
    pub file: PathBuf,
    /// Counted from 1.
    pub line: usize,
    pub reason: &'static str,
}

/// The end of a chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    pub file: PathBuf,
    pub seq: u64,
    pub hash: String,
}

impl fmt::Display for Broken {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}: {}", self.file.display(), self.line, self.reason)
    }
}

const UNREADABLE: &str = "is no record";
const UNLINKED: &str =
    "does not follow the line before it: that one was changed, or lines are missing";
const HEADLESS: &str = "is the first of its chain, but does not say so";

/// Reads all files of a trail.
pub fn verify(folder: &Path) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut chains: BTreeMap<usize, Walk> = BTreeMap::new();
    for file in files::list(folder)? {
        report.files += 1;
        let walk = chains.entry(file.slot).or_default();
        let path = file.in_folder(folder);
        walk.path.clone_from(&path);
        each_line(&path, |text| walk.step(text, &mut report))?;
    }
    for walk in chains.into_values() {
        walk.finish(&mut report);
    }
    Ok(report)
}

/// One chain, as far as it was followed.
#[derive(Default)]
struct Walk {
    path: PathBuf,
    /// `None` before the first line, which may follow one that is no longer kept.
    link: Option<Link>,
    /// Lines that do not fit, with the place of the first: the next one may say that it was torn.
    doubtful: Option<(Broken, Vec<u8>)>,
    is_broken: bool,
    /// Whether the last line has no end.
    is_open: bool,
}

impl Walk {
    fn step(&mut self, text: &Text<'_>, report: &mut Report) {
        if self.is_broken {
            return;
        }
        self.is_open = !text.is_whole;
        let line = serde_json::from_slice::<Line>(text.bytes).ok().filter(|_| text.is_whole);
        let reason = match &line {
            None => UNREADABLE,
            Some(line) => match (&self.link, self.explains(line)) {
                (_, false) => UNLINKED,
                (None, _) if line.seq == 1 && line.prev != Link::default().hash => HEADLESS,
                (Some(link), _) if line.prev != link.hash || line.seq != link.seq + 1 => UNLINKED,
                _ => return self.accept(line, text.bytes, report),
            },
        };
        let place = || Broken { file: self.path.clone(), line: text.number, reason };
        let (_, bytes) = match &mut self.doubtful {
            Some(doubtful) => {
                doubtful.1.push(b'\n');
                doubtful
            }
            none => none.insert((place(), Vec::new())),
        };
        bytes.extend_from_slice(text.bytes);
        // More was never torn at once.
        if bytes.len() > 2 * LINE_BYTES_MAX {
            self.give_up(report);
        }
    }

    /// Whether a line says of what stands before it that it was torn, if that needs saying.
    fn explains(&self, line: &Line) -> bool {
        match (&self.doubtful, &line.event) {
            (None, _) => true,
            (Some((_, before)), Event::Torn { bytes, sha256 }) => {
                *bytes == before.len() as u64 && *sha256 == hash(before)
            }
            (Some(_), _) => false,
        }
    }

    fn accept(&mut self, line: &Line, bytes: &[u8], report: &mut Report) {
        report.records += 1;
        match line.event {
            Event::Torn { .. } => report.torn += 1,
            Event::Lost { count } => report.lost += count,
            Event::Hidden(_) => report.hidden += 1,
            _ => {}
        }
        self.doubtful = None;
        self.link = Some(Link { seq: line.seq, hash: hash(bytes) });
    }

    fn give_up(&mut self, report: &mut Report) {
        if let Some((place, _)) = self.doubtful.take() {
            report.broken.push(place);
            self.is_broken = true;
        }
    }

    fn finish(mut self, report: &mut Report) {
        // One that has no end may be being written now.
        let is_being_written = self.is_open
            && self.doubtful.as_ref().is_some_and(|(_, bytes)| !bytes.contains(&b'\n'));
        if !is_being_written {
            self.give_up(report);
        }
        if let Some(Link { seq, hash }) = self.link {
            report.heads.push(Head { file: self.path, seq, hash });
        }
    }
}
