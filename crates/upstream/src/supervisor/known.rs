//! What is known of a server while it is not there: its last inventory, which is offered until it answers, and who waits
//! for it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp::items::{Inventory, Kind};
use tokio::time::{Instant, timeout};

use super::{Phase, Upstream};
use crate::connection::{Call, Connection};
use crate::conversation::Introduction;
use crate::error::Error;
use crate::inventories::Known;
use crate::launch::Launch;
use crate::limits::{KEEPING_MAX, RETURN_MAX};

impl Upstream {
    /// Whether what is offered was given by the server at another time, and was not confirmed since.
    pub fn is_stale(&self) -> bool {
        self.0.is_stale.load(Ordering::Relaxed)
    }

    /// Whether it is known what the server offers, from now or from another time.
    pub fn is_known(&self) -> bool {
        // Where only running them tells all, files tell too little.
        let is_told_by_files =
            matches!(&self.0.settings.launch, Launch::Worker(worker) if !worker.is_eager);
        let is_in_files = || is_told_by_files && !self.inventory().of(Kind::Tool).is_empty();
        match self.0.status.borrow().phase {
            Phase::Ready => true,
            Phase::Down { .. } | Phase::LeftOut { .. } => false,
            _ => self.is_stale() || is_in_files(),
        }
    }

    /// What the server offered last, also when it is not offered now.
    pub fn last_inventory(&self) -> Option<Arc<Inventory>> {
        self.0.last.load().as_ref().map(|last| Arc::clone(&last.inventory))
    }

    /// Waits until it is known what the server offers, or it has failed or run out of its time.
    pub async fn listed(&self) {
        if !self.is_known() {
            self.settled().await;
        }
    }

    /// Offers what the server has given just now.
    pub(super) fn offer(&self, introduction: &Introduction, inventory: &Inventory) {
        // The same stays the same, so that nobody is told of a change.
        if *self.0.inventory.load_full() != *inventory {
            self.0.inventory.store(Arc::new(inventory.clone()));
        }
        let inventory = self.0.inventory.load_full();
        let known = Known { introduction: introduction.clone(), inventory };
        self.0.last.store(Some(Arc::new(known)));
        self.0.is_stale.store(false, Ordering::Relaxed);
    }

    /// Keeps what is offered for the next start; does not wait for that.
    pub(super) fn keep(&self) {
        let Some(shelf) = self.0.shelf.clone() else { return };
        let upstream = self.clone();
        // What is newest when its turn comes is written: the order of turns is not known.
        self.0.keeping.spawn_blocking(move || shelf.save(|| upstream.0.last.load_full()));
    }

    /// Waits until all is kept.
    pub(super) async fn kept(&self) {
        self.0.keeping.close();
        _ = timeout(KEEPING_MAX, self.0.keeping.wait()).await;
    }

    /// Ends what only a running server can do. Its lists go on, if it only rests or is started anew.
    pub(super) fn withdraw(&self, keeps_lists: bool) {
        self.0.connection.store(None);
        // What a worker offers stands in its files, whether or not it runs.
        if self.is_worker() {
            return;
        }
        let keeps_lists = keeps_lists && self.0.last.load().is_some();
        if !keeps_lists {
            self.0.inventory.store(Arc::default());
        }
        self.0.is_stale.store(keeps_lists, Ordering::Relaxed);
    }

    /// Starts the server if it rests, and waits until it has answered, for as long as it may take.
    pub async fn answered(&self) -> Result<(), Error> {
        let patience = self.0.settings.startup_timeout.min(self.0.settings.call_timeout);
        self.need(true);
        timeout(patience, self.back()).await.unwrap_or_else(|_| Err(self.down())).map(|_| ())
    }

    /// Starts a server that rests, and waits for one that is being started or has just ended: no longer than the call
    /// may take, of whose time it is taken off.
    pub(super) async fn awoken(&self, call: &mut Call<'_>) -> Result<Arc<Connection>, Error> {
        self.need(true);
        let began = Instant::now();
        let (startup, left) = (self.0.settings.startup_timeout, call.timeout);
        let late = || if left < startup { self.late() } else { self.down() };
        tokio::select! {
            biased;
            back = timeout(startup.min(left), self.back()) => {
                let connection = back.unwrap_or_else(|_| Err(late()))?;
                self.take_off(began, call)?;
                Ok(connection)
            }
            () = self.0.stopped.cancelled() => {
                let (upstream, reason) = (self.name().clone(), "was replaced; try again".into());
                Err(Error::Down { upstream, reason })
            }
        }
    }

    async fn back(&self) -> Result<Arc<Connection>, Error> {
        let mut status = self.0.status.subscribe();
        let latest_return = Instant::now() + RETURN_MAX;
        loop {
            let phase = status.borrow_and_update().phase.clone();
            if let Some(connection) = self.0.connection.load_full() {
                return Ok(connection);
            }
            // One that has ended comes back within moments, unless it ends again and again.
            let patience = match phase {
                Phase::Late if !self.is_worker() => return Err(self.down()),
                Phase::Resting | Phase::Starting | Phase::Late => self.0.settings.startup_timeout,
                Phase::Ready | Phase::Waiting { .. } => {
                    latest_return.duration_since(Instant::now())
                }
                Phase::Installing | Phase::Down { .. } | Phase::LeftOut { .. } => {
                    return Err(self.down());
                }
            };
            if !matches!(timeout(patience, status.changed()).await, Ok(Ok(()))) {
                return Err(self.down());
            }
        }
    }
}
