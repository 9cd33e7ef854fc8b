//! The dock: folders of Python tools into upstreams of the gateway.
//!
//! A folder is read, its environment is brought in line with its requirements, its files are read without being
//! run, and a worker is described that will run them. What is wrong with one folder harms no other.

pub mod scaffold;
mod served;
pub mod watch;

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::digest::{SHA256, digest};
use config::dock::{Dock, Folder, Manifest, Sandbox, folders};
use gateway::Member;
use mcp::items::{Inventory, Kind};
use mcp::text::hexadecimal;
use upstream::confine::{self, Confinement};
use upstream::launch::{Launch, Spawner};
use upstream::limits::RESTART_DELAY_MAX;
use upstream::python::environment::{Interpreter, Wish};
use upstream::python::{Pace, Worker, runtime, scan};
use upstream::supervisor::{Restart, Settings};
use upstream::template::Template;

/// The largest result of a tool.
const RESULT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// The Python that is used unless another one is named.
const PYTHON: &str = "python3";

/// Where everything of the dock is.
pub struct Site {
    spawner: Arc<Spawner>,
    data: PathBuf,
    dock: Dock,
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

/// What became of all folders.
#[derive(Default)]
pub struct Mustered {
    pub members: Vec<Member>,
    /// Namespaces whose environments were built anew.
    pub synced: Vec<String>,
    /// What is no namespace though it lies among them.
    pub problems: Vec<String>,
}

impl Site {
    pub fn new(spawner: Arc<Spawner>, data: PathBuf, dock: Dock) -> Site {
        Site { spawner, data, dock, interpreters: Mutex::default() }
    }

    /// How long folders must be quiet before they are read again by themselves, if that is wanted.
    pub fn watches(&self) -> Option<std::time::Duration> {
        self.dock.watches
    }

    /// How folders are served.
    pub fn dock(&self) -> &Dock {
        &self.dock
    }

    /// Where the folders are.
    pub fn tools(&self) -> PathBuf {
        self.dock.folder.clone().unwrap_or_else(|| self.data.join("tools"))
    }

    /// Reads all folders and makes ready what they need. TD-114
    pub async fn muster(&self) -> Mustered {
        let (found, problems) = folders(&self.tools());
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
        for folder in found {
            let (member, is_synced) = self.member(folder, &runtime).await;
            if is_synced {
                mustered.synced.push(member.upstream.name.to_string());
            }
            mustered.members.push(member);
        }
        mustered
    }

    /// A folder as an upstream, and whether its environment was built anew.
    pub async fn member(&self, mut folder: Folder, runtime: &Path) -> (Member, bool) {
        let scratch = self.data.join("scratch").join(folder.name.as_str());
        if folder.is_refused {
            // Its worker finds nothing to run: what it may do is not known.
            folder.sources.clear();
            folder.path = scratch.clone();
        }
        let mut faults = folder.faults.clone();
        let named = folder.manifest.python.as_deref().or(self.dock.python.as_deref());
        let program = PathBuf::from(named.unwrap_or(PYTHON));
        let interpreter = self.interpreter(&program).await.unwrap_or_else(|problem| {
            // HARDENING X11
            faults.push(format!("has no Python: {problem}; install it, or name another"));
            Interpreter { path: program, version: String::new() }
        });
        let (python, is_new) = self.environment(&folder, &interpreter, &mut faults).await;
        let (offer, withheld) = self.offer(&folder, &interpreter, runtime, &mut faults).await;
        match served::copy(&folder, &self.data.join("served").join(folder.name.as_str())) {
            Ok(copy) => folder.path = copy,
            Err(error) => faults.push(format!("is served from where it lies: {error}")),
        }
        let places = Places {
            tools: folder.path.clone(),
            python: python.clone(),
            runtime: runtime.to_owned(),
            scratch,
        };
        if let Err(error) = fs::create_dir_all(&places.scratch) {
            faults.push(format!("`{}` can't be made: {error}", places.scratch.display()));
        }
        let manifest = &folder.manifest;
        let worker = Worker {
            name: folder.name.to_string(),
            folder: folder.path,
            interpreter: python,
            runtime: runtime.to_owned(),
            env: environment_of(&folder.manifest, folder.name.as_str(), &mut faults),
            version: folder.version,
            offer: Arc::new(offer),
            withheld,
            faults,
            is_eager: manifest.is_eager.unwrap_or(self.dock.is_eager),
            pace: Pace {
                calls_max: manifest.calls_max.unwrap_or(self.dock.calls_max),
                waiting_max: self.dock.waiting_max,
                calls_a_minute: manifest.calls_a_minute.or(self.dock.calls_a_minute),
                result_bytes_max: RESULT_BYTES_MAX,
            },
            confinement: self.confinement(&folder.manifest, &places),
            scratch: places.scratch,
        };
        let call_timeout = manifest.call_timeout.unwrap_or(self.dock.call_timeout);
        let upstream = Settings {
            restart: Restart::OnFailure { delay_max: RESTART_DELAY_MAX },
            call_timeout,
            ..Settings::new(folder.name, Launch::Worker(worker))
        };
        (Member { namespace: folder.namespace, upstream }, is_new)
    }

