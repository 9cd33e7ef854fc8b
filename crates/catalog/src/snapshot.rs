//! The catalog: an immutable snapshot of what all upstreams offer, under exposed names.
//!
//! Swapped whole, never edited. Exposed names are made here and nowhere else; the origin is kept
//! beside each, so that nobody has to take a name apart.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use bytes::Bytes;
use foldhash::{HashMap, HashMapExt as _};
use mcp::headers::ParamHeader;
use mcp::items::{Definition, Inventory, Kind};
use mcp::json;
use mcp::names::{Namespace, NamespacedName, UpstreamName, UriStyle};
use mcp::rpc::Raw;
use mcp::text::is_hidden;

use crate::expansion::Template;
use crate::exposure::Exposure;
use crate::patterns::Patterns;
use crate::policy::Subject;
use crate::ref_id::{RefId, legacy};
use crate::toolset::{Note, Toolset, ToolsetPlace, Toolsets};

/// Length of a description in the catalog of `toolman_activate`, in characters.
const SUMMARY_CHARS: usize = 132;

/// What one upstream brings to the catalog.
#[derive(Clone, Copy, Debug)]
pub struct Offer<'a> {
    pub upstream: &'a UpstreamName,
    /// What stands before its names.
    pub namespace: &'a Namespace,
    /// The namespace that the upstream has, whatever is shown of it.
    pub own_namespace: &'a Namespace,
    pub inventory: &'a Inventory,
    /// The one toolset that is looked at: its items only, under its name.
    pub toolset: Option<(ToolsetPlace, &'a Toolset)>,
}

/// How items are named and which start switched on.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub starts_on: Patterns,
    pub uri_style: UriStyle,
    pub toolsets: Toolsets,
    pub exposure: Exposure,
    /// Whether tools that are not what they were when they were chosen are used all the same.
    pub allows_stale_references: bool,
    /// Tools that others can't do without: a name, and those that it needs. HT-45
    pub requires: Requirements,
}

/// Names of tools, each with those of the tools that it needs.
pub type Requirements = Arc<[(Box<str>, Vec<Box<str>>)]>;

/// Where an item comes from: its upstream, and its name there.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Origin {
    pub upstream: UpstreamName,
    /// The namespace of the upstream, also where names are shown without it.
    pub namespace: Namespace,
    pub name: Box<str>,
}

/// One exposed item.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: Kind,
    /// The place in the list of its kind, from 0.
    pub place: usize,
    pub name: NamespacedName,
    pub origin: Origin,
    /// The definition with the exposed name, ready to be listed.
    pub definition: Bytes,
    /// The description on one line, cut for the catalog.
    pub summary: Box<str>,
    pub starts_on: bool,
    /// The toolsets that it is shown for, where toolsets are shown.
    pub toolsets: Vec<ToolsetPlace>,
    /// The arguments of a tool that are mirrored into header fields.
    pub param_headers: Vec<ParamHeader>,
    pub(crate) template: Option<Template>,
    /// The definition as the upstream gave it.
    source: Raw,
    ref_id: OnceLock<RefId>,
    legacy_hashes: OnceLock<Vec<String>>,
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

/// The items of one kind.
#[derive(Clone, Debug, Default)]
struct Shelf {
    /// In the order of their names: the one order of every list.
    items: Vec<Item>,
    by_name: HashMap<NamespacedNameKey, usize>,
    /// Every accepted spelling that is not an exposed name.
    aliases: HashMap<Box<str>, Places>,
    /// Where several items in a row have one name, each in a toolset of its own.
    contested: Vec<Range<usize>>,
}

/// Which items an alias means: mostly one, for which a list would be a waste.
#[derive(Clone, Debug)]
enum Places {
    One(usize),
    Many(Vec<usize>),
}

impl Places {
    fn as_slice(&self) -> &[usize] {
        match self {
            Places::One(at) => std::slice::from_ref(at),
            Places::Many(places) => places,
        }
    }

    fn add(&mut self, at: usize) {
        if !self.as_slice().contains(&at) {
            *self = Places::Many([self.as_slice(), &[at]].concat());
        }
    }
}

type NamespacedNameKey = Box<str>;

