//! Keeping the catalog: the one writer of snapshots.
//!
//! Listens to the upstreams, assembles, hands every client its new view, and tells those whose
//! lists are other ones now.

use std::collections::HashMap;
use std::future::pending;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use catalog::ceiling::Ceiling;
use catalog::policy::condition::{DAY_MINUTES, Moment, WEEK_MINUTES};
use catalog::scope::Scope;
use catalog::selection::Selection;
use catalog::snapshot::Catalog;
use catalog::surface::Surface;
use catalog::toolset::Toolset;
use catalog::view::View;
use mcp::items::{Inventory, Kind};
use mcp::names::UpstreamName;
use tokio::sync::mpsc;
use tokio::time::sleep;
use upstream::relay::Upcall;
use upstream::supervisor::Event;

use crate::absent::offer;
use crate::client::{Client, Owner};
use crate::library::Store;
use crate::limits::{EDGE_LOOK_MAX, EVENTS_MAX, SCOPES_MAX};
use crate::members::Members;
use crate::{Clients, Gateway};

/// What a snapshot is made of: the upstreams, and what each of them offers.
pub(crate) struct Ground {
    pub members: Arc<Members>,
    pub inventories: Vec<Arc<Inventory>>,
}

impl Ground {
    fn of(members: Arc<Members>) -> Ground {
        let inventories = members.iter().map(|(_, upstream)| upstream.inventory()).collect();
        Ground { members, inventories }
    }

    fn is_same(&self, other: &Ground) -> bool {
        let mut pairs = self.inventories.iter().zip(&other.inventories);
        Arc::ptr_eq(&self.members, &other.members)
            && self.inventories.len() == other.inventories.len()
            && pairs.all(|(a, b)| Arc::ptr_eq(a, b))
    }
}

