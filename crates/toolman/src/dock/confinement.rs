//! What the worker of a folder may touch and use, by what the folder asks for and the operator allows.

use std::path::Path;

use config::dock::{Manifest, Sandbox};
use upstream::confine::apart::apart;
use upstream::confine::{self, Confinement, Level};

use crate::dock::{Places, Site};

impl Site {
    /// What the worker of a folder may touch.
    pub(super) fn confinement(
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
    pub(super) fn memory_bytes_max(&self, manifest: &Manifest) -> u64 {
        u64::from(manifest.memory_mb.unwrap_or(self.dock.memory_mb)) * 1024 * 1024
    }

    /// How much its tools may keep in files.
    pub(super) fn disk_bytes_max(&self, manifest: &Manifest) -> u64 {
        u64::from(manifest.disk_mb.unwrap_or(self.dock.disk_mb)) * 1024 * 1024
    }
}
