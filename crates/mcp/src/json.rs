//! Looking into JSON without taking it apart: chosen members, spans, splices, bounds.
//!
//! Whatever is not asked for stays as it was sent. The checks are strict where two parsers could
//! disagree (duplicate members, other spellings), because an upstream may read what we did not.

pub mod canonical;

mod scan;

use std::borrow::Cow;
use std::ops::Range;

use serde::de::IgnoredAny;

pub(crate) use self::scan::Scanner;
use self::scan::Stop;

/// Deeper nesting than this is refused: peers recurse where we do not.
pub const DEPTH_MAX: usize = 128;

/// Why a text could not be looked into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("not valid JSON: {0}")]
    Syntax(String),
    #[error("nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    #[error("not a JSON object")]
    NotAnObject,
    #[error("not a JSON array")]
    NotAnArray,
    #[error("member `{0}` is there twice")]
    Duplicate(&'static str),
    #[error("member `{found}` must be spelled `{wanted}`")]
    Spelling { found: String, wanted: &'static str },
    #[error("member `{0}` is missing")]
    Missing(&'static str),
    #[error("member `{member}` must be {expected}")]
    WrongType { member: &'static str, expected: &'static str },
}

/// The wanted members of the object in `text`, each as it was written.
///
/// The whole text is checked to be JSON. A wanted member that appears twice or in another
/// spelling (`Name` for `name`) is a fault; others are passed over.
pub fn members<'a, const N: usize>(
    text: &'a [u8],
    wanted: [&'static str; N],
) -> Result<[Option<&'a str>; N], Fault> {
    let mut found = [None; N];
    // A shape fault waits for the end: text that is not JSON at all is the graver one.
    let mut fault = None;
    let read = |name: Cow<'a, str>, value| match wanted.iter().position(|known| *known == name) {
        Some(place) => {
            if found[place].replace(value).is_some() {
                fault.get_or_insert(Fault::Duplicate(wanted[place]));
            }
        }
        None => {
            if let Some(wanted) = wanted.iter().find(|known| known.eq_ignore_ascii_case(&name)) {
                fault.get_or_insert(Fault::Spelling { found: name.into_owned(), wanted });
            }
        }
    };
    each_member(text, read)?;
    match fault {
        Some(fault) => Err(fault),
        None => Ok(found),
    }
}

/// Reads the object in `text`, member by member.
fn each_member<'a>(
    text: &'a [u8],
    mut read: impl FnMut(Cow<'a, str>, &'a str),
) -> Result<(), Fault> {
    let whole = std::str::from_utf8(text);
    let whole = whole.map_err(|_| Fault::Syntax("the text is not UTF-8".into()))?;
    let mut scanner = Scanner::new(text);
    let mut go = || -> Result<bool, Stop> {
        if scanner.peek() != Some(b'{') {
            scanner.value()?;
            scanner.finish()?;
            return Ok(false);
        }
        scanner.enter(b'{')?;
        let mut has_more = !scanner.take(b'}');
        while has_more {
            let name = scanner.string()?;
            scanner.expect(b':')?;
            let start = scanner.value()?;
            let value = &whole[start..scanner.at()];
            if name.has_escapes {
                let name = &whole[name.start - 1..=name.end];
                read(string(name).ok_or(Stop::Syntax)?, value);
            } else {
                read(Cow::Borrowed(&whole[name.start..name.end]), value);
            }
            has_more = scanner.take(b',');
            if !has_more {
                scanner.expect(b'}')?;
            }
        }
        scanner.finish()?;
        Ok(true)
    };
    match go() {
        Ok(true) => Ok(()),
        Ok(false) => Err(Fault::NotAnObject),
        Err(stop) => Err(why_not(text, stop)),
    }
}

/// The fault of a text that the scanner has refused, in words and with its place.
#[cold]
fn why_not(text: &[u8], stop: Stop) -> Fault {
    match (stop, serde_json::from_slice::<IgnoredAny>(text)) {
        (Stop::TooDeep, _) => Fault::TooDeep,
        (Stop::Syntax, Err(error)) => syntax(&error),
        (Stop::Syntax, Ok(_)) => Fault::Syntax("a member has no readable name".into()),
    }
}

fn syntax(error: &serde_json::Error) -> Fault {
    Fault::Syntax(error.to_string())
}

/// The items of the array in `text`, each as it was written.
pub fn elements(text: &str) -> Result<Vec<&str>, Fault> {
    few_elements(text, usize::MAX)
}

/// The same, but a fault as soon as there are more than `max`: they cost more than their text.
pub fn few_elements(text: &str, max: usize) -> Result<Vec<&str>, Fault> {
    let mut scanner = Scanner::new(text.as_bytes());
    let mut found = Vec::new();
    let mut go = || -> Result<(), Stop> {
        scanner.enter(b'[')?;
        let mut has_more = !scanner.take(b']');
        while has_more && found.len() <= max {
            let start = scanner.value()?;
            found.push(&text[start..scanner.at()]);
            has_more = scanner.take(b',');
            if !has_more {
                scanner.expect(b']')?;
            }
        }
        if has_more { Ok(()) } else { scanner.finish() }
    };
    match go() {
        Ok(()) if found.len() <= max => Ok(found),
        Ok(()) => Err(Fault::Syntax(format!("more than {max} elements"))),
        Err(_) if !text.trim_start().starts_with('[') => Err(Fault::NotAnArray),
        Err(stop) => Err(why_not(text.as_bytes(), stop)),
    }
}

/// The members of the object in `text`, each as it was written, in that order.
pub fn entries(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Fault> {
    let mut found = Vec::new();
    each_member(text.as_bytes(), |name, value| found.push((name, value)))?;
    Ok(found)
}

/// The string in `text`, borrowed unless it holds escapes; `None` when it is no string.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    let mut scanner = Scanner::new(text.as_bytes());
    let written = scanner.string().ok()?;
    scanner.finish().ok()?;
    if !written.has_escapes {
        return Some(Cow::Borrowed(&text[written.start..written.end]));
    }
    serde_json::from_str(text).ok().map(Cow::Owned)
}

/// `text` as a JSON string with its quotes.
pub fn quote(text: &str) -> String {
    // Writing a string to a string has no way to fail.
    serde_json::to_string(text).unwrap_or_default()
}

/// Where `part`, a slice of `whole`, lies in it.
pub fn span(whole: &[u8], part: &str) -> Range<usize> {
    let start = part.as_ptr() as usize - whole.as_ptr() as usize;
    debug_assert!(start + part.len() <= whole.len(), "part is a slice of whole");
    start..start + part.len()
}

/// `text` with each span replaced; the spans are in order and do not overlap.
pub fn splice(text: &[u8], edits: &[(Range<usize>, &[u8])]) -> Vec<u8> {
    let added: usize = edits.iter().map(|(_, new)| new.len()).sum();
    let mut out = Vec::with_capacity(text.len() + added);
    let mut done = 0;
    for (span, new) in edits {
        out.extend_from_slice(&text[done..span.start]);
        out.extend_from_slice(new);
        done = span.end;
    }
    out.extend_from_slice(&text[done..]);
    out
}

#[cfg(test)]
mod tests;
