//! The dock: folders of Python tools into upstreams of the gateway.
//!
//! A folder is read, its environment is brought in line with its requirements, its files are read without being
//! run, and a worker is described that will run them. What is wrong with one folder harms no other.

mod ceiling;
mod confinement;
mod environments;
pub mod logs;
mod offer;
pub mod scaffold;
mod scratch;
mod served;
pub mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use config::dock::{Dock, Folder, Manager, Manifest, Named, folders};
use futures_util::stream::{self, StreamExt as _};
use gateway::Member;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use upstream::guard::Bounds;
use upstream::launch::{Launch, Spawner};
use upstream::limits::{RESTART_DELAY_MAX, TIMEOUT_SETTING};
use upstream::python::lease::{self, Lease};
use upstream::python::{Faults, Pace, Stage, Worker, runtime};
use upstream::supervisor::{Restart, Settings};
use upstream::template::Template;

use self::environments::Environments;
use self::offer::Offer;

/// The largest result of a tool.
const RESULT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The Python that is used unless another one is named.
pub const PYTHON: &str = "python3";
/// The variable that says how long a call may take.
const SECONDS: &str = "TOOL_CALL_TIMEOUT_SECONDS";
/// How many folders are made ready at the same time.
const AT_ONCE: usize = 4;
/// Of what is made for a namespace, how much is kept though nobody uses it: the newest, and the one before.
const KEPT: usize = 2;

/// Where everything of the dock is.
pub struct Site {
    spawner: Arc<Spawner>,
    data: PathBuf,
    dock: Dock,
    /// Files that no worker may see, besides those of the data directory.
    closed: Vec<PathBuf>,
    /// Folders that the configuration names one by one.
    named: Vec<Named>,
    /// Whether all folders of one folder are served besides.
    has_tools: bool,
    environments: Environments,
}

/// Where everything of one namespace is.
struct Places {
    tools: PathBuf,
    python: PathBuf,
    runtime: PathBuf,
    scratch: PathBuf,
}

/// What was made ready for a folder.
struct Made {
    offer: Offer,
    faults: Vec<String>,
    lease: Lease,
    stage: Stage,
    /// Why its packages are not those that it wants.
    problem: Option<String>,
}

/// Our own Python files.
#[derive(Clone)]
struct Runtime {
    path: PathBuf,
    lease: Lease,
}

/// What became of all folders.
#[derive(Default)]
pub struct Mustered {
    pub entries: Vec<Entry>,
    /// What is no namespace though it lies among them.
    pub problems: Vec<String>,
}

/// A folder as it can be served now.
pub struct Entry {
    pub member: Member,
    /// What tells the folder from what it was or will be: all that it holds, and what can't be read of it.
    pub version: Version,
    /// Whether its packages were installed just now.
    pub is_new: bool,
    /// What is still to be done for it, if anything is.
    pub rest: Option<Rest>,
}

/// A folder whose Python or packages are still to be seen to.
#[derive(Clone)]
pub struct Rest {
    folder: Folder,
    copy: Lease,
    runtime: Runtime,
    /// Whether its files were read, so that only its packages are missing.
    pub is_read: bool,
}

pub type Version = (String, Vec<String>);

impl Rest {
    /// What is to be installed, and for which Python.
    pub fn needs(&self) -> (Option<String>, Option<Vec<String>>) {
        (self.folder.manifest.python.clone(), self.folder.packages.clone())
    }
}

/// A folder, as far as it was made ready.
pub struct Prepared {
    pub member: Member,
    /// Whether its packages were installed just now.
    pub is_new: bool,
    /// Whether nothing is left to be done.
    pub is_whole: bool,
}

/// Hears of what takes its time.
pub type Tell<'a> = &'a (dyn Fn(&str) + Send + Sync);

impl Site {
    /// `dock` says how folders are served, and `has_tools` whether all those of its folder are.
    pub fn new(
        spawner: Arc<Spawner>,
        data: PathBuf,
        (dock, has_tools): (Dock, bool),
        named: Vec<Named>,
    ) -> Site {
        let (closed, environments) = (Vec::new(), Environments::default());
        Site { spawner, data, dock, closed, named, has_tools, environments }
    }

