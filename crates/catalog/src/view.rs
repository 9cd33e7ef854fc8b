//! Visibility: what one client may list and call now.
//!
//! Ceiling and selection over one snapshot, immutable like all of them. Lists are rendered once and then served as
//! the same bytes; listing and calling ask the same question, [`View::is_visible`].

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use bytes::{BufMut, Bytes, BytesMut};
use mcp::items::Kind;
use mcp::names::UpstreamName;
use mcp::rpc::Raw;
use mcp::translate;
use mcp::version::Era;

use crate::ceiling::Ceiling;
use crate::error::Error;
use crate::expansion::{Expanded, Expansion};
use crate::limits::STUB_TOKENS_MAX;
use crate::narrowing::Narrowing;
use crate::policy::Subject;
use crate::profile::Lists;
use crate::scope::Scope;
use crate::selection::Selection;
use crate::snapshot::{Catalog, Item, Lookup, Origin};
use crate::suggest::similar;
use crate::surface::mark::Marked;
use crate::surface::{Inactive, Surface, stub};
use crate::tokens::estimate;
use crate::toolset::{Manner, Resolution};

#[derive(Debug)]
pub struct View {
    catalog: Arc<Catalog>,
    ceiling: Arc<Ceiling>,
    selection: Selection,
    /// What the references of the equipped toolset mean here.
    resolution: Option<Resolution>,
    /// What is on because the client chose it as it connected.
    begun: Option<Begun>,
    /// Items that are on while another one, of a toolset before theirs, has their name.
    shadowed: HashSet<(Kind, usize)>,
    scope: Arc<Scope>,
    /// Whether stubs stand for inactive tools.
    has_stubs: OnceLock<bool>,
    lists: [OnceLock<Bytes>; Kind::ALL.len()],
    /// The same for clients of the modern era.
    modern_lists: [OnceLock<Bytes>; Kind::ALL.len()],
}

/// What a name asked for leads to: the item, and the name or URI to ask its upstream for.
#[derive(Debug)]
pub struct Target<'a> {
    pub item: &'a Item,
    pub upstream_name: &'a str,
}

impl View {
    /// The ceiling is one of the same snapshot.
    pub fn new(
        catalog: Arc<Catalog>,
        ceiling: Arc<Ceiling>,
        selection: Selection,
        scope: Arc<Scope>,
    ) -> View {
        let equipped = selection.equipped.as_ref().filter(|_| scope.surface == Surface::Toolset);
        let resolution = equipped.map(|toolset| {
            let allows_stale = catalog.allows_stale_references();
            let manner = Manner { allows_stale, hides_names: !ceiling.is_open() };
            Resolution::of(toolset, &catalog, |item| ceiling.holds(item), manner)
        });
        let begun = scope.beginning().map(|choice| Begun::of(choice, &catalog, &scope));
        let mut view = View {
            catalog,
            ceiling,
            selection,
            resolution,
            begun,
            shadowed: HashSet::new(),
            scope,
            has_stubs: OnceLock::new(),
            lists: Default::default(),
            modern_lists: Default::default(),
        };
        view.shadowed = view.shadowed();
        view
    }

    /// The same with another selection.
    pub fn selecting(&self, selection: Selection) -> View {
        let (catalog, ceiling) = (Arc::clone(&self.catalog), Arc::clone(&self.ceiling));
        View::new(catalog, ceiling, selection, Arc::clone(&self.scope))
    }

    /// The whole snapshot, with what is outside of the ceiling.
    pub fn catalog(&self) -> &Arc<Catalog> {
        &self.catalog
    }

    pub fn ceiling(&self) -> &Ceiling {
        &self.ceiling
    }

    pub fn scope(&self) -> &Arc<Scope> {
        &self.scope
    }

    pub fn selection(&self) -> &Selection {
        &self.selection
    }

    /// Whether an item is on, by what the client has chosen; it may still be outside of the ceiling.
    pub fn is_on(&self, item: &Item) -> bool {
        match self.scope.surface {
            Surface::Activate { .. } => {
                let starts_on = || match &self.begun {
                    Some(begun) => begun.holds(item) || item.starts_on && item.kind != Kind::Tool,
                    None => item.starts_on,
                };
                item.kind == Kind::Prompt || self.selection.of(item).unwrap_or_else(starts_on)
            }
            Surface::Dynamic | Surface::Static => {
                self.selection.enables(item)
                    || self.begun.as_ref().is_some_and(|begun| begun.holds(item))
            }
            // The equipped toolset is looked at apart: what its references mean is known here.
            Surface::Filter | Surface::Namespace | Surface::Permission | Surface::Toolset => true,
        }
    }

