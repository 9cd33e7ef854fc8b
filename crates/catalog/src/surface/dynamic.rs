//! The meta-tools by which a model lists, enables and disables toolsets. TC-03
//!
//! Pure. Their definitions never change; a call yields a report, or a new selection, or a failure that
//! changes nothing. Only what is within the client's ceiling is told.

mod definitions;

use std::collections::BTreeSet;

use mcp::items::Kind;
use mcp::json;
use mcp::text::shorten;
use serde_json::{Map, Value, json};

use crate::error::quoted;
use crate::profile::Reads;
use crate::selection::Selection;
use crate::snapshot::Item;
use crate::suggest::{hint, similar_names};
use crate::surface::reply;
use crate::toolset::{Toolset, ToolsetPlace};
use crate::view::View;

pub use definitions::definitions;

pub const LIST_TOOLS: &str = "list_tools";
pub const LIST_TOOLSETS: &str = "list_toolsets";
pub const ENABLE: &str = "enable_toolset";
pub const DISABLE: &str = "disable_toolset";
pub const DESCRIBE: &str = "describe_toolset";

pub const NAMES: [&str; 5] = [LIST_TOOLS, LIST_TOOLSETS, ENABLE, DISABLE, DESCRIBE];

/// What a client is told when it connects.
pub const INSTRUCTIONS: &str = "Toolman gathers the tools of several servers into toolsets. Only the \
    tools of enabled toolsets are listed and can be used. Call `list_toolsets` to see what there is, \
    `enable_toolset` for what the task needs, and `disable_toolset` for what it no longer needs.";

/// Names listed in a confirmation; beyond that it counts.
const CONFIRMED_NAMES_MAX: usize = 12;

/// Why a call changes nothing, for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub code: Code,
    pub message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The name means no toolset, or none that this can be done to.
    Validation,
    MaxActive,
    NameConflict,
}

impl Code {
    fn as_str(self) -> &'static str {
        match self {
            Code::Validation => "E_VALIDATION",
            Code::MaxActive => "E_POLICY_MAX_ACTIVE",
            Code::NameConflict => "E_TOOL_NAME_CONFLICT",
        }
    }
}

/// What a call leads to.
pub type Answer = Result<Value, Failure>;

fn invalid(message: String) -> Failure {
    Failure { code: Code::Validation, message }
}

/// The toolsets that a client is told of.
pub struct Told<'a> {
    view: &'a View,
    toolsets: Vec<(ToolsetPlace, &'a Toolset)>,
}

