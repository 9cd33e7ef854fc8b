//! One item of a snapshot: what it is called, where it comes from, what it is known by.

use std::sync::OnceLock;

use bytes::Bytes;
use mcp::headers::ParamHeader;
use mcp::items::Kind;
use mcp::json;
use mcp::names::{NamespacedName, UriStyle};
use mcp::rpc::Raw;
use mcp::text::{first_words, is_hidden};

use super::shelf::Draft;
use super::{Origin, Rules};
use crate::expansion::Template;
use crate::naming::Renamed;
use crate::profile::Naming;
use crate::ref_id::{RefId, legacy};
use crate::toolset::{Note, ToolsetPlace};

/// Length of a description in the catalog of `toolman_activate`, in characters.
const SUMMARY_CHARS: usize = 132;

/// One exposed item.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: Kind,
    /// The place in the list of its kind, from 0.
    pub place: usize,
    pub name: NamespacedName,
    /// The name that it would have if every name fitted: the same for all clients, but for the style of URIs.
    pub canonical: NamespacedName,
    /// Names under which other clients see it, if not all see the same.
    pub also: Box<[NamespacedName]>,
    /// Why it is not called what its server calls it.
    pub renamed: Option<Renamed>,
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

    /// The item that a draft is to be.
    pub(super) fn of(kind: Kind, place: usize, draft: &Draft<'_>, rules: &Rules) -> Item {
        let Draft { name, canonical, definition, offer, .. } = draft;
        let also = also(kind, draft);
        let plain = offer.namespace.expose(definition.name());
        let legal = offer.namespace.expose_uri(definition.name(), UriStyle::Rfc);
        let names = [plain.as_str(), canonical.as_str(), legal.as_str()];
        let names: Vec<_> =
            names.into_iter().chain(also.iter().map(NamespacedName::as_str)).collect();
        Item {
            kind,
            place,
            origin: Origin {
                upstream: offer.upstream.clone(),
                namespace: offer.own_namespace.clone(),
                name: definition.name().into(),
            },
            definition: match draft.renamed {
                None => definition.renamed(name.as_str()),
                Some(_) => definition.retitled(name.as_str()),
            },
            summary: summarize(definition.description()),
            starts_on: rules.starts_on.matches(offer.upstream, &names),
            toolsets: draft.toolsets.clone(),
            param_headers: definition.param_headers().to_vec(),
            template: (kind == Kind::Template)
                .then(|| Template::of(definition, offer, draft.uri_style)),
            source: definition.raw().clone(),
            ref_id: OnceLock::new(),
            legacy_hashes: OnceLock::new(),
            name: name.clone(),
            canonical: canonical.clone(),
            also,
            renamed: draft.renamed,
        }
    }

    /// The same item at another place.
    pub(super) fn at(&self, place: usize) -> Item {
        Item { place, ..self.clone() }
    }
}

/// The names that it has for other clients, where its own does not fit all of them.
fn also(kind: Kind, draft: &Draft<'_>) -> Box<[NamespacedName]> {
    let canonical = draft.canonical.as_str();
    // What fits an endpoint fits the protocol.
    if Naming::ENDPOINT.misfit(kind, canonical).is_none() {
        return Box::default();
    }
    let namings = [Naming::PROTOCOL, Naming::ENDPOINT].into_iter();
    let misfitting = namings.filter(|naming| naming.misfit(kind, canonical).is_some());
    misfitting.map(|naming| naming.fit(kind, canonical, &draft.identity())).collect()
}

/// A description on one line without hidden characters, cut at the last word within [`SUMMARY_CHARS`].
pub(super) fn summarize(description: &str) -> Box<str> {
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
    first_words(&summary, SUMMARY_CHARS).into()
}
