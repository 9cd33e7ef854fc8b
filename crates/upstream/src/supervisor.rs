//! One upstream over its whole life: started, introduced, read, watched, ended, restarted.
//!
//! The handle is what the gateway holds; a task of its own does the rest and tells by events.

pub mod condition;
mod equipment;
mod known;
mod life;
mod lists;
pub mod lost;
mod private;
mod renewal;
mod rest;
mod retire;
mod sharing;
mod worker;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use mcp::items::Inventory;
use mcp::log_level::LogLevel;
use mcp::names::UpstreamName;
use mcp::rpc::{Outcome, Raw};
use mcp::version::Era;
use tokio::sync::{mpsc, watch};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::answer::Answer;
use crate::connection::{Call, Connection};
use crate::context::Context;
pub use crate::conversation::{EraChoice, ITSELF, Introduction, introduce_as};
use crate::error::Error;
use crate::hearing::Watched;
use crate::inventories::{Inventories, Known, Shelf};
use crate::launch::{Launch, Spawner};
use crate::limits::{self, CALL_TIMEOUT, HANDSHAKE_TIMEOUT, RENEWALS_MAX, STARTUP_TIMEOUT};
use crate::meeting::Manner;
use crate::printed::Printed;
use crate::relay::Upcall;
use crate::stderr::StderrTail;
use crate::supervisor::private::Privates;
use crate::supervisor::renewal::is_header_mismatch;
use crate::supervisor::sharing::Habits;
pub use crate::supervisor::sharing::SessionChoice;

/// What the configuration says of one upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    pub name: UpstreamName,
    pub launch: Launch,
    pub era: EraChoice,
    pub session: SessionChoice,
    pub restart: Restart,
    /// After this an upstream that has not answered counts as late.
    pub startup_timeout: Duration,
    /// After this it is given up.
    pub handshake_timeout: Duration,
    /// What it is told where no client has said otherwise.
    pub context: Arc<Context>,
    /// Silence after which a call is given up.
    pub call_timeout: Duration,
    /// What that is called where it is set.
    pub timeout_setting: &'static str,
    /// The server is started when it is needed, and ended when nobody has needed it for so long. It always
    /// runs if absent.
    pub idle_timeout: Option<Duration>,
}

impl Settings {
    /// The usual ones.
    pub fn new(name: UpstreamName, launch: Launch) -> Settings {
        Settings {
            name,
            launch,
            era: EraChoice::Auto,
            session: SessionChoice::default(),
            restart: Restart::Never,
            startup_timeout: STARTUP_TIMEOUT,
            handshake_timeout: HANDSHAKE_TIMEOUT,
            call_timeout: CALL_TIMEOUT,
            timeout_setting: limits::TIMEOUT_SETTING,
            idle_timeout: None,
            context: Arc::default(),
        }
    }
}

/// What happens when a server ends by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    Never,
    OnFailure { delay_max: Duration },
}

/// Where an upstream stands.
#[derive(Clone, Debug)]
pub enum Phase {
    /// Nobody needs it.
    Resting,
    /// What it runs in is being made; another one takes its place then.
    Installing,
    Starting,
    /// It has not answered within its time, but may still join.
    Late,
    Ready,
    /// It ended or could not be used; it will be tried again.
    Waiting {
        reason: String,
    },
    /// It is not tried again.
    Down {
        reason: String,
    },
    /// It is not tried again, and that is no failure.
    LeftOut {
        reason: String,
    },
}

/// What is known of an upstream now.
#[derive(Clone, Debug)]
pub struct Status {
    pub phase: Phase,
    pub introduction: Option<Introduction>,
    /// From start to a full inventory.
    pub startup: Option<Duration>,
    /// What it declares but does not give.
    pub problems: Vec<String>,
    /// How far it is confined, if it is a worker that has run.
    pub sandbox: Option<String>,
    /// Ends in a row, with nothing of use between.
    pub failures: u32,
    /// What is being made for the one that takes its place, in words.
    pub making: Option<String>,
}

/// What the gateway is told.
#[derive(Debug)]
pub enum Event {
    /// The inventory or the phase is another.
    Changed,
    /// Something for a client while no call tells for which.
    Unsolicited { upstream: UpstreamName, upcall: Upcall },
    /// A resource is another; the parameters of `notifications/resources/updated`.
    Updated { upstream: UpstreamName, params: Raw },
}

/// A handle to one upstream; its clones are the same one.
#[derive(Clone)]
pub struct Upstream(Arc<Shared>);

