//! The test peers: real MCP clients and servers, installed into `target/peers`.
//!
//! A set of peers is whole when its stamp says so. The stamp is written last and removed first, so
//! an install that was killed is done again. What npm and pip need is left to `node` and `python`.

pub mod debian;
mod node;
mod python;
pub mod site;
#[cfg(test)]
mod tests;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;

use site::Site;

use crate::program::Failure;

/// Raise it when the way of installing changes, so that installed peers are replaced.
const RECIPE: &str = "recipe 2";

/// Peers that are installed together: one `node_modules`, or one Python environment.
struct Set<'a> {
    name: &'a str,
    runtime: Runtime,
    /// The files that pin every package of the set.
    manifests: Vec<PathBuf>,
    /// Where the set is installed.
    directory: PathBuf,
}

#[derive(Clone, Copy)]
enum Runtime {
    Node,
    Python,
}

/// Installs what the tests need, and returns the names of the sets that were missing or outdated.
pub fn install(workspace: &Path) -> Result<Vec<&'static str>, String> {
    let home = home(workspace)?;
    install_sets(workspace, &home, &sets(&workspace.join("peers"), &home))
}

/// The same for the other gateways of the benchmark.
pub fn install_gateways(workspace: &Path) -> Result<Vec<&'static str>, String> {
    let home = home(workspace)?;
    install_sets(
        workspace,
        &home,
        &GATEWAYS.map(|name| python_set(name, &workspace.join("peers"), &home)),
    )
}

/// The agents and libraries of `cargo xtask agents`: `agents/npm` is all that comes from npm, every
/// other one a Python environment.
pub fn install_agents<'a>(workspace: &Path, names: &'a [String]) -> Result<Vec<&'a str>, String> {
    let home = home(workspace)?;
    let manifests = workspace.join("peers/agents");
    let sets: Vec<Set<'_>> = names
        .iter()
        .map(|name| match name.strip_prefix("agents/") {
            Some("npm") => node_set(name, &manifests.join("npm"), &home),
            own => {
                let set = python_set(own.unwrap_or(name), &manifests, &home);
                Set { name, directory: home.join(name), ..set }
            }
        })
        .collect();
    install_sets(workspace, &home, &sets)
}

/// Where the peers are. A link is followed, so that what lies behind it is found whole.
fn home(workspace: &Path) -> Result<PathBuf, String> {
    let home = workspace.join("target/peers");
    let cannot = |problem| format!("cannot open {}: {problem}", home.display());
    fs::create_dir_all(&home).map_err(cannot)?;
    home.canonicalize().map_err(cannot)
}

/// Peers behind a link belong to another tree, and its tests may be using them.
fn check_owned(workspace: &Path, stale: &[&str]) -> Result<(), String> {
    let home = workspace.join("target/peers");
    if stale.is_empty() || !home.is_symlink() {
        return Ok(());
    }
    Err(format!(
        "{} is a link, and these peers behind it are missing or outdated: {}; install them in the \
         tree that they belong to, or remove the link",
        home.display(),
        stale.join(", ")
    ))
}

fn install_sets<'a>(
    workspace: &Path,
    home: &Path,
    sets: &[Set<'a>],
) -> Result<Vec<&'a str>, String> {
    let site = Site::open(home)?;
    let stale: Vec<&Set<'a>> = sets.iter().filter(|set| !set.is_whole(&site)).collect();
    let names: Vec<&str> = stale.iter().map(|set| set.name).collect();
    check_owned(workspace, &names)?;
    for set in &stale {
        set.runtime.prepare(&site)?;
    }
    install_side_by_side(&site, &stale)?;
    Ok(names)
}

/// The Python environments. Each is pinned by a file of its name.
const PYTHON: [&str; 11] = [
    "sdk1",
    "sdk2",
    "checks",
    "openapi",
    "mcp-2024-11-05",
    "mcp-2025-03-26",
    "mcp-2025-06-18",
    "fastmcp",
    "dock-fastmcp2",
    "dock-fastmcp",
    "dock-pydantic",
];

/// The interpreters that the dock's own tests ask for, by the names they use.
pub const DOCK: [(&str, &str); 3] =
    [("fastmcp2", "dock-fastmcp2"), ("fastmcp", "dock-fastmcp"), ("pydantic", "dock-pydantic")];