    /// The same, with further files that no worker may see.
    pub fn closing(mut self, files: impl IntoIterator<Item = PathBuf>) -> Site {
        self.closed.extend(files);
        self
    }

    /// How long folders must be quiet before they are read again by themselves, if that is wanted.
    pub fn watches(&self) -> Option<Duration> {
        self.dock.watches()
    }

    /// The manager, where the configuration says that it may be.
    pub fn admit(&self, manager: Manager) -> Manager {
        manager.within(self.dock.managers.as_deref())
    }

    /// How folders are served.
    pub fn dock(&self) -> &Dock {
        &self.dock
    }

    /// Where the folders are.
    fn tools(&self) -> PathBuf {
        self.dock.folder.clone().unwrap_or_else(|| self.data.join("tools"))
    }

    /// All that is to be looked at for changes.
    pub fn places(&self) -> Vec<PathBuf> {
        let tools = self.has_tools.then(|| self.tools());
        tools.into_iter().chain(self.named.iter().map(|named| named.path.clone())).collect()
    }

    /// The folders that are there now, and what is none though it lies among them.
    async fn find(&self) -> (Vec<Folder>, Vec<String>) {
        let named = self.named.clone();
        let tools = self.has_tools.then(|| self.tools());
        let found = spawn_blocking(move || find(&named, tools.as_deref())).await;
        found.unwrap_or_else(|_| (Vec::new(), vec!["the folders can't be read".to_owned()]))
    }

    /// All upstreams in their order: servers, with the folders that are named among them, and then the others.
    pub fn in_order(&self, servers: &[Member], mut folders: Vec<Member>) -> Vec<Member> {
        let mut ordered = servers.to_vec();
        // From the back, so that the places of the others stay what they are.
        for named in self.named.iter().rev() {
            let at = folders.iter().position(|member| member.upstream.name == named.name);
            if let Some(at) = at {
                ordered.insert(named.after.min(ordered.len()), folders.remove(at));
            }
        }
        let is_taken = |member: &Member| {
            let name = &member.upstream.name;
            let is_taken = ordered.iter().any(|other| other.upstream.name == *name);
            if is_taken {
                tracing::warn!(%name, "the folder is not served: a server has this name");
            }
            is_taken
        };
        folders.retain(|member| !is_taken(member));
        ordered.extend(folders);
        ordered
    }

    /// Reads all folders, as far as that can be done by a moment: what takes longer is left to be finished. TD-114
    pub async fn muster(&self, patience: Duration) -> Mustered {
        let until = Instant::now() + patience;
        let (found, problems) = self.find().await;
        let mut mustered = Mustered { problems, ..Mustered::default() };
        if found.is_empty() {
            return mustered;
        }
        let runtime = match runtime::install(&self.data.join("runtime")) {
            Ok(runtime) => runtime,
            Err(error) => {
                let folder = self.data.join("runtime");
                mustered.problems.push(format!("{}: {error}", folder.display()));
                return mustered;
            }
        };
        let runtime = self.leased(runtime);
        let entries = found.into_iter().map(|folder| self.entry(folder, &runtime, until));
        mustered.entries = stream::iter(entries).buffered(AT_ONCE).collect().await;
        mustered
    }

    /// A folder as it can be served now.
    async fn entry(&self, folder: Folder, runtime: &Runtime, until: Instant) -> Entry {
        let (folder, copy) = self.served(folder).await;
        let version = (folder.version.clone(), folder.faults.clone());
        let mut rest = Rest { folder, copy, runtime: runtime.clone(), is_read: false };
        if rest.folder.is_refused {
            // Nothing is made ready for it: what it may do is not known.
            return Entry {
                member: self.bare(&rest, Stage::Whole),
                version,
                is_new: false,
                rest: None,
            };
        }
        match timeout_at(until, self.prepare(&rest, None)).await {
            Ok(Prepared { member, is_new, is_whole }) => {
                rest.is_read = true;
                Entry { member, version, is_new, rest: (!is_whole).then_some(rest) }
            }
            Err(_) => {
                let member = self.bare(&rest, Stage::Unread);
                Entry { member, version, is_new: false, rest: Some(rest) }
            }
        }
    }

