//! Rules that are about nothing: patterns that match no item, names of servers that are not there.
//!
//! Such a rule is as a rule a slip of the pen, and one that was to forbid something forbids nothing.

use std::sync::Arc;

use catalog::patterns::Patterns;
use catalog::policy::Subject;
use catalog::snapshot::{Catalog, Item};
use catalog::suggest::{hint, similar, similar_names};
use config::Config;
use config::mentions::{Mention, Mentions, Of};
use gateway::Gateway;
use mcp::items::Kind;
use mcp::names::Namespace;
use mcp::text::shorten;
use upstream::supervisor::{Phase, Upstream};

/// Of a flood the log has the beginning; `toolman check` tells all.
const WARNINGS_MAX: usize = 20;

/// What rules name, to be compared with what there is.
#[derive(Default)]
pub struct Rules {
    file: String,
    mentions: Mentions,
    agents: Vec<String>,
    /// Whose names clients can prove; `None` where addresses are trusted to tell.
    proven: Option<Vec<String>>,
}

/// What there is: all servers, and those of which it is known what they offer.
struct Offered {
    catalog: Arc<Catalog>,
    servers: Vec<(Namespace, Upstream)>,
    known: Vec<String>,
    unknown: Vec<String>,
}

impl Rules {
    pub fn of(config: &Config, file: &str) -> Rules {
        let agents = config.rulebook.policies.agents.keys().map(ToString::to_string).collect();
        let proven = config.http.tokens.iter().map(|token| token.agent.clone()).collect();
        let proven = config.http.trusted_peers.is_empty().then_some(proven);
        Rules { file: file.to_owned(), mentions: config.mentions.clone(), agents, proven }
    }

    /// The same where whoever is on stdin goes by a name.
    pub fn with_agent(mut self, agent: Option<&str>) -> Rules {
        if let Some(proven) = &mut self.proven {
            proven.extend(agent.map(str::to_owned));
        }
        self
    }

    /// A line for each that is about nothing. What servers offer that are not there can't be known, so rules that may
    /// be about them are left out.
    pub fn unmatched(&self, gateway: &Gateway) -> Vec<String> {
        let offered = Offered::of(gateway);
        let mut lines = Vec::new();
        for mention in &self.mentions.list {
            let Some((reason, near)) = self.judge(mention, &offered) else { continue };
            let (line, column) = (mention.place.line, mention.place.column);
            let (text, label) = (shorten(&mention.text), &mention.label);
            let near = near.map(|near| format!("; {near}")).unwrap_or_default();
            lines.push(format!("{}:{line}:{column}: `{text}` ({label}) {reason}{near}", self.file));
        }
        lines.dedup();
        lines
    }

    /// The same in the log.
    pub fn warn(&self, gateway: &Gateway) {
        for line in self.unmatched(gateway).iter().take(WARNINGS_MAX) {
            tracing::warn!("{line}");
        }
    }

    /// What is wrong with a rule, and near names.
    fn judge(
        &self,
        mention: &Mention,
        offered: &Offered,
    ) -> Option<(&'static str, Option<String>)> {
        let text = mention.text.as_str();
        let pattern = Patterns::parse(&[text]).ok()?;
        let disabled: Vec<_> = self.mentions.disabled.iter().map(String::as_str).collect();
        let is_disabled = |name: &str| disabled.contains(&name);
        match &mention.of {
            Of::Agents => {
                let agents = || self.agents.iter().map(String::as_str);
                let is_known = agents().next().is_none() || agents().any(|agent| agent == text);
                let near = || hint(&similar_names(text, agents()));
                (!is_known).then(|| ("names no policy of `agents`", near()))
            }
            Of::Clients => {
                let proven = self.proven.as_ref()?;
                let is_proven = proven.iter().any(|name| pattern.matches_name(name));
                let reason = "names no client that can prove to be that; list its address in `trusted_peers` of `[http]`, or give it a token";
                (!is_proven).then_some((reason, None))
            }
            Of::Servers => {
                let is_there = offered.server_names().any(|name| pattern.matches_name(name))
                    || disabled.iter().any(|name| pattern.matches_name(name));
                let near = || hint(&similar_names(text, offered.server_names()));
                (!is_there).then(|| ("names no server", near()))
            }
            Of::ItemsOf(server) => {
                // That there is no such server is told once, where it is named.
                let is_open = is_disabled(server) || !offered.knows(server);
                let of_server = |item: &&Item| {
                    [item.origin.upstream.as_str(), item.origin.namespace.as_str()]
                        .contains(&&**server)
                };
                let items = offered.items().filter(of_server);
                let is_there = text == "*" || items.clone().any(|item| is_about(&pattern, item));
                let near = || hint(&similar(&bare(text), items));
                (!is_open && !is_there).then(|| ("matches nothing of that server", near()))
            }
            Of::Items => {
                let is_there = self.is_open(text, &pattern, offered)
                    || offered.items().any(|item| is_about(&pattern, item));
                let near = || offered.near(text);
                (!is_there).then(|| ("matches nothing", near()))
            }
        }
    }

