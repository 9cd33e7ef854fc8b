//! What people do about what models have written: `toolman approve`, `tool-history` and `revert`.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use comfy_table::Table;
use manager::beneath::Root;
use manager::history::History;
use manager::names::{FileName, NamespaceName};
use manager::shelf::{Shelf, Waiting};
use manager::sources::proposal::Proposal;
use mcp::text::tame;
use serde_json::json;

use super::diff::diff;
use super::{now, proposals};
use crate::cli::manager::{Approve, History as Asked, Revert};
use crate::cli::{Cli, Misuse};
use crate::{data_dir, host, terminal};

/// What waits.
enum Case {
    File(Waiting),
    Server(Proposal),
    /// A server's that can't be read, and why.
    Unread(String),
}

/// The folders of the data directory, opened.
struct Folders {
    data: Root,
    tools: Root,
}

impl Folders {
    fn open(cli: &Cli) -> anyhow::Result<Folders> {
        let data = data_dir::folder(cli)?;
        let dock = host::configuration(cli)?.and_then(|config| config.dock);
        let tools = dock.and_then(|dock| dock.folder).unwrap_or_else(|| data.join("tools"));
        Ok(Folders { data: Root::open(&data)?, tools: Root::open(&tools)? })
    }

    fn shelf(&self) -> Shelf<'_> {
        Shelf { data: &self.data, tools: &self.tools, clock: now }
    }
}

/// Shows what waits, and puts it in place if a person says so.
pub fn approve(cli: &Cli, asked: &Approve) -> anyhow::Result<i32> {
    let folders = Folders::open(cli)?;
    let shelf = folders.shelf();
    let named = |one: Waiting| (format!("{}/{}", one.namespace, one.file), Case::File(one));
    let mut waiting: Vec<_> = shelf.all_waiting()?.into_iter().map(named).collect();
    let servers = proposals::all_waiting(&folders.data)?;
    let case = |one: Result<_, _>| one.map_or_else(Case::Unread, Case::Server);
    waiting.extend(servers.into_iter().map(|(name, one)| (name, case(one))));
    if let Some(named) = &asked.file {
        waiting.retain(|(name, _)| name == named);
        if waiting.is_empty() {
            anyhow::bail!("`{}` does not wait; see `toolman approve --list`", tame(named));
        }
    }
    if asked.list {
        let names: Vec<_> = waiting.into_iter().map(|(name, _)| name).collect();
        return list(&names, asked.json);
    }
    if waiting.is_empty() {
        terminal::print("nothing waits for approval\n")?;
        return Ok(0);
    }
    if !asked.yes && !std::io::stdin().is_terminal() {
        let reason =
            "there is nobody to ask; look with `toolman approve --list`, then pass `--yes`";
        return Err(Misuse(reason.into()).into());
    }
    let mut is_all_done = true;
    for (name, case) in &waiting {
        is_all_done &= match case {
            Case::File(one) => decide(&shelf, one, asked)?,
            Case::Server(proposal) => decide_server(cli, &folders.data, (name, proposal), asked)?,
            Case::Unread(why) => decide_unread(&folders.data, (name, why), asked)?,
        };
    }
    Ok(i32::from(!is_all_done))
}

fn list(names: &[String], as_json: bool) -> anyhow::Result<i32> {
    let text = if as_json {
        format!("{:#}\n", json!({"pending": names}))
    } else if names.is_empty() {
        "nothing waits for approval\n".to_owned()
    } else {
        names.iter().map(|name| tame(name) + "\n").collect()
    };
    terminal::print(&text)?;
    Ok(0)
}

/// One file; whether it was done with.
fn decide(shelf: &Shelf<'_>, one: &Waiting, asked: &Approve) -> anyhow::Result<bool> {
    let name = tame(&format!("{}/{}", one.namespace, one.file));
    let before = shelf.served(&one.namespace, &one.file)?;
    let what = if before.is_some() { "changed" } else { "new" };
    let shown = diff(before.as_deref().unwrap_or_default(), &one.text);
    terminal::print(&format!("{name} ({what}), written by a model:\n{shown}\n"))?;
    let verb = if asked.reject { "throw it away" } else { "put it in place" };
    if !asked.yes && !is_yes(&format!("{verb}? [y/N] "))? {
        terminal::print("left as it is\n")?;
        return Ok(true);
    }
    let is_done =
        if asked.reject { shelf.reject(one)? } else { shelf.approve(one, before.as_deref())? };
    let said = match (is_done, asked.reject) {
        (true, true) => format!("threw away {name}\n"),
        (true, false) => format!("approved {name}; it is served after the next reload\n"),
        (false, _) => changed(&name),
    };
    terminal::print(&said)?;
    Ok(is_done)
}