#[derive(Clone, Debug, Default)]
pub struct Catalog {
    tools: Shelf,
    resources: Shelf,
    templates: Shelf,
    prompts: Shelf,
    collisions: Vec<Collision>,
    toolsets: Toolsets,
    exposure: Exposure,
    allows_stale_references: bool,
    requires: Requirements,
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
    /// would change what a name means. The `reserved` names of tools are not theirs to use.
    pub fn assemble(offers: &[Offer<'_>], rules: &Rules, reserved: &[&str]) -> Catalog {
        let mut catalog = Catalog {
            toolsets: rules.toolsets.clone(),
            exposure: rules.exposure.clone(),
            allows_stale_references: rules.allows_stale_references,
            requires: Arc::clone(&rules.requires),
            ..Catalog::default()
        };
        for kind in Kind::ALL {
            let reserved = if kind == Kind::Tool { reserved } else { &[] };
            let shelf = Shelf::fill(kind, offers, rules, reserved, &mut catalog.collisions);
            *match kind {
                Kind::Tool => &mut catalog.tools,
                Kind::Resource => &mut catalog.resources,
                Kind::Template => &mut catalog.templates,
                Kind::Prompt => &mut catalog.prompts,
            } = shelf;
        }
        catalog.mixes_links = offers.iter().any(|offer| offer.upstream != offers[0].upstream)
            && !(catalog.resources.items.is_empty() && catalog.templates.items.is_empty());
        catalog
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

    pub fn collisions(&self) -> &[Collision] {
        &self.collisions
    }

    /// The item that `asked` means: the exposed name first, then the other accepted spellings.
    pub fn look_up(&self, kind: Kind, asked: &str) -> Lookup<'_> {
        let shelf = self.shelf(kind);
        if let Some(at) = shelf.by_name.get(asked) {
            return Lookup::Found(&shelf.items[*at]);
        }
        match shelf.aliases.get(asked).map(Places::as_slice) {
            None => Lookup::Unknown,
            Some([one]) => Lookup::Found(&shelf.items[*one]),
            Some(many) => Lookup::Ambiguous(many.iter().map(|at| &shelf.items[*at]).collect()),
        }
    }

    /// The items that `asked` is a spelling of, not counting the one that is exposed so.
    pub fn spelled(&self, kind: Kind, asked: &str) -> Vec<&Item> {
        let shelf = self.shelf(kind);
        let places = shelf.aliases.get(asked).map(Places::as_slice).unwrap_or_default();
        places.iter().map(|at| &shelf.items[*at]).collect()
    }

    fn shelf(&self, kind: Kind) -> &Shelf {
        match kind {
            Kind::Tool => &self.tools,
            Kind::Resource => &self.resources,
            Kind::Template => &self.templates,
            Kind::Prompt => &self.prompts,
        }
    }
}

impl Shelf {
    fn fill(
        kind: Kind,
        offers: &[Offer<'_>],
        rules: &Rules,
        reserved: &[&str],
        collisions: &mut Vec<Collision>,
    ) -> Shelf {
        let mut owners: HashMap<NamespacedName, Places> = HashMap::new();
        let mut placed: Vec<(Item, &Namespace)> = Vec::new();
        for offer in offers {
            for definition in offer.inventory.of(kind) {
                if !offer.takes(definition) {
                    continue;
                }
                let item = Item::expose(kind, definition, offer, rules);
                let owned = owners.get(&item.name).map(Places::as_slice).unwrap_or_default();
                let same = owned.iter().find(|at| placed[**at].0.origin == item.origin);
                if let Some(same) = same {
                    // The same item, for one toolset more.
                    placed[*same].0.toolsets.extend(item.toolsets);
                    continue;
                }
                let is_reserved = reserved.contains(&item.name.as_str());
                let rival = owned.iter().map(|at| &placed[*at].0).find(|rival| {
                    // In different toolsets both may have the name, as long as one of these is on.
                    offer.toolset.is_none_or(|(place, _)| rival.toolsets.contains(&place))
                });
                if is_reserved || rival.is_some() {
                    let kept = rival.map(|rival| rival.origin.upstream.clone());
                    let dropped = offer.upstream.clone();
                    collisions.push(Collision { kind, name: item.name, kept, dropped });
                    continue;
                }
                let at = placed.len();
                owners
                    .entry(item.name.clone())
                    .and_modify(|places| places.add(at))
                    .or_insert(Places::One(at));
                placed.push((item, offer.namespace));
            }
        }
        // Those of one name stay in the order of their toolsets.
        placed.sort_by(|a, b| a.0.name.cmp(&b.0.name));
        let mut shelf = Shelf::default();
        let mut at = 0;
        for group in placed.chunk_by(|a, b| a.0.name == b.0.name) {
            if let [(item, _)] = group {
                shelf.by_name.insert(item.name.as_str().into(), at);
            } else {
                shelf.contested.push(at..at + group.len());
            }
            at += group.len();
        }
        for (at, (mut item, namespace)) in placed.into_iter().enumerate() {
            item.place = at;
            shelf.add_aliases(at, &item, namespace);
            shelf.items.push(item);
        }
        shelf
    }

    fn add_aliases(&mut self, at: usize, item: &Item, namespace: &Namespace) {
        let bare = &item.origin.name;
        let upstream = &item.origin.upstream;
        let separators = ["_", ":", ".", "__"];
        let by_upstream = separators.iter().map(|separator| format!("{upstream}{separator}{bare}"));
        let by_namespace = UriStyle::ALL.map(|style| format!("{}{bare}", namespace.prefix(style)));
        for alias in by_upstream.chain(by_namespace).chain([bare.to_string()]) {
            if self.by_name.get(alias.as_str()) == Some(&at) {
                continue;
            }
            self.aliases
                .entry(alias.into())
                .and_modify(|places| places.add(at))
                .or_insert(Places::One(at));
        }
    }
}

impl Offer<'_> {
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

impl Item {
    /// The definition as its upstream gave it.
    pub fn source(&self) -> &Raw {
        &self.source
    }

