//! What an upstream offers: tools, resources, resource templates, prompts.
//!
//! A definition stays the bytes that the upstream sent; only its name is exchanged. One that
//! would spoil a client's whole list is set aside as flawed. A tool or prompt never is for its
//! name: the catalog shows it under one that fits.

use std::ops::Range;

use bytes::Bytes;

use crate::headers::{self, ParamHeader};
use crate::json;
use crate::rpc::Raw;
use crate::text::{first_chars, tame};

const NAME_MAX: usize = 2048;
/// Characters of a name that is shown as a title.
const TITLE_CHARS_MAX: usize = 128;
const SCHEMA_BYTES_MAX: usize = 256 * 1024;

/// The kinds of items, each with a list of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    Tool,
    Resource,
    Template,
    Prompt,
}

impl Kind {
    pub const ALL: [Kind; 4] = [Kind::Tool, Kind::Resource, Kind::Template, Kind::Prompt];

    /// The word for one item of this kind in a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            Kind::Tool => "tool",
            Kind::Resource => "resource",
            Kind::Template => "resource template",
            Kind::Prompt => "prompt",
        }
    }

    /// The member that names an item.
    pub fn key(self) -> &'static str {
        match self {
            Kind::Tool | Kind::Prompt => "name",
            Kind::Resource => "uri",
            Kind::Template => "uriTemplate",
        }
    }

    pub fn list_method(self) -> &'static str {
        match self {
            Kind::Tool => "tools/list",
            Kind::Resource => "resources/list",
            Kind::Template => "resources/templates/list",
            Kind::Prompt => "prompts/list",
        }
    }

    /// The member of a list result that holds the items.
    pub fn list_member(self) -> &'static str {
        match self {
            Kind::Tool => "tools",
            Kind::Resource => "resources",
            Kind::Template => "resourceTemplates",
            Kind::Prompt => "prompts",
        }
    }

    /// The capability under which a server declares this kind.
    pub fn capability(self) -> &'static str {
        match self {
            Kind::Tool => "tools",
            Kind::Resource | Kind::Template => "resources",
            Kind::Prompt => "prompts",
        }
    }

    /// The notification that says that a list of this kind has changed.
    pub fn changed_method(self) -> &'static str {
        match self {
            Kind::Tool => "notifications/tools/list_changed",
            Kind::Resource | Kind::Template => "notifications/resources/list_changed",
            Kind::Prompt => "notifications/prompts/list_changed",
        }
    }
}

/// One item as its upstream defines it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Definition {
    raw: Raw,
    name: Box<str>,
    name_span: Range<usize>,
    description: Box<str>,
    param_headers: Vec<ParamHeader>,
}

impl Definition {
    /// Reads a definition; the error says in words why it can't be served.
    pub fn parse(kind: Kind, raw: Raw) -> Result<Definition, String> {
        let wanted = [kind.key(), "description", "title", "inputSchema"];
        let [name, description, title, schema] =
            raw.members(wanted).map_err(|fault| fault.to_string())?;
        let name_text = name.ok_or_else(|| format!("member `{}` is missing", kind.key()))?;
        let name = json::string(name_text)
            .ok_or_else(|| format!("member `{}` must be a string", kind.key()))?;
        check_name(kind, &name)?;
        let param_headers = match kind {
            Kind::Tool => check_schema(schema)?,
            Kind::Resource | Kind::Template | Kind::Prompt => Vec::new(),
        };
        let description =
            description.and_then(json::string).or_else(|| title.and_then(json::string));
        Ok(Definition {
            name: name.into(),
            name_span: json::span(raw.as_bytes(), name_text),
            description: description.unwrap_or_default().into(),
            param_headers,
            raw,
        })
    }

