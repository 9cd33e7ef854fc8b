//! The desk: what all tools of the manager work with.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use secrets::ledger::Status;
use secrets::names::Name;
use serde::Serialize;
use tokio::time::Instant;
use upstream::launch::Spawner;

use crate::beneath::Root;
use crate::core::Core;
use crate::error::Error;

/// What becomes of what a model writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It is put in place at once.
    Auto,
    /// It waits until a person has looked at it.
    Required,
}

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
    pub clock: fn() -> String,
    pub started: Instant,
    python: PathBuf,
    /// Held by whoever changes files: the tools of one manager write one after another.
    pub writing: tokio::sync::Mutex<()>,
}

impl Desk {
    /// Opens the data directory.
    pub fn open(equipment: Equipment) -> Result<Desk, Error> {
        let Equipment { places, core, safe, spawner, approval, shown, clock } = equipment;
        Ok(Desk {
            data: Root::open(&places.data)?,
            tools: Root::open(&places.tools)?,
            core,
            safe,
            spawner,
            approval,
            shown,
            clock,
            started: Instant::now(),
            python: places.python,
            writing: tokio::sync::Mutex::default(),
        })
    }

    /// The Python of folders that name none.
    pub fn python(&self) -> &Path {
        &self.python
    }
}
