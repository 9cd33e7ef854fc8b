//! Expanded resource templates: which template a URI was made from, and whose it is.
//!
//! The one place where a prefix is taken off a name: an expanded URI is in no table.

use mcp::items::{Definition, Kind};
use mcp::names::{NamespacedName, UpstreamName, UriStyle};
use mcp::uri_template::UriTemplate;

use crate::snapshot::{Catalog, Item, Offer, Rules};

/// How the URIs of a template are recognised and shown.
#[derive(Clone, Debug)]
pub(crate) struct Template {
    matcher: UriTemplate,
    /// What may stand before an expanded URI, longest first.
    prefixes: Vec<String>,
    /// Those under which it is shown; any other is an alias.
    shown: [String; 2],
    style: UriStyle,
}

impl Template {
    pub fn of(definition: &Definition, offer: &Offer<'_>, rules: &Rules) -> Template {
        let shown = UriStyle::ALL.map(|style| offer.namespace.prefix(style));
        let mut prefixes = shown.to_vec();
        prefixes.push(format!("{}_", offer.upstream));
        prefixes.push(String::new());
        prefixes.sort_by_key(|prefix| std::cmp::Reverse(prefix.len()));
        prefixes.dedup();
        let matcher = UriTemplate::parse(definition.name());
        Template { matcher, prefixes, shown, style: rules.uri_style }
    }
}

/// A template with the URI to ask its upstream for.
pub type Expanded<'a, 'u> = (&'a Item, &'u str);

/// What a URI was expanded from.
#[derive(Debug)]
pub enum Expansion<'a, 'u> {
    Found(Expanded<'a, 'u>),
    /// It has no prefix, and templates of several upstreams fit.
    Ambiguous(Vec<Expanded<'a, 'u>>),
    Unknown,
}

impl Catalog {
    /// The template that `uri` was expanded from, of those that count.
    ///
    /// A link in a result is as its server wrote it, so a bare URI tells nothing of the server: where those of
    /// several fit, none is meant.
    pub fn expanded_from<'a, 'u>(
        &'a self,
        uri: &'u str,
        counts: impl Fn(&Item) -> bool,
    ) -> Expansion<'a, 'u> {
        let fits = |item: &'a Item| {
            let template = item.template.as_ref()?;
            let bare = |prefix: &String| uri.strip_prefix(prefix.as_str());
            let bare = template.prefixes.iter().filter_map(bare);
            let bare = bare.into_iter().find(|bare| template.matcher.fits(bare))?;
            let prefix = &uri[..uri.len() - bare.len()];
            let is_shown = template.shown.iter().any(|shown| shown == prefix);
            Some((prefix.len() + template.matcher.literal_len(), is_shown, (item, bare)))
        };
        let items = self.items(Kind::Template).iter().filter(|item| counts(item));
        let mut fitting: Vec<_> = items.filter_map(fits).collect();
        // Stable, so that of equals the first in listing order is meant.
        fitting.sort_by_key(|(len, is_shown, _)| std::cmp::Reverse((*len, *is_shown)));
        let Some((_, is_shown, best)) = fitting.first().copied() else {
            return Expansion::Unknown;
        };
        let mut rivals: Vec<Expanded<'_, '_>> = Vec::new();
        for (_, _, fit) in fitting {
            if fit.1 == uri
                && rivals.iter().all(|(rival, _)| rival.origin.upstream != fit.0.origin.upstream)
            {
                rivals.push(fit);
            }
        }
        if !is_shown && best.1 == uri && rivals.len() > 1 {
            return Expansion::Ambiguous(rivals);
        }
        Expansion::Found(best)
    }
}

impl Catalog {
    /// The resource or template of an upstream that has a URI as the upstream writes it, of those that count.
    pub fn resource_of(
        &self,
        upstream: &UpstreamName,
        uri: &str,
        counts: impl Fn(&Item) -> bool,
    ) -> Option<&Item> {
        let is_own = |item: &Item| item.origin.upstream == *upstream && counts(item);
        let mut resources = self.items(Kind::Resource).iter();
        let listed = resources.find(|item| *item.origin.name == *uri && is_own(item));
        listed.or_else(|| match self.expanded_from(uri, is_own) {
            Expansion::Found((item, bare)) if bare == uri => Some(item),
            _ => None,
        })
    }
}

impl Item {
    /// A URI of this item's upstream under a name that means no other's.
    pub(crate) fn spelled(&self, uri: &str) -> NamespacedName {
        match &self.template {
            _ if self.origin.namespace.as_str().is_empty() => self.origin.upstream.expose_uri(uri),
            Some(template) => self.origin.namespace.expose_uri(uri, template.style),
            None => self.name.clone(),
        }
    }
}
