//! Policies: what a caller may ever see, by who it is. TF-27 to TF-30
//!
//! One function decides, [`Policies::decide`], for lists, for calls and for whoever wants to know why.
//! How a caller proves who it is, and where the rules are written, is known elsewhere.

pub mod condition;
mod confirmation;
pub mod permissions;
mod rights;

use std::collections::BTreeMap;
use std::fmt;

use mcp::names::{Namespace, UpstreamName, UriStyle};

use crate::patterns::Patterns;
use crate::policy::condition::{Condition, Moment};
use crate::snapshot::Item;

pub use rights::{Rights, Who};

/// The rules of one configuration; without any, everything is within the ceiling.
#[derive(Clone, Debug, Default)]
pub struct Policies {
    /// `exposed_tools`: what everybody may see of a server.
    pub exposed: BTreeMap<Box<str>, Listed>,
    pub agents: BTreeMap<Box<str>, Agent>,
    pub fallback: Fallback,
    /// Outside of every ceiling, unless an agent's own list names them.
    pub dangerous: Option<Listed>,
    /// A person is asked before each call of these.
    pub confirmed: Option<Listed>,
    /// Whoever is no agent with a policy sees nothing.
    pub requires_agent: bool,
}

/// What holds where nothing else does: `default_policy`.
#[derive(Clone, Debug, Default)]
pub struct Fallback {
    /// Where it is written, if it is.
    pub at: Option<Box<str>>,
    pub allows_unknown_tools: Option<bool>,
    pub allows_unknown_servers: Option<bool>,
    pub tools_max: Option<usize>,
    /// A person is asked before each call of what only this rule allows.
    pub asks_first: bool,
}

/// The policy of one agent, with what it has inherited.
#[derive(Clone, Debug, Default)]
pub struct Agent {
    /// The servers whose items may be seen at all; all, if absent.
    pub servers: Option<Listed>,
    /// By server; one that is present decides alone.
    pub overrides: BTreeMap<Box<str>, Listed>,
    /// The same for all servers at once, as an older format has it.
    pub allowed: Option<Listed>,
    pub blocked: Option<Listed>,
    /// Instead of the rule for everybody.
    pub allows_unknown: Option<bool>,
    pub confirmed: Option<Listed>,
    pub conditions: Vec<Condition>,
}

/// A list of names and patterns, and where it is written.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    pub at: Box<str>,
    pub patterns: Patterns,
}

/// What is decided about.
#[derive(Clone, Debug)]
pub struct Subject<'a> {
    pub server: &'a UpstreamName,
    pub namespace: &'a Namespace,
    names: Vec<String>,
}

/// By what an item is within the ceiling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Allowed {
    /// A list has it.
    Listed,
    /// No rule names it, and such are allowed.
    Unnamed,
}

