//! The ceiling: where `[dock]` requires confinement, a folder may narrow what it says, and not widen it.

use std::fs;
use std::path::{Path, PathBuf};

use config::dock::{Dock, Manifest, Sandbox};

/// Takes out of a manifest what the operator has not allowed, and says so.
pub fn lower(manifest: &mut Manifest, dock: &Dock, faults: &mut Vec<String>) {
    if !matches!(dock.sandbox, Sandbox::Required(_)) {
        return;
    }
    let mut refuse = |what: &str, remedy: &str| {
        faults.push(format!(
            "tooldock.yaml: {what} is not heeded, because `[dock]` requires confinement; {remedy}"
        ));
    };
    // It would be run as it is, to see which Python it is.
    if manifest.python.take_if(|python| dock.python.as_deref() != Some(python.as_str())).is_some() {
        refuse("`python`", "name it in `[dock]`");
    }
    if manifest.sandbox.take_if(|sandbox| !*sandbox).is_some() {
        refuse("`sandbox: false`", "leave it out");
    }
    if manifest.network.take_if(|network| *network && !dock.network).is_some() {
        refuse("`network: true`", "switch it on in `[dock]`");
    }
    for (number, most, key) in [
        (&mut manifest.memory_mb, dock.memory_mb, "`memory_mb`"),
        (&mut manifest.processes_max, dock.processes_max, "`processes`"),
        (&mut manifest.disk_mb, dock.disk_mb, "`disk_mb`"),
    ] {
        if number.take_if(|number| *number > most).is_some() {
            refuse(key, "raise that of `[dock]`");
        }
    }
    for (paths, allowed, key) in [
        (&mut manifest.reads, &dock.allow_reads, "allow_read"),
        (&mut manifest.writes, &dock.allow_writes, "allow_write"),
    ] {
        paths.retain(|path| {
            let is_allowed = is_below(path, allowed);
            if !is_allowed {
                let remedy = format!("put it into `{key}` of `[dock]`");
                refuse(&format!("`{}`", path.display()), &remedy);
            }
            is_allowed
        });
    }
}

/// Whether a path really is in one of these folders.
fn is_below(path: &Path, folders: &[PathBuf]) -> bool {
    let Ok(path) = fs::canonicalize(path) else { return false };
    let mut folders = folders.iter().filter_map(|folder| fs::canonicalize(folder).ok());
    folders.any(|folder| path.starts_with(folder))
}
