//! Tools that stand in files which the worker could not import: they are in no list, but who calls one is told why.

use std::sync::Arc;

use mcp::items::{Inventory, Kind};

use super::Upstream;
use crate::connection::{Call, Connection};
use crate::error::Error;
use crate::launch::Launch;
use crate::python::protocol::Failure;

/// The tools that a worker has lost.
#[derive(Debug, Default)]
pub struct Lost {
    /// As their files define them.
    pub tools: Inventory,
    failures: Vec<(String, Failure)>,
}

impl Lost {
    pub fn is_empty(&self) -> bool {
        self.failures.is_empty()
    }

    /// What a call of a tool fails with, if it is lost.
    pub fn failure(&self, tool: &str) -> Option<&Failure> {
        self.failures.iter().find(|(name, _)| name == tool).map(|(_, failure)| failure)
    }
}

impl Upstream {
    /// The tools that the worker has lost, if it is one and has said so.
    pub fn lost(&self) -> Arc<Lost> {
        self.0.lost.load_full()
    }

    /// Notes which tools stand in files only, and not among those that the worker has told of.
    pub(super) fn note_lost(&self, connection: &Connection, told: &Inventory) {
        let Launch::Worker(worker) = &self.0.settings.launch else { return };
        let broken = connection.broken();
        let is_told = |tool: &str| told.of(Kind::Tool).iter().any(|other| other.name() == tool);
        let failure = |(tool, file): &(String, String)| {
            let (_, failure) = broken.iter().find(|(name, _)| name == file)?;
            Some((tool.clone(), failure.clone())).filter(|_| !is_told(tool))
        };
        let failures = worker.files.iter().filter_map(failure).collect();
        let mut lost = Lost { tools: Inventory::clone(&worker.offer), failures };
        let Lost { tools, failures } = &mut lost;
        tools.retain(|tool| failures.iter().any(|(name, _)| name == tool.name()));
        self.0.lost.store(Arc::new(lost));
    }

    /// Whether the worker can be asked for this, by what it has said of its files.
    pub(super) fn check_lost(&self, call: &Call<'_>) -> Result<(), Error> {
        let lost = self.0.lost.load();
        let tool = call.subject.filter(|_| call.method == "tools/call");
        let Some(failure) = tool.and_then(|tool| lost.failure(tool)) else { return Ok(()) };
        Err(Error::Tool { upstream: self.name().clone(), failure: failure.clone() })
    }
}
