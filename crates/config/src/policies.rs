//! Who may see what: `[agents.*]`, `exposed_tools`, `default_policy`, `security_settings`.
//!
//! The keys are those of Toolman's JSON; in `tools.toml` they are the same.

mod conditions;

use std::collections::BTreeMap;

use catalog::policy::{Agent, Fallback, Listed, Policies};
use mcp::text::shorten;
use toml::de::DeValue;

use crate::Surroundings;
use crate::fault::Faults;
use crate::mentions::Of;
use crate::reader::{Section, Value};
use crate::tools_toml::patterns_of;

pub(crate) use conditions::networks;

/// What these sections say.
#[derive(Clone, Debug, Default)]
pub struct Rulebook {
    pub policies: Policies,
    /// `security_settings` as they are written.
    pub security: Option<serde_json::Value>,
    /// Whether the file wants every call on record.
    pub audits_all: Option<bool>,
    pub log_level: Option<String>,
}

/// A policy as it is written, before it has inherited.
struct Draft {
    extends: Vec<(String, usize)>,
    agent: Agent,
    at: usize,
}

pub(crate) fn read(
    top: &mut Section<'_>,
    surroundings: &Surroundings<'_>,
    faults: &mut Faults<'_>,
) -> Rulebook {
    let file = surroundings.file.display().to_string();
    let mut book = Rulebook::default();
    let policies = &mut book.policies;
    if let Some(value) = top.get("exposed_tools") {
        policies.exposed = lists(&value, &file, "exposed_tools", faults);
    }
    let mut drafts = BTreeMap::new();
    for key in ["agents", "agent_policies"] {
        if let Some(value) = top.get(key) {
            drafts.extend(agents(&value, &file, key, faults));
        }
    }
    policies.agents = inherit(&drafts, faults);
    policies.requires_agent =
        top.get("require_agent").and_then(|value| value.boolean(faults)).unwrap_or(false);
    if let Some(value) = top.get("default_policy") {
        policies.fallback = fallback(&value, &file, faults);
    }
    if let Some(value) = top.get("default_access") {
        let is_open = match value.node() {
            DeValue::Boolean(is_open) => Some(*is_open),
            _ => value.choice(&[("allow", true), ("deny", false)], faults),
        };
        policies.fallback.allows_unknown_tools = is_open;
        policies.fallback.at.get_or_insert(located(&value, &file, "default_access", faults));
    }
    if let Some(value) = top.get("security_settings") {
        security(&value, &file, &mut book, faults);
        book.security = Some(value.json());
    }
    book
}

/// A list with the place where it is written.
fn list(value: &Value<'_>, file: &str, path: &str, of: &Of, faults: &mut Faults<'_>) -> Listed {
    let at = located(value, file, path, faults);
    Listed { at, patterns: patterns_of(value, Some(of), faults) }
}

fn located(value: &Value<'_>, file: &str, path: &str, faults: &Faults<'_>) -> Box<str> {
    format!("{file}:{} {path}", faults.line_of(value.at())).into()
}

/// Lists by server.
fn lists(
    value: &Value<'_>,
    file: &str,
    path: &str,
    faults: &mut Faults<'_>,
) -> BTreeMap<Box<str>, Listed> {
    let entries = value.entries(faults).unwrap_or_default().into_iter();
    entries
        .map(|(server, value)| {
            let path = format!("{path}.{}", shorten(server));
            value.mention(server, Of::Servers, faults);
            let of = Of::ItemsOf(server.into());
            (server.into(), list(&value, file, &path, &of, faults))
        })
        .collect()
}

fn agents(
    value: &Value<'_>,
    file: &str,
    path: &str,
    faults: &mut Faults<'_>,
) -> BTreeMap<Box<str>, Draft> {
    let mut drafts = BTreeMap::new();
    for (name, value) in value.entries(faults).unwrap_or_default() {
        let path = format!("{path}.{}", shorten(name));
        if name.is_empty() {
            value.report("has no name; name the agent", faults);
        }
        if let Some(draft) = agent(&value, file, &path, faults) {
            drafts.insert(name.into(), draft);
        }
    }
    drafts
}

fn agent(value: &Value<'_>, file: &str, path: &str, faults: &mut Faults<'_>) -> Option<Draft> {
    let mut section = value.section("in the policy of an agent", faults)?;
    let mut listed = |key: &'static str, of: Of, faults: &mut Faults<'_>| {
        section.get(key).map(|value| list(&value, file, &format!("{path}.{key}"), &of, faults))
    };
    let servers = listed("allowed_servers", Of::Servers, faults);
    let allowed = listed("allowed_tools", Of::Items, faults);
    let blocked = listed("blocked_tools", Of::Items, faults);
    let confirmed = listed("require_confirmation", Of::Items, faults);
    let overrides = section
        .get("tool_overrides")
        .map(|value| lists(&value, file, &format!("{path}.tool_overrides"), faults));
    let allows_unknown = section.get("allow_unknown").and_then(|value| value.boolean(faults));
    let conditions = section.get("conditions").map(|value| {
        conditions::read(
            &value,
            &|value, faults| located(value, file, &format!("{path}.conditions"), faults),
            faults,
        )
    });
    let extends = section.get("extends").map(|value| parents(&value, faults));
    // It says what the policy is for, and nothing else.
    _ = section.get("description").and_then(|value| value.string(faults));
    section.close(&[], faults);
    let agent = Agent {
        servers,
        overrides: overrides.unwrap_or_default(),
        allowed,
        blocked,
        allows_unknown,
        confirmed,
        conditions: conditions.unwrap_or_default(),
    };
    Some(Draft { extends: extends.unwrap_or_default(), agent, at: value.at() })
}

