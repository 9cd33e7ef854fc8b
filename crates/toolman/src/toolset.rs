//! `toolman toolset`: saved toolsets, from the command line.

pub mod exchange;
mod state;
mod used;

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::sync::Arc;

use catalog::toolset::{Owner, Reference, Toolset as Named, choice, limits};
use catalog::view::View;
use comfy_table::Table;
use gateway::library::{Document, Store as _, VERSION};
use mcp::text::{shorten, tame};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use upstream::supervisor::Phase;

use crate::cli::toolset::Toolset;
use crate::cli::{Cli, Misuse};
use crate::host::{Host, stop_on_signals};
use crate::library::Library;
use crate::{terminal, tools};

/// The exit code of a command that was interrupted.
const INTERRUPTED: i32 = 130;

pub async fn run(cli: &Cli, command: &Toolset) -> anyhow::Result<i32> {
    let library = Library::of(cli);
    match command {
        Toolset::Build { name, tools, description, json } => {
            build(cli, &library, name, tools, description.as_deref(), *json).await
        }
        Toolset::List { json } => list(&library, *json),
        Toolset::Show { name, json } => state::show(cli, &library, name, *json).await,
        Toolset::Equip { name, json } => equip(&library, Some(name), *json),
        Toolset::Unequip { json } => equip(&library, None, *json),
        Toolset::Delete { name, yes, json } => delete(&library, name, *yes, *json),
        Toolset::Diff { name, json } => state::diff(cli, &library, name, *json).await,
        Toolset::Approve { name, yes, json } => {
            state::approve(cli, &library, name, *yes, *json).await
        }
        Toolset::Export { names, json: _ } => exchange::export(&library, names),
        Toolset::Import { file, force, json } => {
            exchange::import(cli, &library, file.as_deref(), *force, *json).await
        }
        Toolset::Suggest { since, json } => used::suggest(cli, since.as_deref(), *json),
    }
}

async fn build(
    cli: &Cli,
    library: &Library,
    name: &str,
    tools: &[String],
    description: Option<&str>,
    as_json: bool,
) -> anyhow::Result<i32> {
    let wrong = |flaw: limits::Flaw| Misuse(flaw.to_string());
    limits::check_name(name).map_err(wrong)?;
    limits::check_description(description.unwrap_or_default()).map_err(wrong)?;
    if read(library)?.toolsets.contains_key(name) {
        anyhow::bail!("there is a toolset `{name}` already; delete it first, or use another name");
    }
    let Some(Live { view, .. }) = look(cli).await? else { return Ok(INTERRUPTED) };
    let (chosen, told) = choose(tools, &view)?;
    limits::check_count(chosen.len()).map_err(wrong)?;
    let toolset = Named {
        name: name.into(),
        description: description.map(str::to_owned),
        version: Some(VERSION.to_owned()),
        references: chosen,
        ..Named::default()
    };
    let names: Vec<String> = toolset.references.iter().map(shown).collect();
    library.update(&mut |document| document.add(toolset.clone())).map_err(anyhow::Error::msg)?;
    let count = names.len();
    tell(
        as_json,
        &json!({"name": name, "tools": names, "notes": told}),
        &[&[format!("saved toolset `{name}` with {count} tools: {}", names.join(", "))], &told[..]]
            .concat()
            .join("\n"),
    )
}

/// The tools that are meant and what these can't do without, pinned as they are now; and what was added.
fn choose<S: AsRef<str>>(
    asked: &[S],
    view: &View,
) -> anyhow::Result<(Vec<Reference>, Vec<String>)> {
    let counts = |tool: &catalog::snapshot::Item| view.ceiling().holds(tool);
    let chosen = choice::choose(asked, view.catalog(), counts);
    let mut chosen = chosen.map_err(anyhow::Error::msg)?;
    let told = choice::add_required(&mut chosen, view.catalog(), counts, false);
    Ok((chosen.into_iter().map(Reference::pin).collect(), told))
}

