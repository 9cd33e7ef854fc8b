//! The catalog: an immutable snapshot of what all upstreams offer, under exposed names.
//!
//! Swapped whole, never edited. Exposed names are made here and nowhere else; the origin is kept
//! beside each, so that nobody has to take a name apart.

mod item;
mod shelf;

use std::collections::BTreeMap;
use std::sync::Arc;

use mcp::items::{Definition, Inventory, Kind};
use mcp::names::{Namespace, NamespacedName, UpstreamName, UriStyle};

use crate::exposure::Exposure;
use crate::naming::{NameStyle, Prefix};
use crate::patterns::Patterns;
use crate::policy::Subject;
use crate::profile::Naming;
use crate::toolset::{Toolset, ToolsetPlace, Toolsets};

pub use item::Item;
use item::summarize;
use shelf::Shelf;

/// What one upstream brings to the catalog.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    pub upstream: &'a UpstreamName,
    /// What stands before its names.
    pub namespace: &'a Namespace,
    /// The namespace that the upstream has, whatever is shown of it.
    pub own_namespace: &'a Namespace,
    pub inventory: &'a Inventory,
    /// What the upstream says that it is for.
    pub purpose: Option<&'a str>,
    /// The one toolset that is looked at: its items only, under its name.
    pub toolset: Option<(ToolsetPlace, &'a Toolset)>,
}

/// How items are named and which start switched on.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub starts_on: Patterns,
    /// One style for all clients; each has its own if absent.
    pub uri_style: Option<UriStyle>,
    pub name_style: NameStyle,
    /// The servers whose names have no prefix, or not always.
    pub prefixes: BTreeMap<UpstreamName, Prefix>,
    pub toolsets: Toolsets,
    pub exposure: Exposure,
    /// Whether tools that are not what they were when they were chosen are used all the same.
    pub allows_stale_references: bool,
    /// Characters of the description of `toolman_activate`, for clients of which nothing else is known.
    pub description_max: Option<usize>,
    /// Tools that others can't do without: a name, and those that it needs. HT-45
    pub requires: Requirements,
}

/// Names of tools, each with those of the tools that it needs.
pub type Requirements = Arc<[(Box<str>, Vec<Box<str>>)]>;

impl Rules {
    /// How items are named for a client that wants this.
    fn naming(&self, wanted: &Naming) -> Naming {
        let naming = match self.name_style {
            NameStyle::Auto => *wanted,
            NameStyle::AsIs => Naming::AS_IS,
        };
        Naming { uri_style: self.uri_style.unwrap_or(wanted.uri_style), ..naming }
    }
}

/// Where an item comes from: its upstream, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    pub upstream: UpstreamName,
    /// The namespace of the upstream, also where names are shown without it.
    pub namespace: Namespace,
    pub name: Box<str>,
}

/// An exposed name that two upstreams claim; the one listed first keeps it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Collision {
    pub kind: Kind,
    pub name: NamespacedName,
    /// `None` where the name is reserved for a control tool.
    pub kept: Option<UpstreamName>,
    pub dropped: UpstreamName,
}

#[derive(Clone, Debug, Default)]
pub struct Catalog {
    /// By kind. Catalogs of several namings share what is the same in them.
    shelves: [Arc<Shelf>; Kind::ALL.len()],
    toolsets: Toolsets,
    exposure: Exposure,
    allows_stale_references: bool,
    requires: Requirements,
    description_max: Option<usize>,
    purposes: BTreeMap<UpstreamName, Box<str>>,
    mixes_links: bool,
}

