//! What we say of ourselves to a client: capabilities, instructions, version.
//!
//! We can what some upstream can. One that is not there yet may still come, so what it could
//! bring is declared as well.

use std::collections::BTreeMap;

use catalog::scope::Scope;
use mcp::items::Kind;
use mcp::json;
use mcp::modern::{self, TASKS};
use mcp::version::{Era, Revision};
use upstream::supervisor::{Introduction, Phase, Upstream};

use crate::Gateway;
use crate::limits::INSTRUCTIONS_CHARS_MAX;

impl Gateway {
    /// The result of `initialize`.
    pub(crate) fn introduction(&self, scope: &Scope, revision: Revision) -> String {
        format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{},"serverInfo":{}{}}}"#,
            self.capabilities(scope, Era::Legacy),
            server_info(),
            self.instructions_member(scope),
        )
    }

    /// The result of `server/discover`.
    pub(crate) fn discovery(&self, scope: &Scope) -> String {
        format!(
            r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["{}"],"capabilities":{}{},"_meta":{{"{}":{}}}}}"#,
            Revision::NEWEST_MODERN,
            self.capabilities(scope, Era::Modern),
            self.instructions_member(scope),
            modern::SERVER_INFO,
            server_info(),
        )
    }

    /// Whether we declare to have such items.
    pub(crate) fn offers(&self, scope: &Scope, kind: Kind) -> bool {
        let has_control_tools = !scope.surface.control_names().is_empty();
        let known = self.introductions(scope);
        known.len() < self.upstreams_in(scope).count()
            || known.iter().any(|known| known.declares(kind.capability()))
            || kind == Kind::Tool && has_control_tools
    }

    /// What clients of an era are told that we can.
    fn capabilities(&self, scope: &Scope, era: Era) -> String {
        let known = self.introductions(scope);
        let declares = |capability| known.iter().any(|known| known.declares(capability));
        let list = |kind| self.offers(scope, kind).then(|| r#"{"listChanged":true}"#.to_owned());
        let resources = if self.can_subscribe(scope) {
            Some(r#"{"subscribe":true,"listChanged":true}"#.to_owned())
        } else {
            list(Kind::Resource)
        };
        let plain = |capability| declares(capability).then(|| "{}".to_owned());
        let parts = [
            ("completions", plain("completions")),
            ("logging", plain("logging")),
            ("tools", list(Kind::Tool)),
            ("resources", resources),
            ("prompts", list(Kind::Prompt)),
            ("experimental", union(&known, "experimental")),
            tasks(&known, era),
        ];
        let part = |(name, value): (&str, Option<String>)| Some(format!(r#""{name}":{}"#, value?));
        let parts: Vec<_> = parts.into_iter().filter_map(part).collect();
        format!("{{{}}}", parts.join(","))
    }

    /// The member with the instructions, to be put after another; empty if there are none.
    fn instructions_member(&self, scope: &Scope) -> String {
        let instructions = self.instructions(scope);
        instructions
            .map_or(String::new(), |text| format!(r#","instructions":{}"#, json::quote(&text)))
    }

    /// Our own instructions, and what the upstreams say of themselves.
    fn instructions(&self, scope: &Scope) -> Option<String> {
        let own = scope.surface.instructions();
        let mut said = Vec::new();
        for upstream in self.upstreams_in(scope) {
            let introduction = upstream.status().introduction;
            if let Some(instructions) = introduction.and_then(|known| known.instructions) {
                said.push((upstream.name(), instructions));
            }
        }
        match (own, said.as_slice(), self.upstreams_in(scope).count()) {
            (None, [], _) => None,
            // A single server that is shown as it is speaks for itself.
            (None, [(_, instructions)], 1) => Some(instructions.clone()),
            _ => {
                let mut parts: Vec<String> = own.map(str::to_owned).into_iter().collect();
                for (upstream, instructions) in said {
                    let cut: String = instructions.chars().take(INSTRUCTIONS_CHARS_MAX).collect();
                    parts.push(format!("# {upstream}\n\n{}", cut.trim()));
                }
                Some(parts.join("\n\n"))
            }
        }
    }

    pub(crate) fn can_subscribe(&self, scope: &Scope) -> bool {
        self.introductions(scope).iter().any(|known| known.declares_part("resources", "subscribe"))
    }

    pub(crate) fn any_declares(&self, scope: &Scope, capability: &'static str) -> bool {
        self.introductions(scope).iter().any(|known| known.declares(capability))
    }

    /// The upstreams that are shown in a scope.
    pub(crate) fn upstreams_in(&self, scope: &Scope) -> impl Iterator<Item = &Upstream> {
        let shown = self.upstreams().filter(|(namespace, _)| scope.holds(namespace));
        shown.map(|(_, upstream)| upstream)
    }

    /// What the upstreams that are there have said of themselves.
    fn introductions(&self, scope: &Scope) -> Vec<Introduction> {
        let known = self.upstreams_in(scope).filter_map(|upstream| {
            let status = upstream.status();
            status.introduction.filter(|_| matches!(status.phase, Phase::Ready))
        });
        known.collect()
    }
}

/// Tasks as an era declares them, if an upstream of that era runs any.
fn tasks(known: &[Introduction], era: Era) -> (&'static str, Option<String>) {
    let mut of_era = known.iter().filter(|known| known.revision.era() == era);
    match era {
        Era::Legacy => {
            let declared = of_era.find_map(|known| match known.capabilities.members(["tasks"]) {
                Ok([Some(tasks)]) => Some(tasks.to_owned()),
                _ => None,
            });
            ("tasks", declared)
        }
        Era::Modern => {
            let is_run = of_era.any(|known| known.extends_to(TASKS));
            ("extensions", is_run.then(|| format!(r#"{{"{TASKS}":{{}}}}"#)))
        }
    }
}

/// What a capability of free members holds at all upstreams; of equal names the first counts.
fn union(known: &[Introduction], capability: &'static str) -> Option<String> {
    let mut members: BTreeMap<String, &str> = BTreeMap::new();
    for known in known {
        let Ok([Some(object)]) = known.capabilities.members([capability]) else { continue };
        for (name, value) in json::entries(object).unwrap_or_default() {
            members.entry(name.into_owned()).or_insert(value);
        }
    }
    let members: Vec<_> =
        members.iter().map(|(name, value)| format!("{}:{value}", json::quote(name))).collect();
    (!members.is_empty()).then(|| format!("{{{}}}", members.join(",")))
}

pub(crate) fn server_info() -> String {
    let version = env!("CARGO_PKG_VERSION");
    format!(r#"{{"name":"toolman","title":"Toolman","version":"{version}"}}"#)
}
