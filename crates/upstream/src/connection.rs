//! One conversation with a server: requests matched to answers, both ways, over a byte stream.
//!
//! Ids are ours and per connection, so clients may use what they like. What a method means is
//! known only where the way back to a client depends on it.

mod incoming;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcp::names::UpstreamName;
use mcp::rpc::{self, Outcome, Raw};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::Error;
use crate::limits::{CALL_TOTAL_MAX, CALLS_MAX, OUTGOING_MAX, STDIN_CLOSE_GRACE};
use crate::relay::{Relay, Upcall};

/// A request to be made.
pub struct Call<'a> {
    pub method: &'a str,
    /// What the request is about at the upstream: a name, a URI, an id.
    pub subject: Option<&'a str>,
    /// Makes the parameters; is given our id, which serves as progress token too.
    pub params: &'a (dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync),
    /// The client that waits for it, if any.
    pub relay: Option<Relay>,
    /// The client's own progress token, restored on the way back.
    pub progress_token: Option<Raw>,
    pub timeout: Duration,
}

/// Takes what is for a client while no call tells for which.
pub type Unsolicited = Box<dyn Fn(Upcall) + Send + Sync>;

/// A handle to the conversation; its clones are the same one.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    upstream: UpstreamName,
    outgoing: mpsc::Sender<Bytes>,
    unsolicited: Unsolicited,
    state: Mutex<State>,
    /// Told when a list has changed.
    changed: Notify,
    /// Cancelled when the conversation is over.
    closed: CancellationToken,
    /// Cancelled when the server takes no more input.
    unwritable: CancellationToken,
    /// The reading task, so that the last output can be waited for.
    reading: TaskTracker,
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    calls: HashMap<u64, Waiting>,
    /// Calls that were given up; their answers may still come and are no fault.
    abandoned: HashSet<u64>,
    /// Answers that the server waits for, by its id.
    asks: HashMap<Raw, AbortHandle>,
    /// Capabilities whose lists have changed since they were last asked for.
    changed: BTreeSet<&'static str>,
    /// Why the conversation is over.
    end: Option<Error>,
    answered: u64,
}

#[derive(Debug)]
struct Waiting {
    reply: oneshot::Sender<Result<Outcome, Error>>,
    relay: Option<Relay>,
    progress_token: Option<Raw>,
    timeout: Duration,
    deadline: Instant,
}

impl Connection {
    /// Starts the conversation.
    pub fn open(
        upstream: UpstreamName,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        unsolicited: Unsolicited,
    ) -> Connection {
        let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
        let connection = Connection(Arc::new(Shared {
            upstream,
            outgoing,
            unsolicited,
            state: Mutex::default(),
            changed: Notify::new(),
            closed: CancellationToken::new(),
            unwritable: CancellationToken::new(),
            reading: TaskTracker::new(),
        }));
        let (closed, unwritable) = (connection.0.closed.clone(), connection.0.unwritable.clone());
        tokio::spawn(write_all(writer, queue, closed, unwritable));
        connection.0.reading.spawn(incoming::read_all(connection.clone(), reader));
        connection.0.reading.close();
        connection
    }

    /// Makes a request and waits for its answer. Dropped, it cancels the request.
    pub async fn call(&self, call: Call<'_>) -> Result<Outcome, Error> {
        let (patience, started) = (call.timeout, Instant::now());
        let mut ticket = self.admit(call.relay, call.progress_token, patience)?;
        let id = ticket.id.to_string();
        let frame = rpc::request(&id, call.method, (call.params)(&id).as_deref());
        let upstream = || self.0.upstream.clone();
        let silent = || {
            if started.elapsed() >= CALL_TOTAL_MAX {
                Error::Unfinished { upstream: upstream(), waited: CALL_TOTAL_MAX }
            } else {
                Error::Timeout { upstream: upstream(), waited: patience }
            }
        };
        match timeout_at(started + patience, self.0.outgoing.send(frame)).await {
            Ok(Ok(())) => ticket.sent = call.method != "initialize",
            Ok(Err(_)) => return Err(self.end()),
            Err(_) => return Err(silent()),
        }
        loop {
            let Some(deadline) = self.deadline_of(ticket.id, started) else {
                // It is off the table: the answer is there or on its way.
                return (&mut ticket.reply).await.unwrap_or_else(|_| Err(self.end()));
            };
            tokio::select! {
                answer = &mut ticket.reply => return answer.unwrap_or_else(|_| Err(self.end())),
                // A deadline that was put off may be put back, so it is looked at in between.
                () = sleep_until(deadline.min(Instant::now() + patience)) => {
                    if self.deadline_of(ticket.id, started).is_some_and(|d| d <= Instant::now()) {
                        return Err(silent());
                    }
                }
            }
        }
    }

