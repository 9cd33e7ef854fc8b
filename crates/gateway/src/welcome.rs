//! What we say of ourselves to a client: capabilities, instructions, version.
//!
//! We can what some upstream can. One that is not there yet may still come, so what it could
//! bring is declared as well.

use std::collections::BTreeMap;

use mcp::items::Kind;
use mcp::json;
use mcp::modern::{self, TASKS};
use mcp::version::{Era, Revision};
use upstream::supervisor::{Introduction, Phase};

use crate::Gateway;
use crate::limits::INSTRUCTIONS_CHARS_MAX;

impl Gateway {
    /// The result of `initialize`.
    pub(crate) fn introduction(&self, revision: Revision) -> String {
        let instructions = self.instructions().map_or(String::new(), |instructions| {
            format!(r#","instructions":{}"#, json::quote(&instructions))
        });
        format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{},"serverInfo":{}{instructions}}}"#,
            self.capabilities(Era::Legacy),
            server_info(),
        )
    }

    /// The result of `server/discover`.
    pub(crate) fn discovery(&self) -> String {
        let instructions = self.instructions().map_or(String::new(), |instructions| {
            format!(r#","instructions":{}"#, json::quote(&instructions))
        });
        format!(
            r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["{}"],"capabilities":{}{instructions},"_meta":{{"{}":{}}}}}"#,
            Revision::NEWEST_MODERN,
            self.capabilities(Era::Modern),
            modern::SERVER_INFO,
            server_info(),
        )
    }

    /// Whether we declare to have such items.
    pub(crate) fn offers(&self, kind: Kind) -> bool {
        let has_control_tools = !self.0.surface.control_names().is_empty();
        let known = self.introductions();
        known.len() < self.upstreams().count()
            || known.iter().any(|known| known.declares(kind.capability()))
            || kind == Kind::Tool && has_control_tools
    }

    /// What clients of an era are told that we can.
    fn capabilities(&self, era: Era) -> String {
        let known = self.introductions();
        let declares = |capability| known.iter().any(|known| known.declares(capability));
        let list = |kind| self.offers(kind).then(|| r#"{"listChanged":true}"#.to_owned());
        let resources = if self.can_subscribe() {
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

    /// Our own instructions, and what the upstreams say of themselves.
    fn instructions(&self) -> Option<String> {
        let own = self.0.surface.instructions();
        let mut said = Vec::new();
        for (_, upstream) in self.upstreams() {
            let introduction = upstream.status().introduction;
            if let Some(instructions) = introduction.and_then(|known| known.instructions) {
                said.push((upstream.name(), instructions));
            }
        }
        match (own, said.as_slice(), self.upstreams().count()) {
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

    pub(crate) fn can_subscribe(&self) -> bool {
        self.introductions().iter().any(Introduction::can_subscribe)
    }

    pub(crate) fn any_declares(&self, capability: &'static str) -> bool {
        self.introductions().iter().any(|known| known.declares(capability))
    }

    /// What the upstreams that are there have said of themselves.
    fn introductions(&self) -> Vec<Introduction> {
        let known = self.upstreams().filter_map(|(_, upstream)| {
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
