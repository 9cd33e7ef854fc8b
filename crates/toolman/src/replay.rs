//! `toolman policy test`: what a candidate file would have denied of what agents have really used.

use std::collections::BTreeMap;
use std::path::Path;

use audit::entry::{Call, NOTHING, Status};
use audit::reader::{Filter, each_call};
use catalog::policy::{Policies, Subject, Who};
use mcp::names::Namespace;
use mcp::text::tame;
use serde_json::json;

use crate::host;
use crate::terminal;

/// What would break: one thing that one agent has used.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Loss {
    agent: String,
    name: String,
}

pub fn run(folder: &Path, filter: &Filter, candidate: &Path, as_json: bool) -> anyhow::Result<i32> {
    let mut policies = host::read(candidate)?.rulebook.policies;
    // When and from where a call was made then, it may not be made now.
    policies.agents.values_mut().for_each(|agent| agent.conditions.clear());
    let policies = &policies;
    let mut losses: BTreeMap<Loss, (u64, String)> = BTreeMap::new();
    let (mut calls, mut lost) = (0_u64, 0_u64);
    each_call(folder, filter, |_, call| {
        if !was_good(call) {
            return;
        }
        calls += 1;
        if let Some(rule) = denied(policies, call) {
            lost += 1;
            let agent = call.agent.as_deref().unwrap_or(NOTHING).to_owned();
            let loss = Loss { agent, name: call.subject().to_owned() };
            losses.entry(loss).or_insert((0, rule)).0 += 1;
        }
    })
    .map_err(super::review::missing)?;
    if as_json {
        let losses: Vec<_> = losses
            .iter()
            .map(|(loss, (count, rule))| {
                json!({"agent": loss.agent, "name": loss.name, "calls": count, "rule": rule})
            })
            .collect();
        let report = json!({"calls": calls, "denied": lost, "losses": losses});
        terminal::print(&format!("{report:#}\n"))?;
    } else {
        let mut text = String::new();
        for (Loss { agent, name }, (count, rule)) in &losses {
            let (agent, name) = (tame(agent), tame(name));
            text += &format!("agent `{agent}` would lose `{name}` ({count} calls): {rule}\n");
        }
        let file = candidate.display();
        text += &format!("{lost} of {calls} calls would be denied by {file}\n");
        terminal::print(&text)?;
    }
    Ok(i32::from(lost > 0))
}

/// Whether it was a use of something, with success.
fn was_good(call: &Call<'_>) -> bool {
    call.is_allowed() && call.status == Status::Ok && call.upstream.is_some()
}

/// The rule that would deny a call, if one would.
fn denied(policies: &Policies, call: &Call<'_>) -> Option<String> {
    let (Some(upstream), Some(item)) = (&call.upstream, &call.item) else { return None };
    let server = upstream.parse().ok()?;
    let namespace: Namespace = call.namespace.as_deref().unwrap_or_default().parse().ok()?;
    let subject = Subject::new(&server, &namespace, item, call.subject());
    let rights = policies.rights_of(Who { agent: call.agent.as_deref(), address: None });
    if !policies.are_in_force() {
        return None;
    }
    let mut last = String::new();
    let now = gateway::refresh::now();
    let by = policies.decide(&rights, &subject, now, &mut |step| last = step.to_string());
    by.is_none().then_some(last)
}
