//! The gateway: clients, dispatch, the refreshing of the catalog.
//!
//! Knows no HTTP, no files, no command line. Doors hand it messages; it hands back answers.

pub use catalog::schema;
pub use upstream::answer;
pub use upstream::supervisor::condition;

pub mod audit;
pub mod auth;
pub mod bridge;
pub mod client;
pub mod definitions;
pub mod dispatch;
pub mod error;
pub mod library;
pub mod limits;
pub mod members;
pub mod metrics;
pub mod outbox;
pub mod own_tools;
pub mod place;
pub mod refresh;
pub mod request;
pub mod selections;

mod absent;
mod arguments;
mod consent;
mod context;
mod controls;
mod habits;
mod handshake;
mod lazy;
mod listeners;
mod lists;
mod logs;
mod lost;
mod memory;
mod origins;
mod profiles;
mod tasks;
mod unread;
mod watches;
mod welcome;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use catalog::policy::Policies;
use catalog::policy::permissions::Permissions;
use catalog::profile::Profiles;
use catalog::scope::Scope;
use catalog::session_context::SessionContext;
use catalog::snapshot::{Catalog, Rules};
use catalog::surface::Surface;
use catalog::toolset::Toolset;
use catalog::view::View;
use foldhash::{HashMap, HashMapExt as _};
use mcp::log_level::LogLevel;
use mcp::names::{Namespace, UpstreamName};
use mcp::version::Spoken;
use tokio::sync::{OnceCell, mpsc, watch};
use tokio::time::{Instant, sleep_until, timeout_at};
use tokio_util::sync::CancellationToken;
use upstream::context::Context;
use upstream::inventories::Inventories;
use upstream::launch::Spawner;
use upstream::supervisor::{Phase, Settings as UpstreamSettings, Upstream};

use crate::audit::Trail;
use crate::auth::{Caller, Identity};
use crate::client::{Client, Owner};
use crate::consent::Consents;
use crate::context::Principal;
use crate::habits::Programs;
use crate::library::{InMemory, Store};
use crate::limits::{EVENTS_MAX, PRINCIPALS_MAX, SETTLE_MAX, SETTLE_QUIET, STOP_MAX};
use crate::members::{Members, Starter};
use crate::memory::Memory;
use crate::metrics::Metrics;
use crate::place::Place;
use crate::refresh::Ground;
use crate::selections::{Held, Holder, Keeper, Selections};
use crate::tasks::Tasks;
use crate::watches::Watch;

/// What a gateway is made of.
#[derive(Clone, Debug)]
pub struct Settings {
    /// In the order of the configuration, which settles collisions.
    pub upstreams: Vec<Member>,
    pub rules: Rules,
    pub policies: Policies,
    pub permissions: Permissions,
    /// What is known of client programs.
    pub profiles: Profiles,
    /// What clients may say when they connect, if anything.
    pub session_context: Option<SessionContext>,
    /// Where users save their toolsets.
    pub library: Arc<dyn Store>,
    /// Where it is kept what callers have chosen, if it is to outlive the process.
    pub keeper: Option<Arc<dyn Keeper>>,
    /// Where is kept what upstreams offered, so that the next start can serve it at once.
    pub inventories: Option<Arc<Inventories>>,
    pub pace: Pace,
    pub surface: Surface,
    pub spoken: Spoken,
    /// What clients may call all that there is, where they name a namespace.
    pub own_name: Option<&'static str>,
}

impl Settings {
    /// The usual ones: everything may be seen by everybody, and what is saved is forgotten at the end.
    pub fn new(surface: Surface, upstreams: Vec<Member>) -> Settings {
        Settings {
            upstreams,
            rules: Rules::default(),
            policies: Policies::default(),
            permissions: Permissions::default(),
            profiles: Profiles::default(),
            session_context: None,
            library: Arc::new(InMemory::default()),
            keeper: None,
            inventories: None,
            pace: Pace::default(),
            surface,
            spoken: Spoken::default(),
            own_name: None,
        }
    }
}

/// How much is done at once, and what is not done twice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pace {
    /// Calls of one client at upstreams at once, if that is set.
    pub calls_at_once: Option<usize>,
    /// How long results of read-only tools are remembered, if they are.
    pub remembers: Option<Duration>,
}