struct Shared {
    settings: Settings,
    spawner: Arc<Spawner>,
    connection: ArcSwapOption<Connection>,
    inventory: ArcSwap<Inventory>,
    /// Whether what is offered was not confirmed by the server as it runs now.
    is_stale: AtomicBool,
    /// What the server gave last, whether or not it is offered.
    last: ArcSwapOption<Known>,
    /// Where that is kept for the next start, if it is.
    shelf: Option<Arc<Shelf>>,
    keeping: TaskTracker,
    status: watch::Sender<Status>,
    stderr: ArcSwap<StderrTail>,
    /// Where is kept what a worker prints.
    printed: Option<Arc<Printed>>,
    /// How the server is spoken to, if it is remote and was met.
    manner: ArcSwapOption<Manner>,
    watched: watch::Sender<Watched>,
    /// How grave log messages must be, once somebody has said so.
    log_level: watch::Sender<Option<LogLevel>>,
    /// Whether anybody needs it, where that counts.
    needed: watch::Sender<bool>,
    /// Who may call a worker now.
    turns: worker::Turns,
    exact: ArcSwap<Vec<String>>,
    lost: ArcSwap<lost::Lost>,
    privates: Privates,
    habits: Arc<Habits>,
    events: mpsc::Sender<Event>,
    restarts: AtomicU64,
    stop: CancellationToken,
    stopped: CancellationToken,
}

impl Upstream {
    /// Starts the upstream's task. What the server gave the last time is offered until it answers.
    pub fn start(
        settings: Settings,
        spawner: Arc<Spawner>,
        events: mpsc::Sender<Event>,
        inventories: Option<Arc<Inventories>>,
    ) -> Upstream {
        let shelf = inventories.and_then(|inventories| inventories.shelf(&settings));
        let last = shelf.as_ref().and_then(Shelf::load);
        let (inventory, problems) = match &settings.launch {
            Launch::Worker(worker) => (Arc::clone(&worker.offer), worker.faults.all()),
            Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => (
                last.as_ref().map(|last| Arc::clone(&last.inventory)).unwrap_or_default(),
                Vec::new(),
            ),
        };
        let status = Status {
            phase: match Upstream::refusal(&settings) {
                Some(reason) => Phase::Down { reason },
                None if rest::is_provisional(&settings) => Phase::Installing,
                None if rest::rests_at_first(&settings) => Phase::Resting,
                None => Phase::Starting,
            },
            introduction: last.as_ref().map(|last| last.introduction.clone()),
            startup: None,
            problems,
            sandbox: None,
            failures: 0,
            making: None,
        };
        let upstream = Upstream(Arc::new(Shared {
            spawner,
            connection: ArcSwapOption::empty(),
            inventory: ArcSwap::new(inventory),
            is_stale: AtomicBool::new(last.is_some()),
            last: ArcSwapOption::new(last.map(Arc::new)),
            shelf: shelf.map(Arc::new),
            keeping: TaskTracker::new(),
            status: watch::Sender::new(status),
            stderr: ArcSwap::default(),
            printed: worker::log_of(&settings),
            manner: ArcSwapOption::empty(),
            watched: watch::Sender::default(),
            log_level: watch::Sender::default(),
            needed: watch::Sender::new(false),
            turns: worker::Turns::of(&settings),
            exact: ArcSwap::from_pointee(worker::exact_of(&settings)),
            lost: ArcSwap::default(),
            settings,
            privates: Privates::default(),
            habits: Arc::default(),
            events,
            restarts: AtomicU64::new(0),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }));
        if let Launch::Url(remote) = &upstream.settings().launch
            && remote.url.is_exposed()
        {
            let upstream = upstream.name();
            tracing::warn!(%upstream, "is reached by plain http; others may read and change it");
        }
        tokio::spawn(upstream.clone().supervise());
        upstream
    }

    pub fn name(&self) -> &UpstreamName {
        &self.0.settings.name
    }

    pub fn settings(&self) -> &Settings {
        &self.0.settings
    }

    pub fn inventory(&self) -> Arc<Inventory> {
        self.0.inventory.load_full()
    }

    pub fn status(&self) -> Status {
        self.0.status.borrow().clone()
    }

    /// How often it was started again.
    pub fn restarts(&self) -> u64 {
        self.0.restarts.load(Ordering::Relaxed)
    }

    /// Whether the server has introduced itself, and so.
    pub fn knows(&self, is_so: impl FnOnce(&Introduction) -> bool) -> bool {
        self.0.status.borrow().introduction.as_ref().is_some_and(is_so)
    }

    /// What is kept of the server's stderr.
    pub fn stderr(&self) -> String {
        self.0.stderr.load().text()
    }

    /// Waits until the upstream has answered, failed or run out of its time.
    pub async fn settled(&self) {
        let mut status = self.0.status.subscribe();
        let is_settled = |status: &Status| !matches!(status.phase, Phase::Starting);
        _ = status.wait_for(is_settled).await;
    }

    /// The era in which the server is spoken to; legacy while it is down.
    pub fn era(&self) -> Era {
        self.0.connection.load().as_ref().map_or(Era::Legacy, |connection| connection.era())
    }

