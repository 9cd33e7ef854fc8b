//! The way back: what an upstream sends to the client whose call is under way.

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use mcp::rpc::{Outcome, Raw};
use tokio::sync::{mpsc, oneshot};

use crate::context::Context;

/// Where messages for the client of a call go.
#[derive(Clone)]
pub struct Relay {
    /// Tells clients apart; what it stands for is the caller's matter.
    pub client: u64,
    /// What the client has said for servers of its own.
    pub context: Option<Arc<Context>>,
    /// Whether each call has a way of its own, so that what is one call's must not go another's.
    pub is_per_call: bool,
    /// Takes a message at once, or drops it and says so.
    pub deliver: Arc<dyn Fn(Upcall) -> bool + Send + Sync>,
}

impl Relay {
    /// Whether what is meant for the other call may go here.
    pub(crate) fn shares_its_way_with(&self, other: &Relay) -> bool {
        self.client == other.client && !self.is_per_call && !other.is_per_call
    }
}

impl fmt::Debug for Relay {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "Relay({})", self.client)
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
