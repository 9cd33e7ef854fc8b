//! The items of one kind in a snapshot, and every spelling that leads to them.

use std::ops::Range;

use foldhash::{HashMap, HashMapExt as _, HashSet};
use mcp::items::{Definition, Kind};
use mcp::names::{Namespace, NamespacedName, UriStyle};

use super::item::Item;
use super::{Collision, Offer, Rules};
use crate::naming::{Renamed, suffixed};
use crate::profile::Naming;
use crate::toolset::ToolsetPlace;

#[derive(Debug, Default)]
pub struct Shelf {
    /// In the order of their names: the one order of every list.
    pub items: Vec<Item>,
    /// The names that are shown, and those that would be if every name fitted.
    by_name: HashMap<Box<str>, usize>,
    /// Every other accepted spelling.
    aliases: HashMap<Box<str>, Places>,
    /// Where several items in a row have one name, each in a toolset of its own.
    pub contested: Vec<Range<usize>>,
    pub collisions: Vec<Collision>,
    uri_style: UriStyle,
}

/// Which items an alias means: mostly one, for which a list would be a waste.
#[derive(Clone, Debug)]
enum Places {
    One(usize),
    Many(Vec<usize>),
}

/// An item that has its name, but no definition yet.
#[derive(Debug)]
pub struct Draft<'a> {
    pub name: NamespacedName,
    pub canonical: NamespacedName,
    pub renamed: Option<Renamed>,
    /// Whether its server has another item, listed before, that it calls the same.
    is_second: bool,
    pub uri_style: UriStyle,
    pub definition: &'a Definition,
    pub offer: &'a Offer<'a>,
    pub toolsets: Vec<ToolsetPlace>,
}

