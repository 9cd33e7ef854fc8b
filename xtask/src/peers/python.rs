//! The peers from the Python package index: one virtual environment for each generation of the SDK.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::debian;
use super::site::Site;
use crate::program::Failure;

/// The pinned packages have no older builds.
const OLDEST: (u32, u32) = (3, 11);

/// The line that this interpreter prints for `--version`.
pub fn version(site: &Site, interpreter: &Path) -> Result<String, Failure> {
    site.run(Command::new(interpreter).arg("--version")).map(|line| line.trim().to_owned())
}

/// Makes `python3` and its `venv` module usable, or says what to install.
pub fn prepare(site: &Site) -> Result<(), String> {
    let python3 = Path::new("python3");
    let (major, minor) = OLDEST;
    let wanted = format!("the peers need `python3` {major}.{minor} or newer; install it");
    if let Err(Failure::Missing { .. }) = version(site, python3) {
        debian::install(site, &["python3", "python3-venv"])
            .map_err(|why| format!("{wanted} ({why})"))?;
    }
    let version = version(site, python3).map_err(|problem| problem.to_string())?;
    if numbers(&version).is_none_or(|found| found < OLDEST) {
        return Err(format!("{wanted} (found {version})"));
    }
    // Debian ships `venv` without the pip that it would put into the environment.
    if has_venv(site).is_err() {
        debian::install(site, &["python3-venv"]).map_err(|why| {
            format!("`python3` cannot make virtual environments; install `python3-venv` ({why})")
        })?;
        has_venv(site).map_err(|problem| {
            format!("`python3` cannot make virtual environments: {problem}\ninstall its `venv`")
        })?;
    }
    Ok(())
}

/// Installs into `directory`, which is empty.
pub fn install(site: &Site, manifests: &[PathBuf], directory: &Path) -> Result<(), String> {
    site.run(Command::new("python3").args(["-m", "venv"]).arg(directory))
        .map_err(|problem| problem.to_string())?;
    let mut pip = Command::new(directory.join("bin/python"));
    pip.args(["-m", "pip", "install", "--quiet", "--no-input", "--disable-pip-version-check"]);
    // The manifests are complete, so nothing is left to resolve. FastMCP even asks for a certifi
    // that is not in every index yet.
    pip.args(["--no-deps", "--only-binary", ":all:"]);
    for manifest in manifests {
        pip.arg("--requirement").arg(manifest);
    }
    site.run(&mut pip).map(drop).map_err(|problem| {
        format!("{problem}\ncheck that pip reaches its package index, then try again")
    })
}

/// The first two numbers of `Python 3.11.7`.
pub fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.strip_prefix("Python ")?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn has_venv(site: &Site) -> Result<String, Failure> {
    site.run(Command::new("python3").args(["-c", "import ensurepip, venv"]))
}
