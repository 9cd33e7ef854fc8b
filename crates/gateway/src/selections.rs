//! Whose selections are: one session's, or a proven caller's in all of its sessions and requests.
//!
//! What a caller has chosen is the same for all that it is connected by, and outlives sessions and restarts. Where it
//! is kept is known to whoever starts the gateway.

mod kept;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use catalog::profile::{Belongs, ToldApart};
use catalog::scope::Scope;
use catalog::selection::Selection;
use catalog::view::View;
use mcp::items::Kind;
use mcp::json;
use upstream::context::Context;

use crate::auth::Identity;
use crate::client::{Client, Owner};
use crate::dispatch::Asking;
use crate::limits::{NAME_BYTES_MAX, SELECTIONS_MAX};
use crate::place::Place;
use crate::refresh::changed_lists;
use crate::{Clients, Gateway};

pub use kept::{Keeper, Kept};

/// Whose a selection is: a proven caller at a place.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Holder {
    pub identity: Arc<Identity>,
    /// By what clients of the same caller are told apart, where they are.
    pub label: Option<Arc<str>>,
    pub surface: Box<str>,
    pub namespace: Option<Box<str>>,
    /// What was chosen while connecting.
    pub choice: Option<Box<str>>,
}

/// The same in a context, which is secret and never kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Holding {
    holder: Holder,
    context: Option<Arc<Context>>,
}

/// What is between what callers choose and where it is kept.
#[derive(Debug, Default)]
pub(crate) struct Selections {
    /// What was kept before the start, read once.
    before: OnceLock<HashMap<Holder, Kept>>,
    waiting: Mutex<kept::Waiting>,
    /// Held while some are written.
    writing: tokio::sync::Mutex<()>,
}

/// What a caller has chosen.
pub(crate) struct Held {
    selection: Selection,
    /// Counts the changes of all.
    changed: u64,
}

impl Holder {
    fn of(gateway: &Gateway, identity: &Arc<Identity>, place: &Place) -> Holder {
        let Scope { surface, namespace, narrowing, .. } = &*place.scope;
        let toolsets = &gateway.0.rules.toolsets;
        Holder {
            identity: Arc::clone(identity),
            label: place.label.clone(),
            surface: surface.name().into(),
            namespace: namespace.as_ref().map(|namespace| namespace.as_str().into()),
            choice: narrowing.as_ref().map(|choice| choice.described(toolsets).into()),
        }
    }
}

impl Gateway {
    /// Gives a client whose program is known the selection that is its own, if it has one besides its session's.
    pub(crate) fn settle(&self, client: &Arc<Client>, info: Option<&str>) {
        if !self.is_shared(client, info) {
            return;
        }
        let view = client.view();
        let place = Place {
            scope: Arc::clone(view.scope()),
            context: client.context.clone(),
            label: client.label.clone(),
        };
        let place = self.labelled(&place, info);
        let holding = self.holding(&client.caller.identity, &place);
        let recalled = self.recalled(&holding);
        self.clients().take_up(client, holding, recalled);
        self.wake_for(&client.view());
    }

    /// Whether what a client chooses is its caller's in all of its sessions.
    fn is_shared(&self, client: &Client, info: Option<&str>) -> bool {
        let said = self.0.profiles.selection;
        match client.owner {
            Owner::Principal => true,
            // Nobody has proven anything; a name is what whoever has started us says.
            Owner::Process => {
                client.caller.identity.agent.is_some() && said != Some(Belongs::Session)
            }
            Owner::Session => {
                let of_program = info.map(|_| client.view().scope().profile.selection);
                // Who gives itself an id is the same client in every session.
                let has_id = client.label.is_some() && said != Some(Belongs::Session);
                has_id || of_program.or(said) == Some(Belongs::Principal)
            }
        }
    }

    /// Whether clients name themselves by an id.
    pub fn tells_ids_apart(&self) -> bool {
        matches!(self.0.profiles.told_apart, ToldApart::ById | ToldApart::ByRequiredId)
    }

    /// A place as it is for the client of this name, where names tell clients apart.
    pub(crate) fn labelled(&self, place: &Place, info: Option<&str>) -> Place {
        let name = || {
            let [name] = json::members(info?.as_bytes(), ["name"]).ok()?;
            let name = json::string(name?)?;
            (name.len() <= NAME_BYTES_MAX && !name.is_empty()).then(|| Arc::from(&*name))
        };
        match self.0.profiles.told_apart {
            ToldApart::ByName => Place { label: name(), ..place.clone() },
            ToldApart::No | ToldApart::ById | ToldApart::ByRequiredId => place.clone(),
        }
    }