impl<'a> Told<'a> {
    /// All that have something within the ceiling, and those to which something `may_come`.
    pub fn of(view: &'a View, may_come: impl Fn(&Toolset) -> bool) -> Told<'a> {
        let is_told = |(place, toolset): &(ToolsetPlace, &Toolset)| {
            view.ceiling().is_open() || items(view, *place).next().is_some() || may_come(toolset)
        };
        Told { view, toolsets: view.catalog().toolsets().iter().filter(is_told).collect() }
    }

    /// The answer to `list_tools`. TC-18
    pub fn list_tools(&self) -> Value {
        let tools = self.view.items(Kind::Tool).filter(|item| self.view.is_visible(item));
        let tools: Vec<_> = tools.map(|item| item.name.as_str()).collect();
        json!({"tools": tools, "toolsetToTools": self.tools_by_toolset()})
    }

    /// The answer to `list_toolsets`. TC-19
    pub fn list_toolsets(&self) -> Value {
        let told = self.toolsets.iter().map(|(place, toolset)| self.about(*place, toolset));
        json!({"toolsets": told.collect::<Vec<_>>()})
    }

    /// The answer to `describe_toolset`. TC-22
    pub fn describe(&self, name: &str) -> Answer {
        let (place, toolset) = self.find(name)?;
        Ok(self.about(place, toolset))
    }

    /// What `GET /tools` tells beside the tools. TC-27
    pub fn status(&self) -> Value {
        let all = self.toolsets.iter().map(|(_, toolset)| &*toolset.name);
        let active = self.active().map(|(_, toolset)| &*toolset.name);
        let modules = self.active().flat_map(|(place, _)| modules(self.view, place));
        json!({
            "availableToolsets": all.collect::<Vec<_>>(),
            "activeToolsets": active.collect::<Vec<_>>(),
            "registeredModules": modules.collect::<BTreeSet<_>>(),
            "totalToolsets": self.toolsets.len(),
            "activeCount": self.active().count(),
            "toolsetToTools": self.tools_by_toolset(),
        })
    }

    /// The selection with one toolset more. TC-20
    pub fn enable(&self, name: &str) -> Result<Selection, Failure> {
        let (place, _) = self.find(name)?;
        let exposure = self.view.catalog().exposure();
        let mut selection = self.view.selection().clone();
        if !exposure.permits(place) {
            let message = format!("toolset `{name}` may not be enabled, by `exposure_policy`");
            return Err(invalid(message));
        }
        if selection.enabled.contains(&place) {
            return Err(invalid(format!("toolset `{name}` is enabled already")));
        }
        if let Some(most) = exposure.active_max
            && self.active().count() >= most
        {
            let active: Vec<_> = self.active().map(|(_, toolset)| &toolset.name).collect();
            let message = format!(
                "at most {most} toolsets can be enabled at once; disable one of {} first",
                quoted(&active)
            );
            return Err(Failure { code: Code::MaxActive, message });
        }
        if let Some(message) = self.conflict(place) {
            return Err(Failure { code: Code::NameConflict, message });
        }
        selection.enabled.insert(place);
        Ok(selection)
    }

    /// The selection without one of the toolsets. TC-21
    pub fn disable(&self, name: &str) -> Result<Selection, Failure> {
        let (place, _) = self.find(name)?;
        let mut selection = self.view.selection().clone();
        if !selection.enabled.remove(&place) {
            return Err(invalid(format!("toolset `{name}` is not enabled")));
        }
        Ok(selection)
    }

    fn find(&self, name: &str) -> Result<(ToolsetPlace, &'a Toolset), Failure> {
        let found = self.toolsets.iter().find(|(_, toolset)| &*toolset.name == name);
        found.copied().ok_or_else(|| {
            let names = self.toolsets.iter().map(|(_, toolset)| &*toolset.name);
            let near = hint(&similar_names(name, names));
            let near = near.unwrap_or_else(|| format!("see `{LIST_TOOLSETS}`"));
            invalid(format!("no toolset is named `{}`; {near}", shorten(name)))
        })
    }

    fn active(&self) -> impl Iterator<Item = (ToolsetPlace, &'a Toolset)> {
        let enabled = &self.view.selection().enabled;
        self.toolsets.iter().filter(|(place, _)| enabled.contains(place)).copied()
    }

    fn about(&self, place: ToolsetPlace, toolset: &Toolset) -> Value {
        let tools = items(self.view, place).filter(|item| item.kind == Kind::Tool);
        let tools: Vec<_> = tools.map(|item| item.name.as_str()).collect();
        let mut definition = json!({
            "name": toolset.title.as_deref().unwrap_or(&toolset.name),
            "description": toolset.description.as_deref().unwrap_or_default(),
            "modules": modules(self.view, place),
        });
        if let Some(criteria) = &toolset.decision_criteria {
            definition["decisionCriteria"] = json!(criteria);
        }
        let is_active = self.view.selection().enabled.contains(&place);
        json!({"key": toolset.name, "active": is_active, "definition": definition, "tools": tools})
    }

    /// The tools of the toolsets that are on.
    fn tools_by_toolset(&self) -> Map<String, Value> {
        let entry = |(place, toolset): (_, &Toolset)| {
            (toolset.name.to_string(), json!(visible_tools(self.view, place)))
        };
        self.active().map(entry).collect()
    }

    /// The first name that a toolset would take from one that is on.
    fn conflict(&self, place: ToolsetPlace) -> Option<String> {
        let catalog = self.view.catalog();
        let mut groups = Kind::ALL.into_iter().flat_map(|kind| catalog.contested(kind));
        groups.find_map(|group| {
            let within = || group.iter().filter(|item| self.view.ceiling().holds(item));
            within().find(|item| item.toolsets.contains(&place))?;
            let owner = within().find(|item| {
                !item.toolsets.contains(&place) && self.view.selection().enables(item)
            })?;
            let mut active = self.active();
            let (_, other) = active.find(|(place, _)| owner.toolsets.contains(place))?;
            let (noun, name) = (owner.kind.noun(), &owner.name);
            let other = &other.name;
            Some(format!(
                "the toolset `{other}` has another {noun} that is named `{name}`; disable it first"
            ))
        })
    }
}

/// What a client is told once it has enabled a toolset, as it is seen now.
pub fn enabled(view: &View, name: &str, troubles: &[String]) -> Value {
    let place = view.catalog().toolsets().find(name).map(|(place, _)| place);
    let tools = place.map(|place| visible_tools(view, place)).unwrap_or_default();
    let mut message = match tools.len() {
        0 => format!("toolset `{name}` is enabled; it has no tools now"),
        count if count > CONFIRMED_NAMES_MAX => {
            format!("toolset `{name}` is enabled; it has {count} tools")
        }
        _ => format!("toolset `{name}` is enabled; it has {}", quoted(&tools)),
    };
    for trouble in troubles {
        message.push_str("; ");
        message.push_str(trouble);
    }
    json!({"success": true, "message": message})
}

/// What a client is told once it has disabled a toolset.
pub fn disabled(name: &str) -> Value {
    json!({"success": true, "message": format!("toolset `{name}` is disabled")})
}

/// The name among the arguments of a call.
pub fn named(arguments: Option<&str>) -> Result<String, Failure> {
    let wrong = || invalid("pass the name of a toolset, a string, in `name`".to_owned());
    let found = json::members(arguments.unwrap_or("{}").as_bytes(), ["name"]);
    let name = found.ok().and_then(|[name]| json::string(name?)).ok_or_else(wrong)?;
    Ok(name.into_owned())
}

/// The result of a call: the answer as text and as structure. TC-23
pub fn tool_result(answer: Answer) -> String {
    answer.map_or_else(refusal, |said| reply::result(&said.to_string(), None, Reads::Everything))
}

/// The result of a call that changes nothing.
pub fn refusal(Failure { code, message }: Failure) -> String {
    let object = json!({"success": false, "message": message, "code": code.as_str()});
    let content = [json!({"type": "text", "text": object.to_string()})];
    json!({"content": content, "structuredContent": object, "isError": true}).to_string()
}

/// How an item of a toolset that is off can be used.
pub fn remedy(view: &View, item: &Item) -> String {
    let (toolsets, exposure) = (view.catalog().toolsets(), view.catalog().exposure());
    let permitted = item.toolsets.iter().filter(|place| exposure.permits(**place));
    let names: Vec<_> = permitted.filter_map(|place| Some(&toolsets.get(*place)?.name)).collect();
    match names[..] {
        [] => "its toolset may not be enabled, by `exposure_policy`".to_owned(),
        [name] => format!("enable its toolset `{name}` with `{ENABLE}` first"),
        _ => format!("enable one of its toolsets, {}, with `{ENABLE}` first", quoted(&names)),
    }
}

/// The items of a toolset within the ceiling.
fn items(view: &View, place: ToolsetPlace) -> impl Iterator<Item = &Item> {
    let all = Kind::ALL.into_iter().flat_map(|kind| view.items(kind));
    all.filter(move |item| item.toolsets.contains(&place))
}

/// The servers that these are from.
fn modules(view: &View, place: ToolsetPlace) -> BTreeSet<&str> {
    items(view, place).map(|item| item.origin.upstream.as_str()).collect()
}

fn visible_tools(view: &View, place: ToolsetPlace) -> Vec<&str> {
    let tools = items(view, place).filter(|item| item.kind == Kind::Tool && view.is_visible(item));
    tools.map(|item| item.name.as_str()).collect()
}

#[cfg(test)]
mod tests;
