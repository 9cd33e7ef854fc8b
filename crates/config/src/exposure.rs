//! `[startup]`, `[exposure_policy]` and `unlisted_calls`: which toolsets clients begin with, and which they may
//! enable.

use std::collections::BTreeSet;

use catalog::error::quoted;
use catalog::exposure::Exposure;
use catalog::surface::Surface;
use catalog::toolset::{ToolsetPlace, Toolsets};
use mcp::text::shorten;
use toml::de::DeValue;

use crate::fault::Faults;
use crate::limits::TOOLSETS_MAX;
use crate::reader::{Section, Value};

/// Reads what the top of a file says of it; the surfaces are those that clients can connect to.
pub fn read(
    top: &mut Section<'_>,
    toolsets: &Toolsets,
    surfaces: &[Surface],
    faults: &mut Faults<'_>,
) -> Exposure {
    let policy = top.get("exposure_policy");
    let policy = policy.map(|value| policy_of(&value, toolsets, faults)).unwrap_or_default();
    let unlisted = top.get("unlisted_calls");
    let words = [("deny", false), ("allow", true)];
    let calls_unlisted = unlisted.and_then(|value| value.choice(&words, faults)).unwrap_or(false);
    let startup = top.get("startup").and_then(|value| {
        let section = value.section("in `[startup]`", faults)?;
        Some(startup(&value, section, toolsets, &policy, faults))
    });
    if startup.is_none() && surfaces.contains(&Surface::Static) {
        let fix = "[startup]\ntoolsets = \"ALL\"";
        let problem = format!("surface `static` needs the toolsets to start with:\n{fix}");
        faults.report(None, problem);
    }
    Exposure { startup: startup.unwrap_or_default(), calls_unlisted, ..policy }
}

/// The toolsets to start with: names, or `ALL`. TC-04
fn startup(
    value: &Value<'_>,
    mut section: Section<'_>,
    toolsets: &Toolsets,
    policy: &Exposure,
    faults: &mut Faults<'_>,
) -> BTreeSet<ToolsetPlace> {
    let list = section.get("toolsets");
    section.close(&[], faults);
    let Some(list) = list else {
        value.report("has no `toolsets`; name some, or write `toolsets = \"ALL\"`", faults);
        return BTreeSet::new();
    };
    let chosen: BTreeSet<_> = match list.node() {
        DeValue::String(word) if word == "ALL" => {
            let all = toolsets.iter().map(|(place, _)| place);
            all.filter(|place| policy.permits(*place)).collect()
        }
        DeValue::String(word) => {
            let word = shorten(word);
            list.report(&format!("is `{word}`; it must be `ALL` or a list of names"), faults);
            return BTreeSet::new();
        }
        _ => places(&list, toolsets, Some(policy), faults),
    };
    let has_names = matches!(list.node(), DeValue::Array(names) if !names.is_empty());
    if chosen.is_empty() && !has_names {
        list.report("means no toolset; see `[toolsets]`", faults);
    }
    if let Some(most) = policy.active_max
        && chosen.len() > most
    {
        let count = chosen.len();
        let problem =
            format!("means {count} toolsets; `max_active` of `exposure_policy` is {most}");
        list.report(&problem, faults);
    }
    chosen
}

fn policy_of(value: &Value<'_>, toolsets: &Toolsets, faults: &mut Faults<'_>) -> Exposure {
    let Some(mut section) = value.section("in `[exposure_policy]`", faults) else {
        return Exposure::default();
    };
    let most = section.get("max_active");
    let most = most.and_then(|value| value.number(1, TOOLSETS_MAX as u64, faults));
    let allowed = section.get("allowlist").map(|value| places(&value, toolsets, None, faults));
    let denied = section.get("denylist").map(|value| places(&value, toolsets, None, faults));
    let namespacing = section.get("namespacing").and_then(|value| value.boolean(faults));
    section.close(&[], faults);
    Exposure {
        active_max: most.and_then(|most| usize::try_from(most).ok()),
        allowed,
        denied: denied.unwrap_or_default(),
        is_bare: namespacing == Some(false),
        ..Exposure::default()
    }
}

/// The places of toolsets, which must be there: a slip of the pen is the operator's.
fn places(
    value: &Value<'_>,
    toolsets: &Toolsets,
    policy: Option<&Exposure>,
    faults: &mut Faults<'_>,
) -> BTreeSet<ToolsetPlace> {
    let mut places = BTreeSet::new();
    for (element, name) in value.strings("toolset", faults) {
        match toolsets.find(name) {
            Some((place, _)) => {
                places.insert(place);
                if policy.is_some_and(|policy| !policy.permits(place)) {
                    let name = shorten(name);
                    let problem = format!("is `{name}`, which `exposure_policy` does not allow");
                    element.report(&problem, faults);
                }
            }
            None => {
                let known: Vec<_> = toolsets.iter().map(|(_, toolset)| &toolset.name).collect();
                let known = match known[..] {
                    [] => "there are none; see `[toolsets]`".to_owned(),
                    _ => format!("known are {}", quoted(&known)),
                };
                let problem = format!("is `{}`, which is no toolset; {known}", shorten(name));
                element.report(&problem, faults);
            }
        }
    }
    places
}
