//! The dock: folders of Python tools into upstreams of the gateway.
//!
//! A folder is read, its environment is brought in line with its requirements, its files are read without being
//! run, and a worker is described that will run them. What is wrong with one folder harms no other.

mod ceiling;
mod offer;
pub mod scaffold;
mod scratch;
mod served;
pub mod watch;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::dock::{Dock, Folder, Manager, Manifest, Named, Sandbox, folders};
use futures_util::stream::{self, StreamExt as _};
use gateway::Member;
use mcp::items::Inventory;
use tokio::task::spawn_blocking;
use upstream::confine::apart::apart;
use upstream::confine::{self, Confinement, Level};
use upstream::guard::Bounds;
use upstream::launch::{Launch, Spawner};
use upstream::limits::RESTART_DELAY_MAX;
use upstream::python::environment::{Interpreter, Wish};
use upstream::python::lease::{self, Lease};
use upstream::python::{Pace, Worker, runtime};
use upstream::supervisor::{Restart, Settings};
use upstream::template::Template;

/// The largest result of a tool.
const RESULT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The Python that is used unless another one is named.
const PYTHON: &str = "python3";
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
    /// What was asked before, by the program that was asked.
    interpreters: Mutex<HashMap<PathBuf, Interpreter>>,
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
    offer: Arc<Inventory>,
    faults: Vec<String>,
    lease: Lease,
}

/// Our own Python files.
struct Runtime {
    path: PathBuf,
    lease: Lease,
}

/// What became of all folders.
#[derive(Default)]
pub struct Mustered {
    pub members: Vec<Member>,
    /// Namespaces whose environments were built anew.
    pub synced: Vec<String>,
    /// What is wrong with them, and what is no namespace though it lies among them.
    pub problems: Vec<String>,
}

impl Site {
    /// `dock` says how folders are served, and `has_tools` whether all those of its folder are.
    pub fn new(
        spawner: Arc<Spawner>,
        data: PathBuf,
        (dock, has_tools): (Dock, bool),
        named: Vec<Named>,
    ) -> Site {
        let (closed, interpreters) = (Vec::new(), Mutex::default());
        Site { spawner, data, dock, closed, named, has_tools, interpreters }
    }

    /// The same, with further files that no worker may see.
    pub fn closing(mut self, files: impl IntoIterator<Item = PathBuf>) -> Site {
        self.closed.extend(files);
        self
    }

