//! `toolman_activate`: the control tool by which a model switches items on and off.
//!
//! Pure. Its description is the live catalog; a call yields a new selection or an error that
//! changes nothing.

mod arguments;

use std::collections::HashSet;
use std::fmt::Write as _;

use mcp::items::Kind;
use mcp::json;
use mcp::text::shorten;

use crate::error::quoted;
use crate::selection::Selection;
use crate::snapshot::{Item, Lookup};
use crate::suggest::{hint, similar};
use crate::surface::reply::Definitions;
use crate::view::View;

pub const NAME: &str = "toolman_activate";

/// What a client is told when it connects.
pub const INSTRUCTIONS: &str = "Toolman gathers the tools, resources and prompts of several \
    servers. Only what is switched on is listed and can be used. The description of \
    `toolman_activate` holds the catalog of everything there is; call it to switch on what the \
    task needs, and to switch off what it no longer needs.";

const HEAD: &str = "Switch tools and resources on or off. Only what is switched on can be used; \
    switch off what you no longer need. Pass exact names from the catalog below in the four \
    lists, empty ones where nothing changes; `server:*` means everything of one server. Names \
    that you don't mention stay as they are. One wrong name and nothing is changed. In the \
    catalog `*` marks what is on.";

/// What a model is told besides, where its client never lists again: the stubs are there for all tools.
const WITH_STUBS: &str = "Tools that are off are listed too, without their parameters. Once one is on, call it by the \
    same name at once; its parameters are in the reply.";

/// The same where there are too many tools for stubs.
const WITHOUT_STUBS: &str = "This client lists tools once only, and there are too many to list those that are off.\n\
    If it refuses a tool that you have switched on, ask for it to be named in `active_toolsets` of the configuration.";

/// Names in one list.
const NAMES_MAX: usize = 1_000;
/// Unknown names for which near ones are looked for.
const HINTS_MAX: usize = 10;
/// Names listed in a confirmation; beyond that it counts.
const CONFIRMED_NAMES_MAX: usize = 12;

/// What a successful call leads to.
#[derive(Debug)]
pub struct Activation {
    pub selection: Selection,
    /// The short confirmation.
    pub confirmation: String,
    /// Those of what was switched on; `None` if nothing was.
    pub definitions: Option<Definitions>,
}