/// One that can't be read, which can only be thrown away; whether it was.
fn decide_unread(data: &Root, (name, why): (&str, &str), asked: &Approve) -> anyhow::Result<bool> {
    let shown = tame(name);
    terminal::print(&format!("{shown}: {}\n", tame(why)))?;
    if !asked.reject {
        terminal::print(&format!("throw it away with `toolman approve {shown} --reject`\n"))?;
        return Ok(false);
    }
    if !asked.yes && !is_yes("throw it away? [y/N] ")? {
        terminal::print("left as it is\n")?;
        return Ok(true);
    }
    let is_done = proposals::reject_unread(data, name)?;
    let said = if is_done { format!("threw away {shown}\n") } else { changed(&shown) };
    terminal::print(&said)?;
    Ok(is_done)
}

/// One server; whether it was done with.
fn decide_server(
    cli: &Cli,
    data: &Root,
    (name, proposal): (&str, &Proposal),
    asked: &Approve,
) -> anyhow::Result<bool> {
    let (name, shown) = (tame(name), proposals::shown(proposal));
    terminal::print(&format!("{name}, {shown}\n"))?;
    let file = host::file(cli);
    if file.is_none() && !asked.reject {
        let reason = "there is no `tools.toml` here; make one with the line `[dock]`, so that your folders are served as \
            before, or name it with `--config FILE`";
        return Err(Misuse(reason.into()).into());
    }
    let verb = match &file {
        Some(file) if !asked.reject => format!("write it into `{}`", file.display()),
        _ => "throw it away".to_owned(),
    };
    if !asked.yes && !is_yes(&format!("{verb}? [y/N] "))? {
        terminal::print("left as it is\n")?;
        return Ok(true);
    }
    let done = match file.filter(|_| !asked.reject) {
        Some(file) => proposals::approve(data, proposal, &file)?.map(|file| {
            format!(
                "wrote {name} into `{}`; it is started with toolman, the next time\n",
                file.display()
            )
        }),
        None => proposals::reject(data, proposal)?.then(|| format!("threw away {name}\n")),
    };
    let is_done = done.is_some();
    terminal::print(&done.unwrap_or_else(|| changed(&name)))?;
    Ok(is_done)
}

fn changed(name: &str) -> String {
    format!("{name} was changed meanwhile, so nothing was done; look again\n")
}

fn is_yes(question: &str) -> anyhow::Result<bool> {
    write!(std::io::stderr(), "{question}")?;
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

/// Refuses names that can't be of such a file.
fn checked(namespace: &str, file: &str) -> Result<(), Misuse> {
    let wrong = |error: manager::error::Error| Misuse(error.to_string());
    NamespaceName::parse(namespace).map_err(wrong)?;
    if !["requirements.txt", "tooldock.yaml"].contains(&file) {
        FileName::parse(file).map_err(wrong)?;
    }
    Ok(())
}

pub fn history(cli: &Cli, asked: &Asked) -> anyhow::Result<i32> {
    checked(&asked.namespace, &asked.file)?;
    let folders = Folders::open(cli)?;
    let versions = History::of(&folders.data, &asked.namespace, &asked.file).versions()?;
    if asked.json {
        terminal::print(&format!("{:#}\n", json!({"versions": versions})))?;
        return Ok(0);
    }
    if versions.is_empty() {
        terminal::print("the manager has never changed this file\n")?;
        return Ok(0);
    }
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    for version in &versions {
        let by = format!("by a {}", version.by.as_str());
        table.add_row([
            version.version.to_string(),
            version.time.clone(),
            version.deed.clone(),
            by,
        ]);
    }
    terminal::print(&format!("{table}\n"))?;
    Ok(0)
}

pub fn revert(cli: &Cli, asked: &Revert) -> anyhow::Result<i32> {
    checked(&asked.namespace, &asked.file)?;
    let (namespace, file) = (asked.namespace.as_str(), asked.file.as_str());
    let folders = Folders::open(cli)?;
    let history = History::of(&folders.data, namespace, file);
    let current = folders.shelf().served(namespace, file)?;
    let mut found = None;
    for version in history.versions()?.iter().rev() {
        let is_meant = asked.version.is_none_or(|wanted| wanted == version.version);
        if !is_meant {
            continue;
        }
        let text = history.text(version.version)?;
        if let Some(text) =
            text.filter(|text| asked.version.is_some() || Some(text) != current.as_ref())
        {
            found = Some((version.version, text));
            break;
        }
    }
    let Some((version, text)) = found else {
        anyhow::bail!("there is no such version; see `toolman tool-history {namespace} {file}`");
    };
    folders.shelf().revert(namespace, file, &text)?;
    terminal::print(&format!(
        "{namespace}/{file} is version {version} again; it is served after the next reload\n"
    ))?;
    Ok(0)
}
