//! Toolsets: named lists of references to items, pinned by ref ids where that is wanted.

pub mod choice;
pub mod limits;
mod resolution;

use std::sync::Arc;

use mcp::names::UpstreamName;
use mcp::rpc::Raw;

use crate::patterns::Patterns;
use crate::policy::Subject;
use crate::snapshot::Item;

pub use resolution::{Finding, Manner, Resolution, State, changes};

/// A named list of references.
#[derive(Clone, Debug, Default)]
pub struct Toolset {
    pub name: Box<str>,
    /// Whose it is; two of one name may have two owners.
    pub owner: Owner,
    /// What it is called for people, where that is not its name.
    pub title: Option<String>,
    pub description: Option<String>,
    pub version: Option<String>,
    /// When it was made, and when it was changed the last time, as ISO 8601 has it.
    pub created_at: Option<String>,
    pub last_modified: Option<String>,
    /// For what it is to be chosen.
    pub decision_criteria: Option<String>,
    /// Single tools.
    pub references: Vec<Reference>,
    /// Names in any spelling, patterns and `server:*`, of all kinds of items; never pinned.
    pub patterns: Patterns,
    /// What a person has to say about single tools.
    pub notes: Vec<ToolNotes>,
}

/// Whose a toolset is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Owner {
    /// Whoever runs the gateway: all may use it, and none of the clients may change it.
    #[default]
    Operator,
    /// All callers that have proven to be this agent; where it is absent, all that have proven to be none.
    Agent(Option<Box<str>>),
}

impl Owner {
    /// Whether callers that have proven to be an agent, or none, own it.
    pub fn is(&self, agent: Option<&str>) -> bool {
        matches!(self, Owner::Agent(owner) if owner.as_deref() == agent)
    }

    /// Whether such callers may use it.
    pub fn shows_to(&self, agent: Option<&str>) -> bool {
        *self == Owner::Operator || self.is(agent)
    }
}

/// A tool as a toolset knows it: by its name, by its ref id, or by both. HT-03
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reference {
    /// The server's name, `.`, and the tool's. HT-04
    pub name: Option<Box<str>>,
    pub ref_id: Option<Box<str>>,
    /// The definition as it was when it was pinned, so that a change can be told.
    pub definition: Option<Raw>,
}

/// Notes on one tool, which are shown behind its description.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolNotes {
    pub tool: Reference,
    pub notes: Vec<Note>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Note {
    pub name: String,
    pub text: String,
}

impl Toolset {
    /// What no other toolset is known by: its name, behind that of the agent whose it is.
    pub fn key(&self) -> String {
        match &self.owner {
            Owner::Operator => self.name.to_string(),
            Owner::Agent(agent) => {
                format!("{}/{}", agent.as_deref().unwrap_or_default(), self.name)
            }
        }
    }

    /// Adds notes on a tool; one of a name that is there already takes its place.
    pub fn annotate(&mut self, tool: &Reference, notes: &[Note]) {
        let known = self.notes.iter_mut().find(|known| known.tool.name == tool.name);
        let own = match known {
            Some(known) => &mut known.notes,
            None => {
                self.notes.push(ToolNotes { tool: tool.clone(), notes: Vec::new() });
                let last = self.notes.len() - 1;
                &mut self.notes[last].notes
            }
        };
        for note in notes {
            own.retain(|known| known.name != note.name);
            own.push(note.clone());
        }
    }

    /// The notes on a tool, each once.
    pub fn notes_on(&self, tool: &Item) -> Vec<&Note> {
        let is_about = |reference: &Reference| {
            reference.ref_id.as_deref() == Some(tool.ref_id().as_str())
                || reference
                    .name
                    .as_deref()
                    .is_some_and(|name| Subject::of(tool).names().iter().any(|known| known == name))
        };
        let about = self.notes.iter().filter(|notes| is_about(&notes.tool));
        let mut found: Vec<&Note> = Vec::new();
        for note in about.flat_map(|notes| &notes.notes) {
            if !found.contains(&note) {
                found.push(note);
            }
        }
        found
    }
}

/// The place of a toolset in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolsetPlace(pub u16);

/// The toolsets of a configuration, in its order; its clones are the same ones.
#[derive(Clone, Debug, Default)]
pub struct Toolsets(Arc<[Toolset]>);

impl Toolsets {
    /// As many as can be counted.
    pub fn new(mut toolsets: Vec<Toolset>) -> Toolsets {
        toolsets.truncate(usize::from(u16::MAX));
        Toolsets(toolsets.into())
    }

    pub fn iter(&self) -> impl Iterator<Item = (ToolsetPlace, &Toolset)> {
        (0..).map(ToolsetPlace).zip(self.0.iter())
    }

    pub fn get(&self, place: ToolsetPlace) -> Option<&Toolset> {
        self.0.get(usize::from(place.0))
    }

    /// Whether what is granted, if that counts, can be of an upstream.
    pub fn may_reach(&self, grants: Option<&[ToolsetPlace]>, upstream: &UpstreamName) -> bool {
        grants.is_none_or(|grants| {
            self.iter().any(|(place, toolset)| {
                grants.contains(&place) && toolset.patterns.may_be_of(upstream.as_str())
            })
        })
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The toolset of this name.
    pub fn find(&self, name: &str) -> Option<(ToolsetPlace, &Toolset)> {
        self.iter().find(|(_, toolset)| &*toolset.name == name)
    }

    /// The places of those that are named; others are left out, and each counts once.
    pub fn places<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<ToolsetPlace> {
        let mut places: Vec<_> =
            names.filter_map(|name| self.find(name.trim()).map(|(place, _)| place)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