/// Those of the other gateways.
const GATEWAYS: [&str; 3] = ["fastmcp", "mcp-proxy", "mcpo"];

fn python_set<'a>(name: &'a str, manifests: &Path, home: &Path) -> Set<'a> {
    Set {
        name,
        runtime: Runtime::Python,
        manifests: vec![manifests.join("python").join(format!("{name}.txt"))],
        directory: home.join(name),
    }
}

fn node_set<'a>(name: &'a str, manifests: &Path, home: &Path) -> Set<'a> {
    Set {
        name,
        runtime: Runtime::Node,
        manifests: ["package.json", "package-lock.json"].map(|file| manifests.join(file)).into(),
        directory: home.join(name),
    }
}

fn sets(manifests: &Path, home: &Path) -> Vec<Set<'static>> {
    let python = PYTHON.map(|name| python_set(name, manifests, home));
    let npm = ["npm", "conformance"].map(|name| node_set(name, &manifests.join(name), home));
    // The conformance suite stands alone: it brings the Node that it needs.
    npm.into_iter().chain(python).collect()
}

fn install_side_by_side(site: &Site, sets: &[&Set<'_>]) -> Result<(), String> {
    let outcomes: Vec<Result<(), String>> = thread::scope(|scope| {
        let threads: Vec<_> = sets.iter().map(|set| scope.spawn(|| set.install(site))).collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap_or_else(|_| Err("an installer panicked".to_owned())))
            .collect()
    });
    let problems: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

impl Runtime {
    /// Makes the runtime usable, or says what to install.
    fn prepare(self, site: &Site) -> Result<(), String> {
        match self {
            Runtime::Node => node::prepare(site),
            Runtime::Python => python::prepare(site),
        }
    }
}

impl Set<'_> {
    fn install(&self, site: &Site) -> Result<(), String> {
        self.clear()?;
        let installed = match self.runtime {
            Runtime::Node => node::install(site, &self.manifests, &self.directory),
            Runtime::Python => python::install(site, &self.manifests, &self.directory),
        };
        installed
            .and_then(|()| {
                let version = self.version(site).map_err(|problem| problem.to_string())?;
                let stamp = self.stamp(&version).map_err(|problem| problem.to_string())?;
                fs::write(self.stamp_file(), stamp).map_err(|problem| problem.to_string())
            })
            .map_err(|problem| format!("cannot install the peers `{}`: {problem}", self.name))
    }

    /// Whether the set was installed to its end, from these manifests, for this runtime.
    fn is_whole(&self, site: &Site) -> bool {
        // Without a stamp or a runtime there is nothing to compare: installing says what is wrong.
        let Ok(found) = fs::read_to_string(self.stamp_file()) else {
            return false;
        };
        let Ok(version) = self.version(site) else {
            return false;
        };
        self.stamp(&version).is_ok_and(|stamp| stamp == found)
    }

    /// The runtime as it is now; for Python, the one that the environment was made from.
    fn version(&self, site: &Site) -> Result<String, Failure> {
        match self.runtime {
            Runtime::Node => node::version(site),
            Runtime::Python => python::version(site, &self.directory.join("bin/python")),
        }
    }

    /// Everything that the installed set depends on, in full.
    ///
    /// The directory is part of it: a Python environment does not survive being moved.
    fn stamp(&self, version: &str) -> io::Result<String> {
        let mut stamp = format!("{RECIPE}\n{}\n{version}\n", self.directory.display());
        for manifest in &self.manifests {
            stamp.push_str(&fs::read_to_string(manifest)?);
        }
        Ok(stamp)
    }

    /// Leaves an empty directory. The stamp goes first: half a set must not look whole.
    fn clear(&self) -> Result<(), String> {
        let cleared = absent(fs::remove_file(self.stamp_file()))
            .and_then(|()| absent(fs::remove_dir_all(&self.directory)))
            .and_then(|()| fs::create_dir_all(&self.directory));
        cleared.map_err(|problem| {
            format!("cannot empty {}: {problem}; delete it by hand", self.directory.display())
        })
    }

    fn stamp_file(&self) -> PathBuf {
        self.directory.join("installed")
    }
}

/// Removing what is not there is a success.
fn absent(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(problem) if problem.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
