//! Lazy upstreams: started when what a client has selected needs them, ended once nobody does. TC-25

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use catalog::patterns::Patterns;
use catalog::snapshot::Rules;
use catalog::surface::Surface;
use catalog::toolset::{Toolset, ToolsetPlace};
use catalog::view::View;
use mcp::names::Namespace;
use tokio::time::timeout;
use upstream::supervisor::{Phase, Upstream};

use crate::client::Client;
use crate::limits::{LAZY_START_MAX, SETTLE_MAX};
use crate::{Clients, Gateway};

/// An upstream that runs only while it is needed.
pub(crate) struct Lazy {
    namespace: Namespace,
    upstream: Upstream,
    /// The toolsets that may hold something of it.
    toolsets: BTreeSet<ToolsetPlace>,
    /// How many clients are about to enable one of them; changed while the clients are held.
    leases: AtomicUsize,
}

/// What keeps upstreams running until a client's selection does.
pub(crate) struct Lease<'a> {
    gateway: &'a Gateway,
    lazy: Vec<Arc<Lazy>>,
}

impl Lease<'_> {
    /// Waits until they are there or have failed; not for ever.
    pub(crate) async fn started(&self) {
        _ = timeout(LAZY_START_MAX, self.gateway.started(&self.lazy)).await;
    }
}

impl Drop for Lease<'_> {
    fn drop(&mut self) {
        if !self.lazy.is_empty() {
            let clients = self.gateway.clients();
            for lazy in &self.lazy {
                lazy.leases.fetch_sub(1, Ordering::Relaxed);
            }
            self.gateway.review_needs_of(&clients);
        }
    }
}

/// Those of all upstreams that are lazy.
pub(crate) fn among(upstreams: &[(Namespace, Upstream)], rules: &Rules) -> Vec<Arc<Lazy>> {
    let lazy = upstreams.iter().filter(|(_, upstream)| upstream.is_lazy());
    let lazy = lazy.map(|member| {
        let holding = rules.toolsets.iter().filter(|(_, set)| may_hold(upstreams, set, member));
        let toolsets = holding.map(|(place, _)| place).collect();
        Arc::new(Lazy {
            namespace: member.0.clone(),
            upstream: member.1.clone(),
            toolsets,
            leases: AtomicUsize::new(0),
        })
    });
    lazy.collect()
}

/// Whether something of an upstream may be in a toolset, as far as that is known without asking it.
pub(crate) fn may_hold(
    upstreams: &[(Namespace, Upstream)],
    toolset: &Toolset,
    member: &(Namespace, Upstream),
) -> bool {
    may_concern(upstreams, &toolset.patterns, member)
}

/// The same of patterns.
pub(crate) fn may_concern(
    upstreams: &[(Namespace, Upstream)],
    patterns: &Patterns,
    (namespace, upstream): &(Namespace, Upstream),
) -> bool {
    let others = upstreams.iter().filter(|(_, other)| other.name() != upstream.name());
    let others: Vec<_> =
        others.flat_map(|(namespace, other)| [namespace.as_str(), other.name().as_str()]).collect();
    patterns.may_concern(&[namespace.as_str(), upstream.name().as_str()], &others)
}

/// The toolsets that are on for a client, where it has its items by toolsets.
pub(crate) fn toolsets_on(view: &View) -> Vec<ToolsetPlace> {
    match view.scope().surface {
        Surface::Dynamic | Surface::Static => view.selection().enabled.iter().copied().collect(),
        Surface::Permission => view.scope().rights.grants().unwrap_or_default().to_vec(),
        _ => Vec::new(),
    }
}

impl Gateway {
    /// Starts all upstreams that rest, for who wants to see everything.
    pub fn wake_all(&self) {
        self.members().iter().for_each(|(_, upstream)| upstream.need(true));
    }

    /// Starts what a new client needs, if nothing is known of it.
    pub(crate) fn wake_for(&self, view: &View) {
        for lazy in self.0.members.load().lazy.iter().filter(|lazy| self.is_needed(lazy, view)) {
            lazy.upstream.need_lists(true);
        }
    }

    /// Starts what a toolset may hold something of, for a client that is about to enable it.
    pub(crate) fn lease(&self, view: &View, place: ToolsetPlace) -> Lease<'_> {
        let members = self.members();
        let lazy = members.lazy.iter().filter(|lazy| lazy.toolsets.contains(&place));
        let lazy: Vec<_> = lazy.filter(|lazy| self.is_within(lazy, view)).cloned().collect();
        if !lazy.is_empty() {
            let _clients = self.clients();
            for lazy in &lazy {
                lazy.leases.fetch_add(1, Ordering::Relaxed);
                lazy.upstream.need(true);
            }
        }
        Lease { gateway: self, lazy }
    }

    /// Waits while what a client needs is being started for it: many clients list only once.
    pub(crate) async fn woken_for(&self, client: &Client) {
        let view = client.view();
        let members = self.members();
        let starts = |lazy: &&Arc<Lazy>| matches!(lazy.upstream.status().phase, Phase::Starting);
        let lazy = members.lazy.iter().filter(starts).filter(|lazy| self.is_needed(lazy, &view));
        _ = timeout(SETTLE_MAX, self.started(&lazy.cloned().collect::<Vec<_>>())).await;
    }

    /// Waits until these have answered, failed or run out of their time, and the catalog shows it.
    async fn started(&self, lazy: &[Arc<Lazy>]) {
        for lazy in lazy {
            lazy.upstream.listed().await;
        }
        if !lazy.is_empty() {
            self.up_to_date().await;
        }
    }

    /// Looks again which upstreams anybody needs.
    pub(crate) fn review_needs(&self) {
        if !self.0.members.load().lazy.is_empty() {
            self.review_needs_of(&self.clients());
        }
    }

    /// The same while the clients are held: of two reviews the later one counts.
    pub(crate) fn review_needs_of(&self, clients: &Clients) {
        for lazy in &self.members().lazy {
            let mut clients = clients.connected.values();
            let is_needed = lazy.leases.load(Ordering::Relaxed) > 0
                || clients.any(|client| self.is_needed(lazy, &client.view()));
            lazy.upstream.need_lists(is_needed);
        }
    }

    fn is_needed(&self, lazy: &Lazy, view: &View) -> bool {
        let is_chosen = || {
            view.scope().beginning().is_some_and(|choice| {
                let member = (lazy.namespace.clone(), lazy.upstream.clone());
                may_concern(&self.members().list, choice.singles(), &member)
            })
        };
        let is_selected = !view.scope().surface.is_by_toolset()
            || toolsets_on(view).iter().any(|place| lazy.toolsets.contains(place))
            || is_chosen();
        is_selected && self.is_within(lazy, view)
    }

    fn is_within(&self, lazy: &Lazy, view: &View) -> bool {
        view.scope().holds(&lazy.namespace) && self.is_shown(view, &lazy.namespace, &lazy.upstream)
    }
}
