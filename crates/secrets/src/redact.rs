//! Finding values in texts that leave the house, in the spellings that programs use.
//!
//! Looking costs little where nothing is found, which is nearly always. What stands in the place of a value keeps
//! JSON what it is; where that can't be, whoever asks is told, and keeps the text to himself.

mod spellings;
mod stream;
mod tokens;

use std::fmt;
use std::ops::Range;

use aho_corasick::automaton::{Automaton, OverlappingState, StateID};
use aho_corasick::{Anchored, Input, dfa, nfa};
use zeroize::Zeroize;

use crate::limits::{DFA_BYTES_MAX, REDACTED_BYTES_MAX, REDACTED_BYTES_MIN, SPELLED_BYTES_MAX};
use crate::names::Name;
use crate::value::SecretValue;

pub use stream::{Piece, Stream};

/// A text without the values, and whose they were.
#[derive(Debug, PartialEq, Eq)]
pub struct Redaction {
    pub text: Vec<u8>,
    /// In order, each once.
    pub names: Vec<Name>,
}

/// Values that can't be taken out of a JSON text: they hold some of its structure.
#[derive(Debug, PartialEq, Eq)]
pub struct Inseparable {
    pub names: Vec<Name>,
}

/// Looks for values. It holds them, so it is neither shown nor copied.
pub struct Redactor {
    search: Option<Box<dyn Automaton + Send + Sync>>,
    /// The length of the longest spelling.
    longest: usize,
    /// Whose spelling each pattern is.
    owners: Vec<usize>,
    names: Vec<Name>,
}

impl fmt::Debug for Redactor {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_struct("Redactor").field("names", &self.names).finish_non_exhaustive()
    }
}

/// Why a value is not looked for as others are, if so.
pub fn caveat(value: &SecretValue) -> Option<&'static str> {
    let length = value.expose().len();
    if length < REDACTED_BYTES_MIN {
        return Some(
            "has fewer than 6 bytes: it would be found everywhere, so it is not hidden where a \
             server shows it",
        );
    }
    let caveat = "has over 4 KiB: only those that come first are hidden where a server shows it";
    (length > REDACTED_BYTES_MAX).then_some(caveat)
}

