//! Keeping the catalog: the one writer of snapshots.
//!
//! Listens to the upstreams, assembles, hands every client its new view, and tells those whose
//! lists are other ones now.

use std::collections::HashMap;
use std::sync::Arc;

use catalog::scope::Scope;
use catalog::selection::Selection;
use catalog::snapshot::{Catalog, Offer};
use catalog::view::View;
use mcp::items::{Inventory, Kind};
use tokio::sync::mpsc;
use upstream::relay::Upcall;
use upstream::supervisor::Event;

use crate::client::{Client, Owner};
use crate::limits::EVENTS_MAX;
use crate::{Clients, Gateway};

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
        let inventories = Arc::new(self.inventories());
        let changes = self.hand_out(&inventories);
        for (client, kinds) in changes {
            client.announce(&kinds);
        }
        self.0.generation.send_modify(|generation| *generation += 1);
    }

    /// The snapshot of a scope, made of these inventories.
    fn assemble(&self, scope: &Scope, inventories: &[Arc<Inventory>]) -> Arc<Catalog> {
        let offers: Vec<_> = self
            .upstreams()
            .zip(inventories)
            .map(|((namespace, upstream), inventory)| Offer {
                upstream: upstream.name(),
                namespace,
                inventory,
            })
            .collect();
        Arc::new(scope.assemble(&offers, &self.0.rules))
    }

    /// The view that a client begins with in a scope.
    pub(crate) fn initial_view(&self, clients: &mut Clients, scope: &Scope) -> Arc<View> {
        if let Some(view) = clients.initial.get(scope) {
            return Arc::clone(view);
        }
        // Of what the newest snapshot was made of, like all others.
        let catalog = self.assemble(scope, &self.0.shown.load());
        let scope = Arc::new(scope.clone());
        let view = Arc::new(View::new(catalog, Selection::default(), Arc::clone(&scope)));
        clients.initial.insert(scope, Arc::clone(&view));
        view
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

    /// Gives every client the view of its new snapshot; which lists changed for whom.
    fn hand_out(&self, inventories: &Arc<Vec<Arc<Inventory>>>) -> Vec<(Arc<Client>, Vec<Kind>)> {
        let mut clients = self.clients();
        let scopes = clients.initial.keys().cloned();
        let catalogs: HashMap<Arc<Scope>, Arc<Catalog>> = scopes
            .map(|scope| {
                let catalog = self.assemble(&scope, inventories);
                (scope, catalog)
            })
            .collect();
        // Clients that have chosen nothing share one view, which is rendered once.
        let mut renewals: Vec<Renewal> = Vec::new();
        let mut renew = |view: &mut Arc<View>| {
            let at = renewals.iter().position(|renewal| Arc::ptr_eq(&renewal.old, view));
            let at = at.unwrap_or_else(|| {
                renewals.push(Renewal::of(view, &catalogs[view.scope()]));
                renewals.len() - 1
            });
            *view = Arc::clone(&renewals[at].new);
            renewals[at].changed.clone()
        };
        for view in clients.initial.values_mut() {
            renew(view);
        }
        let mut changes = Vec::new();
        for client in clients.connected.values() {
            let kinds = client.change_view(&mut renew);
            changes.push((Arc::clone(client), kinds));
        }
        // Last, and under the lock: who waits for it then finds views of it.
        self.0.shown.store(Arc::clone(inventories));
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
    fn of(old: &Arc<View>, catalog: &Arc<Catalog>) -> Renewal {
        let scope = Arc::clone(old.scope());
        let new = View::new(Arc::clone(catalog), old.selection().clone(), scope);
        let changed = changed_lists(old, &new);
        Renewal { old: Arc::clone(old), new: Arc::new(new), changed }
    }
}

/// The kinds whose lists differ between two views.
pub(crate) fn changed_lists(old: &View, new: &View) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| old.list(*kind) != new.list(*kind)).collect()
}
