//! `toolman audit` and `toolman policy suggest`: what the trail tells.

use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use audit::calendar;
use audit::entry::{Call, NOTHING};
use audit::error::Error;
use audit::reader::{Filter, each_call};
use audit::shape::Shape;
use audit::stats::{By, Figures, Stats};
use audit::usage::Usage;
use audit::verify::{Report, verify};
use comfy_table::Table;
use mcp::text::tame;
use serde_json::{Value, json};

use crate::cli::{Audit, Choice, Cli, Misuse, Policy, StatsBy};
use crate::host::Plan;
use crate::{replay, terminal, trail};

pub fn run(cli: &Cli, audit: &Audit) -> anyhow::Result<i32> {
    let folder = folder(cli)?;
    match audit {
        Audit::Verify { json } => check(&folder, *json),
        Audit::Show { choice, denied, limit, json } => {
            let filter = Filter { denied: *denied, ..filter(cli, choice)? };
            show(&folder, &filter, *limit as usize, *json)
        }
        Audit::Stats { choice, by, json } => {
            let by = match by {
                None => By::Both,
                Some(StatsBy::Agent) => By::Agent,
                Some(StatsBy::Tool) => By::Tool,
            };
            count(&folder, &filter(cli, choice)?, by, *json)
        }
    }
}

pub fn policy(cli: &Cli, policy: &Policy) -> anyhow::Result<i32> {
    let (since, json) = match policy {
        Policy::Suggest { since, json } => (since, json),
        Policy::Test { candidate, since, json } => {
            let filter = filter(cli, &Choice { tool: None, since: since.clone() })?;
            return replay::run(&folder(cli)?, &filter, candidate, *json);
        }
    };
    let Some(agent) = &cli.agent else {
        return Err(Misuse("say with `--agent NAME` for whom the policy is".into()).into());
    };
    let filter = filter(cli, &Choice { tool: None, since: since.clone() })?;
    let (folder, mut usage) = (folder(cli)?, Usage::default());
    each_call(&folder, &filter, |_, call| usage.add(call)).map_err(missing)?;
    if usage.is_empty() {
        let agent = tame(agent);
        anyhow::bail!("the audit trail has no successful call of agent `{agent}` in this time");
    }
    terminal::print(&if *json { format!("{:#}\n", usage.json(agent)) } else { usage.toml(agent) })?;
    Ok(0)
}

pub fn folder(cli: &Cli) -> Result<PathBuf, Misuse> {
    trail::folder(cli, &Plan::audit(cli)?)
}

pub fn filter(cli: &Cli, choice: &Choice) -> Result<Filter, Misuse> {
    let since = choice.since.as_deref().map(|text| {
        calendar::since(text, SystemTime::now())
            .map_err(|error| Misuse(format!("`--since` is `{}`; {error}", tame(text))))
    });
    let (agent, tool) = (cli.agent.clone(), choice.tool.clone());
    Ok(Filter { agent, tool, since: since.transpose()?, denied: false })
}

/// That there is no trail is a matter of where it was looked for.
pub fn missing(error: Error) -> anyhow::Error {
    match error {
        Error::Missing(_) => Misuse(error.to_string()).into(),
        error => error.into(),
    }
}

fn check(folder: &Path, as_json: bool) -> anyhow::Result<i32> {
    let report = verify(folder).map_err(missing)?;
    terminal::print(&if as_json { report_json(&report) } else { report_text(&report) })?;
    Ok(i32::from(!report.broken.is_empty()))
}

fn report_text(report: &Report) -> String {
    let Report { files, records, torn, lost, hidden, broken, heads } = report;
    let mut text = String::new();
    for place in broken {
        text += &format!("{place}\n");
    }
    text += &format!("{records} records in {files} files ");
    text += if broken.is_empty() { "hold together\n" } else { "come before that\n" };
    if *torn > 0 {
        text += &format!("{torn} lines were not written to their end, as the next line says\n");
    }
    if *lost > 0 {
        text += &format!("{lost} calls could not be recorded, as the trail says\n");
    }
    if *hidden > 0 {
        text += &format!("{hidden} values of secrets were hidden in what upstreams say\n");
    }
    for head in heads {
        text += &format!("the last of {}: {} {}\n", head.file.display(), head.seq, head.hash);
    }
    text
}

fn report_json(report: &Report) -> String {
    let broken: Vec<Value> = report
        .broken
        .iter()
        .map(|place| json!({"file": place.file, "line": place.line, "reason": place.reason}))
        .collect();
    let heads: Vec<Value> = report
        .heads
        .iter()
        .map(|head| json!({"file": head.file, "seq": head.seq, "hash": head.hash}))
        .collect();
    let Report { files, records, torn, lost, hidden, .. } = report;
    let report = json!({
        "ok": broken.is_empty(), "files": files, "records": records, "torn": torn, "lost": lost,
        "hidden": hidden,
        "broken": broken, "heads": heads,
    });
    format!("{report:#}\n")
}

