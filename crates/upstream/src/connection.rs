//! One conversation with a server: requests matched to answers, both ways.
//!
//! Ids are ours and per connection, so clients may use what they like. What a method means is
//! known only where the way back to a client depends on it. How messages travel is the wire's
//! matter: queued for a byte pipe or an event stream, or each request posted by who makes it.

mod audience;
mod events;
mod feed;
mod incoming;
mod posted;
mod table;
mod worker;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use foldhash::{HashMap, HashSet};
use mcp::names::UpstreamName;
use mcp::rpc::{self, Outcome, Raw};
use mcp::version::{Era, Revision};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc::error::TrySendError;
use tokio::sync::{Notify, mpsc};
use tokio::task::{AbortHandle, yield_now};
use tokio::time::{Instant, timeout};
use tokio_util::sync::{CancellationToken, DropGuard};
use tokio_util::task::TaskTracker;

use crate::answer::Answer;
use crate::error::Error;
use crate::limits::{OUTGOING_MAX, STDIN_CLOSE_GRACE, WORKER_SILENCE};
use crate::python::protocol::{self, Failure};
use crate::relay::{Relay, Upcall, Who};
use crate::streamable::Streamable;
use crate::veil::{Saying, Veil};

use audience::PastCallers;
pub(crate) use feed::{jittered, pause};
pub(crate) use incoming::number;
use table::{Waiting, watch_deadlines};

/// A request to be made.
#[derive(Clone)]
pub struct Call<'a> {
    pub method: &'a str,
    /// What the request is about at the upstream: a name, a URI, an id.
    pub subject: Option<&'a str>,
    /// Makes the parameters; is given our id, which serves as progress token too.
    pub params: &'a (dyn Fn(&str) -> Option<Vec<u8>> + Send + Sync),
    /// Header fields that mirror arguments, each with its plain value; of use over HTTP only.
    pub mirrored: &'a [(String, String)],
    /// Whether a large result may be passed on while it is still coming.
    pub may_come: bool,
    /// The client that waits for it, if any.
    pub relay: Option<Relay>,
    /// The client's own progress token, restored on the way back.
    pub progress_token: Option<Raw>,
    pub timeout: Duration,
}

/// What a server says that belongs to no call.
#[derive(Debug)]
pub enum Heard {
    /// Something for a client while no call tells for which.
    Upcall(Upcall),
    /// A resource is another; the parameters of the notification.
    Updated(Raw),
    /// It has asked something of a client; whether it is known of which.
    Asked { is_known: bool },
    /// It said something that could be for several clients, and that none of them got.
    Unattributed,
}

/// Who listens to a server.
pub struct Listener {
    /// Takes what belongs to no call; never waits.
    pub hear: Box<dyn Fn(Heard) + Send + Sync>,
    /// Lies over all that is heard.
    pub veil: Arc<Veil>,
}

/// Why a conversation over HTTP can't go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The server has forgotten the session; a new one can be opened at once.
    Session,
    /// The server is gone, for now.
    Gone(String),
}

/// A handle to the conversation; its clones are the same one.
#[derive(Clone)]
pub struct Connection(Arc<Shared>);

struct Shared {
    upstream: UpstreamName,
    wire: Wire,
    /// What waits to be written, or to be posted.
    outgoing: mpsc::Sender<Bytes>,
    listener: Listener,
    state: Mutex<State>,
    is_modern: AtomicBool,
    /// Cancelled when the conversation can't go on; the state says why.
    lost: CancellationToken,
    /// Counts what the server should not have sent.
    complaints: AtomicU64,
    /// Told when a list has changed.
    changed: Notify,
    /// Told when the deadlines are to be looked at.
    watched: Arc<Notify>,
    /// Cancelled when a worker has said that it is ready.
    greeted: CancellationToken,
    /// Cancelled when the conversation is over.
    closed: CancellationToken,
    /// Cancelled when the server takes no more input.
    unwritable: CancellationToken,
    /// The reading task, so that the last output can be waited for.
    reading: TaskTracker,
}

/// How requests travel.
enum Wire {
    /// They are queued like all else; answers are matched by the reading task.
    Queue,
    /// The same, in the words of a Python worker.
    Worker,
    /// Each is posted, and answered where it is posted.
    Posts(Arc<Streamable>),
}

