//! `toolman manager`: the tools by which a model manages folders of tools; its own process, or beside `toolman up`.

mod cores;
mod diff;
mod proposals;
pub mod review;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use audit::calendar;
use catalog::surface::Surface;
use config::Config;
use config::audit::Audit;
use config::dock::{Approval, Dock};
use config::http::Http;
use config::variables::Variables;
use gateway::auth::Keys;
use gateway::{Gateway, Settings};
use manager::core::Core;
use manager::desk::{Desk, Equipment, Places, Safe, Shown};
use mcp::version::Spoken;
use secrets::error::Error as SafeError;
use secrets::ledger::Ledger;
use secrets::store::Store;
use server::http::Settings as Door;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

use crate::cli::manager::Manager;
use crate::cli::{Cli, Misuse, Up};
use crate::dock::watch::{self, Watched};
use crate::host::{self, Host, stop_on_signals};
use crate::trail::Trail;
use crate::{data_dir, door, safe, secrets as safe_commands, serve, terminal, up};

use cores::{Local, Remote};

/// Where it is served unless told otherwise.
const PORT: u16 = 8001;
/// Ports that are tried beside `toolman up`.
const PORTS_TRIED: u16 = 20;
/// The Python of folders that name none.
const PYTHON: &str = "python3";

/// What a desk is made of besides the data directory.
struct Wanted<'a> {
    core: Arc<dyn Core>,
    dock: &'a Dock,
    approval: Approval,
    door: &'a Door,
    log_level: &'a str,
    ports: (u16, u16),
    safe: Arc<Store>,
    spawner: Arc<Spawner>,
}

/// A manager in the process of its core.
pub struct Beside {
    pub address: SocketAddr,
    gateway: Gateway,
    serving: JoinHandle<()>,
    stop: CancellationToken,
    trail: Option<Trail>,
}

impl Beside {
    /// Ends it with its core, which may have ended by another signal: its terminal is gone.
    pub async fn stop(self) {
        self.stop.cancel();
        self.ended().await;
    }

    /// Waits for the signals that end it and for the calls under way, and writes down what was not yet.
    async fn ended(self) {
        _ = self.serving.await;
        self.gateway.stop().await;
        if let Some(trail) = self.trail {
            trail.finish();
        }
    }
}

pub async fn run(cli: &Cli, asked: &Manager) -> anyhow::Result<i32> {
    let (variables, config) = host::with_variables(cli, host::configuration(cli))?;
    let Settled { http, dock, audit, log_level } = Settled::of(config, &variables)?;
    let listen = asked.listen.map_or_else(|| usual(PORT), Ok)?;
    let token = serve::token(cli, asked.token_file.as_deref(), &http, listen)?;
    let remote = Arc::new(Remote::find(cli, asked, &http, &token)?);
    let settings = door::plain(&http, &variables, Keys::new(&token));
    let listener = up::bind(listen)?;
    let address = listener.local_addr()?;
    let safe = Arc::new(safe::required(cli)?);
    let spawner = host::spawner(Some(Arc::clone(&safe))).await;
    let wanted = Wanted {
        core: Arc::clone(&remote) as Arc<dyn Core>,
        dock: &dock,
        approval: asked.approval.map(Into::into).or(dock.approval).unwrap_or(Approval::Required),
        door: &settings,
        log_level: &log_level,
        ports: (remote.port(), address.port()),
        safe,
        spawner: Arc::clone(&spawner),
    };
    let desk = Arc::new(desk(cli, wanted)?);
    if let Some(quiet) = dock.watches() {
        tokio::spawn(watch::watch(Watch(Arc::clone(&desk)), quiet));
    }
    let gateway = open(&desk, door::spoken(&http, &variables));
    let trail = audit.and_then(|audit| Trail::start(cli, &audit, &gateway, spawner.veil()));
    let stop = stop_on_signals()?;
    let door = server::http::serve(gateway.clone(), listener, settings, stop.clone());
    let serving = tokio::spawn(door);
    gateway.ready().await;
    terminal::print(&format!("toolman's manager serves http://{address}/mcp\n"))?;
    Beside { address, gateway, serving, stop, trail }.ended().await;
    Ok(0)
}

