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

use aws_lc_rs::digest::{SHA256, digest};
use mcp::text::hexadecimal;

use crate::launch::{Ended, Errand, Spawner};
use crate::limits::{ENVIRONMENT_TIME_MAX, PROBE_TIME_MAX};
use crate::python::fresh::Fresh;

/// Digits of the hash that names an environment.
const HASH_DIGITS: usize = 16;
/// How much of what an installer says is kept.
const SAID_BYTES_MAX: usize = 64 * 1024;
/// The oldest Python whose tools can be run.
const OLDEST: (u32, u32) = (3, 9);
static INSTALLING_UV: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// A Python that environments are made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interpreter {
    pub path: PathBuf,
    /// Such as `3.11.7`.
    pub version: String,
}

/// What an environment is to hold.
#[derive(Clone, Copy, Debug)]
pub struct Wish<'a> {
    pub interpreter: &'a Interpreter,
    /// One package a line, as [`requirements`] gives them.
    pub packages: &'a [String],
    /// Where the environments of this namespace are.
    pub parent: &'a Path,
    /// Where our own copy of `uv` is, or will be.
    pub uv: &'a Path,
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
        let code = "import sys; print('%d.%d.%d' % sys.version_info[:3]); print(sys.executable)";
        let args = ["-I", "-S", "-c", code].map(OsString::from).into();
        let shown = program.display();
        let mut errand = errand(program, args, PROBE_TIME_MAX);
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
        Ok(Interpreter { path: path.into(), version: version.to_owned() })
    }
}

