//! Figures that are counted: memory, size, instructions and system calls.

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use super::results::Still;
use super::works::Kind;
use super::{Settings, Stage};
use crate::contestant::Contestant;
use crate::count::{self, Route};
use crate::limits::{CROWD, IDLE_TOOLS};
use crate::load::request::Dialect;
use crate::process;

/// Counts what can be counted of every gateway.
pub fn count(settings: &Settings) -> anyhow::Result<Vec<Still>> {
    let stage = Stage::set(Kind::Http, 1, IDLE_TOOLS, Dialect::Legacy)?;
    let mut found = Vec::new();
    for contestant in &settings.contestants {
        let mut still = Still { name: contestant.name().to_owned(), ..Still::default() };
        if let Ok(Some(running)) = contestant.start(&stage.scene, &[]) {
            still.idle_kib = running.pid().and_then(|pid| process::memory_kib(pid).ok());
            _ = running.stop();
        }
        // Python would take minutes below valgrind.
        let is_native = match contestant {
            Contestant::Direct => false,
            Contestant::Limit | Contestant::Toolman(_) => true,
            Contestant::Peer(peer) => peer.is_native(),
        };
        if is_native {
            still.instructions = instructions(contestant, Route::Call);
            still.instructions_stdio = instructions(contestant, Route::CallStdio);
            still.system_calls = count::system_calls(contestant, Route::Call, 1).ok();
            still.system_calls_crowd = count::system_calls(contestant, Route::Call, CROWD).ok();
        }
        if let Contestant::Toolman(binary) = contestant {
            still.binary_bytes = stripped(binary);
        }
        if still.idle_kib.is_some() {
            found.push(still);
        }
    }
    Ok(found)
}

/// A peer that can't be counted has no figure; that it works was seen before.
fn instructions(contestant: &Contestant, route: Route) -> Option<f64> {
    count::instructions(contestant, route).ok().map(|cost| cost.total().round())
}

/// The size of a binary as it is shipped: without the names that callgrind needs.
fn stripped(binary: &Path) -> Option<u64> {
    let folder = TempDir::new().ok()?;
    let copy = folder.path().join("stripped");
    let status = Command::new("strip").arg("-o").arg(&copy).arg(binary).status().ok()?;
    let size = fs::metadata(&copy).ok()?.len();
    status.success().then_some(size)
}
