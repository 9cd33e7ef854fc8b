//! The way back: what an upstream sends to the client whose call is under way.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use mcp::abilities::Abilities;
use mcp::rpc::{Outcome, Raw};
use tokio::sync::{mpsc, oneshot};

use crate::context::Context;

/// Where messages for the client of a call go.
#[derive(Clone)]
pub struct Relay {
    pub who: Who,
    /// What may be asked of the client.
    pub abilities: Abilities,
    /// What the client has said for servers of its own.
    pub context: Option<Arc<Context>>,
    /// Whether each call has a way of its own, so that what is one call's must not go another's.
    pub is_per_call: bool,
    /// Takes a message at once, or drops it and says so.
    pub deliver: Arc<dyn Fn(Upcall) -> bool + Send + Sync>,
}

/// Tells clients apart; what the numbers stand for is the caller's matter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Who {
    pub client: u64,
    /// Tells the programs apart that are one client: those that share a token and have no session. 0 for a client
    /// that has one, or where nothing is known of the program.
    pub program: u64,
}

impl Relay {
    /// Whether what is meant for the other call may go here.
    pub(crate) fn shares_its_way_with(&self, other: &Relay) -> bool {
        self.who == other.who && !self.is_per_call && !other.is_per_call
    }

    /// Whether calls that come from the same `who` come from the same program.
    pub(crate) fn is_known(&self) -> bool {
        !self.is_per_call || self.who.program != 0
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "Relay({:?})", self.who)
    }
}

/// Something that an upstream has for a client.
#[derive(Debug)]
pub enum Upcall {
    /// A notification, ready to be sent.
    Notice(Bytes),
    /// A request, to be sent under an id of the client's.
    Ask(Ask),
}

/// A request of an upstream to a client. Dropped unanswered, it is refused for the client.
#[derive(Debug)]
pub struct Ask {
    pub method: String,
    pub params: Option<Raw>,
    /// Closed when the upstream no longer wants the answer.
    pub answer: oneshot::Sender<Outcome>,
    /// Takes notifications for the upstream meanwhile: progress on its request.
    pub notices: mpsc::Sender<Bytes>,
}
