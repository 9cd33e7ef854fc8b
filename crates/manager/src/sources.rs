//! Sources of strangers: repositories and packages, fetched into `repos` of the data directory and never run.
//!
//! Where they come from is in `git`, `registry` and `download`; what they tell is found out by `survey`.

pub mod download;
pub mod git;
pub mod proposal;
pub mod registry;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use mcp::text::hexadecimal;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use survey::Report;
use upstream::remote::Url;

use crate::desk::Desk;
use crate::error::Error;
use crate::limits::{CLONE_TIME_MAX, LISTED_FILES_MAX, REPO_FILE_BYTES_MAX, REPOS_MAX};

/// Where the folders of sources are, beneath the data directory.
const FOLDER: &str = "repos";
/// Digits of the hash that names such a folder.
const HASH_DIGITS: usize = 16;

/// What the operator says of sources.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The registry of MCP servers.
    pub registry: Url,
    pub npm: Url,
    pub pypi: Url,
    /// Folders whose repositories may be read, beside those behind `https`.
    pub local: Vec<PathBuf>,
    /// How long a clone may take.
    pub clone_time_max: Duration,
    /// Held by whoever fetches: one after another.
    pub fetching: Arc<tokio::sync::Mutex<()>>,
    /// What there is to say against the git of this machine, once it was asked.
    pub git: Arc<tokio::sync::OnceCell<Option<String>>>,
}

impl Default for Settings {
    /// The public registries, and no folder.
    fn default() -> Settings {
        let url = |text: &str| text.parse().expect("it is an address");
        Settings {
            registry: url("https://registry.modelcontextprotocol.io"),
            npm: url("https://registry.npmjs.org"),
            pypi: url("https://pypi.org"),
            local: Vec::new(),
            clone_time_max: CLONE_TIME_MAX,
            fetching: Arc::default(),
            git: Arc::default(),
        }
    }
}

impl Settings {
    /// What variables of the environment say; all that is wrong with them, at once.
    pub fn read(variable: impl Fn(&str) -> Option<String>) -> Result<Settings, String> {
        let mut settings = Settings::default();
        let mut faults = Vec::new();
        let addresses = [
            ("MCP_REGISTRY_URL", &mut settings.registry),
            ("NPM_REGISTRY_URL", &mut settings.npm),
            ("PYPI_URL", &mut settings.pypi),
        ];
        for (name, url) in addresses {
            match variable(name).filter(|text| !text.is_empty()).map(|text| text.parse::<Url>()) {
                Some(Ok(said)) if said.is_exposed() => {
                    faults.push(format!("`{name}` must begin with `https://`"));
                }
                Some(Ok(said)) => *url = said,
                Some(Err(error)) => faults.push(format!("`{name}` {error}")),
                None => {}
            }
        }
        match variable("REPO_CLONE_SECONDS")
            .filter(|text| !text.is_empty())
            .map(|text| text.parse())
        {
            Some(Ok(seconds @ 1..=600)) => settings.clone_time_max = Duration::from_secs(seconds),
            Some(_) => {
                faults.push("`REPO_CLONE_SECONDS` must be a number from 1 to 600".to_owned());
            }
            None => {}
        }
        for folder in variable("ALLOWED_REPO_PATHS").unwrap_or_default().split(':') {
            let folder = PathBuf::from(folder);
            if folder.is_absolute() {
                settings.local.push(folder);
            } else if folder != PathBuf::new() {
                faults.push(format!(
                    "`ALLOWED_REPO_PATHS` names `{}`, which does not begin with `/`",
                    folder.display()
                ));
            }
        }
        if faults.is_empty() { Ok(settings) } else { Err(faults.join("; ")) }
    }
}

/// A folder of sources that is there.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Fetched {
    /// As it was asked for.
    pub origin: String,
    /// The commit, or the version of a package.
    pub version: String,
    pub time: String,
    /// What is to be said of how it was fetched.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The name of the folder for an origin.
fn key(origin: &str) -> String {
    let mut key = hexadecimal(digest(&SHA256, origin.as_bytes()).as_ref());
    key.truncate(HASH_DIGITS);
    key
}

/// Where the sources of an origin are, or will be.
fn folder(desk: &Desk, origin: &str) -> PathBuf {
    desk.data.path().join(FOLDER).join(key(origin)).join("source")
}

