//! What rules name: patterns and names with their places, so that it can be told which of them are about nothing.
//!
//! What there is, only running servers tell; it is compared elsewhere.

use crate::fault::Place;

/// All that the rules of a file name.
#[derive(Clone, Debug, Default)]
pub struct Mentions {
    pub list: Vec<Mention>,
    /// Servers that are switched off: what is said of them is kept for later.
    pub disabled: Vec<String>,
}

/// A pattern or name in a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    pub place: Place,
    /// Where it stands, as in "pattern 1 of `active_toolsets`".
    pub label: String,
    pub text: String,
    pub of: Of,
}

/// What a pattern is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Of {
    Items,
    /// Items of the server with this name or namespace.
    ItemsOf(Box<str>),
    Servers,
    /// Policies, by the names of their agents.
    Agents,
    /// Clients, by what they say or prove to be.
    Clients,
}
