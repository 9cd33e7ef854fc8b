//! Which client a message of a server is for that names no call.
//!
//! A server may ask or log because of any call that it was given. That includes a call that was cancelled or timed
//! out while the server works on, and one that it has answered. So a client counts for a while after its last call.
//! Where two clients could be meant, neither gets the message: a guess could show one client what is the other's.

use mcp::abilities::Abilities;
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

/// What a server says without being asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utterance {
    /// It wants an answer.
    Question,
    Notice,
}

/// Whose calls are over, and may have left something behind.
#[derive(Debug, Default)]
pub(super) struct PastCallers {
    /// Those that may be the cause of a notice: all.
    of_notices: LastTwo,
    /// Those that may be the cause of a question: a client that can't be asked is none once it has its answer.
    of_questions: LastTwo,
}

/// The two clients whose calls were the last to end. Whoever came before them changes nothing: with two, every
/// message could be another client's, and theirs lapse last.
#[derive(Debug, Default)]
struct LastTwo {
    last: Option<(Who, Instant)>,
    other: Option<(Who, Instant)>,
}

impl LastTwo {
    fn note(&mut self, who: Who, now: Instant) {
        let last = self.last.replace((who, now));
        if last.is_some_and(|(last, _)| last != who) {
            self.other = last;
        }
    }
}

impl PastCallers {
    /// Notes that a call is over, however it ended.
    pub fn note(&mut self, relay: Option<&Relay>, is_answered: bool) {
        let Some(relay) = relay else { return };
        let now = Instant::now();
        self.of_notices.note(relay.who, now);
        if !is_answered || relay.abilities != Abilities::NONE {
            self.of_questions.note(relay.who, now);
        }
    }

    /// Whether a message could belong to a past call that is not of the same client.
    fn could_mean_another(&self, relay: &Relay, utterance: Utterance) -> bool {
        let LastTwo { last, other } = match utterance {
            Utterance::Question => &self.of_questions,
            Utterance::Notice => &self.of_notices,
        };
        let is_other = |(who, _): &&(Who, Instant)| *who != relay.who || !relay.is_known();
        let mut others = last.iter().chain(other).filter(is_other);
        others.any(|(_, when)| when.elapsed() < AFTERMATH)
    }
}

impl State {
    fn is_left_to(&self, relay: &Relay) -> bool {
        let mut relays = self.calls.values().filter_map(|call| call.relay.as_ref());
        relays.all(|other| other.who == relay.who)
            && !self.past.could_mean_another(relay, Utterance::Notice)
    }
}

impl Connection {
    /// The client of the call that a message came with, or the one client that can have caused it; where each call
    /// has a way of its own, the one call.
    pub(super) fn audience(&self, source: Source, utterance: Utterance) -> Audience {
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
            Some((_, relay)) if state.past.could_mean_another(relay, utterance) => {
                Audience::Several
            }
            Some((_, relay)) => Audience::One(relay.clone()),
        }
    }

    /// Whether no other client has calls here, or had some lately.
    pub(crate) fn is_left_to(&self, relay: &Relay) -> bool {
        self.state().is_left_to(relay)
    }
}
