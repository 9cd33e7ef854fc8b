//! Reading again what is served, while it is served.

pub mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use config::dock::{Dock, Manager};
use gateway::{Gateway, Member};
use serde_json::json;
use server::http::reload::Reload;
use tokio::signal::unix::Signal;
use tokio::sync::Mutex;

use crate::cli::{Cli, Misuse};
use crate::data_dir;
use crate::dock::{Site, watch};

/// Looks again what there is.
pub struct Reloader {
    site: Site,
    /// Upstreams that stay as they are.
    fixed: Vec<Member>,
    gateway: Gateway,
    /// How many reloads have begun.
    begun: AtomicU64,
    /// Held by the one that runs; what the last one was, and what it did.
    last: Mutex<(u64, String)>,
}

impl Reloader {
    pub fn new(site: Site, fixed: Vec<Member>, gateway: Gateway) -> Reloader {
        let (begun, last) = (AtomicU64::new(0), Mutex::default());
        Reloader { site, fixed, gateway, begun, last }
    }

    /// How folders are served.
    pub fn dock(&self) -> &Dock {
        self.site.dock()
    }

    /// What tells the folders from what they were; see [`watch::look`].
    pub async fn look(&self) -> u64 {
        let places = self.site.places();
        tokio::task::spawn_blocking(move || watch::look(&places)).await.unwrap_or_default()
    }

    /// Reads all folders again, and exchanges the workers of those that have changed; what was done. TD-114, TD-115
    ///
    /// It goes on to its end, whoever leaves meanwhile, and one at a time; those who ask while it runs share the next one.
    pub async fn reload(self: &Arc<Self>) -> String {
        let reloader = Arc::clone(self);
        let run = tokio::spawn(async move {
            let asked = reloader.begun.load(Ordering::SeqCst);
            let mut last = reloader.last.lock().await;
            // One that began after this was asked for has seen all that there is to be seen.
            if last.0 <= asked {
                let number = reloader.begun.fetch_add(1, Ordering::SeqCst) + 1;
                *last = (number, reloader.run().await);
            }
            last.1.clone()
        });
        run.await.unwrap_or_else(|error| {
            tracing::error!("a reload has failed: {error}");
            let problem = "the reload has failed; see the log, and ask again";
            json!({"reloaded": false, "problems": [problem]}).to_string()
        })
    }

    async fn run(&self) -> String {
        let mustered = self.site.muster().await;
        for problem in &mustered.problems {
            tracing::warn!("{problem}");
        }
        let namespaces: Vec<_> =
            mustered.members.iter().map(|member| member.upstream.name.to_string()).collect();
        let wanted = self.site.in_order(&self.fixed, mustered.members);
        let exchange = self.gateway.exchange(wanted).await;
        let started: Vec<_> = exchange.started.iter().map(ToString::to_string).collect();
        let removed: Vec<_> = exchange.retired.iter().map(ToString::to_string).collect();
        let removed: Vec<_> =
            removed.into_iter().filter(|name| !namespaces.contains(name)).collect();
        tracing::info!(?started, ?removed, "reloaded");
        json!({
            "reloaded": true,
            "namespaces": namespaces,
            "workers_restarted": started,
            "namespaces_removed": removed,
            "deps_synced": mustered.synced,
            "problems": mustered.problems,
        })
        .to_string()
    }
}

/// Reloads by itself, where that is wanted.
pub fn on_change(reloader: &Arc<Reloader>) {
    if let Some(quiet) = reloader.site.watches() {
        tokio::spawn(watch::watch(Arc::clone(reloader), quiet));
    }
}

/// Reloads whenever SIGHUP comes.
pub fn on_hangup(reloader: &Arc<Reloader>, hangups: Option<Signal>) {
    let Some(mut hangups) = hangups else { return };
    let reloader = Arc::clone(reloader);
    tokio::spawn(async move {
        while hangups.recv().await.is_some() {
            reloader.reload().await;
        }
    });
}

/// Reloads when the manager asks; its token is made where none is given.
pub fn on_request(cli: &Cli, reloader: &Arc<Reloader>) -> Result<Option<Reload>, Misuse> {
    let environment = |name: &str| std::env::var(name).ok();
    let manager = Manager::of(&environment).map_err(|problems| Misuse(problems.join("\n")))?;
    let manager = reloader.site.admit(manager);
    let manager_token = match manager.token.clone() {
        Some(token) => token,
        None => match data_dir::manager_token(cli) {
            Ok(token) => token,
            Err(error) => {
                tracing::warn!("nobody can ask for a reload over HTTP: {error:#}");
                return Ok(None);
            }
        },
    };
    let reloader = Arc::clone(reloader);
    Ok(Some(Reload {
        manager_token,
        is_allowed: Arc::new(move |address| manager.may_be_at(address)),
        run: Arc::new(move || {
            let reloader = Arc::clone(&reloader);
            Box::pin(async move { reloader.reload().await })
        }),
    }))
}