    /// The one decision: whether this client may see and use `item` now.
    pub fn is_visible(&self, item: &Item) -> bool {
        self.ceiling.holds(item)
            && self.is_on(item)
            && (self.shadowed.is_empty() || !self.shadowed.contains(&(item.kind, item.place)))
            && (item.kind != Kind::Tool
                || self.resolution.as_ref().is_none_or(|resolution| resolution.holds(item)))
    }

    /// What the equipped toolset means here, if one is.
    pub fn resolution(&self) -> Option<&Resolution> {
        self.resolution.as_ref()
    }

    /// All within the ceiling, on or not, in listing order.
    pub fn items(&self, kind: Kind) -> impl Iterator<Item = &Item> {
        self.catalog.items(kind).iter().filter(|item| self.ceiling.holds(item))
    }

    /// What a spelling means within the ceiling.
    pub fn look_up(&self, kind: Kind, asked: &str) -> Lookup<'_> {
        match self.catalog.look_up(kind, asked) {
            Lookup::Found(item) if self.ceiling.holds(item) => Lookup::Found(item),
            Lookup::Unknown => Lookup::Unknown,
            // What is hidden takes no spelling away from what is not.
            Lookup::Found(_) => self.within(self.catalog.spelled(kind, asked)),
            Lookup::Ambiguous(items) => self.within(items),
        }
    }

    /// What of several items is meant, if only those within the ceiling count.
    fn within<'a>(&self, mut items: Vec<&'a Item>) -> Lookup<'a> {
        items.retain(|item| self.ceiling.holds(item));
        let is_by_toolset = self.scope.surface.is_by_toolset();
        if is_by_toolset && items.iter().any(|item| self.is_visible(item)) {
            // The name is that of whoever can be used by it now.
            items.retain(|item| self.is_visible(item));
        }
        // In several toolsets it is the same item.
        items.dedup_by(|a, b| a.origin == b.origin);
        match items[..] {
            [] => Lookup::Unknown,
            [one] => Lookup::Found(one),
            _ => Lookup::Ambiguous(items),
        }
    }

    /// Of items that share a name and are on, all but the first.
    fn shadowed(&self) -> HashSet<(Kind, usize)> {
        let groups = Kind::ALL.into_iter().flat_map(|kind| self.catalog.contested(kind));
        let is_on = |item: &&Item| self.ceiling.holds(item) && self.is_on(item);
        let later = groups.flat_map(|group| group.iter().filter(is_on).skip(1));
        later.map(|item| (item.kind, item.place)).collect()
    }

    /// The result of a list request.
    pub fn list(&self, kind: Kind) -> &Bytes {
        self.lists[kind as usize].get_or_init(|| self.render(kind))
    }

    /// The result of a list request of an era.
    pub fn list_in(&self, kind: Kind, era: Era) -> &Bytes {
        let list = self.list(kind);
        match era {
            Era::Legacy => list,
            Era::Modern => self.modern_lists[kind as usize]
                .get_or_init(|| translate::complete(&Raw::trusted(list.clone()), true).into()),
        }
    }

    fn render(&self, kind: Kind) -> Bytes {
        let mut out = BytesMut::new();
        out.put_slice(format!("{{\"{}\":[", kind.list_member()).as_bytes());
        let start = out.len();
        let mut add = |definition: &[u8]| {
            if out.len() > start {
                out.put_u8(b',');
            }
            out.put_slice(definition);
        };
        let marked = if kind == Kind::Tool { Marked::of(self) } else { Marked::Nothing };
        if kind == Kind::Tool
            && let Some(tools) = self.scope.surface.control_tools(self)
        {
            add(marked.control_tools(tools).as_bytes());
        }
        for item in self.items(kind) {
            if self.is_visible(item) {
                add(&marked.active(self.definition_of(item)));
            } else if kind == Kind::Tool && self.has_stubs() {
                add(stub(item).as_bytes());
            }
        }
        out.put_slice(b"]}");
        out.freeze()
    }

    /// Whether stubs stand for inactive tools in the list.
    pub fn has_stubs(&self) -> bool {
        *self.has_stubs.get_or_init(|| match self.inactive() {
            Some(Inactive::Stub) => true,
            Some(Inactive::Auto) if self.lists_once() => {
                // All of them count, so that what is switched on takes no stub from another.
                let mut room = STUB_TOKENS_MAX;
                self.items(Kind::Tool).all(|item| {
                    let left = room.checked_sub(estimate(stub(item).as_bytes()));
                    room = left.unwrap_or_default();
                    left.is_some()
                })
            }
            Some(Inactive::Auto | Inactive::Hidden) | None => false,
        })
    }

    /// Whether the client never lists again what it has listed once.
    pub fn lists_once(&self) -> bool {
        self.scope.profile.lists == Lists::Once
    }

    /// What becomes of inactive tools, where the client switches single ones on.
    fn inactive(&self) -> Option<Inactive> {
        let Surface::Activate { inactive } = self.scope.surface else { return None };
        Some(self.scope.profile.inactive.unwrap_or(inactive))
    }

    /// The definition of an item as it is shown, with the notes that the equipped toolset has on it.
    pub fn definition_of(&self, item: &Item) -> Bytes {
        let equipped = self.selection.equipped.as_ref().filter(|_| self.resolution.is_some());
        let notes = equipped.map(|toolset| toolset.notes_on(item)).unwrap_or_default();
        if notes.is_empty() { item.definition.clone() } else { item.annotated(&notes) }
    }

    /// The item that `asked` means, visible or not.
    pub fn find(&self, kind: Kind, asked: &str) -> Result<&Item, Error> {
        match self.look_up(kind, asked) {
            Lookup::Found(item) => Ok(item),
            Lookup::Unknown => Err(self.unknown(kind, asked)),
            Lookup::Ambiguous(items) => {
                let candidates = items.iter().map(|item| item.name.clone()).collect();
                Err(Error::Ambiguous { kind, asked: asked.to_owned(), candidates })
            }
        }
    }

    /// The item that `asked` means, if it may be used now.
    pub fn resolve(&self, kind: Kind, asked: &str) -> Result<Target<'_>, Error> {
        let item = self.find(kind, asked)?;
        if !self.is_visible(item) && !self.is_callable_unlisted(item) {
            return Err(self.refused(item));
        }
        Ok(Target { item, upstream_name: &item.origin.name })
    }

    /// The resource that `uri` means, or the template it was expanded from.
    pub fn resolve_uri<'a>(&'a self, uri: &'a str) -> Result<Target<'a>, Error> {
        let unknown = match self.find(Kind::Resource, uri) {
            Err(error @ Error::Unknown { .. }) => error,
            Ok(item) => {
                self.check_uncontested(item, uri)?;
                return self.resolve(Kind::Resource, uri);
            }
            Err(ambiguous) => return Err(ambiguous),
        };
        // A resource that is hidden is not to be had through a template either.
        if !matches!(self.catalog.look_up(Kind::Resource, uri), Lookup::Unknown) {
            return Err(unknown);
        }
        let (item, bare) = match self.catalog.expanded_from(uri, |item| self.ceiling.holds(item)) {
            Expansion::Found(found) => found,
            Expansion::Ambiguous(rivals) => return Err(contested(uri, rivals.into_iter())),
            Expansion::Unknown => return Err(unknown),
        };
        if !self.is_visible(item) {
            return Err(self.refused(item));
        }
        Ok(Target { item, upstream_name: bare })
    }

    /// The resource that `uri` means to the upstream that has named it.
    pub fn resolve_uri_of<'a>(
        &'a self,
        upstream: &UpstreamName,
        uri: &'a str,
    ) -> Result<Target<'a>, Error> {
        let visible = self.catalog.resource_of(upstream, uri, |item| self.is_visible(item));
        if let Some(item) = visible {
            return Ok(Target { item, upstream_name: uri });
        }
        if let Some(item) = self.catalog.resource_of(upstream, uri, |item| self.ceiling.holds(item))
        {
            return Err(self.refused(item));
        }
        // Another server's is for the client to choose, by a name that says so.
        let mut error = self.unknown(Kind::Resource, uri);
        if let (Ok(other), Error::Unknown { similar, .. }) = (self.resolve_uri(uri), &mut error) {
            *similar = vec![other.item.spelled(other.upstream_name)];
        }
        Err(error)
    }

    /// Refuses the bare URI of a listed resource that could also come from another upstream's template.
    fn check_uncontested(&self, item: &Item, uri: &str) -> Result<(), Error> {
        if item.name.as_str() == uri || *item.origin.name != *uri {
            return Ok(());
        }
        let upstream = &item.origin.upstream;
        let is_rival = |item: &Item| self.ceiling.holds(item) && item.origin.upstream != *upstream;
        let rivals = match self.catalog.expanded_from(uri, is_rival) {
            Expansion::Found(rival) if rival.1 == uri => vec![rival],
            Expansion::Ambiguous(rivals) => rivals,
            Expansion::Found(_) | Expansion::Unknown => return Ok(()),
        };
        Err(contested(uri, std::iter::once((item, uri)).chain(rivals)))
    }

    /// Whether a tool can be called though it is not listed: where that is wanted, and a client could
    /// have it listed.
    fn is_callable_unlisted(&self, item: &Item) -> bool {
        let exposure = self.catalog.exposure();
        exposure.calls_unlisted
            && self.scope.surface == Surface::Dynamic
            && item.kind == Kind::Tool
            && item.toolsets.iter().any(|place| exposure.permits(*place))
    }

    fn refused(&self, item: &Item) -> Error {
        let remedy = self.scope.surface.remedy(self, item);
        Error::Inactive { kind: item.kind, name: item.name.clone(), remedy }
    }

    /// The error for a name that nothing has.
    pub fn unknown(&self, kind: Kind, asked: &str) -> Error {
        let items = self.items(kind);
        let similar = match kind {
            Kind::Resource => similar(asked, items.chain(self.items(Kind::Template))),
            _ => similar(asked, items),
        };
        // A list or catalog without any of them is no help.
        let has_some = self.items(kind).next().is_some()
            || kind == Kind::Resource && self.items(Kind::Template).next().is_some();
        let otherwise = match kind {
            _ if has_some => self.scope.surface.where_to_look(kind),
            Kind::Tool => "there are no tools",
            Kind::Prompt => "there are no prompts",
            Kind::Resource | Kind::Template => "there are no resources",
        };
        Error::Unknown { kind, asked: asked.to_owned(), similar, otherwise }
    }
}

