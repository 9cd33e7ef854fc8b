//! The peers from npm: installed as the lock file says, without running their scripts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::debian;
use super::site::Site;
use crate::program::Failure;

/// The TypeScript SDK of the second generation asks for it.
const OLDEST_MAJOR: u32 = 20;

/// The line that `node --version` prints.
pub fn version(site: &Site) -> Result<String, Failure> {
    site.run(Command::new("node").arg("--version")).map(|line| line.trim().to_owned())
}

/// Makes `node` and `npm` usable, or says what to install.
pub fn prepare(site: &Site) -> Result<(), String> {
    let wanted = format!("the peers need `node` {OLDEST_MAJOR} or newer, with `npm`; install them");
    if let Err(Failure::Missing { .. }) = version(site) {
        debian::install(site, &["nodejs"]).map_err(|why| format!("{wanted} ({why})"))?;
    }
    if let Err(Failure::Missing { .. }) = site.run(Command::new("npm").arg("--version")) {
        debian::install(site, &["npm"]).map_err(|why| format!("{wanted} ({why})"))?;
    }
    let version = version(site).map_err(|problem| problem.to_string())?;
    match major(&version) {
        Some(major) if major >= OLDEST_MAJOR => Ok(()),
        _ => Err(format!("{wanted} (found `node` {version})")),
    }
}

/// Installs into `directory`, which is empty.
pub fn install(site: &Site, manifests: &[PathBuf], directory: &Path) -> Result<(), String> {
    for manifest in manifests {
        let Some(name) = manifest.file_name() else {
            continue;
        };
        fs::copy(manifest, directory.join(name))
            .map_err(|problem| format!("cannot copy {}: {problem}", manifest.display()))?;
    }
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]);
    site.run_in(directory, &mut npm).map(drop).map_err(|problem| {
        format!("{problem}\ncheck that npm reaches its registry, then try again")
    })
}

/// The first number of `v20.1.2`.
pub fn major(version: &str) -> Option<u32> {
    version.strip_prefix('v')?.split('.').next()?.parse().ok()
}
