//! Client profiles: what is known of the programs that connect, as data.
//!
//! A profile says when a client lists again, what of a result reaches its model, which names it takes, and how long it
//! waits. It is recognised by `clientInfo`; what is observed and what the operator writes correct it.

mod known;

use std::sync::Arc;
use std::time::Duration;

use globset::{Glob, GlobMatcher};
use mcp::names::UriStyle;

use crate::surface::Inactive;

/// The name of the profile of all that nothing is known of.
const UNKNOWN: &str = "unknown";

/// What is known of one client program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Profile {
    pub name: Box<str>,
    pub lists: Lists,
    /// How long the reply of a control tool waits for the client to list again.
    pub reply_wait: Duration,
    pub reads: Reads,
    pub naming: Naming,
    /// Characters of a tool's description, and of our instructions, that the client passes on.
    pub description_max: Option<usize>,
    pub selection: Belongs,
    /// How long the client waits for the answer to `initialize`.
    pub patience: Duration,
    /// How inactive tools are listed, where the operator says so for this client.
    pub inactive: Option<Inactive>,
    /// Whether the client keeps tools from its model until that looks for them, unless they are marked.
    pub defers_tools: bool,
    /// Whether many programs call themselves so: what one of them does says nothing of the others.
    pub is_shared: bool,
}

/// When a client lists again after `list_changed`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Lists {
    /// Never: what is not in the first list does not exist for it.
    Once,
    /// After the turn in which the list changed, unless the reply waits for it.
    Late,
    /// As soon as it is told.
    AtOnce,
    /// Not known yet.
    #[default]
    Unknown,
}

/// What of a tool's result the client hands to its model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reads {
    /// All blocks of text.
    Everything,
    FirstBlock,
    /// The structured part alone, where there is one.
    Structured,
    /// All blocks of text, and the structured part after them.
    Both,
}

/// Which names a client takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Naming {
    pub uri_style: UriStyle,
    /// Characters of a tool's name, without what the client puts before it.
    pub length_max: usize,
    pub alphabet: Alphabet,
}

/// The characters that a client takes in the names of tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Alphabet {
    /// Letters, digits, `_`, `-` and `.`, as the protocol has it.
    Protocol,
    /// The same without `.`, as most model endpoints have it.
    Endpoint,
}

/// Whom a selection belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Belongs {
    Session,
    /// The proven caller, in all its sessions.
    Principal,
}

/// By what clients are told apart that have shown the same proof.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ToldApart {
    /// They are not.
    #[default]
    No,
    /// By the name in their `clientInfo`.
    ByName,
    /// By the id that they give when they connect.
    ById,
    /// The same, and nobody is served without one.
    ByRequiredId,
}

impl Default for Profile {
    /// What is right for all that nothing is known of.
    fn default() -> Profile {
        Profile {
            name: UNKNOWN.into(),
            lists: Lists::Unknown,
            reply_wait: Duration::from_millis(100),
            reads: Reads::Everything,
            naming: Naming::default(),
            description_max: None,
            selection: Belongs::Session,
            patience: Duration::from_secs(10),
            inactive: None,
            defers_tools: false,
            is_shared: false,
        }
    }
}

impl Default for Naming {
    fn default() -> Naming {
        Naming { uri_style: UriStyle::Underscore, length_max: 128, alphabet: Alphabet::Protocol }
    }
}

impl Profile {
    /// The program's name in our table; `None` for one that is not in it.
    pub fn known_name(&self) -> Option<&str> {
        Some(&*self.name).filter(|name| *name != UNKNOWN)
    }
}

/// What the operator says of clients of a certain name: that in their `clientInfo`, or that in our table.
#[derive(Clone, Debug)]
pub struct Override {
    pub clients: GlobMatcher,
    pub change: Change,
}

/// Parts of a profile that are other ones.
#[derive(Clone, Debug, Default)]
pub struct Change {
    pub lists: Option<Lists>,
    pub reply_wait: Option<Duration>,
    pub reads: Option<Reads>,
    pub uri_style: Option<UriStyle>,
    pub name_length_max: Option<usize>,
    pub description_max: Option<usize>,
    pub selection: Option<Belongs>,
    pub patience: Option<Duration>,
    pub inactive: Option<Inactive>,
}

/// All profiles: those that are shipped, and what the operator says.
#[derive(Clone, Debug, Default)]
pub struct Profiles {
    /// Whom selections belong to, where the operator has said so for all.
    pub selection: Option<Belongs>,
    pub told_apart: ToldApart,
    pub overrides: Arc<[Override]>,
}

impl Profiles {
    /// The profile of a client by the name and version in its `clientInfo`.
    pub fn of(&self, name: &str, version: &str) -> Profile {
        self.corrected(name, version, |_| {})
    }

    /// The same, with what was observed of clients of that name; what the operator says still counts more.
    pub fn corrected(
        &self,
        name: &str,
        version: &str,
        correct: impl FnOnce(&mut Profile),
    ) -> Profile {
        let name = behind_proxy(name);
        let mut profile = known::find(name, version);
        profile.selection = self.selection.unwrap_or(profile.selection);
        correct(&mut profile);
        let own = profile.name.clone();
        let is_meant =
            |known: &&Override| [name, &own].iter().any(|name| known.clients.is_match(name));
        self.overrides.iter().filter(is_meant).for_each(|known| known.change.apply(&mut profile));
        profile
    }
}

/// The client itself, where `mcp-remote` has put its own name behind that of the client it works for.
fn behind_proxy(name: &str) -> &str {
    name.split_once(" (via mcp-remote").map_or(name, |(client, _)| client)
}

impl Override {
    /// `None` where the pattern can't be read.
    pub fn new(pattern: &str, change: Change) -> Option<Override> {
        Some(Override { clients: Glob::new(pattern).ok()?.compile_matcher(), change })
    }
}

impl Change {
    fn apply(&self, profile: &mut Profile) {
        profile.lists = self.lists.unwrap_or(profile.lists);
        profile.reply_wait = self.reply_wait.unwrap_or(profile.reply_wait);
        profile.reads = self.reads.unwrap_or(profile.reads);
        profile.naming.uri_style = self.uri_style.unwrap_or(profile.naming.uri_style);
        profile.naming.length_max = self.name_length_max.unwrap_or(profile.naming.length_max);
        profile.description_max = self.description_max.or(profile.description_max);
        profile.selection = self.selection.unwrap_or(profile.selection);
        profile.patience = self.patience.unwrap_or(profile.patience);
        profile.inactive = self.inactive.or(profile.inactive);
    }
}

#[cfg(test)]
mod tests;
