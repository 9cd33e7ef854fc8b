//! One upstream over its whole life: started, introduced, read, watched, ended, restarted.
//!
//! The handle is what the gateway holds; a task of its own does the rest and tells by events.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use bytes::Bytes;
use mcp::items::Inventory;
use mcp::names::UpstreamName;
use mcp::rpc::{Outcome, Raw};
use mcp::version::Era;
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::connection::{Call, Connection};
pub use crate::conversation::Introduction;
use crate::conversation::{introduce, read_lists};
use crate::error::Error;
use crate::launch::{Launch, Process, Spawner};
use crate::limits::{CRASHES_MAX, DRAIN_MAX, HEALTHY_AFTER, RESTART_DELAY_MIN, STARTUP_LATE_MAX};
use crate::relay::Upcall;
use crate::stderr::StderrTail;

/// What the configuration says of one upstream.
#[derive(Clone, Debug)]
pub struct Settings {
    pub name: UpstreamName,
    pub launch: Launch,
    pub restart: Restart,
    /// After this an upstream that has not answered counts as late.
    pub startup_timeout: Duration,
    /// Silence after which a call is given up.
    pub call_timeout: Duration,
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
}

/// What the gateway is told.
#[derive(Debug)]
pub enum Event {
    /// The inventory or the phase is another.
    Changed,
    /// Something for a client while no call tells for which.
    Unsolicited(Upcall),
    /// A resource that is watched is another; what the server said of it.
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
    status: watch::Sender<Status>,
    stderr: ArcSwap<StderrTail>,
    events: mpsc::Sender<Event>,
    restarts: AtomicU64,
    stop: CancellationToken,
    stopped: CancellationToken,
}

