//! Folders of Python tools: what lies in them, and what they say of themselves. TD-33 … TD-47
//!
//! Nothing is run here. What is wrong with one file or folder is kept beside it: the others are served.

mod manifest;

use std::fs;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aws_lc_rs::digest::{Context, SHA256};
use ipnet::IpNet;
use mcp::names::{Namespace, UpstreamName};
use mcp::text::hexadecimal;
use toml::de::DeTable;
use upstream::limits::CALL_TIMEOUT;
use upstream::python::environment;
use upstream::python::scan::Source;

pub use manifest::Manifest;

use crate::Environment;
use crate::http::weakness;
use crate::limits::{DOCK_BYTES_MAX, DOCK_FILES_MAX, TOOL_FILE_BYTES_MAX};

/// The namespace of the manager.
const RESERVED: &str = "_system";
/// The longest name of a namespace.
const NAME_MAX: usize = 64;

/// How far workers are confined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sandbox {
    /// Not at all, unless a folder wants it.
    Off,
    /// As far as the kernel can.
    BestEffort,
    /// Without it, no worker is started.
    Required,
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
    /// Whether tools may open connections, unless their folder says so itself.
    pub network: bool,
    /// Whether workers are confined, and must be.
    pub sandbox: Sandbox,
    pub memory_mb: u32,
    /// Whether folders are looked at by themselves, and how long they must be quiet before.
    pub watches: Option<Duration>,
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
            network: true,
            sandbox: Sandbox::BestEffort,
            memory_mb: 2_048,
            watches: None,
            approval: None,
        }
    }
}

/// Who may ask for a reload: the manager, by what it shows and where it is. TD-113, TD-145
#[derive(Clone, Debug)]
pub struct Manager {
    pub token: String,
    networks: Vec<IpNet>,
}

impl Manager {
    /// As the environment says; the error is all that is wrong with it.
    pub fn of(environment: Environment<'_>) -> Result<Option<Manager>, Vec<String>> {
        let Some(token) = environment("MANAGER_INTERNAL_TOKEN") else { return Ok(None) };
        let mut problems = Vec::new();
        if let Some(weakness) = weakness(&token) {
            problems.push(format!("MANAGER_INTERNAL_TOKEN {weakness}"));
        }
        let written = environment("INTERNAL_ALLOWED_CIDRS").unwrap_or_else(|| MANAGERS.to_owned());
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
        if problems.is_empty() { Ok(Some(Manager { token, networks })) } else { Err(problems) }
    }

    pub fn may_be_at(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(&address))
    }
}

/// Where the manager is, unless configured: on this machine, or where its container is.
const MANAGERS: &str = "127.0.0.0/8, ::1, 172.30.0.10/32";

