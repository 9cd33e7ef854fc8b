//! Exposure: which toolsets a client begins with, which it may enable, and how their tools are named.

use std::collections::BTreeSet;

use crate::toolset::ToolsetPlace;

#[derive(Clone, Debug, Default)]
pub struct Exposure {
    /// The toolsets that are on when a client connects.
    pub startup: BTreeSet<ToolsetPlace>,
    /// How many may be on at once, if that is set.
    pub active_max: Option<usize>,
    /// The only ones that may be enabled; all, if absent.
    pub allowed: Option<BTreeSet<ToolsetPlace>>,
    pub denied: BTreeSet<ToolsetPlace>,
    /// Whether names are shown without that of the toolset.
    pub is_bare: bool,
    /// Whether tools of toolsets that are off can be called all the same. TC-11
    pub calls_unlisted: bool,
}

impl Exposure {
    /// Whether a client may enable a toolset.
    pub fn permits(&self, place: ToolsetPlace) -> bool {
        let is_allowed = self.allowed.as_ref().is_none_or(|allowed| allowed.contains(&place));
        is_allowed && !self.denied.contains(&place)
    }
}