/// What a spelling means in the catalog.
#[derive(Debug)]
pub enum Lookup<'a> {
    Found(&'a Item),
    Ambiguous(Vec<&'a Item>),
    Unknown,
}

impl Catalog {
    /// Builds the snapshot from the offers in the order of the configuration.
    ///
    /// Collisions are settled by that order, not by who connected first: otherwise a slow start
    /// would change what a name means. The `reserved` names of tools are not theirs to use. Names are
    /// as clients `want` them; a catalog `like` this one is of the same offers, for other clients.
    pub fn assemble(
        offers: &[Offer<'_>],
        rules: &Rules,
        reserved: &[&str],
        wanted: &Naming,
        like: Option<&Catalog>,
    ) -> Catalog {
        let naming = rules.naming(wanted);
        let shelf = |kind| {
            let reserved = if kind == Kind::Tool { reserved } else { &[] };
            let like = like.map(|catalog| &catalog.shelves[kind as usize]);
            match like.filter(|shelf| shelf.suits(kind, &naming)) {
                Some(same) => Arc::clone(same),
                None => {
                    let like = like.map(|shelf| &**shelf);
                    Arc::new(Shelf::fill(kind, offers, rules, &naming, reserved, like))
                }
            }
        };
        let shelves = Kind::ALL.map(shelf);
        let has_resources = [Kind::Resource, Kind::Template]
            .into_iter()
            .any(|kind| !shelves[kind as usize].items.is_empty());
        Catalog {
            shelves,
            mixes_links: has_resources
                && offers.iter().any(|offer| offer.upstream != offers[0].upstream),
            toolsets: rules.toolsets.clone(),
            exposure: rules.exposure.clone(),
            allows_stale_references: rules.allows_stale_references,
            requires: Arc::clone(&rules.requires),
            description_max: rules.description_max,
            purposes: purposes(offers),
        }
    }

    /// Whether a link that a server gives could be taken for another server's.
    pub fn mixes_links(&self) -> bool {
        self.mixes_links
    }

    /// All items of a kind in listing order.
    pub fn items(&self, kind: Kind) -> &[Item] {
        &self.shelf(kind).items
    }

    /// Whether tools that are not what they were when they were chosen are used all the same.
    pub fn allows_stale_references(&self) -> bool {
        self.allows_stale_references
    }

    /// Which tools others can't do without.
    pub fn requires(&self) -> &[(Box<str>, Vec<Box<str>>)] {
        &self.requires
    }

    pub fn description_max(&self) -> Option<usize> {
        self.description_max
    }

    /// What an upstream says that it is for.
    pub fn purpose(&self, upstream: &UpstreamName) -> Option<&str> {
        self.purposes.get(upstream).map(|purpose| &**purpose)
    }

    /// The toolsets that items are shown for.
    pub fn toolsets(&self) -> &Toolsets {
        &self.toolsets
    }

    pub fn exposure(&self) -> &Exposure {
        &self.exposure
    }

    /// The items that share a name, which only one of them can have in a view.
    pub fn contested(&self, kind: Kind) -> impl Iterator<Item = &[Item]> {
        let shelf = self.shelf(kind);
        shelf.contested.iter().map(|places| &shelf.items[places.clone()])
    }

    pub fn collisions(&self) -> impl Iterator<Item = &Collision> {
        self.shelves.iter().flat_map(|shelf| &shelf.collisions)
    }

    /// The items that are not called what their servers call them.
    pub fn renamed(&self) -> impl Iterator<Item = &Item> {
        let items = self.shelves.iter().flat_map(|shelf| &shelf.items);
        items.filter(|item| item.renamed.is_some())
    }

    /// The item that `asked` means: the exposed name first, then the other accepted spellings.
    pub fn look_up(&self, kind: Kind, asked: &str) -> Lookup<'_> {
        let shelf = self.shelf(kind);
        if let Some(item) = shelf.named(asked) {
            return Lookup::Found(item);
        }
        let mut spelled = shelf.spelled(asked);
        match (spelled.next(), spelled.next()) {
            (None, _) => Lookup::Unknown,
            (Some(one), None) => Lookup::Found(one),
            _ => Lookup::Ambiguous(shelf.spelled(asked).collect()),
        }
    }

    /// The items that `asked` is a spelling of, not counting the one that is exposed so.
    pub fn spelled(&self, kind: Kind, asked: &str) -> Vec<&Item> {
        self.shelf(kind).spelled(asked).collect()
    }

    fn shelf(&self, kind: Kind) -> &Shelf {
        &self.shelves[kind as usize]
    }
}

/// The first sentence of what each upstream says of itself.
fn purposes(offers: &[Offer<'_>]) -> BTreeMap<UpstreamName, Box<str>> {
    let said = offers.iter().filter_map(|offer| {
        let first = summarize(offer.purpose?);
        let end = first.find(". ").unwrap_or(first.trim_end_matches('.').len());
        (end > 0).then(|| (offer.upstream.clone(), first[..end].into()))
    });
    said.collect()
}

impl Offer<'_> {
    /// The name of an item if every name fits.
    fn expose(
        &self,
        kind: Kind,
        definition: &Definition,
        rules: &Rules,
        naming: &Naming,
    ) -> NamespacedName {
        let name = definition.name();
        let prefix = rules.prefixes.get(self.upstream).copied().unwrap_or_default();
        match (kind, self.toolset) {
            (Kind::Resource | Kind::Template, _) => {
                prefix.expose_uri(self.namespace, name, naming.uri_style)
            }
            (Kind::Tool | Kind::Prompt, None) => prefix.expose(self.namespace, name),
            (Kind::Tool | Kind::Prompt, Some(_)) if rules.exposure.is_bare => {
                Namespace::default().expose(name)
            }
            (Kind::Tool | Kind::Prompt, Some((_, toolset))) => {
                NamespacedName::in_toolset(&toolset.name, name)
            }
        }
    }

    /// Whether a definition is shown: all, or those of the toolset.
    fn takes(&self, definition: &Definition) -> bool {
        self.toolset.is_none_or(|(_, toolset)| {
            let plain = self.own_namespace.expose(definition.name());
            let names = [definition.name(), plain.as_str()];
            let subject = Subject::new(self.upstream, self.own_namespace, names[0], names[1]);
            toolset.patterns.matches(self.upstream, subject.names())
        })
    }
}

#[cfg(test)]
mod tests;
