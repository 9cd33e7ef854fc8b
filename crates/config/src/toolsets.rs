//! `[toolsets.*]` and `[permissions]`: named lists, and who is granted which.

use catalog::patterns::Patterns;
use catalog::policy::permissions::Permissions;
use catalog::toolset::{Toolset, Toolsets};
use mcp::text::shorten;
use toml::de::DeValue;

use crate::fault::Faults;
use crate::limits::TOOLSETS_MAX;
use crate::mentions::Of;
use crate::reader::Value;
use crate::tools_toml::patterns;

/// The toolsets in the order of the file; one is a table, or only its list.
pub fn read(value: &Value<'_>, faults: &mut Faults<'_>) -> Toolsets {
    let entries = value.entries(faults).unwrap_or_default();
    if entries.len() > TOOLSETS_MAX {
        let count = entries.len();
        value.report(&format!("has {count} toolsets; use at most {TOOLSETS_MAX}"), faults);
    }
    let mut toolsets = Vec::new();
    for (name, value) in &entries {
        if !is_name(name) {
            let fix = "use up to 64 letters, digits, `_` and `-`";
            value.report(&format!("has a name that can't be used; {fix}"), faults);
        }
        toolsets.extend(toolset(name, value, faults));
    }
    Toolsets::new(toolsets)
}

fn is_name(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    (1..=64).contains(&text.len()) && text.chars().all(is_allowed)
}

fn toolset(name: &str, value: &Value<'_>, faults: &mut Faults<'_>) -> Option<Toolset> {
    if let DeValue::Array(_) = value.node() {
        let patterns = patterns(value, faults);
        return Some(Toolset { name: name.into(), patterns, ..Toolset::default() });
    }
    let mut section = value.section("in a toolset", faults)?;
    let tools = section.get("tools").map(|value| patterns(&value, faults));
    if tools.is_none() {
        value.report("has no `tools`; list them, such as `tools = [\"git:*\"]`", faults);
    }
    let description = section.get("description").and_then(|value| value.string(faults));
    let mut text = |key| section.get(key).and_then(|value| Some(value.string(faults)?.to_owned()));
    let (version, decision_criteria) = (text("version"), text("decision_criteria"));
    let title = text("title");
    section.close(&[], faults);
    Some(Toolset {
        name: name.into(),
        title,
        description: description.map(str::to_owned),
        version,
        decision_criteria,
        patterns: tools?,
        ..Toolset::default()
    })
}

/// `[requires]`: tools, each with those that it can't do without. HT-45
pub fn requires(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<(Box<str>, Vec<Box<str>>)> {
    let mut requires = Vec::new();
    for (name, value) in value.entries(faults).unwrap_or_default() {
        let needs = value.strings("tool", faults);
        requires.push((name.into(), needs.into_iter().map(|(_, need)| need.into()).collect()));
    }
    requires
}

pub fn permissions(value: &Value<'_>, toolsets: &Toolsets, faults: &mut Faults<'_>) -> Permissions {
    let Some(mut section) = value.section("in `[permissions]`", faults) else {
        return Permissions::default();
    };
    let source = section.get("source");
    let words = [("headers", true), ("config", false)];
    let from_header = source.and_then(|value| value.choice(&words, faults)).unwrap_or(false);
    let client_id = section.get("client_id");
    let words = [("required", false), ("derive", true)];
    let derives = client_id.and_then(|value| value.choice(&words, faults)).unwrap_or(false);
    let default = section.get("default").map(|value| names(&value, toolsets, faults));
    let mut clients = Vec::new();
    if let Some(value) = section.get("clients") {
        for (name, value) in value.entries(faults).unwrap_or_default() {
            let names = names(&value, toolsets, faults);
            if !from_header {
                value.mention(name, Of::Clients, faults);
            }
            match Patterns::parse(&[name]) {
                Ok(pattern) => clients.push((name.into(), pattern, names)),
                Err(errors) => {
                    let reason = errors.first().map_or("", |error| &error.reason);
                    let name = shorten(name);
                    value.report(&format!("`{name}` can't be read: {reason}"), faults);
                }
            }
        }
    }
    section.close(&[], faults);
    let default = default.unwrap_or_default();
    Permissions { from_header, clients, default, derives_client: derives }
}

/// Names of toolsets, which must be there: a slip of the pen is the operator's.
fn names(value: &Value<'_>, toolsets: &Toolsets, faults: &mut Faults<'_>) -> Vec<Box<str>> {
    let mut names = Vec::new();
    for (element, name) in value.strings("toolset", faults) {
        if toolsets.places([name].into_iter()).is_empty() {
            let problem = format!("is `{}`, which is no toolset; see `[toolsets]`", shorten(name));
            element.report(&problem, faults);
        }
        names.push(name.into());
    }
    names
}
