//! Environments of namespaces: an interpreter with the packages that `requirements.txt` names. TD-09, TD-10
//!
//! One is built beside those that are in use, and named by a hash of what it holds, so that it is built once. An
//! install that fails changes nothing.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use mcp::text::hexadecimal;
use tokio::time::Instant;

use crate::launch::Spawner;
use crate::limits::PROBE_TIME_MAX;
use crate::python::fresh::Fresh;
use crate::python::installer::{self, Building};
use crate::python::lease;

/// Digits of the hash that names an environment.
const HASH_DIGITS: usize = 16;
/// The oldest Python whose tools can be run.
const OLDEST: (u32, u32) = (3, 9);

/// A Python that environments are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    pub path: PathBuf,
    /// Such as `3.11.7`.
    pub version: String,
    /// What compiled files have in their names, such as `cpython-311`.
    pub tag: String,
}

/// What an environment is to hold.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub interpreter: &'a Interpreter,
    /// One package a line, as [`requirements`](super::requirements::requirements) gives them.
    pub packages: &'a [String],
    /// Where the environments of this namespace are.
    pub parent: &'a Path,
    /// Where our own copy of `uv` is, or will be.
    pub uv: &'a Path,
    /// How long it may take to be built, all steps together.
    pub time_max: Duration,
}

/// An environment that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Environment {
    pub python: PathBuf,
    /// Whether it was built just now.
    pub is_new: bool,
}

impl Interpreter {
    /// Asks a program that is said to be Python what it is.
    pub async fn probe(spawner: &Arc<Spawner>, program: &Path) -> Result<Interpreter, String> {
        let code = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable); \
            print(sys.implementation.cache_tag or '')";
        let args = ["-I", "-S", "-c", code].map(OsString::from).into();
        let shown = program.display();
        let mut errand = installer::errand(program, args, PROBE_TIME_MAX);
        errand.env.retain(|(name, _)| name == "PATH");
        let ended = spawner.run(errand).await;
        let ended = ended.map_err(|error| format!("`{shown}` can't be run: {error}"))?;
        let said = String::from_utf8_lossy(&ended.output).into_owned();
        let (Some(version), Some(path), true) =
            (said.lines().next(), said.lines().nth(1), ended.is_success)
        else {
            let last = ended.errors.lines().last().unwrap_or_default();
            return Err(format!("`{shown}` {}: {last}", ended.how));
        };
        let mut parts = version.split('.').filter_map(|part| part.parse::<u32>().ok());
        let is_old = (parts.next(), parts.next()) < (Some(OLDEST.0), Some(OLDEST.1));
        if is_old {
            let (major, minor) = OLDEST;
            return Err(format!(
                "`{shown}` is Python {version}; {major}.{minor} or newer is needed"
            ));
        }
        let tag = said.lines().nth(2).unwrap_or_default().to_owned();
        Ok(Interpreter { path: path.into(), version: version.to_owned(), tag })
    }
}

impl Wish<'_> {
    /// What tells this environment from others.
    fn name(&self) -> String {
        let Interpreter { path, version, .. } = self.interpreter;
        let text = format!("{}\n{version}\n{}", path.display(), self.packages.join("\n"));
        let mut hash = hexadecimal(digest(&SHA256, text.as_bytes()).as_ref());
        hash.truncate(HASH_DIGITS);
        hash
    }

    /// Where it is, or will be.
    pub fn target(&self) -> PathBuf {
        self.parent.join(self.name())
    }

    /// The environment that was in use last, if there is one.
    pub fn former(&self) -> Option<PathBuf> {
        former(self.parent)
    }

    /// The environment, if it was built before; it is the one in use from now on.
    pub fn find(&self) -> Result<Option<Environment>, String> {
        let python = self.target().join("bin/python");
        // If the Python that it was made of is gone, it is of no use.
        if !python.exists() {
            return Ok(None);
        }
        self.make_current().map_err(|error| self.unwritable(&error))?;
        Ok(Some(Environment { python, is_new: false }))
    }

    /// Finds the environment, or builds it; `tell` hears of what takes its time.
    pub async fn fulfil(
        &self,
        spawner: &Arc<Spawner>,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Environment, String> {
        if let Some(found) = self.find()? {
            return Ok(found);
        }
        let (target, python) = (self.target(), self.target().join("bin/python"));
        let fresh = Fresh::make(self.parent).map_err(|error| self.unwritable(&error))?;
        let site = Building { wish: self, spawner, fresh: fresh.path(), began: Instant::now() };
        site.build(tell).await?;
        if !python.exists() {
            lease::set_aside(&target).map_err(|error| self.unwritable(&error))?;
        }
        if let Err(error) = fresh.name(&target) {
            // Another process may have been quicker.
            if !python.exists() {
                return Err(self.unwritable(&error));
            }
        }
        self.make_current().map_err(|error| self.unwritable(&error))?;
        Ok(Environment { python, is_new: true })
    }

    fn unwritable(&self, error: &io::Error) -> String {
        format!("`{}` can't be written to: {error}", self.parent.display())
    }

    /// Lets `current` mean this environment.
    fn make_current(&self) -> io::Result<()> {
        let (name, current) = (self.name(), self.parent.join("current"));
        if fs::read_link(&current).is_ok_and(|target| target.as_os_str() == name.as_str()) {
            return Ok(());
        }
        let fresh = Fresh::make(self.parent)?;
        let link = fresh.path().join("current");
        symlink(&name, &link)?;
        fs::rename(&link, &current)
    }
}

/// The environment that was in use last among those below `parent`, if there is one.
pub fn former(parent: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(parent.join("current")).ok()?;
    let python = folder.join("bin/python");
    python.exists().then_some(python)
}
