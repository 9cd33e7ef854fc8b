//! The surface `toolset`: control tools by which a client builds, saves and equips toolsets.
//!
//! Pure: what the tools are, what their calls ask for, and what is told about toolsets. Saving them, and
//! giving a client another selection, is done elsewhere. HT-25 to HT-33

mod available;
mod definitions;
mod named;

use std::collections::BTreeMap;

use mcp::items::Kind;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::snapshot::{Item, Lookup};
use crate::suggest::{hint, similar};
use crate::tokens::estimate;
use crate::toolset::{Finding, Manner, Note, Owner, Reference, Resolution, State, Toolset};
use crate::view::View;

pub use available::{Wanted, available};
pub use definitions::{INSTRUCTIONS, NAMES, definitions};

/// What a call of a control tool asks for.
#[derive(Debug)]
pub enum Wish {
    ListAvailable(Wanted),
    Build { name: String, tools: Vec<Named>, description: Option<String>, equips: bool },
    ListSaved,
    Equip { name: String },
    Unequip,
    Delete { name: String, is_confirmed: bool },
    GetActive,
    Annotate { tool: Named, notes: Vec<Note> },
}

/// A tool as a model names it.
#[derive(Clone, Debug, Default)]
pub struct Named {
    pub namespaced_name: Option<String>,
    pub ref_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
struct BuildArguments {
    name: String,
    tools: Vec<Named>,
    description: Option<String>,
    #[serde(default)]
    auto_equip: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct NameArguments {
    name: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object")]
struct DeleteArguments {
    name: String,
    #[serde(default)]
    confirm: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, expecting = "an object")]
struct AnnotateArguments {
    tool_ref: Named,
    notes: Vec<NoteArguments>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, expecting = "an object with `name` and `note`")]
struct NoteArguments {
    name: String,
    note: String,
}

impl Wish {
    /// Reads a call; the error is for the model.
    pub fn parse(tool: &str, arguments: Option<&str>) -> Result<Wish, String> {
        let text = arguments.unwrap_or("{}");
        Ok(match tool {
            "build-toolset" => {
                let BuildArguments { name, tools, description, auto_equip } = read(text)?;
                Wish::Build { name, tools, description, equips: auto_equip }
            }
            "equip-toolset" => Wish::Equip { name: read::<NameArguments>(text)?.name },
            "delete-toolset" => {
                let DeleteArguments { name, confirm } = read(text)?;
                Wish::Delete { name, is_confirmed: confirm }
            }
            "add-tool-annotation" => {
                let AnnotateArguments { tool_ref, notes } = read(text)?;
                let note = |note: NoteArguments| Note { name: note.name, text: note.note };
                Wish::Annotate { tool: tool_ref, notes: notes.into_iter().map(note).collect() }
            }
            "list-available-tools" => Wish::ListAvailable(read(text)?),
            "list-saved-toolsets" => Wish::ListSaved,
            "unequip-toolset" => Wish::Unequip,
            _ => Wish::GetActive,
        })
    }
}

/// The arguments; one that is `null` counts as absent.
fn read<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let without_nulls = |mut members: Map<String, Value>| {
        members.retain(|_, value| !value.is_null());
        serde_json::from_value(Value::Object(members))
    };
    serde_json::from_str(text).and_then(without_nulls).map_err(|error| {
        let words = error.to_string();
        let words = words.split(" at line ").next().unwrap_or_default().to_owned();
        format!("the arguments can't be used: {words}")
    })
}

/// The tools that a model has named, each once; the error names those that are not there.
pub fn find<'v>(view: &'v View, tools: &[Named]) -> Result<Vec<&'v Item>, String> {
    let (mut found, mut problems) = (Vec::<&Item>::new(), Vec::new());
    for named in tools {
        match find_one(view, named) {
            Ok(item) if found.iter().any(|known| known.place == item.place) => {}
            Ok(item) => found.push(item),
            Err(problem) => problems.push(problem),
        }
    }
    if problems.is_empty() { Ok(found) } else { Err(problems.join("; ")) }
}

fn find_one<'v>(view: &'v View, named: &Named) -> Result<&'v Item, String> {
    let by_ref_id =
        |ref_id: &str| view.items(Kind::Tool).find(|item| item.ref_id().as_str() == ref_id);
    match (named.namespaced_name.as_deref(), named.ref_id.as_deref()) {
        (None, None) => Err("a tool needs `namespacedName` or `refId`".to_owned()),
        (Some(name), ref_id) => {
            let item = match view.look_up(Kind::Tool, name) {
                Lookup::Found(item) => item,
                Lookup::Ambiguous(items) => {
                    let names: Vec<_> = items.iter().map(|item| item.name.as_str()).collect();
                    return Err(format!("`{name}` could mean {}", names.join(" or ")));
                }
                Lookup::Unknown => {
                    let hint = hint(&similar(name, view.items(Kind::Tool)));
                    let hint = hint.unwrap_or_else(|| "see `list-available-tools`".to_owned());
                    return Err(format!("no tool is named `{name}`; {hint}"));
                }
            };
            match ref_id {
                Some(ref_id) if item.ref_id().as_str() != ref_id => {
                    Err(format!("`{name}` has another `refId` than the one given"))
                }
                _ => Ok(item),
            }
        }
        (None, Some(ref_id)) => {
            by_ref_id(ref_id).ok_or_else(|| format!("no tool has the `refId` `{ref_id}`"))
        }
    }
}

