//! The scope: which part of all offers a client is shown, by where it has connected.
//!
//! What lies outside of it is not in the client's catalog at all, so it is unknown under every
//! spelling.

use std::sync::Arc;

use mcp::names::Namespace;

use crate::narrowing::Narrowing;
use crate::policy::Rights;
use crate::profile::Profile;
use crate::snapshot::{Catalog, Offer, Rules};
use crate::surface::Surface;

/// A place to connect to, and by which rights.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Scope {
    pub surface: Surface,
    /// The one namespace that there is; all of them if absent.
    pub namespace: Option<Namespace>,
    /// They make the ceiling; the snapshot is the same for all.
    pub rights: Rights,
    /// What the client has chosen as it connected, if not all.
    pub narrowing: Option<Arc<Narrowing>>,
    /// What is known of the client program.
    pub profile: Arc<Profile>,
}

impl Scope {
    /// All of the catalog on a surface.
    pub fn of(surface: Surface) -> Scope {
        Scope { surface, ..Scope::default() }
    }

    /// The same place with the rights of somebody else.
    pub fn with(&self, rights: Rights) -> Scope {
        Scope { rights, ..self.clone() }
    }

    /// The same place for another client program.
    pub fn for_client(&self, profile: Arc<Profile>) -> Scope {
        Scope { profile, ..self.clone() }
    }

    /// Whether another place shows the same catalog, whatever the rights are.
    pub fn is_over_the_same(&self, other: &Scope) -> bool {
        self.surface == other.surface
            && self.namespace == other.namespace
            && self.profile.naming == other.profile.naming
    }

    /// The choice, where it is what a client begins with and can change.
    pub fn beginning(&self) -> Option<&Narrowing> {
        self.narrowing.as_deref().filter(|_| self.surface.switches())
    }

    /// The choice, where it is all that a client may see.
    pub fn bounds(&self) -> Option<&Narrowing> {
        self.narrowing.as_deref().filter(|_| !self.surface.switches())
    }

    /// Whether what a namespace offers is shown here.
    pub fn holds(&self, namespace: &Namespace) -> bool {
        self.namespace.as_ref().is_none_or(|only| only == namespace)
    }

    /// The catalog as it is here.
    pub fn assemble(&self, offers: &[Offer<'_>], rules: &Rules) -> Catalog {
        let bare = Namespace::default();
        let shown = offers.iter().filter(|offer| self.holds(offer.namespace));
        let offers: Vec<_> = match self.surface {
            Surface::Namespace => shown.map(|offer| Offer { namespace: &bare, ..*offer }).collect(),
            _ if self.surface.is_by_toolset() => {
                let shown: Vec<_> = shown.collect();
                let of = |toolset| shown.iter().map(move |offer| Offer { toolset, ..**offer });
                rules.toolsets.iter().flat_map(|toolset| of(Some(toolset))).collect()
            }
            _ => shown.copied().collect(),
        };
        Catalog::assemble(&offers, rules, self.surface.control_names())
    }
}

#[cfg(test)]
mod tests {
    use mcp::items::Kind;

    use super::Scope;
    use crate::surface::Surface;
    use crate::testing::scoped_catalog;

    #[track_caller]
    fn check(surface: Surface, namespace: Option<&str>, names: &[&str]) {
        let namespace = namespace.map(|name| name.parse().unwrap());
        let catalog = scoped_catalog(
            "git: log status\nhub: log",
            &Scope { surface, namespace, ..Scope::default() },
        );
        let items = catalog.items(Kind::Tool).iter();
        assert_eq!(items.map(|item| item.name.as_str()).collect::<Vec<_>>(), names);
    }

    #[test]
    fn names_are_bare_in_a_namespace_of_their_own() {
        check(Surface::Namespace, Some("git"), &["log", "status"]);
        check(Surface::Namespace, Some("hub"), &["log"]);
        check(Surface::Namespace, Some("none"), &[]);
    }

    #[test]
    fn any_surface_can_be_narrowed_to_a_namespace() {
        check(Surface::Filter, Some("git"), &["git_log", "git_status"]);
        check(Surface::Filter, None, &["git_log", "git_status", "hub_log"]);
    }
}
