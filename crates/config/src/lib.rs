//! Configuration files into the types that the rooms speak.
//!
//! A file is read whole and every fault in it is reported at once, with its place. That servers
//! run is not known here.

pub mod audit;
pub mod dock;
pub mod fault;
pub mod http;
pub mod library;
pub mod performance;
pub mod policies;
pub mod tasks;
pub mod variables;

mod clients;
mod duration;
mod expand;
mod exposure;
mod file;
mod json;
mod jsonc;
pub mod limits;
pub mod mentions;
mod reader;
mod session_context;
mod syntax;
mod toolception;
mod toolman_json;
mod tools_toml;
mod toolsets;

use std::path::Path;

use catalog::naming::Prefix;
use catalog::policy::permissions::Permissions;
use catalog::profile::Profiles;
use catalog::scope::Scope;
use catalog::session_context::SessionContext;
use catalog::snapshot::Rules;
use catalog::surface::Surface;
use mcp::names::Namespace;
use upstream::supervisor::Settings;

use crate::audit::Audit;
use crate::dock::{Dock, Named};
use crate::fault::{Fault, Faults};
use crate::http::Http;
use crate::mentions::Mentions;
use crate::performance::Performance;
use crate::policies::Rulebook;
use crate::tasks::TaskPattern;
pub use crate::tools_toml::routes::Route;

/// What a configuration says.
#[derive(Clone, Debug)]
pub struct Config {
    /// In the order of the file, which settles whose name counts; disabled ones are left out.
    pub servers: Vec<Server>,
    /// Folders of Python tools that are servers by themselves.
    pub folders: Vec<Named>,
    pub rules: Rules,
    pub surface: Surface,
    /// Who may see what.
    pub rulebook: Rulebook,
    /// Which toolsets clients are granted.
    pub permissions: Permissions,
    /// What the operator knows of client programs.
    pub profiles: Profiles,
    /// What clients may say when they connect, if anything.
    pub session_context: Option<SessionContext>,
    pub performance: Performance,
    /// Which tools tasks need, by their words.
    pub tasks: Vec<TaskPattern>,
    pub http: Http,
    /// Paths beside the usual one, with what is shown there.
    pub endpoints: Vec<(String, Scope)>,
    /// Paths that call a tool each.
    pub routes: Vec<Route>,
    /// `None` where the file says nothing of it.
    pub audit: Option<Audit>,
    /// How folders of Python tools are served; `None` where the file says nothing of it.
    pub dock: Option<Dock>,
    /// What an operator should know, though it is no fault.
    pub warnings: Vec<Fault>,
    /// What its rules name.
    pub mentions: Mentions,
}

/// One server and the prefix of its names.
#[derive(Clone, Debug)]
pub struct Server {
    pub namespace: Namespace,
    pub prefix: Prefix,
    pub settings: Settings,
    /// The section as it is written, nothing expanded.
    pub written: serde_json::Map<String, serde_json::Value>,
    /// Whether its command is one for the shell.
    pub runs_in_shell: bool,
}

/// The value of an environment variable.
pub type Environment<'a> = &'a dyn Fn(&str) -> Option<String>;

/// What a text means depends on these.
#[derive(Clone, Copy)]
pub struct Surroundings<'a> {
    /// The file as it is named in faults.
    pub file: &'a Path,
    /// Servers run here, and relative paths start here.
    pub folder: &'a Path,
    pub environment: Environment<'a>,
}

/// Reads the file at `path`; the error is never empty and in the order of the file.
pub fn load(path: &Path, environment: Environment<'_>) -> Result<Config, Vec<Fault>> {
    let of_file = |problem: String| Fault { file: path.to_owned(), place: None, problem };
    let contents = file::read(path)
        .map_err(|problems| problems.into_iter().map(of_file).collect::<Vec<_>>())?;
    let surroundings = Surroundings { file: path, folder: &contents.folder, environment };
    parse(&contents.text, &surroundings)
}

/// Reads a text; the error is never empty and in the order of the text.
pub fn parse(text: &str, surroundings: &Surroundings<'_>) -> Result<Config, Vec<Fault>> {
    // Some editors begin every file with a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut faults = Faults::new(surroundings.file, text);
    let is_json = json::is_meant(text);
    let plain = if is_json { jsonc::plain(text) } else { text.into() };
    let parse = if is_json { json::parse } else { syntax::parse };
    let table = parse(&plain, &mut faults);
    let Some(table) = table else { return Err(faults.in_order()) };
    let read = if is_json { toolman_json::read } else { tools_toml::read };
    let mut config = read(&table, surroundings, &mut faults);
    config.warnings = faults.warnings();
    config.mentions = faults.mentions();
    let faults = faults.in_order();
    if faults.is_empty() { Ok(config) } else { Err(faults) }
}

#[cfg(test)]
mod tests;
