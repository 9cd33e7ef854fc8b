//! The selection: what one client has switched on or off, over what the patterns start with.

use std::collections::BTreeMap;

use mcp::items::Kind;
use mcp::names::NamespacedName;

use crate::snapshot::Item;

/// Choices by name, so that they outlive a snapshot: an item that comes back is as it was left.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    tools: BTreeMap<NamespacedName, bool>,
    resources: BTreeMap<NamespacedName, bool>,
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