impl Dock {
    /// The same, where the environment says nothing else; the error is all that is wrong with it. TD-146, TD-147
    pub fn with_environment(mut self, environment: Environment<'_>) -> Result<Dock, Vec<String>> {
        let mut problems = Vec::new();
        let mut number = |name: &str| {
            let text = environment(name)?;
            let number = text.trim().parse::<u32>().ok().filter(|number| *number > 0);
            if number.is_none() {
                let shown = mcp::text::shorten(&text);
                problems.push(format!("{name} is `{shown}`; it must be a number above 0"));
            }
            number
        };
        if let Some(seconds) = number("TOOL_CALL_TIMEOUT_SECONDS") {
            self.call_timeout = Duration::from_secs(seconds.into());
        }
        if let Some(calls) = number("NAMESPACE_MAX_CONCURRENCY") {
            self.calls_max = usize::try_from(calls).unwrap_or(self.calls_max);
        }
        if let Some(calls) = number("NAMESPACE_RATE_LIMIT") {
            self.calls_a_minute = Some(calls);
        }
        let quiet = number("FS_WATCHER_DEBOUNCE_MS").unwrap_or(500);
        match environment("ENABLE_FS_WATCHER").map(|text| text.trim().to_lowercase()).as_deref() {
            None => {}
            Some("1" | "true" | "yes" | "on") => {
                self.watches = Some(Duration::from_millis(quiet.into()));
            }
            Some("0" | "false" | "no" | "off" | "") => self.watches = None,
            Some(other) => {
                let shown = mcp::text::shorten(other);
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
    /// What `requirements.txt` names, or `pyproject.toml`.
    pub packages: Vec<String>,
    /// What is wrong, each with its place.
    pub faults: Vec<String>,
    /// Whether it must not be served: what its own file forbids is not known.
    pub is_refused: bool,
    /// A hash over all that the folder holds.
    pub version: String,
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
    let mut reading =
        Reading { context: Context::new(&SHA256), bytes: 0, files: 0, faults: Vec::new() };
    let mut sources = Vec::new();
    let (mut manifest, mut packages) = (Manifest::default(), Vec::new());
    let mut is_refused = false;
    for file in reading.names(&path) {
        let below = path.join(&file);
        if below.is_dir() {
            // What tool files import counts, too.
            reading.hash_folder(&below);
            continue;
        }
        let Some(bytes) = reading.take(&below, &file) else { continue };
        let text = String::from_utf8(bytes);
        match file.as_str() {
            "tooldock.yaml" | "requirements.txt" | "pyproject.toml" => {}
            name if is_python(name) => {}
            _ => continue,
        }
        let Ok(text) = text else {
            reading.faults.push(format!("{file}: is not UTF-8"));
            continue;
        };
        match file.as_str() {
            "tooldock.yaml" => match Manifest::parse(&text) {
                Ok(read) => manifest = read,
                Err(problems) => {
                    is_refused = true;
                    reading.complain(&file, problems);
                }
            },
            "requirements.txt" => match environment::requirements(&text) {
                Ok(named) => packages = named,
                Err(faults) => {
                    let place = |(line, problem)| format!("{file}:{line}: {problem}");
                    reading.faults.extend(faults.into_iter().map(place));
                }
            },
            "pyproject.toml" if packages.is_empty() => match dependencies(&text) {
                Ok(named) => packages = named,
                Err(problems) => reading.complain(&file, problems),
            },
            "pyproject.toml" => {}
            _ => sources.push(Source { file, text }),
        }
    }
    let version = hexadecimal(reading.context.finish().as_ref());
    Folder {
        name,
        namespace,
        path,
        sources,
        manifest,
        packages,
        faults: reading.faults,
        is_refused,
        version,
    }
}

fn is_python(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "py")
}

/// The dependencies of a `pyproject.toml`.
fn dependencies(text: &str) -> Result<Vec<String>, Vec<String>> {
    let table = DeTable::parse(text).map_err(|error| vec![error.message().to_owned()])?;
    let project = table.get_ref().get("project").and_then(|project| project.get_ref().as_table());
    let listed = project.and_then(|project| project.get("dependencies"));
    let listed = listed.and_then(|listed| listed.get_ref().as_array());
    let lines: Vec<_> =
        listed.into_iter().flatten().filter_map(|line| line.get_ref().as_str()).collect();
    let read = environment::requirements(&lines.join("\n"));
    read.map_err(|faults| faults.into_iter().map(|(_, problem)| problem).collect())
}

/// A folder that is being read.
struct Reading {
    context: Context,
    bytes: usize,
    files: usize,
    faults: Vec<String>,
}

impl Reading {
    /// The files that count, in order.
    fn names(&mut self, folder: &Path) -> Vec<String> {
        let entries = match fs::read_dir(folder) {
            Ok(entries) => entries,
            Err(error) => {
                self.faults.push(format!("can't be read: {error}"));
                return Vec::new();
            }
        };
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // Files that begin with `_` are no tools, but tools import them.
        let is_ignored = |name: &String| name.starts_with('.') || name == "__pycache__";
        let mut names: Vec<_> = names.filter(|name| !is_ignored(name)).collect();
        names.sort();
        names
    }

    /// Reads a file into the hash; its bytes if it may be a file of tools.
    fn take(&mut self, path: &Path, name: &str) -> Option<Vec<u8>> {
        self.files += 1;
        // A pipe would be waited for, and a device has no end.
        let known = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
        let length = usize::try_from(known.len()).unwrap_or(usize::MAX);
        let is_too_much =
            self.files > DOCK_FILES_MAX || self.bytes.saturating_add(length) > DOCK_BYTES_MAX;
        if is_too_much || length > TOOL_FILE_BYTES_MAX {
            if is_python(name) {
                self.faults.push(format!("{name}: over 1 MiB, or one of too many files"));
            }
            // What is so large is not read, but noticed when it changes.
            self.context.update(name.as_bytes());
            self.context.update(&length.to_le_bytes());
            return None;
        }
        let bytes = fs::read(path).ok()?;
        self.bytes += bytes.len();
        self.context.update(&(name.len() as u64).to_le_bytes());
        self.context.update(name.as_bytes());
        self.context.update(&(bytes.len() as u64).to_le_bytes());
        self.context.update(&bytes);
        let is_tool_file = !name.starts_with('_');
        is_tool_file.then_some(bytes)
    }

    fn hash_folder(&mut self, folder: &Path) {
        for name in self.names(folder) {
            let path = folder.join(&name);
            let is_link = fs::symlink_metadata(&path).is_ok_and(|known| known.is_symlink());
            if self.files > DOCK_FILES_MAX || is_link {
                continue;
            }
            if path.is_dir() {
                self.hash_folder(&path);
            } else {
                self.take(&path, &name);
            }
        }
    }

    fn complain(&mut self, file: &str, problems: Vec<String>) {
        self.faults.extend(problems.into_iter().map(|problem| format!("{file}: {problem}")));
    }
}

#[cfg(test)]
mod tests;