impl Upstream {
    /// Starts the upstream's task.
    pub fn start(
        settings: Settings,
        spawner: Arc<Spawner>,
        events: mpsc::Sender<Event>,
    ) -> Upstream {
        let status = Status {
            phase: Phase::Starting,
            introduction: None,
            startup: None,
            problems: Vec::new(),
        };
        let upstream = Upstream(Arc::new(Shared {
            settings,
            spawner,
            connection: ArcSwapOption::empty(),
            inventory: ArcSwap::default(),
            status: watch::Sender::new(status),
            stderr: ArcSwap::default(),
            events,
            restarts: AtomicU64::new(0),
            stop: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }));
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

    /// The era that the server speaks; the older one while it is not there.
    pub fn era(&self) -> Era {
        let status = self.0.status.borrow();
        status.introduction.as_ref().map_or(Era::Legacy, |known| known.revision.era())
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

    /// Makes a request; see [`Connection::call`].
    pub async fn call(&self, call: Call<'_>) -> Result<Outcome, Error> {
        let connection = self.0.connection.load_full();
        match connection {
            Some(connection) => connection.call(call).await,
            None => Err(self.down()),
        }
    }

    /// Sends a notification, if there is somebody who reads; never waits.
    pub fn notify(&self, frame: Bytes) {
        if let Some(connection) = self.0.connection.load_full() {
            connection.try_notify(frame);
        }
    }

    /// Sets the resources whose changes are to be told of.
    pub fn watch(&self, uris: std::collections::BTreeSet<String>) {
        drop(uris);
    }

    /// Ends the server and this upstream.
    pub async fn stop(&self) {
        self.0.stop.cancel();
        self.0.stopped.cancelled().await;
    }

    fn down(&self) -> Error {
        let reason = match self.status().phase {
            Phase::Waiting { reason } | Phase::Down { reason } => reason,
            Phase::Starting | Phase::Late | Phase::Ready => "has not answered yet".into(),
        };
        Error::Down { upstream: self.name().clone(), reason }
    }

    async fn supervise(self) {
        let _stopped = self.0.stopped.clone().drop_guard();
        let mut crashes = 0;
        loop {
            let life = self.live_once().await;
            let next = life.reason.as_ref().map(|reason| {
                crashes = if life.was_of_use { 1 } else { crashes + 1 };
                self.after_end(reason, crashes)
            });
            if let Some((phase, _)) = &next {
                self.set_phase(phase.clone());
            }
            if let Some(process) = life.remains {
                process.end().await;
            }
            let Some((_, Some(delay))) = next else { return };
            tokio::select! {
                () = sleep(delay) => {}
                () = self.0.stop.cancelled() => return,
            }
            self.0.restarts.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// What becomes of the upstream after so many crashes in a row: its phase, and when to try
    /// again, if ever.
    fn after_end(&self, reason: &str, crashes: u32) -> (Phase, Option<Duration>) {
        let upstream = self.name();
        let Restart::OnFailure { delay_max } = self.0.settings.restart else {
            tracing::error!(%upstream, "{reason}");
            return (Phase::Down { reason: reason.to_owned() }, None);
        };
        if crashes >= CRASHES_MAX {
            let reason =
                format!("was parked after {crashes} failures in a row; the last: {reason}");
            tracing::error!(%upstream, "{reason}");
            return (Phase::Down { reason }, None);
        }
        let delay = RESTART_DELAY_MIN.saturating_mul(1 << (crashes - 1)).min(delay_max);
        tracing::warn!(%upstream, "restarting in {delay:?}; it {reason}");
        (Phase::Waiting { reason: reason.to_owned() }, Some(delay))
    }

    /// From start to end. Afterwards nothing of it is offered any more.
    async fn live_once(&self) -> Life {
        let began = Instant::now();
        let started = match self.0.spawner.start(&self.0.settings.launch) {
            Ok(started) => started,
            Err(error) => {
                let reason = Some(format!("can't be started: {error}"));
                return Life { reason, was_of_use: false, remains: None };
            }
        };
        let tail = StderrTail::default();
        self.0.stderr.store(Arc::new(tail.clone()));
        let follow = |stderr| tokio::spawn(tail.clone().follow(self.name().clone(), stderr));
        let stderr = started.stderr.map(follow);
        let events = self.0.events.clone();
        let unsolicited = move |upcall| _ = events.try_send(Event::Unsolicited(upcall));
        let connection = Connection::open(
            self.name().clone(),
            started.reader,
            started.writer,
            Box::new(unsolicited),
        );
        let mut process = started.process;
        let end = tokio::select! {
            reason = ended(process.as_mut(), &connection) => Some(reason),
            problem = self.converse(&connection, began) => Some(problem),
            () = self.0.stop.cancelled() => None,
        };
        if end.is_some() {
            _ = timeout(DRAIN_MAX, async {
                connection.drained().await;
                if let Some(stderr) = stderr {
                    _ = stderr.await;
                }
            })
            .await;
        }
        let reason = end.map(|end| with_last_words(&end, &tail));
        let was_of_use = connection.answered() > 0
            || began.elapsed() > HEALTHY_AFTER && self.0.connection.load().is_some();
        self.0.connection.store(None);
        self.0.inventory.store(Arc::default());
        connection.close(reason.clone().unwrap_or_else(|| "is being stopped".into()));
        Life { reason, was_of_use, remains: process }
    }

    /// Handshake, lists, and then the lists again whenever they change. Ends with a problem.
    async fn converse(&self, connection: &Connection, began: Instant) -> String {
        let late = sleep(self.0.settings.startup_timeout);
        let acquaintance = self.get_acquainted(connection);
        tokio::pin!(late, acquaintance);
        let acquaintance = tokio::select! {
            acquaintance = &mut acquaintance => acquaintance,
            () = &mut late => {
                self.set_phase(Phase::Late);
                acquaintance.await
            }
        };
        let Acquaintance { introduction, mut inventory, problems } = match acquaintance {
            Ok(acquaintance) => acquaintance,
            Err(problem) => return format!("can't be used: {problem}"),
        };
        self.0.connection.store(Some(Arc::new(connection.clone())));
        self.0.inventory.store(Arc::new(inventory.clone()));
        self.0.status.send_modify(|status| {
            status.phase = Phase::Ready;
            status.introduction = Some(introduction.clone());
            status.startup = Some(began.elapsed());
            status.problems = problems;
        });
        self.tell_changed();
        loop {
            for capability in connection.changed_lists().await {
                let read = read_lists(connection, &introduction, capability, &mut inventory);
                if let Err(problem) = read.await {
                    tracing::warn!(upstream = %self.name(), "kept the old {capability}: {problem}");
                }
            }
            if *self.0.inventory.load_full() != inventory {
                self.0.inventory.store(Arc::new(inventory.clone()));
                self.tell_changed();
            }
        }
    }

    /// The handshake and the first lists; what could not be read is told in words.
    async fn get_acquainted(&self, connection: &Connection) -> Result<Acquaintance, String> {
        let introduction = introduce(connection, STARTUP_LATE_MAX).await?;
        let mut inventory = Inventory::default();
        let mut problems = Vec::new();
        for capability in ["tools", "resources", "prompts"] {
            let read = read_lists(connection, &introduction, capability, &mut inventory);
            if let Err(problem) = read.await {
                tracing::warn!(upstream = %self.name(), "has no {capability}: {problem}");
                problems.push(format!("its {capability} can't be read: {problem}"));
            }
        }
        Ok(Acquaintance { introduction, inventory, problems })
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

/// What is known of a server after the first talk.
struct Acquaintance {
    introduction: Introduction,
    inventory: Inventory,
    problems: Vec<String>,
}

/// One life of a server, when it is over.
struct Life {
    /// Why it ended; `None` if it was told to.
    reason: Option<String>,
    was_of_use: bool,
    /// What is still to be ended.
    remains: Option<Process>,
}

/// Waits for the end of the server: of the process, or of a built-in one's output.
async fn ended(process: Option<&mut Process>, connection: &Connection) -> String {
    match process {
        None => {
            connection.drained().await;
            "has ended".into()
        }
        Some(process) => {
            let half = tokio::select! {
                reason = process.ended() => return reason,
                () = connection.drained() => "output",
                () = connection.unwritable() => "input",
            };
            // A server that closed its end can't be talked to, whether or not it still runs; but
            // as a rule it has ended, and its exit code says more.
            let reason = timeout(DRAIN_MAX, process.ended()).await;
            reason.unwrap_or_else(|_| format!("has closed its {half}"))
        }
    }
}

fn with_last_words(reason: &str, tail: &StderrTail) -> String {
    match tail.last_words() {
        words if words.is_empty() => reason.to_owned(),
        words => format!("{reason}; its last words on stderr:\n{words}"),
    }
}