/// What file and environment say together of a manager in a process of its own.
struct Settled {
    http: Http,
    dock: Dock,
    audit: Option<Audit>,
    log_level: String,
}

impl Settled {
    fn of(config: Option<Config>, variables: &Variables) -> Result<Settled, Misuse> {
        let (mut http, mut dock, mut audit, mut level) = (Http::default(), None, None, None);
        if let Some(config) = config {
            audit = host::audit_said(config.audit, config.rulebook.audits_all);
            (http, dock, level) = (config.http, config.dock, config.rulebook.log_level);
        }
        host::variables_hold(variables, level.as_deref());
        let log_level = shown_level(variables.log_level.or(level.as_deref()));
        let audit = host::audit_of(Some(audit.unwrap_or_default()), variables);
        Ok(Settled { http, dock: host::dock_of(dock.unwrap_or_default())?, audit, log_level })
    }
}

/// The level that holds: what is said in our own words counts for more than `LOG_LEVEL`.
fn shown_level(level: Option<&str>) -> String {
    let own = ["TOOLMAN_LOG", "RUST_LOG"].into_iter().find_map(|name| std::env::var(name).ok());
    own.or_else(|| level.map(str::to_owned)).unwrap_or_else(|| "warn".to_owned())
}

/// Serves the manager beside a core in the same process, if there are folders that it could manage.
///
/// Whatever is wrong with it is said, and harms the core in no way.
///
/// `core` is the token that clients show, and where the core is served.
pub fn beside(cli: &Cli, up: &Up, host: &Host, core: (&str, SocketAddr)) -> Option<Beside> {
    match start_beside(cli, up, host, core) {
        Ok(beside) => beside,
        Err(error) => {
            terminal::complain(&format!("toolman: there is no manager: {error:#}"));
            None
        }
    }
}

fn start_beside(
    cli: &Cli,
    up: &Up,
    host: &Host,
    (token, core_address): (&str, SocketAddr),
) -> anyhow::Result<Option<Beside>> {
    let Some(reloader) = &host.reloader else { return Ok(None) };
    let listener = listener_beside(up, core_address.ip())?;
    let address = listener.local_addr()?;
    let http = Http::default();
    let (variables, ()) = host::with_variables(cli, Ok(()))?;
    let settings = door::plain(&http, &variables, Keys::new(token));
    let core = Local { gateway: host.gateway.clone(), reloader: Arc::clone(reloader) };
    let dock = reloader.dock();
    // What it starts and what it hides are one with the core; what is hidden in its answers is written into its own trail.
    let spawner = host.spawner.twin();
    let safe = host.safe.clone().map_or_else(|| safe::required(cli).map(Arc::new), Ok)?;
    let wanted = Wanted {
        core: Arc::new(core),
        dock,
        approval: up.approval.map(Into::into).or(dock.approval).unwrap_or(Approval::Auto),
        door: &settings,
        log_level: &shown_level(variables.log_level),
        ports: (core_address.port(), address.port()),
        safe,
        spawner: Arc::clone(&spawner),
    };
    let gateway = open(&Arc::new(desk(cli, wanted)?), door::spoken(&http, &variables));
    let trail = host.audit.as_ref();
    let trail = trail.and_then(|audit| Trail::start(cli, audit, &gateway, spawner.veil()));
    let stop = stop_on_signals()?;
    let door = server::http::serve(gateway.clone(), listener, settings, stop.clone());
    Ok(Some(Beside { address, gateway, serving: tokio::spawn(door), stop, trail }))
}

