//! Lazy upstreams: started when what a client has selected needs them, ended once nobody does. TC-25

use std::collections::BTreeSet;

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
}

/// Those of all upstreams that are lazy.
pub(crate) fn among(upstreams: &[(Namespace, Upstream)], rules: &Rules) -> Vec<Lazy> {
    let lazy = upstreams.iter().filter(|(_, upstream)| upstream.is_lazy());
    let lazy = lazy.map(|member| {
        let holding = rules.toolsets.iter().filter(|(_, set)| may_hold(upstreams, set, member));
        let toolsets = holding.map(|(place, _)| place).collect();
        Lazy { namespace: member.0.clone(), upstream: member.1.clone(), toolsets }
    });
    lazy.collect()
}

/// Whether something of an upstream may be in a toolset, as far as that is known without asking it.
pub(crate) fn may_hold(
    upstreams: &[(Namespace, Upstream)],
    toolset: &Toolset,
    (namespace, upstream): &(Namespace, Upstream),
) -> bool {
    let others = upstreams.iter().filter(|(_, other)| other.name() != upstream.name());
    let others: Vec<_> =
        others.flat_map(|(namespace, other)| [namespace.as_str(), other.name().as_str()]).collect();
    toolset.patterns.may_concern(&[namespace.as_str(), upstream.name().as_str()], &others)
}

impl Gateway {
    /// Starts all upstreams that rest, for who wants to see everything.
    pub fn wake_all(&self) {
        self.0.lazy.iter().for_each(|lazy| lazy.upstream.need(true));
    }

    /// Starts what a new client needs.
    pub(crate) fn wake_for(&self, view: &View) {
        for lazy in self.0.lazy.iter().filter(|lazy| self.is_needed(lazy, view)) {
            lazy.upstream.need(true);
        }
    }

    /// Starts what a toolset may hold something of, and waits until it is there or has failed; not for ever.
    pub(crate) async fn wake_toolset(&self, view: &View, place: ToolsetPlace) {
        let lazy = self.0.lazy.iter().filter(|lazy| lazy.toolsets.contains(&place));
        let lazy: Vec<_> = lazy.filter(|lazy| self.is_within(lazy, view)).collect();
        if lazy.is_empty() {
            return;
        }
        lazy.iter().for_each(|lazy| lazy.upstream.need(true));
        let started = async {
            for lazy in lazy {
                lazy.upstream.settled().await;
            }
            self.up_to_date().await;
        };
        _ = timeout(LAZY_START_MAX, started).await;
    }

    /// Waits while what a client needs is being started for it: many clients list only once.
    pub(crate) async fn woken_for(&self, client: &Client) {
        let view = client.view();
        let starts = |lazy: &&Lazy| matches!(lazy.upstream.status().phase, Phase::Starting);
        let lazy = self.0.lazy.iter().filter(starts).filter(|lazy| self.is_needed(lazy, &view));
        let lazy: Vec<_> = lazy.collect();
        if lazy.is_empty() {
            return;
        }
        let started = async {
            for lazy in lazy {
                lazy.upstream.settled().await;
            }
            self.up_to_date().await;
        };
        _ = timeout(SETTLE_MAX, started).await;
    }

    /// Looks again which upstreams anybody needs.
    pub(crate) fn review_needs(&self) {
        if !self.0.lazy.is_empty() {
            self.review_needs_of(&self.clients());
        }
    }

    /// The same while the clients are held: of two reviews the later one counts.
    pub(crate) fn review_needs_of(&self, clients: &Clients) {
        for lazy in &self.0.lazy {
            let mut clients = clients.connected.values();
            lazy.upstream.need(clients.any(|client| self.is_needed(lazy, &client.view())));
        }
    }

    fn is_needed(&self, lazy: &Lazy, view: &View) -> bool {
        let may_hold = |place: &ToolsetPlace| lazy.toolsets.contains(place);
        let is_selected = match view.scope().surface {
            Surface::Dynamic | Surface::Static => view.selection().enabled.iter().any(may_hold),
            Surface::Permission => {
                view.scope().rights.grants().unwrap_or_default().iter().any(may_hold)
            }
            _ => true,
        };
        is_selected && self.is_within(lazy, view)
    }

    fn is_within(&self, lazy: &Lazy, view: &View) -> bool {
        view.scope().holds(&lazy.namespace) && self.is_shown(view, &lazy.namespace, &lazy.upstream)
    }
}
