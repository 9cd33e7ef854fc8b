//! Who shares the conversation with a server, and who has one of their own.
//!
//! On a shared conversation a question of the server can be told for whom it is only while no other client could have
//! caused it; so can what it logs. A server that speaks to clients by itself is therefore given a conversation for each
//! further client. That it logs a server declares; that it asks its first question tells.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mcp::names::UpstreamName;
use mcp::version::Era;

use super::Upstream;
use super::private::Private;
use crate::connection::Connection;
use crate::conversation::Introduction;
use crate::error::Error;
use crate::limits::{APART_MAX, PRIVATES_MAX};
use crate::relay::Relay;

/// Who shares a conversation with the server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SessionChoice {
    /// All clients of a server that only answers. Of one that declares to log, or has asked something of a client,
    /// further clients have their own, as far as there is room.
    #[default]
    Auto,
    /// All clients, whatever the server does.
    Shared,
    /// Nobody: each client has a process or session of its own.
    PerClient,
}

/// What a server was seen doing.
#[derive(Debug, Default)]
pub(super) struct Habits {
    /// It asks clients.
    asks: AtomicBool,
    /// It declares to log, and does not say for which call.
    logs: AtomicBool,
    /// It could not be started for one client alone.
    is_single: AtomicBool,
    /// Messages that could be for several clients.
    unattributed: AtomicU64,
}

impl Habits {
    pub fn note_asked(&self, upstream: &UpstreamName, session: SessionChoice, is_attributed: bool) {
        let is_new = !self.asks.swap(true, Ordering::Relaxed);
        self.is_single.store(false, Ordering::Relaxed);
        if !is_attributed {
            let remedy = match session {
                SessionChoice::Shared => "set `session` to \"auto\" to give each client its own",
                SessionChoice::Auto | SessionChoice::PerClient => {
                    "clients get their own from now on"
                }
            };
            self.unattributed.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(%upstream, "refused a question, as several clients share it; {remedy}");
        } else if is_new && session == SessionChoice::Auto {
            tracing::info!(%upstream, "asks its clients; further ones get a process or session of their own");
        }
    }

    /// Notes what a server says of itself. In the modern era it logs to those alone who ask for it in their requests.
    pub fn note_introduction(&self, known: &Introduction) {
        let logs = known.revision.era() == Era::Legacy && known.declares("logging");
        self.logs.store(logs, Ordering::Relaxed);
    }

    /// Whether the server speaks to clients by itself.
    fn speaks(&self) -> bool {
        self.logs.load(Ordering::Relaxed) || self.asks.load(Ordering::Relaxed)
    }

    pub fn note_unattributed(&self) {
        self.unattributed.fetch_add(1, Ordering::Relaxed);
    }
}

impl Upstream {
    /// Whether the server has asked something of a client.
    pub fn asks(&self) -> bool {
        self.0.habits.asks.load(Ordering::Relaxed)
    }

    /// How many of its messages were dropped because it is not known whom they were for.
    pub fn unattributed(&self) -> u64 {
        self.0.habits.unattributed.load(Ordering::Relaxed)
    }

    /// Whether all clients share one conversation, so far.
    pub fn is_shared(&self) -> bool {
        match self.settings().session {
            SessionChoice::Shared => true,
            SessionChoice::PerClient => false,
            SessionChoice::Auto => !self.asks(),
        }
    }

    /// Whether a call belongs to a conversation of its client's own.
    pub(super) fn is_apart(&self, relay: &Relay) -> bool {
        match self.0.settings.session {
            SessionChoice::Shared => false,
            SessionChoice::PerClient => true,
            SessionChoice::Auto => self.0.habits.speaks() && self.sets_apart(relay),
        }
    }

    /// Whether a client is given a conversation of its own of a server that speaks by itself. One client keeps the
    /// shared conversation, if no other has used it lately; so do those for whom there is no room.
    fn sets_apart(&self, relay: &Relay) -> bool {
        let Some(shared) = self.0.connection.load_full() else { return false };
        let open = self.0.privates.open();
        if open.contains_key(&relay.who) {
            return true;
        }
        let mut resident = self.0.privates.resident();
        if *resident == Some(relay.who) {
            return false;
        }
        if resident.is_none() && shared.is_left_to(relay) {
            *resident = Some(relay.who);
            return false;
        }
        let has_room = || open.len() < APART_MAX || open.values().any(Private::is_unused);
        has_room() && !self.0.habits.is_single.load(Ordering::Relaxed)
    }

    /// How many conversations of single clients there are at most.
    pub(super) fn privates_max(&self) -> usize {
        match self.0.settings.session {
            SessionChoice::Auto => APART_MAX,
            SessionChoice::Shared | SessionChoice::PerClient => PRIVATES_MAX,
        }
    }

    /// A client's own conversation; where nobody has asked for one and it can't be opened, the shared one.
    pub(super) async fn own(&self, relay: &Relay) -> Result<Arc<Connection>, Error> {
        let error = match self.private(relay).await {
            Err(error) if self.settings().session == SessionChoice::Auto => error,
            opened => return opened,
        };
        // The next question brings the next try.
        self.0.habits.is_single.store(true, Ordering::Relaxed);
        tracing::warn!("further clients share one conversation: {error}");
        self.0.connection.load_full().ok_or(error)
    }
}