fn parents(value: &Value<'_>, faults: &mut Faults<'_>) -> Vec<(String, usize)> {
    match value.node() {
        DeValue::String(name) => vec![(name.to_string(), value.at())],
        _ => {
            let names = value.strings("policy", faults).into_iter();
            names.map(|(value, name)| (name.to_owned(), value.at())).collect()
        }
    }
}

/// The policies with what each has from those that it extends. TF-53
///
/// What a policy says itself counts before what it inherits; conditions and what is blocked add up, so
/// that no policy is wider than it looks.
fn inherit(
    drafts: &BTreeMap<Box<str>, Draft>,
    faults: &mut Faults<'_>,
) -> BTreeMap<Box<str>, Agent> {
    let mut agents = BTreeMap::new();
    for name in drafts.keys() {
        let mut agent = Agent::default();
        let mut path = Vec::new();
        gather(name, drafts, &mut path, &mut agent, faults);
        agents.insert(name.clone(), agent);
    }
    agents
}

fn gather<'d>(
    name: &'d str,
    drafts: &'d BTreeMap<Box<str>, Draft>,
    path: &mut Vec<&'d str>,
    into: &mut Agent,
    faults: &mut Faults<'_>,
) {
    let Some(Draft { extends, agent, at }) = drafts.get(name) else { return };
    if path.contains(&name) {
        // Each of a circle finds it; one tells.
        if path.iter().min() == path.first() {
            let circle = [path.join("` extends `"), name.to_owned()].join("` extends `");
            faults.report(*at, format!("`{}`, a circle; break it", shorten(&circle)));
        }
        return;
    }
    let Agent { servers, overrides, allowed, blocked, allows_unknown, confirmed, conditions } =
        agent.clone();
    into.servers = into.servers.take().or(servers);
    for (server, list) in overrides {
        into.overrides.entry(server).or_insert(list);
    }
    into.allowed = into.allowed.take().or(allowed);
    into.allows_unknown = into.allows_unknown.or(allows_unknown);
    into.blocked = joined(into.blocked.take(), blocked);
    into.confirmed = joined(into.confirmed.take(), confirmed);
    into.conditions.extend(conditions);
    path.push(name);
    for (parent, at) in extends {
        if !drafts.contains_key(parent.as_str()) {
            let problem = format!("`{name}` extends a policy that is not there; see the names");
            if path.len() == 1 {
                faults.report(*at, problem);
            }
            continue;
        }
        gather(parent, drafts, path, into, faults);
    }
    path.pop();
}

/// Two lists as one.
fn joined(own: Option<Listed>, inherited: Option<Listed>) -> Option<Listed> {
    match (own, inherited) {
        (Some(own), Some(inherited)) => Some(Listed {
            at: format!("{} and {}", own.at, inherited.at).into(),
            patterns: own.patterns.or(&inherited.patterns),
        }),
        (own, inherited) => own.or(inherited),
    }
}

fn fallback(value: &Value<'_>, file: &str, faults: &mut Faults<'_>) -> Fallback {
    let Some(mut section) = value.section("in `default_policy`", faults) else {
        return Fallback::default();
    };
    let mut boolean = |key: &'static str, faults: &mut Faults<'_>| {
        section.get(key).and_then(|value| value.boolean(faults))
    };
    let allows_unknown_tools = boolean("allow_unknown_tools", faults);
    let allows_unknown_servers = boolean("allow_unknown_servers", faults);
    let asks_first = boolean("require_explicit_approval", faults).unwrap_or(false);
    let tools_max = section
        .get("max_tools_per_agent")
        .and_then(|value| value.number(1, 1_000_000, faults))
        .and_then(|number| usize::try_from(number).ok());
    section.close(&[], faults);
    Fallback {
        at: Some(located(value, file, "default_policy", faults)),
        allows_unknown_tools,
        allows_unknown_servers,
        tools_max,
        asks_first,
    }
}

fn security(value: &Value<'_>, file: &str, book: &mut Rulebook, faults: &mut Faults<'_>) {
    let Some(mut section) = value.section("in `security_settings`", faults) else { return };
    let mut listed = |key: &'static str, faults: &mut Faults<'_>| {
        let path = format!("security_settings.{key}");
        section.get(key).map(|value| list(&value, file, &path, &Of::Items, faults))
    };
    book.policies.dangerous = listed("dangerous_tools", faults);
    book.policies.confirmed = listed("require_confirmation", faults);
    book.audits_all = section.get("audit_all_calls").and_then(|value| value.boolean(faults));
    book.log_level = section.get("log_level").and_then(|value| {
        let levels = ["error", "warn", "info", "debug", "trace"].map(|level| (level, level));
        value.choice(&levels, faults).map(str::to_owned)
    });
    section.close(&[], faults);
}

#[cfg(test)]
mod tests;
