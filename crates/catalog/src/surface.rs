//! How the visible items are shown: control tools, stubs, wording.

pub mod activate;
pub mod dynamic;
pub mod mark;
pub mod reply;
pub mod toolset;

use mcp::items::Kind;
use mcp::json;

use crate::snapshot::Item;
use crate::view::View;

/// A manner of showing, with its choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Surface {
    /// The client switches items on and off with `toolman_activate`.
    Activate { inactive: Inactive },
    /// Everything under the ceiling is on, and nothing is added.
    Filter,
    /// The same of one namespace, under bare names.
    Namespace,
    /// The toolsets that a client is granted. TC-07
    Permission,
    /// One toolset at a time, or everything; the client builds and equips them.
    Toolset,
    /// Several toolsets, which the client enables and disables. TC-01
    Dynamic,
    /// The toolsets that were chosen at the start. TC-04
    Static,
}

impl Default for Surface {
    fn default() -> Surface {
        Surface::Activate { inactive: Inactive::default() }
    }
}

/// What becomes of inactive tools in the list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Inactive {
    /// What fits the client: stubs where it never lists again, and these don't cost too much.
    #[default]
    Auto,
    Hidden,
    /// One line each, without a schema, for clients that read the list only once.
    Stub,
}

impl Surface {
    /// What it is called in files.
    pub fn name(self) -> &'static str {
        match self {
            Surface::Activate { .. } => "activate",
            Surface::Filter => "filter",
            Surface::Namespace => "namespace",
            Surface::Permission => "permission",
            Surface::Toolset => "toolset",
            Surface::Dynamic => "dynamic",
            Surface::Static => "static",
        }
    }

    /// Whether items are shown by toolset, under its name.
    pub fn is_by_toolset(self) -> bool {
        matches!(self, Surface::Permission | Surface::Dynamic | Surface::Static)
    }

    /// Whether a client switches items or toolsets on and off here.
    pub fn switches(self) -> bool {
        matches!(self, Surface::Activate { .. } | Surface::Dynamic)
    }

    /// The names of the control tools, which no upstream may have.
    pub fn control_names(self) -> &'static [&'static str] {
        match self {
            Surface::Activate { .. } => &[activate::NAME],
            Surface::Dynamic => &dynamic::NAMES,
            Surface::Static => &[dynamic::LIST_TOOLS],
            Surface::Toolset => &toolset::NAMES,
            Surface::Filter | Surface::Namespace | Surface::Permission => &[],
        }
    }

    /// The definitions of the control tools.
    pub fn control_tools(self, view: &View) -> Option<String> {
        match self {
            Surface::Activate { .. } => Some(activate::definition(view)),
            Surface::Dynamic | Surface::Static => Some(dynamic::definitions(self.control_names())),
            Surface::Toolset => Some(toolset::definitions()),
            Surface::Filter | Surface::Namespace | Surface::Permission => None,
        }
    }

    /// What a client is told of this surface when it connects.
    pub fn instructions(self) -> Option<&'static str> {
        match self {
            Surface::Activate { .. } => Some(activate::INSTRUCTIONS),
            Surface::Dynamic => Some(dynamic::INSTRUCTIONS),
            Surface::Toolset => Some(toolset::INSTRUCTIONS),
            Surface::Filter | Surface::Namespace | Surface::Permission | Surface::Static => None,
        }
    }

    /// Where names are found, for a model that asked for a wrong one.
    pub fn where_to_look(self, kind: Kind) -> &'static str {
        match (self, kind) {
            (Surface::Activate { .. }, _) => {
                "see the catalog in the description of `toolman_activate`"
            }
            (Surface::Dynamic, _) => "see `list_toolsets`",
            (Surface::Toolset, Kind::Tool) => "see `list-available-tools`",
            (_, Kind::Tool) => "see `tools/list`",
            (_, Kind::Prompt) => "see `prompts/list`",
            (_, Kind::Resource | Kind::Template) => {
                "see `resources/list` and `resources/templates/list`"
            }
        }
    }

    /// How an inactive item is switched on.
    pub fn remedy(self, view: &View, item: &Item) -> String {
        match (self, item.kind) {
            (Surface::Dynamic, _) => dynamic::remedy(view, item),
            (Surface::Static, _) => "the toolsets were chosen at the start".to_owned(),
            (Surface::Toolset, _) => toolset::remedy(view),
            (_, Kind::Tool | Kind::Prompt) => {
                "pass it in `tools_on` of `toolman_activate` first".to_owned()
            }
            (_, Kind::Resource | Kind::Template) => {
                "pass it in `resources_on` of `toolman_activate` first".to_owned()
            }
        }
    }
}

/// The stand-in for an inactive tool. It takes any arguments: a client that lists once calls by it ever after.
pub fn stub(item: &Item) -> String {
    let blank = if item.summary.is_empty() { "" } else { " " };
    let line =
        format!("{}{blank}(Off: switch it on with `{}` first.)", item.summary, activate::NAME);
    format!(
        r#"{{"name":{},"description":{},"inputSchema":{{"type":"object","properties":{{}},"additionalProperties":true}}}}"#,
        json::quote(item.name.as_str()),
        json::quote(&line)
    )
}
