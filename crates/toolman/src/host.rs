//! From a configuration to a running gateway, and to its orderly end.

use std::fs::File;
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ::secrets::store::Store;
use catalog::scope::Scope;
use catalog::surface::Surface;
use config::audit::Audit;
use config::dock::Dock;
use config::fault::Fault;
use config::http::Http;
use config::{Config, Route};
use gateway::library::InMemory;
use gateway::{Gateway, Member, Pace, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

use crate::cli::{Cli, Misuse};
use crate::dock::Site;
use crate::library::Library;
use crate::reload::Reloader;
use crate::trail::Trail;
use crate::{data_dir, demo, door, log, safe, secrets, terminal};

/// A running gateway and where its configuration came from.
pub struct Host {
    pub gateway: Gateway,
    pub source: Source,
    /// Reads again what is served, where that can change.
    pub reloader: Option<Arc<Reloader>>,
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
    /// How folders of Python tools are served, if they are.
    dock: Option<Dock>,
    /// Where the secrets are, if somebody has looked already: a key from a pipe can be read once.
    safe: Option<Arc<Store>>,
}

pub enum Source {
    File(PathBuf),
    /// Folders of Python tools alone.
    Dock(PathBuf),
    Demo,
}

impl Plan {
    /// Reads the configuration; it must be there.
    pub fn read(cli: &Cli) -> Result<Plan, Misuse> {
        safe::check_key(cli)?;
        if let (None, Some(tools)) = (file(cli), docked(cli)) {
            return Plan::of_dock(tools);
        }
        load(file(cli).unwrap_or_else(|| PathBuf::from("tools.toml")))
    }

    /// Folders of Python tools, and nothing else.
    fn of_dock(tools: PathBuf) -> Result<Plan, Misuse> {
        let settings = Settings::new(Surface::Namespace, Vec::new());
        let dock = Some(dock_of(None)?);
        let (http, audit) = (Http::default(), None);
        let (endpoints, routes) = (Vec::new(), Vec::new());
        let source = Source::Dock(tools);
        Ok(Plan { settings, source, http, endpoints, routes, audit, dock, safe: None })
    }

    /// The same, but a demo where there is no `tools.toml` and none was asked for.
    pub fn read_or_demo(cli: &Cli) -> anyhow::Result<Plan> {
        if file(cli).is_none() {
            safe::check_key(cli)?;
            data_dir::make_starter(cli)?;
            let (settings, http) = (demo::settings()?, Http::default());
            let (source, audit) = (Source::Demo, None);
            let (endpoints, routes) = (Vec::new(), Vec::new());
            let dock = Some(dock_of(None)?);
            return Ok(Plan { settings, source, http, endpoints, routes, audit, dock, safe: None });
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
        let Config { http, endpoints, routes, mut audit, dock, .. } = config;
        let dock = dock.map(|dock| dock_of(Some(dock))).transpose()?;
        if let Some(enabled) = config.rulebook.audits_all {
            audit.get_or_insert_with(|| Audit { enabled, ..Audit::default() });
        }
        Ok(Plan { settings, source, http, endpoints, routes, audit, dock, safe: None })
    }

    /// The same, with a master key made where a server declares a secret and there is none.
    pub fn with_key(mut self, cli: &Cli) -> Plan {
        let mut members = self.settings.upstreams.iter();
        if members.any(|member| !member.upstream.launch.secrets().is_empty()) {
            self.safe = safe::open(cli);
        }
        // Those who need it will say so, too; the others serve.
        if let Some(safe) = &self.safe
            && let Err(error) = secrets::ensure_key(safe)
        {
            terminal::complain(&format!("toolman: {error:#}"));
        }
        self
    }

    /// The same, with an audit trail unless the file says otherwise.
    pub fn audited(mut self) -> Plan {
        self.audit.get_or_insert_default();
        self
    }

    pub async fn start(self, cli: &Cli) -> Result<Host, Misuse> {
        let mut settings = Settings { library: Arc::new(Library::of(cli)), ..self.settings };
        let spawner = Spawner::with_secrets(own_binary(), self.safe.or_else(|| safe::open(cli)));
        let fixed = settings.upstreams.clone();
        let site = match self.dock {
            Some(dock) => Some(Site::new(Arc::clone(&spawner), data_dir::folder(cli)?, dock)),
            None => None,
        };
        if let Some(site) = &site {
            let mustered = site.muster().await;
            for problem in &mustered.problems {
                tracing::warn!("{problem}");
            }
            settings.upstreams.extend(mustered.members);
        }
        let gateway = Gateway::start(settings, &spawner);
        let reloader = site.map(|site| Arc::new(Reloader::new(site, fixed, gateway.clone())));
        let audit = self.audit.filter(|audit| audit.enabled);
        let trail = audit.and_then(|audit| Trail::start(cli, &audit, &gateway));
        Ok(Host { gateway, source: self.source, reloader, trail })
    }

    /// What the file says of the audit trail, if there is a file.
    pub fn audit(cli: &Cli) -> Result<Audit, Misuse> {
        Ok(configuration(cli)?.and_then(|config| config.audit).unwrap_or_default())
    }
}

impl Host {
    /// Starts what a configuration says.
    pub async fn of(cli: &Cli, config: Config) -> Result<Host, Misuse> {
        Plan::of(config, Source::Demo)?.start(cli).await
    }

    /// Starts what the configuration says; it must be there.
    pub async fn start(cli: &Cli) -> anyhow::Result<Host> {
        Ok(Plan::read(cli)?.start(cli).await?)
    }

    /// Ends all servers, and writes down what was not yet.
    pub async fn stop(self) {
        self.gateway.stop().await;
        if let Some(trail) = self.trail {
            trail.finish();
        }
    }
}

/// How folders are served: as the file says, where the environment says nothing.
pub fn dock_of(dock: Option<Dock>) -> Result<Dock, Misuse> {
    let environment = |name: &str| std::env::var(name).ok();
    let dock = dock.unwrap_or_default().with_environment(&environment);
    dock.map_err(|problems| Misuse(problems.join("\n")))
}

/// The folder of Python tools in the data directory, if there is one and it was named.
fn docked(cli: &Cli) -> Option<PathBuf> {
    let tools = cli.data_dir.as_ref()?.join("tools");
    tools.is_dir().then_some(tools)
}

/// Starts servers below guards of ours, without secrets for them.
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
