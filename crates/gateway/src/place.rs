//! Places to connect to: each shows its part of the catalog in its own manner.

use std::sync::Arc;

use catalog::scope::Scope;
use catalog::surface::Surface;
use mcp::names::Namespace;

use crate::Gateway;

/// A place; what it shows is the catalog's matter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place(pub(crate) Arc<Scope>);

/// Why a client can't be shown where it wants to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Misplaced {
    /// The place shows one namespace at a time, and none was named.
    NamespaceMissing,
    NamespaceUnknown,
}

impl Place {
    pub fn new(scope: Scope) -> Place {
        Place(Arc::new(scope))
    }
}

impl Gateway {
    /// Where clients connect that name no other place.
    pub fn place(&self) -> Place {
        Place(Arc::clone(&self.0.scope))
    }

    /// A place narrowed to the namespace that was named, if one was.
    pub fn narrow(&self, place: &Place, namespace: Option<&str>) -> Result<Place, Misplaced> {
        let Some(named) = namespace else {
            let needs_one = place.0.surface == Surface::Namespace && place.0.namespace.is_none();
            return if needs_one { Err(Misplaced::NamespaceMissing) } else { Ok(place.clone()) };
        };
        let mut namespaces = self.namespaces_in(place).into_iter();
        let found = namespaces.find(|known| known.as_str() == named);
        let namespace = Some(found.ok_or(Misplaced::NamespaceUnknown)?.clone());
        Ok(Place::new(Scope { surface: place.0.surface, namespace }))
    }

    /// The namespaces that a place can be narrowed to.
    pub fn namespaces_in(&self, place: &Place) -> Vec<&Namespace> {
        self.namespaces().into_iter().filter(|namespace| place.0.holds(namespace)).collect()
    }

    /// The names of the namespaces in the order of the configuration, each once.
    pub fn namespaces(&self) -> Vec<&Namespace> {
        let mut namespaces: Vec<&Namespace> = Vec::new();
        for (namespace, _) in self.upstreams() {
            if !namespaces.contains(&namespace) {
                namespaces.push(namespace);
            }
        }
        namespaces
    }
}