    /// How long folders must be quiet before they are read again by themselves, if that is wanted.
    pub fn watches(&self) -> Option<std::time::Duration> {
        self.dock.watches
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

    /// Reads all folders and makes ready what they need. TD-114
    pub async fn muster(&self) -> Mustered {
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
        let members = found.into_iter().map(|folder| self.member(folder, &runtime));
        let members: Vec<_> = stream::iter(members).buffered(AT_ONCE).collect().await;
        for (member, is_synced) in members {
            if is_synced {
                mustered.synced.push(member.upstream.name.to_string());
            }
            if let Launch::Worker(worker) = &member.upstream.launch {
                let place = |fault: &String| format!("{}: {fault}", worker.name);
                mustered.problems.extend(worker.faults.iter().map(place));
            }
            mustered.members.push(member);
        }
        mustered
    }

    /// A folder as an upstream, and whether its environment was built anew.
    async fn member(&self, folder: Folder, runtime: &Runtime) -> (Member, bool) {
        let (mut folder, copy) = self.served(folder).await;
        let mut faults = std::mem::take(&mut folder.faults);
        ceiling::lower(&mut folder.manifest, &self.dock, &mut faults);
        let named = folder.manifest.python.as_deref().or(self.dock.python.as_deref());
        let program = PathBuf::from(named.unwrap_or(PYTHON));
        if folder.is_refused {
            // Nothing is made ready for it: what it may do is not known.
            folder.sources.clear();
            let places = self.places_of(&folder, program, runtime);
            let offer = Arc::default();
            return (self.worker(folder, places, Made { offer, faults, lease: copy }), false);
        }
        let interpreter = self.interpreter(&program).await.unwrap_or_else(|problem| {
            // HARDENING X11
            faults.push(format!("has no Python: {problem}; install it, or name another"));
            Interpreter { path: program, version: String::new() }
        });
        let (python, is_new) = self.environment(&folder, &interpreter, &mut faults).await;
        let offer = self.offer(&folder, &interpreter, &runtime.path, &mut faults).await;
        let places = self.places_of(&folder, python, runtime);
        let lease = self.keep(folder.name.as_str(), &places, copy.and(&runtime.lease));
        if let Err(error) = scratch::prepare(&places.scratch) {
            faults.push(format!("`{}` can't be made ready: {error}", places.scratch.display()));
        }
        let made = Made { offer: Arc::new(offer), faults, lease };
        (self.worker(folder, places, made), is_new)
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
        let Made { offer, mut faults, lease } = made;
        let manifest = &folder.manifest;
        let confinement = self.confinement(manifest, &places, &mut faults);
        let worker = Worker {
            name: folder.name.to_string(),
            env: environment_of(manifest, folder.name.as_str(), &mut faults),
            admission: offer::admission_of(&folder),
            version: folder.version,
            offer,
            faults,
            is_refused: folder.is_refused,
            is_eager: manifest.is_eager.unwrap_or(self.dock.is_eager),
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
            lease,
        };
        let call_timeout = manifest.call_timeout.unwrap_or(self.dock.call_timeout);
        let upstream = Settings {
            restart: Restart::OnFailure { delay_max: RESTART_DELAY_MAX },
            call_timeout,
            ..Settings::new(folder.name, Launch::Worker(worker))
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

    /// What the worker of a folder may touch.
    fn confinement(
        &self,
        manifest: &Manifest,
        places: &Places,
        faults: &mut Vec<String>,
    ) -> Option<Confinement> {
        let is_confined = manifest.sandbox.unwrap_or(self.dock.sandbox != Sandbox::Off);
        let least = match self.dock.sandbox {
            Sandbox::Required(level) => level,
            Sandbox::Off | Sandbox::BestEffort if !is_confined => return None,
            Sandbox::Off | Sandbox::BestEffort => Level::Limits,
        };
        // Nothing of the data directory but the namespace's own, however wide a path is.
        let closed = [self.closed.clone(), vec![self.data.clone(), self.tools()]].concat();
        let mut own = vec![places.tools.clone(), places.runtime.clone()];
        let mut asked = confine::common_reads();
        let environment = places.python.parent().and_then(Path::parent).map(Path::to_owned);
        let is_own = places.python.starts_with(self.data.join("venvs"));
        let place = if is_own { &mut own } else { &mut asked };
        // A Python may lie anywhere, an environment says that it is one.
        place.extend(environment.filter(|path| is_own || path.join("pyvenv.cfg").exists()));
        asked.extend(confine::home_of(&places.python));
        asked.extend(manifest.reads.iter().cloned());
        let reads = apart(&asked, &closed);
        let asked = [confine::common_writes(), manifest.writes.clone()].concat();
        let writes = apart(&asked, &closed);
        for path in reads.refused.iter().chain(&writes.refused) {
            faults.push(format!("`{}` is closed to all workers and not granted", path.display()));
        }
        for path in reads.too_wide.iter().chain(&writes.too_wide) {
            faults.push(format!(
                "`{}` is not granted: too many paths would have to be named; grant fewer, or narrower ones",
                path.display()
            ));
        }
        let reads = [own, reads.granted].concat();
        let writes = [vec![places.scratch.clone()], writes.granted].concat();
        Some(Confinement {
            reads,
            writes,
            has_network: manifest.network.unwrap_or(self.dock.network),
            memory_bytes_max: self.memory_bytes_max(manifest),
            file_bytes_max: self.disk_bytes_max(manifest),
            least,
        })
    }

    /// How much memory a worker may have, and each of its processes.
    fn memory_bytes_max(&self, manifest: &Manifest) -> u64 {
        u64::from(manifest.memory_mb.unwrap_or(self.dock.memory_mb)) * 1024 * 1024
    }

    /// How much its tools may keep in files.
    fn disk_bytes_max(&self, manifest: &Manifest) -> u64 {
        u64::from(manifest.disk_mb.unwrap_or(self.dock.disk_mb)) * 1024 * 1024
    }

    async fn interpreter(&self, program: &Path) -> Result<Interpreter, String> {
        let known = || self.interpreters.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(interpreter) = known().get(program).cloned() {
            return Ok(interpreter);
        }
        let found = Interpreter::probe(&self.spawner, program).await?;
        known().insert(program.to_owned(), found.clone());
        Ok(found)
    }

    /// The Python of a folder's own environment; the former one, or a plain one, if it can't be had.
    async fn environment(
        &self,
        folder: &Folder,
        interpreter: &Interpreter,
        faults: &mut Vec<String>,
    ) -> (PathBuf, bool) {
        if interpreter.version.is_empty() {
            return (interpreter.path.clone(), false);
        }
        let (parent, uv) =
            (self.data.join("venvs").join(folder.name.as_str()), self.data.join("uv"));
        let wish = Wish { interpreter, packages: &folder.packages, parent: &parent, uv: &uv };
        let namespace = folder.name.as_str();
        let tell = |step: &str| tracing::warn!(namespace, "{step}");
        match wish.fulfil(&self.spawner, &tell).await {
            Ok(environment) => (environment.python, environment.is_new),
            Err(problem) => {
                let former = wish.former();
                let rest =
                    if former.is_some() { "the former ones are used" } else { "it has none" };
                faults.push(format!("requirements.txt: not installed, {rest}: {problem}"));
                (former.unwrap_or_else(|| interpreter.path.clone()), false)
            }
        }
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
            Ok(()) => {
                // A secret counts for more than a default of the same name.
                variables.retain(|(name, _)| name != key);
                variables.push((key.clone(), value));
            }
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