    /// Makes a request; see [`Connection::call`]. The time of a call is for all of it: a worker's turn and start, too.
    pub async fn call(&self, mut call: Call<'_>) -> Result<Answer, Error> {
        self.check_admitted(&call)?;
        let _turn = self.turn(&mut call).await?;
        let connection = self.connection_for(&mut call).await?;
        self.check_lost(&call)?;
        match connection.call(&call).await {
            // It was not processed, so it may be made again.
            Err(Error::SessionLost { .. }) => {
                let renewed = Box::pin(self.renewed(&connection, &call)).await?;
                Box::pin(renewed.call(&call)).await
            }
            Ok(Answer::Whole(Outcome::Error(error))) if is_header_mismatch(&call, &error) => {
                Ok(Box::pin(self.call_with_new_headers(&connection, &call, error)).await)
            }
            Err(Error::Timeout { waited, .. }) => Err(self.overdue(waited)),
            answer => answer,
        }
    }

    /// The conversation that a call belongs to. A server that is starting is waited for.
    async fn connection_for(&self, call: &mut Call<'_>) -> Result<Arc<Connection>, Error> {
        let shared = match self.0.connection.load_full() {
            Some(connection) => connection,
            None => Box::pin(self.awoken(call)).await?,
        };
        match &call.relay {
            Some(relay) if self.is_apart(relay) => Box::pin(self.own(relay)).await,
            _ => Ok(shared),
        }
    }

    /// Sends a notification, if there is somebody who reads; never waits.
    #[expect(clippy::needless_pass_by_value, reason = "as a rule one connection takes it")]
    pub fn notify(&self, frame: Bytes) {
        let shared = self.0.connection.load_full();
        for connection in shared.into_iter().chain(self.0.privates.connections()) {
            // Modern servers take requests only.
            if connection.era() == Era::Legacy {
                connection.try_notify(frame.clone());
            }
        }
    }

    /// Says of which resources somebody wants to hear now; never waits.
    pub fn watch(&self, uris: Watched) {
        self.0.watched.send_if_modified(|watched| {
            let is_new = *watched != uris;
            *watched = uris;
            is_new
        });
    }

    /// Says how grave log messages must be that the server sends, now and in every later
    /// conversation; never waits.
    pub fn want_logs(&self, level: LogLevel) {
        self.0.log_level.send_if_modified(|wanted| wanted.replace(level) != Some(level));
    }

    /// Ends the server and this upstream.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        self.0.stopped.cancelled().await;
    }

    async fn supervise(self) {
        let _stopped = self.0.stopped.clone().drop_guard();
        self.live().await;
        self.close_privates().await;
        self.kept().await;
    }

    /// One life after the other, for as long as there is to be another.
    async fn live(&self) {
        let mut crashes = 0;
        let mut renewals = 0;
        if self.is_lazy() || self.is_worker() {
            self.tell_changed();
        }
        if Upstream::refusal(self.settings()).is_some() || self.is_provisional() {
            return self.0.stop.cancelled().await;
        }
        while self.is_needed().await {
            let mark = self.safe_mark();
            let equipped = match Box::pin(self.equipped()).await {
                Ok(equipped) => equipped,
                Err(reason) => {
                    if self.await_secrets(reason, mark).await {
                        continue;
                    }
                    return;
                }
            };
            let life = Box::pin(self.live_once(&equipped, renewals < RENEWALS_MAX)).await;
            renewals = if life.was_of_use { 0 } else { renewals + 1 };
            if life.is_renewed {
                continue;
            }
            renewals = 0;
            let next = life.reason.as_ref().map(|reason| {
                crashes = if life.was_of_use { 1 } else { crashes + 1 };
                self.0.status.send_modify(|status| status.failures = crashes);
                self.after_end(reason, crashes)
            });
            if let Some((phase, _)) = &next {
                self.set_phase(phase.clone());
            }
            if let Some(process) = life.remains {
                process.end().await;
            }
            match next {
                Some((_, Some(delay))) => tokio::select! {
                    () = sleep(delay) => {
                        self.0.restarts.fetch_add(1, Ordering::Relaxed);
                    }
                    () = self.dismissed() => crashes = 0,
                },
                // Whoever needs it after a rest may be luckier.
                Some((_, None)) if self.is_lazy() => {
                    self.dismissed().await;
                    crashes = 0;
                }
                None if !self.0.stop.is_cancelled() => {
                    self.tell_changed();
                    self.close_conversations();
                    crashes = 0;
                }
                Some((_, None)) | None => return,
            }
        }
    }

    fn set_phase(&self, phase: Phase) {
        self.0.status.send_modify(|status| status.phase = phase);
        self.tell_changed();
    }

    /// Must not get lost, so it waits for a place in a queue that is drained quickly.
    fn tell_changed(&self) {
        if let Err(mpsc::error::TrySendError::Full(event)) = self.0.events.try_send(Event::Changed)
        {
            let events = self.0.events.clone();
            tokio::spawn(async move { _ = events.send(event).await });
        }
    }
}