/// What is told about one toolset, as a client would see it. HT-27
pub fn info(toolset: &Toolset, view: &View, is_active: bool) -> Value {
    let resolution = resolve(toolset, view);
    let total: usize = view.items(Kind::Tool).map(tokens).sum();
    let items: Vec<&Item> = view.items(Kind::Tool).filter(|item| resolution.holds(item)).collect();
    let own: usize = items.iter().map(|item| tokens(item)).sum();
    let mut servers: BTreeMap<&str, usize> = BTreeMap::new();
    for item in &items {
        *servers.entry(item.origin.upstream.as_str()).or_default() += 1;
    }
    let servers: Vec<_> = servers
        .iter()
        .map(|(name, count)| json!({"name": name, "enabled": true, "toolCount": count}))
        .collect();
    let is_named = |finding: &&Finding| !is_unnamed(finding);
    let pinned = resolution.findings.iter().filter(is_named).map(|finding| {
        let reference = &finding.reference;
        let state = match finding.state {
            State::Resolved => "resolved",
            State::Stale => "stale",
            State::Withheld => "withheld",
            State::Missing => "missing",
        };
        json!({"namespacedName": reference.name, "refId": reference.ref_id, "state": state,
            "active": matches!(finding.state, State::Resolved | State::Stale)})
    });
    let mut tools: Vec<Value> = pinned.collect();
    let referenced: Vec<_> =
        resolution.findings.iter().filter_map(|finding| finding.tool).collect();
    tools.extend(items.iter().filter(|item| !referenced.contains(&item.place)).map(|item| {
        json!({"namespacedName": namespaced(item), "refId": item.ref_id().as_str(),
            "state": "resolved", "active": true})
    }));
    let owner = if toolset.owner == Owner::Operator { "operator" } else { "you" };
    let count = tools.len() + resolution.unnamed;
    json!({"name": toolset.name, "owner": owner,
        "description": toolset.description, "version": toolset.version,
        "createdAt": toolset.created_at, "toolCount": count, "availableTools": items.len(),
        "active": is_active, "servers": servers, "tools": tools, "warnings": resolution.warnings,
        "context": cost(own, total)})
}

/// What is equipped, and what that means. HT-31
pub fn active(view: &View) -> Value {
    let Some(toolset) = view.selection().equipped.as_deref() else {
        let count = view.items(Kind::Tool).count();
        return json!({"equipped": false, "exposedTools": exposed(view), "unavailableTools": [],
            "warnings": [], "message": format!("no toolset is equipped; all {count} tools are shown")});
    };
    let resolution = resolve(toolset, view);
    let unavailable: Vec<_> = resolution
        .findings
        .iter()
        .filter(|finding| matches!(finding.state, State::Withheld | State::Missing))
        .filter(|finding| !is_unnamed(finding))
        .map(|finding| {
            let reference = &finding.reference;
            json!({"namespacedName": reference.name, "refId": reference.ref_id})
        })
        .collect();
    json!({"equipped": true, "toolset": info(toolset, view, true), "exposedTools": exposed(view),
        "unavailableTools": unavailable, "warnings": resolution.warnings})
}

fn exposed(view: &View) -> Value {
    let mut servers: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for item in view.items(Kind::Tool).filter(|item| view.is_visible(item)) {
        servers.entry(item.origin.upstream.as_str()).or_default().push(item.name.as_str());
    }
    json!(servers)
}

/// What the references of a toolset mean to a client.
pub fn resolve(toolset: &Toolset, view: &View) -> Resolution {
    let allows_stale = view.catalog().allows_stale_references();
    let manner = Manner { allows_stale, hides_names: !view.ceiling().is_open() };
    Resolution::of(toolset, view.catalog(), |item| view.ceiling().holds(item), manner)
}

/// Whether a client may know of a toolset: it is its own, or something of it is within the ceiling.
pub fn is_told(toolset: &Toolset, view: &View) -> bool {
    toolset.owner != Owner::Operator
        || view.ceiling().is_open()
        || resolve(toolset, view).findings.iter().any(|finding| finding.tool.is_some())
}

/// Whether a reference means nothing that may be named.
fn is_unnamed(finding: &Finding) -> bool {
    finding.reference.name.is_none() && finding.reference.ref_id.is_none()
}

/// How a tool that is not shown can be used.
pub fn remedy(view: &View) -> String {
    let name = view.selection().equipped.as_ref().map_or("", |toolset| &*toolset.name);
    format!("it is not in the equipped toolset `{name}`, or withheld; see `get-active-toolset`")
}

/// The reference to a tool in notes: by both ids, without what it is.
pub fn noted(item: &Item) -> Reference {
    Reference { definition: None, ..Reference::pin(item) }
}

/// The server's name, `.`, and the tool's.
pub fn namespaced(item: &Item) -> String {
    format!("{}.{}", item.origin.upstream, item.origin.name)
}

fn tokens(item: &Item) -> usize {
    estimate(&item.definition)
}

fn cost(tokens: usize, total: usize) -> Value {
    #[expect(clippy::cast_precision_loss, reason = "a share of some thousand tokens")]
    let share = tokens as f64 / total.max(1) as f64;
    json!({"tokens": tokens, "percentTotal": (share * 1000.0).round() / 10.0})
}