/// An upstream and the prefix of its names.
#[derive(Clone, Debug)]
pub struct Member {
    pub namespace: Namespace,
    pub upstream: UpstreamSettings,
}

/// How the upstreams are, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Health {
    pub ready: usize,
    /// Without those that nobody needs.
    pub total: usize,
    /// Whether every upstream has answered, failed or run out of its time.
    pub is_settled: bool,
}

/// A handle to the gateway; its clones are the same one.
#[derive(Clone)]
pub struct Gateway(Arc<Shared>);

struct Shared {
    rules: Rules,
    policies: Policies,
    permissions: Permissions,
    profiles: Profiles,
    /// What was observed of client programs.
    programs: Programs,
    session_context: Option<SessionContext>,
    library: Arc<dyn Store>,
    keeper: Option<Arc<dyn Keeper>>,
    selections: Selections,
    /// The toolset that clients begin with where one can be equipped: the last one, looked up once.
    last_equipped: OnceLock<Option<Arc<Toolset>>>,
    pace: Pace,
    consents: Consents,
    memory: Memory,
    scope: Arc<Scope>,
    spoken: Spoken,
    own_name: Option<&'static str>,
    members: ArcSwap<Members>,
    starter: Starter,
    /// Counts how often they were exchanged.
    exchanges: AtomicU64,
    /// Held while upstreams are exchanged for others.
    exchanging: tokio::sync::Mutex<()>,
    clients: Mutex<Clients>,
    last_client: AtomicU64,
    metrics: Metrics,
    /// What the tools of workers take.
    checks: ArcSwap<arguments::Checks>,
    /// Where calls are recorded, if they are.
    trail: OnceLock<Arc<Trail>>,
    is_bridge: AtomicBool,
    /// What the newest snapshot was made of.
    shown: ArcSwap<Ground>,
    /// Counts the snapshots, so that one can wait for the next.
    generation: watch::Sender<u64>,
    watches: Mutex<Vec<Watch>>,
    tasks: Mutex<Tasks>,
    /// The least grave log messages that anybody wants.
    lowest_log_level: Mutex<Option<LogLevel>>,
    /// Set once nobody needs to wait for starting upstreams any more.
    awake: OnceCell<()>,
    /// Cancelled when what would never end by itself is to end.
    winding_down: CancellationToken,
}

/// Who asks, where, and what it says for servers of its own.
#[derive(Clone, PartialEq, Eq, Hash)]
struct PrincipalKey {
    identity: Arc<Identity>,
    scope: Arc<Scope>,
    context: Option<Arc<Context>>,
    /// By what it is told apart.
    label: Option<Arc<str>>,
}

struct Clients {
    connected: HashMap<u64, Arc<Client>>,
    principals: HashMap<PrincipalKey, Principal>,
    /// What callers have chosen, in all of their sessions and requests.
    selections: HashMap<Holder, Held>,
    last_change: u64,
    /// The view that a client begins with, in each scope that somebody has connected to.
    initial: HashMap<Arc<Scope>, Arc<View>>,
    /// All that there is, kept where tools are counted.
    whole: Option<Arc<Catalog>>,
}

impl Clients {
    /// The client of a principal that is known.
    fn principal(&mut self, key: &PrincipalKey) -> Option<Arc<Client>> {
        let principal = self.principals.get_mut(key)?;
        principal.last_used = Instant::now();
        Some(Arc::clone(&principal.client))
    }

    /// Forgets the principals for whom nothing is under way.
    fn forget_idle_principals(&mut self) {
        let idle = self.principals.extract_if(|_, principal| principal.is_idle());
        for (_, principal) in idle {
            self.connected.remove(&principal.client.id);
        }
    }

    /// Forgets the scopes that nobody is in; whoever comes again makes them anew.
    fn forget_empty_scopes(&mut self, usual: &Arc<Scope>) {
        self.initial.retain(|scope, view| scope == usual || Arc::strong_count(view) > 1);
    }
}

