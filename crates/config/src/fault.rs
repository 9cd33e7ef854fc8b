//! What is wrong with a file, and where.

use std::fmt;
use std::path::{Path, PathBuf};

use mcp::text::shorten;

use crate::limits::FAULTS_MAX;
use crate::mentions::{Mention, Mentions, Of};

/// One thing that is wrong with a file: `tools.toml:3:7: problem; fix`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Fault {
    /// As it was named to us.
    pub file: PathBuf,
    /// `None` where it is about the whole file.
    pub place: Option<Place>,
    /// What is wrong and what to do next.
    pub problem: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "{}:", self.file.display())?;
        if let Some(Place { line, column }) = self.place {
            write!(formatter, "{line}:{column}:")?;
        }
        write!(formatter, " {}", self.problem)
    }
}

/// A place in a text, counted from 1; columns are characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// Collects the faults of one text.
pub(crate) struct Faults<'t> {
    file: &'t Path,
    text: &'t str,
    /// Where each line begins, so that telling a place does not read the text again.
    line_starts: Vec<usize>,
    found: Vec<(Option<usize>, String)>,
    /// What is no fault but should be known.
    warnings: Vec<(usize, String)>,
    mentions: Mentions,
    /// What our words are called in a file of another format.
    spellings: &'static [(&'static str, &'static str)],
}

/// Keys that other formats call otherwise; the file says how.
const TRANSLATED: [&str; 7] =
    ["allowed_origins", "command", "env", "listen", "tools", "url", "workingDirectory"];

impl<'t> Faults<'t> {
    pub fn new(file: &'t Path, text: &'t str) -> Faults<'t> {
        let after_newlines = text.match_indices('\n').map(|(at, _)| at + 1);
        Faults {
            file,
            text,
            line_starts: std::iter::once(0).chain(after_newlines).collect(),
            found: Vec::new(),
            warnings: Vec::new(),
            mentions: Mentions::default(),
            spellings: &[],
        }
    }

    /// Notes a problem at a byte of the text, or with the whole of it.
    pub fn report(&mut self, at: impl Into<Option<usize>>, problem: impl Into<String>) {
        let at = at.into();
        let problem = self.as_written(at, problem.into());
        self.found.push((at, problem));
    }

    /// Says what our words are called in this file.
    pub fn spell(&mut self, spellings: &'static [(&'static str, &'static str)]) {
        self.spellings = spellings;
    }

    /// A problem in the words of the file: it begins with the key of the value at that place.
    fn as_written(&self, at: Option<usize>, mut problem: String) -> String {
        for (own, theirs) in self.spellings {
            problem = problem.replace(own, theirs);
        }
        let own = problem.strip_prefix('`').and_then(|rest| rest.split_once('`'));
        let own = own.map(|(own, _)| own).filter(|own| TRANSLATED.contains(own));
        match own.zip(at.and_then(|at| self.json_key_before(at))) {
            Some((own, written)) => {
                format!("`{}{}", shorten(written), &problem["`".len() + own.len()..])
            }
            None => problem,
        }
    }

    fn json_key_before(&self, at: usize) -> Option<&'t str> {
        let before = self.text.get(..at)?.trim_end().strip_suffix(':')?.trim_end();
        let before = before.strip_suffix('"')?;
        before.get(before.rfind('"')? + 1..)
    }

    /// Notes what an operator should know, though it can be used as it is.
    pub fn warn(&mut self, at: usize, words: impl Into<String>) {
        self.warnings.push((at, words.into()));
    }

    /// Notes that a rule names something.
    pub fn mention(&mut self, at: usize, label: &str, text: &str, of: Of) {
        let place = self.place_of(at);
        let (label, text) = (label.to_owned(), text.to_owned());
        self.mentions.list.push(Mention { place, label, text, of });
    }

    /// Notes that a server is switched off.
    pub fn disable(&mut self, server: &str) {
        self.mentions.disabled.push(server.to_owned());
    }

    /// What the rules name, in the order of the text.
    pub fn mentions(&mut self) -> Mentions {
        let mut mentions = std::mem::take(&mut self.mentions);
        mentions.list.sort_by_key(|mention| (mention.place.line, mention.place.column));
        mentions.list.dedup();
        mentions
    }

    /// What was noted so, in the order of the text; of a flood only the beginning.
    pub fn warnings(&mut self) -> Vec<Fault> {
        self.warnings.sort_by_key(|(at, _)| *at);
        let mut warnings = std::mem::take(&mut self.warnings);
        warnings.truncate(FAULTS_MAX);
        let warning = |(at, words)| self.fault(Some(self.place_of(at)), words);
        warnings.into_iter().map(warning).collect()
    }

    /// The line of a byte of the text, from 1.
    pub fn line_of(&self, at: usize) -> usize {
        self.line_starts.partition_point(|start| *start <= at)
    }

    /// What was found, in the order of the text; of a flood only the beginning.
    pub fn in_order(mut self) -> Vec<Fault> {
        self.found.sort_by_key(|(at, _)| *at);
        let mut found = std::mem::take(&mut self.found);
        let more = found.len().saturating_sub(FAULTS_MAX);
        found.truncate(FAULTS_MAX);
        let fault = |(at, problem): (Option<usize>, _)| {
            let place = at.map(|at| self.place_of(at));
            self.fault(place, problem)
        };
        let mut faults: Vec<Fault> = found.into_iter().map(fault).collect();
        if more > 0 {
            faults.push(self.fault(None, format!("{more} more faults; mend these first")));
        }
        faults
    }

    fn fault(&self, place: Option<Place>, problem: String) -> Fault {
        Fault { file: self.file.to_owned(), place, problem }
    }

    fn place_of(&self, at: usize) -> Place {
        let line = self.line_of(at);
        let before = self.text.get(self.line_starts[line - 1]..at);
        Place { line, column: before.map_or(0, |before| before.chars().count()) + 1 }
    }
}
