//! Servers that run only while somebody needs them. TC-25

use std::future::pending;

use tokio::time::sleep;

use super::{Phase, Settings, Upstream};
use crate::launch::Launch;
use crate::python::Stage;

impl Upstream {
    /// Whether the server runs only while it is needed.
    pub fn is_lazy(&self) -> bool {
        self.0.settings.idle_timeout.is_some()
    }

    /// Says whether anybody needs the server; never waits. One that rests counts as starting at once, so that
    /// it can be waited for.
    pub fn need(&self, is_needed: bool) {
        self.0.needed.send_if_modified(|needed| {
            let is_new = *needed != is_needed;
            *needed = is_needed;
            if is_needed {
                self.0.status.send_if_modified(|status| {
                    let rests = matches!(status.phase, Phase::Resting);
                    if rests {
                        status.phase = Phase::Starting;
                    }
                    rests
                });
            }
            is_new
        });
    }

    /// The same for who only wants to have it listed: a server that rests, and whose lists are known, goes on
    /// resting.
    pub fn need_lists(&self, are_needed: bool) {
        let rests = matches!(self.0.status.borrow().phase, Phase::Resting);
        if !(are_needed && rests && self.is_stale()) {
            self.need(are_needed);
        }
    }

    /// Waits until the server is needed; `false` if it is to stop instead.
    pub(super) async fn is_needed(&self) -> bool {
        if !rests_at_first(&self.0.settings) {
            return true;
        }
        let mut needed = self.0.needed.subscribe();
        tokio::select! {
            needed = needed.wait_for(|needed| *needed) => needed.is_ok(),
            () = self.0.stop.cancelled() => false,
        }
    }

    /// Waits until the server is to end: because all is to, or because nobody has needed it for long. Then it
    /// rests.
    pub(super) async fn dismissed(&self) {
        tokio::select! {
            () = self.0.stop.cancelled() => {}
            () = self.idle() => {}
        }
    }

    async fn idle(&self) {
        let Some(idle_timeout) = self.0.settings.idle_timeout else { return pending().await };
        let mut needed = self.0.needed.subscribe();
        loop {
            if needed.wait_for(|needed| !*needed).await.is_err() {
                return pending().await;
            }
            tokio::select! {
                _ = needed.wait_for(|needed| *needed) => continue,
                () = sleep(idle_timeout) => {}
            }
            // Calls that were begun before are not cut short.
            if !self.is_in_use() && self.lie_down() {
                tracing::info!(upstream = %self.name(), "is not needed any more; ending it");
                return;
            }
        }
    }

    pub(super) fn is_in_use(&self) -> bool {
        let mut open =
            self.0.connection.load_full().into_iter().chain(self.0.privates.connections());
        // Who waits for a worker to start has no call under way yet.
        open.any(|connection| connection.is_in_use()) || self.0.turns.are_taken()
    }

    /// Rests, unless somebody needs it after all.
    fn lie_down(&self) -> bool {
        let mut rests = false;
        // Under the lock of `needed`, so that nobody who needs it now finds it neither resting nor starting.
        self.0.needed.send_if_modified(|needed| {
            rests = !*needed;
            if rests {
                self.0.status.send_modify(|status| status.phase = Phase::Resting);
            }
            false
        });
        rests
    }
}

impl Upstream {
    /// Whether another one takes its place as soon as what it runs in is made; until then it is never started.
    pub fn is_provisional(&self) -> bool {
        is_provisional(&self.0.settings)
    }

    /// Whether it is a folder of which only the name is known; another one takes its place when it is read.
    pub fn is_unread(&self) -> bool {
        matches!(&self.0.settings.launch, Launch::Worker(worker) if worker.stage == Stage::Unread)
    }

    /// Notes what is being made for the one that takes its place, if anything is.
    pub fn note_making(&self, making: Option<String>) {
        self.0.status.send_modify(|status| status.making = making);
    }
}

pub(super) fn is_provisional(settings: &Settings) -> bool {
    matches!(&settings.launch, Launch::Worker(worker) if worker.stage != Stage::Whole)
}

/// Whether a server is started only when somebody wants it.
pub(super) fn rests_at_first(settings: &Settings) -> bool {
    match &settings.launch {
        Launch::Worker(worker) => !worker.is_eager,
        Launch::Command(_) | Launch::BuiltIn(_) | Launch::Url(_) => settings.idle_timeout.is_some(),
    }
}
