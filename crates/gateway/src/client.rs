//! One connected client: its handshake, its view, what is under way for it.

mod outlet;
mod underway;

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use catalog::view::View;
use foldhash::{HashMap, HashMapExt as _};
use mcp::abilities::Abilities;
use mcp::items::Kind;
use mcp::log_level::LogLevel;
use mcp::params::exchange_progress_token;
use mcp::rpc::{self, Outcome, Raw};
use mcp::version::Revision;
use tokio::sync::{Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;
use upstream::context::Context;
use upstream::relay::{Ask, Upcall};

use crate::auth::Caller;
use crate::error::Error;
use crate::habits::Habits;
use crate::limits::{ASKS_PER_CLIENT_MAX, CALLS_AT_ONCE_MAX, CALLS_PER_CLIENT_MAX};
use crate::listeners::Listeners;
use crate::logs;
use crate::origins::Origins;
use crate::outbox::Outbox;
use crate::place::Place;
use crate::selections::Holding;

pub use outlet::Outlet;
use underway::Cancellation;
pub(crate) use underway::Underway;

/// By what a client is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The one client of this process, on stdio: what no call tells for whom it is, is for it.
    Process,
    /// One session of several.
    Session,
    /// A proven caller whose requests belong to no session; it has no handshake and no end.
    Principal,
}

/// What a client said of itself in its handshake.
#[derive(Clone, Debug)]
pub struct Introduction {
    pub revision: Revision,
    pub abilities: Abilities,
    /// Its name and version.
    pub client: Option<Box<str>>,
}

/// How far a client has come with its handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    New,
    /// `initialize` is being answered; what comes meanwhile waits for it.
    Introducing,
    Introduced,
}

#[derive(Debug)]
pub struct Client {
    pub(crate) id: u64,
    pub(crate) owner: Owner,
    pub caller: Caller,
    /// What it has said for servers of its own.
    pub(crate) context: Option<Arc<Context>>,
    /// The id that it has given when it connected, where ids count.
    pub(crate) label: Option<Arc<str>>,
    /// Whose its selection is, if it is not this session's alone.
    holding: OnceLock<Holding>,
    stage: watch::Sender<Stage>,
    introduction: OnceLock<Introduction>,
    /// Set once it is known which program it is.
    is_recognised: AtomicBool,
    pub(crate) habits: Habits,
    /// Cancelled when the client has asked for the last time.
    pub(crate) leaving: CancellationToken,
    /// Turns for calls, so that their answers can't fill the memory.
    pub(crate) turns: Semaphore,
    /// Counts the messages of upstreams that found no room, of all clients.
    lost_notices: Arc<AtomicU64>,
    state: Mutex<State>,
    listeners: Mutex<Listeners>,
    /// Which servers have named resources to it.
    pub(crate) origins: Origins,
}

#[derive(Debug)]
struct State {
    view: Arc<View>,
    /// Where messages go that belong to no request of the client.
    outlet: Option<Outlet>,
    /// Set once the client has said that it is ready.
    is_ready: bool,
    /// Set once the client is gone.
    is_closed: bool,
    /// Log messages must be as grave as this.
    log_level: Option<LogLevel>,
    /// Notices that lists have changed, not sent yet.
    list_changes: BTreeSet<&'static str>,
    calls: HashMap<CallKey, Arc<Cancellation>>,
    last_call: u64,
    last_ask: u64,
    asks: HashMap<u64, PendingAsk>,
}

/// What a call under way is known by. The ids of a session's requests differ; a principal may use
/// one for several requests at once.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum CallKey {
    Id(Raw),
    Number(u64),
}

impl State {
    fn send_list_changes(&mut self) {
        let (true, Some(outlet)) = (self.is_ready, &self.outlet) else { return };
        let outbox = &outlet.outbox;
        self.list_changes.retain(|method| !outbox.try_send(rpc::notification(method, None)));
    }
}

