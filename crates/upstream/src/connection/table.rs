//! The calls under way: who waits for which answer, and until when.
//!
//! An answer is put into the table, and its caller woken to take it out. One task watches over all
//! deadlines: a timer for each call would cost more than the rest of the table.

use std::future::poll_fn;
use std::sync::{Arc, Weak};
use std::task::{Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use mcp::rpc::{self, Outcome, Raw};
use mcp::version::Era;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::{Call, Connection, Loss, Shared, State, Wire};
use crate::error::Error;
use crate::limits::{CALL_TOTAL_MAX, CALLS_MAX, TIMEOUT_SETTING};
use crate::python::protocol;
use crate::relay::Relay;

/// A call that is not over.
#[derive(Debug)]
pub(super) struct Waiting {
    pub relay: Option<Relay>,
    pub progress_token: Option<Raw>,
    pub timeout: Duration,
    started: Instant,
    deadline: Instant,
    /// What its caller is to take.
    answer: Option<Result<Outcome, Error>>,
    /// Whether its time is over, so that the server is to be told that nobody waits.
    is_over: bool,
    caller: Option<Waker>,
}

impl Waiting {
    pub fn is_open(&self) -> bool {
        self.answer.is_none()
    }

    /// Gives the call so much time from now on; until when.
    pub fn put_off(&mut self, time: Duration) -> Instant {
        self.deadline = (Instant::now() + time).min(self.started + CALL_TOTAL_MAX);
        self.deadline
    }

    fn settle(&mut self, answer: Result<Outcome, Error>) {
        if self.answer.is_none() {
            self.answer = Some(answer);
            if let Some(caller) = self.caller.take() {
                caller.wake();
            }
        }
    }
}

impl State {
    /// Takes a call off the table.
    fn remove(&mut self, id: u64, is_answered: bool) -> Option<Waiting> {
        let waiting = self.calls.remove(&id)?;
        self.past.note(waiting.relay.as_ref(), is_answered);
        Some(waiting)
    }
}

impl Connection {
    /// Puts a call into the table.
    pub(super) fn admit(&self, call: &Call<'_>, timeout: Duration) -> Result<Ticket<'_>, Error> {
        let started = Instant::now();
        let mut state = self.state();
        if let Some(end) = &state.end {
            return Err(end.clone());
        }
        if state.calls.len() >= CALLS_MAX {
            let upstream = self.0.upstream.clone();
            return Err(Error::Busy { upstream, limit: CALLS_MAX });
        }
        state.last_id += 1;
        let id = state.last_id;
        let deadline = started + timeout.min(CALL_TOTAL_MAX);
        let waiting = Waiting {
            relay: call.relay.clone(),
            progress_token: call.progress_token.clone(),
            timeout,
            started,
            deadline,
            answer: None,
            is_over: false,
            caller: None,
        };
        state.calls.insert(id, waiting);
        self.watch(&mut state, deadline);
        // A handshake must not be cancelled.
        Ok(Ticket { connection: self, id, is_cancellable: call.method != "initialize" })
    }

    /// Waits until there is an answer in the table; also an error, when the time is over.
    pub(super) async fn settled(&self, id: u64) -> Result<Outcome, Error> {
        poll_fn(|context| {
            let mut state = self.state();
            let Some(waiting) = state.calls.get_mut(&id) else {
                drop(state);
                return Poll::Ready(Err(self.end()));
            };
            let Some(answer) = waiting.answer.take() else {
                let waker = context.waker();
                if !waiting.caller.as_ref().is_some_and(|caller| caller.will_wake(waker)) {
                    waiting.caller = Some(waker.clone());
                }
                return Poll::Pending;
            };
            // One whose time is over stays until its ticket tells the server.
            if !waiting.is_over {
                state.remove(id, true);
            }
            Poll::Ready(answer)
        })
        .await
    }

    /// Hands an answer to the call that waits for it; whether it was asked for.
    pub(super) fn settle(&self, id: u64, answer: Result<Outcome, Error>) -> bool {
        let mut state = self.state();
        match state.calls.get_mut(&id) {
            Some(waiting) if waiting.is_open() => {
                // Our own questions do not count: they show only that it can be started.
                let counts = answer.is_ok() && waiting.relay.is_some();
                waiting.settle(answer);
                state.answered += u64::from(counts);
                true
            }
            _ => state.abandoned.remove(&id),
        }
    }

    /// Takes a call off the table that was answered elsewhere.
    pub(super) fn finish(&self, id: u64, is_answered: bool) {
        let mut state = self.state();
        if let Some(waiting) = state.remove(id, is_answered) {
            state.answered += u64::from(is_answered && waiting.relay.is_some());
        }
    }

    /// Fails all calls.
    pub(super) fn fail_all(state: &mut State, error: &Error) {
        for waiting in state.calls.values_mut() {
            waiting.settle(Err(error.clone()));
        }
    }

    /// Sees to it that somebody looks at the deadlines by then.
    pub(super) fn watch(&self, state: &mut State, deadline: Instant) {
        if state.next_look.is_none_or(|next| deadline < next) {
            state.next_look = Some(deadline);
            self.0.watched.notify_one();
        }
    }

    /// Fails the calls whose time is over; when to look again.
    fn expire(&self) -> Option<Instant> {
        let now = Instant::now();
        let mut state = self.state();
        let open = state.calls.values_mut().filter(|waiting| waiting.is_open());
        let (over, left): (Vec<_>, Vec<_>) = open.partition(|waiting| waiting.deadline <= now);
        let next = left.iter().map(|waiting| waiting.deadline).min();
        let has_expired = !over.is_empty();
        for waiting in over {
            let upstream = self.0.upstream.clone();
            waiting.is_over = true;
            let is_total = now.duration_since(waiting.started) >= CALL_TOTAL_MAX;
            waiting.settle(Err(if is_total {
                Error::Unfinished { upstream, waited: CALL_TOTAL_MAX }
            } else {
                Error::Timeout { upstream, waited: waiting.timeout, setting: TIMEOUT_SETTING }
            }));
        }
        state.next_look = next;
        drop(state);
        if let (true, Wire::Worker) = (has_expired, &self.0.wire) {
            // It can't even say that the time is over.
            self.lose(Loss::Gone("was silent, and is replaced".into()));
        }
        next
    }
}

/// Watches over the deadlines of a conversation for as long as there is one.
pub(super) async fn watch_deadlines(connection: Weak<Shared>, watched: Arc<Notify>) {
    while let Some(shared) = connection.upgrade() {
        let next = Connection(shared).expire();
        match next {
            Some(next) => tokio::select! {
                () = sleep_until(next) => {}
                () = watched.notified() => {}
            },
            None => watched.notified().await,
        }
    }
}

/// A place in the table of calls; given back when dropped.
pub(super) struct Ticket<'a> {
    connection: &'a Connection,
    pub id: u64,
    is_cancellable: bool,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let connection = self.connection;
        let was_waiting = {
            let mut state = connection.state();
            let was_waiting = state.remove(self.id, false).is_some_and(|call| call.is_open());
            if was_waiting && state.abandoned.len() < CALLS_MAX {
                state.abandoned.insert(self.id);
            }
            was_waiting
        };
        // A modern server sees that the answer to a POST is no longer read.
        let is_seen =
            matches!(connection.0.wire, Wire::Posts(_)) && connection.era() == Era::Modern;
        if was_waiting && self.is_cancellable && !is_seen {
            let frame = match connection.0.wire {
                Wire::Worker => protocol::cancel(self.id),
                Wire::Queue | Wire::Posts(_) => cancellation(self.id),
            };
            // A full queue means a server that reads nothing: it would not read this either.
            _ = connection.0.outgoing.try_send(frame);
        }
    }
}

fn cancellation(id: u64) -> Bytes {
    let params = format!(r#"{{"requestId":{id},"reason":"no longer wanted"}}"#);
    rpc::notification("notifications/cancelled", Some(params.as_bytes()))
}
