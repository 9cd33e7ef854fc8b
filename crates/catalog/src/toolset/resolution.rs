//! What the references of a toolset mean in a snapshot, and which of them are not to be trusted.
//!
//! A tool that is not what it was when it was chosen is withheld: its server may have been changed behind
//! the user's back. HT-07 to HT-20

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mcp::items::Kind;
use mcp::json;
use mcp::text::{shorten, tame};

use super::{Reference, Toolset};
use crate::policy::Subject;
use crate::snapshot::{Catalog, Item, Lookup};

/// Members whose change is told one by one; of more, only how many there are.
const CHANGES_MAX: usize = 12;
/// Of a value that has changed, how much is shown.
const SHOWN_CHARS_MAX: usize = 120;

/// The tools of a toolset as they are now.
#[derive(Clone, Debug, Default)]
pub struct Resolution {
    /// The places of the tools that may be used.
    tools: BTreeSet<usize>,
    pub findings: Vec<Finding>,
    /// What a person should know, `SECURITY:` first.
    pub warnings: Vec<String>,
    /// How many references mean nothing that may be named.
    pub unnamed: usize,
}

/// What became of one reference. HT-12
#[derive(Clone, Debug)]
pub struct Finding {
    pub reference: Reference,
    pub state: State,
    /// The place of the tool that it means, also if it is withheld.
    pub tool: Option<usize>,
    pub name_matches: bool,
    pub ref_id_matches: bool,
    /// Whether its ref id is one of hypertool, which does not know the description.
    pub is_legacy: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It is what it was.
    Resolved,
    /// It is not what it was, and is used all the same.
    Stale,
    /// It is not what it was, and is withheld.
    Withheld,
    /// There is no such tool.
    Missing,
}

/// What a resolution is for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Whether tools that are not what they were are used all the same.
    pub allows_stale: bool,
    /// Whether what does not count is not named either: it may be there, and hidden from who asks.
    pub hides_names: bool,
}

impl Resolution {
    /// Resolves all references within what `counts`.
    pub fn of(
        toolset: &Toolset,
        catalog: &Catalog,
        counts: impl Fn(&Item) -> bool,
        manner: Manner,
    ) -> Resolution {
        let mut resolution = Resolution::default();
        for item in catalog.items(Kind::Tool).iter().filter(|item| counts(item)) {
            if toolset.patterns.matches(&item.origin.upstream, Subject::of(item).names()) {
                resolution.tools.insert(item.place);
            }
        }
        for reference in &toolset.references {
            let (mut finding, mut warning) = find(reference, catalog, &counts, manner);
            if finding.state == State::Missing && manner.hides_names {
                resolution.unnamed += 1;
                warning = None;
            }
            if finding.state == State::Withheld && manner.allows_stale {
                finding.state = State::Stale;
            }
            if let (State::Resolved | State::Stale, Some(place)) = (finding.state, finding.tool) {
                resolution.tools.insert(place);
            }
            resolution.warnings.extend(warning.map(|warning| match finding.state {
                State::Withheld => format!("SECURITY: {warning}; it is withheld"),
                State::Stale => {
                    format!("{warning}; it is used because stale references are allowed")
                }
                State::Resolved | State::Missing => warning,
            }));
            resolution.findings.push(finding);
        }
        if resolution.unnamed > 0 {
            let count = resolution.unnamed;
            let words = format!("{count} of its tools are not available; they are left out");
            resolution.warnings.push(words);
        }
        resolution.warnings.sort_by_key(|warning| !warning.starts_with("SECURITY:"));
        resolution
    }

    /// Whether a tool of the same snapshot is in the toolset and may be used.
    pub fn holds(&self, tool: &Item) -> bool {
        self.tools.contains(&tool.place)
    }

    /// The same toolset with ref ids of ours where it has those of hypertool, for the next time that it is
    /// saved; `None` where there are none, or a reference is not to be trusted by itself.
    pub fn upgraded(&self, toolset: &Toolset, catalog: &Catalog) -> Option<Toolset> {
        let is_upgrade = |finding: &Finding| finding.is_legacy && finding.state == State::Resolved;
        self.repinned(toolset, catalog, is_upgrade)
    }

    /// The same toolset with the tools of chosen references pinned as they are now.
    pub fn repinned(
        &self,
        toolset: &Toolset,
        catalog: &Catalog,
        is_chosen: impl Fn(&Finding) -> bool,
    ) -> Option<Toolset> {
        let mut renewed = toolset.clone();
        let mut is_renewed = false;
        for (place, finding) in self.findings.iter().enumerate().filter(|(_, f)| is_chosen(f)) {
            let tool = finding.tool.and_then(|place| catalog.items(Kind::Tool).get(place));
            let (Some(tool), Some(reference)) = (tool, renewed.references.get_mut(place)) else {
                continue;
            };
            is_renewed = true;
            *reference = Reference::pin(tool);
            let is_about = |known: &Reference| {
                known.name.is_some() && known.name == finding.reference.name
                    || known.ref_id.is_some() && known.ref_id == finding.reference.ref_id
            };
            for notes in renewed.notes.iter_mut().filter(|notes| is_about(&notes.tool)) {
                notes.tool = Reference { definition: None, ..Reference::pin(tool) };
            }
        }
        is_renewed.then_some(renewed)
    }

    /// How many tools may be used.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }
}

