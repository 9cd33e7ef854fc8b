//! `toolman tools`: list, inspect and call, through the same gateway that clients use.

use std::io::Read as _;
use std::sync::Arc;

use anyhow::Context as _;
use catalog::error::Error as Refusal;
use catalog::policy::Rights;
use catalog::scope::Scope;
use catalog::surface::Surface;
use comfy_table::Table;
use gateway::Gateway;
use gateway::client::Client;
use gateway::place::Place;
use gateway::request::Request;
use mcp::items::Kind;
use mcp::json;
use mcp::rpc::{Outcome, Raw};
use mcp::text::tame;
use serde_json::Value;

use crate::cli::{Cli, Misuse, Tools};
use crate::host::{Host, stop_on_signals};
use crate::terminal;

pub async fn run(cli: &Cli, tools: &Tools) -> anyhow::Result<i32> {
    let arguments = match tools {
        Tools::Call { arguments, .. } => read_arguments(arguments)?,
        Tools::List { .. } | Tools::Inspect { .. } => String::new(),
    };
    let stop = stop_on_signals()?;
    let host = Host::start(cli).await?;
    let work = async {
        terminal::wait_for_all(&host.gateway).await;
        match tools {
            Tools::List { json } => list(cli, &host.gateway, *json),
            Tools::Inspect { name } => inspect(cli, &host.gateway, name),
            Tools::Call { name, json, .. } => {
                call(cli, &host.gateway, name, &arguments, *json).await
            }
        }
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        () = stop.cancelled() => Ok(130),
    };
    host.stop().await;
    outcome
}

fn list(cli: &Cli, gateway: &Gateway, as_json: bool) -> anyhow::Result<i32> {
    let view = connect(cli, gateway).view();
    let tools = view.items(Kind::Tool);
    if as_json {
        let definitions: Vec<_> =
            tools.map(|tool| String::from_utf8_lossy(&tool.definition)).collect();
        terminal::print(&format!("[{}]\n", definitions.join(",\n ")))?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    for tool in tools {
        let mark = if tool.starts_on { "*" } else { " " };
        table.add_row([mark.to_owned(), tool.name.to_string(), tame(&tool.summary)]);
    }
    terminal::print(&format!("{table}\n"))?;
    Ok(0)
}

fn inspect(cli: &Cli, gateway: &Gateway, name: &str) -> anyhow::Result<i32> {
    let view = connect(cli, gateway).view();
    let found = view.find(Kind::Tool, name).map_err(|error| worded(&error))?;
    // Laid out for reading; as it is where a number does not fit.
    let definition = match serde_json::from_slice::<Value>(&found.definition) {
        Ok(definition) => format!("{definition:#}"),
        Err(_) => as_sent(&Raw::trusted(found.definition.clone())),
    };
    terminal::print(&format!(
        "{definition}\n\nfrom server `{}`, where it is `{}`; {} at first; about {} tokens\n",
        found.origin.upstream,
        found.origin.name,
        if found.starts_on { "active" } else { "inactive" },
        catalog::tokens::estimate(&found.definition),
    ))?;
    Ok(0)
}

async fn call(
    cli: &Cli,
    gateway: &Gateway,
    name: &str,
    arguments: &str,
    as_json: bool,
) -> anyhow::Result<i32> {
    let client = connect(cli, gateway);
    if let Err(error @ Refusal::Unknown { .. }) = client.view().find(Kind::Tool, name) {
        return Err(worded(&error));
    }
    let params = format!(r#"{{"name":{},"arguments":{arguments}}}"#, json::quote(name));
    let params = Some(Raw::trusted(params));
    let request = Request::new(Raw::trusted("1"), "tools/call".to_owned(), params);
    // Nobody listens to what comes before the answer.
    let (outbox, _) = gateway::outbox::channel();
    let answer = gateway.handle(&client, &request, &client.outlet(outbox)).await?;
    let outcome = answer.whole().await?;
    let (text, failed) = match &outcome {
        Outcome::Error(error) => (as_sent(error), true),
        Outcome::Result(result) if as_json => (as_sent(result), is_error(result)),
        Outcome::Result(result) => (readable(result), is_error(result)),
    };
    terminal::print(&format!("{text}\n"))?;
    Ok(i32::from(failed))
}

/// An error about a name, for somebody at a terminal.
fn worded(error: &Refusal) -> anyhow::Error {
    anyhow::anyhow!(error.to_string().replace("`tools/list`", "`toolman tools list`"))
}

fn read_arguments(arguments: &str) -> anyhow::Result<String> {
    let mut text = arguments.to_owned();
    if arguments == "-" {
        text.clear();
        std::io::stdin().read_to_string(&mut text).context("can't read the arguments")?;
    }
    let wrong = |fault| Misuse(format!("the arguments are no JSON object: {fault}"));
    let [] = json::members(text.as_bytes(), []).map_err(wrong)?;
    Ok(text)
}

/// A client of our own, for which everything is on: all there is, or all that an agent may see.
pub fn connect(cli: &Cli, gateway: &Gateway) -> Arc<Client> {
    let caller = gateway::auth::local(cli.agent.as_deref());
    let all = Scope { surface: Surface::Filter, ..Scope::default() };
    let place = match caller.identity.agent {
        None => Place::new(all.with(Rights::operator())),
        Some(_) => gateway.stand(&Place::new(all), &caller, None).expect("it is a place for all"),
    };
    gateway.principal(&caller, &place, None)
}

/// A value as it was sent, safe for a terminal.
fn as_sent(raw: &Raw) -> String {
    tame(&String::from_utf8_lossy(raw.as_bytes()))
}

fn is_error(result: &Raw) -> bool {
    matches!(result.members(["isError"]), Ok([Some("true")]))
}

/// The text blocks of a result; anything else as it was sent.
fn readable(result: &Raw) -> String {
    let content = result.members(["content"]).ok().and_then(|[content]| content);
    let Some(blocks) = content.and_then(|content| json::elements(content).ok()) else {
        return as_sent(result);
    };
    let text = |block: &&str| match json::members(block.as_bytes(), ["text"]) {
        Ok([Some(text)]) => {
            let text = json::string(text).unwrap_or_default();
            text.lines().map(tame).collect::<Vec<_>>().join("\n")
        }
        _ => tame(block),
    };
    blocks.iter().map(text).collect::<Vec<_>>().join("\n")
}
