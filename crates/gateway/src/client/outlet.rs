//! Ways to a client: what upstreams have for it goes there, as far as it may.

use std::borrow::Cow;
use std::fmt;
use std::hash::BuildHasher as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use foldhash::fast::FixedState;
use mcp::abilities::Abilities;
use mcp::json;
use mcp::log_level::LogLevel;
use mcp::modern::Envelope;
use upstream::context::Context;
use upstream::relay::{Relay, Upcall, Who};

use super::Client;
use crate::logs;
use crate::outbox::Outbox;
use crate::request::{Request, Terms};

/// A way to a client for messages that an upstream has for it.
#[derive(Clone, Debug)]
pub struct Outlet {
    pub(crate) relay: Relay,
    pub(super) outbox: Outbox,
    /// Whether an answer may go there piece by piece.
    pub(crate) takes_pieces: bool,
    /// Whether somebody hears what is sent there; always, where nothing is said.
    heard: Option<Heard>,
}

/// Says whether somebody hears what is sent to an outlet.
#[derive(Clone)]
struct Heard(Arc<dyn Fn() -> bool + Send + Sync>);

impl fmt::Debug for Heard {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Heard({})", (self.0)())
    }
}

impl Outlet {
    pub(crate) fn outbox(&self) -> &Outbox {
        &self.outbox
    }

    /// A way for a request of the modern era: nothing can be asked on it, and only what the
    /// request has asked for is told.
    fn one_way(
        (client, context): (u64, Option<Arc<Context>>),
        outbox: Outbox,
        envelope: &Envelope,
    ) -> Outlet {
        let log_level = logs::level_in(envelope);
        let out = outbox.clone();
        let deliver = move |upcall| match upcall {
            Upcall::Notice(frame) => is_about_a_request(&frame, log_level) && out.try_send(frame),
            Upcall::Ask(_) => false,
        };
        let who = Who { client, program: program(envelope) };
        // Nothing can be asked of a modern client yet.
        let abilities = Abilities::NONE;
        let relay =
            Relay { who, abilities, context, is_per_call: true, deliver: Arc::new(deliver) };
        Outlet { relay, outbox, takes_pieces: false, heard: None }
    }

    /// The same, for a door that can send an answer while it is still coming, or can't.
    pub fn taking_pieces(self, takes_pieces: bool) -> Outlet {
        Outlet { takes_pieces, ..self }
    }

    /// The same, for a door that keeps what it is sent for clients that listen later.
    pub fn heard_while(self, is_heard: impl Fn() -> bool + Send + Sync + 'static) -> Outlet {
        Outlet { heard: Some(Heard(Arc::new(is_heard))), ..self }
    }

    pub(crate) fn is_heard(&self) -> bool {
        self.heard.as_ref().is_none_or(|heard| (heard.0)())
    }

    /// This way as a request of the modern era uses it.
    pub(crate) fn narrowed(&self, envelope: &Envelope) -> Cow<'_, Outlet> {
        if self.relay.is_per_call {
            return Cow::Borrowed(self);
        }
        let who = (self.relay.who.client, self.relay.context.clone());
        Cow::Owned(Outlet::one_way(who, self.outbox.clone(), envelope))
    }
}

/// The program that makes a request, by what it says of itself; 0 if it says nothing.
fn program(envelope: &Envelope) -> u64 {
    let info = envelope.client.as_ref();
    info.map_or(0, |info| FixedState::default().hash_one(info.as_bytes()).max(1))
}

/// Whether a notification may be sent on the stream of a modern request.
fn is_about_a_request(frame: &[u8], log_level: Option<LogLevel>) -> bool {
    let method = json::members(frame, ["method"]).ok().and_then(|[method]| method);
    match method.and_then(json::string).as_deref() {
        Some("notifications/message") => logs::is_wanted(frame, log_level),
        Some("notifications/progress") => true,
        _ => false,
    }
}

impl Client {
    /// The way for one request of this client.
    pub fn outlet_for(self: &Arc<Self>, request: &Request, outbox: Outbox) -> Outlet {
        match &request.terms {
            Terms::Own(envelope) => {
                let who = (self.id, self.context.clone());
                Outlet::one_way(who, outbox, envelope)
            }
            Terms::Handshake | Terms::Broken(_) => self.outlet(outbox),
        }
    }

    /// A way to this client that ends in `outbox`; a message that finds it full is lost.
    pub fn outlet(self: &Arc<Self>, outbox: Outbox) -> Outlet {
        let (client, out) = (Arc::clone(self), outbox.clone());
        let deliver = move |upcall| {
            // The place is taken first: a request that can't be sent must be refused at once.
            let Some(place) = out.reserve() else {
                client.lost_notices.fetch_add(1, Ordering::Relaxed);
                return false;
            };
            let frame = match upcall {
                Upcall::Notice(frame) => client.wants(&frame).then_some(frame),
                Upcall::Ask(ask) => client.ask(ask, &out),
            };
            frame.map(|frame| place.send(frame)).is_some()
        };
        let context = self.context.clone();
        let deliver = Arc::new(deliver);
        let who = Who { client: self.id, program: 0 };
        let abilities = self.abilities();
        let relay = Relay { who, abilities, context, is_per_call: false, deliver };
        Outlet { relay, outbox, takes_pieces: false, heard: None }
    }
}
