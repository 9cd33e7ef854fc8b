//! Looking into JSON without taking it apart: chosen members, spans, splices, bounds.
//!
//! Whatever is not asked for stays as it was sent. The checks are strict where two parsers could
//! disagree (duplicate members, other spellings), because an upstream may read what we did not.

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

use serde::de::{Deserializer as _, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

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
    if text.iter().find(|b| !b.is_ascii_whitespace()) != Some(&b'{') {
        let _: IgnoredAny = serde_json::from_slice(text).map_err(|e| syntax(&e))?;
        return Err(Fault::NotAnObject);
    }
    let mut deserializer = serde_json::Deserializer::from_slice(text);
    let (found, fault) =
        deserializer.deserialize_map(Members { wanted }).map_err(|e| syntax(&e))?;
    deserializer.end().map_err(|e| syntax(&e))?;
    match fault {
        Some(fault) => Err(fault),
        None => Ok(found),
    }
}

fn syntax(error: &serde_json::Error) -> Fault {
    Fault::Syntax(error.to_string())
}

struct Members<const N: usize> {
    wanted: [&'static str; N],
}

impl<'de, const N: usize> Visitor<'de> for Members<N> {
    type Value = ([Option<&'de str>; N], Option<Fault>);

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = [None; N];
        // A shape fault waits for the end: text that is not JSON at all is the graver one.
        let mut fault = None;
        while let Some(Key(key)) = map.next_key()? {
            match self.wanted.iter().position(|name| *name == key) {
                Some(place) => {
                    let value: &'de RawValue = map.next_value()?;
                    if found[place].replace(value.get()).is_some() {
                        fault.get_or_insert(Fault::Duplicate(self.wanted[place]));
                    }
                }
                None => {
                    if let Some(wanted) =
                        self.wanted.iter().find(|name| name.eq_ignore_ascii_case(&key))
                    {
                        let found = key.into_owned();
                        fault.get_or_insert(Fault::Spelling { found, wanted });
                    }
                    let _: IgnoredAny = map.next_value()?;
                }
            }
        }
        Ok((found, fault))
    }
}

#[derive(serde::Deserialize)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

/// The items of the array in `text`, each as it was written.
pub fn elements(text: &str) -> Result<Vec<&str>, Fault> {
    let raw: Vec<&RawValue> = serde_json::from_str(text).map_err(|e| syntax(&e))?;
    Ok(raw.into_iter().map(RawValue::get).collect())
}

/// The same, but a fault as soon as there are more than `max`: they cost more than their text.
pub fn few_elements(text: &str, max: usize) -> Result<Vec<&str>, Fault> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let found = deserializer.deserialize_seq(AtMost(max)).map_err(|e| syntax(&e))?;
    deserializer.end().map_err(|e| syntax(&e))?;
    Ok(found)
}

struct AtMost(usize);

impl<'de> Visitor<'de> for AtMost {
    type Value = Vec<&'de str>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "an array of at most {}", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut array: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(element) = array.next_element::<&'de RawValue>()? {
            if found.len() == self.0 {
                return Err(A::Error::invalid_length(self.0 + 1, &self));
            }
            found.push(element.get());
        }
        Ok(found)
    }
}

/// The members of the object in `text`, each as it was written, in that order.
pub fn entries(text: &str) -> Result<Vec<(Cow<'_, str>, &str)>, Fault> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    deserializer.deserialize_map(Entries).map_err(|e| syntax(&e))
}

struct Entries;

impl<'de> Visitor<'de> for Entries {
    type Value = Vec<(Cow<'de, str>, &'de str)>;

    fn expecting(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some((Key(key), value)) = map.next_entry::<Key<'de>, &'de RawValue>()? {
            found.push((key, value.get()));
        }
        Ok(found)
    }
}

/// The string in `text`, borrowed unless it holds escapes; `None` when it is no string.
pub fn string(text: &str) -> Option<Cow<'_, str>> {
    serde_json::from_str::<Key>(text).ok().map(|key| key.0)
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

/// Whether nesting stays within [`DEPTH_MAX`]. Expects JSON or something like it.
pub fn depth_is_bounded(text: &[u8]) -> bool {
    let mut depth = 0_usize;
    let mut at = 0;
    while at < text.len() {
        match text[at] {
            b'[' | b'{' => {
                depth += 1;
                if depth > DEPTH_MAX {
                    return false;
                }
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            b'"' => at = string_end(text, at + 1),
            _ => {}
        }
        at += 1;
    }
    true
}

/// The place of the quote that ends the string whose content starts at `at`.
fn string_end(text: &[u8], mut at: usize) -> usize {
    while let Some(step) = text.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step;
        if text[at] == b'"' {
            return at;
        }
        at += 2;
    }
    text.len()
}

#[cfg(test)]
mod tests;