    /// A folder of which nothing is known but that it is there.
    fn bare(&self, rest: &Rest, stage: Stage) -> Member {
        let mut folder = rest.folder.clone();
        let mut faults = std::mem::take(&mut folder.faults);
        let program = self.program(&mut folder, &mut faults);
        let places = self.places_of(&folder, program, &rest.runtime);
        let (offer, lease) = (Offer::default(), rest.copy.clone().and(&rest.runtime.lease));
        self.worker(folder, places, Made { offer, faults, lease, stage, problem: None })
    }

    /// Makes a folder ready. No package is installed unless somebody hears of it: then it is whole afterwards, or has
    /// failed.
    pub async fn prepare(&self, rest: &Rest, tell: Option<Tell<'_>>) -> Prepared {
        let mut folder = rest.folder.clone();
        let mut faults = std::mem::take(&mut folder.faults);
        let program = self.program(&mut folder, &mut faults);
        let interpreter = match self.interpreter(&program, &rest.runtime.path).await {
            Ok(interpreter) => interpreter,
            Err(problem) => {
                // HARDENING X11
                faults.push(format!("has no Python: {problem}; install it, or name another"));
                match self.former(&folder) {
                    Some(former) => former,
                    None => {
                        let mut refused = rest.clone();
                        (refused.folder.faults, refused.folder.is_refused) = (faults, true);
                        let member = self.bare(&refused, Stage::Whole);
                        return Prepared { member, is_new: false, is_whole: true };
                    }
                }
            }
        };
        let found = self.environment(&folder, &interpreter, tell).await;
        let offer = self.offer(&folder, &interpreter, &rest.runtime.path, &mut faults).await;
        let places = self.places_of(&folder, found.python, &rest.runtime);
        let copy = rest.copy.clone().and(&rest.runtime.lease);
        let lease = self.keep(folder.name.as_str(), &places, copy);
        if let Err(error) = scratch::prepare(&places.scratch) {
            faults.push(format!("`{}` can't be made ready: {error}", places.scratch.display()));
        }
        let is_whole = found.is_whole || found.is_former;
        let stage = if is_whole { Stage::Whole } else { Stage::Read };
        let problem = found.problem;
        let made = Made { offer, faults, lease, stage, problem };
        let member = self.worker(folder, places, made);
        Prepared { member, is_new: found.is_new, is_whole: found.is_whole }
    }

    /// The Python that a folder names, within what it may.
    fn program(&self, folder: &mut Folder, faults: &mut Vec<String>) -> PathBuf {
        ceiling::lower(&mut folder.manifest, &self.dock, faults);
        let named = folder.manifest.python.as_deref().or(self.dock.python.as_deref());
        PathBuf::from(named.unwrap_or(PYTHON))
    }

    /// A folder as it lies in the copy that is served. One that can't be copied is refused: what would run is not what
    /// was read.
    async fn served(&self, folder: Folder) -> (Folder, Lease) {
        if folder.is_refused {
            return (folder, Lease::default());
        }
        let parent = self.data.join("served").join(folder.name.as_str());
        let original = folder.clone();
        let copied = spawn_blocking(move || served::copy(&original, &parent)).await;
        let copied =
            copied.unwrap_or_else(|_| Err(std::io::Error::other("the copying has failed")));
        copied.unwrap_or_else(|error| {
            let mut folder = folder;
            folder.is_refused = true;
            folder.faults.push(format!("can't be copied, so it is not served: {error}"));
            (folder, Lease::default())
        })
    }

    fn places_of(&self, folder: &Folder, python: PathBuf, runtime: &Runtime) -> Places {
        Places {
            tools: folder.path.clone(),
            python,
            runtime: runtime.path.clone(),
            scratch: self.data.join("scratch").join(folder.name.as_str()),
        }
    }

