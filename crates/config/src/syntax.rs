//! From a text to its TOML table, with every fault of syntax.

use std::ops::Range;

use mcp::text::shorten;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Error};

use crate::fault::Faults;

/// What duplicate keys are called, with a number behind, while their first use is looked for.
const STAND_IN: &str = "toolman-duplicate-";

/// The table, unless the text is so broken that what it says can't be known.
pub fn parse<'t>(text: &'t str, faults: &mut Faults<'_>) -> Option<DeTable<'t>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    let (duplicates, mut broken): (Vec<Error>, Vec<Error>) =
        errors.into_iter().partition(|error| error.message() == "duplicate key");
    report_duplicates(text, &duplicates, faults);
    // What follows on the same line is as a rule a consequence.
    broken.sort_by_key(|error| error.span().map(|span| span.start));
    broken.dedup_by_key(|error| error.span().map(|span| faults.line_of(span.start)));
    for error in &broken {
        let problem = error.message().replacen(", expected", "; expected", 1);
        faults.report(error.span().map(|span| span.start), problem);
    }
    broken.is_empty().then(|| table.into_inner())
}

fn report_duplicates(text: &str, duplicates: &[Error], faults: &mut Faults<'_>) {
    let mut spans: Vec<Range<usize>> = duplicates.iter().filter_map(Error::span).collect();
    spans.sort_by_key(|span| span.start);
    spans.dedup();
    if spans.is_empty() {
        return;
    }
    let firsts = first_uses(text, &spans);
    for (span, first) in spans.into_iter().zip(firsts) {
        let name = shorten(&key_in(&text[span.clone()]));
        let first = match first {
            Some(first) => format!(", first on line {}", faults.line_of(first)),
            None => String::new(),
        };
        let problem = format!("`{name}` is defined twice{first}; remove one of the two");
        faults.report(span.start, problem);
    }
}

/// Where each of the duplicate keys was used before.
///
/// The parser does not tell, and a search in the text would find the same key in another table.
/// So the duplicates are renamed, the text is parsed again, and their neighbours are looked at.
fn first_uses(text: &str, duplicates: &[Range<usize>]) -> Vec<Option<usize>> {
    let mut renamed = String::with_capacity(text.len());
    // The same place in both texts, behind each duplicate.
    let mut anchors: Vec<(usize, usize)> = vec![(0, 0)];
    for (index, span) in duplicates.iter().enumerate() {
        let (_, copied) = anchors[index];
        renamed.push_str(&text[copied..span.start]);
        renamed.push_str(STAND_IN);
        renamed.push_str(&index.to_string());
        anchors.push((renamed.len(), span.end));
    }
    renamed.push_str(&text[anchors[duplicates.len()].1..]);
    let in_text = |at: usize| {
        let anchor = anchors.partition_point(|(renamed, _)| *renamed <= at) - 1;
        at - anchors[anchor].0 + anchors[anchor].1
    };
    let (root, _) = DeTable::parse_recoverable(&renamed);
    let mut firsts = vec![None; duplicates.len()];
    for table in every_table(root.get_ref()) {
        let number_of = |key: &str| key.strip_prefix(STAND_IN)?.parse::<usize>().ok();
        for index in table.keys().filter_map(|key| number_of(key.get_ref())) {
            let Some(span) = duplicates.get(index) else {
                continue;
            };
            let first = table.get_key_value(key_in(&text[span.clone()]).as_str());
            firsts[index] = first.map(|(key, _)| in_text(key.span().start));
        }
    }
    firsts
}

fn every_table<'a, 'i>(root: &'a DeTable<'i>) -> Vec<&'a DeTable<'i>> {
    let mut tables = vec![root];
    let mut values: Vec<&DeValue<'i>> = root.values().map(Spanned::get_ref).collect();
    while let Some(value) = values.pop() {
        match value {
            DeValue::Table(table) => {
                tables.push(table);
                values.extend(table.values().map(Spanned::get_ref));
            }
            DeValue::Array(array) => values.extend(array.iter().map(Spanned::get_ref)),
            _ => {}
        }
    }
    tables
}

/// The key that is written as `source`, which may be quoted.
fn key_in(source: &str) -> String {
    let line = format!("{source} = 0");
    let (table, _) = DeTable::parse_recoverable(&line);
    let key = table.get_ref().keys().next();
    key.map_or(source.to_owned(), |key| key.get_ref().to_string())
}