    /// The definition with notes behind its description.
    pub fn annotated(&self, notes: &[&Note]) -> Bytes {
        let Ok([description]) = json::members(&self.definition, ["description"]) else {
            return self.definition.clone();
        };
        let said = description.and_then(json::string).unwrap_or_default();
        let notes: Vec<_> =
            notes.iter().map(|note| format!("[{}] {}", note.name, note.text)).collect();
        let text = json::quote(format!("{said}\n\n{}", notes.join("\n")).trim_start());
        let edited = match description {
            Some(description) => {
                let span = json::span(&self.definition, description);
                json::splice(&self.definition, &[(span, text.as_bytes())])
            }
            None => {
                let member = format!("\"description\":{text},");
                json::splice(&self.definition, &[(1..1, member.as_bytes())])
            }
        };
        edited.into()
    }

    /// What the item is known by as it is now: another definition has another ref id.
    pub fn ref_id(&self) -> &RefId {
        self.ref_id.get_or_init(|| RefId::of(&self.source, &self.origin.upstream))
    }

    /// Whether a ref id means the item as it is now: one of ours, or one of hypertool.
    pub fn is_known_by(&self, ref_id: &str) -> bool {
        if self.ref_id().as_str() == ref_id {
            return true;
        }
        let Some(hash) = legacy::hash_of(ref_id) else { return false };
        let hashes = self.legacy_hashes.get_or_init(|| {
            let definition = String::from_utf8_lossy(self.source.as_bytes());
            legacy::hashes(&self.origin.name, self.origin.upstream.as_str(), &definition)
        });
        hashes.iter().any(|known| known == hash)
    }

    fn expose(kind: Kind, definition: &Definition, offer: &Offer<'_>, rules: &Rules) -> Item {
        let plain = offer.namespace.expose(definition.name());
        let name = match (kind, offer.toolset) {
            (Kind::Tool | Kind::Prompt, Some(_)) if rules.exposure.is_bare => {
                Namespace::default().expose(definition.name())
            }
            (Kind::Tool | Kind::Prompt, Some((_, toolset))) => {
                NamespacedName::in_toolset(&toolset.name, definition.name())
            }
            (Kind::Tool | Kind::Prompt, None) => plain.clone(),
            (Kind::Resource | Kind::Template, _) => {
                offer.namespace.expose_uri(definition.name(), rules.uri_style)
            }
        };
        let names = [plain.as_str(), name.as_str()];
        Item {
            kind,
            place: 0,
            origin: Origin {
                upstream: offer.upstream.clone(),
                namespace: offer.own_namespace.clone(),
                name: definition.name().into(),
            },
            definition: definition.renamed(name.as_str()),
            summary: summarize(definition.description()),
            starts_on: rules.starts_on.matches(offer.upstream, &names),
            toolsets: offer.toolset.map(|(place, _)| place).into_iter().collect(),
            param_headers: definition.param_headers().to_vec(),
            template: (kind == Kind::Template).then(|| Template::of(definition, offer, rules)),
            source: definition.raw().clone(),
            ref_id: OnceLock::new(),
            legacy_hashes: OnceLock::new(),
            name,
        }
    }
}

/// A description on one line without hidden characters, cut at [`SUMMARY_CHARS`].
fn summarize(description: &str) -> Box<str> {
    let mut summary = String::new();
    let words = description.split(|c: char| c.is_whitespace() || is_hidden(c));
    for word in words.filter(|word| !word.is_empty()) {
        if !summary.is_empty() {
            summary.push(' ');
        }
        summary.push_str(word);
        if summary.len() > SUMMARY_CHARS * 4 {
            break;
        }
    }
    summary.chars().take(SUMMARY_CHARS).collect::<String>().into()
}

#[cfg(test)]
mod tests;
