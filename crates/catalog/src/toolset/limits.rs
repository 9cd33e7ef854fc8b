//! What a toolset may be called, and how much may be in it: the same for everybody who makes one.

use std::ops::RangeInclusive;

use mcp::text::shorten;

use super::{Note, Reference, Toolset};
use crate::snapshot::Item;

const NAME_CHARS: RangeInclusive<usize> = 2..=50;
pub const TOOLS_MAX: usize = 100;
const DESCRIPTION_CHARS_MAX: usize = 200;
const NOTES_MAX: usize = 20;
const NOTE_NAME_CHARS_MAX: usize = 50;
const NOTE_CHARS_MAX: usize = 500;

/// What is wrong with a toolset that somebody wants to make.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    #[error(
        "`{}` can't be the name of a toolset; use 2 to 50 lowercase letters, digits and hyphens",
        shorten(.0)
    )]
    Name(String),
    #[error("the description has {0} characters; use at most 200")]
    Description(usize),
    #[error("a toolset needs a tool; name at least one")]
    Empty,
    #[error("{0} tools are too many for one toolset; use at most 100")]
    Tools(usize),
    #[error("there are {0} notes; use 1 to 20 at once")]
    Notes(usize),
    #[error("a note's name has {0} characters; use 1 to 50")]
    NoteName(usize),
    #[error("note `{}` has {chars} characters; use 1 to 500", shorten(.name))]
    Note { name: String, chars: usize },
}

/// Whether a toolset may be called so.
pub fn check_name(name: &str) -> Result<(), Flaw> {
    let is_allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
    let is_name = NAME_CHARS.contains(&name.len()) && name.chars().all(is_allowed);
    if is_name { Ok(()) } else { Err(Flaw::Name(name.to_owned())) }
}

/// Whether a toolset may be described so.
pub fn check_description(text: &str) -> Result<(), Flaw> {
    let chars = text.chars().count();
    if chars <= DESCRIPTION_CHARS_MAX { Ok(()) } else { Err(Flaw::Description(chars)) }
}

/// Whether a toolset may hold so many tools.
pub fn check_count(tools: usize) -> Result<(), Flaw> {
    match tools {
        0 => Err(Flaw::Empty),
        1..=TOOLS_MAX => Ok(()),
        _ => Err(Flaw::Tools(tools)),
    }
}

/// Whether these may be written about a tool at once.
pub fn check_notes(notes: &[Note]) -> Result<(), Flaw> {
    if !(1..=NOTES_MAX).contains(&notes.len()) {
        return Err(Flaw::Notes(notes.len()));
    }
    for Note { name, text } in notes {
        let chars = name.chars().count();
        if !(1..=NOTE_NAME_CHARS_MAX).contains(&chars) {
            return Err(Flaw::NoteName(chars));
        }
        let chars = text.chars().count();
        if !(1..=NOTE_CHARS_MAX).contains(&chars) {
            return Err(Flaw::Note { name: name.clone(), chars });
        }
    }
    Ok(())
}

impl Toolset {
    /// Whether this may be saved as a toolset that somebody has just made.
    pub fn check(&self) -> Result<(), Flaw> {
        check_name(&self.name)?;
        check_description(self.description.as_deref().unwrap_or_default())?;
        check_count(self.references.len())
    }
}

impl Reference {
    /// Both ids of a tool as it is now, and what it is, so that a change can be told. HT-07
    pub fn pin(tool: &Item) -> Reference {
        Reference {
            name: Some(format!("{}.{}", tool.origin.upstream, tool.origin.name).into()),
            ref_id: Some(tool.ref_id().as_str().into()),
            definition: Some(tool.source().clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Note, check_count, check_description, check_name, check_notes};

    fn says<T, E: ToString>(result: Result<T, E>) -> String {
        result.err().map(|flaw| flaw.to_string()).unwrap_or_default()
    }

    #[test]
    fn names_are_short_and_plain() {
        for name in ["ab", "a-1", &"x".repeat(50)] {
            assert_eq!(says(check_name(name)), "");
        }
        for name in ["a", "Ab", "a_b", "a b", "é1", "", &"x".repeat(51)] {
            let says = says(check_name(name));
            assert!(says.ends_with("use 2 to 50 lowercase letters, digits and hyphens"), "{name}");
        }
    }

    #[test]
    fn descriptions_and_numbers_of_tools_are_bounded() {
        assert_eq!(says(check_description(&"é".repeat(200))), "");
        assert_eq!(
            says(check_description(&"x".repeat(201))),
            "the description has 201 characters; use at most 200"
        );
        assert_eq!(says(check_count(0)), "a toolset needs a tool; name at least one");
        assert_eq!(says(check_count(1)) + &says(check_count(100)), "");
        assert_eq!(
            says(check_count(101)),
            "101 tools are too many for one toolset; use at most 100"
        );
    }

    #[test]
    fn notes_are_bounded() {
        let note =
            |name: usize, text: usize| Note { name: "n".repeat(name), text: "t".repeat(text) };
        assert_eq!(says(check_notes(&[note(50, 500)])), "");
        assert_eq!(says(check_notes(&[])), "there are 0 notes; use 1 to 20 at once");
        assert_eq!(
            says(check_notes(&vec![note(1, 1); 21])),
            "there are 21 notes; use 1 to 20 at once"
        );
        assert_eq!(
            says(check_notes(&[note(51, 1)])),
            "a note's name has 51 characters; use 1 to 50"
        );
        assert_eq!(says(check_notes(&[note(1, 501)])), "note `n` has 501 characters; use 1 to 500");
    }
}
