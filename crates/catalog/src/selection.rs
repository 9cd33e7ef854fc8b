//! The selection: what one client has switched on or off, over what the patterns start with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp::items::Kind;
use mcp::names::UpstreamName;

use crate::snapshot::Item;
use crate::toolset::{Toolset, ToolsetPlace};

/// Choices by what an item is, not by what it is called: they outlive a snapshot, and hold for clients to which
/// the same item is shown under another name.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    chosen: BTreeMap<UpstreamName, OfUpstream>,
    /// The one toolset whose tools are shown, if it is not all of them.
    pub equipped: Option<Arc<Toolset>>,
    /// The toolsets that are on, where several can be.
    pub enabled: BTreeSet<ToolsetPlace>,
}

/// What is switched on or off of one upstream, by kind and by the upstream's own names.
type OfUpstream = [BTreeMap<Box<str>, bool>; Kind::ALL.len()];

impl Selection {
    pub fn is_on(&self, item: &Item) -> bool {
        if item.kind == Kind::Prompt {
            return true;
        }
        let chosen = self.chosen.get(&item.origin.upstream);
        let chosen = chosen.and_then(|chosen| chosen[item.kind as usize].get(&item.origin.name));
        chosen.copied().unwrap_or(item.starts_on)
    }

    /// Whether a toolset that is on has the item.
    pub fn enables(&self, item: &Item) -> bool {
        item.toolsets.iter().any(|place| self.enabled.contains(place))
    }

    /// Switches an item on or off. Prompts are always on.
    pub fn switch(&mut self, item: &Item, on: bool) {
        if item.kind != Kind::Prompt {
            let chosen = self.chosen.entry(item.origin.upstream.clone()).or_default();
            chosen[item.kind as usize].insert(item.origin.name.clone(), on);
        }
    }
}
