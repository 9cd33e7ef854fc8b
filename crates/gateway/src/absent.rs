//! Upstreams that are not there: who asks for something of theirs waits for them or is told how they are, as far as it
//! may know of them. Nothing of theirs is taken for unknown.

use std::sync::Arc;

use catalog::ceiling::Ceiling;
use catalog::error::Error as Refusal;
use catalog::snapshot::{Item, Offer};
use catalog::view::View;
use mcp::items::{Inventory, Kind};
use mcp::names::Namespace;
use upstream::answer::Answer;
use upstream::supervisor::{Phase, Upstream};

use crate::Gateway;
use crate::dispatch::Asking;
use crate::error::Error;
use crate::lazy::{may_hold, toolsets_on};
use crate::refresh::now;

/// What may stand between a namespace and the name of an item.
const SEPARATORS: [char; 4] = ['_', '.', ':', '+'];

/// The upstream that something is looked for at.
struct Absent {
    upstream: Upstream,
    /// The item, where the upstream has offered it before.
    item: Option<Item>,
}

impl Gateway {
    /// The upstream of an item, if the item was not confirmed by it since it was started.
    pub(crate) fn stale_origin(&self, item: &Item) -> Option<Upstream> {
        self.upstream(&item.origin.upstream).filter(Upstream::is_stale)
    }

    /// Answers a request about something that its upstream has offered at another time: when that has answered, and
    /// by what it offers now.
    pub(crate) async fn answer_anew(
        &self,
        asking: &Asking<'_>,
        upstream: &Upstream,
    ) -> Result<Answer, Error> {
        self.await_upstream(asking, upstream).await?;
        let view = asking.client.view();
        match self.answer_from(asking, &view).await {
            Err(Error::Catalog(refusal @ Refusal::Unknown { .. })) => {
                Err(self.why_unknown(&view, refusal))
            }
            answer => answer,
        }
    }

    /// Answers a request about something that a client's view does not have: it may be of an upstream that is not
    /// there.
    pub(crate) async fn answer_beyond(
        &self,
        asking: &Asking<'_>,
        refusal: Refusal,
    ) -> Result<Answer, Error> {
        let view = asking.client.view();
        match self.find_absent(&view, &refusal) {
            Some(Absent { upstream, item }) => {
                let anew = self.answer_anew(asking, &upstream).await;
                anew.map_err(|error| item.map_or(error.clone(), |item| error.of(&item)))
            }
            None => Err(self.why_unknown(&view, refusal)),
        }
    }

    /// Waits until an upstream has answered and the catalog shows what it offers; or why it is not there.
    async fn await_upstream(&self, asking: &Asking<'_>, upstream: &Upstream) -> Result<(), Error> {
        let underway = asking.client.begin(&asking.request.id)?;
        tokio::select! {
            biased;
            answered = upstream.answered() => answered?,
            () = underway.cancelled() => return Err(Error::Cancelled),
        }
        self.up_to_date().await;
        Ok(())
    }

    /// The upstream that is not there and that may have what a client asks for.
    fn find_absent(&self, view: &View, refusal: &Refusal) -> Option<Absent> {
        let Refusal::Unknown { kind, asked, similar, .. } = refusal else { return None };
        let members = self.members();
        let starts = |upstream: &Upstream| matches!(upstream.status().phase, Phase::Starting);
        let is_absent =
            |upstream: &Upstream| !upstream.is_known() || upstream.is_stale() && starts(upstream);
        let absent: Vec<_> = members.iter().filter(|(_, upstream)| is_absent(upstream)).collect();
        if absent.is_empty() {
            return None;
        }
        let last: Vec<_> = absent.iter().map(|(_, upstream)| upstream.last_inventory()).collect();
        let offers = absent.iter().zip(&last).filter_map(|((namespace, upstream), last)| {
            Some(offer(namespace, upstream, last.as_ref()?))
        });
        let offers: Vec<_> = offers.collect();
        if let Some(item) = self.find_among(view, &offers, *kind, asked) {
            let upstream = members.get(&item.origin.upstream)?.clone();
            return Some(Absent { upstream, item: Some(item) });
        }
        let toolsets = toolsets_on(view);
        let is_in_toolset = |namespace: &Namespace, upstream: &Upstream| {
            let member = (namespace.clone(), upstream.clone());
            let mut toolsets = toolsets.iter().filter_map(|on| self.0.rules.toolsets.get(*on));
            toolsets.any(|on| is_below(asked, &on.name) && may_hold(&members.list, on, &member))
        };
        let named = absent.into_iter().filter(|(namespace, upstream)| {
            // Where there is no prefix, any name may be of it; but one that is like another is rather that.
            let may_be_its = is_under(view, namespace, asked)
                || is_below(asked, upstream.name().as_str())
                || is_in_toolset(namespace, upstream)
                || namespace.as_str().is_empty() && (similar.is_empty() || starts(upstream));
            may_be_its && view.scope().holds(namespace) && self.is_shown(view, namespace, upstream)
        });
        let (_, upstream) = named.max_by_key(|(namespace, _)| namespace.as_str().len())?;
        Some(Absent { upstream: upstream.clone(), item: None })
    }

    /// Why a client can't use what its view does not have, when nobody is waited for any more.
    pub(crate) fn why_unknown(&self, view: &View, refusal: Refusal) -> Error {
        self.find_lost(view, &refusal)
            .or_else(|| self.refused_folder_of(view, &refusal))
            .unwrap_or_else(|| refusal.into())
    }

    /// An item of upstreams whose items are in no list, if a client could see it, were they there.
    pub(crate) fn find_among(
        &self,
        view: &View,
        offers: &[Offer<'_>],
        kind: Kind,
        asked: &str,
    ) -> Option<Item> {
        if offers.is_empty() {
            return None;
        }
        let scope = view.scope();
        let catalog = scope.assemble(offers, &self.0.rules);
        let ceiling = Ceiling::of(&catalog, &catalog, &self.0.policies, scope, now());
        let selection = view.selection().clone();
        let view = View::new(Arc::new(catalog), Arc::new(ceiling), selection, Arc::clone(scope));
        let found = match kind {
            Kind::Resource => match view.resolve_uri(asked) {
                Ok(target) => Ok(target.item),
                Err(_) => view.find(kind, asked),
            },
            _ => view.find(kind, asked),
        };
        found.ok().cloned()
    }
}

/// What an upstream has offered.
pub(crate) fn offer<'a>(
    namespace: &'a Namespace,
    upstream: &'a Upstream,
    inventory: &'a Inventory,
) -> Offer<'a> {
    let (upstream, own_namespace) = (upstream.name(), namespace);
    Offer { upstream, namespace, own_namespace, inventory, toolset: None }
}

/// Whether a name that nobody has would stand in this namespace.
pub(crate) fn is_under(view: &View, namespace: &Namespace, asked: &str) -> bool {
    view.scope().namespace.as_ref() == Some(namespace) || is_below(asked, namespace.as_str())
}

/// Whether a name is written as those are that belong to `prefix`.
fn is_below(asked: &str, prefix: &str) -> bool {
    let rest = asked.strip_prefix(prefix).filter(|_| !prefix.is_empty());
    rest.is_some_and(|rest| rest.starts_with(SEPARATORS))
}