/// The address beside a core: the usual one, else the next that is free.
fn listener_beside(up: &Up, ip: IpAddr) -> anyhow::Result<TcpListener> {
    if let Some(listen) = up.manager_listen {
        if !listen.ip().is_loopback() {
            let reason = format!("`{listen}` is not an address of this machine alone");
            return Err(Misuse(reason).into());
        }
        return Ok(up::bind(listen)?);
    }
    let any = SocketAddr::new(ip, 0);
    if up.listen.is_some_and(|listen| listen.port() == 0) {
        return Ok(up::bind(any)?);
    }
    let first = usual(PORT)?.port();
    for port in first..first.saturating_add(PORTS_TRIED) {
        if let Ok(listener) = up::bind(SocketAddr::new(ip, port)) {
            if port != first {
                terminal::complain(&format!(
                    "toolman: port {first} is taken, so the manager is on {port}; choose one with \
                     `--manager-listen 127.0.0.1:PORT`"
                ));
            }
            return Ok(listener);
        }
    }
    Ok(up::bind(any)?)
}

/// The usual address; the port may be in the environment. TD-146
fn usual(port: u16) -> Result<SocketAddr, Misuse> {
    let port = match std::env::var("MANAGER_PORT") {
        Ok(text) => text
            .trim()
            .parse()
            .map_err(|_| Misuse("MANAGER_PORT is no port; use a number up to 65535".to_owned()))?,
        Err(_) => port,
    };
    Ok(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port))
}

/// A gateway over the manager's tools alone. No answer holds a value, also of a secret that was set a moment ago.
fn open(desk: &Arc<Desk>, spoken: Spoken) -> Gateway {
    let spawner = Arc::clone(&desk.spawner);
    let hide = move || {
        let spawner = Arc::clone(&spawner);
        async move { spawner.hide_secrets().await }
    };
    let members = vec![manager::tools::all(desk).checking(hide).member()];
    let settings = Settings::new(Surface::Filter, members);
    Gateway::start(Settings { spoken, own_name: Some("_system"), ..settings }, &desk.spawner)
}

fn desk(cli: &Cli, wanted: Wanted<'_>) -> anyhow::Result<Desk> {
    let data = data_dir::folder(cli)?;
    let shown = Shown {
        core_port: wanted.ports.0,
        manager_port: wanted.ports.1,
        data_dir: data.display().to_string(),
        log_level: wanted.log_level.to_owned(),
        cors_origins: wanted.door.allowed_origins.join(","),
        mcp_session_ttl_hours: wanted.door.session_ttl.as_secs_f64() / 3600.0,
    };
    let places = Places {
        tools: wanted.dock.folder.clone().unwrap_or_else(|| data.join("tools")),
        data,
        python: wanted.dock.python.as_deref().unwrap_or(PYTHON).into(),
    };
    let equipment = Equipment {
        places,
        core: wanted.core,
        safe: keeper(wanted.safe),
        spawner: wanted.spawner,
        approval: wanted.approval,
        shown,
        program: upstream::python::program(),
        clock: now,
    };
    Desk::open(equipment).map_err(|error| Misuse(error.to_string()).into())
}

/// The time, as files have it.
pub fn now() -> String {
    calendar::moment_text(SystemTime::now())
}

/// What the manager may do with the safe: no value comes out of it.
fn keeper(store: Arc<Store>) -> Safe {
    let worded = |error: SafeError| error.to_string();
    let (wanting, removing) = (Arc::clone(&store), Arc::clone(&store));
    Safe {
        statuses: Arc::new(move |()| match store.read() {
            Ok(contents) => Ok(contents.statuses()),
            // A manager without the key knows as much as the ledger.
            Err(SafeError::NoKey { .. }) => {
                let ledger = Ledger::read(store.folder()).map_err(worded)?;
                Ok(ledger.names().map(|(name, status)| (name.clone(), status)).collect())
            }
            Err(error) => Err(worded(error)),
        }),
        prepare: Arc::new(move |name| wanting.want(&name).map_err(worded)),
        remove: Arc::new(move |name| safe_commands::forget(&removing, &name).map_err(worded)),
    }
}

/// Tells the core when folders have changed. TD-118
struct Watch(Arc<Desk>);

impl Watched for Watch {
    async fn look(&self) -> u64 {
        let tools = self.0.tools.path().to_owned();
        tokio::task::spawn_blocking(move || watch::look(&[tools])).await.unwrap_or_default()
    }

    async fn reload(&self) {
        if let Err(unreached) = self.0.core.reload().await {
            tracing::warn!("{unreached}");
        }
    }
}