/// The items of a snapshot that a client has chosen as it connected.
#[derive(Debug)]
struct Begun(HashSet<(Kind, usize)>);

impl Begun {
    fn of(choice: &Narrowing, catalog: &Catalog, scope: &Scope) -> Begun {
        let items = Kind::ALL.into_iter().flat_map(|kind| catalog.items(kind));
        if scope.surface != Surface::Dynamic {
            let chosen = items.filter(|item| choice.holds(&Subject::of(item)));
            return Begun(chosen.map(|item| (item.kind, item.place)).collect());
        }
        // Whole toolsets are enabled. A single tool is shown once, for the first toolset that it is in.
        let exposure = catalog.exposure();
        let is_chosen =
            |item: &&Item| choice.toolsets().any(|place| item.toolsets.contains(&place));
        let tools = || catalog.items(Kind::Tool).iter();
        let mut known: HashSet<&Origin> = tools().filter(is_chosen).map(|i| &i.origin).collect();
        let can_be = |item: &&Item| {
            item.kind == Kind::Tool
                && item.toolsets.iter().any(|place| exposure.permits(*place))
                && choice.names(&Subject::of(item))
        };
        let mut single: Vec<_> = items.filter(can_be).collect();
        single.sort_by_key(|item| item.toolsets.first().copied());
        single.retain(|item| known.insert(&item.origin));
        Begun(single.into_iter().map(|item| (item.kind, item.place)).collect())
    }

    fn holds(&self, item: &Item) -> bool {
        self.0.contains(&(item.kind, item.place))
    }
}

/// The error for a bare URI that could be of several upstreams.
fn contested<'a>(uri: &str, rivals: impl Iterator<Item = Expanded<'a, 'a>>) -> Error {
    let candidates = rivals.map(|(item, bare)| item.spelled(bare)).collect();
    Error::Ambiguous { kind: Kind::Resource, asked: uri.to_owned(), candidates }
}

#[cfg(test)]
mod tests;
