//! Folders of Python tools: what lies in them, and what they say of themselves. TD-33 … TD-47
//!
//! Nothing is run here. What is wrong with one file or folder is kept beside it: the others are served.

pub mod files;
mod manifest;
mod reading;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use catalog::naming::Prefix;
use ipnet::IpNet;
use mcp::names::{Namespace, UpstreamName};
use toml::de::DeTable;
use upstream::confine::Level;
use upstream::limits::{CALL_TIMEOUT, ENVIRONMENT_TIME_MAX};
use upstream::python::requirements::requirements;
use upstream::python::scan::Source;

pub use manifest::{Manifest, unfit};

use self::reading::Reading;
use crate::Environment;
use crate::http::weakness;
use crate::limits::{DOCK_CALLS_MAX, DURATION_MAX};
use crate::variables::switch;

/// The namespace of the manager.
const RESERVED: &str = "_system";
/// The files that name packages; the first counts.
const REQUIREMENTS: &str = "requirements.txt";
const PROJECT: &str = "pyproject.toml";
/// The longest name of a namespace.
const NAME_MAX: usize = 64;

/// How far workers are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// Not at all, unless a folder wants it.
    Off,
    /// As far as the kernel can.
    BestEffort,
    /// No worker is started that can't be confined so far.
    Required(Level),
}

/// What becomes of what a model writes by the manager.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Approval {
    /// It is put in place at once.
    Auto,
    /// It waits until a person has looked at it.
    Required,
}

/// How folders of tools are served, unless a folder says otherwise of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dock {
    /// Where the folders are; `tools` of the data directory if absent.
    pub folder: Option<PathBuf>,
    /// The Python to use.
    pub python: Option<String>,
    pub call_timeout: Duration,
    pub calls_max: usize,
    pub waiting_max: usize,
    pub calls_a_minute: Option<u32>,
    pub is_eager: bool,
    /// Whether arguments of another type are refused, not converted.
    pub is_strict: bool,
    /// Whether tools may open connections, unless their folder says so itself.
    pub network: bool,
    /// Whether workers are confined, and must be.
    pub sandbox: Sandbox,
    pub memory_mb: u32,
    /// What folders may ask to read and to write where confinement is required.
    pub allow_reads: Vec<PathBuf>,
    pub allow_writes: Vec<PathBuf>,
    /// Processes of a worker, itself included.
    pub processes_max: u32,
    /// What a namespace may keep in its scratch folder.
    pub disk_mb: u32,
    /// How long it may take to install what a folder needs.
    pub install_timeout: Duration,
    /// Whether folders are looked at by themselves, if that was decided.
    pub is_watching: Option<bool>,
    /// How long they must be quiet before they are read again.
    pub quiet: Duration,
    /// Where the manager may be that asks for a reload, unless the environment says so.
    pub managers: Option<Vec<IpNet>>,
    /// Whether a person looks at what a model writes, if that was decided.
    pub approval: Option<Approval>,
}

impl Default for Dock {
    fn default() -> Dock {
        Dock {
            folder: None,
            python: None,
            call_timeout: CALL_TIMEOUT,
            calls_max: 8,
            waiting_max: 64,
            calls_a_minute: None,
            is_eager: false,
            is_strict: false,
            network: true,
            sandbox: Sandbox::BestEffort,
            memory_mb: 2_048,
            allow_reads: Vec::new(),
            allow_writes: Vec::new(),
            processes_max: 64,
            disk_mb: 2_048,
            install_timeout: ENVIRONMENT_TIME_MAX,
            is_watching: None,
            quiet: Duration::from_millis(1_500),
            managers: None,
            approval: None,
        }
    }
}

/// Who may ask for a reload: the manager, by what it shows and where it is. TD-113, TD-145
#[derive(Clone, Debug)]
pub struct Manager {
    pub token: Option<String>,
    networks: Vec<IpNet>,
    /// Whether these are written in the environment.
    is_written: bool,
}

