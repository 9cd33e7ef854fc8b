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
use self::scan::{Stop, Written};

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
    hot_members(text, wanted)
}

/// The same, compiled anew wherever it is called, with what is wanted as constants: for what every
/// request needs.
#[expect(clippy::inline_always, reason = "only so are the names constants")]
#[inline(always)]
pub(crate) fn hot_members<'a, const N: usize>(
    text: &'a [u8],
    wanted: [&'static str; N],
) -> Result<[Option<&'a str>; N], Fault> {
    let mut found = [None; N];
    // A shape fault waits for the end: text that is not JSON at all is the graver one.
    let mut fault = None;
    let mut members = Members::of(text)?;
    while let Some((name, value)) = members.next().map_err(|stop| why_not(text, stop))? {
        let unescaped;
        let name = if name.has_escapes {
            unescaped = members.unescaped(name)?;
            &*unescaped
        } else {
            &members.text[name.start..name.end]
        };
        match wanted.iter().position(|known| *known == name) {
            Some(place) => {
                if found[place].replace(value).is_some() {
                    fault.get_or_insert(Fault::Duplicate(wanted[place]));
                }
            }
            None => {
                if let Some(wrong) = misspelled(&wanted, name) {
                    fault.get_or_insert(wrong);
                }
            }
        }
    }
    match fault {
        Some(fault) => Err(fault),
        None => Ok(found),
    }
}

/// The fault of a name that is none of the wanted ones, but looks like one.
fn misspelled(wanted: &[&'static str], name: &str) -> Option<Fault> {
    let wanted = wanted.iter().find(|known| known.eq_ignore_ascii_case(name))?;
    Some(Fault::Spelling { found: name.to_owned(), wanted })
}

/// An object that is read member by member.
struct Members<'a> {
    text: &'a str,
    scanner: Scanner<'a>,
    has_more: bool,
}

impl<'a> Members<'a> {
    #[inline]
    fn of(text: &'a [u8]) -> Result<Members<'a>, Fault> {
        let whole = std::str::from_utf8(text);
        let whole = whole.map_err(|_| Fault::Syntax("the text is not UTF-8".into()))?;
        let mut scanner = Scanner::new(text);
        if scanner.enter(b'{').is_err() {
            return Err(no_object(text));
        }
        let has_more = !scanner.take(b'}');
        Ok(Members { text: whole, scanner, has_more })
    }

    /// The name and the value of the next member; nothing may follow the last.
    #[expect(clippy::inline_always, reason = "there are a few hot places")]
    #[inline(always)]
    fn next(&mut self) -> Result<Option<(Written, &'a str)>, Stop> {
        if !self.has_more {
            self.scanner.finish()?;
            return Ok(None);
        }
        let name = self.scanner.string()?;
        self.scanner.expect(b':')?;
        let start = self.scanner.value()?;
        let value = &self.text[start..self.scanner.at()];
        self.has_more = self.scanner.take(b',');
        if !self.has_more {
            self.scanner.expect(b'}')?;
        }
        Ok(Some((name, value)))
    }

    /// A name that was written with escapes.
    #[cold]
    fn unescaped(&self, name: Written) -> Result<Cow<'a, str>, Fault> {
        string(&self.text[name.start - 1..=name.end])
            .ok_or_else(|| why_not(self.text.as_bytes(), Stop::Syntax))
    }
}

/// The fault of a text that does not begin as an object does.
#[cold]
fn no_object(text: &[u8]) -> Fault {
    let mut scanner = Scanner::new(text);
    match scanner.value().and_then(|_| scanner.finish()) {
        Ok(()) => Fault::NotAnObject,
        Err(stop) => why_not(text, stop),
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
    let mut members = Members::of(text.as_bytes())?;
    let why = |stop| why_not(text.as_bytes(), stop);
    while let Some((name, value)) = members.next().map_err(why)? {
        let name = if name.has_escapes {
            members.unescaped(name)?
        } else {
            Cow::Borrowed(&text[name.start..name.end])
        };
        found.push((name, value));
    }
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

/// Whether `text` is the same between the quotes of a JSON string.
pub fn is_plain(text: &str) -> bool {
    scan::plain_len(text.as_bytes()) == text.len()
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

/// The same JSON without the blanks between its parts.
pub fn compact(text: &[u8]) -> String {
    let (mut out, mut is_quoted, mut is_escaped) = (Vec::with_capacity(text.len()), false, false);
    for byte in text {
        if !is_quoted && matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            continue;
        }
        if *byte == b'"' && !is_escaped {
            is_quoted = !is_quoted;
        }
        is_escaped = is_quoted && *byte == b'\\' && !is_escaped;
        out.push(*byte);
    }
    String::from_utf8_lossy(&out).into_owned()
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
