//! What we say of ourselves to a client: capabilities, instructions, version.
//!
//! We can what some upstream can. One that is not there yet may still come, so what it could
//! bring is declared as well.

use std::collections::BTreeMap;

use catalog::view::View;
use mcp::items::Kind;
use mcp::json;
use mcp::modern::{self, TASKS};
use mcp::names::Namespace;
use mcp::version::{Era, Revision};
use upstream::supervisor::{Introduction, Phase, Upstream};

use crate::Gateway;
use crate::limits::INSTRUCTIONS_CHARS_MAX;

impl Gateway {
    /// The result of `initialize`.
    pub(crate) fn introduction(&self, view: &View, revision: Revision) -> String {
        format!(
            r#"{{"protocolVersion":"{revision}","capabilities":{},"serverInfo":{}{}}}"#,
            self.capabilities(view, Era::Legacy),
            server_info(),
            self.instructions_member(view),
        )
    }

    /// The result of `server/discover`.
    pub(crate) fn discovery(&self, view: &View) -> String {
        format!(
            r#"{{"resultType":"complete","ttlMs":0,"cacheScope":"private","supportedVersions":["{}"],"capabilities":{}{},"_meta":{{"{}":{}}}}}"#,
            Revision::NEWEST_MODERN,
            self.capabilities(view, Era::Modern),
            self.instructions_member(view),
            modern::SERVER_INFO,
            server_info(),
        )
    }

    /// Whether we declare to have such items.
    pub(crate) fn offers(&self, view: &View, kind: Kind) -> bool {
        let has_control_tools = !view.scope().surface.control_names().is_empty();
        let known = self.introductions(view);
        known.len() < self.upstreams_in(view).count()
            || known.iter().any(|known| known.declares(kind.capability()))
            || kind == Kind::Tool && has_control_tools
    }

    /// What clients of an era are told that we can.
    fn capabilities(&self, view: &View, era: Era) -> String {
        let known = self.introductions(view);
        let declares = |capability| known.iter().any(|known| known.declares(capability));
        let list = |kind| self.offers(view, kind).then(|| r#"{"listChanged":true}"#.to_owned());
        let resources = if self.can_subscribe(view) {
            Some(r#"{"subscribe":true,"listChanged":true}"#.to_owned())
        } else {
            list(Kind::Resource)
        };
        let may_come = self.may_bring_more(view);
        let plain = |capability| (may_come || declares(capability)).then(|| "{}".to_owned());
        let parts = [
            ("completions", plain("completions")),
            ("logging", plain("logging")),
            ("tools", list(Kind::Tool)),
            ("resources", resources),
            ("prompts", list(Kind::Prompt)),
            ("experimental", union(&known, "experimental")),
            tasks(&known, era, may_come),
        ];
        let part = |(name, value): (&str, Option<String>)| Some(format!(r#""{name}":{}"#, value?));
        let parts: Vec<_> = parts.into_iter().filter_map(part).collect();
        format!("{{{}}}", parts.join(","))
    }

    /// The member with the instructions, to be put after another; empty if there are none.
    fn instructions_member(&self, view: &View) -> String {
        let instructions = self.instructions(view);
        instructions
            .map_or(String::new(), |text| format!(r#","instructions":{}"#, json::quote(&text)))
    }

    /// Our own instructions, and what the upstreams say of themselves.
    fn instructions(&self, view: &View) -> Option<String> {
        let own = view.scope().surface.instructions();
        let mut said = Vec::new();
        let is_reached =
            |upstream: &Upstream| view.ceiling().reaches(upstream.name()) != Some(false);
        for upstream in self.upstreams_in(view).filter(is_reached) {
            let introduction = upstream.status().introduction;
            if let Some(instructions) = introduction.and_then(|known| known.instructions) {
                said.push((upstream.name().clone(), instructions));
            }
        }
        match (own, said.as_slice(), self.upstreams_in(view).count()) {
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

    pub(crate) fn can_subscribe(&self, view: &View) -> bool {
        let subscribes = |known: &Introduction| known.declares_part("resources", "subscribe");
        self.introductions(view).iter().any(subscribes) || self.may_bring_more(view)
    }

    pub(crate) fn any_declares(&self, view: &View, capability: &'static str) -> bool {
        let mut known = self.introductions(view).into_iter();
        known.any(|known| known.declares(capability)) || self.may_bring_more(view)
    }

    /// Whether an upstream is starting of which nothing is known.
    fn may_bring_more(&self, view: &View) -> bool {
        let starts = |upstream: &Upstream| matches!(upstream.status().phase, Phase::Starting);
        self.upstreams_in(view).any(|upstream| !upstream.is_known() && starts(&upstream))
    }

    /// The upstreams that a client may know of.
    pub(crate) fn upstreams_in(&self, view: &View) -> impl Iterator<Item = Upstream> {
        let shown = self.upstreams().filter(move |(namespace, upstream)| {
            view.scope().holds(namespace) && self.is_shown(view, namespace, upstream)
        });
        shown.map(|(_, upstream)| upstream)
    }

    /// Whether a client may know of an upstream: something of it is within the ceiling, or may be
    /// as soon as it is there.
    pub(crate) fn is_shown(&self, view: &View, namespace: &Namespace, upstream: &Upstream) -> bool {
        let may_come = || {
            let rights = &view.scope().rights;
            !matches!(upstream.status().phase, Phase::Ready)
                && self.0.policies.may_reach(rights, upstream.name(), namespace)
                && self.0.rules.toolsets.may_reach(rights.grants(), upstream.name())
        };
        view.ceiling().reaches(upstream.name()).is_none_or(|reached| reached || may_come())
    }

    /// What the upstreams have said of themselves whose lists are shown.
    fn introductions(&self, view: &View) -> Vec<Introduction> {
        let known = self.upstreams_in(view).filter(Upstream::is_known);
        known.filter_map(|upstream| upstream.status().introduction).collect()
    }
}

/// What may be done with tasks in the legacy era, where it is not known yet who runs any: each tool says whether it does.
const ALL_OF_TASKS: &str = r#"{"list":{},"cancel":{},"requests":{"tools":{"call":{}}}}"#;

/// Tasks as an era declares them, if an upstream of that era runs any or one that is starting may.
fn tasks(known: &[Introduction], era: Era, may_come: bool) -> (&'static str, Option<String>) {
    let mut of_era = known.iter().filter(|known| known.revision.era() == era);
    match era {
        Era::Legacy => {
            let declared = of_era.find_map(|known| match known.capabilities.members(["tasks"]) {
                Ok([Some(tasks)]) => Some(tasks.to_owned()),
                _ => None,
            });
            ("tasks", declared.or_else(|| may_come.then(|| ALL_OF_TASKS.to_owned())))
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