fn find(
    reference: &Reference,
    catalog: &Catalog,
    counts: &impl Fn(&Item) -> bool,
    manner: Manner,
) -> (Finding, Option<String>) {
    let by_name = reference.name.as_deref().and_then(|name| named(name, catalog, counts));
    let by_ref_id = match (&reference.ref_id, by_name) {
        (Some(ref_id), Some(item)) if item.is_known_by(ref_id) => Some(item),
        (Some(ref_id), _) => {
            let mut items = catalog.items(Kind::Tool).iter().filter(|item| counts(item));
            items.find(|item| item.is_known_by(ref_id))
        }
        (None, _) => None,
    };
    let is_legacy = by_ref_id.zip(reference.ref_id.as_deref());
    let is_legacy = is_legacy.is_some_and(|(item, ref_id)| item.ref_id().as_str() != ref_id);
    let (told, shown) = told(reference, (by_name, by_ref_id), manner);
    let legacy = is_legacy.then(|| {
        format!(
            "`{shown}` is pinned by a hash of hypertool, which leaves out its description; \
             approve it to pin all of it"
        )
    });
    let (state, tool, warning) = match (by_name, by_ref_id) {
        (Some(item), Some(same)) if item.place == same.place => (State::Resolved, item, legacy),
        (Some(item), Some(other)) => {
            let words =
                format!("the two ids of `{shown}` mean two tools, the other is `{}`", other.name);
            (State::Withheld, item, Some(words))
        }
        (Some(item), None) if reference.ref_id.is_none() => (State::Resolved, item, None),
        (Some(item), None) => (State::Withheld, item, Some(changed(&shown, reference, item))),
        (None, Some(item)) if reference.name.is_none() => (State::Resolved, item, legacy),
        (None, Some(item)) => {
            let words = format!("`{shown}` is now called `{}`", item.name);
            (State::Withheld, item, Some(words))
        }
        (None, None) => {
            let finding = Finding {
                reference: told,
                state: State::Missing,
                tool: None,
                name_matches: false,
                ref_id_matches: false,
                is_legacy: false,
            };
            return (finding, Some(format!("`{shown}` is not there; it is left out")));
        }
    };
    let finding = Finding {
        reference: told,
        state,
        tool: Some(tool.place),
        name_matches: by_name.is_some(),
        ref_id_matches: by_ref_id.is_some(),
        is_legacy,
    };
    (finding, warning)
}

/// What may be told of a reference, and what it is called: of its two ids, one may be that of a tool that is hidden.
fn told(
    reference: &Reference,
    (by_name, by_ref_id): (Option<&Item>, Option<&Item>),
    manner: Manner,
) -> (Reference, String) {
    if !manner.hides_names {
        return (reference.clone(), shown(reference));
    }
    let told = Reference {
        name: reference.name.clone().filter(|_| by_name.is_some()),
        ref_id: reference.ref_id.clone().filter(|_| by_ref_id.is_some()),
        definition: reference.definition.clone(),
    };
    let shown = match by_ref_id.filter(|_| by_name.is_none()) {
        Some(item) => item.name.to_string(),
        None => shown(&told),
    };
    (told, shown)
}

/// The tool of a name, in any spelling.
fn named<'a>(
    name: &str,
    catalog: &'a Catalog,
    counts: &impl Fn(&Item) -> bool,
) -> Option<&'a Item> {
    match catalog.look_up(Kind::Tool, name) {
        Lookup::Found(item) => Some(item).filter(|item| counts(item)),
        Lookup::Ambiguous(items) => {
            let mut items = items.into_iter().filter(|item| counts(item));
            items.next().filter(|_| items.next().is_none())
        }
        Lookup::Unknown => None,
    }
}

fn shown(reference: &Reference) -> String {
    let name = reference.name.as_deref().or(reference.ref_id.as_deref());
    shorten(name.unwrap_or_default())
}

/// What has changed since a tool was pinned, member by member.
fn changed(shown: &str, reference: &Reference, item: &Item) -> String {
    let mut words = format!("`{shown}` is not what it was when it was chosen");
    let Some(then) = &reference.definition else { return words };
    let changes = changes(
        &String::from_utf8_lossy(then.as_bytes()),
        &String::from_utf8_lossy(item.source().as_bytes()),
    );
    if !changes.is_empty() {
        let more = changes.len().saturating_sub(CHANGES_MAX);
        let told: Vec<_> = changes.into_iter().take(CHANGES_MAX).collect();
        _ = write!(words, ": {}", told.join(", "));
        if more > 0 {
            _ = write!(words, " and {more} more");
        }
    }
    words
}

/// The members that differ between two JSON texts, as paths.
pub fn changes(then: &str, now: &str) -> Vec<String> {
    let mut found = Vec::new();
    compare("", then, now, &mut found);
    found
}

fn compare(path: &str, then: &str, now: &str, found: &mut Vec<String>) {
    let is_object = |text: &str| text.starts_with('{');
    if !is_object(then) || !is_object(now) {
        if canonical(then) != canonical(now) {
            let cut = |text: &str| tame(text).chars().take(SHOWN_CHARS_MAX).collect::<String>();
            let path = if path.is_empty() { "all of it" } else { path };
            found.push(format!("`{path}` was `{}` and is `{}`", cut(then), cut(now)));
        }
        return;
    }
    let (then, now) =
        (json::entries(then).unwrap_or_default(), json::entries(now).unwrap_or_default());
    let below = |key: &str| match path {
        "" => key.to_owned(),
        path => format!("{path}.{key}"),
    };
    for (key, value) in &then {
        match now.iter().find(|(other, _)| other == key) {
            Some((_, other)) => compare(&below(key), value, other, found),
            None => found.push(format!("`{}` is gone", shorten(&below(key)))),
        }
    }
    for (key, _) in now.iter().filter(|(key, _)| !then.iter().any(|(other, _)| other == key)) {
        found.push(format!("`{}` is new", shorten(&below(key))));
    }
}

fn canonical(text: &str) -> String {
    json::canonical::canonical(text).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests;
