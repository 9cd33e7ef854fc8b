//! Reading again what is served, while it is served.

use std::sync::Arc;

use config::dock::{Dock, Manager};
use gateway::{Gateway, Member};
use serde_json::json;
use server::http::reload::Reload;

use crate::cli::Misuse;
use crate::dock::{Site, watch};

/// Looks again what there is.
pub struct Reloader {
    site: Site,
    /// Upstreams that stay as they are.
    fixed: Vec<Member>,
    gateway: Gateway,
}

impl Reloader {
    pub fn new(site: Site, fixed: Vec<Member>, gateway: Gateway) -> Reloader {
        Reloader { site, fixed, gateway }
    }

    /// How folders are served.
    pub fn dock(&self) -> &Dock {
        self.site.dock()
    }

    /// What tells the folders from what they were; see [`watch::look`].
    pub async fn look(&self) -> u64 {
        let tools = self.site.tools();
        tokio::task::spawn_blocking(move || watch::look(&tools)).await.unwrap_or_default()
    }

    /// Reads all folders again, and exchanges the workers of those that have changed; what was done. TD-114, TD-115
    pub async fn reload(&self) -> String {
        let mustered = self.site.muster().await;
        for problem in &mustered.problems {
            tracing::warn!("{problem}");
        }
        let namespaces: Vec<_> =
            mustered.members.iter().map(|member| member.upstream.name.to_string()).collect();
        let wanted = self.fixed.iter().cloned().chain(mustered.members).collect();
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
pub fn on_hangup(reloader: Arc<Reloader>) -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut hangup = signal(SignalKind::hangup())?;
    tokio::spawn(async move {
        while hangup.recv().await.is_some() {
            reloader.reload().await;
        }
    });
    Ok(())
}

/// Reloads when the manager asks, where one is known.
pub fn on_request(reloader: &Arc<Reloader>) -> Result<Option<Reload>, Misuse> {
    let environment = |name: &str| std::env::var(name).ok();
    let manager = Manager::of(&environment).map_err(|problems| Misuse(problems.join("\n")))?;
    let reloader = Arc::clone(reloader);
    Ok(manager.map(|manager| Reload {
        manager_token: manager.token.clone(),
        is_allowed: Arc::new(move |address| manager.may_be_at(address)),
        run: Arc::new(move || {
            let reloader = Arc::clone(&reloader);
            Box::pin(async move { reloader.reload().await })
        }),
    }))
}