/// Looks after the catalog for as long as there are upstreams.
pub(crate) async fn run(gateway: Gateway, mut heard: mpsc::Receiver<Event>) {
    let mut events = Vec::new();
    let mut edge = gateway.next_edge();
    loop {
        tokio::select! {
            count = heard.recv_many(&mut events, EVENTS_MAX) => if count == 0 { return },
            () = come_near(edge) => {}
        }
        if edge.is_some_and(|edge| edge <= SystemTime::now()) {
            gateway.renew();
            edge = gateway.next_edge();
        }
        let mut has_changed = false;
        for event in events.drain(..) {
            match event {
                Event::Changed => has_changed = true,
                Event::Unsolicited { upstream, upcall } => gateway.deliver(&upstream, upcall),
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
        self.renew_checks();
        if self.shows_all_inventories() {
            return self.0.generation.send_modify(|generation| *generation += 1);
        }
        self.refresh_now();
    }

    /// The same, whatever the snapshot before was made of.
    pub(crate) fn refresh_now(&self) {
        let ground = Arc::new(Ground::of(self.members()));
        self.announce(self.hand_out(&ground));
    }

    /// Hands out anew what the same snapshot is by now.
    fn renew(&self) {
        let shown = self.0.shown.load_full();
        self.announce(self.hand_out(&shown));
    }

    /// When rules that hold at certain times only will decide otherwise.
    fn next_edge(&self) -> Option<SystemTime> {
        let minutes = self.0.policies.next_change(now())?;
        let now = SystemTime::now();
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let begun = Duration::from_secs(since.as_secs() / 60 * 60);
        Some(SystemTime::UNIX_EPOCH + begun + Duration::from_secs(u64::from(minutes) * 60))
    }

    fn announce(&self, changes: Vec<(Arc<Client>, Vec<Kind>)>) {
        for (client, kinds) in changes {
            client.announce(&kinds, None);
        }
        self.0.generation.send_modify(|generation| *generation += 1);
    }

    /// The snapshot of a scope, made of these inventories.
    fn assemble(&self, scope: &Scope, ground: &Ground) -> Arc<Catalog> {
        let offers: Vec<_> = ground
            .members
            .iter()
            .zip(&ground.inventories)
            .map(|((namespace, upstream), inventory)| offer(namespace, upstream, inventory))
            .collect();
        Arc::new(scope.assemble(&offers, &self.0.rules))
    }

    /// The view that a client begins with in a scope.
    pub(crate) fn initial_view(&self, clients: &mut Clients, scope: &Scope) -> Arc<View> {
        if let Some(view) = clients.initial.get(scope) {
            return Arc::clone(view);
        }
        if clients.initial.len() >= SCOPES_MAX {
            clients.forget_empty_scopes(&self.0.scope);
        }
        let is_same_ground = |view: &&Arc<View>| view.scope().is_over_the_same(scope);
        let catalog = match clients.initial.values().find(is_same_ground) {
            Some(view) => Arc::clone(view.catalog()),
            // Of what the newest snapshot was made of, like all others.
            None => self.assemble(scope, &self.0.shown.load()),
        };
        let scope = Arc::new(scope.clone());
        let ceiling = self.ceiling(&catalog, &scope, clients.whole.as_deref());
        let selection = self.first_selection(&scope);
        let view = View::new(catalog, ceiling, selection, Arc::clone(&scope));
        let view = Arc::new(view);
        clients.initial.insert(scope, Arc::clone(&view));
        view
    }

    /// What a client begins with on a surface: what the rules say, and what was equipped last.
    fn first_selection(&self, scope: &Scope) -> Selection {
        let mut selection = Selection::first(&self.0.rules, scope);
        if scope.surface == Surface::Toolset {
            let last = self.0.last_equipped.get_or_init(|| last_equipped(&*self.0.library));
            selection.equipped.clone_from(last);
        }
        selection
    }

    fn ceiling(&self, catalog: &Catalog, scope: &Scope, whole: Option<&Catalog>) -> Arc<Ceiling> {
        let whole = whole.unwrap_or(catalog);
        let ceiling = Ceiling::of(catalog, whole, &self.0.policies, scope, now());
        if ceiling.cut > 0 {
            let agent = scope.rights.agent().unwrap_or("anybody");
            let cut = ceiling.cut;
            tracing::warn!(agent, "`max_tools_per_agent` leaves out {cut} tools that are allowed");
        }
        Arc::new(ceiling)
    }

    /// Whether the newest snapshot was made of what the upstreams offer now.
    pub(crate) fn shows_all_inventories(&self) -> bool {
        self.0.shown.load().is_same(&Ground::of(self.members()))
    }

    /// Gives every client the view of its new snapshot; which lists changed for whom.
    #[expect(clippy::mutable_key_type, reason = "compiled patterns take no part in being equal")]
    fn hand_out(&self, ground: &Arc<Ground>) -> Vec<(Arc<Client>, Vec<Kind>)> {
        let mut clients = self.clients();
        clients.forget_empty_scopes(&self.0.scope);
        let has_limit = self.0.policies.fallback.tools_max.is_some();
        clients.whole = has_limit.then(|| self.assemble(&Scope::of(Surface::Filter), ground));
        let mut grounds: Vec<(Arc<Scope>, Arc<Catalog>)> = Vec::new();
        let mut fresh = HashMap::new();
        let views = clients.connected.values().map(|client| client.view());
        let entered: Vec<_> = views.map(|view| Arc::clone(view.scope())).collect();
        for scope in clients.initial.keys().chain(&entered) {
            if fresh.contains_key(scope) {
                continue;
            }
            let catalog = match grounds.iter().find(|(of, _)| scope.is_over_the_same(of)) {
                Some((_, catalog)) => Arc::clone(catalog),
                None => {
                    let catalog = self.assemble(scope, ground);
                    grounds.push((Arc::clone(scope), Arc::clone(&catalog)));
                    catalog
                }
            };
            let ceiling = self.ceiling(&catalog, scope, clients.whole.as_deref());
            fresh.insert(Arc::clone(scope), (catalog, ceiling));
        }
        // Clients that have chosen nothing share one view, which is rendered once.
        let mut renewals: Vec<Renewal> = Vec::new();
        let mut renew = |view: &mut Arc<View>| {
            let at = renewals.iter().position(|renewal| Arc::ptr_eq(&renewal.old, view));
            let at = at.unwrap_or_else(|| {
                renewals.push(Renewal::of(view, &fresh[view.scope()]));
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
        self.0.shown.store(Arc::clone(ground));
        changes
    }

    /// Hands what no call tells for whom it is to the one client of this process, if there is one that
    /// may know of the upstream.
    fn deliver(&self, upstream: &UpstreamName, upcall: Upcall) {
        let owner = {
            let clients = self.clients();
            clients.connected.values().find(|client| client.owner == Owner::Process).cloned()
        };
        if let Some(client) = owner
            && client.view().ceiling().reaches(upstream) != Some(false)
        {
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
    fn of(old: &Arc<View>, (catalog, ceiling): &(Arc<Catalog>, Arc<Ceiling>)) -> Renewal {
        let (scope, selection) = (Arc::clone(old.scope()), old.selection().clone());
        let new = View::new(Arc::clone(catalog), Arc::clone(ceiling), selection, scope);
        let changed = changed_lists(old, &new);
        Renewal { old: Arc::clone(old), new: Arc::new(new), changed }
    }
}

/// The moment that it is now.
pub fn now() -> Moment {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    // The first day was a Thursday.
    let minutes = since.as_secs() / 60 + 3 * u64::from(DAY_MINUTES);
    Moment(u32::try_from(minutes % u64::from(WEEK_MINUTES)).unwrap_or_default())
}

/// Waits for a time, though not for long at once: clocks are set, and machines sleep.
async fn come_near(edge: Option<SystemTime>) {
    let Some(edge) = edge else { return pending().await };
    let left = edge.duration_since(SystemTime::now()).unwrap_or_default();
    sleep(left.min(EDGE_LOOK_MAX)).await;
}

/// The toolset that was equipped last, if it is still saved.
fn last_equipped(library: &dyn Store) -> Option<Arc<Toolset>> {
    match library.read() {
        Ok(document) => document.toolsets.get(&document.last_equipped?).cloned(),
        Err(problem) => {
            tracing::warn!("saved toolsets can't be read: {problem}");
            None
        }
    }
}

/// The kinds whose lists differ between two views.
pub(crate) fn changed_lists(old: &View, new: &View) -> Vec<Kind> {
    Kind::ALL.into_iter().filter(|kind| old.list(*kind) != new.list(*kind)).collect()
}