    pub(crate) fn holding(&self, identity: &Arc<Identity>, place: &Place) -> Holding {
        let holder = Holder::of(self, identity, place);
        Holding { holder, context: place.context.clone() }
    }

    /// Gives a client another view, made of the one it has, and tells it which lists differ; and so all that share
    /// its selection.
    pub(crate) fn try_change<T, E>(
        &self,
        asking: &Asking<'_>,
        make: impl FnOnce(&View) -> Result<(View, T), E>,
    ) -> Result<T, E> {
        // Whoever has asked hears of it before the reply, if nowhere else.
        let (client, request) = (asking.client, Some(asking.outlet.outbox()));
        let change = |view: &mut Arc<View>| {
            let (new, made) = make(view)?;
            let kinds = changed_lists(view, &new);
            *view = Arc::new(new);
            Ok((made, kinds))
        };
        let Some(holding) = client.holding() else {
            let (made, kinds) = client.change_view(change)?;
            client.announce(&kinds, request);
            return Ok(made);
        };
        // Held to the end: nobody else changes this selection meanwhile, or joins those that share it.
        let mut clients = self.clients();
        let (made, kinds) = client.change_view(change)?;
        let mut told = vec![(Arc::clone(client), kinds)];
        let view = client.view();
        let peers = clients.connected.values();
        let peers = peers.filter(|peer| peer.id != client.id && peer.holding() == Some(holding));
        for peer in peers {
            told.push((Arc::clone(peer), peer.change_view(|old| follow(old, &view))));
        }
        if holding.context.is_none() {
            clients.remember(&holding.holder, view.selection());
            self.keep(&holding.holder, view.selection());
        }
        drop(clients);
        for (told, kinds) in told {
            told.announce(&kinds, request.filter(|_| told.id == client.id));
        }
        Ok(made)
    }
}

impl Clients {
    /// Makes a client one of those that share a selection. From now on it hears of changes.
    pub(crate) fn take_up(
        &mut self,
        client: &Arc<Client>,
        holding: Holding,
        recalled: Option<Selection>,
    ) {
        let mut others = self.connected.values().filter(|other| other.id != client.id);
        let peer = others.find(|other| other.holding() == Some(&holding)).map(|peer| peer.view());
        let known = self.selections.get(&holding.holder).map(|held| held.selection.clone());
        let selection = match &peer {
            Some(view) => Some(view.selection().clone()),
            None if holding.context.is_some() => None,
            None => known.or(recalled),
        };
        if let (Some(selection), None) = (&selection, &holding.context) {
            self.remember(&holding.holder, selection);
        }
        client.hold(holding);
        if let Some(selection) = selection {
            client.change_view(|view| {
                let same = peer.filter(|peer| is_alike(peer, view));
                *view = same.unwrap_or_else(|| Arc::new(view.selecting(selection)));
            });
        }
    }

    /// Remembers what a caller has chosen; of too many, what was changed least lately is forgotten.
    fn remember(&mut self, holder: &Holder, selection: &Selection) {
        self.last_change += 1;
        let held = Held { selection: selection.clone(), changed: self.last_change };
        if !self.selections.contains_key(holder) && self.selections.len() >= SELECTIONS_MAX {
            let oldest = self.selections.iter().min_by_key(|(_, held)| held.changed);
            let oldest = oldest.map(|(holder, _)| holder.clone());
            oldest.and_then(|oldest| self.selections.remove(&oldest));
        }
        self.selections.insert(holder.clone(), held);
    }
}

/// Whether two views differ in nothing but what is selected.
fn is_alike(one: &View, other: &View) -> bool {
    Arc::ptr_eq(one.catalog(), other.catalog()) && one.scope() == other.scope()
}

/// Gives a view the selection of another one; which lists changed.
fn follow(view: &mut Arc<View>, other: &Arc<View>) -> Vec<Kind> {
    let new = if is_alike(other, view) {
        Arc::clone(other)
    } else {
        Arc::new(view.selecting(other.selection().clone()))
    };
    let kinds = changed_lists(view, &new);
    *view = new;
    kinds
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