impl Redactor {
    /// Values that are too short are not looked for: they would be found everywhere.
    pub fn new<'a>(secrets: impl Iterator<Item = (&'a Name, &'a SecretValue)>) -> Redactor {
        let mut secrets: Vec<_> =
            secrets.filter(|(_, value)| value.expose().len() >= REDACTED_BYTES_MIN).collect();
        // Where there is too much to look for, the long ones are looked for in fewer spellings.
        secrets.sort_by_key(|(_, value)| value.expose().len());
        let (mut names, mut owners, mut patterns) = (Vec::new(), Vec::new(), Vec::new());
        let mut bytes = 0;
        for (name, value) in secrets {
            for spelling in spellings::of(value.expose(), bytes < SPELLED_BYTES_MAX) {
                bytes += spelling.len();
                owners.push(names.len());
                patterns.push(spelling);
            }
            names.push(name.clone());
        }
        let longest = patterns.iter().map(Vec::len).max().unwrap_or(0);
        let search = automaton(&patterns, bytes);
        patterns.iter_mut().for_each(Zeroize::zeroize);
        Redactor { search, longest, owners, names }
    }

    /// Whether there is nothing to look for.
    pub fn is_idle(&self) -> bool {
        self.search.is_none()
    }

    /// The text without the values in it; `None` if there are none, as nearly always.
    pub fn scan(&self, text: &[u8]) -> Option<Redaction> {
        let finds = self.finds(text)?;
        let names = self.named(&finds);
        let mut redacted = Vec::with_capacity(text.len());
        self.write(text, &finds, 0, text.len(), &mut redacted);
        Some(Redaction { text: redacted, names })
    }

    /// The same for a text that is JSON, and stays so.
    pub fn scan_json(&self, text: &[u8]) -> Option<Result<Redaction, Inseparable>> {
        let finds = self.finds(text)?;
        let names = self.named(&finds);
        let Some(finds) = tokens::fit(text, false, finds) else {
            return Some(Err(Inseparable { names }));
        };
        let mut redacted = Vec::with_capacity(text.len());
        self.write(text, &finds, 0, text.len(), &mut redacted);
        Some(Ok(Redaction { text: redacted, names }))
    }

    /// Where values are, in order; also those that overlap: of two values that share bytes neither must be left in
    /// part.
    fn finds(&self, text: &[u8]) -> Option<Vec<Find>> {
        let search = self.search.as_ref()?;
        let input = Input::new(text);
        // It fails for ways of searching that were not built, and this one is.
        search.try_find(&input).ok().flatten()?;
        let mut finds = Vec::new();
        let mut state = OverlappingState::start();
        while search.try_find_overlapping(&input, &mut state).is_ok()
            && let Some(found) = state.get_match()
        {
            let owner = self.owners[found.pattern().as_usize()];
            finds.push(Find { span: found.range(), owner, is_bare: false });
        }
        finds.sort_unstable_by_key(|find| (find.span.start, usize::MAX - find.span.end));
        Some(finds)
    }

    /// Writes a text from a place up to another, with a mark for each find; where it has got to, which is further
    /// if a value goes on there.
    fn write(
        &self,
        text: &[u8],
        finds: &[Find],
        from: usize,
        to: usize,
        out: &mut Vec<u8>,
    ) -> usize {
        let (mut at, mut last) = (from, None);
        for Find { span, owner, is_bare } in finds {
            if span.start >= to {
                break;
            }
            // The parts of a long value follow on each other.
            let goes_on = span.start == at && last == Some(owner);
            if span.start >= at && !goes_on {
                out.extend_from_slice(&text[at..span.start]);
                let quote = if *is_bare { "\"" } else { "" };
                let mark = format!("{quote}{}{quote}", mark(&self.names[*owner]));
                out.extend_from_slice(mark.as_bytes());
            }
            if span.end > at {
                (at, last) = (span.end, Some(owner));
            }
        }
        if at < to {
            out.extend_from_slice(&text[at..to]);
            at = to;
        }
        at
    }

    fn named(&self, finds: &[Find]) -> Vec<Name> {
        let mut names: Vec<Name> =
            finds.iter().map(|find| self.names[find.owner].clone()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// How much at the end of a text may be the beginning of a value.
    pub fn begun(&self, text: &[u8]) -> usize {
        let Some(search) = &self.search else { return 0 };
        let window = &text[text.len().saturating_sub(self.longest.saturating_sub(1))..];
        let Ok(start) = search.start_state(Anchored::No) else { return 0 };
        let (mut state, mut begun): (StateID, usize) = (start, 0);
        for byte in window {
            state = search.next_state(Anchored::No, state, *byte);
            begun = if state == start { 0 } else { begun + 1 };
        }
        begun
    }
}

/// A value in a text.
struct Find {
    span: Range<usize>,
    owner: usize,
    /// Whether it stands where a string of JSON has yet to begin.
    is_bare: bool,
}

/// What stands where a value stood. It can stand in a JSON string, whatever the secret is called.
fn mark(name: &Name) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    let key = name.key.as_str().chars().map(|c| if is_plain(c) { c } else { '_' });
    format!("[redacted:{}]", key.collect::<String>())
}

/// What finds the patterns: fast where they are few, small where they are many.
fn automaton(patterns: &[Vec<u8>], bytes: usize) -> Option<Box<dyn Automaton + Send + Sync>> {
    if patterns.is_empty() {
        return None;
    }
    // They fail for gigabytes of patterns only, and those are bounded.
    if bytes <= DFA_BYTES_MAX {
        return Some(Box::new(dfa::DFA::builder().build(patterns).ok()?));
    }
    Some(Box::new(nfa::contiguous::NFA::builder().build(patterns).ok()?))
}