/// Takes the steps of a decision, each a sentence.
pub type Trace<'t> = &'t mut dyn FnMut(fmt::Arguments<'_>);

impl Policies {
    /// Whether there are any rules.
    pub fn are_in_force(&self) -> bool {
        let Policies { exposed, agents, fallback, dangerous, confirmed, requires_agent } = self;
        !exposed.is_empty()
            || !agents.is_empty()
            || fallback.at.is_some()
            || dangerous.is_some()
            || confirmed.is_some()
            || *requires_agent
    }

    /// The one decision: whether an item is within the ceiling of a caller at a moment.
    pub fn decide(
        &self,
        rights: &Rights,
        subject: &Subject<'_>,
        now: Moment,
        trace: Trace<'_>,
    ) -> Option<Allowed> {
        if rights.is_operator() {
            trace(format_args!("the operator may use everything: allowed"));
            return Some(Allowed::Listed);
        }
        let agent = rights.agent().and_then(|name| self.agents.get(name));
        if agent.is_none() && self.requires_agent {
            trace(format_args!("`require_agent` wants an agent with a policy: denied"));
            return None;
        }
        let (allowed, is_exact) = self.decide_by_lists(agent, subject, trace)?;
        if let Some(dangerous) = self.dangerous.as_ref().filter(|list| list.has(subject)) {
            if !is_exact {
                let fix = "no list of the agent names it exactly: denied";
                trace(format_args!("`{}` has it, and {fix}", dangerous.at));
                return None;
            }
            trace(format_args!("`{}` has it, but the agent's own list names it", dangerous.at));
        }
        for (at, condition) in agent.map_or(&[][..], |agent| &agent.conditions).iter().enumerate() {
            if condition.is_about(subject) && !condition.holds(rights.is_unmet(at), now, trace) {
                return None;
            }
        }
        Some(allowed)
    }

    /// Whether a rule is against a subject that no list has to name: what a template stands for.
    pub fn forbids(&self, rights: &Rights, subject: &Subject<'_>, now: Moment) -> bool {
        if rights.is_operator() {
            return false;
        }
        let agent = rights.agent().and_then(|name| self.agents.get(name));
        let is_named =
            |agent: &Agent| subject.find(&agent.overrides).is_some_and(|list| list.names(subject));
        if self.dangerous.as_ref().is_some_and(|list| list.has(subject))
            && !agent.is_some_and(is_named)
        {
            return true;
        }
        let Some(agent) = agent else { return false };
        agent.blocked.as_ref().is_some_and(|list| list.has(subject))
            || agent.conditions.iter().enumerate().any(|(at, condition)| {
                condition.is_about(subject)
                    && !condition.holds(rights.is_unmet(at), now, &mut |_| {})
            })
    }

    /// Whether anything of a server could be within the ceiling, whatever it will offer.
    pub fn may_reach(&self, rights: &Rights, server: &UpstreamName, namespace: &Namespace) -> bool {
        if rights.is_operator() || !self.are_in_force() {
            return true;
        }
        let subject = Subject { server, namespace, names: Vec::new() };
        let agent = rights.agent().and_then(|name| self.agents.get(name));
        let for_all = || match subject.find(&self.exposed) {
            Some(list) => !list.patterns.is_empty(),
            None => self.allows_unknown(),
        };
        let Some(agent) = agent else { return !self.requires_agent && for_all() };
        if agent.servers.as_ref().is_some_and(|servers| !subject.is_of(servers)) {
            return false;
        }
        let may_be_of =
            |list: &Listed| subject.server_names().any(|name| list.patterns.may_be_of(name));
        match (subject.find(&agent.overrides), &agent.allowed, agent.allows_unknown) {
            (Some(list), ..) => !list.patterns.is_empty(),
            (None, Some(list), unknown) if unknown != Some(true) => may_be_of(list),
            (None, _, Some(is_allowed)) => is_allowed,
            (None, _, None) => for_all(),
        }
    }

    /// How many minutes from now nothing is decided otherwise, if that can happen at all.
    pub fn next_change(&self, now: Moment) -> Option<u32> {
        let conditions = self.agents.values().flat_map(|agent| &agent.conditions);
        let windows = conditions.filter_map(|condition| condition.window);
        windows.map(|window| window.next_edge(now)).min()
    }

    /// By what the lists allow a subject, and whether a list of the agent names it exactly.
    fn decide_by_lists(
        &self,
        agent: Option<&Agent>,
        subject: &Subject<'_>,
        trace: Trace<'_>,
    ) -> Option<(Allowed, bool)> {
        let server = subject.server;
        if let Some(servers) = agent.and_then(|agent| agent.servers.as_ref()) {
            let is_in = subject.is_of(servers);
            let (has, end) = if is_in { ("has", "") } else { ("does not have", ": denied") };
            trace(format_args!("`{}` {has} `{server}`{end}", servers.at));
            if !is_in {
                return None;
            }
        }
        let listed = |list: &Listed, trace: Trace<'_>| {
            let is_in = list.has(subject);
            let (has, end) = if is_in { ("has", "allowed") } else { ("does not have", "denied") };
            trace(format_args!("`{}` {has} it: {end}", list.at));
            is_in.then_some((Allowed::Listed, list.names(subject)))
        };
        if let Some(agent) = agent {
            if let Some(blocked) = agent.blocked.as_ref().filter(|list| list.has(subject)) {
                trace(format_args!("`{}` has it: denied", blocked.at));
                return None;
            }
            if let Some(list) = subject.find(&agent.overrides) {
                return listed(list, trace);
            }
            if let Some(list) = &agent.allowed
                && (list.has(subject) || agent.allows_unknown != Some(true))
            {
                return listed(list, trace);
            }
        }
        if let Some(list) = subject.find(&self.exposed) {
            return listed(list, trace).map(|(allowed, _)| (allowed, false));
        }
        self.decide_by_default(agent, subject, trace).then_some((Allowed::Unnamed, false))
    }

    fn decide_by_default(
        &self,
        agent: Option<&Agent>,
        subject: &Subject<'_>,
        trace: Trace<'_>,
    ) -> bool {
        let fallback = &self.fallback;
        let at = fallback.at.as_deref().unwrap_or("default_policy");
        let by_servers = agent.is_some_and(|agent| agent.servers.is_some());
        if fallback.allows_unknown_servers == Some(false) && !by_servers {
            let server = subject.server;
            trace(format_args!(
                "no list names `{server}`, and `{at}.allow_unknown_servers` is false: denied"
            ));
            return false;
        }
        if let Some(is_allowed) = agent.and_then(|agent| agent.allows_unknown) {
            let end = if is_allowed { "allowed" } else { "denied" };
            trace(format_args!(
                "no list is about it, and the agent's `allow_unknown` is {is_allowed}: {end}"
            ));
            return is_allowed;
        }
        let is_allowed = self.allows_unknown();
        let end = if is_allowed { "allowed" } else { "denied" };
        trace(format_args!(
            "no list is about it, and `{at}.allow_unknown_tools` is {is_allowed}: {end}"
        ));
        is_allowed
    }

    /// Whether what no list is about is allowed: not as soon as there are lists, unless it is said.
    fn allows_unknown(&self) -> bool {
        let has_lists = !self.exposed.is_empty() || !self.agents.is_empty();
        self.fallback.allows_unknown_tools.unwrap_or(!has_lists)
    }
}