/// A request of an upstream that the client has not answered yet.
#[derive(Debug)]
struct PendingAsk {
    reply: oneshot::Sender<Outcome>,
    /// The upstream's own token, if it wants to hear of progress.
    progress_token: Option<Raw>,
    notices: mpsc::Sender<Bytes>,
}

impl Client {
    pub(crate) fn new(
        id: u64,
        caller: Caller,
        place: &Place,
        owner: Owner,
        view: Arc<View>,
        lost_notices: Arc<AtomicU64>,
        calls_at_once: Option<usize>,
    ) -> Client {
        let introduction = OnceLock::new();
        let stage = if owner == Owner::Principal {
            _ = introduction.set(Introduction {
                revision: Revision::NEWEST_LEGACY,
                abilities: Abilities::NONE,
                client: None,
            });
            Stage::Introduced
        } else {
            Stage::New
        };
        Client {
            id,
            owner,
            caller,
            context: place.context.clone(),
            label: place.label.clone(),
            holding: OnceLock::new(),
            stage: watch::Sender::new(stage),
            introduction,
            is_recognised: AtomicBool::new(owner == Owner::Principal),
            habits: Habits::default(),
            leaving: CancellationToken::new(),
            // The requests of a principal come from many clients, which must not wait for each other.
            turns: Semaphore::new(match (calls_at_once, owner) {
                (Some(calls), _) => calls,
                (None, Owner::Principal) => CALLS_PER_CLIENT_MAX,
                (None, Owner::Process | Owner::Session) => CALLS_AT_ONCE_MAX,
            }),
            lost_notices,
            state: Mutex::new(State {
                view,
                outlet: None,
                is_ready: false,
                is_closed: false,
                log_level: None,
                list_changes: BTreeSet::new(),
                calls: HashMap::new(),
                last_call: 0,
                last_ask: 0,
                asks: HashMap::new(),
            }),
            listeners: Mutex::default(),
            origins: Origins::default(),
        }
    }

    /// Whose its selection is, if it is not this session's alone.
    pub(crate) fn holding(&self) -> Option<&Holding> {
        self.holding.get()
    }

    /// Shares a selection from now on.
    pub(crate) fn hold(&self, holding: Holding) {
        _ = self.holding.set(holding);
    }

    pub fn introduction(&self) -> Option<&Introduction> {
        self.introduction.get()
    }

    /// Whether it is not known yet which program it is; it is from now on.
    pub(crate) fn begin_recognition(&self) -> bool {
        !self.is_recognised.load(Ordering::Relaxed)
            && !self.is_recognised.swap(true, Ordering::Relaxed)
    }