#[derive(Debug, Default)]
struct State {
    last_id: u64,
    calls: HashMap<u64, Waiting>,
    /// When the deadlines are looked at next.
    next_look: Option<Instant>,
    /// Calls that were given up; their answers may still come and are no fault.
    abandoned: HashSet<u64>,
    past: PastCallers,
    /// What a worker has found wrong with its files.
    faults: Vec<String>,
    /// Which of them it could not import, and what a call of their tools fails with.
    broken: Vec<(String, Failure)>,
    /// Its tools whose schema alone tells what they take.
    exact: Vec<String>,
    /// What it has besides tools.
    offers: Vec<String>,
    /// Answers that the server waits for, by its id.
    asks: HashMap<Raw, OpenAsk>,
    /// Capabilities whose lists have changed since they were last asked for.
    changed: BTreeSet<&'static str>,
    /// Why the conversation is over.
    end: Option<Error>,
    loss: Option<Loss>,
    answered: u64,
}

/// A request of the server that is not answered yet.
#[derive(Debug)]
struct OpenAsk {
    waiter: AbortHandle,
    /// The client that was asked, if it is known.
    client: Option<Who>,
}

impl Shared {
    fn has_several_calls(&self) -> bool {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).calls.len() > 1
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // Who watches over the deadlines sees that there are none any more.
        self.watched.notify_one();
    }
}

impl Connection {
    /// Starts a conversation over a byte pipe, one message a line.
    pub fn open(
        upstream: UpstreamName,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        listener: Listener,
    ) -> Connection {
        Connection::open_over(Wire::Queue, upstream, reader, writer, listener)
    }

    fn open_over(
        wire: Wire,
        upstream: UpstreamName,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        listener: Listener,
    ) -> Connection {
        let (connection, queue) = Connection::new(upstream, wire, listener);
        let (closed, unwritable) = (connection.0.closed.clone(), connection.0.unwritable.clone());
        let shared = Arc::downgrade(&connection.0);
        let is_shared = move || shared.upgrade().is_some_and(|shared| shared.has_several_calls());
        tokio::spawn(write_all(writer, queue, is_shared, closed, unwritable));
        connection.0.reading.spawn(incoming::read_all(connection.clone(), reader));
        connection.0.reading.close();
        connection
    }

    fn new(
        upstream: UpstreamName,
        wire: Wire,
        listener: Listener,
    ) -> (Connection, mpsc::Receiver<Bytes>) {
        let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
        let shared = Shared {
            upstream,
            wire,
            outgoing,
            listener,
            state: Mutex::default(),
            is_modern: AtomicBool::new(false),
            lost: CancellationToken::new(),
            complaints: AtomicU64::new(0),
            changed: Notify::new(),
            greeted: CancellationToken::new(),
            watched: Arc::default(),
            closed: CancellationToken::new(),
            unwritable: CancellationToken::new(),
            reading: TaskTracker::new(),
        };
        let shared = Arc::new(shared);
        let watched = Arc::clone(&shared.watched);
        tokio::spawn(watch_deadlines(Arc::downgrade(&shared), watched));
        (Connection(shared), queue)
    }

    /// The era in which is spoken.
    pub fn era(&self) -> Era {
        if self.0.is_modern.load(Ordering::Relaxed) { Era::Modern } else { Era::Legacy }
    }

    /// Speaks as this revision demands from now on; before a handshake as `None` does.
    pub fn speak(&self, revision: Option<Revision>) {
        let is_modern = revision.is_some_and(|revision| revision.era() == Era::Modern);
        self.0.is_modern.store(is_modern, Ordering::Relaxed);
        if let Wire::Posts(http) = &self.0.wire {
            http.speak(revision);
        }
    }

    /// Makes a request and waits for its answer. Dropped, it cancels the request.
    pub async fn call(&self, call: &Call<'_>) -> Result<Answer, Error> {
        let answer = match &self.0.wire {
            Wire::Queue | Wire::Worker => self.call_queued(call).await.map(Answer::Whole),
            Wire::Posts(http) => self.call_posted(http, call).await,
        };
        if self.0.listener.veil.is_off() {
            return answer;
        }
        let client = call.relay.as_ref().map(|relay| relay.who.client);
        let Call { method, subject, .. } = *call;
        let saying = Saying { upstream: &self.0.upstream, method, subject, client };
        self.0.listener.veil.over_answer(answer, saying)
    }

    /// What the server says by itself, as far as finds are told of.
    fn saying<'a>(&'a self, method: &'a str) -> Saying<'a> {
        Saying { upstream: &self.0.upstream, method, subject: None, client: None }
    }

