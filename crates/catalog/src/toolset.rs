//! Toolsets: named lists of references to items.

use mcp::names::UpstreamName;

use crate::patterns::Patterns;

/// A named list: names in any spelling, patterns, `server:*`.
#[derive(Clone, Debug)]
pub struct Toolset {
    pub name: Box<str>,
    pub description: Option<String>,
    pub references: Patterns,
}

/// The place of a toolset in the configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolsetPlace(pub u16);

/// The toolsets of a configuration, in its order.
#[derive(Clone, Debug, Default)]
pub struct Toolsets(Vec<Toolset>);

impl Toolsets {
    /// As many as can be counted.
    pub fn new(mut toolsets: Vec<Toolset>) -> Toolsets {
        toolsets.truncate(usize::from(u16::MAX));
        Toolsets(toolsets)
    }

    pub fn iter(&self) -> impl Iterator<Item = (ToolsetPlace, &Toolset)> {
        (0..).map(ToolsetPlace).zip(&self.0)
    }

    /// Whether what is granted, if that counts, can be of an upstream.
    pub fn may_reach(&self, grants: Option<&[ToolsetPlace]>, upstream: &UpstreamName) -> bool {
        grants.is_none_or(|grants| {
            self.iter().any(|(place, toolset)| {
                grants.contains(&place) && toolset.references.may_be_of(upstream.as_str())
            })
        })
    }

    /// The places of those that are named; others are left out, and each counts once.
    pub fn places<'a>(&self, names: impl Iterator<Item = &'a str>) -> Vec<ToolsetPlace> {
        let find = |name: &str| self.iter().find(|(_, toolset)| &*toolset.name == name);
        let mut places: Vec<_> =
            names.filter_map(|name| find(name.trim()).map(|(place, _)| place)).collect();
        places.sort_unstable();
        places.dedup();
        places
    }
}