    /// What the worker of a folder may touch.
    fn confinement(&self, manifest: &Manifest, places: &Places) -> Option<Confinement> {
        let is_confined = manifest.sandbox.unwrap_or(self.dock.sandbox != Sandbox::Off);
        if !is_confined && self.dock.sandbox != Sandbox::Required {
            return None;
        }
        let mut reads = confine::common_reads();
        reads.extend([places.tools.clone(), places.runtime.clone()]);
        reads.extend(places.python.parent().and_then(Path::parent).map(Path::to_owned));
        reads.extend(confine::home_of(&places.python));
        reads.extend(manifest.reads.iter().cloned());
        let mut writes = confine::common_writes();
        writes.push(places.scratch.clone());
        writes.extend(manifest.writes.iter().cloned());
        let memory_mb = manifest.memory_mb.unwrap_or(self.dock.memory_mb);
        Some(Confinement {
            reads,
            writes,
            has_network: manifest.network.unwrap_or(self.dock.network),
            memory_bytes_max: u64::from(memory_mb) * 1024 * 1024,
            is_required: self.dock.sandbox == Sandbox::Required,
        })
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

    /// What a folder offers as far as its sources tell, and what of it is withheld. TD-18, TD-38
    async fn offer(
        &self,
        folder: &Folder,
        interpreter: &Interpreter,
        runtime: &Path,
        faults: &mut Vec<String>,
    ) -> (Inventory, Vec<String>) {
        let read = self.read_sources(folder, interpreter, runtime).await;
        let read = read.unwrap_or_else(|problem| {
            faults.push(format!("can't be read: {problem}"));
            Vec::new()
        });
        let mut tools = Vec::new();
        for (source, findings) in folder.sources.iter().zip(read) {
            faults.extend(findings.faults.iter().map(|fault| fault.at(&source.file)));
            tools.extend(findings.tools);
        }
        let mut inventory = Inventory::default();
        inventory.set(Kind::Tool, tools);
        let mut known: Vec<String> = Vec::new();
        let mut withheld = Vec::new();
        inventory.retain(|tool| {
            let name = tool.name();
            let manifest = &folder.manifest;
            let is_hidden = manifest.allow.as_ref().is_some_and(|allow| !allow.matches_name(name))
                || manifest.deny.as_ref().is_some_and(|deny| deny.matches_name(name));
            if is_hidden {
                withheld.push(name.to_owned());
            }
            // The first of two keeps the name; the worker says so.
            let is_first = !known.iter().any(|other| other == name);
            known.push(name.to_owned());
            is_first && !is_hidden
        });
        (inventory, withheld)
    }

    /// What was found in each source, now or when it was last read.
    async fn read_sources(
        &self,
        folder: &Folder,
        interpreter: &Interpreter,
        runtime: &Path,
    ) -> std::io::Result<Vec<scan::Findings>> {
        let cache = self.data.join("cache/scan");
        let path = |source: &scan::Source| {
            let text = format!("{}\n{}\n{}", runtime.display(), interpreter.version, source.text);
            cache.join(hexadecimal(digest(&SHA256, text.as_bytes()).as_ref()))
        };
        let known: Vec<_> = folder
            .sources
            .iter()
            .map(|source| scan::parse(&fs::read(path(source)).ok()?))
            .collect();
        let fresh = folder.sources.iter().zip(&known).filter(|(_, known)| known.is_none());
        let fresh: Vec<_> = fresh.map(|(source, _)| source.clone()).collect();
        let lines = scan::scan(&self.spawner, &interpreter.path, runtime, &fresh).await?;
        _ = fs::create_dir_all(&cache);
        for (source, line) in fresh.iter().zip(&lines) {
            // It saves time only.
            _ = write_whole(&path(source), line);
        }
        let mut lines = lines.iter();
        let found = |known: Option<scan::Findings>| {
            known.or_else(|| scan::parse(lines.next()?)).unwrap_or_default()
        };
        Ok(known.into_iter().map(found).collect())
    }
}

/// The variables of a worker: what is declared, and the secrets that are named. TD-60
fn environment_of(
    manifest: &Manifest,
    namespace: &str,
    faults: &mut Vec<String>,
) -> Vec<(String, Template)> {
    let plain = manifest.env.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
    let mut variables: Vec<(String, Template)> = plain.collect();
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

fn write_whole(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    fs::write(&fresh, bytes)?;
    fs::rename(fresh, path)
}