impl Gateway {
    /// Starts all upstreams side by side and keeps the catalog from then on.
    pub fn start(settings: Settings, spawner: &Arc<Spawner>) -> Gateway {
        let (events, heard) = mpsc::channel(EVENTS_MAX);
        let (spawner, inventories) = (Arc::clone(spawner), settings.inventories);
        let starter = Starter { spawner, events, inventories };
        let members = Arc::new(members::first(&starter, settings.upstreams, &settings.rules));
        let scope = Arc::new(Scope { surface: settings.surface, ..Scope::default() });
        let metrics = Metrics::default();
        metrics.count_for(members.iter().map(|(_, upstream)| upstream.name()));
        let shown = Ground { members: Arc::clone(&members), inventories: Vec::new() };
        let gateway = Gateway(Arc::new(Shared {
            members: ArcSwap::new(members),
            starter,
            exchanges: AtomicU64::new(0),
            exchanging: tokio::sync::Mutex::default(),
            rules: settings.rules,
            policies: settings.policies,
            permissions: settings.permissions,
            profiles: settings.profiles,
            programs: Programs::default(),
            session_context: settings.session_context,
            last_equipped: OnceLock::new(),
            library: settings.library,
            keeper: settings.keeper,
            selections: Selections::default(),
            pace: settings.pace,
            consents: Consents::new(),
            memory: Memory::new(settings.pace.remembers),
            scope: Arc::clone(&scope),
            spoken: settings.spoken,
            own_name: settings.own_name,
            clients: Mutex::new(Clients {
                connected: HashMap::new(),
                principals: HashMap::new(),
                selections: HashMap::new(),
                last_change: 0,
                initial: HashMap::new(),
                whole: None,
            }),
            last_client: AtomicU64::new(0),
            metrics,
            checks: ArcSwap::default(),
            trail: OnceLock::new(),
            is_bridge: AtomicBool::new(false),
            shown: ArcSwap::from_pointee(shown),
            generation: watch::Sender::new(0),
            watches: Mutex::default(),
            tasks: Mutex::default(),
            lowest_log_level: Mutex::default(),
            awake: OnceCell::new(),
            winding_down: CancellationToken::new(),
        }));
        // What is known from the last time is served at once.
        gateway.refresh_now();
        tokio::spawn(refresh::run(gateway.clone(), heard));
        gateway
    }

    /// A new client, not yet introduced.
    pub fn connect(&self, caller: Caller, owner: Owner, place: &Place) -> Arc<Client> {
        self.admit(&mut self.clients(), caller, owner, place)
    }

    /// The one client of a proven caller whose requests belong to no session, as it describes itself in
    /// them.
    pub fn principal(&self, caller: &Caller, place: &Place, info: Option<&str>) -> Arc<Client> {
        let place = &self.labelled(&self.place_for(place, info), info);
        let mut clients = self.clients();
        let view = self.initial_view(&mut clients, &place.scope);
        let key = PrincipalKey {
            identity: Arc::clone(&caller.identity),
            scope: Arc::clone(view.scope()),
            context: place.context.clone(),
            label: place.label.clone(),
        };
        if let Some(known) = clients.principal(&key) {
            return known;
        }
        drop(clients);
        // Files may be read for it.
        let holding = self.holding(&caller.identity, place);
        let recalled = self.recalled(&holding);
        let mut clients = self.clients();
        if let Some(known) = clients.principal(&key) {
            return known;
        }
        if place.context.is_some() {
            self.make_room_for_context(&mut clients);
        }
        if clients.principals.len() >= PRINCIPALS_MAX {
            clients.forget_idle_principals();
            self.review_needs_of(&clients);
        }
        let client = self.admit(&mut clients, caller.clone(), Owner::Principal, place);
        clients.take_up(&client, holding, recalled);
        self.wake_for(&client.view());
        let principal = Principal { client: Arc::clone(&client), last_used: Instant::now() };
        clients.principals.insert(key, principal);
        client
    }

    fn admit(
        &self,
        clients: &mut Clients,
        caller: Caller,
        owner: Owner,
        place: &Place,
    ) -> Arc<Client> {
        let view = self.initial_view(clients, &place.scope);
        self.wake_for(&view);
        let id = self.0.last_client.fetch_add(1, Ordering::Relaxed);
        tracing::info!(client = id, agent = caller.identity.agent.as_deref(), "connected");
        let lost = Arc::clone(&self.0.metrics.lost_notices);
        let client = Client::new(id, caller, place, owner, view, lost, self.0.pace.calls_at_once);
        let client = Arc::new(client);
        clients.connected.insert(id, Arc::clone(&client));
        client
    }