    /// Sends a notification, unless the server has left too many unread.
    pub fn try_notify(&self, frame: Bytes) {
        _ = self.0.outgoing.try_send(frame);
    }

    /// Sends a notification; waits while the queue is full.
    pub async fn notify(&self, frame: Bytes) -> Result<(), Error> {
        self.0.outgoing.send(frame).await.map_err(|_| self.end())
    }

    /// Ends the conversation: every call under way fails with `reason`.
    pub fn close(&self, reason: String) {
        let mut state = self.state();
        let upstream = self.0.upstream.clone();
        let end = state.end.get_or_insert(Error::Down { upstream, reason }).clone();
        for (_, waiting) in state.calls.drain() {
            _ = waiting.reply.send(Err(end.clone()));
        }
        for (_, ask) in state.asks.drain() {
            ask.abort();
        }
        drop(state);
        self.0.closed.cancel();
    }

    /// Waits until lists have changed; the capabilities that they belong to.
    pub async fn changed_lists(&self) -> BTreeSet<&'static str> {
        loop {
            let changed = std::mem::take(&mut self.state().changed);
            if !changed.is_empty() {
                return changed;
            }
            self.0.changed.notified().await;
        }
    }

    /// Waits until everything that the server has written is read.
    pub async fn drained(&self) {
        self.0.reading.wait().await;
    }

    /// Waits until the server takes no more input.
    pub async fn unwritable(&self) {
        self.0.unwritable.cancelled().await;
    }

    /// How many calls of clients the server has answered.
    pub fn answered(&self) -> u64 {
        self.state().answered
    }

    fn admit(
        &self,
        relay: Option<Relay>,
        progress_token: Option<Raw>,
        timeout: Duration,
    ) -> Result<Ticket<'_>, Error> {
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
        let (reply, answer) = oneshot::channel();
        let deadline = Instant::now() + timeout;
        state.calls.insert(id, Waiting { reply, relay, progress_token, timeout, deadline });
        Ok(Ticket { connection: self, id, reply: answer, sent: false })
    }

    fn deadline_of(&self, id: u64, started: Instant) -> Option<Instant> {
        let deadline = self.state().calls.get(&id)?.deadline;
        Some(deadline.min(started + CALL_TOTAL_MAX))
    }

    fn end(&self) -> Error {
        let upstream = self.0.upstream.clone();
        let gone = || Error::Down { upstream, reason: "has closed the connection".into() };
        self.state().end.clone().unwrap_or_else(gone)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A place in the table of calls; given back when dropped.
struct Ticket<'a> {
    connection: &'a Connection,
    id: u64,
    reply: oneshot::Receiver<Result<Outcome, Error>>,
    /// Whether the server knows of the request and may be told to forget it.
    sent: bool,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let was_waiting = {
            let mut state = self.connection.state();
            let was_waiting = state.calls.remove(&self.id).is_some();
            if was_waiting && state.abandoned.len() < CALLS_MAX {
                state.abandoned.insert(self.id);
            }
            was_waiting
        };
        if was_waiting && self.sent {
            let params = format!(r#"{{"requestId":{},"reason":"no longer wanted"}}"#, self.id);
            let frame = rpc::notification("notifications/cancelled", Some(params.as_bytes()));
            // A full queue means a server that reads nothing: it would not read this either.
            _ = self.connection.0.outgoing.try_send(frame);
        }
    }
}

/// Writes what is queued, many messages at a time, until the conversation is over.
async fn write_all(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Bytes>,
    closed: CancellationToken,
    unwritable: CancellationToken,
) {
    let mut frames = Vec::new();
    let mut buffer = Vec::new();
    let writing = async {
        while queue.recv_many(&mut frames, OUTGOING_MAX).await > 0 {
            for frame in frames.drain(..) {
                buffer.extend_from_slice(&mcp::lines::one_line(frame));
                buffer.push(b'\n');
            }
            if writer.write_all(&buffer).await.is_err() || writer.flush().await.is_err() {
                // The queue stays: why the server is gone is told by who watches it.
                unwritable.cancel();
                return std::future::pending().await;
            }
            buffer.clear();
            buffer.shrink_to(64 * 1024);
        }
    };
    tokio::select! {
        () = writing => {}
        () = closed.cancelled() => {}
    }
    _ = timeout(STDIN_CLOSE_GRACE, writer.shutdown()).await;
}
