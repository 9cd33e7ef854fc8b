//! `[clients."NAME"]`: what the operator knows of client programs, by patterns of their names.

use std::time::Duration;

use catalog::profile::{Belongs, Change, Lists, Override, Profiles, Reads, ToldApart};
use catalog::surface::Inactive;
use mcp::names::UriStyle;
use toml::de::DeValue;

use super::server::wait;
use crate::fault::Faults;
use crate::limits::{CLIENTS_MAX, REPLY_WAIT_MAX};
use crate::reader::{Section, Value};

const LISTS: [(&str, Lists); 3] =
    [("once", Lists::Once), ("late", Lists::Late), ("at-once", Lists::AtOnce)];
const READS: [(&str, Reads); 4] = [
    ("all", Reads::Everything),
    ("first-block", Reads::FirstBlock),
    ("structured", Reads::Structured),
    ("all-and-structured", Reads::Both),
];
const SELECTIONS: [(&str, Belongs); 2] =
    [("session", Belongs::Session), ("principal", Belongs::Principal)];
const STYLES: [(&str, UriStyle); 2] =
    [("underscore", UriStyle::Underscore), ("rfc", UriStyle::Rfc)];
pub const INACTIVE: [(&str, Inactive); 3] =
    [("auto", Inactive::Auto), ("hidden", Inactive::Hidden), ("stub", Inactive::Stub)];

const TOLD_APART: [(&str, ToldApart); 4] = [
    ("no", ToldApart::No),
    ("name", ToldApart::ByName),
    ("id", ToldApart::ById),
    ("required-id", ToldApart::ByRequiredId),
];

/// Also whom their selections belong to, and by what they are told apart.
pub fn read(top: &mut Section<'_>, faults: &mut Faults<'_>) -> Profiles {
    let selection = top.get("selection").and_then(|value| value.choice(&SELECTIONS, faults));
    let told_apart = top.get("distinguish_clients");
    let told_apart = told_apart.and_then(|value| value.choice(&TOLD_APART, faults));
    let overrides = top.get("clients").map(|value| overrides(&value, faults)).unwrap_or_default();
    let told_apart = told_apart.unwrap_or_default();
    Profiles { overrides: overrides.into(), selection, told_apart }
}

fn overrides(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<Override> {
    let entries = value.entries(faults).unwrap_or_default();
    if entries.len() > CLIENTS_MAX {
        let count = entries.len();
        value.report(&format!("has {count} entries; use at most {CLIENTS_MAX}"), faults);
    }
    let mut overrides = Vec::new();
    for (pattern, entry) in entries {
        let Some(mut section) = entry.section("in `[clients]`", faults) else { continue };
        let change = change(&mut section, faults);
        section.close(&[], faults);
        match Override::new(pattern, change) {
            Some(known) => overrides.push(known),
            None => entry.report("is no pattern; write a name, perhaps with `*` in it", faults),
        }
    }
    overrides
}

fn change(section: &mut Section<'_>, faults: &mut Faults<'_>) -> Change {
    let count = |section: &mut Section<'_>, key, least, faults: &mut Faults<'_>| {
        let number = section.get(key).and_then(|value| value.number(least, 1_000_000, faults));
        number.and_then(|number| usize::try_from(number).ok())
    };
    let name_length_max = count(section, "name_length_max", 16, faults);
    let description_max = count(section, "description_max", 200, faults);
    Change {
        lists: section.get("lists").and_then(|value| value.choice(&LISTS, faults)),
        reply_wait: reply_wait(section, faults),
        reads: section.get("reads").and_then(|value| value.choice(&READS, faults)),
        uri_style: section.get("uri_style").and_then(|value| value.choice(&STYLES, faults)),
        name_length_max,
        description_max,
        selection: section.get("selection").and_then(|value| value.choice(&SELECTIONS, faults)),
        patience: patience(section, faults),
        inactive: section.get("inactive").and_then(|value| value.choice(&INACTIVE, faults)),
    }
}

/// How long a reply waits: unlike other waits it may be nothing.
fn reply_wait(section: &mut Section<'_>, faults: &mut Faults<'_>) -> Option<Duration> {
    let value = section.get("reply_wait")?;
    let is_nothing = match value.node() {
        DeValue::Integer(integer) => integer.as_str() == "0",
        DeValue::String(text) => matches!(text.as_ref(), "0s" | "0ms"),
        _ => false,
    };
    let wait = if is_nothing {
        Duration::ZERO
    } else {
        wait(section, "reply_wait", Duration::ZERO, faults)
    };
    if wait > REPLY_WAIT_MAX {
        value.report(&format!("is too long; at most {REPLY_WAIT_MAX:?} are waited"), faults);
    }
    Some(wait)
}

fn patience(section: &mut Section<'_>, faults: &mut Faults<'_>) -> Option<Duration> {
    section.get("patience")?;
    Some(wait(section, "patience", Duration::ZERO, faults))
}