    /// Forgets a client; what is under way for it is cancelled.
    pub fn disconnect(&self, client: &Client) {
        self.clients().connected.remove(&client.id);
        self.unwatch_all(client);
        client.close();
        for (_, upstream) in self.upstreams() {
            upstream.forget_client(client.id);
        }
        self.review_needs();
    }

    /// Ends what would never end by itself, in good order: the streams of those who listen.
    pub fn wind_down(&self) {
        self.0.winding_down.cancel();
    }

    /// How the upstreams are.
    pub fn health(&self) -> Health {
        let phases: Vec<Phase> = self.upstreams().map(|(_, u)| u.status().phase).collect();
        let count = |is_it: fn(&Phase) -> bool| phases.iter().filter(|phase| is_it(phase)).count();
        Health {
            ready: count(|phase| matches!(phase, Phase::Ready)),
            total: count(|phase| !matches!(phase, Phase::Resting | Phase::Installing)),
            // What is started later is not what a gateway is waited for.
            is_settled: self.upstreams().all(|(_, upstream)| {
                upstream.is_lazy() || !matches!(upstream.status().phase, Phase::Starting)
            }),
        }
    }

    /// The newest snapshot, whole.
    pub fn catalog(&self) -> Arc<Catalog> {
        let scope = Arc::clone(&self.0.scope);
        Arc::clone(self.initial_view(&mut self.clients(), &scope).catalog())
    }

    /// How things are shown where a place does not say otherwise.
    pub fn surface(&self) -> Surface {
        self.0.scope.surface
    }

    pub fn policies(&self) -> &Policies {
        &self.0.policies
    }

    /// Waits until every upstream has answered, failed or run out of its time, and the catalog
    /// shows it.
    pub async fn ready(&self) {
        for (_, upstream) in self.upstreams() {
            upstream.settled().await;
        }
        self.up_to_date().await;
    }

    /// Waits until the catalog shows what the upstreams offer.
    pub(crate) async fn up_to_date(&self) {
        let mut generation = self.0.generation.subscribe();
        while !self.shows_all_inventories() {
            _ = generation.changed().await;
        }
    }

    /// Waits for upstreams of which nothing is known yet, but not for ever: until all are there, or no further
    /// one has come for a while. Many clients list once only.
    pub async fn settled(&self) {
        let latest = Instant::now() + SETTLE_MAX;
        let listed = async {
            for (_, upstream) in self.upstreams() {
                upstream.listed().await;
            }
            self.up_to_date().await;
        };
        tokio::pin!(listed);
        let mut arrivals = self.0.generation.subscribe();
        loop {
            let anyone = self.upstreams().any(|(_, upstream)| upstream.is_known());
            let until = if anyone { latest.min(Instant::now() + SETTLE_QUIET) } else { latest };
            tokio::select! {
                () = &mut listed => return,
                () = sleep_until(until) => return,
                _ = arrivals.changed() => {}
            }
        }
    }

    /// Waits for starting upstreams once; whoever asks later does not.
    pub async fn awake(&self) {
        if !self.0.awake.initialized() {
            Box::pin(self.0.awake.get_or_init(|| self.settled())).await;
        }
    }

    /// Whether nobody needs to wait for starting upstreams any more.
    pub(crate) fn is_awake(&self) -> bool {
        self.0.awake.initialized()
    }

    /// Ends all upstreams.
    pub async fn stop(&self) {
        for client in self.clients().connected.drain() {
            client.1.close();
        }
        self.keep_all().await;
        let stops = self
            .upstreams()
            .map(|(_, upstream)| tokio::spawn(async move { upstream.stop().await }));
        let latest = Instant::now() + STOP_MAX;
        for stop in stops.collect::<Vec<_>>() {
            _ = timeout_at(latest, stop).await;
        }
    }

    /// The upstream of an item, unless it was taken away just now.
    pub(crate) fn upstream(&self, name: &UpstreamName) -> Option<Upstream> {
        self.0.members.load().get(name).cloned()
    }

    pub(crate) fn clients(&self) -> MutexGuard<'_, Clients> {
        self.0.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