    async fn call_queued(&self, call: &Call<'_>) -> Result<Outcome, Error> {
        let is_worker = matches!(self.0.wire, Wire::Worker);
        // A worker knows how much time a tool has, and says itself when it is over.
        let patience = if is_worker { WORKER_SILENCE } else { Duration::ZERO };
        let ticket = self.admit(call, call.timeout + patience)?;
        let id = ticket.id.to_string();
        let params = (call.params)(&id);
        let frame = match self.0.wire {
            Wire::Worker => {
                let client = call.relay.as_ref().map(|relay| relay.who.client);
                let (method, params) = (call.method, params.as_deref());
                match protocol::request(&id, method, params, call.timeout, client) {
                    Some(frame) => frame,
                    // It is of no use to a worker, which need not know.
                    None => return Ok(Outcome::Result(Raw::trusted("{}"))),
                }
            }
            Wire::Queue | Wire::Posts(_) => rpc::request(&id, call.method, params.as_deref()),
        };
        match self.0.outgoing.try_send(frame) {
            Ok(()) => {}
            Err(TrySendError::Closed(_)) => return Err(self.end()),
            Err(TrySendError::Full(frame)) => tokio::select! {
                sent = self.0.outgoing.send(frame) => sent.map_err(|_| self.end())?,
                answer = self.settled(ticket.id) => return answer,
            },
        }
        self.settled(ticket.id).await
    }

    /// Sends a notification, unless the server has left too many unread.
    pub fn try_notify(&self, frame: Bytes) {
        if let Wire::Worker = self.0.wire {
            return;
        }
        _ = self.0.outgoing.try_send(frame);
    }

    /// Sends a notification; waits while the queue is full, or until it is accepted.
    pub async fn notify(&self, frame: Bytes) -> Result<(), Error> {
        match &self.0.wire {
            Wire::Worker => Ok(()),
            Wire::Queue => self.0.outgoing.send(frame).await.map_err(|_| self.end()),
            Wire::Posts(http) => self.post(http, frame).await,
        }
    }

    /// Ends the conversation: every call under way fails with `reason`.
    pub fn close(&self, reason: String) {
        let mut state = self.state();
        let upstream = self.0.upstream.clone();
        let end = state.end.get_or_insert(Error::Down { upstream, reason }).clone();
        Connection::fail_all(&mut state, &end);
        for (_, ask) in state.asks.drain() {
            ask.waiter.abort();
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

    /// Closes the conversation when dropped, unless disarmed: it is not finished yet.
    pub fn close_on_drop(&self) -> DropGuard {
        self.0.closed.clone().drop_guard()
    }

    /// Says that the conversation can't go on; the first reason counts.
    fn lose(&self, loss: Loss) {
        self.state().loss.get_or_insert(loss);
        self.0.lost.cancel();
    }

    pub fn is_lost(&self) -> bool {
        self.0.lost.is_cancelled()
    }

    /// Why the conversation can't go on, if so.
    pub fn loss(&self) -> Option<Loss> {
        self.state().loss.clone()
    }

    /// Waits until the conversation can't go on.
    pub async fn lost(&self) -> Loss {
        self.0.lost.cancelled().await;
        self.state().loss.clone().unwrap_or(Loss::Session)
    }

    /// Whether calls are under way.
    pub fn is_in_use(&self) -> bool {
        !self.state().calls.is_empty()
    }

    /// How many calls of clients the server has answered.
    pub fn answered(&self) -> u64 {
        self.state().answered
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

/// Writes what is queued, many messages at a time, until the conversation is over.
async fn write_all(
    mut writer: impl AsyncWrite + Unpin,
    mut queue: mpsc::Receiver<Bytes>,
    is_shared: impl Fn() -> bool,
    closed: CancellationToken,
    unwritable: CancellationToken,
) {
    let mut frames = Vec::new();
    let mut buffer = Vec::new();
    let writing = async {
        while queue.recv_many(&mut frames, OUTGOING_MAX).await > 0 {
            // Whoever is about to call gets to: one write for all of them costs as much as for one. A call
            // that is alone has nobody to wait for.
            if is_shared() {
                yield_now().await;
            }
            while frames.len() < OUTGOING_MAX
                && let Ok(frame) = queue.try_recv()
            {
                frames.push(frame);
            }
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