    /// The name at the upstream: a tool's or prompt's name, a resource's URI.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn description(&self) -> &str {
        &self.description
    }

    /// The arguments that are mirrored into header fields when the tool is called over HTTP.
    pub fn param_headers(&self) -> &[ParamHeader] {
        &self.param_headers
    }

    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The definition under another name, otherwise byte for byte.
    pub fn renamed(&self, shown: &str) -> Bytes {
        if shown == &*self.name {
            return self.raw.clone().into();
        }
        let shown = json::quote(shown);
        let edits = [(self.name_span.clone(), shown.as_bytes())];
        Bytes::from(json::splice(self.raw.as_bytes(), &edits))
    }

    /// The same where people would not know the name again: its own one is the title, if there is none.
    pub fn retitled(&self, shown: &str) -> Bytes {
        let name = json::quote(shown);
        let mut edits = vec![(self.name_span.clone(), name.as_bytes())];
        let title = json::quote(first_chars(tame(&self.name).trim(), TITLE_CHARS_MAX));
        let title = format!("\"title\":{title},");
        if !self.has_title() {
            edits.insert(0, (1..1, title.as_bytes()));
        }
        Bytes::from(json::splice(self.raw.as_bytes(), &edits))
    }

    fn has_title(&self) -> bool {
        let Ok([title, annotations]) = self.raw.members(["title", "annotations"]) else {
            return false;
        };
        let inner = annotations.map(|text| json::members(text.as_bytes(), ["title"]));
        title.is_some() || matches!(inner, Some(Ok([Some(_)])))
    }
}

fn check_name(kind: Kind, name: &str) -> Result<(), String> {
    if name.chars().count() > NAME_MAX {
        return Err(format!("its {} is longer than {NAME_MAX} characters", kind.key()));
    }
    if matches!(kind, Kind::Tool | Kind::Prompt) {
        return Ok(());
    }
    if name.is_empty() {
        return Err(format!("its {} is empty", kind.key()));
    }
    match name.chars().find(|c| c.is_control()) {
        Some(bad) => Err(format!("its {} holds `{}`", kind.key(), bad.escape_debug())),
        None => Ok(()),
    }
}

/// Checks the input schema of a tool; the arguments that it wants mirrored.
fn check_schema(schema: Option<&str>) -> Result<Vec<ParamHeader>, String> {
    let schema = schema.ok_or("member `inputSchema` is missing")?;
    if schema.len() > SCHEMA_BYTES_MAX {
        return Err(format!("its input schema is over {SCHEMA_BYTES_MAX} bytes"));
    }
    let [kind] = json::members(schema.as_bytes(), ["type"])
        .map_err(|fault| format!("its `inputSchema` can't be used: {fault}"))?;
    match kind.map(json::string) {
        None => {}
        Some(Some(kind)) if kind == "object" => {}
        Some(_) => return Err("its `inputSchema` must have the type \"object\"".into()),
    }
    headers::param_headers(schema)
}

/// An item that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flawed {
    pub kind: Kind,
    pub name: String,
    pub reason: String,
}

/// What one upstream offers now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    tools: Vec<Definition>,
    resources: Vec<Definition>,
    templates: Vec<Definition>,
    prompts: Vec<Definition>,
    flawed: Vec<Flawed>,
}

impl Inventory {
    pub fn of(&self, kind: Kind) -> &[Definition] {
        match kind {
            Kind::Tool => &self.tools,
            Kind::Resource => &self.resources,
            Kind::Template => &self.templates,
            Kind::Prompt => &self.prompts,
        }
    }

    pub fn flawed(&self) -> &[Flawed] {
        &self.flawed
    }

    /// Keeps only the tools that are to be.
    pub fn retain(&mut self, is_kept: impl FnMut(&Definition) -> bool) {
        self.tools.retain(is_kept);
    }

    /// Replaces the list of one kind.
    pub fn set(&mut self, kind: Kind, items: impl IntoIterator<Item = Raw>) {
        self.flawed.retain(|flawed| flawed.kind != kind);
        let mut sound = Vec::new();
        for raw in items {
            match Definition::parse(kind, raw.clone()) {
                Ok(definition) => sound.push(definition),
                Err(reason) => {
                    self.flawed.push(Flawed { kind, name: name_for_report(kind, &raw), reason });
                }
            }
        }
        *match kind {
            Kind::Tool => &mut self.tools,
            Kind::Resource => &mut self.resources,
            Kind::Template => &mut self.templates,
            Kind::Prompt => &mut self.prompts,
        } = sound;
    }
}

fn name_for_report(kind: Kind, raw: &Raw) -> String {
    let name = raw.members([kind.key()]).ok().and_then(|[name]| name.and_then(json::string));
    name.unwrap_or_default().chars().take(80).collect()
}

#[cfg(test)]
mod tests;
