//! `toolman explain`: why an agent may or may not see something, rule by rule.

use std::fmt::Write as _;

use catalog::policy::{Subject, Who};
use catalog::scope::Scope;
use catalog::snapshot::{Catalog, Item};
use gateway::Gateway;
use mcp::items::Kind;
use mcp::text::tame;
use serde_json::json;

use crate::cli::{Cli, Explain};
use crate::host::{Host, stop_on_signals};
use crate::terminal;

pub async fn run(cli: &Cli, explain: &Explain) -> anyhow::Result<i32> {
    let stop = stop_on_signals()?;
    let host = Host::start(cli).await?;
    let outcome = tokio::select! {
        () = terminal::wait_for_all(&host.gateway) => {
            let decisions = decisions(&host.gateway, explain);
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

fn decisions(gateway: &Gateway, explain: &Explain) -> Vec<Decision> {
    let catalog = gateway.catalog();
    let found = named(&catalog, &explain.name).into_iter();
    found.map(|item| decide(gateway, &catalog, explain, item)).collect()
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

fn decide(gateway: &Gateway, catalog: &Catalog, explain: &Explain, item: &Item) -> Decision {
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