impl Shelf {
    /// Names that are made to fit `naming`; definitions are those of a shelf `like` this one, where they are the same.
    pub fn fill(
        kind: Kind,
        offers: &[Offer<'_>],
        rules: &Rules,
        naming: &Naming,
        reserved: &[&str],
        like: Option<&Shelf>,
    ) -> Shelf {
        let mut shelf = Shelf { uri_style: naming.uri_style, ..Shelf::default() };
        let mut drafts = shelf.collect(kind, offers, rules, naming, reserved);
        fit(kind, &mut drafts, naming, reserved);
        // Those of one name stay in the order of their toolsets.
        drafts.sort_by(|a, b| a.name.cmp(&b.name));
        let mut at = 0;
        for group in drafts.chunk_by(|a, b| a.name == b.name) {
            if let [draft] = group {
                shelf.by_name.insert(draft.name.as_str().into(), at);
                if draft.name != draft.canonical {
                    shelf.by_name.entry(draft.canonical.as_str().into()).or_insert(at);
                }
            } else {
                shelf.contested.push(at..at + group.len());
            }
            at += group.len();
        }
        for (at, draft) in drafts.into_iter().enumerate() {
            let known = like.and_then(|like| like.same(&draft));
            let item = match known {
                Some(known) => known.at(at),
                None => Item::of(kind, at, &draft, rules),
            };
            shelf.add_aliases(at, &item, &draft);
            shelf.items.push(item);
        }
        shelf
    }

    /// Whether another naming leads to the same shelf.
    pub fn suits(&self, kind: Kind, naming: &Naming) -> bool {
        let stays = |item: &Item| {
            item.name == item.canonical && naming.misfit(kind, item.canonical.as_str()).is_none()
        };
        match kind {
            Kind::Tool | Kind::Prompt => self.items.iter().all(stays),
            Kind::Resource | Kind::Template => {
                self.uri_style == naming.uri_style || self.items.is_empty()
            }
        }
    }

    /// The item of this name.
    pub fn named(&self, name: &str) -> Option<&Item> {
        self.by_name.get(name).map(|at| &self.items[*at])
    }

    /// The items that this is another spelling of.
    pub fn spelled(&self, asked: &str) -> impl Iterator<Item = &Item> {
        let places = self.aliases.get(asked).map(Places::as_slice).unwrap_or_default();
        places.iter().map(|at| &self.items[*at])
    }

    /// All that is shown, under the names that it would have if every name fitted.
    fn collect<'a>(
        &mut self,
        kind: Kind,
        offers: &'a [Offer<'a>],
        rules: &Rules,
        naming: &Naming,
        reserved: &[&str],
    ) -> Vec<Draft<'a>> {
        let mut owners: HashMap<NamespacedName, Places> = HashMap::new();
        let mut drafts: Vec<Draft<'a>> = Vec::new();
        let offered = offers.iter().flat_map(|offer| {
            offer.inventory.of(kind).iter().map(move |definition| (offer, definition))
        });
        for (offer, definition) in offered.filter(|(offer, definition)| offer.takes(definition)) {
            let mut draft = Draft::new(kind, definition, offer, rules, naming);
            let owned = |draft: &Draft<'_>| {
                owners.get(&draft.canonical).map(Places::as_slice).unwrap_or_default()
            };
            // The same URI leads to the same resource, whatever is said of it.
            let may_be_apart = matches!(kind, Kind::Tool | Kind::Prompt);
            let beside =
                owned(&draft).iter().map(|at| &drafts[*at]).find(|one| one.is_beside(&draft));
            if let Some(first) = beside.filter(|_| may_be_apart) {
                draft.set_apart(first);
            }
            let same = owned(&draft).iter().find(|at| drafts[**at].is_same(&draft)).copied();
            if let Some(same) = same {
                // The same item, for one toolset more.
                drafts[same].toolsets.extend(draft.toolsets);
                continue;
            }
            let is_reserved = reserved.contains(&draft.canonical.as_str());
            let rival = owned(&draft).iter().map(|at| &drafts[*at]).find(|rival| {
                // In different toolsets both may have the name, as long as one of these is on.
                offer.toolset.is_none_or(|(place, _)| rival.toolsets.contains(&place))
            });
            if is_reserved || rival.is_some() {
                let kept = rival.map(|rival| rival.offer.upstream.clone());
                let dropped = offer.upstream.clone();
                self.collisions.push(Collision { kind, name: draft.canonical, kept, dropped });
                continue;
            }
            let at = drafts.len();
            owners
                .entry(draft.canonical.clone())
                .and_modify(|places| places.add(at))
                .or_insert(Places::One(at));
            drafts.push(draft);
        }
        drafts
    }

    /// The item that a draft is of, if it is shown in the same way here.
    fn same(&self, draft: &Draft<'_>) -> Option<&Item> {
        let source = draft.definition.raw().as_bytes();
        self.named(draft.canonical.as_str()).filter(|item| {
            item.name == draft.name
                && item.origin.upstream == *draft.offer.upstream
                && std::ptr::eq(item.source().as_bytes(), source)
                && item.toolsets == draft.toolsets
        })
    }

    fn add_aliases(&mut self, at: usize, item: &Item, draft: &Draft<'_>) {
        let bare = &item.origin.name;
        let upstream = &item.origin.upstream;
        let shown = [&item.name, &item.canonical].into_iter().chain(&item.also);
        let mut aliases: Vec<String> = shown.map(|name| name.as_str().to_owned()).collect();
        if !draft.is_second {
            let separators = ["_", ":", ".", "__"];
            aliases
                .extend(separators.iter().map(|separator| format!("{upstream}{separator}{bare}")));
            let styles = UriStyle::ALL.iter();
            aliases.extend(
                styles.map(|style| format!("{}{bare}", draft.offer.namespace.prefix(*style))),
            );
            aliases.push(bare.to_string());
        }
        for alias in aliases {
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

/// Gives every item whose name does not fit one that does, and that nobody else has.
fn fit(kind: Kind, drafts: &mut [Draft<'_>], naming: &Naming, reserved: &[&str]) {
    let misfit = |draft: &Draft<'_>| naming.misfit(kind, draft.canonical.as_str());
    if drafts.iter().all(|draft| misfit(draft).is_none()) {
        return;
    }
    // Whose name fits keeps it, wherever it stands.
    let fitting = drafts.iter().filter(|draft| misfit(draft).is_none());
    let mut taken: HashSet<NamespacedName> = fitting.map(|draft| draft.name.clone()).collect();
    let mut given: HashMap<NamespacedName, NamespacedName> = HashMap::new();
    for draft in drafts {
        let Some(why) = misfit(draft) else { continue };
        draft.renamed = draft.renamed.or(Some(why));
        draft.name = given
            .entry(draft.canonical.clone())
            .or_insert_with(|| {
                let mut identity = draft.identity();
                loop {
                    let name = naming.fit(kind, draft.canonical.as_str(), &identity);
                    if !reserved.contains(&name.as_str()) && taken.insert(name.clone()) {
                        return name;
                    }
                    identity.push('\0');
                }
            })
            .clone();
    }
}

impl<'a> Draft<'a> {
    fn new(
        kind: Kind,
        definition: &'a Definition,
        offer: &'a Offer<'a>,
        rules: &Rules,
        naming: &Naming,
    ) -> Draft<'a> {
        let canonical = offer.expose(kind, definition, rules, naming);
        Draft {
            name: canonical.clone(),
            canonical,
            renamed: None,
            is_second: false,
            uri_style: naming.uri_style,
            definition,
            offer,
            toolsets: offer.toolset.map(|(place, _)| place).into_iter().collect(),
        }
    }

    /// What the hash behind its name is of, if it needs one: the same on all surfaces.
    pub fn identity(&self) -> String {
        if self.renamed == Some(Renamed::Duplicate) {
            return self.canonical.to_string();
        }
        self.offer.own_namespace.expose(self.definition.name()).to_string()
    }

    /// Whether both are of one server and yet not the same.
    fn is_beside(&self, other: &Draft<'_>) -> bool {
        self.offer.upstream == other.offer.upstream
            && self.definition.raw() != other.definition.raw()
    }

    /// Sets it apart from another item of its server that has the same name.
    fn set_apart(&mut self, first: &Draft<'_>) {
        self.is_second = self.definition.name() == first.definition.name();
        let definition = String::from_utf8_lossy(self.definition.raw().as_bytes());
        let apart = suffixed(self.canonical.as_str(), &definition);
        self.canonical = Namespace::default().expose(&apart);
        self.name = self.canonical.clone();
        self.renamed = Some(Renamed::Duplicate);
    }

    fn is_same(&self, other: &Draft<'_>) -> bool {
        self.offer.upstream == other.offer.upstream
            && self.definition.name() == other.definition.name()
    }
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
