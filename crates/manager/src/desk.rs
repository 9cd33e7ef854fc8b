//! The desk: what all tools of the manager work with.

use std::collections::HashMap;
use std::os::fd::AsRawFd as _;
use std::path::PathBuf;
use std::sync::Arc;

use config::dock::{Approval, Folder, check_name, folders, read};
use secrets::ledger::Status;
use secrets::names::Name;
use serde::Serialize;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use upstream::launch::Spawner;
use upstream::python::environment::Interpreter;
use upstream::python::runtime;
use upstream::python::scan::{self, Findings, Source};

use crate::beneath::Root;
use crate::core::Core;
use crate::error::Error;
use crate::limits::CALLS_MAX;
use crate::names::NamespaceName;
use crate::shelf::Shelf;
use crate::sources::Settings;
use crate::tools::quoted;

/// What the binary does for us.
type Deed<In, Out> = Arc<dyn Fn(In) -> Result<Out, String> + Send + Sync>;

/// The safe without its values: the binary does what needs them.
#[derive(Clone)]
pub struct Safe {
    /// Every secret that is known.
    pub statuses: Deed<(), Vec<(Name, Status)>>,
    /// Notes that a secret is wanted.
    pub prepare: Deed<Name, Status>,
    /// Removes value and metadata; whether there were any.
    pub remove: Deed<Name, bool>,
}

/// What `server_config` shows. Tokens and keys have no place in it.
#[derive(Clone, Debug, Serialize)]
pub struct Shown {
    pub core_port: u16,
    pub manager_port: u16,
    pub data_dir: String,
    pub log_level: String,
    pub cors_origins: String,
    pub mcp_session_ttl_hours: f64,
}

/// Where everything is.
pub struct Places {
    pub data: PathBuf,
    /// Where the folders of tools are.
    pub tools: PathBuf,
    /// The Python of folders that name none.
    pub python: PathBuf,
}

/// What the binary hands over.
pub struct Equipment {
    pub places: Places,
    pub core: Arc<dyn Core>,
    pub safe: Safe,
    pub spawner: Arc<Spawner>,
    pub approval: Approval,
    pub shown: Shown,
    /// How people run us, as they are told.
    pub program: String,
    /// What time it is, for files.
    pub clock: fn() -> String,
}

/// The desk.
pub struct Desk {
    /// The data directory.
    pub data: Root,
    /// The folder of namespaces.
    pub tools: Root,
    pub core: Arc<dyn Core>,
    pub safe: Safe,
    pub spawner: Arc<Spawner>,
    pub approval: Approval,
    pub shown: Shown,
    /// How people run us, as they are told: in a container, by way of its engine.
    program: String,
    /// Where strangers' sources come from.
    pub sources: Settings,
    pub clock: fn() -> String,
    pub started: Instant,
    /// Held by whoever adds a package.
    pub adding: tokio::sync::Mutex<()>,
    /// How many calls may still begin.
    pub calls: Arc<Semaphore>,
    python: PathBuf,
    /// Which Python each program is, as far as that was asked.
    interpreters: tokio::sync::Mutex<HashMap<PathBuf, Interpreter>>,
}

impl Desk {
    /// Opens the data directory. Where sources come from is taken from the environment.
    pub fn open(equipment: Equipment) -> Result<Desk, Error> {
        let Equipment { places, core, safe, spawner, approval, shown, program, clock } = equipment;
        let (data, tools) = (Root::open(&places.data)?, Root::open(&places.tools)?);
        // What killed managers did not get rid of.
        for folder in ["repos", "venvs", "scratch", "served", "pending", "deleted"] {
            _ = data.sweep(folder, ".gone-");
        }
        Ok(Desk {
            data,
            tools,
            core,
            safe,
            spawner,
            approval,
            shown,
            program,
            sources: Settings::read(|name| std::env::var(name).ok()).map_err(Error::Source)?,
            clock,
            started: Instant::now(),
            adding: tokio::sync::Mutex::default(),
            calls: Arc::new(Semaphore::new(CALLS_MAX)),
            python: places.python,
            interpreters: tokio::sync::Mutex::default(),
        })
    }

    /// A command for a person, over our data directory.
    pub fn command(&self, words: &str) -> String {
        let data = quoted(&self.data.path().display().to_string());
        format!("{} {words} --data-dir {data}", self.program)
    }

    pub fn shelf(&self) -> Shelf<'_> {
        Shelf { data: &self.data, tools: &self.tools, clock: self.clock }
    }

    /// A namespace that is there.
    pub fn namespace(&self, name: &str) -> Result<NamespaceName, Error> {
        let namespace = NamespaceName::parse(name)?;
        if self.tools.has_folder(namespace.as_str())? {
            Ok(namespace)
        } else {
            Err(Error::NoNamespace(name.to_owned()))
        }
    }

    /// All namespaces, as they are read to be served.
    pub fn folders(&self) -> Vec<Folder> {
        folders(self.tools.path()).0
    }

    /// A namespace, as it is read to be served.
    pub fn folder(&self, name: &str) -> Result<Folder, Error> {
        let namespace = self.namespace(name)?;
        let (name, shown) = check_name(namespace.as_str()).map_err(Error::NamespaceName)?;
        // By the folder that is open, so that nobody can put another one into its place meanwhile.
        let opened = self.tools.folder(namespace.as_str())?;
        let path = PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd()));
        let mut folder = read(name, shown, path);
        folder.path = self.tools.path().join(namespace.as_str());
        Ok(folder)
    }

    /// The Python of a namespace, or of those that name none.
    pub async fn interpreter(&self, named: Option<&str>) -> Result<Interpreter, Error> {
        let program = named.map_or_else(|| self.python.clone(), PathBuf::from);
        let mut known = self.interpreters.lock().await;
        if let Some(interpreter) = known.get(&program) {
            return Ok(interpreter.clone());
        }
        let found = Interpreter::probe(&self.spawner, &program).await.map_err(Error::Python)?;
        known.insert(program, found.clone());
        Ok(found)
    }

    /// What sources define, without running any of them.
    pub async fn read_sources(
        &self,
        interpreter: &Interpreter,
        sources: &[Source],
    ) -> Result<Vec<Findings>, Error> {
        let wrong = |error: std::io::Error| Error::Python(error.to_string());
        let runtime = runtime::install(&self.data.path().join("runtime")).map_err(wrong)?;
        let lines = scan::scan(&self.spawner, &interpreter.path, &runtime, sources).await;
        let parsed: Option<Vec<_>> =
            lines.map_err(wrong)?.iter().map(|line| scan::parse(line)).collect();
        parsed
            .ok_or_else(|| Error::Python("the reader of Python files is of another version".into()))
    }
}
