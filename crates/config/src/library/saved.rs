//! Saved toolsets as JSON: an object with a member for each, under its name. HT-35, HT-36
//!
//! `owner` is the agent that has saved it, or empty for callers without a name; what has none is the operator's. Of
//! several with one name, all but one stand under `OWNER/NAME`.
//!
//! What is not known here stays as it was written: other programs use the same files.

use std::borrow::Cow;
use std::path::Path;

use catalog::toolset::{Note, Owner, Reference, ToolNotes, Toolset};
use mcp::json::{self, quote};
use mcp::rpc::Raw;
use mcp::text::shorten;

use super::Group;
use crate::fault::{Fault, Faults, Place};
use crate::limits::TOOLSETS_MAX;

/// One member of a file, as it was written.
#[derive(Debug)]
pub struct Saved<'t> {
    pub name: String,
    /// `None` where it is something else that somebody keeps there.
    pub toolset: Option<Toolset>,
    pub text: &'t str,
}

/// Reads the text of a file of saved toolsets.
pub fn read<'t>(file: &Path, text: &'t str) -> Result<Vec<Saved<'t>>, Fault> {
    let text = Text { file, text };
    text.toolsets(text.text)
}

/// The text of a file with these members.
pub fn file<'a>(members: impl Iterator<Item = (&'a str, String)>) -> String {
    let members: Vec<_> =
        members.map(|(name, text)| format!("  {}: {text}", quote(name))).collect();
    if members.is_empty() {
        "{}\n".to_owned()
    } else {
        format!("{{\n{}\n}}\n", members.join(",\n"))
    }
}

/// A toolset as a member of a file, with what else `before` has in its place.
pub fn member(toolset: &Toolset, before: Option<&str>) -> String {
    const KNOWN: [&str; 9] = [
        "name",
        "owner",
        "description",
        "version",
        "createdAt",
        "lastModified",
        "decisionCriteria",
        "tools",
        "toolNotes",
    ];
    let before = entries_of(before);
    let texts = [
        Some(&*toolset.name),
        match &toolset.owner {
            Owner::Operator => None,
            Owner::Agent(agent) => Some(agent.as_deref().unwrap_or_default()),
        },
        toolset.description.as_deref(),
        toolset.version.as_deref(),
        toolset.created_at.as_deref(),
        toolset.last_modified.as_deref(),
        toolset.decision_criteria.as_deref(),
    ];
    let mut members: Vec<(&str, String)> =
        KNOWN.into_iter().zip(texts).filter_map(|(key, text)| Some((key, quote(text?)))).collect();
    let list = |lines: Vec<String>| {
        if lines.is_empty() {
            return "[]".to_owned();
        }
        format!("[\n      {}\n    ]", lines.join(",\n      "))
    };
    let old = before.iter().find(|(key, _)| key == "tools");
    let old = old.and_then(|(_, tools)| json::elements(tools).ok()).unwrap_or_default();
    let tools = toolset.references.iter().map(|tool| object(reference(tool, &old))).collect();
    members.push(("tools", list(tools)));
    if !toolset.notes.is_empty() {
        let notes = toolset.notes.iter().map(|notes| {
            let line = |note: &Note| {
                format!("{{\"name\": {}, \"note\": {}}}", quote(&note.name), quote(&note.text))
            };
            let lines: Vec<_> = notes.notes.iter().map(line).collect();
            let tool = object(reference(&notes.tool, &[]));
            format!("{{\"toolRef\": {tool}, \"notes\": [{}]}}", lines.join(", "))
        });
        members.push(("toolNotes", list(notes.collect())));
    }
    let unknown = before.iter().filter(|(key, _)| !KNOWN.contains(&&**key));
    members.extend(unknown.map(|(key, text)| (&**key, (*text).to_owned())));
    let lines: Vec<_> =
        members.iter().map(|(key, text)| format!("    {}: {text}", quote(key))).collect();
    format!("{{\n{}\n  }}", lines.join(",\n"))
}

fn entries_of(text: Option<&str>) -> Vec<(Cow<'_, str>, &str)> {
    text.and_then(|text| json::entries(text).ok()).unwrap_or_default()
}

