//! `toolman manager`: the tools by which a model manages folders of tools; its own process, or beside `toolman up`.

mod cores;
mod diff;
pub mod review;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::SystemTime;

use audit::calendar;
use catalog::surface::Surface;
use config::dock::{Approval, Dock};
use config::http::Http;
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

use crate::cli::manager::Manager;
use crate::cli::{Cli, Misuse, Up};
use crate::dock::watch::{self, Watched};
use crate::host::{self, Host, stop_on_signals};
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
    http: &'a Http,
    ports: (u16, u16),
    session_ttl_hours: f64,
}

pub async fn run(cli: &Cli, asked: &Manager) -> anyhow::Result<i32> {
    safe::check_key(cli)?;
    let (variables, config) = host::with_variables(cli, host::configuration(cli))?;
    let http = config.as_ref().map(|config| config.http.clone()).unwrap_or_default();
    let dock = host::dock_of(config.and_then(|config| config.dock).unwrap_or_default())?;
    let listen = asked.listen.map_or_else(|| usual(PORT), Ok)?;
    let token = serve::token(cli, asked.token_file.as_deref(), &http, listen)?;
    let remote = Arc::new(Remote::find(cli, &token)?);
    let settings = door::plain(&http, &variables, Keys::new(&token));
    let listener = up::bind(listen)?;
    let address = listener.local_addr()?;
    let wanted = Wanted {
        core: Arc::clone(&remote) as Arc<dyn Core>,
        dock: &dock,
        approval: asked.approval.map(Into::into).or(dock.approval).unwrap_or(Approval::Required),
        http: &http,
        ports: (remote.port(), address.port()),
        session_ttl_hours: hours(&settings),
    };
    let desk = Arc::new(desk(cli, wanted)?);
    if let Some(quiet) = dock.watches {
        tokio::spawn(watch::watch(Watch(Arc::clone(&desk)), quiet));
    }
    let gateway = open(&desk, door::spoken(&http, &variables));
    let stop = stop_on_signals()?;
    let door = server::http::serve(gateway.clone(), listener, settings, stop.clone());
    let serving = tokio::spawn(door);
    gateway.ready().await;
    terminal::print(&format!("toolman's manager serves http://{address}/mcp\n"))?;
    _ = serving.await;
    gateway.stop().await;
    Ok(0)
}

/// Serves the manager beside a core in the same process; where, if there are folders that it could manage.
///
/// Whatever is wrong with it is said, and harms the core in no way.
///
/// `core` is the token that clients show, and where the core is served.
pub fn beside(cli: &Cli, up: &Up, host: &Host, core: (&str, SocketAddr)) -> Option<SocketAddr> {
    match start_beside(cli, up, host, core) {
        Ok(address) => address,
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
) -> anyhow::Result<Option<SocketAddr>> {
    let Some(reloader) = &host.reloader else { return Ok(None) };
    let listener = listener_beside(up, core_address.ip())?;
    let address = listener.local_addr()?;
    let http = Http::default();
    let (variables, ()) = host::with_variables(cli, Ok(()))?;
    let settings = door::plain(&http, &variables, Keys::new(token));
    let core = Local { gateway: host.gateway.clone(), reloader: Arc::clone(reloader) };
    let dock = reloader.dock();
    let wanted = Wanted {
        core: Arc::new(core),
        dock,
        approval: up.approval.map(Into::into).or(dock.approval).unwrap_or(Approval::Auto),
        http: &http,
        ports: (core_address.port(), address.port()),
        session_ttl_hours: hours(&settings),
    };
    let gateway = open(&Arc::new(desk(cli, wanted)?), door::spoken(&http, &variables));
    let stop = stop_on_signals()?;
    tokio::spawn(server::http::serve(gateway, listener, settings, stop));
    Ok(Some(address))
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

fn hours(door: &Door) -> f64 {
    door.session_ttl.as_secs_f64() / 3600.0
}

/// A gateway over the manager's tools alone.
fn open(desk: &Arc<Desk>, spoken: Spoken) -> Gateway {
    let members = vec![manager::tools::all(desk).member()];
    let settings = Settings::new(Surface::Filter, members);
    Gateway::start(Settings { spoken, own_name: Some("_system"), ..settings }, &host::spawner())
}

fn desk(cli: &Cli, wanted: Wanted<'_>) -> anyhow::Result<Desk> {
    let data = data_dir::folder(cli)?;
    let log_level = ["LOG_LEVEL", "TOOLMAN_LOG"].map(|name| std::env::var(name).ok());
    let shown = Shown {
        core_port: wanted.ports.0,
        manager_port: wanted.ports.1,
        data_dir: data.display().to_string(),
        log_level: log_level.into_iter().flatten().next().unwrap_or_else(|| "warn".to_owned()),
        cors_origins: wanted.http.allowed_origins.join(","),
        mcp_session_ttl_hours: wanted.session_ttl_hours,
    };
    let places = Places {
        tools: wanted.dock.folder.clone().unwrap_or_else(|| data.join("tools")),
        data,
        python: wanted.dock.python.as_deref().unwrap_or(PYTHON).into(),
    };
    let equipment = Equipment {
        places,
        core: wanted.core,
        safe: keeper(Arc::new(safe::required(cli)?)),
        spawner: host::spawner(),
        approval: wanted.approval,
        shown,
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
        prepare: Arc::new(move |name| safe_commands::note_wanted(&wanting, &name).map_err(worded)),
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
