//! Near names for a name that does not exist.

use std::fmt::Display;

use mcp::names::NamespacedName;

use crate::error::quoted;
use crate::snapshot::Item;

const SUGGESTIONS_MAX: usize = 3;
/// Less like than this is no help.
const LIKENESS_MIN: f64 = 0.55;
/// Nor is what is this much less like than the best.
const LIKENESS_BELOW_BEST: f64 = 0.15;

/// The names most like `asked`, best first.
pub fn similar<'a>(asked: &str, items: impl Iterator<Item = &'a Item>) -> Vec<NamespacedName> {
    let asked: String = asked.chars().take(256).flat_map(char::to_lowercase).collect();
    let mut scored: Vec<(f64, &NamespacedName)> = items
        .map(|item| {
            let whole = likeness(&asked, item.name.as_str());
            (whole.max(likeness(&asked, &item.origin.name)), &item.name)
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    let best = scored.first().map_or(0.0, |(score, _)| *score);
    let least = LIKENESS_MIN.max(best - LIKENESS_BELOW_BEST);
    let like = scored.into_iter().take_while(|(score, _)| *score >= least);
    like.take(SUGGESTIONS_MAX).map(|(_, name)| name.clone()).collect()
}

/// The same among names of anything else, which are few.
pub fn similar_names<'a>(asked: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let asked: String = asked.chars().take(256).flat_map(char::to_lowercase).collect();
    let mut scored: Vec<_> = names.map(|name| (likeness(&asked, name), name)).collect();
    scored.retain(|(score, _)| *score >= LIKENESS_MIN);
    scored.sort_by(|a, b| b.0.total_cmp(&a.0));
    scored.into_iter().take(SUGGESTIONS_MAX).map(|(_, name)| name).collect()
}

/// 1 for the same text, 0 for nothing in common: by edits, or by words in whatever order.
fn likeness(asked: &str, name: &str) -> f64 {
    let name = name.to_lowercase();
    strsim::normalized_damerau_levenshtein(asked, &name).max(shared_words(asked, &name))
}

fn shared_words(asked: &str, name: &str) -> f64 {
    fn words(text: &str) -> Vec<&str> {
        text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()).collect()
    }
    let (asked, name) = (words(asked), words(name));
    let shared = asked.iter().filter(|word| name.contains(word)).count();
    #[expect(clippy::cast_precision_loss, reason = "a handful of words")]
    let share = 2.0 * shared as f64 / (asked.len() + name.len()).max(1) as f64;
    share
}

/// The question that offers near names, if there are any.
pub fn hint<T: Display>(similar: &[T]) -> Option<String> {
    match similar {
        [] => None,
        [one] => Some(format!("did you mean `{one}`?")),
        [first @ .., last] => Some(format!("did you mean {} or `{last}`?", quoted(first))),
    }
}