/// The members of a reference, and what else was written of the same tool.
fn reference(tool: &Reference, old: &[&str]) -> Vec<(String, String)> {
    const KNOWN: [&str; 3] = ["namespacedName", "refId", "definition"];
    let definition =
        tool.definition.as_ref().map(|raw| String::from_utf8_lossy(raw.as_bytes()).into_owned());
    let texts = [tool.name.as_deref().map(quote), tool.ref_id.as_deref().map(quote), definition];
    let mut members: Vec<(String, String)> = KNOWN
        .into_iter()
        .zip(texts)
        .filter_map(|(key, text)| Some((key.to_owned(), text?)))
        .collect();
    let is_same = |text: &&&str| {
        let Ok([name, ref_id]) = json::members(text.as_bytes(), ["namespacedName", "refId"]) else {
            return false;
        };
        let name =
            name.and_then(json::string).is_some_and(|name| Some(&*name) == tool.name.as_deref());
        let ref_id = ref_id.and_then(json::string);
        name || ref_id.is_some_and(|ref_id| Some(&*ref_id) == tool.ref_id.as_deref())
    };
    let old = entries_of(old.iter().find(is_same).copied()).into_iter();
    let unknown = old.filter(|(key, _)| !KNOWN.contains(&&**key));
    members.extend(unknown.map(|(key, text)| (key.into_owned(), text.to_owned())));
    members
}

fn object(members: Vec<(String, String)>) -> String {
    let members: Vec<_> =
        members.into_iter().map(|(key, text)| format!("{}: {text}", quote(&key))).collect();
    format!("{{{}}}", members.join(", "))
}

/// A text of a file, whose parts know where they are.
pub(super) struct Text<'p, 't> {
    pub file: &'p Path,
    pub text: &'t str,
}