/// The definition of the tool, with the catalog as a client may see it.
pub fn definition(view: &View) -> String {
    let hint = match (view.lists_once(), view.has_stubs()) {
        (_, true) => Some(WITH_STUBS),
        (true, false) => Some(WITHOUT_STUBS),
        (false, false) => None,
    };
    let hint = hint.map_or(String::new(), |hint| format!("\n{hint}"));
    let mut description = format!("{HEAD}{hint}\n\nTOOLS:\n");
    let mut add = |items: &mut dyn Iterator<Item = &Item>| {
        let mut any = false;
        for item in items {
            any = true;
            let mark = if view.is_on(item) { "* " } else { "  " };
            let colon = if item.summary.is_empty() { "" } else { ": " };
            _ = writeln!(description, "{mark}{}{colon}{}", item.name, item.summary);
        }
        if !any {
            description.push_str("  (none)\n");
        }
        description.push_str("\nRESOURCES:\n");
    };
    add(&mut view.items(Kind::Tool));
    add(&mut view.items(Kind::Resource).chain(view.items(Kind::Template)));
    let description = description.trim_end_matches("\n\nRESOURCES:\n");
    let list = |what: &str| {
        format!(r#"{{"type":"array","items":{{"type":"string"}},"description":"{what}"}}"#)
    };
    format!(
        r#"{{"name":"{NAME}","title":"Switch tools and resources on or off","description":{},"inputSchema":{{"type":"object","properties":{{"tools_on":{},"tools_off":{},"resources_on":{},"resources_off":{}}},"required":["tools_on","tools_off","resources_on","resources_off"],"additionalProperties":false}},"annotations":{{"readOnlyHint":false,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}}}}"#,
        json::quote(description),
        list("Names of tools to switch on"),
        list("Names of tools to switch off"),
        list("Names of resources and resource templates to switch on"),
        list("Names of resources and resource templates to switch off"),
    )
}

/// Carries out a call. The error is for the model: what was wrong, and what to do.
pub fn apply(view: &View, arguments: Option<&[u8]>) -> Result<Activation, String> {
    let lists = Lists::parse(arguments)?;
    let mut unknown = Vec::new();
    let mut find = |names: &[String], of_tools| {
        let mut items = Vec::new();
        for name in names {
            match named(view, name, of_tools, unknown.len() < HINTS_MAX) {
                Ok(found) => items.extend(found),
                Err(problem) => unknown.push(problem),
            }
        }
        items
    };
    let on = [find(&lists.tools_on, true), find(&lists.resources_on, false)].concat();
    let off = [find(&lists.tools_off, true), find(&lists.resources_off, false)].concat();
    if !unknown.is_empty() {
        return Err(format!("{}; nothing was changed", unknown.join("; ")));
    }
    // All are items of the one catalog, so the same item is at the same place.
    let places: HashSet<*const Item> = off.iter().map(|item| &raw const **item).collect();
    let is_torn = |item: &&&Item| places.contains(&(&raw const ***item));
    let torn: Vec<_> = on.iter().filter(is_torn).collect();
    if !torn.is_empty() {
        let names: Vec<_> = torn.iter().map(|item| &item.name).collect();
        return Err(format!(
            "{} is to be switched both on and off; name it once; nothing was changed",
            quoted(&names)
        ));
    }
    let mut selection = view.selection().clone();
    on.iter().for_each(|item| selection.switch(item, true));
    off.iter().for_each(|item| selection.switch(item, false));
    Ok(Activation {
        selection,
        confirmation: confirmation(&on, &off),
        definitions: Definitions::of(view, on),
    })
}

#[derive(Debug)]
struct Lists {
    tools_on: Vec<String>,
    tools_off: Vec<String>,
    resources_on: Vec<String>,
    resources_off: Vec<String>,
}

impl Lists {
    fn parse(arguments: Option<&[u8]>) -> Result<Lists, String> {
        let wanted = ["tools_on", "tools_off", "resources_on", "resources_off"];
        let found = json::members(arguments.unwrap_or(b"{}"), wanted)
            .map_err(|fault| format!("the arguments can't be read: {fault}"))?;
        let list = |at: usize| arguments::names(found[at], wanted[at]);
        let lists = Lists {
            tools_on: list(0)?,
            tools_off: list(1)?,
            resources_on: list(2)?,
            resources_off: list(3)?,
        };
        let all = [&lists.tools_on, &lists.tools_off, &lists.resources_on, &lists.resources_off];
        if all.iter().all(|list| list.is_empty()) {
            return Err(format!(
                "all four lists are empty; give at least one name, for example \
                 `tools_on: [\"…\"]`, from the catalog in the description of `{NAME}`"
            ));
        }
        if all.iter().any(|list| list.len() > NAMES_MAX) {
            return Err(format!(
                "at most {NAMES_MAX} names fit in a list; use `server:*` for many"
            ));
        }
        Ok(lists)
    }
}

/// The items that a name in a list means: one, or for `server:*` all of a server.
fn named<'a>(
    view: &'a View,
    name: &str,
    of_tools: bool,
    wants_hint: bool,
) -> Result<Vec<&'a Item>, String> {
    let kinds: &[Kind] = if of_tools { &[Kind::Tool] } else { &[Kind::Resource, Kind::Template] };
    let items = || kinds.iter().flat_map(|kind| view.items(*kind));
    for kind in kinds {
        match view.look_up(*kind, name) {
            Lookup::Found(item) => return Ok(vec![item]),
            Lookup::Ambiguous(items) => {
                let names: Vec<_> = items.iter().map(|item| &item.name).collect();
                return Err(format!("`{}` could mean {}", shorten(name), quoted(&names)));
            }
            Lookup::Unknown => {}
        }
    }
    let all: Vec<_> = items().filter(|item| arguments::means_all_of(name, &item.origin)).collect();
    if !all.is_empty() {
        return Ok(all);
    }
    let hint = if wants_hint { hint(&similar(name, items())) } else { None };
    let hint = hint.map_or(String::new(), |hint| format!(" ({hint})"));
    let noun = if of_tools { "tool" } else { "resource" };
    Err(format!("no {noun} is named `{}`{hint}", shorten(name)))
}

fn confirmation(on: &[&Item], off: &[&Item]) -> String {
    let part = |items: &[&Item], state: &str| match items.len() {
        0 => None,
        1..=CONFIRMED_NAMES_MAX => {
            let names: Vec<_> = items.iter().map(|item| item.name.as_str()).collect();
            Some(format!("{state}: {}", names.join(", ")))
        }
        count => Some(format!("{state}: {count} items")),
    };
    let parts: Vec<_> = [part(on, "on"), part(off, "off")].into_iter().flatten().collect();
    parts.join("; ")
}

#[cfg(test)]
mod tests;