impl Listed {
    pub fn has(&self, subject: &Subject<'_>) -> bool {
        self.patterns.matches(subject.server, &subject.names)
    }

    /// Whether the subject is named, and not only matched.
    fn names(&self, subject: &Subject<'_>) -> bool {
        subject.names.iter().any(|name| self.patterns.holds(name))
    }
}

impl<'a> Subject<'a> {
    /// What is exposed as `exposed`, and called `name` by its server.
    pub fn new(
        server: &'a UpstreamName,
        namespace: &'a Namespace,
        name: &str,
        exposed: &str,
    ) -> Subject<'a> {
        let mut names = vec![name.to_owned(), exposed.to_owned()];
        for owner in [server.as_str(), namespace.as_str()] {
            if !owner.is_empty() {
                names.extend([":", ".", "_", "__"].map(|joint| format!("{owner}{joint}{name}")));
            }
            if server.as_str() == namespace.as_str() {
                break;
            }
        }
        names.extend(UriStyle::ALL.map(|style| format!("{}{name}", namespace.prefix(style))));
        Subject { server, namespace, names }
    }

    pub fn of(item: &'a Item) -> Subject<'a> {
        let origin = &item.origin;
        // Not by the name that is shown: what is decided must not depend on the client program.
        let exposed = item.canonical.as_str();
        let mut subject = Subject::new(&origin.upstream, &origin.namespace, &origin.name, exposed);
        subject.names.extend(item.also.iter().map(ToString::to_string));
        subject
    }

    /// Every spelling that a rule may use.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    fn server_names(&self) -> impl Iterator<Item = &'a str> {
        let names = [self.server.as_str(), self.namespace.as_str()];
        names.into_iter().filter(|name| !name.is_empty())
    }

    /// Whether its server is one of these.
    fn is_of(&self, servers: &Listed) -> bool {
        self.server_names().any(|name| servers.patterns.matches_name(name))
    }

    /// What is listed for the server of this, under its name or its namespace.
    fn find<'l>(&self, lists: &'l BTreeMap<Box<str>, Listed>) -> Option<&'l Listed> {
        self.server_names().find_map(|name| lists.get(name))
    }
}

#[cfg(test)]
mod tests;
