//! Installers: a Python environment is built, by `uv` where it can be had, else by pip. HARDENING §4.5
//!
//! They see what they need to reach an index, and nothing of ours: no files of settings but what the environment says.
//! Only built packages are taken, so that nothing of a package runs here.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::launch::{Ended, Errand, Spawner};
use crate::limits::UV_RETRY_AFTER;
use crate::python::environment::Wish;
use crate::python::fresh::Fresh;

/// How much of what an installer says is kept.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// How much of that is shown: the last lines.
const SHOWN_LINES_MAX: usize = 6;
/// Held by the one that installs `uv`; when that has failed last.
static UV_FAILED: Mutex<Option<Instant>> = Mutex::const_new(None);

/// An environment that is being built.
pub(super) struct Building<'a> {
    pub wish: &'a Wish<'a>,
    pub spawner: &'a Arc<Spawner>,
    /// Where it is built.
    pub fresh: &'a Path,
    pub began: Instant,
}

impl Building<'_> {
    pub async fn build(&self, tell: &(dyn Fn(&str) + Sync)) -> Result<(), String> {
        let Wish { interpreter, packages, .. } = self.wish;
        let base = &interpreter.path;
        if packages.is_empty() {
            return self.run(base, words(&["-m", "venv", "--without-pip"], [self.fresh])).await;
        }
        let uv = self.find_uv(tell).await;
        tell(&format!("installing {}", packages.join(", ")));
        if let Some(uv) = uv {
            self.run(base, words(&["-m", "venv", "--without-pip"], [self.fresh])).await?;
            let options = ["pip", "install", "--no-config", "--only-binary", ":all:"];
            let mut args = words(&options, ["--compile-bytecode", "--python"]);
            args.extend(words(&[], [self.fresh.join("bin/python")]));
            return self.run(&uv, [args, words(&["--"], *packages)].concat()).await;
        }
        self.run(base, words(&["-m", "venv"], [self.fresh])).await?;
        let args = [words(&PIP, ["--compile", "--"]), words(&[], *packages)].concat();
        self.run(&self.fresh.join("bin/python"), args).await
    }

    /// An installer that is quicker than pip: one that is there, or a copy of our own.
    async fn find_uv(&self, tell: &(dyn Fn(&str) + Sync)) -> Option<PathBuf> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.wish.uv.join("bin/uv");
        let find = || {
            let found = std::env::split_paths(&path).map(|folder| folder.join("uv"));
            found.chain([own.clone()]).find(|uv| uv.is_file())
        };
        if let Some(uv) = find() {
            return Some(uv);
        }
        // Only one of those who want it at the same time installs it, and takes half of its time at most.
        let half = self.wish.time_max / 2;
        let mut failed = tokio::time::timeout(half, UV_FAILED.lock()).await.ok()?;
        if let Some(uv) = find() {
            return Some(uv);
        }
        if failed.is_some_and(|then| then.elapsed() < UV_RETRY_AFTER) {
            return None;
        }
        tell("installing uv, once");
        match self.install_uv(half).await {
            Ok(()) => find(),
            Err(problem) => {
                tracing::info!("uv can't be installed, pip is used instead: {problem}");
                *failed = Some(Instant::now());
                None
            }
        }
    }

    /// Installs our own copy of `uv`, beside its place and then into it.
    async fn install_uv(&self, time_max: Duration) -> Result<(), String> {
        let target = self.wish.uv;
        let parent = target.parent().unwrap_or(target);
        let worded = |error: std::io::Error| format!("`{}`: {error}", parent.display());
        let fresh = Fresh::make(parent).map_err(worded)?;
        let args = [words(&PIP, ["--no-compile", "--target"]), words(&[], [fresh.path()])];
        let args = [args.concat(), words(&["--"], ["uv"])].concat();
        let program = &self.wish.interpreter.path;
        self.ended(program, errand(program, args, time_max)).await?;
        _ = fs::remove_dir_all(target);
        fresh.name(target).map_err(worded)
    }

    /// Runs a step, within what is left of the time.
    async fn run(&self, program: &Path, args: Vec<OsString>) -> Result<(), String> {
        let left = self.wish.time_max.saturating_sub(self.began.elapsed());
        self.ended(program, errand(program, args, left)).await
    }

    async fn ended(&self, program: &Path, errand: Errand) -> Result<(), String> {
        let shown = program.file_name().unwrap_or_default().display().to_string();
        let ended = self.spawner.run(errand).await;
        let ended = ended.map_err(|error| format!("`{shown}` can't be run: {error}"))?;
        if ended.is_success {
            return Ok(());
        }
        if ended.is_late {
            let whole = self.wish.time_max;
            return Err(format!(
                "`{shown}` was not done when {whole:?} were over; see whether the index of packages answers, or raise \
                 `install_timeout` of `[dock]`"
            ));
        }
        Err(explained(&shown, &ended, self.fresh))
    }
}

/// Pip as it is always called.
const PIP: [&str; 7] =
    ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--only-binary", ":all:"];

/// Arguments: fixed ones, then others.
fn words<T: AsRef<OsStr>>(first: &[&str], then: impl IntoIterator<Item = T>) -> Vec<OsString> {
    let first = first.iter().map(OsString::from);
    first.chain(then.into_iter().map(|word| word.as_ref().to_owned())).collect()
}

/// Why an installer has failed: in our words where they say more, else in its last ones, without our paths.
fn explained(shown: &str, ended: &Ended, fresh: &Path) -> String {
    let said = ended.errors.replace(&fresh.display().to_string(), "the environment");
    // HARDENING D06
    let wheels = said.lines().find_map(|line| line.split_once("Wheels are required for `"));
    if let Some((package, _)) = wheels.and_then(|(_, rest)| rest.split_once('`')) {
        return format!(
            "`{package}` has no wheel for this Python, and builds are off; name a version that has one"
        );
    }
    let unknown =
        said.lines().find_map(|line| line.split_once("No matching distribution found for "));
    if let Some((_, package)) = unknown {
        let package = package.trim();
        return format!(
            "the index has no `{package}`, or no wheel of it for this Python, and builds are off"
        );
    }
    let is_noise = |line: &&str| {
        let starts = ["Using Python ", "Looking in ", "warning: Failed to hardlink"];
        line.trim().is_empty() || starts.iter().any(|start| line.starts_with(start))
    };
    let lines: Vec<_> = said.lines().filter(|line| !is_noise(line)).collect();
    let last = lines[lines.len().saturating_sub(SHOWN_LINES_MAX)..].join("\n");
    format!("`{shown}` {}:\n{last}", ended.how)
}

/// A run of an installer: it sees what it needs to reach an index, and nothing of ours.
pub(super) fn errand(program: &Path, args: Vec<OsString>, time_max: Duration) -> Errand {
    let is_needed = |name: &str| {
        let usual = ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME"];
        let starts = ["PIP_", "UV_", "SSL_CERT_"].iter().any(|start| name.starts_with(start));
        starts
            || usual.contains(&name)
            || name.to_lowercase().ends_with("_proxy")
            || ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"].contains(&name)
    };
    let env = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_needed));
    // What counts is the environment of this process, and no file of settings that happens to lie about.
    let own = [("PIP_CONFIG_FILE", "/dev/null"), ("UV_NO_CONFIG", "1")];
    let own = own.map(|(name, value)| (name.into(), value.into()));
    Errand {
        program: program.to_owned(),
        args,
        env: env.chain(own).collect(),
        cwd: PathBuf::from("/"),
        confinement: None,
        input: Vec::new(),
        time_max,
        output_bytes_max: SAID_BYTES_MAX,
    }
}