    /// Whether a pattern is about a whole server, or may be about one whose items are not known.
    fn is_open(&self, text: &str, pattern: &Patterns, offered: &Offered) -> bool {
        let disabled = &self.mentions.disabled;
        let whole = text.strip_suffix(":*").unwrap_or_default();
        let names_disabled = disabled.iter().any(|name| {
            let rest = text.strip_prefix(name.as_str()).filter(|_| !name.is_empty());
            rest.is_some_and(|rest| rest.starts_with([':', '.', '_', '+']))
        });
        let [known, unknown] = [&offered.known, &offered.unknown]
            .map(|names| names.iter().map(String::as_str).collect::<Vec<_>>());
        names_disabled
            || offered.server_names().any(|name| name == whole)
            || text.chars().all(|c| c == '*')
            || !unknown.is_empty() && pattern.may_concern(&unknown, &known)
    }
}

/// A pattern as the name that was meant.
fn bare(pattern: &str) -> String {
    pattern.replace(['*', '?'], "")
}

fn is_about(pattern: &Patterns, item: &Item) -> bool {
    pattern.matches(&item.origin.upstream, Subject::of(item).names())
}

impl Offered {
    fn of(gateway: &Gateway) -> Offered {
        let servers: Vec<_> = gateway.upstreams().collect();
        let (mut known, mut unknown) = (Vec::new(), Vec::new());
        for (namespace, upstream) in &servers {
            let status = upstream.status();
            let is_known = matches!(status.phase, Phase::Ready) && status.problems.is_empty();
            let names = if is_known { &mut known } else { &mut unknown };
            names.extend([upstream.name().as_str().to_owned(), namespace.as_str().to_owned()]);
        }
        Offered { catalog: gateway.catalog(), servers, known, unknown }
    }

    fn items(&self) -> impl Iterator<Item = &Item> + Clone {
        Kind::ALL.into_iter().flat_map(|kind| self.catalog.items(kind))
    }

    fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().flat_map(|(namespace, upstream)| {
            let (name, namespace) = (upstream.name().as_str(), namespace.as_str());
            let namespace = Some(namespace).filter(|other| !other.is_empty() && *other != name);
            [Some(name), namespace].into_iter().flatten()
        })
    }

    /// Names like one that matches nothing: of items, or, of `server_*`, of servers.
    fn near(&self, text: &str) -> Option<String> {
        let whole = text
            .strip_suffix('*')
            .and_then(|text| text.split_at_checked(text.len().checked_sub(1)?));
        if let Some((server, joint @ ("_" | ":" | "."))) = whole {
            let names = similar_names(server, self.server_names()).into_iter();
            let names: Vec<_> = names.map(|name| format!("{name}{joint}*")).collect();
            if let Some(hint) = hint(&names) {
                return Some(hint);
            }
        }
        hint(&similar(&bare(text), self.items()))
    }

    fn knows(&self, server: &str) -> bool {
        self.known.iter().any(|known| known == server)
    }
}
