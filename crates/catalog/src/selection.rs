//! The selection: what one client has switched on or off, over what the patterns start with.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use mcp::items::Kind;
use mcp::names::UpstreamName;

use crate::scope::Scope;
use crate::snapshot::{Item, Rules};
use crate::surface::Surface;
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
    /// What a client begins with in a scope, by the rules.
    pub fn first(rules: &Rules, scope: &Scope) -> Selection {
        let mut selection = Selection::default();
        let exposure = &rules.exposure;
        match (scope.surface, scope.beginning()) {
            (Surface::Dynamic, Some(choice)) => {
                let permitted = choice.toolsets().filter(|place| exposure.permits(*place));
                selection.enabled.extend(permitted.take(exposure.active_max.unwrap_or(usize::MAX)));
            }
            (Surface::Dynamic | Surface::Static, _) => {
                selection.enabled.clone_from(&exposure.startup);
            }
            _ => {}
        }
        selection
    }

    /// Whether an item was switched on or off, if it was.
    pub fn of(&self, item: &Item) -> Option<bool> {
        let chosen = self.chosen.get(&item.origin.upstream)?;
        chosen[item.kind as usize].get(&item.origin.name).copied()
    }

    /// Whether a toolset that is on has the item.
    pub fn enables(&self, item: &Item) -> bool {
        item.toolsets.iter().any(|place| self.enabled.contains(place))
    }

    /// Switches an item on or off.
    pub fn switch(&mut self, item: &Item, on: bool) {
        self.put(&item.origin.upstream, item.kind, &item.origin.name, on);
    }

    /// The same for an item that may not be there now. Prompts are always on.
    pub fn put(&mut self, upstream: &UpstreamName, kind: Kind, name: &str, on: bool) {
        if kind != Kind::Prompt {
            let chosen = self.chosen.entry(upstream.clone()).or_default();
            chosen[kind as usize].insert(name.into(), on);
        }
    }

    /// All that was switched on or off.
    pub fn switched(&self) -> impl Iterator<Item = (&UpstreamName, Kind, &str, bool)> {
        self.chosen.iter().flat_map(|(upstream, chosen)| {
            let of_kind = move |kind: Kind| {
                let names = chosen[kind as usize].iter();
                names.map(move |(name, on)| (upstream, kind, &**name, *on))
            };
            Kind::ALL.into_iter().flat_map(of_kind)
        })
    }
}
