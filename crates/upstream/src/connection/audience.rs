//! Which client a message of a server is for that names no call.
//!
//! A server may ask or log because of any call that it was given. That includes a call that was cancelled or timed
//! out while the server works on, and one that it has answered. So a client counts for a while after its last call.
//! Where two clients could be meant, neither gets the message: a guess could show one client what is the other's.

use tokio::time::Instant;

use super::incoming::Source;
use super::{Connection, State};
use crate::limits::AFTERMATH;
use crate::relay::{Relay, Who};

pub(super) enum Audience {
    Nobody,
    One(Relay),
    /// Several could be meant.
    Several,
}

/// The two clients whose calls were the last to end. Whoever came before them changes nothing: with two, every
/// message could be another client's, and theirs lapse last.
#[derive(Debug, Default)]
pub(super) struct PastCallers {
    last: Option<(Who, Instant)>,
    other: Option<(Who, Instant)>,
}

impl PastCallers {
    /// Notes that a call is over, however it ended.
    pub fn note(&mut self, relay: Option<&Relay>) {
        let Some(relay) = relay else { return };
        let last = self.last.replace((relay.who, Instant::now()));
        if last.is_some_and(|(who, _)| who != relay.who) {
            self.other = last;
        }
    }

    /// Whether a message could belong to a past call that is not of the same client.
    fn could_mean_another(&self, relay: &Relay) -> bool {
        let is_other = |(who, _): &(Who, Instant)| *who != relay.who || !relay.is_known();
        let mut others = self.last.iter().chain(&self.other).filter(|past| is_other(past));
        others.any(|(_, when)| when.elapsed() < AFTERMATH)
    }
}

impl State {
    fn is_left_to(&self, relay: &Relay) -> bool {
        let mut relays = self.calls.values().filter_map(|call| call.relay.as_ref());
        relays.all(|other| other.who == relay.who) && !self.past.could_mean_another(relay)
    }
}

impl Connection {
    /// The client of the call that a message came with, or the one client that can have caused it; where each call
    /// has a way of its own, the one call.
    pub(super) fn audience(&self, source: Source) -> Audience {
        let state = self.state();
        if let Source::Answer(id) = source {
            let relay = state.calls.get(&id).and_then(|call| call.relay.clone());
            return relay.map_or(Audience::Nobody, Audience::One);
        }
        let mut newest: Option<(&u64, &Relay)> = None;
        for (id, call) in &state.calls {
            let Some(relay) = &call.relay else { continue };
            match newest {
                Some((_, other)) if !other.shares_its_way_with(relay) => return Audience::Several,
                Some((newer, _)) if newer > id => {}
                _ => newest = Some((id, relay)),
            }
        }
        match newest {
            None => Audience::Nobody,
            Some((_, relay)) if state.past.could_mean_another(relay) => Audience::Several,
            Some((_, relay)) => Audience::One(relay.clone()),
        }
    }

    /// Whether no other client has calls here, or had some lately.
    pub(crate) fn is_left_to(&self, relay: &Relay) -> bool {
        self.state().is_left_to(relay)
    }
}