fn list(library: &Library, as_json: bool) -> anyhow::Result<i32> {
    let document = read(library)?;
    let is_equipped = |key: &str| document.last_equipped.as_deref() == Some(key);
    let owner = |toolset: &Named| match &toolset.owner {
        Owner::Operator => None,
        Owner::Agent(agent) => Some(agent.as_deref().unwrap_or_default().to_owned()),
    };
    if as_json {
        let row = |key: &str, toolset: &Named| {
            let tools: Vec<String> = toolset.references.iter().map(shown).collect();
            json!({
                "name": toolset.name, "owner": owner(toolset), "description": toolset.description, "version": toolset.version,
                "createdAt": toolset.created_at, "lastModified": toolset.last_modified,
                "toolCount": tools.len(), "tools": tools, "equipped": is_equipped(key),
            })
        };
        let rows: Vec<Value> =
            document.toolsets.iter().map(|(key, toolset)| row(key, toolset)).collect();
        terminal::print(&format!("{:#}\n", json!({"toolsets": rows})))?;
        return Ok(0);
    }
    if document.toolsets.is_empty() {
        terminal::print("no toolset is saved; make one with `toolman toolset build NAME TOOL…`\n")?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    for (key, toolset) in &document.toolsets {
        let mark = if is_equipped(key) { "*" } else { " " };
        let description = toolset.description.as_deref().map(tame).unwrap_or_default();
        let count = format!("{} tools", toolset.references.len());
        let mut row = vec![mark.to_owned(), tame(&toolset.name), count, description];
        match owner(toolset).as_deref() {
            None => {}
            Some("") => row.push("saved by a client".to_owned()),
            Some(agent) => row.push(format!("saved by {}", tame(agent))),
        }
        table.add_row(row);
    }
    terminal::print(&format!("{table}\n"))?;
    Ok(0)
}

fn equip(library: &Library, name: Option<&String>, as_json: bool) -> anyhow::Result<i32> {
    let mut change = |document: &mut Document| {
        let key = name.map(|name| find(document, name).map(|toolset| toolset.key())).transpose()?;
        document.last_equipped = key.map(Into::into);
        Ok(())
    };
    library.update(&mut change).map_err(anyhow::Error::msg)?;
    let words = match name {
        Some(name) => format!("`{name}` is equipped from the next start on"),
        None => "none is equipped from the next start on".to_owned(),
    };
    tell(as_json, &json!({"equipped": name}), &words)
}

fn delete(library: &Library, name: &str, yes: bool, as_json: bool) -> anyhow::Result<i32> {
    let document = read(library)?;
    let count = find(&document, name).map_err(anyhow::Error::msg)?.references.len();
    if !yes && !assents(&format!("delete toolset `{name}` with {count} tools?"))? {
        return Ok(1);
    }
    let mut change = |document: &mut Document| {
        let key = find(document, name)?.key();
        document.toolsets.remove(&*key);
        if document.last_equipped.as_deref() == Some(&key) {
            document.last_equipped = None;
        }
        Ok(())
    };
    library.update(&mut change).map_err(anyhow::Error::msg)?;
    tell(as_json, &json!({"deleted": name}), &format!("deleted toolset `{name}`"))
}

fn read(library: &Library) -> anyhow::Result<Document> {
    library.read().map_err(anyhow::Error::msg)
}

/// The toolset of a name: the operator's, or `AGENT/NAME`, or the only one that is called so.
fn find<'a>(document: &'a Document, name: &str) -> Result<&'a Arc<Named>, String> {
    if let Some(toolset) = document.toolsets.get(name) {
        return Ok(toolset);
    }
    let named: Vec<_> =
        document.toolsets.iter().filter(|(_, toolset)| *toolset.name == *name).collect();
    if let [(_, toolset)] = named[..] {
        return Ok(toolset);
    }
    let list = |keys: &mut dyn Iterator<Item = &Box<str>>| {
        keys.map(|key| format!("`{}`", tame(key))).collect::<Vec<_>>().join(", ")
    };
    let asked = shorten(name);
    if !named.is_empty() {
        let keys = list(&mut named.iter().map(|(key, _)| *key));
        return Err(format!("several agents have a toolset `{asked}`; name one of {keys}"));
    }
    let hint = match document.toolsets.len() {
        0 => "none is saved".to_owned(),
        _ => format!("there are {}", list(&mut document.toolsets.keys())),
    };
    Err(format!("no toolset is named `{asked}`; {hint}"))
}

/// What a person calls a reference.
fn shown(reference: &Reference) -> String {
    let name = reference.name.as_deref().or(reference.ref_id.as_deref());
    tame(name.unwrap_or_default())
}

/// All tools as they are now; `None` if somebody does not want to wait for them.
async fn look(cli: &Cli) -> anyhow::Result<Option<Live>> {
    let stop = stop_on_signals()?;
    let host = Host::start(cli).await?;
    let is_ready = tokio::select! {
        () = terminal::wait_until_ready(&host.gateway) => true,
        () = stop.cancelled() => false,
    };
    for (_, upstream) in host.gateway.upstreams().filter(|_| is_ready) {
        if !matches!(upstream.status().phase, Phase::Ready) {
            let name = upstream.name();
            terminal::complain(&format!(
                "server `{name}` is not ready, so its tools are not there; see `toolman check`"
            ));
        }
    }
    let view = is_ready.then(|| tools::connect(cli, &host.gateway).view());
    host.stop().await;
    Ok(view.map(|view| Live { view, stop }))
}

/// What the servers have offered; they have ended by now.
struct Live {
    view: Arc<View>,
    /// Cancelled by the first signal.
    stop: CancellationToken,
}

/// Asks on a terminal; elsewhere nobody could answer.
fn assents(question: &str) -> anyhow::Result<bool> {
    let input = std::io::stdin();
    if !input.is_terminal() {
        return Err(Misuse("nobody can be asked here; say `--yes`".into()).into());
    }
    let mut out = std::io::stderr().lock();
    write!(out, "{question} [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    input.lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn tell(as_json: bool, value: &Value, words: &str) -> anyhow::Result<i32> {
    terminal::print(&if as_json { format!("{value:#}\n") } else { format!("{words}\n") })?;
    Ok(0)
}
