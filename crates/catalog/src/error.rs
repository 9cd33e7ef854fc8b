//! Why an item can't be used, in words for the model that asked.

use mcp::items::Kind;
use mcp::names::NamespacedName;
use mcp::text::shorten;

use crate::suggest::hint;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("{} `{name}` is not active; {remedy}", .kind.noun())]
    Inactive {
        kind: Kind,
        name: NamespacedName,
        /// How it is switched on.
        remedy: String,
    },

    #[error(
        "no {} is named `{}`; {}",
        .kind.noun(), shorten(.asked), hint(.similar).unwrap_or_else(|| (*.otherwise).to_owned())
    )]
    Unknown {
        kind: Kind,
        asked: String,
        similar: Vec<NamespacedName>,
        /// What to do where nothing is similar.
        otherwise: &'static str,
    },

    #[error(
        "`{}` could mean more than one {}; use one of {}",
        shorten(.asked), .kind.noun(), quoted(.candidates)
    )]
    Ambiguous { kind: Kind, asked: String, candidates: Vec<NamespacedName> },
}

/// Names in backticks with commas between.
pub fn quoted<T: std::fmt::Display>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
