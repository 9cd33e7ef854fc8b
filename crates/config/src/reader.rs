//! Taking values out of a TOML table while collecting what is wrong with them.
//!
//! What cannot be used is reported and counts as absent, so that reading goes on and finds the
//! rest. Which keys there are is the format's matter.

use catalog::error::quoted;
use mcp::text::shorten;
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeString, DeTable, DeValue};

use crate::fault::Faults;
use crate::mentions::Of;

/// How like a key must be to be proposed, from 0 to 1.
const LIKENESS_MIN: f64 = 0.8;

/// Foreign keys of one table that are named; of more only the number is told.
const FOREIGN_TOLD_MAX: usize = 5;

/// A table that is read key by key; the keys that are asked for are the known ones.
pub struct Section<'t> {
    table: &'t DeTable<'t>,
    /// Where it stands, for a message: "in `[[servers]]`".
    whereabouts: &'static str,
    asked: Vec<&'static str>,
    /// Whether others keep what they like in it.
    is_shared: bool,
}

/// A value with its place and a name for messages.
pub struct Value<'t> {
    node: &'t Spanned<DeValue<'t>>,
    label: String,
}

impl<'t> Section<'t> {
    pub fn new(table: &'t DeTable<'t>, whereabouts: &'static str) -> Section<'t> {
        Section { table, whereabouts, asked: Vec::new(), is_shared: false }
    }

    /// The same where others may keep keys of their own, which are told and left out.
    pub fn shared(mut self, is_shared: bool) -> Section<'t> {
        self.is_shared = is_shared;
        self
    }

    pub fn get(&mut self, key: &'static str) -> Option<Value<'t>> {
        self.asked.push(key);
        let node = self.table.get(key)?;
        Some(Value { node, label: format!("`{key}`") })
    }

    /// Reports the keys that nobody asked for; one of `strays` belongs at the top of the file.
    pub fn close(mut self, strays: &[&str], faults: &mut Faults<'_>) {
        self.asked.sort_unstable();
        self.asked.dedup();
        if self.is_shared {
            return self.leave_out(faults);
        }
        for key in self.table.keys() {
            let (at, name) = (key.span().start, key.get_ref().as_ref());
            let whereabouts = self.whereabouts;
            if strays.contains(&name) {
                let fix = "move it to the top, above the first `[[servers]]`";
                faults.report(at, format!("`{name}` stands {whereabouts}; {fix}"));
            } else if !self.asked.contains(&name) {
                let fix = match self.nearest(name) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => format!("known are {}", quoted(&self.asked)),
                };
                let name = shorten(name);
                faults.report(at, format!("unknown key `{name}` {whereabouts}; {fix}"));
            }
        }
    }

    /// Tells in one line of the keys that nobody asked for.
    fn leave_out(&self, faults: &mut Faults<'_>) {
        let is_foreign = |key: &&Spanned<DeString<'_>>| !self.asked.contains(&&**key.get_ref());
        let mut foreign: Vec<_> = self.table.keys().filter(is_foreign).collect();
        foreign.sort_by_key(|key| key.span().start);
        let Some(first) = foreign.first() else { return };
        let names: Vec<_> =
            foreign.iter().take(FOREIGN_TOLD_MAX).map(|key| shorten(key.get_ref())).collect();
        let more = match foreign.len() - names.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let (names, whereabouts) = (quoted(&names), self.whereabouts);
        let words = format!("{names}{more} {whereabouts} mean nothing to Toolman; left out");
        faults.warn(first.span().start, words);
    }

    fn nearest(&self, name: &str) -> Option<&'static str> {
        let name = shorten(name).to_lowercase();
        self.asked
            .iter()
            .map(|known| (strsim::jaro_winkler(&name, known), *known))
            .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known)
    }
}

impl<'t> Value<'t> {
    pub fn node(&self) -> &'t DeValue<'t> {
        self.node.get_ref()
    }

    /// The same as JSON has it.
    pub fn json(&self) -> Json {
        json_of(self.node())
    }

    /// Where it begins in the text.
    pub fn at(&self) -> usize {
        self.node.span().start
    }

    /// Reports what is wrong with it: a sentence that begins with its name.
    pub fn report(&self, problem: &str, faults: &mut Faults<'_>) {
        faults.report(self.at(), format!("{} {problem}", self.label));
    }

    /// Notes that a rule names something by it.
    pub fn mention(&self, text: &str, of: Of, faults: &mut Faults<'_>) {
        faults.mention(self.at(), &self.label, text, of);
    }