fn show(folder: &Path, filter: &Filter, limit: usize, as_json: bool) -> anyhow::Result<i32> {
    let mut newest: VecDeque<(String, Call<'static>)> = VecDeque::new();
    let mut found = 0;
    // Several processes write at the same time, each its own file.
    let settle = |newest: &mut VecDeque<(String, Call<'static>)>| {
        newest.make_contiguous().sort_by(|a, b| a.0.cmp(&b.0));
        newest.drain(..newest.len().saturating_sub(limit));
    };
    let unreadable = each_call(folder, filter, |at, call| {
        found += 1;
        newest.push_back((at.to_owned(), call.clone()));
        if newest.len() > 2 * limit {
            settle(&mut newest);
        }
    });
    let unreadable = unreadable.map_err(missing)?;
    settle(&mut newest);
    if as_json {
        let line = |(at, call): &(String, Call<'static>)| {
            let mut line = serde_json::to_value(call).unwrap_or_default();
            line["at"] = at.as_str().into();
            format!("{line}\n")
        };
        terminal::print(&newest.iter().map(line).collect::<String>())?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_header(["time", "agent", "what", "arguments", "decision", "status", "ms", "bytes"]);
    for (at, call) in &newest {
        table.add_row([
            at.get(..19).unwrap_or(at).replace('T', " "),
            call.agent.as_deref().map_or(NOTHING.into(), tame),
            tame(call.subject()),
            arguments(call),
            call.decision.as_str().into(),
            call.status.as_str().into(),
            milliseconds(call.latency_us),
            call.bytes_out.to_string(),
        ]);
    }
    let shown = newest.len();
    let mut text = format!("{table}\n\n{shown} of {found} calls; times are in UTC\n");
    if unreadable > 0 {
        text += &format!("{unreadable} lines can't be read; see `toolman audit verify`\n");
    }
    terminal::print(&text)?;
    Ok(0)
}

/// The arguments, cut to what fits into a table.
fn arguments(call: &Call<'_>) -> String {
    const CHARS_MAX: usize = 40;
    let text = match (&call.values, &call.arguments) {
        (Some(values), _) => values.to_string(),
        (None, Shape::Read(Value::Object(members))) => {
            let names: Vec<_> = members.keys().map(String::as_str).collect();
            names.join(", ")
        }
        (None, Shape::Read(Value::Null) | Shape::Of(_)) => String::new(),
        (None, Shape::Read(other)) => other.to_string(),
    };
    let text = tame(&text);
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn milliseconds(micros: u64) -> String {
    format!("{}.{:01}", micros / 1000, micros % 1000 / 100)
}

fn count(folder: &Path, filter: &Filter, by: By, as_json: bool) -> anyhow::Result<i32> {
    let mut stats = Stats::by(by);
    each_call(folder, filter, |_, call| stats.add(call)).map_err(missing)?;
    let (has_agent, has_tool) = (by != By::Tool, by != By::Agent);
    if as_json {
        let row = |(agent, tool, figures): (&str, &str, &Figures)| {
            let mut row = json!({
                "calls": figures.calls, "errors": figures.errors, "denials": figures.denials,
                "p50_us": figures.latency_us(50), "p95_us": figures.latency_us(95),
                "bytes_in": figures.bytes_in, "bytes_out": figures.bytes_out,
            });
            if has_agent {
                row["agent"] = if agent == NOTHING { Value::Null } else { agent.into() };
            }
            if has_tool {
                row["tool"] = tool.into();
            }
            row
        };
        let rows: Vec<Value> = stats.rows().into_iter().map(row).collect();
        terminal::print(&format!("{:#}\n", json!({"rows": rows})))?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    let columns = ["calls", "errors", "denials", "p50 ms", "p95 ms", "bytes in", "bytes out"];
    let names = [("agent", has_agent), ("tool", has_tool)];
    let named = names.iter().filter(|(_, is_there)| *is_there).map(|(name, _)| *name);
    table.set_header(named.chain(columns));
    for (agent, tool, figures) in stats.rows() {
        let named = [(agent, has_agent), (tool, has_tool)].into_iter();
        let named = named.filter(|(_, is_there)| *is_there).map(|(name, _)| tame(name));
        let latency = |percent| figures.latency_us(percent).map_or("-".into(), milliseconds);
        table.add_row(named.chain([
            figures.calls.to_string(),
            figures.errors.to_string(),
            figures.denials.to_string(),
            latency(50),
            latency(95),
            figures.bytes_in.to_string(),
            figures.bytes_out.to_string(),
        ]));
    }
    terminal::print(&format!("{table}\n"))?;
    Ok(0)
}
