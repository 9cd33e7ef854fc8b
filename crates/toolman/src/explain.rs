//! `toolman explain`: why an agent may or may not see something, rule by rule.

use std::fmt::Write as _;

use catalog::policy::{Rights, Subject, Who};
use catalog::scope::Scope;
use catalog::snapshot::{Catalog, Item};
use gateway::Gateway;
use mcp::items::Kind;
use mcp::text::tame;
use serde_json::json;

use crate::cli::{Cli, Explain};
use crate::host::stop_on_signals;
use crate::terminal;
use crate::unset::{self, Absent};

pub async fn run(cli: &Cli, explain: &Explain) -> anyhow::Result<i32> {
    let stop = stop_on_signals()?;
    let (host, absent) = unset::start(cli).await?;
    let outcome = tokio::select! {
        () = terminal::wait_for_all(&host.gateway) => {
            let decisions = decisions(&host.gateway, explain, absent);
            print(explain, &decisions).map(|()| {
                i32::from(decisions.is_empty() || decisions.iter().any(|known| !known.is_allowed))
            })
        }
        () = stop.cancelled() => Ok(130),
    };
    host.gateway.stop().await;
    outcome
}

/// What was decided about one item, and by which steps.
struct Decision {
    kind: Kind,
    name: String,
    is_allowed: bool,
    steps: Vec<String>,
}

fn decisions(gateway: &Gateway, explain: &Explain, absent: Vec<Absent>) -> Vec<Decision> {
    let catalog = gateway.catalog();
    let found = named(&catalog, &explain.name);
    if found.is_empty() {
        return supposed(gateway, explain, absent).into_iter().collect();
    }
    found.into_iter().map(|item| decide(gateway, &catalog, explain, item)).collect()
}

/// What is decided about a tool of a server that is not there: by its name alone.
fn supposed(gateway: &Gateway, explain: &Explain, mut absent: Vec<Absent>) -> Option<Decision> {
    for (namespace, upstream) in gateway.upstreams() {
        if let Some(problem) = upstream.condition().problem {
            let reason = problem.lines().next().unwrap_or_default().to_owned();
            absent.push(Absent { name: upstream.name().clone(), namespace, reason });
        }
    }
    let tool_of = |absent: &Absent| {
        let owners = [absent.name.as_str(), absent.namespace.as_str()].into_iter();
        let rests = owners.filter(|owner| !owner.is_empty()).filter_map(|owner| {
            let rest = explain.name.strip_prefix(owner)?;
            let tool = ["__", "_", ":", "."].into_iter().find_map(|joint| rest.strip_prefix(joint));
            tool.filter(|tool| !tool.is_empty()).map(str::to_owned)
        });
        rests.min_by_key(String::len)
    };
    let meant = absent.iter().filter_map(|absent| Some((absent, tool_of(absent)?)));
    let (server, tool) = meant.min_by_key(|(_, tool)| tool.len())?;
    let exposed = server.namespace.expose(&tool);
    let subject = Subject::new(&server.name, &server.namespace, &tool, exposed.as_str());
    let (rights, mut steps) = begin(gateway, explain);
    let (name, reason) = (&server.name, tame(&server.reason));
    steps.insert(0, format!("server `{name}` is not there, so the name alone counts: it {reason}"));
    let now = gateway::refresh::now();
    let policies = gateway.policies();
    let by = policies.decide(&rights, &subject, now, &mut |step| steps.push(step.to_string()));
    Some(Decision { kind: Kind::Tool, name: exposed.to_string(), is_allowed: by.is_some(), steps })
}

/// All that a name may mean, whoever asks.
fn named<'a>(catalog: &'a Catalog, name: &str) -> Vec<&'a Item> {
    use catalog::snapshot::Lookup;
    let mut items = Vec::new();
    for kind in Kind::ALL {
        match catalog.look_up(kind, name) {
            Lookup::Found(item) => items.push(item),
            Lookup::Ambiguous(several) => items.extend(several),
            Lookup::Unknown => {}
        }
    }
    items
}

/// The rights of the agent, and what is to be said of them.
fn begin(gateway: &Gateway, explain: &Explain) -> (Rights, Vec<String>) {
    let policies = gateway.policies();
    let agent = Some(explain.agent.as_str());
    let rights = policies.rights_of(Who { agent, address: explain.address });
    let mut steps = Vec::new();
    if rights.agent().is_none() {
        let none = "no policy is named so; the rules for everybody hold";
        steps.push(format!("agent `{}`: {none}", tame(&explain.agent)));
    }
    if !policies.are_in_force() {
        steps.push("the configuration has no rules: allowed".to_owned());
    }
    (rights, steps)
}

fn decide(gateway: &Gateway, catalog: &Catalog, explain: &Explain, item: &Item) -> Decision {
    let policies = gateway.policies();
    let (rights, mut steps) = begin(gateway, explain);
    let now = gateway::refresh::now();
    let subject = Subject::of(item);
    let by = policies.decide(&rights, &subject, now, &mut |step| steps.push(step.to_string()));
    let scope = Scope { rights: rights.clone(), ..Scope::default() };
    let ceiling = catalog::ceiling::Ceiling::of(catalog, catalog, policies, &scope, now);
    let is_allowed = ceiling.holds(item);
    if by.is_some() && !is_allowed {
        let most = policies.fallback.tools_max.unwrap_or_default();
        steps.push(format!("`max_tools_per_agent` is {most}, and it comes after these: denied"));
    }
    if is_allowed && by.is_some_and(|by| policies.needs_consent(&rights, &subject, by)) {
        steps.push("a person is asked before each call".to_owned());
    }
    Decision { kind: item.kind, name: item.name.to_string(), is_allowed, steps }
}

fn print(explain: &Explain, decisions: &[Decision]) -> anyhow::Result<()> {
    if explain.json {
        let decisions: Vec<_> = decisions
            .iter()
            .map(|known| {
                json!({"agent": explain.agent, "kind": known.kind.noun(), "name": known.name,
                    "allowed": known.is_allowed, "steps": known.steps})
            })
            .collect();
        return terminal::print(&format!("{:#}\n", json!(decisions)));
    }
    if decisions.is_empty() {
        let asked = tame(&explain.name);
        let hint = "see `toolman tools list` for what there is";
        return terminal::print(&format!("no server offers anything named `{asked}`; {hint}\n"));
    }
    let mut text = String::new();
    for known in decisions {
        let verdict = if known.is_allowed { "allowed" } else { "denied" };
        let (kind, name) = (known.kind.noun(), tame(&known.name));
        _ = writeln!(text, "{kind} `{name}` for agent `{}`: {verdict}", tame(&explain.agent));
        for (number, step) in known.steps.iter().enumerate() {
            _ = writeln!(text, "  {}. {step}", number + 1);
        }
    }
    terminal::print(&text)
}
