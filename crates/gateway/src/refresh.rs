//! Keeping the catalog: the one writer of snapshots.
//!
//! Listens to the upstreams, assembles, hands every client its new view, and tells those whose
//! lists are other ones now.

use std::sync::Arc;

use catalog::snapshot::{Catalog, Offer};
use catalog::surface::Surface;
use catalog::view::View;
use mcp::items::{Inventory, Kind};
use tokio::sync::mpsc;
use upstream::relay::Upcall;
use upstream::supervisor::Event;

use crate::Gateway;
use crate::client::{Client, Owner};
use crate::limits::EVENTS_MAX;

/// Looks after the catalog for as long as there are upstreams.
pub(crate) async fn run(gateway: Gateway, mut heard: mpsc::Receiver<Event>) {
    let mut events = Vec::new();
    while heard.recv_many(&mut events, EVENTS_MAX).await > 0 {
        let mut has_changed = false;
        for event in events.drain(..) {
            match event {
                Event::Changed => has_changed = true,
                Event::Unsolicited(upcall) => gateway.deliver(upcall),
                Event::Updated { upstream, params } => {
                    gateway.resource_updated(&upstream, &params);
                }
            }
        }
        if has_changed {
            gateway.refresh();
        }
    }
}

impl Gateway {
    /// Assembles a new snapshot and swaps it in.
    fn refresh(&self) {
        if self.shows_all_inventories() {
            return self.0.generation.send_modify(|generation| *generation += 1);
        }
        let inventories = self.inventories();
        let offers: Vec<_> = self
            .upstreams()
            .zip(&inventories)
            .map(|((namespace, upstream), inventory)| Offer {
                upstream: upstream.name(),
                namespace,
                inventory,
            })
            .collect();
        let catalog = Arc::new(Catalog::assemble(&offers, &self.0.rules));
        let changes = self.hand_out(&catalog);
        for (client, kinds) in changes {
            client.announce(&kinds);
        }
        self.0.shown.store(Arc::new(inventories));
        self.0.generation.send_modify(|generation| *generation += 1);
    }

    fn inventories(&self) -> Vec<Arc<Inventory>> {
        self.upstreams().map(|(_, upstream)| upstream.inventory()).collect()
    }

    /// Whether the newest snapshot was made of what the upstreams offer now.
    pub(crate) fn shows_all_inventories(&self) -> bool {
        let shown = self.0.shown.load();
        let now = self.inventories();
        shown.len() == now.len() && shown.iter().zip(&now).all(|(a, b)| Arc::ptr_eq(a, b))
    }

    /// Gives every client the view of the new snapshot; which lists changed for whom.
    fn hand_out(&self, catalog: &Arc<Catalog>) -> Vec<(Arc<Client>, Vec<Kind>)> {
        // Clients that have chosen nothing share one view, which is rendered once.
        let mut renewals: Vec<Renewal> = Vec::new();
        let mut renew = |view: &mut Arc<View>| {
            let at = renewals.iter().position(|renewal| Arc::ptr_eq(&renewal.old, view));
            let at = at.unwrap_or_else(|| {
                renewals.push(Renewal::of(view, catalog, self.0.surface));
                renewals.len() - 1
            });
            *view = Arc::clone(&renewals[at].new);
            renewals[at].changed.clone()
        };
        let mut clients = self.clients();
        renew(&mut clients.initial);
        let mut changes = Vec::new();
        for client in clients.connected.values() {
            let kinds = client.change_view(&mut renew);
            changes.push((Arc::clone(client), kinds));
        }
        changes
    }

    /// Hands what no call tells for whom it is to the one client of this process, if there is.
    fn deliver(&self, upcall: Upcall) {
        let owner = {
            let clients = self.clients();
            clients.connected.values().find(|client| client.owner == Owner::Process).cloned()
        };
        if let Some(client) = owner {
            client.send(upcall);
        }
    }
}

/// A view of the snapshot before and of the new one.
struct Renewal {
    old: Arc<View>,
    new: Arc<View>,
    changed: Vec<Kind>,
}

impl Renewal {
    fn of(old: &Arc<View>, catalog: &Arc<Catalog>, surface: Surface) -> Renewal {
        let new = View::new(Arc::clone(catalog), old.selection().clone(), surface);
        let changed = changed_lists(old, &new);
        Renewal { old: Arc::clone(old), new: Arc::new(new), changed }
    }
}

/// The kinds whose lists differ between two views.
pub(crate) fn changed_lists(old: &View, new: &View) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| old.list(*kind) != new.list(*kind)).collect()
}
