//! How the visible items are shown: control tools, stubs, wording.

pub mod activate;

use mcp::json;

use crate::selection::Selection;
use crate::snapshot::{Catalog, Item};

/// The `activate` surface and its choices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Surface {
    pub inactive: Inactive,
}

/// What becomes of inactive tools in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Inactive {
    #[default]
    Hidden,
    /// One line each, without a schema, for clients that read the list only once.
    Stub,
}

impl Surface {
    /// The definition of the control tool.
    pub fn control_tool(self, catalog: &Catalog, selection: &Selection) -> String {
        activate::definition(catalog, selection)
    }

    /// The stand-in for an inactive item, where this surface shows one.
    pub fn stub(self, item: &Item) -> Option<String> {
        if self.inactive == Inactive::Hidden || item.kind != mcp::items::Kind::Tool {
            return None;
        }
        let summary = format!(
            "Inactive: switch it on with `{}` before use. {}",
            activate::NAME,
            item.summary
        );
        Some(format!(
            r#"{{"name":{},"description":{},"inputSchema":{{"type":"object"}}}}"#,
            json::quote(item.name.as_str()),
            json::quote(&summary)
        ))
    }
}
