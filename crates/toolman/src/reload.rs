//! Reading again what is served, while it is served.
//!
//! What is at hand is exchanged at once and in one act. What must be installed first is made in the background (`making`),
//! and exchanged when it is there, each folder alone; until then the former one serves.

mod making;
pub mod request;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use config::dock::{Dock, Manager};
use gateway::{Gateway, Member};
use mcp::names::UpstreamName;
use serde_json::json;
use server::http::reload::Reload;
use tokio::sync::{Mutex, watch};
use tokio_util::sync::CancellationToken;
use upstream::launch::Launch;

use self::making::{Done, Served};
use crate::cli::{Cli, Misuse};
use crate::data_dir;
use crate::dock::{Mustered, Site, watch as watcher};

/// How long a reload waits for folders to be read before it goes on without the others, which follow.
const PATIENCE: Duration = Duration::from_secs(5);

/// Looks again what there is.
pub struct Reloader {
    site: Site,
    /// Upstreams that stay as they are.
    fixed: Vec<Member>,
    gateway: Gateway,
    /// How many reloads have begun.
    begun: AtomicU64,
    /// Held by the one that reads; what the last one was, and what it did.
    last: Mutex<(u64, Swapped)>,
    /// Held by whoever exchanges something.
    served: Mutex<Served>,
    /// How many folders are still to be read for the first time.
    unread: watch::Sender<usize>,
    stopping: CancellationToken,
}

/// What a reload has done, and what it has set out to do.
#[derive(Clone, Default)]
struct Swapped {
    namespaces: Vec<UpstreamName>,
    started: Vec<UpstreamName>,
    removed: Vec<UpstreamName>,
    synced: Vec<UpstreamName>,
    problems: Vec<String>,
    making: Vec<(UpstreamName, watch::Receiver<Option<Done>>)>,
}

impl Reloader {
    /// Goes on with what a gateway was started with: what is missing is made.
    pub async fn begin(
        site: Site,
        fixed: Vec<Member>,
        gateway: Gateway,
        mustered: Mustered,
    ) -> Arc<Reloader> {
        let reloader = Arc::new(Reloader {
            site,
            fixed,
            gateway,
            begun: AtomicU64::new(0),
            last: Mutex::default(),
            served: Mutex::default(),
            unread: watch::Sender::new(0),
            stopping: CancellationToken::new(),
        });
        let mut served = reloader.served.lock().await;
        for problem in mustered.problems {
            tracing::warn!("{problem}");
        }
        for entry in mustered.entries {
            let name = &entry.member.upstream.name;
            match entry.rest {
                Some(rest) => drop(reloader.set_out(&mut served, name, entry.version, rest)),
                None => log(&problems_of(&entry.member)),
            }
            served.folders.push(entry.member);
        }
        drop(served);
        reloader
    }

    /// How folders are served.
    pub fn dock(&self) -> &Dock {
        self.site.dock()
    }

    /// What tells the folders from what they were; see [`watcher::look`].
    pub async fn look(&self) -> u64 {
        let places = self.site.places();
        tokio::task::spawn_blocking(move || watcher::look(&places)).await.unwrap_or_default()
    }

    /// Reads all folders again, and exchanges the workers of those that have changed; what was done, when all of it is
    /// done. TD-114, TD-115
    ///
    /// It goes on to its end, whoever leaves meanwhile, and one at a time; those who ask while it runs share the next one.
    /// While packages are installed, others may be asked for.
    pub async fn reload(self: &Arc<Self>) -> String {
        let reloader = Arc::clone(self);
        let run = tokio::spawn(async move { reloader.report(reloader.read_again().await).await });
        run.await.unwrap_or_else(|error| {
            tracing::error!("a reload has failed: {error}");
            let problem = "the reload has failed; see the log, and ask again";
            json!({"reloaded": false, "problems": [problem]}).to_string()
        })
    }

    /// The same, but what is to be installed is not waited for.
    pub async fn begin_reload(self: &Arc<Self>) {
        let reloader = Arc::clone(self);
        if let Err(error) = tokio::spawn(async move { reloader.read_again().await }).await {
            tracing::error!("a reload has failed: {error}");
        }
    }

