//! The secrets that a server declares: looked up when it starts, watched while it runs. TD-62
//!
//! Only who names a secret is started anew when it changes, and who lacks one waits for it.

use std::future::pending;
use std::sync::Arc;

use secrets::names::{Name, Scope};
use secrets::store::{Mark, Store};
use tokio::time::sleep;

use super::{Phase, Upstream};
use crate::launch::Launch;
use crate::limits::SECRETS_PAUSE;

/// How a server is started now, and what would change that.
pub(super) struct Equipped {
    pub launch: Launch,
    /// Of the safe, before it was read.
    mark: Option<Mark>,
    names: Vec<Name>,
    versions: Vec<Option<Version>>,
}

/// Why a server is to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relief {
    /// For good, or for a rest.
    Dismissed,
    /// Another one takes its place, so its calls may finish.
    Replaced,
}

/// Which value a secret had.
type Version = (Scope, u64);

impl Upstream {
    /// The way to start the server, with the values of its secrets; or why there is none.
    pub(super) async fn equipped(&self) -> Result<Equipped, String> {
        let launch = self.0.settings.launch.clone();
        let names = launch.secrets();
        if names.is_empty() {
            return Ok(Equipped { launch, mark: None, names, versions: Vec::new() });
        }
        let store = self.0.spawner.secrets().ok_or(
            "can't be started: it needs secrets, and \
            there is no data directory to keep them in",
        )?;
        let (mark, veil) = (Some(store.mark()), Arc::clone(self.0.spawner.veil()));
        // Deriving a key takes a while.
        let looked_up = tokio::task::spawn_blocking(move || {
            let contents = store.read().map_err(|error| error.to_string())?;
            // Before anybody gets one of them.
            veil.learn(&contents);
            let versions = names.iter().map(|name| contents.version(name)).collect();
            Ok(Equipped { launch: launch.filled(&contents)?, mark, names, versions })
        });
        let looked_up = looked_up.await.unwrap_or_else(|_| Err("the secrets can't be read".into()));
        looked_up.map_err(|problem: String| format!("can't be started: {problem}"))
    }

    /// Waits until the server is to end, for good, for a rest, or to start anew with other secrets.
    pub(super) async fn relieved(&self, equipped: &Equipped) -> Relief {
        tokio::select! {
            () = self.dismissed() => Relief::Dismissed,
            () = self.secrets_changed(equipped) => {
                tracing::info!(upstream = %self.name(), "starting it anew, as a secret has changed");
                self.set_phase(Phase::Starting);
                Relief::Replaced
            }
        }
    }

    /// Says why the server was not started, and waits until that may be another; `false` if it is to stop.
    pub(super) async fn await_secrets(&self, reason: String, mark: Option<Mark>) -> bool {
        tracing::error!(upstream = %self.name(), "{reason}");
        self.withdraw(false);
        self.set_phase(Phase::Down { reason });
        let changed = async {
            let Some((store, mark)) = self.0.spawner.secrets().zip(mark) else {
                return pending().await;
            };
            while store.mark() == mark {
                sleep(SECRETS_PAUSE).await;
            }
        };
        tokio::select! {
            () = changed => self.set_phase(Phase::Starting),
            () = self.dismissed() => {}
        }
        !self.0.stop.is_cancelled()
    }

    /// The state of the safe, where there is one.
    pub(super) fn safe_mark(&self) -> Option<Mark> {
        self.0.spawner.secrets().map(|store| store.mark())
    }

    async fn secrets_changed(&self, equipped: &Equipped) {
        let Some((store, mut seen)) = self.0.spawner.secrets().zip(equipped.mark) else {
            return pending().await;
        };
        loop {
            sleep(SECRETS_PAUSE).await;
            let mark = store.mark();
            if mark == seen {
                continue;
            }
            // A safe that can't be read changes nothing for who has its values already.
            let versions = self.versions(Arc::clone(&store), equipped.names.clone()).await;
            if versions.as_ref().is_some_and(|versions| *versions != equipped.versions) {
                return;
            }
            seen = mark;
        }
    }

    async fn versions(&self, store: Arc<Store>, names: Vec<Name>) -> Option<Vec<Option<Version>>> {
        let veil = Arc::clone(self.0.spawner.veil());
        let read = tokio::task::spawn_blocking(move || {
            let contents = store.read().ok()?;
            veil.learn(&contents);
            Some(names.iter().map(|name| contents.version(name)).collect())
        });
        read.await.ok().flatten()
    }
}
