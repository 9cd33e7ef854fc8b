//! Recognising client programs: each is shown what fits it.

use std::borrow::Cow;
use std::sync::Arc;

use catalog::profile::Profile;
use catalog::scope::Scope;
use catalog::view::View;
use mcp::json;

use crate::Gateway;
use crate::client::Client;
use crate::place::Place;

impl Gateway {
    /// What is known of the client program that describes itself so, in its `clientInfo`.
    fn profile_of(&self, name: &str, version: &str) -> Arc<Profile> {
        let correct = |profile: &mut Profile| self.0.programs.correct(name, profile);
        Arc::new(self.0.profiles.corrected(name, version, correct))
    }

    /// A place as it is for the client program that describes itself so. Each of its requests comes here, and what they
    /// have chosen hangs on it: what is observed meanwhile changes nothing.
    pub(crate) fn place_for(&self, place: &Place, info: Option<&str>) -> Place {
        let Some(info) = info else { return place.clone() };
        let (name, version) = named(info);
        let profile = Arc::new(self.0.profiles.of(&name, &version));
        let scope = Arc::new(place.scope.for_client(profile));
        Place { scope, ..place.clone() }
    }

    /// A place as it is for the client program of this name.
    pub fn place_for_program(&self, place: &Place, name: &str) -> Place {
        let scope = Arc::new(place.scope.for_client(self.profile_of(name, "")));
        Place { scope, ..place.clone() }
    }

    /// What a client is shown first at a place.
    pub fn first_view(&self, place: &Place) -> Arc<View> {
        self.initial_view(&mut self.clients(), &place.scope)
    }

    /// Shows a client what fits its program, and what its caller has chosen, as soon as it says what it is.
    pub(crate) fn recognise(&self, client: &Arc<Client>, info: Option<&str>) {
        if !client.begin_recognition() {
            return;
        }
        if let Some(info) = info {
            let (name, version) = named(info);
            client.habits.name(&name);
            let profile = self.profile_of(&name, &version);
            // In this order, as everywhere: whoever hands out views holds the clients first.
            let mut clients = self.clients();
            let scope = Scope::clone(client.view().scope()).for_client(profile);
            let view = self.initial_view(&mut clients, &scope);
            client.change_view(|current| *current = view);
        }
        self.settle(client, info);
    }
}

/// The name and version in a `clientInfo`.
fn named(info: &str) -> (Cow<'_, str>, Cow<'_, str>) {
    let [name, version] = json::members(info.as_bytes(), ["name", "version"]).unwrap_or_default();
    let [name, version] =
        [name, version].map(|text| text.and_then(json::string).unwrap_or_default());
    (name, version)
}