    async fn read_again(self: &Arc<Self>) -> Swapped {
        let asked = self.begun.load(Ordering::SeqCst);
        let mut last = self.last.lock().await;
        // One that began after this was asked for has seen all that there is to be seen.
        if last.0 <= asked {
            let number = self.begun.fetch_add(1, Ordering::SeqCst) + 1;
            *last = (number, self.swap().await);
        }
        last.1.clone()
    }

    /// Exchanges what can be exchanged now, in one act, and sets out to make the rest.
    async fn swap(self: &Arc<Self>) -> Swapped {
        let mustered = self.site.muster(PATIENCE).await;
        let mut served = self.served.lock().await;
        let mut swapped = Swapped { problems: mustered.problems, ..Swapped::default() };
        let mut folders = Vec::new();
        for entry in mustered.entries {
            let name = entry.member.upstream.name.clone();
            // What is being made already is waited for, even if it was finished this moment.
            let made = served.made_for(&name, &entry.version);
            let made = match (made, entry.rest) {
                (None, Some(rest)) => Some(self.set_out(&mut served, &name, entry.version, rest)),
                (made, _) => made,
            };
            match made {
                Some(made) => {
                    swapped.making.push((name.clone(), made));
                    // What serves goes on until the other is whole.
                    let running = served.running(&name).cloned();
                    folders.push(running.unwrap_or(entry.member));
                }
                None => {
                    self.call_off(&mut served, &name);
                    swapped.problems.extend(problems_of(&entry.member));
                    swapped.synced.extend(entry.is_new.then(|| name.clone()));
                    folders.push(entry.member);
                }
            }
            swapped.namespaces.push(name);
        }
        for name in served.made_besides(&swapped.namespaces) {
            self.call_off(&mut served, &name);
        }
        served.folders = folders;
        let exchange = self.exchange(&served).await;
        log(&swapped.problems);
        let serves = |name: &UpstreamName| served.running(name).is_some();
        swapped.started = exchange.started.into_iter().filter(serves).collect();
        let is_gone = |name: &UpstreamName| !swapped.namespaces.contains(name);
        swapped.removed = exchange.retired.into_iter().filter(is_gone).collect();
        tracing::info!(started = ?swapped.started, removed = ?swapped.removed, "reloaded");
        swapped
    }

    /// What was done, when the rest is done, too.
    async fn report(&self, swapped: Swapped) -> String {
        let Swapped { namespaces, mut started, removed, mut synced, mut problems, making } =
            swapped;
        for (name, done) in making {
            let done = self.wait_for(&name, done).await;
            problems.extend(done.problems);
            if done.is_synced {
                synced.push(name.clone());
            }
            if done.is_started && !started.contains(&name) {
                started.push(name);
            }
        }
        let words =
            |names: &[UpstreamName]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let place = |name: &UpstreamName| namespaces.iter().position(|other| other == name);
        started.sort_by_key(place);
        synced.sort_by_key(place);
        json!({
            "reloaded": true,
            "namespaces": words(&namespaces),
            "workers_restarted": words(&started),
            "namespaces_removed": words(&removed),
            "deps_synced": words(&synced),
            "problems": problems,
        })
        .to_string()
    }
}

/// What is wrong with a folder, each with its name.
fn problems_of(member: &Member) -> Vec<String> {
    let Launch::Worker(worker) = &member.upstream.launch else { return Vec::new() };
    worker.faults.all().iter().map(|fault| format!("{}: {fault}", worker.name)).collect()
}

fn log(problems: &[String]) {
    for problem in problems {
        tracing::warn!("{problem}");
    }
}

/// Reloads by itself, where that is wanted.
pub fn on_change(reloader: &Arc<Reloader>) {
    if let Some(quiet) = reloader.site.watches() {
        tokio::spawn(watcher::watch(Arc::clone(reloader), quiet));
    }
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
    let own_token = data_dir::new_reload_token(cli).ok();
    Ok(Some(Reload {
        manager_token,
        own_token,
        is_allowed: Arc::new(move |address| manager.may_be_at(address)),
        run: Arc::new(move || {
            let reloader = Arc::clone(&reloader);
            Box::pin(async move { reloader.reload().await })
        }),
    }))
}
