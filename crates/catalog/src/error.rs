//! Why an item can't be used, in words for the model that asked.

use mcp::items::Kind;
use mcp::names::NamespacedName;

use crate::suggest::did_you_mean;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error(
        "{} `{name}` is not active; pass it in `{}` of `toolman_activate` first",
        .kind.noun(), on_list(*.kind)
    )]
    Inactive { kind: Kind, name: NamespacedName },

    #[error("no {} is named `{}`{}", .kind.noun(), shorten(.asked), did_you_mean(.similar))]
    Unknown { kind: Kind, asked: String, similar: Vec<NamespacedName> },

    #[error(
        "`{}` could mean more than one {}; use one of {}",
        shorten(.asked), .kind.noun(), quoted(.candidates)
    )]
    Ambiguous { kind: Kind, asked: String, candidates: Vec<NamespacedName> },
}

fn on_list(kind: Kind) -> &'static str {
    match kind {
        Kind::Tool | Kind::Prompt => "tools_on",
        Kind::Resource | Kind::Template => "resources_on",
    }
}

/// What a peer sent, fit to be shown: escaped, and cut at 80 characters.
pub fn shorten(text: &str) -> String {
    let escaped: String = text.chars().take(80).flat_map(char::escape_debug).collect();
    if text.chars().count() > 80 { format!("{escaped}…") } else { escaped }
}

/// Names in backticks with commas between.
pub fn quoted<T: std::fmt::Display>(names: &[T]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}
