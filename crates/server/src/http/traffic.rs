//! What goes on in one connection, so that one where nothing does can be closed.
//!
//! Times are counted in ticks of the crowd: nobody reads the clock for a request.

use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use hyper::Version;
use hyper::body::{Body as HttpBody, Frame, SizeHint};

use super::checks::Proof;
use super::events::{Body, Broken};
use super::wire::Signs;
use crate::limits::{ANSWER_STALL_TICKS, HEAD_TICKS, IDLE_TICKS, PIECE_BYTES};

/// The time of a door, in ticks.
#[derive(Clone, Debug, Default)]
pub struct Clock(Arc<AtomicU64>);

impl Clock {
    pub fn now(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    pub fn tick(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// The requests of one connection; its clones are the same one.
#[derive(Clone, Debug)]
pub struct Traffic(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    clock: Clock,
    /// Where the connection comes from, once it has begun.
    address: OnceLock<IpAddr>,
    state: Mutex<State>,
    signs: Arc<Signs>,
    /// What the last request has shown.
    proof: Mutex<Option<Arc<Proof>>>,
    order: AtomicU8,
    ordered: AtomicWaker,
}

#[derive(Debug)]
struct State {
    last_request: u64,
    /// A few at most; there are many in HTTP/2 alone.
    open: Vec<Open>,
    /// Since when there is no request.
    idle_since: u64,
    /// Whether idle connections are kept for long: HTTP/2 has requests of its own for that.
    is_patient: bool,
    /// Set once the connection was asked to close because it is idle.
    is_asked: bool,
}

#[derive(Debug)]
struct Open {
    number: u64,
    /// When the client last took something of the answer, once there is one.
    taken: Option<u64>,
}

/// What a connection is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    Serve = 0,
    /// Answer what is under way, take nothing new, close.
    Close = 1,
    /// End at once.
    Leave = 2,
}

impl Traffic {
    pub fn new(clock: Clock) -> Traffic {
        let state = State {
            last_request: 0,
            open: Vec::new(),
            idle_since: clock.now(),
            is_patient: false,
            is_asked: false,
        };
        Traffic(Arc::new(Shared {
            clock,
            address: OnceLock::new(),
            state: Mutex::new(state),
            signs: Arc::default(),
            proof: Mutex::default(),
            order: AtomicU8::new(0),
            ordered: AtomicWaker::new(),
        }))
    }

    pub fn signs(&self) -> &Arc<Signs> {
        &self.0.signs
    }

    /// Notes where the connection comes from.
    pub fn comes_from(&self, address: IpAddr) {
        _ = self.0.address.set(address);
    }

    pub fn address(&self) -> Option<IpAddr> {
        self.0.address.get().copied()
    }

    pub fn proof(&self) -> Option<Arc<Proof>> {
        self.0.proof.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn keep_proof(&self, proof: Arc<Proof>) {
        *self.0.proof.lock().unwrap_or_else(PoisonError::into_inner) = Some(proof);
    }

    /// Notes a request; it is over when the ticket is gone.
    pub fn begin(&self, version: Version) -> Ticket {
        let mut state = self.state();
        state.last_request += 1;
        state.is_patient = version == Version::HTTP_2;
        let number = state.last_request;
        state.open.push(Open { number, taken: None });
        Ticket { traffic: self.clone(), number }
    }

    /// Since when there is no request; `None` while there is one.
    pub fn idle_since(&self) -> Option<u64> {
        let state = self.state();
        state.open.is_empty().then_some(state.idle_since)
    }

    /// Tells the connection what to do; the graver order counts.
    pub fn order(&self, order: Order) {
        self.0.order.fetch_max(order as u8, Ordering::Release);
        self.0.ordered.wake();
    }

    pub fn is_leaving(&self) -> bool {
        self.0.order.load(Ordering::Relaxed) == Order::Leave as u8
    }

    /// What the connection is to do now; a later order wakes the task.
    pub fn ordered(&self, context: &mut Context<'_>) -> Order {
        self.0.ordered.register(context.waker());
        match self.0.order.load(Ordering::Acquire) {
            0 => Order::Serve,
            1 => Order::Close,
            _ => Order::Leave,
        }
    }

    /// Waits for the order to end at once.
    pub async fn ordered_to_leave(&self) {
        poll_fn(|context| match self.ordered(context) {
            Order::Leave => Poll::Ready(()),
            Order::Serve | Order::Close => Poll::Pending,
        })
        .await;
    }

    /// Ends a connection whose client sends no request, or takes no answer.
    pub fn judge(&self) {
        let now = self.0.clock.now();
        let mut state = self.state();
        if self.0.signs.is_stuck() {
            // The last of an answer is still being taken; how slowly is the wire's matter.
            state.idle_since = now;
        }
        let since = |then: u64| now.saturating_sub(then);
        let order = if state.open.is_empty() {
            let idle = since(state.idle_since);
            let is_over = idle >= if state.is_patient { IDLE_TICKS } else { HEAD_TICKS };
            match (is_over, state.last_request) {
                (false, _) => Order::Serve,
                (true, 0) => Order::Leave,
                (true, _) if std::mem::replace(&mut state.is_asked, true) => Order::Leave,
                (true, _) => Order::Close,
            }
        } else {
            // How long an answer may be in the making is the gateway's matter.
            let slowest = state.open.iter().filter_map(|open| open.taken).min();
            let is_stalled = slowest.is_some_and(|taken| since(taken) >= ANSWER_STALL_TICKS);
            if is_stalled { Order::Leave } else { Order::Serve }
        };
        drop(state);
        if order != Order::Serve {
            self.order(order);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request that is not answered in full.
#[derive(Debug)]
pub struct Ticket {
    traffic: Traffic,
    number: u64,
}

impl Ticket {
    /// The client takes something of the answer.
    fn touch(&self) {
        self.set_taken(Some(self.traffic.0.clock.now()));
    }

    /// There is nothing that the client could take.
    fn pause(&self) {
        self.set_taken(None);
    }

    fn set_taken(&self, taken: Option<u64>) {
        let mut state = self.traffic.state();
        if let Some(open) = state.open.iter_mut().find(|open| open.number == self.number) {
            open.taken = taken;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        let now = self.traffic.0.clock.now();
        let mut state = self.traffic.state();
        state.open.retain(|open| open.number != self.number);
        state.idle_since = now;
    }
}

/// An answer that is handed over in pieces, each when the client has room for it.
///
/// A whole answer would wait in the memory of the connection, where nobody sees that it waits.
/// One that is not asked for the next piece, though there is one, is one that is not read.
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
    type Error = Broken;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        if self.rest.is_empty() {
            let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) else {
                self.ticket.pause();
                return Poll::Pending;
            };
            match frame.transpose()? {
                None => return Poll::Ready(None),
                Some(frame) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
            }
        }
        self.ticket.touch();
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
    use http_body_util::BodyExt as _;
    use hyper::Version;
    use hyper::body::Body as _;

    use super::{Clock, Paced, Traffic};
    use crate::http::events::Body;
    use crate::limits::PIECE_BYTES;

    #[tokio::test]
    async fn large_answer_is_handed_over_in_pieces() {
        let size = 2 * PIECE_BYTES + 1;
        let body = Body::whole(Bytes::from(vec![b'x'; size]));
        let ticket = Traffic::new(Clock::default()).begin(Version::HTTP_11);
        let mut paced = Paced::new(body, ticket);
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