impl Manager {
    /// As the environment says, without a token if that has none; the error is all that is wrong with it.
    pub fn of(environment: Environment<'_>) -> Result<Manager, Vec<String>> {
        let token = environment("MANAGER_INTERNAL_TOKEN");
        let mut problems = Vec::new();
        if let Some(weakness) = token.as_deref().and_then(weakness) {
            problems.push(format!("MANAGER_INTERNAL_TOKEN {weakness}"));
        }
        let written = environment("INTERNAL_ALLOWED_CIDRS").filter(|text| !text.trim().is_empty());
        let is_written = written.is_some();
        let written = written.unwrap_or_else(|| MANAGERS.to_owned());
        let mut networks = Vec::new();
        for part in written.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let address = part.parse::<IpAddr>().map(IpNet::from);
            match part.parse::<IpNet>().or(address) {
                Ok(network) => networks.push(network),
                Err(_) => {
                    let shown = mcp::text::shorten(part);
                    problems.push(format!(
                        "INTERNAL_ALLOWED_CIDRS holds `{shown}`; write networks such as `10.0.0.0/8`"
                    ));
                }
            }
        }
        if problems.is_empty() {
            Ok(Manager { token, networks, is_written })
        } else {
            Err(problems)
        }
    }

    /// The same, where these networks are allowed unless the environment names others.
    pub fn within(mut self, networks: Option<&[IpNet]>) -> Manager {
        if let (false, Some(networks)) = (self.is_written, networks) {
            self.networks = networks.to_vec();
        }
        self
    }

    pub fn may_be_at(&self, address: IpAddr) -> bool {
        // Where both families are listened to, an address of the fourth may come in the clothes of the sixth.
        let address = address.to_canonical();
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Where the manager is, unless configured: on this machine, or where its container is.
const MANAGERS: &str = "127.0.0.0/8, ::1, 172.30.0.10/32";

impl Dock {
    /// How long folders must be quiet before they are read again by themselves, if that is wanted.
    pub fn watches(&self) -> Option<Duration> {
        (self.is_watching == Some(true)).then_some(self.quiet)
    }

    /// The same, where the environment says nothing else; the error is all that is wrong with it. TD-146, TD-147
    pub fn with_environment(mut self, environment: Environment<'_>) -> Result<Dock, Vec<String>> {
        let mut problems = Vec::new();
        let mut number = |name: &str, most: u64| {
            let text = environment(name).filter(|text| !text.trim().is_empty())?;
            let number = text.trim().parse::<u32>().ok();
            let number = number.filter(|number| (1..=most).contains(&u64::from(*number)));
            if number.is_none() {
                let shown = mcp::text::shorten(&text);
                problems.push(format!("{name} is `{shown}`; it must be a number from 1 to {most}"));
            }
            number
        };
        let (seconds_max, calls_max) = (DURATION_MAX.as_secs(), DOCK_CALLS_MAX.into());
        if let Some(seconds) = number("TOOL_CALL_TIMEOUT_SECONDS", seconds_max) {
            self.call_timeout = Duration::from_secs(seconds.into());
        }
        if let Some(calls) = number("NAMESPACE_MAX_CONCURRENCY", calls_max) {
            self.calls_max = usize::try_from(calls).unwrap_or(self.calls_max);
        }
        if let Some(calls) = number("NAMESPACE_RATE_LIMIT", u32::MAX.into()) {
            self.calls_a_minute = Some(calls);
        }
        if let Some(quiet) = number("FS_WATCHER_DEBOUNCE_MS", seconds_max * 1000) {
            self.quiet = Duration::from_millis(quiet.into());
        }
        let watcher = environment("ENABLE_FS_WATCHER").filter(|text| !text.trim().is_empty());
        match watcher.as_deref().map(|text| (text, switch(text))) {
            None => {}
            Some((_, Some(is_watching))) => self.is_watching = Some(is_watching),
            Some((text, None)) => {
                let shown = mcp::text::shorten(text);
                problems.push(format!("ENABLE_FS_WATCHER is `{shown}`; use `true` or `false`"));
            }
        }
        if problems.is_empty() { Ok(self) } else { Err(problems) }
    }
}

/// One folder of tools.
#[derive(Clone, Debug)]
pub struct Folder {
    pub name: UpstreamName,
    pub namespace: Namespace,
    pub path: PathBuf,
    pub sources: Vec<Source>,
    pub manifest: Manifest,
    /// What `requirements.txt` names, or `pyproject.toml`; not known if that file can't be used.
    pub packages: Option<Vec<String>>,
    /// What is wrong, each with its place.
    pub faults: Vec<String>,
    /// Whether it must not be served: what its own file forbids is not known.
    pub is_refused: bool,
    /// A hash over all that the folder holds.
    pub version: String,
    /// What a configuration says of it, which is part of the manifest already.
    upper: Option<Box<Manifest>>,
}

impl Folder {
    /// The same as it lies at another place, read anew.
    pub fn at(&self, path: PathBuf) -> Folder {
        let folder = read(self.name.clone(), self.namespace.clone(), path);
        match self.upper.as_deref() {
            Some(upper) => folder.under(upper),
            None => folder,
        }
    }

    fn under(mut self, upper: &Manifest) -> Folder {
        self.manifest = self.manifest.under(upper);
        self.upper = Some(Box::new(upper.clone()));
        self
    }
}

/// A folder of tools that a configuration names.
#[derive(Clone, Debug)]
pub struct Named {
    pub name: UpstreamName,
    pub namespace: Namespace,
    pub prefix: Prefix,
    pub path: PathBuf,
    /// What is said of it there, which counts for more than what it says of itself.
    pub manifest: Manifest,
    /// How many of the servers stand before it, which settles whose name counts.
    pub after: usize,
}

impl Named {
    /// Reads the folder as it is now.
    pub fn read(&self) -> Folder {
        read(self.name.clone(), self.namespace.clone(), self.path.clone()).under(&self.manifest)
    }
}

/// All folders of tools in a folder, by name; and what is no such folder though it looks like one.
pub fn folders(root: &Path) -> (Vec<Folder>, Vec<String>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    let mut names: Vec<_> = match fs::read_dir(root) {
        Ok(entries) => entries.filter_map(|entry| Some(entry.ok()?.file_name())).collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return (found, vec![format!("{}: {error}", root.display())]),
    };
    names.sort();
    for name in names {
        let path = root.join(&name);
        let name = name.to_string_lossy();
        // TD-39, TD-40
        if name.starts_with(['.', '_']) && name != RESERVED || !path.is_dir() {
            continue;
        }
        match check_name(&name) {
            Ok((name, namespace)) => found.push(read(name, namespace, path)),
            Err(problem) => problems.push(format!("{}: {problem}", path.display())),
        }
    }
    (found, problems)
}

/// The names under which a folder is served. TD-37, TD-42
pub fn check_name(name: &str) -> Result<(UpstreamName, Namespace), String> {
    let rule = "use lowercase letters, digits and hyphens, such as `my-tools`";
    let shown = mcp::text::shorten(name);
    if name == RESERVED {
        return Err(format!("`{RESERVED}` is the name of the manager's own tools; {rule}"));
    }
    let is_allowed = |c: char| matches!(c, 'a'..='z' | '0'..='9' | '-');
    if name.is_empty() || name.len() > NAME_MAX || !name.chars().all(is_allowed) {
        return Err(format!("`{shown}` is no name for a namespace; {rule}"));
    }
    match (name.parse(), name.parse()) {
        (Ok(name), Ok(namespace)) => Ok((name, namespace)),
        (Err(error), _) | (_, Err(error)) => Err(format!("`{shown}`: {error}; {rule}")),
    }
}

/// Reads a folder of tools.
pub fn read(name: UpstreamName, namespace: Namespace, path: PathBuf) -> Folder {
    let mut reading = Reading::new(&path);
    // First, so that nothing else in the folder can hide it.
    let manifest = reading.manifest(&path);
    let (mut sources, mut required, mut project) = (Vec::new(), None, None);
    for (file, text) in reading.texts(&path) {
        match file.as_str() {
            REQUIREMENTS => required = Some(text),
            PROJECT => project = Some(text),
            _ => sources.push(Source { file, text }),
        }
    }
    let packages = packages(&mut reading, required.as_deref(), project.as_deref());
    let version = reading.version();
    Folder {
        name,
        namespace,
        path,
        sources,
        manifest,
        packages,
        faults: reading.faults,
        is_refused: reading.is_refused,
        version,
        upper: None,
    }
}

/// The packages that a folder names: what one file says is not sought in another.
fn packages(
    reading: &mut Reading,
    required: Option<&str>,
    project: Option<&str>,
) -> Option<Vec<String>> {
    let is_faulty = |file: &str| {
        let start = format!("{file}: ");
        reading.faults.iter().any(|fault| fault.starts_with(&start))
    };
    if let Some(text) = required {
        return match requirements(text) {
            Ok(named) => Some(named),
            Err(faults) => {
                let place = |(line, problem)| format!("{REQUIREMENTS}:{line}: {problem}");
                reading.faults.extend(faults.into_iter().map(place));
                None
            }
        };
    }
    if is_faulty(REQUIREMENTS) || project.is_none() && is_faulty(PROJECT) {
        return None;
    }
    match dependencies(project.unwrap_or_default()) {
        Ok(named) => Some(named),
        Err(problems) => {
            reading.complain(PROJECT, problems);
            None
        }
    }
}

/// The dependencies of a `pyproject.toml`.
fn dependencies(text: &str) -> Result<Vec<String>, Vec<String>> {
    let table = DeTable::parse(text).map_err(|error| vec![error.message().to_owned()])?;
    let project = table.get_ref().get("project").and_then(|project| project.get_ref().as_table());
    let listed = project.and_then(|project| project.get("dependencies"));
    let listed = listed.and_then(|listed| listed.get_ref().as_array());
    let lines: Vec<_> =
        listed.into_iter().flatten().filter_map(|line| line.get_ref().as_str()).collect();
    let read = requirements(&lines.join("\n"));
    read.map_err(|faults| faults.into_iter().map(|(_, problem)| problem).collect())
}

#[cfg(test)]
mod tests;