/// What is known of the sources of an origin, if they are there.
pub fn known(desk: &Desk, origin: &str) -> Result<Option<Fetched>, Error> {
    let about = desk
        .data
        .read_text(&format!("{FOLDER}/{}/about.json", key(origin)), REPO_FILE_BYTES_MAX)?;
    Ok(about.and_then(|text| serde_json::from_str(&text).ok()))
}

/// An empty place beside the folder of an origin; what was left there is removed.
fn fresh(desk: &Desk, origin: &str) -> Result<(String, PathBuf), Error> {
    let name = format!("{FOLDER}/.new-{}", key(origin));
    desk.data.make_folder(FOLDER)?;
    desk.data.remove_folder(&name)?;
    desk.data.make_folder(&name)?;
    let path = desk.data.path().join(&name);
    Ok((name, path))
}

/// Puts what was fetched into its place.
fn keep(desk: &Desk, fresh: &str, fetched: &Fetched) -> Result<(), Error> {
    let about = json!(fetched).to_string();
    desk.data.replace(&format!("{fresh}/about.json"), about.as_bytes())?;
    let place = format!("{FOLDER}/{}", key(&fetched.origin));
    desk.data.remove_folder(&place)?;
    desk.data.rename_folder(fresh, &place)?;
    forget_oldest(desk)
}

/// Keeps so many sources; those that were fetched first go first.
fn forget_oldest(desk: &Desk) -> Result<(), Error> {
    let mut all = Vec::new();
    for name in desk.data.names(FOLDER)?.into_iter().filter(|name| !name.starts_with('.')) {
        let about =
            desk.data.read_text(&format!("{FOLDER}/{name}/about.json"), REPO_FILE_BYTES_MAX)?;
        let fetched: Option<Fetched> = about.and_then(|text| serde_json::from_str(&text).ok());
        all.push((fetched.map(|fetched| fetched.time).unwrap_or_default(), name));
    }
    all.sort();
    let surplus = all.len().saturating_sub(REPOS_MAX);
    for (_, name) in all.into_iter().take(surplus) {
        desk.data.remove_folder(&format!("{FOLDER}/{name}"))?;
    }
    Ok(())
}

/// Looks into sources that are there; it takes a while, on the thread of its call.
pub fn analyse(desk: &Desk, fetched: &Fetched) -> Result<Value, Error> {
    let report = survey::survey(&folder(desk, &fetched.origin));
    Ok(told(fetched, report.map_err(|error| Error::Source(error.to_string()))?))
}

/// A report as it is told to a model: strangers' texts can't drive a terminal, and are not endless.
fn told(fetched: &Fetched, mut report: Report) -> Value {
    if report.files.len() > LISTED_FILES_MAX {
        report.notes.push(format!(
            "{} of {} files are listed",
            LISTED_FILES_MAX,
            report.files.len()
        ));
        report.files.truncate(LISTED_FILES_MAX);
    }
    report.notes.extend(fetched.notes.iter().cloned());
    let mut told = json!(report);
    tame(&mut told);
    let mut all = json!({"repo_url": fetched.origin, "version": fetched.version});
    if let (Some(all), Some(told)) = (all.as_object_mut(), told.as_object_mut()) {
        all.append(told);
    }
    all
}

pub fn tame(value: &mut Value) {
    match value {
        Value::String(text) => {
            let lines: Vec<String> = text.lines().map(mcp::text::tame).collect();
            *text = lines.join("\n");
        }
        Value::Array(all) => all.iter_mut().for_each(tame),
        Value::Object(all) => all.values_mut().for_each(tame),
        _ => {}
    }
}

/// Reads one file of sources that are there. TD-136
pub fn read(desk: &Desk, origin: &str, path: &str) -> Result<String, Error> {
    if known(desk, origin)?.is_none() {
        let shown = mcp::text::shorten(origin);
        return Err(Error::Source(format!(
            "`{shown}` was not analysed yet; call `analyze_repo` with it first"
        )));
    }
    let text = survey::folder::read(&folder(desk, origin), path, REPO_FILE_BYTES_MAX as u64);
    text.map_err(|error| Error::Source(error.to_string()))
}