impl Wish<'_> {
    /// What tells this environment from others.
    fn name(&self) -> String {
        let text = format!("{}\n{}", self.interpreter.version, self.packages.join("\n"));
        let mut hash = hexadecimal(digest(&SHA256, text.as_bytes()).as_ref());
        hash.truncate(HASH_DIGITS);
        hash
    }

    /// The environment that was in use last, if there is one.
    pub fn former(&self) -> Option<PathBuf> {
        let python = self.parent.join("current/bin/python");
        let folder = fs::canonicalize(self.parent.join("current")).ok()?;
        python.exists().then(|| folder.join("bin/python"))
    }

    /// Finds the environment, or builds it; `tell` hears of what takes its time.
    pub async fn fulfil(
        &self,
        spawner: &Arc<Spawner>,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<Environment, String> {
        let target = self.parent.join(self.name());
        let python = target.join("bin/python");
        if python.exists() {
            self.make_current().map_err(|error| self.unwritable(&error))?;
            return Ok(Environment { python, is_new: false });
        }
        let fresh = Fresh::make(self.parent).map_err(|error| self.unwritable(&error))?;
        self.build(spawner, fresh.path(), tell).await?;
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

    async fn build(
        &self,
        spawner: &Arc<Spawner>,
        fresh: &Path,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Result<(), String> {
        let base = &self.interpreter.path;
        let plain: Vec<OsString> = ["-m", "venv"].map(OsString::from).into();
        if self.packages.is_empty() {
            let args = [plain, vec!["--without-pip".into(), fresh.into()]].concat();
            return run(spawner, base, args).await.map(drop);
        }
        tell(&format!("installing {}", self.packages.join(", ")));
        if let Some(uv) = self.find_uv(spawner, tell).await {
            let args = [plain, vec!["--without-pip".into(), fresh.into()]].concat();
            run(spawner, base, args).await?;
            let mut args: Vec<OsString> =
                ["pip", "install", "--no-build", "--python"].map(OsString::from).into();
            args.push(fresh.join("bin/python").into());
            args.push("--".into());
            args.extend(self.packages.iter().map(OsString::from));
            return run(spawner, &uv, args).await.map(drop);
        }
        run(spawner, base, [plain, vec![fresh.into()]].concat()).await?;
        let mut args: Vec<OsString> = [
            "-m",
            "pip",
            "install",
            "--no-input",
            "--disable-pip-version-check",
            "--only-binary",
            ":all:",
            "--",
        ]
        .map(OsString::from)
        .into();
        args.extend(self.packages.iter().map(OsString::from));
        run(spawner, &fresh.join("bin/python"), args).await.map(drop)
    }

    /// An installer that is quicker than pip: one that is there, or a copy of our own.
    async fn find_uv(
        &self,
        spawner: &Arc<Spawner>,
        tell: &(dyn Fn(&str) + Sync),
    ) -> Option<PathBuf> {
        // Only one of those who want it at the same time installs it.
        let _installing = INSTALLING_UV.lock().await;
        let path = std::env::var_os("PATH").unwrap_or_default();
        let own = self.uv.join("bin/uv");
        let found = std::env::split_paths(&path).map(|folder| folder.join("uv"));
        if let Some(uv) = found.chain([own.clone()]).find(|uv| uv.is_file()) {
            return Some(uv);
        }
        tell("installing uv, once");
        let mut args: Vec<OsString> =
            ["-m", "pip", "install", "--no-input", "--disable-pip-version-check", "--target"]
                .map(OsString::from)
                .into();
        args.extend([self.uv.into(), "--".into(), "uv".into()]);
        match run(spawner, &self.interpreter.path, args).await {
            Ok(_) => own.is_file().then_some(own),
            Err(problem) => {
                tracing::info!("uv can't be installed, pip is used instead: {problem}");
                None
            }
        }
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

async fn run(spawner: &Arc<Spawner>, program: &Path, args: Vec<OsString>) -> Result<Ended, String> {
    let shown = program.file_name().unwrap_or_default().display().to_string();
    let ended = spawner.run(errand(program, args, ENVIRONMENT_TIME_MAX)).await;
    let ended = ended.map_err(|error| format!("`{shown}` can't be run: {error}"))?;
    if ended.is_success {
        return Ok(ended);
    }
    let said: Vec<_> = ended.errors.lines().filter(|line| !line.trim().is_empty()).collect();
    let last = said[said.len().saturating_sub(6)..].join("\n");
    Err(format!("`{shown}` {}:\n{last}", ended.how))
}

/// A run of an installer: it sees what it needs to reach an index, and nothing of ours.
fn errand(program: &Path, args: Vec<OsString>, time_max: std::time::Duration) -> Errand {
    let is_needed = |name: &str| {
        let usual =
            ["PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"];
        let starts = ["PIP_", "UV_", "SSL_CERT_"].iter().any(|start| name.starts_with(start));
        starts
            || usual.contains(&name)
            || name.to_lowercase().ends_with("_proxy")
            || ["REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"].contains(&name)
    };
    let env = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_needed));
    Errand {
        program: program.to_owned(),
        args,
        env: env.collect(),
        cwd: PathBuf::from("/"),
        confinement: None,
        input: Vec::new(),
        time_max,
        output_bytes_max: SAID_BYTES_MAX,
    }
}

/// The packages that a `requirements.txt` names, or all that is wrong with it: its line, and why.
///
/// Options could name another index, a folder or a file, and run what is found there.
pub fn requirements(text: &str) -> Result<Vec<String>, Vec<(usize, String)>> {
    let mut packages = Vec::new();
    let mut faults = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let written = line.split(" #").next().unwrap_or_default().trim();
        if written.is_empty() || written.starts_with('#') {
            continue;
        }
        match check_requirement(written) {
            Ok(()) => packages.push(written.to_owned()),
            Err(problem) => faults.push((index + 1, problem)),
        }
    }
    packages.sort();
    packages.dedup();
    if faults.is_empty() { Ok(packages) } else { Err(faults) }
}

/// Whether a line is a name with extras, versions and conditions, and nothing more.
pub fn check_requirement(line: &str) -> Result<(), String> {
    let shown = mcp::text::shorten(line);
    if line.starts_with('-') {
        return Err(format!("`{shown}`: options are not allowed; name packages only"));
    }
    let (requirement, _condition) = line.split_once(';').unwrap_or((line, ""));
    let end = requirement.find(|c: char| !c.is_ascii_alphanumeric() && !"-_.".contains(c));
    let (name, rest) = requirement.split_at(end.unwrap_or(requirement.len()));
    let is_name = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric());
    if !is_name {
        return Err(format!("`{shown}` does not begin with the name of a package"));
    }
    let rest = rest.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(extras) => extras.split_once(']').map_or("!", |(_, rest)| rest).trim_start(),
        None => rest,
    };
    if rest.starts_with('@') {
        return Err(format!("`{shown}`: a package is taken from the index only, by its name"));
    }
    let is_version = |c: char| c.is_ascii_alphanumeric() || "<>=!~,.*+- ()".contains(c);
    let is_specified = rest.is_empty() || rest.starts_with(['<', '>', '=', '!', '~', '(']);
    if is_specified && rest.chars().all(is_version) {
        Ok(())
    } else {
        Err(format!("`{shown}` is no requirement; write it like `httpx>=0.28`"))
    }
}

#[cfg(test)]
mod tests {
    use super::requirements;

    #[test]
    fn requirements_are_names_with_versions() {
        let text = "# web\nhttpx>=0.28.0  # for calls\n\npydantic[email] ~= 2.0 ; python_version > '3.8'\nhttpx>=0.28.0\n";
        let packages = requirements(text).unwrap();
        assert_eq!(packages, ["httpx>=0.28.0", "pydantic[email] ~= 2.0 ; python_version > '3.8'"]);
    }

    #[test]
    fn options_and_other_places_are_refused_with_their_line() {
        // HARDENING D01
        for line in [
            "--index-url https://example.com",
            "-e .",
            "-r other.txt",
            "-f links",
            "--trusted-host x",
            "pkg @ https://example.com/pkg.whl",
            "./folder",
            "git+https://example.com/x.git",
            "name with spaces",
            "https://example.com/x.whl",
        ] {
            let faults = requirements(&format!("httpx\n{line}")).unwrap_err();
            assert_eq!(faults.len(), 1, "{line}");
            assert_eq!(faults[0].0, 2, "{line}");
        }
    }
}
