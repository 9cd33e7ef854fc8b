//! A catalog from a few lines of text, for the tests of this crate.
//!
//! A line is `upstream[/namespace]: item item …`; an item with `://` is a resource, with `{` a
//! template, with a leading `!` a prompt, otherwise a tool.

use std::sync::Arc;

use mcp::items::{Inventory, Kind};
use mcp::names::{Namespace, UpstreamName, UriStyle};
use mcp::rpc::Raw;

use crate::exposure::Exposure;
use crate::patterns::Patterns;
use crate::scope::Scope;
use crate::selection::Selection;
use crate::snapshot::{Catalog, Offer, Rules};
use crate::surface::Surface;
use crate::toolset::{Toolset, Toolsets};
use crate::view::View;

pub fn catalog(text: &str, starts_on: &[&str]) -> Arc<Catalog> {
    catalog_with(text, starts_on, None)
}

pub fn catalog_with(text: &str, starts_on: &[&str], uri_style: Option<UriStyle>) -> Arc<Catalog> {
    let starts_on = Patterns::parse(starts_on).unwrap();
    Arc::new(assemble(text, &Rules { starts_on, uri_style, ..Rules::default() }, &Scope::default()))
}

/// All of a catalog, as nobody has chosen anything.
pub fn view(text: &str, starts_on: &[&str]) -> View {
    View::new(catalog(text, starts_on), Arc::default(), Selection::default(), Arc::default())
}

pub fn scoped_catalog(text: &str, scope: &Scope) -> Catalog {
    assemble(text, &Rules::default(), scope)
}

/// A view by toolset; a line of `toolsets` is `name: pattern pattern …`.
pub fn toolset_view(text: &str, toolsets: &str, exposure: Exposure, surface: Surface) -> View {
    let toolset = |line: &str| {
        let (name, patterns) = line.split_once(": ").unwrap();
        let patterns: Vec<_> = patterns.split_whitespace().collect();
        let patterns = Patterns::parse(&patterns).unwrap();
        Toolset { name: name.into(), patterns, ..Toolset::default() }
    };
    let toolsets = Toolsets::new(toolsets.lines().map(toolset).collect());
    let rules = Rules { toolsets, exposure, ..Rules::default() };
    let scope = Scope { surface, ..Scope::default() };
    let catalog = Arc::new(assemble(text, &rules, &scope));
    View::new(catalog, Arc::default(), Selection::first(&rules, &scope), Arc::new(scope))
}

fn assemble(text: &str, rules: &Rules, scope: &Scope) -> Catalog {
    assemble_of(&text.lines().map(parse_line).collect::<Vec<_>>(), rules, scope)
}

/// The catalog of what upstreams offer.
pub fn assemble_of(
    offered: &[(UpstreamName, Namespace, Inventory)],
    rules: &Rules,
    scope: &Scope,
) -> Catalog {
    scope.assemble(&offers(offered), rules, None)
}

/// What servers bring, as they are.
pub fn offers(offered: &[(UpstreamName, Namespace, Inventory)]) -> Vec<Offer<'_>> {
    let mut offers = Vec::new();
    for (upstream, namespace, inventory) in offered {
        let own_namespace = namespace;
        let (purpose, toolset) = (None, None);
        offers.push(Offer { upstream, namespace, own_namespace, inventory, purpose, toolset });
    }
    offers
}

fn parse_line(line: &str) -> (UpstreamName, Namespace, Inventory) {
    let (name, items) = line.split_once(": ").unwrap();
    let (upstream, namespace) = name.split_once('/').unwrap_or((name, name));
    let mut inventory = Inventory::default();
    for kind in Kind::ALL {
        let of_kind = items.split_whitespace().filter(|item| kind_of(item) == kind);
        inventory.set(kind, of_kind.map(|item| definition(kind, item.trim_start_matches('!'))));
    }
    (upstream.parse().unwrap(), namespace.parse().unwrap(), inventory)
}

fn kind_of(item: &str) -> Kind {
    match item {
        _ if item.starts_with('!') => Kind::Prompt,
        _ if item.contains('{') => Kind::Template,
        _ if item.contains("://") => Kind::Resource,
        _ => Kind::Tool,
    }
}

fn definition(kind: Kind, name: &str) -> Raw {
    let key = kind.key();
    Raw::trusted(format!(r#"{{"{key}":"{name}","description":"about {name}","inputSchema":{{}}}}"#))
}
