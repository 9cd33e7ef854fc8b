//! Toolsets that are handed on: `export` and `import`. HT-43

use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::toolset::{Owner, Toolset, limits};
use config::library::{Bundle, Group, bundle, saved};
use gateway::library::{Document, Store as _, VERSION};
use mcp::text::tame;
use serde_json::{Value, json};

use super::{INTERRUPTED, Live, choose, find, look, read};
use crate::cli::{Cli, Misuse};
use crate::library::Library;
use crate::terminal;

pub fn export(library: &Library, names: &[String]) -> anyhow::Result<i32> {
    let document = read(library)?;
    let mut chosen: Vec<&Arc<Toolset>> = if names.is_empty() {
        document.toolsets.values().collect()
    } else {
        let found: Result<_, String> = names.iter().map(|name| find(&document, name)).collect();
        found.map_err(anyhow::Error::msg)?
    };
    // Of one name, the operator's; a file has none twice.
    chosen.sort_by_key(|toolset| (&toolset.name, toolset.owner != Owner::Operator));
    for pair in chosen.windows(2).filter(|pair| pair[0].name == pair[1].name) {
        let key = tame(&pair[1].key());
        terminal::complain(&format!("`{key}` is left out, as another one has its name"));
    }
    chosen.dedup_by(|later, first| later.name == first.name);
    let anyones = |toolset: &Toolset| Toolset { owner: Owner::Operator, ..toolset.clone() };
    let members =
        chosen.iter().map(|toolset| (&*toolset.name, saved::member(&anyones(toolset), None)));
    terminal::print(&saved::file(members))?;
    Ok(0)
}

/// What became of a toolset of a file.
enum Outcome {
    Added,
    Same,
    Replaced,
    Conflict,
    Wrong(String),
}

impl Outcome {
    fn word(&self) -> &'static str {
        match self {
            Outcome::Added => "added",
            Outcome::Same => "same",
            Outcome::Replaced => "replaced",
            Outcome::Conflict => "conflict",
            Outcome::Wrong(_) => "wrong",
        }
    }

    fn reason(&self) -> Option<&str> {
        match self {
            Outcome::Conflict => Some("another toolset has this name; `--force` replaces it"),
            Outcome::Wrong(reason) => Some(reason),
            Outcome::Added | Outcome::Same | Outcome::Replaced => None,
        }
    }

    fn has_failed(&self) -> bool {
        matches!(self, Outcome::Conflict | Outcome::Wrong(_))
    }
}

pub async fn import(
    cli: &Cli,
    library: &Library,
    file: Option<&Path>,
    force: bool,
    as_json: bool,
) -> anyhow::Result<i32> {
    let file = file.map(Path::to_owned).or_else(hypertool).ok_or_else(|| {
        Misuse("there is no home folder to look into; name a file or folder".to_owned())
    })?;
    let Bundle { toolsets, groups, last_equipped, mut notes } =
        bundle(&file).map_err(|fault| Misuse(fault.to_string()))?;
    let mut brought: Vec<Result<Toolset, (String, String)>> =
        toolsets.into_iter().map(Ok).collect();
    if !groups.is_empty() {
        let Some(live) = look(cli).await? else { return Ok(INTERRUPTED) };
        brought.extend(groups.into_iter().map(|group| of_group(group, &live)));
    }
    let mut outcomes: Vec<(String, Outcome)> = Vec::new();
    let mut change = |document: &mut Document| {
        outcomes = brought.iter().map(|toolset| place(document, toolset, force)).collect();
        Ok(())
    };
    library.update(&mut change).map_err(anyhow::Error::msg)?;
    if let Some(name) = last_equipped {
        let name = tame(&name);
        notes.push(format!(
            "`{name}` was equipped there; `toolman toolset equip {name}` does it here"
        ));
    }
    terminal::print(&report(&outcomes, &notes, as_json))?;
    Ok(i32::from(outcomes.iter().any(|(_, outcome)| outcome.has_failed())))
}

fn report(outcomes: &[(String, Outcome)], notes: &[String], as_json: bool) -> String {
    if as_json {
        let row = |(name, outcome): &(String, Outcome)| json!({"name": name, "result": outcome.word(), "reason": outcome.reason()});
        let rows: Vec<Value> = outcomes.iter().map(row).collect();
        return format!("{:#}\n", json!({"toolsets": rows, "notes": notes}));
    }
    let mut text = String::new();
    for (name, outcome) in outcomes {
        let reason = outcome.reason().map(|reason| format!(": {}", tame(reason)));
        text += &format!("{} `{}`{}\n", outcome.word(), tame(name), reason.unwrap_or_default());
    }
    if outcomes.is_empty() {
        text += "there is no toolset in it\n";
    }
    for note in notes {
        text += &format!("note: {}\n", tame(note));
    }
    text
}

/// Where hypertool keeps its files.
pub fn hypertool() -> Option<PathBuf> {
    Some(PathBuf::from(std::env::var_os("HOME")?).join(".toolprint/hypertool-mcp"))
}

/// All tools that the servers of a group have now.
fn of_group(group: Group, live: &Live) -> Result<Toolset, (String, String)> {
    let Group { name, description, servers } = group;
    let asked: Vec<String> = servers.iter().map(|server| format!("{server}:*")).collect();
    let (references, _) =
        choose(&asked, &live.view).map_err(|error| (name.clone(), error.to_string()))?;
    let version = Some(VERSION.to_owned());
    Ok(Toolset { name: name.into(), description, version, references, ..Toolset::default() })
}

/// Puts a toolset among those that are saved, if it may be there.
fn place(
    document: &mut Document,
    toolset: &Result<Toolset, (String, String)>,
    force: bool,
) -> (String, Outcome) {
    let toolset = match toolset {
        Ok(toolset) => &Toolset { owner: Owner::Operator, ..toolset.clone() },
        Err((name, reason)) => return (name.clone(), Outcome::Wrong(reason.clone())),
    };
    let name = toolset.name.to_string();
    let notes = toolset.notes.iter().try_for_each(|about| limits::check_notes(&about.notes));
    if let Err(flaw) = toolset.check().and(notes) {
        return (name, Outcome::Wrong(flaw.to_string()));
    }
    let known = document.toolsets.get(&toolset.name);
    let outcome = match known.filter(|_| !document.borrowed.contains(&toolset.name)) {
        None => Outcome::Added,
        Some(known) if is_same(known, toolset) => return (name, Outcome::Same),
        Some(_) if force => Outcome::Replaced,
        Some(_) => return (name, Outcome::Conflict),
    };
    document.toolsets.insert(toolset.name.clone(), Arc::new(toolset.clone()));
    (name, outcome)
}

/// Whether two toolsets are the same but for when they were made.
fn is_same(a: &Toolset, b: &Toolset) -> bool {
    let texts = |toolset: &Toolset| {
        let Toolset { description, version, decision_criteria, .. } = toolset;
        [description.clone(), version.clone(), decision_criteria.clone()]
    };
    texts(a) == texts(b) && a.references == b.references && a.notes == b.notes
}
