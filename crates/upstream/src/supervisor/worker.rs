//! What is particular to Python workers: they are started by the first call, and calls take turns.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp::items::Inventory;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, timeout};

use super::{Settings, Upstream};
use crate::confine::SANDBOX_SAID;
use crate::connection::{Call, Connection};
use crate::error::Error;
use crate::launch::Launch;
use crate::limits::FIRST_LINE_MAX;
use crate::printed::Printed;
use crate::python::Rate;
use crate::python::protocol::{Failure, ToolFault};

/// What a call may have waited without being told that it has less time.
const MOMENT: Duration = Duration::from_millis(20);

/// Who may call a worker: so many at once, so many who wait, and so often. TD-15, TD-17
pub(super) struct Turns {
    at_once: Option<Semaphore>,
    waiting: AtomicUsize,
    waiting_max: usize,
    calls_max: usize,
    rate: Option<Rate>,
}

/// The right to call, for as long as it is held.
pub(super) struct Turn<'a> {
    _permit: Option<SemaphorePermit<'a>>,
}

/// Somebody who waits.
struct Waiter<'a>(&'a AtomicUsize);

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Turns {
    pub fn of(settings: &Settings) -> Turns {
        let pace = match &settings.launch {
            Launch::Worker(worker) => Some(&worker.pace),
            Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => None,
        };
        Turns {
            at_once: pace.map(|pace| Semaphore::new(pace.calls_max.min(Semaphore::MAX_PERMITS))),
            waiting: AtomicUsize::new(0),
            waiting_max: pace.map_or(0, |pace| pace.waiting_max),
            calls_max: pace.map_or(0, |pace| pace.calls_max),
            rate: pace.and_then(|pace| pace.calls_a_minute).map(Rate::new),
        }
    }
}

impl Turns {
    /// Whether anybody has the right to call now.
    pub fn are_taken(&self) -> bool {
        self.at_once.as_ref().is_some_and(|at_once| at_once.available_permits() < self.calls_max)
    }
}

impl Upstream {
    pub fn is_worker(&self) -> bool {
        matches!(self.0.settings.launch, Launch::Worker(_))
    }

    /// Whether it is a worker that converts arguments of another type where it can.
    pub fn converts(&self) -> bool {
        matches!(&self.0.settings.launch, Launch::Worker(worker) if !worker.is_strict)
    }

    /// Why its folder is not served, if it is one that is not.
    pub fn refused(&self) -> Option<String> {
        Upstream::refusal(self.settings())
    }

    /// Why it is a worker that is never started, if it is one.
    pub(super) fn refusal(settings: &Settings) -> Option<String> {
        match &settings.launch {
            Launch::Worker(worker) if worker.is_refused => {
                Some(format!("is not served: {}", worker.faults.all().join("; ")))
            }
            Launch::Worker(_) | Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => None,
        }
    }

    /// Whether a worker may be asked for this.
    pub(super) fn check_admitted(&self, call: &Call<'_>) -> Result<(), Error> {
        match (&self.0.settings.launch, call.subject) {
            (Launch::Worker(worker), Some(tool))
                if call.method == "tools/call" && !worker.admission.admits(tool) =>
            {
                let message = format!("no tool is named `{tool}`");
                let failure = Failure { fault: ToolFault::NotFound, message, details: None };
                Err(Error::Tool { upstream: self.name().clone(), failure })
            }
            _ => Ok(()),
        }
    }

    /// Leaves of a worker's tools those that may be seen: their names are not all known before it runs.
    pub(super) fn leave_admitted(&self, inventory: &mut Inventory) {
        if let Launch::Worker(worker) = &self.0.settings.launch {
            inventory.retain(|tool| worker.admission.admits(tool.name()));
        }
    }

    /// Notes what a worker, if it is one, has said of itself, and how far it is confined.
    pub(super) async fn note_worker(&self, connection: &Connection) {
        let Launch::Worker(worker) = &self.0.settings.launch else { return };
        let exact = connection.exact();
        // The same stays the same: what is made of it is kept.
        if *self.0.exact.load_full() != exact {
            self.0.exact.store(Arc::new(exact));
        }
        let sandbox = match worker.confinement {
            Some(_) => {
                // It was said before the worker began, but perhaps not read yet.
                let tail = self.0.stderr.load_full();
                let line = timeout(FIRST_LINE_MAX, tail.first_line()).await.unwrap_or_default();
                line.strip_prefix(SANDBOX_SAID).unwrap_or("unknown").to_owned()
            }
            None => "none: not confined".to_owned(),
        };
        self.0.status.send_modify(|status| status.sandbox = Some(sandbox));
    }

    /// The tools whose schema alone tells what they take: as the worker has said, and before that as its files do.
    pub fn exact(&self) -> Arc<Vec<String>> {
        self.0.exact.load_full()
    }

    /// Takes off a call's time what it has waited, if anything is left then; moments do not count.
    pub(super) fn take_off(&self, began: Instant, call: &mut Call<'_>) -> Result<(), Error> {
        let waited = began.elapsed();
        if waited >= MOMENT {
            call.timeout = call.timeout.saturating_sub(waited);
        }
        if call.timeout.is_zero() { Err(self.late()) } else { Ok(()) }
    }

    pub(super) fn late(&self) -> Error {
        self.overdue(self.0.settings.call_timeout)
    }

    /// A call that was waited for in vain, with the setting that says for how long.
    pub(super) fn overdue(&self, waited: Duration) -> Error {
        let setting = self.settings().timeout_setting;
        Error::Timeout { upstream: self.name().clone(), waited, setting }
    }

    /// Waits for the right to call; what that takes is taken off the call's time.
    pub(super) async fn turn(&self, call: &mut Call<'_>) -> Result<Turn<'_>, Error> {
        let turns = &self.0.turns;
        let Some(at_once) = &turns.at_once else { return Ok(Turn { _permit: None }) };
        if turns.rate.as_ref().is_some_and(|rate| !rate.admits()) {
            return Err(Error::TooOften { upstream: self.name().clone() });
        }
        if let Ok(permit) = at_once.try_acquire() {
            return Ok(Turn { _permit: Some(permit) });
        }
        let waiter = Waiter(&turns.waiting);
        if turns.waiting.fetch_add(1, Ordering::Relaxed) >= turns.waiting_max {
            let limit = turns.calls_max + turns.waiting_max;
            return Err(Error::Busy { upstream: self.name().clone(), limit });
        }
        let began = Instant::now();
        let waiting = timeout(call.timeout, at_once.acquire()).await;
        drop(waiter);
        self.take_off(began, call)?;
        // It is never closed.
        waiting.map(|permit| Turn { _permit: permit.ok() }).map_err(|_| self.late())
    }
}

/// Where is kept what a worker prints, if it is one.
pub(super) fn log_of(settings: &Settings) -> Option<Arc<Printed>> {
    match &settings.launch {
        Launch::Worker(worker) => worker.log.clone().map(Printed::new),
        Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => None,
    }
}

/// The tools whose schema alone tells what they take, as far as the files of a worker say.
pub(super) fn exact_of(settings: &Settings) -> Vec<String> {
    match &settings.launch {
        Launch::Worker(worker) => worker.exact.clone(),
        Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => Vec::new(),
    }
}
