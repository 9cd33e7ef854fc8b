//! From a configuration to a running gateway, and to its orderly end.

use std::fs::File;
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::scope::Scope;
use config::audit::Audit;
use config::fault::Fault;
use config::http::Http;
use config::{Config, Route};
use gateway::library::InMemory;
use gateway::{Gateway, Member, Pace, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

use crate::cli::{Cli, Misuse};
use crate::library::Library;
use crate::trail::Trail;
use crate::{demo, door, log};

/// A running gateway and where its configuration came from.
pub struct Host {
    pub gateway: Gateway,
    pub source: Source,
    trail: Option<Trail>,
}

/// What is to be run; nothing is started yet.
pub struct Plan {
    settings: Settings,
    source: Source,
    /// What the file says of the HTTP door.
    pub http: Http,
    /// Further places of that door.
    pub endpoints: Vec<(String, Scope)>,
    pub routes: Vec<Route>,
    /// What it says of the audit trail, if anything.
    audit: Option<Audit>,
}

pub enum Source {
    File(PathBuf),
    Demo,
}

impl Plan {
    /// Reads the configuration; it must be there.
    pub fn read(cli: &Cli) -> Result<Plan, Misuse> {
        load(file(cli).unwrap_or_else(|| PathBuf::from("tools.toml")))
    }

    /// The same, but a demo where there is no `tools.toml` and none was asked for.
    pub fn read_or_demo(cli: &Cli) -> anyhow::Result<Plan> {
        if file(cli).is_none() {
            let (settings, http) = (demo::settings()?, Http::default());
            let (source, audit) = (Source::Demo, None);
            let (endpoints, routes) = (Vec::new(), Vec::new());
            return Ok(Plan { settings, source, http, endpoints, routes, audit });
        }
        Ok(Plan::read(cli)?)
    }

    fn of(config: Config, source: Source) -> Result<Plan, Misuse> {
        if let Some(level) = &config.rulebook.log_level {
            log::set_level(level);
        }
        for warning in &config.warnings {
            tracing::warn!("{warning}");
        }
        let member = |server: config::Server| Member {
            namespace: server.namespace,
            upstream: server.settings,
        };
        let settings = Settings {
            spoken: door::spoken(&config.http)?,
            upstreams: config.servers.into_iter().map(member).collect(),
            rules: config.rules,
            policies: config.rulebook.policies,
            permissions: config.permissions,
            session_context: config.session_context,
            library: Arc::new(InMemory::default()),
            pace: Pace {
                calls_at_once: config.performance.calls_at_once,
                remembers: config.performance.cached,
            },
            surface: config.surface,
        };
        let Config { http, endpoints, routes, mut audit, .. } = config;
        if let Some(enabled) = config.rulebook.audits_all {
            audit.get_or_insert_with(|| Audit { enabled, ..Audit::default() });
        }
        Ok(Plan { settings, source, http, endpoints, routes, audit })
    }

    /// The same, with an audit trail unless the file says otherwise.
    pub fn audited(mut self) -> Plan {
        self.audit.get_or_insert_default();
        self
    }

    pub fn start(self, cli: &Cli) -> Host {
        let settings = Settings { library: Arc::new(Library::of(cli)), ..self.settings };
        let gateway = Gateway::start(settings, &spawner());
        let audit = self.audit.filter(|audit| audit.enabled);
        let trail = audit.and_then(|audit| Trail::start(cli, &audit, &gateway));
        Host { gateway, source: self.source, trail }
    }

    /// What the file says of the audit trail, if there is a file.
    pub fn audit(cli: &Cli) -> Result<Audit, Misuse> {
        Ok(configuration(cli)?.and_then(|config| config.audit).unwrap_or_default())
    }
}

impl Host {
    /// Starts what a configuration says.
    pub fn of(cli: &Cli, config: Config) -> Result<Host, Misuse> {
        Ok(Plan::of(config, Source::Demo)?.start(cli))
    }

    /// Starts what the configuration says; it must be there.
    pub fn start(cli: &Cli) -> anyhow::Result<Host> {
        Ok(Plan::read(cli)?.start(cli))
    }

    /// Ends all servers, and writes down what was not yet.
    pub async fn stop(self) {
        self.gateway.stop().await;
        if let Some(trail) = self.trail {
            trail.finish();
        }
    }
}

/// Starts servers below guards of ours.
pub fn spawner() -> Arc<Spawner> {
    Spawner::new(own_binary())
}

/// Our own binary, which is the guard too, even when its file is replaced meanwhile.
///
/// It is held open: below valgrind, where instructions are counted, `/proc/self/exe` is valgrind.
fn own_binary() -> String {
    let binary = std::env::current_exe().and_then(File::open);
    binary.map_or("/proc/self/exe".into(), |file| format!("/proc/self/fd/{}", file.into_raw_fd()))
}

/// The file to read: the one that is named, else one that lies here under a usual name.
fn file(cli: &Cli) -> Option<PathBuf> {
    let named = || std::env::var_os("TOOLMAN_CONFIG_PATH").map(PathBuf::from);
    let here =
        || ["tools.toml", "toolman.json"].map(PathBuf::from).into_iter().find(|path| path.exists());
    cli.config.clone().or_else(named).or_else(here)
}

/// The configuration, if there is one.
pub fn configuration(cli: &Cli) -> Result<Option<Config>, Misuse> {
    file(cli).map(|path| read(&path)).transpose()
}

/// Reads a file.
pub fn read(path: &Path) -> Result<Config, Misuse> {
    let environment = |name: &str| std::env::var(name).ok();
    config::load(path, &environment).map_err(|faults| misuse(&faults))
}

/// Faults as wrong use.
pub fn misuse(faults: &[Fault]) -> Misuse {
    let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
    Misuse(format!("bad configuration\n{}", lines.join("\n")))
}

fn load(path: PathBuf) -> Result<Plan, Misuse> {
    let config = read(&path)?;
    Plan::of(config, Source::File(path))
}

/// A token that is cancelled by SIGINT and SIGTERM; a second signal ends the process at once.
pub fn stop_on_signals() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        loop {
            let code = tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            };
            if stopped.is_cancelled() {
                std::process::exit(code);
            }
            stopped.cancel();
        }
    });
    Ok(stop)
}
