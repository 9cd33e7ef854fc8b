//! The handshake: what a client says of itself, and what it is told.

use std::sync::Arc;

use mcp::abilities::Abilities;
use mcp::json::{self, Fault};
use mcp::rpc::{Outcome, Raw};
use mcp::version::{Revision, Spoken};
use tokio::time::timeout;

use crate::Gateway;
use crate::audit;
use crate::client::{Client, Introduction, Owner};
use crate::error::Error;
use crate::limits::INITIALIZE_MAX;

impl Gateway {
    /// The revisions that are switched on.
    pub fn spoken(&self) -> &Spoken {
        &self.0.spoken
    }

    /// The revision that an `initialize` with these parameters will agree on.
    pub fn revision_asked(&self, params: Option<&Raw>) -> Revision {
        let introduction = read_introduction(params, &self.0.spoken);
        introduction.map_or(Revision::NEWEST_LEGACY, |known| known.revision)
    }

    /// Takes a client that asks without a handshake for one of the oldest revision.
    pub fn assume_introduced(&self, client: &Client) {
        if let Ok(introducing) = client.begin_introduction() {
            let revision = Revision::V2024_11_05;
            let abilities = Abilities::NONE;
            introducing.finish(Introduction { revision, abilities, client: None });
            client.mark_ready();
        }
    }

    /// Servers of a single client are told what it can be asked for, so that they offer what is of use to it.
    pub(crate) fn know_abilities(&self, client: &Client, abilities: Abilities) {
        if client.owner == Owner::Process {
            self.0.starter.spawner.know_client(abilities);
        }
    }

    pub(crate) async fn initialize(
        &self,
        client: &Arc<Client>,
        params: Option<&Raw>,
    ) -> Result<Outcome, Error> {
        let introduction = read_introduction(params, &self.0.spoken)
            .map_err(|fault| Error::Params { method: "initialize", fault })?;
        let introducing = client.begin_introduction()?;
        self.know_abilities(client, introduction.abilities);
        // Who lists then waits longer. Some clients give up a server that is not there within a second.
        tokio::select! {
            _ = timeout(INITIALIZE_MAX, self.settled()) => {}
            () = client.leaving.cancelled() => {}
        }
        let revision = introduction.revision;
        let said = params.and_then(|params| params.members(["clientInfo"]).ok()?[0]);
        self.recognise(client, said);
        introducing.finish(introduction);
        Ok(Outcome::Result(Raw::trusted(self.introduction(&client.view(), revision))))
    }

    /// Lets the first to list wait for servers of which nothing is known yet: many clients list once only.
    pub(crate) async fn list_when_awake(&self, client: &Client) {
        if !self.is_awake() {
            tokio::select! {
                biased;
                () = self.awake() => {}
                () = client.leaving.cancelled() => {}
            }
        }
    }
}

fn read_introduction(params: Option<&Raw>, spoken: &Spoken) -> Result<Introduction, Fault> {
    let params = params.ok_or(Fault::Missing("protocolVersion"))?;
    let [version, capabilities] = params.members(["protocolVersion", "capabilities"])?;
    // Nothing hangs on it, so that what is wrong with it does not matter.
    let client = params.members(["clientInfo"]).ok().and_then(|[client]| client);
    let version = version.ok_or(Fault::Missing("protocolVersion"))?;
    let version = json::string(version)
        .ok_or(Fault::WrongType { member: "protocolVersion", expected: "a string" })?;
    let capabilities = Raw::trusted(capabilities.unwrap_or("{}").to_owned());
    Ok(Introduction {
        revision: spoken.negotiate(&version),
        abilities: Abilities::of(&capabilities),
        client: client.and_then(audit::client_name),
    })
}