    /// Begins the handshake; it ends when what is given back is dropped.
    pub(crate) fn begin_introduction(&self) -> Result<Introducing<'_>, Error> {
        let begins = self.stage.send_if_modified(|stage| {
            let is_new = *stage == Stage::New;
            if is_new {
                *stage = Stage::Introducing;
            }
            is_new
        });
        if begins { Ok(Introducing(self)) } else { Err(Error::Reinitialized) }
    }

    /// Waits for a handshake under way; whether the client has introduced itself.
    pub(crate) async fn is_introduced(&self) -> bool {
        if self.introduction().is_some() {
            return true;
        }
        Box::pin(async {
            let mut stage = self.stage.subscribe();
            let settled = stage.wait_for(|stage| *stage != Stage::Introducing).await;
            settled.is_ok_and(|stage| *stage == Stage::Introduced)
        })
        .await
    }

    /// Tells that the client asks nothing more: what waits for others no longer does.
    pub fn hurry(&self) {
        self.leaving.cancel();
    }

    /// Takes messages that belong to no request from now on; replaces an earlier outlet.
    pub fn attach(&self, outlet: Outlet) {
        let mut state = self.state();
        state.outlet = Some(outlet);
        state.send_list_changes();
    }

    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.state().view)
    }

    /// Exchanges the view by what `change` makes of it; nothing else changes it meanwhile.
    pub(crate) fn change_view<T>(&self, change: impl FnOnce(&mut Arc<View>) -> T) -> T {
        change(&mut self.state().view)
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        self.state().log_level
    }

    pub(crate) fn set_log_level(&self, level: LogLevel) {
        self.state().log_level = Some(level);
    }

    /// Whether a notification is for this client; one that has set no level gets all logs.
    fn wants(&self, frame: &[u8]) -> bool {
        self.log_level().is_none_or(|least| logs::is_wanted(frame, Some(least)))
    }

    pub(crate) fn with_listeners<T>(&self, act: impl FnOnce(&mut Listeners) -> T) -> T {
        act(&mut self.listeners.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn is_ready(&self) -> bool {
        self.state().is_ready
    }

    pub(crate) fn mark_ready(&self) {
        let mut state = self.state();
        state.is_ready = true;
        state.send_list_changes();
    }

    /// Sends a message that belongs to no request; lost when nobody listens.
    pub(crate) fn send(&self, upcall: Upcall) {
        let outlet = {
            let state = self.state();
            state.outlet.clone().filter(|_| state.is_ready && self.introduction().is_some())
        };
        if let Some(outlet) = outlet {
            _ = (outlet.relay.deliver)(upcall);
        }
    }

    /// Tells the client that its lists of these kinds are other ones, once a method; later, if it
    /// does not listen now. One that has not introduced itself has no lists yet. Where nobody hears what belongs to no
    /// request, it goes to the `request` that has changed them.
    pub(crate) fn announce(self: &Arc<Self>, kinds: &[Kind], request: Option<&Outbox>) {
        if kinds.is_empty() {
            return;
        }
        let lists = self.habits.lists();
        let are_told = self.with_listeners(|listeners| listeners.announce(self, kinds));
        let is_told = self.introduction().is_some() && self.announce_in_session(kinds, request);
        if kinds.contains(&Kind::Tool) && (are_told || is_told) {
            self.habits.note_told(lists);
        }
    }

    /// The same for one that has introduced itself; whether it hears of it now.
    fn announce_in_session(self: &Arc<Self>, kinds: &[Kind], request: Option<&Outbox>) -> bool {
        let mut state = self.state();
        let nothing_waited = state.list_changes.is_empty();
        state.list_changes.extend(kinds.iter().map(|kind| kind.changed_method()));
        let is_heard = state.outlet.as_ref().is_some_and(Outlet::is_heard);
        if let (true, false, Some(request)) = (state.outlet.is_some(), is_heard, request) {
            state.list_changes.retain(|method| !request.try_send(rpc::notification(method, None)));
        }
        let is_told = is_heard || state.list_changes.is_empty();
        state.send_list_changes();
        // The queue is full: once there is room again, they are sent after all.
        if let (true, false, true, Some(outlet)) =
            (nothing_waited, state.list_changes.is_empty(), state.is_ready, &state.outlet)
        {
            let (client, outbox) = (Arc::clone(self), outlet.outbox.clone());
            tokio::spawn(async move {
                while !outbox.is_gone() && !client.state().list_changes.is_empty() {
                    outbox.has_room().await;
                    client.state().send_list_changes();
                }
            });
        }
        is_told
    }

    /// Notes that a request is under way, so that the client can cancel it.
    pub(crate) fn begin(&self, id: &Raw) -> Result<Underway<'_>, Error> {
        let mut state = self.state();
        if state.is_closed {
            return Err(Error::Cancelled);
        }
        if state.calls.len() >= CALLS_PER_CLIENT_MAX {
            return Err(Error::Busy(CALLS_PER_CLIENT_MAX));
        }
        let key = if self.owner == Owner::Principal {
            state.last_call += 1;
            CallKey::Number(state.last_call)
        } else {
            CallKey::Id(id.clone())
        };
        if state.calls.contains_key(&key) {
            return Err(Error::IdInUse);
        }
        let cancellation = Arc::<Cancellation>::default();
        state.calls.insert(key.clone(), Arc::clone(&cancellation));
        Ok(Underway { client: self, key, cancellation })
    }

    pub(crate) fn cancel(&self, id: &Raw) {
        if let Some(call) = self.state().calls.get(&CallKey::Id(id.clone())) {
            call.cancel();
        }
    }

    /// Makes a request to this client of what an upstream asks; `None` if it can't answer such.
    ///
    /// When the upstream loses interest, the client is told over `outbox`.
    fn ask(self: &Arc<Self>, ask: Ask, outbox: &Outbox) -> Option<Bytes> {
        if !self.abilities().answers(&ask.method, ask.params.as_ref()) {
            return None;
        }
        let (reply, replied) = oneshot::channel();
        let mut state = self.state();
        if state.asks.len() >= ASKS_PER_CLIENT_MAX {
            return None;
        }
        state.last_ask += 1;
        let id = state.last_ask;
        // Two upstreams may use the same token, so ours goes to the client: the id.
        let exchanged =
            ask.params.as_ref().and_then(|params| exchange_progress_token(params, &id.to_string()));
        let (params, progress_token) = match exchanged {
            Some((params, token)) => (Some(params), Some(token)),
            None => (ask.params.as_ref().map(|params| params.as_bytes().to_vec()), None),
        };
        state.asks.insert(id, PendingAsk { reply, progress_token, notices: ask.notices });
        drop(state);
        let frame = rpc::request(&id.to_string(), &ask.method, params.as_deref());
        tokio::spawn(Arc::clone(self).await_answer(id, ask.answer, replied, outbox.clone()));
        Some(frame)
    }

    async fn await_answer(
        self: Arc<Self>,
        id: u64,
        mut answer: oneshot::Sender<Outcome>,
        replied: oneshot::Receiver<Outcome>,
        outbox: Outbox,
    ) {
        tokio::select! {
            outcome = replied => {
                if let Ok(outcome) = outcome {
                    _ = answer.send(outcome);
                }
            }
            () = answer.closed() => {
                self.state().asks.remove(&id);
                let params = format!(r#"{{"requestId":{id},"reason":"no longer wanted"}}"#);
                let notice = rpc::notification("notifications/cancelled", Some(params.as_bytes()));
                outbox.try_send(notice);
            }
        }
    }

    pub(crate) fn answer(&self, id: &Raw, outcome: Outcome) {
        let id = std::str::from_utf8(id.as_bytes()).ok().and_then(|id| id.parse().ok());
        let ask = id.and_then(|id: u64| self.state().asks.remove(&id));
        if let Some(ask) = ask {
            _ = ask.reply.send(outcome);
        }
    }

    /// Passes the client's progress on a request to the upstream that made it.
    pub(crate) fn progress(&self, params: &Raw) {
        let Ok([Some(id)]) = params.members(["progressToken"]) else { return };
        let ask = id.parse().ok().and_then(|id: u64| {
            let state = self.state();
            let ask = state.asks.get(&id)?;
            Some((ask.progress_token.clone()?, ask.notices.clone()))
        });
        let Some((token, notices)) = ask else { return };
        let token = String::from_utf8_lossy(token.as_bytes());
        if let Some((params, _)) = exchange_progress_token(params, &token) {
            let notice = rpc::notification("notifications/progress", Some(&params));
            _ = notices.try_send(notice);
        }
    }

    /// What may be asked of it; nothing before it has said so.
    pub(crate) fn abilities(&self) -> Abilities {
        self.introduction().map_or(Abilities::NONE, |introduction| introduction.abilities)
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    /// Cancels what is under way and refuses what is asked.
    pub(crate) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        state.outlet = None;
        state.asks.clear();
        for call in state.calls.values() {
            call.cancel();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A handshake under way.
pub(crate) struct Introducing<'a>(&'a Client);

impl Introducing<'_> {
    pub(crate) fn finish(self, introduction: Introduction) {
        _ = self.0.introduction.set(introduction);
    }
}

impl Drop for Introducing<'_> {
    fn drop(&mut self) {
        let is_done = self.0.introduction().is_some();
        self.0.stage.send_replace(if is_done { Stage::Introduced } else { Stage::New });
    }
}
