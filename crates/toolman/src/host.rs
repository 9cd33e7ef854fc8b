//! From a configuration to a running gateway, and to its orderly end.

use std::fs::File;
use std::net::SocketAddr;
use std::os::fd::IntoRawFd as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use ::secrets::store::Store;
use catalog::scope::Scope;
use catalog::surface::Surface;
use config::audit::Audit;
use config::dock::{Dock, Named};
use config::fault::Fault;
use config::http::Http;
use config::variables::Variables;
use config::{Config, Route};
use gateway::{Gateway, Member, Pace, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

use crate::cli::{Cli, Command, Misuse};
use crate::dock::{Mustered, Site};
use crate::hangup::Hangups;
use crate::library::Library;
use crate::manager::Beside;
use crate::nesting::Above;
use crate::reload::Reloader;
use crate::trail::{Trail, audit_of, audit_said};
use crate::unmatched::Rules;
use crate::{data_dir, demo, log, safe, secrets, terminal};

/// How long a start waits for folders to be read before it goes on without the others, which follow: nobody is served
/// meanwhile.
const PATIENCE: Duration = Duration::from_secs(1);

/// A running gateway and where its configuration came from.
pub struct Host {
    pub gateway: Gateway,
    pub source: Source,
    /// Reads again what is served, where that can change.
    pub reloader: Option<Arc<Reloader>>,
    /// Wishes for that, as signals, or the end of the terminal.
    pub hangups: Option<Hangups>,
    /// What starts the processes of this program.
    pub spawner: Arc<Spawner>,
    /// Where the secrets are, if there is a place for them.
    pub safe: Option<Arc<Store>>,
    /// How the trail is kept, if it is.
    pub audit: Option<Audit>,
    /// The manager in the same process, if there is one.
    pub manager: Option<Beside>,
    /// What the rules of the file name.
    pub rules: Rules,
    /// What its reader has remarked, unless it was told already.
    pub warnings: Vec<String>,
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
    /// How folders of Python tools are served.
    pub dock: Dock,
    /// Whether all folders of one folder are.
    has_tools: bool,
    /// Folders of Python tools that are servers by themselves.
    folders: Vec<Named>,
    /// What the environment says.
    pub variables: Variables,
    /// Whether there is one client, which speaks first.
    has_one_client: bool,
    /// SIGHUP, if it is heard.
    hangups: Option<Hangups>,
    /// Where the secrets are, if somebody has looked already: a key from a pipe can be read once.
    safe: Option<Arc<Store>>,
    rules: Rules,
    warnings: Vec<String>,
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
        if let (None, Some(tools)) = (file(cli), docked(cli)) {
            let (variables, ()) = with_variables(cli, Ok(()))?;
            let settings = Settings::new(Surface::Namespace, Vec::new());
            return Plan::of_dock(settings, Source::Dock(tools), variables);
        }
        let path = file(cli).unwrap_or_else(|| PathBuf::from("tools.toml"));
        let (variables, config) = with_variables(cli, read(&path))?;
        Plan::of(config, Source::File(path), variables)
    }

    pub fn source(&self) -> &Source {
        &self.source
    }

    /// The same for a service: a data directory that is named and has nothing yet is made, and filled later.
    pub fn read_or_begin(cli: &Cli) -> anyhow::Result<Plan> {
        if file(cli).is_none() && cli.data_dir.is_some() {
            data_dir::make_tools(cli)?;
        }
        Ok(Plan::read(cli)?)
    }

    /// The same, but a demo where there is no `tools.toml` and none was asked for.
    pub fn read_or_demo(cli: &Cli) -> anyhow::Result<Plan> {
        if file(cli).is_none() {
            let (variables, ()) = with_variables(cli, Ok(()))?;
            data_dir::make_starter(cli)?;
            return Ok(Plan::of_dock(demo::settings()?, Source::Demo, variables)?);
        }
        Ok(Plan::read(cli)?)
    }

    /// Folders of Python tools, and perhaps servers, without a file.
    fn of_dock(settings: Settings, source: Source, variables: Variables) -> Result<Plan, Misuse> {
        let spoken = variables.versions.clone().unwrap_or_default();
        variables_hold(&variables, None);
        Ok(Plan {
            settings: Settings { spoken, ..settings },
            source,
            http: Http::default(),
            endpoints: Vec::new(),
            routes: Vec::new(),
            audit: None,
            dock: dock_of(Dock::default())?,
            has_tools: true,
            folders: Vec::new(),
            variables,
            has_one_client: false,
            hangups: None,
            safe: None,
            rules: Rules::default(),
            warnings: Vec::new(),
        })
    }

    pub fn of(config: Config, source: Source, variables: Variables) -> Result<Plan, Misuse> {
        variables_hold(&variables, config.rulebook.log_level.as_deref());
        let file = match &source {
            Source::File(path) => path.display().to_string(),
            Source::Dock(_) | Source::Demo => "the configuration".to_owned(),
        };
        let rules = Rules::of(&config, &file);
        let warnings = config.warnings.iter().map(ToString::to_string).collect();
        let member = |server: config::Server| Member {
            namespace: server.namespace,
            upstream: server.settings,
        };
        let spoken = variables.versions.clone().or_else(|| config.http.supported_versions.clone());
        let performance = config.performance;
        let upstreams = config.servers.into_iter().map(member).collect();
        let settings = Settings {
            spoken: spoken.unwrap_or_default(),
            rules: config.rules,
            policies: config.rulebook.policies,
            permissions: config.permissions,
            profiles: config.profiles,
            session_context: config.session_context,
            pace: Pace { calls_at_once: performance.calls_at_once, remembers: performance.cached },
            ..Settings::new(config.surface, upstreams)
        };
        let Config { http, endpoints, routes, audit, dock, folders, .. } = config;
        let audit = audit_said(audit, config.rulebook.audits_all);
        Ok(Plan {
            settings,
            source,
            http,
            endpoints,
            routes,
            audit,
            has_tools: dock.is_some(),
            dock: dock_of(dock.unwrap_or_default())?,
            folders,
            variables,
            has_one_client: false,
            hangups: None,
            safe: None,
            rules,
            warnings,
        })
    }

    /// The same, with a master key made where there is none, so that a newcomer needs nothing.
    pub fn with_key(mut self, cli: &Cli) -> Plan {
        let mut members = self.settings.upstreams.iter();
        let is_needed = members.any(|member| !member.upstream.launch.secrets().is_empty());
        // A keyring that nobody needs is not opened to see whether it has a key.
        if is_needed || !safe::is_key_named(cli) {
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

    /// Where to listen, unless somebody said so on the command line. TD-146
    pub fn listen(&self, mut usual: SocketAddr) -> SocketAddr {
        if let Some(port) = self.variables.core_port {
            usual.set_port(port);
        }
        usual
    }

    /// The same, where a hangup does not end us from now on, also while packages are installed.
    pub fn reloadable(mut self) -> std::io::Result<Plan> {
        self.hangups = Some(Hangups::listen()?);
        Ok(self)
    }

    /// The same for one client on stdin, which is mirrored by what its servers are told.
    pub fn for_one_client(self) -> Plan {
        Plan { has_one_client: true, ..self }
    }

    fn has_folders(&self) -> bool {
        self.has_tools || !self.folders.is_empty()
    }

    /// The same, with an audit trail unless the file says otherwise.
    pub fn audited(mut self) -> Plan {
        self.audit.get_or_insert_default();
        self
    }

    pub async fn start(mut self, cli: &Cli) -> Result<Host, Misuse> {
        let warnings =
            [data_dir::ignored(cli, file(cli).is_some()), std::mem::take(&mut self.warnings)]
                .concat();
        let has_report = matches!(cli.command, Some(Command::Check(_)));
        for warning in warnings.iter().filter(|_| !has_report) {
            tracing::warn!("{warning}");
        }
        let has_folders = self.has_folders();
        let library = Arc::new(Library::of(cli));
        let inventories = data_dir::inventories(cli);
        let mut settings =
            Settings { keeper: Some(library.clone()), library, inventories, ..self.settings };
        let safe = self.safe.or_else(|| safe::open(cli));
        let above = Above::find();
        above.check_depth()?;
        let (marker, served) = above.marker(&self.source);
        let spawner = spawner(safe.clone()).await.marking(marker, served);
        if self.has_one_client {
            spawner.expect_client();
        }
        let fixed = settings.upstreams.clone();
        let site = if has_folders {
            let (data, dock) = (data_dir::folder(cli)?, (self.dock, self.has_tools));
            let file = match &self.source {
                Source::File(file) => Some(file.clone()),
                Source::Dock(_) | Source::Demo => None,
            };
            let site = Site::new(Arc::clone(&spawner), data, dock, self.folders);
            Some(site.closing(cli.key_file.clone().into_iter().chain(file)))
        } else {
            None
        };
        let mut mustered = Mustered::default();
        if let Some(site) = &site {
            mustered = site.muster(PATIENCE).await;
            let members = mustered.entries.iter().map(|entry| entry.member.clone()).collect();
            settings.upstreams = site.in_order(&fixed, members);
        }
        let gateway = Gateway::start(settings, &spawner);
        let reloader = match site {
            Some(site) => Some(Reloader::begin(site, fixed, gateway.clone(), mustered).await),
            None => None,
        };
        let audit = audit_of(self.audit, &self.variables);
        let trail = audit.as_ref();
        let trail = trail.and_then(|audit| Trail::start(cli, audit, &gateway, spawner.veil()));
        let (source, hangups, manager) = (self.source, self.hangups, None);
        let rules = self.rules.with_agent(cli.agent.as_deref());
        Ok(Host {
            gateway,
            source,
            reloader,
            hangups,
            spawner,
            safe,
            audit,
            manager,
            rules,
            warnings,
            trail,
        })
    }

    /// What the file says of the audit trail, if there is a file.
    pub fn audit(cli: &Cli) -> Result<Audit, Misuse> {
        Ok(configuration(cli)?.and_then(|config| config.audit).unwrap_or_default())
    }
}

impl Host {
    /// Starts what a configuration says.
    pub async fn of(cli: &Cli, config: Config) -> Result<Host, Misuse> {
        let (variables, config) = with_variables(cli, Ok(config))?;
        Ok(Plan::of(config, Source::Demo, variables)?.start(cli).await?.whole().await)
    }

    /// Starts what the configuration says, with all that folders of Python tools need; it must be there.
    pub async fn start(cli: &Cli) -> anyhow::Result<Host> {
        Ok(Plan::read(cli)?.start(cli).await?.whole().await)
    }

    /// The same when nothing has to be installed for it any more.
    pub async fn whole(self) -> Host {
        if let Some(reloader) = &self.reloader {
            reloader.finished().await;
        }
        self
    }

    /// Waits until it is known what folders of Python tools offer, but not for ever; packages are not waited for.
    pub async fn is_read(&self) {
        if let Some(reloader) = &self.reloader {
            reloader.is_read().await;
        }
    }

    /// Ends all servers, and writes down what was not yet.
    pub async fn stop(self) {
        if let Some(reloader) = &self.reloader {
            reloader.stop();
        }
        self.gateway.stop().await;
        if let Some(manager) = self.manager {
            manager.stop().await;
        }
        if let Some(trail) = self.trail {
            trail.finish();
        }
    }
}

/// How folders are served: as the file says, where the environment says nothing.
pub fn dock_of(dock: Dock) -> Result<Dock, Misuse> {
    dock.with_environment(&environment).map_err(|problems| Misuse(problems.join("\n")))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What the environment says, beside what was read; all that is wrong with both. TD-147
pub fn with_variables<T>(cli: &Cli, loaded: Result<T, Misuse>) -> Result<(Variables, T), Misuse> {
    let opens_door =
        matches!(cli.command, Some(Command::Up(_) | Command::Serve(_) | Command::Manager(_)));
    let variables = Variables::read(&environment, opens_door);
    let key = safe::check_key(cli).err().map(|Misuse(problem)| problem);
    let variables = match (variables, key) {
        (Ok(variables), None) => Ok(variables),
        (read, key) => {
            let problems: Vec<_> = read.err().unwrap_or_default().into_iter().chain(key).collect();
            Err(Misuse(format!("bad settings in the environment\n{}", problems.join("\n"))))
        }
    };
    match (variables, loaded) {
        (Ok(variables), Ok(loaded)) => Ok((variables, loaded)),
        (Err(Misuse(one)), Err(Misuse(other))) => Err(Misuse(format!("{one}\n{other}"))),
        (Err(misuse), Ok(_)) | (Ok(_), Err(misuse)) => Err(misuse),
    }
}

/// Does what can be done at once about settings, and says what can't.
pub fn variables_hold(variables: &Variables, log_level: Option<&str>) {
    if let Some(level) = variables.log_level.or(log_level) {
        log::set_level(level);
    }
    if variables.origins.as_ref().is_some_and(|origins| origins.iter().any(|one| one == "*")) {
        tracing::warn!("CORS_ORIGINS lets pages of all origins in; name those that you need");
    }
    let own = (rustix::process::getuid().as_raw(), rustix::process::getgid().as_raw());
    for (name, wanted, own) in
        [("TOOLDOCK_UID", variables.owner.0, own.0), ("TOOLDOCK_GID", variables.owner.1, own.1)]
    {
        if let Some(wanted) = wanted.filter(|wanted| *wanted != own) {
            tracing::warn!("{name} is {wanted}, but this process has {own}; start it as that user");
        }
    }
}

/// The folder of Python tools in the data directory, if there is one and it was named.
fn docked(cli: &Cli) -> Option<PathBuf> {
    cli.data_dir.as_ref()?;
    let tools = data_dir::folder(cli).ok()?.join("tools");
    tools.is_dir().then_some(tools)
}

/// Starts processes below guards of ours; from now on no log holds a value of the safe.
///
/// There is one for all of this program.
pub async fn spawner(safe: Option<Arc<Store>>) -> Arc<Spawner> {
    let spawner = Spawner::with_secrets(own_binary(), safe);
    log::hide_by(spawner.veil());
    spawner.hide_secrets().await;
    spawner
}

/// Our own binary, which is the guard too, even when its file is replaced meanwhile.
///
/// It is held open: below valgrind, where instructions are counted, `/proc/self/exe` is valgrind.
fn own_binary() -> String {
    let binary = std::env::current_exe().and_then(File::open);
    binary.map_or("/proc/self/exe".into(), |file| format!("/proc/self/fd/{}", file.into_raw_fd()))
}

/// The file to read: the one that is named, else one that lies here under a usual name.
pub fn file(cli: &Cli) -> Option<PathBuf> {
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
    config::load(path, &environment).map_err(|faults| misuse(&faults))
}

/// Faults as wrong use.
pub fn misuse(faults: &[Fault]) -> Misuse {
    let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
    Misuse(format!("bad configuration\n{}", lines.join("\n")))
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
