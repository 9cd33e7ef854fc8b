//! JSON as the table that a TOML file would have given, with the places of its values.
//!
//! So every format is read by the same means and its faults are told in the same way.

use std::borrow::Cow;
use std::collections::HashSet;

use mcp::json;
use mcp::text::shorten;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use crate::clients;
use crate::fault::Faults;
use crate::limits::JSON_DEPTH_MAX;

/// Whether a text is meant as JSON: no TOML file begins with a brace, or with a comment such as these.
pub fn is_meant(text: &str) -> bool {
    ["{", "//", "/*"].into_iter().any(|start| text.trim_start().starts_with(start))
}

/// The table of an object; a member that is `null` counts as absent.
pub fn parse<'t>(text: &'t str, faults: &mut Faults<'_>) -> Option<DeTable<'t>> {
    if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(text) {
        let line = text.split_inclusive('\n').take(error.line().saturating_sub(1));
        let start: usize = line.map(str::len).sum();
        let at = (start + error.column().saturating_sub(1)).min(text.len());
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default();
        faults.report(at, format!("no JSON here: {words}; mend it"));
        return None;
    }
    let reader = Reader { text, is_shared: clients::is_likely(text) };
    match reader.table(text.trim(), 0) {
        Ok(table) => Some(table),
        Err((at, problem)) => {
            faults.report(at, problem);
            None
        }
    }
}

struct Reader<'t> {
    text: &'t str,
    /// Whether others keep what they like in it: what can't be used must not matter.
    is_shared: bool,
}

type Problem = (usize, String);

impl<'t> Reader<'t> {
    fn table(&self, object: &'t str, depth: usize) -> Result<DeTable<'t>, Problem> {
        let wrong = |fault| (self.place_of(object), format!("no JSON object here: {fault}"));
        let mut table = DeTable::new();
        let mut keys = HashSet::new();
        for (key, value) in json::entries(object).map_err(wrong)? {
            let at = self.place_of(value);
            let place = self.key_before(at).unwrap_or(at);
            if !keys.insert(key.clone()) {
                let name = shorten(&key);
                return Err((place, format!("`{name}` is defined twice; remove one of the two")));
            }
            if value == "null" && key == "const" {
                return Err((at, "`const` is null, which can't be written here".to_owned()));
            }
            if let Some(value) = self.value(value, depth)? {
                let key = Spanned::new(place..place + key.len(), Cow::Owned(key.into_owned()));
                table.insert(key, value);
            }
        }
        Ok(table)
    }

    fn value(&self, value: &'t str, depth: usize) -> Result<Option<Spanned<DeValue<'t>>>, Problem> {
        let at = self.place_of(value);
        if depth >= JSON_DEPTH_MAX {
            return Err((at, format!("nested deeper than {JSON_DEPTH_MAX} levels")));
        }
        let meaning = match value.as_bytes().first() {
            Some(b'n') => return Ok(None),
            Some(b'{') => DeValue::Table(self.table(value, depth + 1)?),
            Some(b'[') => {
                let wrong = |fault| (at, format!("no JSON array here: {fault}"));
                let mut array = DeArray::new();
                for element in json::elements(value).map_err(wrong)? {
                    if element == "null" && self.is_shared {
                        continue;
                    }
                    if element == "null" {
                        return Err((self.place_of(element), "null can't be used here".to_owned()));
                    }
                    if let Some(element) = self.value(element, depth + 1)? {
                        array.push(element);
                    }
                }
                DeValue::Array(array)
            }
            Some(b'"') => {
                let string = json::string(value).unwrap_or_default();
                DeValue::String(Cow::Owned(string.into_owned()))
            }
            // Numbers and booleans are written alike in both.
            _ => match DeValue::parse(value) {
                Ok(value) => value.into_inner(),
                Err(_) if self.is_shared => DeValue::String(Cow::Borrowed(value)),
                Err(_) => return Err((at, "a number that can't be used here".to_owned())),
            },
        };
        Ok(Some(Spanned::new(at..at + value.len(), meaning)))
    }

    /// Where a part of the text begins.
    fn place_of(&self, part: &str) -> usize {
        (part.as_ptr() as usize).saturating_sub(self.text.as_ptr() as usize).min(self.text.len())
    }

    /// Where the key of the value at `at` begins.
    fn key_before(&self, at: usize) -> Option<usize> {
        let before = self.text.get(..at)?.trim_end().strip_suffix(':')?.trim_end();
        before.strip_suffix('"')?.rfind('"')
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{is_meant, parse};
    use crate::fault::Faults;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let mut faults = Faults::new(Path::new("t.json"), text);
        let found = match parse(text, &mut faults) {
            Some(table) => {
                let place = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                    (key.span().start, value.span().start)
                };
                format!("{:?}", table.iter().map(place).collect::<Vec<_>>())
            }
            None => faults.in_order()[0].to_string(),
        };
        assert_eq!(found, expected);
    }

    #[test]
    fn members_keep_their_places() {
        check(r#"{"a": 1, "b" : "x", "c": null}"#, "[(1, 6), (9, 15)]");
        check(" { } ", "[]");
    }

    #[test]
    fn broken_json_is_told_with_its_place() {
        check("{\n  \"a\": ]\n}", "t.json:2:8: no JSON here: expected value; mend it");
        check("{\"a\": 1", "t.json:1:7: no JSON here: EOF while parsing an object; mend it");
        let deep = format!("{{\"a\": {}1{}}}", "[".repeat(40), "]".repeat(40));
        check(&deep, "t.json:1:39: nested deeper than 32 levels");
    }

    #[test]
    fn toml_never_begins_with_a_brace() {
        assert!(is_meant(" \n{}"));
        assert!(!is_meant("[[servers]]") && !is_meant(""));
    }
}
