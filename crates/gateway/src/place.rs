//! Places to connect to: each shows its part of the catalog in its own manner.

use std::sync::Arc;

use catalog::narrowing::Narrowing;
use catalog::policy::{Rights, Subject, Who};
use catalog::profile::ToldApart;
use catalog::scope::Scope;
use catalog::snapshot::Item;
use catalog::surface::Surface;
use mcp::items::Kind;
use mcp::names::Namespace;
use upstream::context::Context;
use upstream::supervisor::Phase;

use crate::Gateway;
use crate::auth::Caller;
use crate::lazy::may_concern;
use crate::limits::NAME_BYTES_MAX;

/// A place; what it shows is the catalog's matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    pub(crate) scope: Arc<Scope>,
    /// What the client has said there for servers of its own.
    pub(crate) context: Option<Arc<Context>>,
    /// The id that the client gives itself, where ids tell clients apart.
    pub(crate) label: Option<Arc<str>>,
}

/// Why a client can't be shown where it wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// The place shows one namespace at a time, and none was named.
    NamespaceMissing,
    NamespaceUnknown,
    /// The place is for clients that name themselves. TC-15
    ClientMissing,
    /// Nothing there is granted to the client.
    Denied,
}

impl Place {
    /// Whether requests for another place are those of a client at this one, whatever it calls itself in them.
    pub fn is_the_same(&self, other: &Place) -> bool {
        self.scope == other.scope && self.context == other.context
    }

    pub fn new(scope: Scope) -> Place {
        Place { scope: Arc::new(scope), context: None, label: None }
    }
}

impl Gateway {
    /// Where clients connect that name no other place.
    pub fn place(&self) -> Place {
        Place { scope: Arc::clone(&self.0.scope), context: None, label: None }
    }

    /// A place as a caller may see it, narrowed to the namespace that was named, if one was.
    pub fn stand(
        &self,
        place: &Place,
        caller: &Caller,
        namespace: Option<&str>,
    ) -> Result<Place, Misplaced> {
        let rights = self.rights_at(place, caller)?;
        let named = namespace.filter(|named| Some(*named) != self.0.own_name);
        let Some(named) = named else {
            let needs_one =
                place.scope.surface == Surface::Namespace && place.scope.namespace.is_none();
            if needs_one {
                return Err(Misplaced::NamespaceMissing);
            }
            let is_same = place.scope.rights == rights;
            return Ok(if is_same { place.clone() } else { Place::new(place.scope.with(rights)) });
        };
        let mut namespaces = self.namespaces_in(place, caller).into_iter();
        let found = namespaces.find(|known| known.as_str() == named);
        let namespace = Some(found.ok_or(Misplaced::NamespaceUnknown)?.clone());
        Ok(Place::new(Scope { namespace, ..place.scope.with(rights) }))
    }

    /// A place for a client that gives itself an id; one that is too long counts as none.
    pub fn identified(&self, place: Place, id: Option<&str>) -> Result<Place, Misplaced> {
        let is_id = |id: &&str| !id.is_empty() && id.len() <= NAME_BYTES_MAX;
        let label: Option<Arc<str>> = id.filter(is_id).map(Arc::from);
        if label.is_none() && self.0.profiles.told_apart == ToldApart::ByRequiredId {
            return Err(Misplaced::ClientMissing);
        }
        Ok(Place { label, ..place })
    }

    /// A place with the tools of some toolsets, or single ones: to begin with, where they can be switched, else
    /// no other ones. `None` if the caller could see nothing of it; a toolset that is hidden from it, and one that
    /// does not exist, are the same.
    pub fn choose<'n>(
        &self,
        place: &Place,
        toolsets: impl Iterator<Item = &'n str>,
        tools: impl Iterator<Item = &'n str>,
    ) -> Option<Place> {
        let narrowing = Narrowing::of(&self.0.rules.toolsets, toolsets, tools)?;
        if narrowing.is_empty() || !self.may_show(&place.scope, &narrowing) {
            return None;
        }
        let scope = Scope { narrowing: Some(Arc::new(narrowing)), ..Scope::clone(&place.scope) };
        Some(Place { scope: Arc::new(scope), ..place.clone() })
    }

    /// Whether something of a choice is within the ceiling, or may still come.
    fn may_show(&self, scope: &Scope, choice: &Narrowing) -> bool {
        let view = self.initial_view(&mut self.clients(), scope);
        let mut items = Kind::ALL.into_iter().flat_map(|kind| view.items(kind));
        let exposure = &self.0.rules.exposure;
        let can_be = |item: &Item| {
            scope.surface != Surface::Dynamic
                || item.toolsets.iter().any(|place| exposure.permits(*place))
        };
        if items.any(|item| can_be(item) && choice.holds(&Subject::of(item))) {
            return true;
        }
        let members = self.members();
        members.list.iter().any(|member| {
            let (namespace, upstream) = member;
            !matches!(upstream.status().phase, Phase::Ready)
                && scope.holds(namespace)
                && self.is_shown(&view, namespace, upstream)
                && may_concern(&members.list, choice.patterns(), member)
        })
    }

    /// The rights of a caller at a place, where toolsets may have to be granted.
    fn rights_at(&self, place: &Place, caller: &Caller) -> Result<Rights, Misplaced> {
        let rights = self.rights_of(caller);
        if place.scope.surface != Surface::Permission {
            return Ok(rights);
        }
        let permissions = &self.0.permissions;
        let identity = &caller.identity;
        let client = identity.client.as_deref().or(identity.agent.as_deref());
        if client.is_none() && !caller.claims.names_client && !permissions.derives_client {
            return Err(Misplaced::ClientMissing);
        }
        let header = caller.claims.permissions.as_deref();
        let granted = permissions.granted(&self.0.rules.toolsets, client, header);
        if granted.is_empty() { Err(Misplaced::Denied) } else { Ok(rights.granting(granted)) }
    }

    /// Whether a caller has the rights that a place was entered by.
    pub fn still_stands(&self, place: &Place, caller: &Caller) -> bool {
        self.rights_at(place, caller).is_ok_and(|rights| rights == place.scope.rights)
    }

    fn rights_of(&self, caller: &Caller) -> Rights {
        let agent = caller.identity.agent.as_deref();
        self.0.policies.rights_of(Who { agent, address: caller.address })
    }

    /// The namespaces that a place can be narrowed to by a caller, who may see something there.
    pub fn namespaces_in(&self, place: &Place, caller: &Caller) -> Vec<Namespace> {
        let Ok(rights) = self.rights_at(place, caller) else { return Vec::new() };
        let scope = place.scope.with(rights);
        let view = self.initial_view(&mut self.clients(), &scope);
        let mut namespaces: Vec<Namespace> = Vec::new();
        for (namespace, upstream) in self.upstreams() {
            if place.scope.holds(&namespace)
                && self.is_shown(&view, &namespace, &upstream)
                && !namespaces.contains(&namespace)
            {
                namespaces.push(namespace);
            }
        }
        namespaces
    }

    /// The names of the namespaces in the order of the configuration, each once.
    pub fn namespaces(&self) -> Vec<Namespace> {
        let mut namespaces: Vec<Namespace> = Vec::new();
        for (namespace, _) in self.upstreams() {
            if !namespaces.contains(&namespace) {
                namespaces.push(namespace);
            }
        }
        namespaces
    }
}
