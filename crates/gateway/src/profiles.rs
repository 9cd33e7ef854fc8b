//! Recognising client programs: each is shown what fits it.

use std::sync::Arc;

use catalog::profile::Profile;
use catalog::scope::Scope;
use mcp::json;

use crate::Gateway;
use crate::client::Client;
use crate::place::Place;

impl Gateway {
    /// What is known of the client program that describes itself so, in its `clientInfo`.
    fn profile_of(&self, info: &str) -> Arc<Profile> {
        let members = json::members(info.as_bytes(), ["name", "version"]).unwrap_or_default();
        let [name, version] = members.map(|text| text.and_then(json::string).unwrap_or_default());
        Arc::new(self.0.profiles.of(&name, &version))
    }

    /// A place as it is for the client program that describes itself so.
    pub(crate) fn place_for(&self, place: &Place, info: Option<&str>) -> Place {
        let Some(info) = info else { return place.clone() };
        let scope = Arc::new(place.scope.for_client(self.profile_of(info)));
        Place { scope, ..place.clone() }
    }

    /// Shows a client what fits its program, and what its caller has chosen, as soon as it says what it is.
    pub(crate) fn recognise(&self, client: &Arc<Client>, info: Option<&str>) {
        if !client.begin_recognition() {
            return;
        }
        if let Some(info) = info {
            let profile = self.profile_of(info);
            // In this order, as everywhere: whoever hands out views holds the clients first.
            let mut clients = self.clients();
            let scope = Scope::clone(client.view().scope()).for_client(profile);
            let view = self.initial_view(&mut clients, &scope);
            client.change_view(|current| *current = view);
        }
        self.settle(client, info);
    }
}
