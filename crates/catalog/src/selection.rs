//! The selection: what one client has switched on or off, over what the patterns start with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp::items::Kind;
use mcp::names::NamespacedName;

use crate::snapshot::Item;
use crate::toolset::{Toolset, ToolsetPlace};

/// Choices by name, so that they outlive a snapshot: an item that comes back is as it was left.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    tools: BTreeMap<NamespacedName, bool>,
    resources: BTreeMap<NamespacedName, bool>,
    /// The one toolset whose tools are shown, if it is not all of them.
    pub equipped: Option<Arc<Toolset>>,
    /// The toolsets that are on, where several can be.
    pub enabled: BTreeSet<ToolsetPlace>,
}

impl Selection {
    pub fn is_on(&self, item: &Item) -> bool {
        let chosen = match item.kind {
            Kind::Prompt => return true,
            Kind::Tool => self.tools.get(&item.name),
            Kind::Resource | Kind::Template => self.resources.get(&item.name),
        };
        chosen.copied().unwrap_or(item.starts_on)
    }

    /// Whether a toolset that is on has the item.
    pub fn enables(&self, item: &Item) -> bool {
        item.toolsets.iter().any(|place| self.enabled.contains(place))
    }

    pub fn switch(&mut self, item: &Item, on: bool) {
        match item.kind {
            Kind::Prompt => {}
            Kind::Tool => {
                self.tools.insert(item.name.clone(), on);
            }
            Kind::Resource | Kind::Template => {
                self.resources.insert(item.name.clone(), on);
            }
        }
    }
}