    fn worker(&self, folder: Folder, places: Places, made: Made) -> Member {
        let Made { offer, mut faults, lease, stage, problem } = made;
        let manifest = &folder.manifest;
        let confinement = self.confinement(manifest, &places, &mut faults);
        let worker = Worker {
            name: folder.name.to_string(),
            env: environment_of(manifest, folder.name.as_str(), &mut faults),
            admission: offer::admission_of(&folder),
            version: folder.version,
            offer: offer.tools,
            files: offer.files,
            exact: offer.exact,
            faults: Faults { of_files: faults, of_packages: problem },
            is_refused: folder.is_refused,
            stage,
            // What only a worker can tell, nobody would ever see of one that rests.
            is_eager: offer.is_partial || manifest.is_eager.unwrap_or(self.dock.is_eager),
            is_strict: manifest.is_strict.unwrap_or(self.dock.is_strict),
            pace: Pace {
                calls_max: manifest.calls_max.unwrap_or(self.dock.calls_max),
                waiting_max: self.dock.waiting_max,
                calls_a_minute: manifest.calls_a_minute.or(self.dock.calls_a_minute),
                result_bytes_max: RESULT_BYTES_MAX,
            },
            confinement,
            bounds: Bounds {
                processes_max: manifest.processes_max.unwrap_or(self.dock.processes_max),
                memory_bytes_max: self.memory_bytes_max(manifest),
                disk_bytes_max: self.disk_bytes_max(manifest),
            },
            folder: places.tools,
            interpreter: places.python,
            runtime: places.runtime,
            scratch: places.scratch,
            log: Some(logs::path(&self.data, &folder.name)),
            lease,
        };
        let is_own = manifest.call_timeout.is_some();
        let call_timeout = manifest.call_timeout.unwrap_or(self.dock.call_timeout);
        let upstream = Settings {
            restart: Restart::OnFailure { delay_max: RESTART_DELAY_MAX },
            call_timeout,
            timeout_setting: match (is_own, std::env::var_os(SECONDS)) {
                (false, Some(_)) => SECONDS,
                _ => TIMEOUT_SETTING,
            },
            ..Settings::new(folder.name, Launch::Worker(Box::new(worker)))
        };
        Member { namespace: folder.namespace, upstream }
    }

    /// Our own Python files, in use; those of other versions that nobody uses are removed.
    fn leased(&self, path: PathBuf) -> Runtime {
        let mut lease = Lease::default();
        hold(&mut lease, &path);
        lease::freshen(&path);
        lease::tidy(&self.data.join("runtime"), KEPT);
        Runtime { path, lease }
    }

    /// Keeps what a namespace needs from being removed, and removes what was made for it earlier and nobody uses.
    fn keep(&self, namespace: &str, places: &Places, mut lease: Lease) -> Lease {
        for (kind, path) in [
            ("served", Some(places.tools.as_path())),
            ("venvs", places.python.parent().and_then(Path::parent)),
        ] {
            let parent = self.data.join(kind).join(namespace);
            if let Some(path) = path.filter(|path| path.starts_with(&parent)) {
                if kind != "served" {
                    hold(&mut lease, path);
                }
                lease::freshen(path);
                lease::tidy(&parent, KEPT);
            }
        }
        lease
    }
}

/// All folders, and what is none though it lies among them: those that are named, and those in the folder of tools.
fn find(named: &[Named], tools: Option<&Path>) -> (Vec<Folder>, Vec<String>) {
    let mut found: Vec<_> = named.iter().map(Named::read).collect();
    let (among, mut problems) = tools.map(folders).unwrap_or_default();
    for folder in among {
        if named.iter().any(|named| named.name == folder.name) {
            let path = folder.path.display();
            problems.push(format!("{path}: a server of this name is configured already"));
        } else {
            found.push(folder);
        }
    }
    (found, problems)
}

/// The variables of a worker: what is declared, and the secrets that are named. TD-60
fn environment_of(
    manifest: &Manifest,
    namespace: &str,
    faults: &mut Vec<String>,
) -> Vec<(String, Template)> {
    let mut variables = manifest.env.clone();
    for key in &manifest.secrets {
        let mut value = Template::default();
        match value.push_secret(namespace, key) {
            // It counts for more than a default of the same name, which stands in where it is not set.
            Ok(()) => variables.push((key.clone(), value)),
            Err(error) => faults.push(format!("tooldock.yaml: {error}")),
        }
    }
    variables
}

/// Takes a folder into use; one that can't be is removed when others have taken its place.
fn hold(lease: &mut Lease, folder: &Path) {
    if let Err(error) = lease.add(folder) {
        tracing::warn!(folder = %folder.display(), %error, "can't be locked");
    }
}
