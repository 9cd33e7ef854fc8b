//! What goes on in one connection, so that one where nothing does can be closed.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Duration, Instant};

use super::events::Body;
use super::wire::Lengths;
use crate::limits::{ANSWER_STALL_MAX, HEAD_TIMEOUT, IDLE_MAX, PIECE_BYTES};

/// The requests of one connection; its clones are the same one.
#[derive(Clone, Debug)]
pub struct Traffic(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    lengths: Arc<Lengths>,
}

#[derive(Debug)]
struct State {
    last_request: u64,
    /// By number: when the client last took something of the answer, once there is one.
    open: HashMap<u64, Option<Instant>>,
    /// Since when there is no request.
    idle_since: Instant,
}

/// What is to be done with a connection.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing, until then.
    Fine(Instant),
    /// It has no request; it may be closed.
    Idle,
    /// Its client sends no request or takes no answer; it is to be dropped.
    Stalled,
}

impl Traffic {
    pub fn new() -> Traffic {
        let state = State { last_request: 0, open: HashMap::new(), idle_since: Instant::now() };
        Traffic(Arc::new(Shared { state: Mutex::new(state), lengths: Arc::default() }))
    }

    pub fn lengths(&self) -> &Arc<Lengths> {
        &self.0.lengths
    }

    /// Notes a request; it is over when the ticket is gone.
    pub fn begin(&self) -> Ticket {
        let mut state = self.state();
        state.last_request += 1;
        let number = state.last_request;
        state.open.insert(number, None);
        Ticket { traffic: self.clone(), number }
    }

    /// Since when there is no request; `None` while there is one.
    pub fn idle_since(&self) -> Option<Instant> {
        let state = self.state();
        state.open.is_empty().then_some(state.idle_since)
    }

    pub fn judge(&self) -> Verdict {
        let now = Instant::now();
        let state = self.state();
        let by = |deadline: Instant, verdict: Verdict| {
            if deadline > now { Verdict::Fine(deadline) } else { verdict }
        };
        if state.last_request == 0 {
            return by(state.idle_since + HEAD_TIMEOUT, Verdict::Stalled);
        }
        if state.open.is_empty() {
            return by(state.idle_since + IDLE_MAX, Verdict::Idle);
        }
        match state.open.values().flatten().min() {
            Some(taken) => by(*taken + ANSWER_STALL_MAX, Verdict::Stalled),
            // How long an answer may be in the making is the gateway's matter.
            None => Verdict::Fine(now + LOOK_EVERY),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// When a connection is looked at again that has requests in the making only.
const LOOK_EVERY: Duration = Duration::from_secs(10);

/// A request that is not answered in full.
#[derive(Debug)]
pub struct Ticket {
    traffic: Traffic,
    number: u64,
}

impl Ticket {
    /// The client takes something of the answer.
    fn touch(&self) {
        self.traffic.state().open.insert(self.number, Some(Instant::now()));
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let mut state = self.traffic.state();
        state.open.remove(&self.number);
        state.idle_since = Instant::now();
    }
}

/// An answer that is handed over in pieces, each when the client has room for it.
///
/// A whole answer would wait in the memory of the connection, where nobody sees that it waits.
/// An event stream has something to say every few seconds, so one that is not asked for more is
/// one that is not read.
pub struct Paced {
    inner: Body,
    rest: Bytes,
    ticket: Ticket,
}

impl Paced {
    pub fn new(inner: Body, ticket: Ticket) -> Paced {
        ticket.touch();
        Paced { inner, rest: Bytes::new(), ticket }
    }
}

impl HttpBody for Paced {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.ticket.touch();
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)).transpose()? {
                None => return Poll::Ready(None),
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        let size = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(size)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let mut hint = SizeHint::new();
        let (inner, rest) = (self.inner.size_hint(), self.rest.len() as u64);
        hint.set_lower(inner.lower() + rest);
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use http_body_util::{BodyExt as _, Full};
    use hyper::body::Body as _;

    use super::{Paced, Traffic};
    use crate::limits::PIECE_BYTES;

    #[tokio::test]
    async fn large_answer_is_handed_over_in_pieces() {
        let size = 2 * PIECE_BYTES + 1;
        let body = Full::new(Bytes::from(vec![b'x'; size])).boxed_unsync();
        let mut paced = Paced::new(body, Traffic::new().begin());
        let mut pieces = Vec::new();
        loop {
            let left = size - pieces.iter().sum::<usize>();
            assert_eq!(paced.size_hint().exact(), Some(left as u64));
            let Some(frame) = paced.frame().await else { break };
            pieces.push(frame.unwrap().into_data().unwrap().len());
        }
        assert_eq!(pieces, [PIECE_BYTES, PIECE_BYTES, 1]);
        assert!(paced.is_end_stream());
    }
}