    /// Reports that it is of another type than `expected`.
    pub fn report_type(&self, expected: &str, faults: &mut Faults<'_>) {
        let found = match self.node() {
            DeValue::String(_) => "a string",
            DeValue::Integer(_) => "an integer",
            DeValue::Float(_) => "a float",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date or time",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        };
        self.report(&format!("is {found}; it must be {expected}"), faults);
    }

    pub fn string(&self, faults: &mut Faults<'_>) -> Option<&'t str> {
        let string = self.node().as_str();
        if string.is_none() {
            self.report_type("a string", faults);
        }
        string
    }

    pub fn boolean(&self, faults: &mut Faults<'_>) -> Option<bool> {
        let boolean = self.node().as_bool();
        if boolean.is_none() {
            self.report_type("`true` or `false`", faults);
        }
        boolean
    }

    /// A whole number within bounds.
    pub fn number(&self, least: u64, most: u64, faults: &mut Faults<'_>) -> Option<u64> {
        let DeValue::Integer(integer) = self.node() else {
            self.report_type("a whole number", faults);
            return None;
        };
        let number = u64::from_str_radix(integer.as_str(), integer.radix()).ok();
        let number = number.filter(|number| (least..=most).contains(number));
        if number.is_none() {
            let found = shorten(&integer.to_string());
            self.report(&format!("is {found}; it must be from {least} to {most}"), faults);
        }
        number
    }

    /// One of a few words, each with its meaning.
    pub fn choice<T: Copy>(&self, words: &[(&str, T)], faults: &mut Faults<'_>) -> Option<T> {
        let found = self.string(faults)?;
        let meaning = words.iter().find(|(word, _)| *word == found);
        if meaning.is_none() {
            let known: Vec<String> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            let known = match known.split_last() {
                Some((last, [_, ..])) => {
                    format!("{} or {last}", known[..known.len() - 1].join(", "))
                }
                _ => known.concat(),
            };
            let found = shorten(found);
            self.report(&format!("is `{found}`; it must be {known}"), faults);
        }
        meaning.map(|(_, meaning)| *meaning)
    }

    /// The elements of an array, each called a `noun`.
    pub fn elements(&self, noun: &str, faults: &mut Faults<'_>) -> Option<Vec<Value<'t>>> {
        let DeValue::Array(array) = self.node() else {
            self.report_type("an array", faults);
            return None;
        };
        let label = |index: usize| format!("{noun} {} of {}", index + 1, self.label);
        let element = |(index, node)| Value { node, label: label(index) };
        Some(array.iter().enumerate().map(element).collect())
    }

    /// The elements of an array that are strings.
    pub fn strings(&self, noun: &str, faults: &mut Faults<'_>) -> Vec<(Value<'t>, &'t str)> {
        let elements = self.elements(noun, faults).unwrap_or_default();
        let strings = elements.into_iter().filter_map(|element| {
            let string = element.string(faults)?;
            Some((element, string))
        });
        strings.collect()
    }

    /// The entries of a table whose keys are free, in the order of the text.
    pub fn entries(&self, faults: &mut Faults<'_>) -> Option<Vec<(&'t str, Value<'t>)>> {
        let DeValue::Table(table) = self.node() else {
            self.report_type("a table", faults);
            return None;
        };
        let mut entries: Vec<_> = table.iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        let entry = |(key, node): (&'t Spanned<DeString<'t>>, _)| {
            let name = key.get_ref().as_ref();
            let label = format!("`{}` in {}", shorten(name), self.label);
            (name, Value { node, label })
        };
        Some(entries.into_iter().map(entry).collect())
    }

    /// A table whose keys are known.
    pub fn section(
        &self,
        whereabouts: &'static str,
        faults: &mut Faults<'_>,
    ) -> Option<Section<'t>> {
        let DeValue::Table(table) = self.node() else {
            self.report_type("a table", faults);
            return None;
        };
        Some(Section::new(table, whereabouts))
    }
}

/// A value as JSON has it.
fn json_of(value: &DeValue<'_>) -> Json {
    match value {
        DeValue::String(text) => Json::from(text.as_ref()),
        DeValue::Boolean(boolean) => Json::from(*boolean),
        DeValue::Integer(integer) => {
            i64::from_str_radix(integer.as_str(), integer.radix()).map_or(Json::Null, Json::from)
        }
        DeValue::Float(float) => float.as_str().parse::<f64>().map_or(Json::Null, Json::from),
        DeValue::Datetime(time) => Json::from(time.to_string()),
        DeValue::Array(array) => array.iter().map(|value| json_of(value.get_ref())).collect(),
        DeValue::Table(table) => {
            let member = |(key, value): (&toml::Spanned<_>, &toml::Spanned<_>)| {
                let key: &DeString<'_> = key.get_ref();
                (key.to_string(), json_of(value.get_ref()))
            };
            table.iter().map(member).collect()
        }
    }
}