impl<'t> Text<'_, 't> {
    /// The members of the whole text; the fault says where it is no JSON.
    pub fn entries(&self) -> Result<Vec<(Cow<'t, str>, &'t str)>, Fault> {
        json::entries(self.text).map_err(|fault| {
            let wrong = serde_json::from_str::<serde::de::IgnoredAny>(self.text).err();
            let place =
                wrong.as_ref().map(|error| Place { line: error.line(), column: error.column() });
            let problem = match wrong {
                Some(error) => {
                    let words = error.to_string();
                    let words = words.split(" at line ").next().unwrap_or_default();
                    format!("not valid JSON: {words}")
                }
                None => fault.to_string(),
            };
            Fault { file: self.file.to_owned(), place, problem }
        })
    }

    /// The toolsets of an object of the text, and what else is there.
    pub fn toolsets(&self, object: &'t str) -> Result<Vec<Saved<'t>>, Fault> {
        let members = if std::ptr::eq(object, self.text) {
            self.entries()?
        } else {
            let wrong = |fault| self.fault(object, &format!("`toolsets` is {fault}"));
            json::entries(object).map_err(wrong)?
        };
        if members.len() > TOOLSETS_MAX {
            let count = members.len();
            let problem = format!("has {count} toolsets; use at most {TOOLSETS_MAX}");
            return Err(self.fault(object, &problem));
        }
        let mut saved: Vec<Saved<'t>> = Vec::new();
        for (name, text) in members {
            if saved.iter().any(|known| known.name == name) {
                return Err(self.fault(text, &format!("`{}` is there twice", shorten(&name))));
            }
            let toolset = text.starts_with('{').then(|| self.toolset(&name, text)).transpose()?;
            saved.push(Saved { name: name.into_owned(), toolset, text });
        }
        Ok(saved)
    }

    fn toolset(&self, name: &str, text: &'t str) -> Result<Toolset, Fault> {
        let keys = ["description", "version", "createdAt", "lastModified", "decisionCriteria"];
        let [description, version, created_at, last_modified, decision_criteria] =
            self.members(text, keys)?;
        let [tools, notes, owner] = self.members(text, ["tools", "toolNotes", "owner"])?;
        let string = |value: Option<&'t str>| self.string(value);
        let Some(tools) = tools else {
            let problem = format!("`{}` has no `tools`; list them", shorten(name));
            return Err(self.fault(text, &problem));
        };
        let references: Result<Vec<_>, Fault> =
            self.elements(tools)?.into_iter().map(|tool| self.reference(tool)).collect();
        let notes = notes.filter(|notes| *notes != "null").map(|notes| self.notes(notes));
        let owner = string(owner)?;
        let behind = |owner: &String| name.strip_prefix(owner.as_str())?.strip_prefix('/');
        Ok(Toolset {
            name: owner.as_ref().and_then(behind).unwrap_or(name).into(),
            owner: owner.map_or(Owner::Operator, |agent| {
                Owner::Agent(Some(agent).filter(|agent| !agent.is_empty()).map(Into::into))
            }),
            description: string(description)?,
            version: string(version)?,
            created_at: string(created_at)?,
            last_modified: string(last_modified)?,
            decision_criteria: string(decision_criteria)?,
            references: references?,
            notes: notes.transpose()?.unwrap_or_default(),
            ..Toolset::default()
        })
    }

    fn reference(&self, text: &'t str) -> Result<Reference, Fault> {
        let [name, ref_id, definition] =
            self.members(text, ["namespacedName", "refId", "definition"])?;
        let (name, ref_id) = (self.string(name)?, self.string(ref_id)?);
        if name.is_none() && ref_id.is_none() {
            let problem = "a tool has neither `namespacedName` nor `refId`; give at least one";
            return Err(self.fault(text, problem));
        }
        let definition = definition.filter(|text| text.starts_with('{'));
        Ok(Reference {
            name: name.map(Into::into),
            ref_id: ref_id.map(Into::into),
            definition: definition.map(|text| Raw::trusted(text.to_owned())),
        })
    }

    fn notes(&self, text: &'t str) -> Result<Vec<ToolNotes>, Fault> {
        let mut all = Vec::new();
        for about in self.elements(text)? {
            let [tool, notes] = self.members(about, ["toolRef", "notes"])?;
            let (Some(tool), Some(notes)) = (tool, notes) else {
                return Err(self.fault(about, "notes need `toolRef` and `notes`"));
            };
            let mut read = Vec::new();
            for note in self.elements(notes)? {
                let [name, text] = self.members(note, ["name", "note"])?;
                let (Some(name), Some(text)) = (self.string(name)?, self.string(text)?) else {
                    return Err(self.fault(note, "a note needs `name` and `note`"));
                };
                read.push(Note { name, text });
            }
            all.push(ToolNotes { tool: self.reference(tool)?, notes: read });
        }
        Ok(all)
    }

    pub fn groups(&self, text: &'t str) -> Result<Vec<Group>, Fault> {
        let mut groups = Vec::new();
        for group in self.elements(text)? {
            let [name, description, servers] =
                self.members(group, ["name", "description", "serverIds"])?;
            let (Some(name), Some(servers)) = (self.string(name)?, servers) else {
                return Err(self.fault(group, "a group needs `name` and `serverIds`"));
            };
            let servers: Result<Vec<_>, Fault> = self
                .elements(servers)?
                .into_iter()
                .map(|server| Ok(self.string(Some(server))?.unwrap_or_default()))
                .collect();
            let description = self.string(description)?;
            groups.push(Group { name, description, servers: servers? });
        }
        Ok(groups)
    }

    fn members<const N: usize>(
        &self,
        text: &'t str,
        keys: [&'static str; N],
    ) -> Result<[Option<&'t str>; N], Fault> {
        json::members(text.as_bytes(), keys).map_err(|fault| self.fault(text, &fault.to_string()))
    }

    fn elements(&self, text: &'t str) -> Result<Vec<&'t str>, Fault> {
        json::elements(text).map_err(|fault| self.fault(text, &fault.to_string()))
    }

    fn string(&self, value: Option<&'t str>) -> Result<Option<String>, Fault> {
        match value {
            None | Some("null") => Ok(None),
            Some(text) => match json::string(text) {
                Some(string) => Ok(Some(string.into_owned())),
                None => Err(self.fault(text, &format!("`{}` is no string", shorten(text)))),
            },
        }
    }

    fn fault(&self, part: &str, problem: &str) -> Fault {
        let mut faults = Faults::new(self.file, self.text);
        faults.report(json::span(self.text.as_bytes(), part).start, problem);
        faults.in_order().swap_remove(0)
    }
}
