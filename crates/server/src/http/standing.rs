//! Where a request is made, and as whom: its place by path, headers and query, and its client where it has no session.

use std::sync::Arc;

use gateway::client::Client;
use gateway::place::{Misplaced, Place};
use hyper::StatusCode;

use super::checks::{Known, Proof, Ways};
use super::choice::Choice;
use super::endpoint::Endpoint;
use super::exchange::{Refused, refuse};
use super::head::Head;

const CLIENT_MISSING: &str = "name your client in `mcp-client-id`";

impl Endpoint {
    pub(super) fn place_at(&self, path: &str) -> Option<&Place> {
        let known = self.places.iter().find(|(known, _)| known == path);
        let usual = || self.places.last().filter(|_| self.toolset_at(path).is_some());
        known.or_else(usual).map(|(_, place)| place)
    }

    /// The client whose requests at a place belong to no session.
    pub(super) fn principal(
        &self,
        proof: &Proof,
        place: &Place,
        info: Option<&str>,
    ) -> Arc<Client> {
        let find = || self.gateway.principal(&proof.caller, place, info);
        let known = proof.principal.get_or_init(|| Known {
            place: place.clone(),
            info: info.map(Box::from),
            client: find(),
        });
        let is_same = known.place == *place && known.info.as_deref() == info;
        if is_same { Arc::clone(&known.client) } else { find() }
    }

    /// Where a request is made: by its path, or the usual place, and by the namespace it names.
    pub(super) fn place(&self, proof: &Proof, head: &Head<'_>) -> Result<Place, Refused> {
        let usual = || self.gateway.place();
        let base = self.place_at(head.path()).cloned().unwrap_or_else(usual);
        let rules = self.gateway.session_context();
        let toolset = self.toolset_at(head.path());
        let ways = Ways { toolset, context: rules.and_then(|rules| rules.header.as_deref()) };
        let exchanges = self.gateway.exchanges();
        if let Some(known) = proof.place(&base, head, ways, exchanges) {
            return Ok(known);
        }
        let mut place = self.standing(proof, head, &base)?;
        if let Some(rules) = rules {
            let said = Choice::context(head, rules.query.as_deref(), ways.context);
            place = self.gateway.in_context(place, said.as_deref());
        }
        if self.gateway.tells_ids_apart() {
            let id = Choice::client(head);
            let known = self.gateway.identified(place, id.as_deref());
            place = known.or_else(|_| refuse(StatusCode::BAD_REQUEST, CLIENT_MISSING))?;
        }
        let choice = Choice::of(head, toolset);
        if !choice.is_empty() {
            let chosen = self.gateway.choose(&place, choice.toolsets(), choice.tools());
            let reason = "no toolset and no tool is chosen that there is";
            place = chosen.map_or_else(|| refuse(StatusCode::NOT_FOUND, reason), Ok)?;
        }
        proof.keep_place(base, head, ways, place.clone(), exchanges);
        Ok(place)
    }

    /// The toolset that a path below the usual one names, whether there is one or not.
    fn toolset_at<'p>(&self, path: &'p str) -> Option<&'p str> {
        let name = path.strip_prefix("/mcp/").filter(|name| !name.is_empty())?;
        let is_other = self.places.iter().any(|(known, _)| known == path);
        (!is_other).then_some(name)
    }

    /// A place as the caller may see it.
    fn standing(&self, proof: &Proof, head: &Head<'_>, place: &Place) -> Result<Place, Refused> {
        let namespace = match (head.namespace.value(), head.namespace.text()) {
            (None, _) => None,
            (_, Some(name)) if !name.is_empty() && !head.namespace.is_repeated => Some(name),
            _ => {
                let reason = "name one namespace in `X-Namespace`, in plain letters";
                return refuse(StatusCode::BAD_REQUEST, reason);
            }
        };
        let caller = &proof.caller;
        self.gateway.stand(place, caller, namespace).or_else(|misplaced| {
            let names = self.gateway.namespaces_in(place, caller);
            let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_str())).collect();
            let names = names.join(", ");
            match misplaced {
                // TD-78
                Misplaced::NamespaceMissing => {
                    let reason = format!("name a namespace in `X-Namespace`; there are {names}");
                    refuse(StatusCode::BAD_REQUEST, &reason)
                }
                // TC-15, TC-16, TC-17
                Misplaced::ClientMissing => refuse(StatusCode::BAD_REQUEST, CLIENT_MISSING),
                Misplaced::Denied => refuse(StatusCode::FORBIDDEN, "access denied"),
                // TD-79
                Misplaced::NamespaceUnknown => {
                    let reason = format!("there is no such namespace; there are {names}");
                    refuse(StatusCode::NOT_FOUND, &reason)
                }
            }
        })
    }
}
