//! Repositories: cloned by `git`, which is told to run nothing, ask nothing and follow nothing. HARDENING §3.11, §4.5
//!
//! It runs confined besides: it may read the system and the repository, and write its target and nothing else.

mod address;
mod program;
#[cfg(test)]
mod tests;

use std::convert::Infallible;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use mcp::text::{shorten, tame};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use upstream::confine::{self, Confinement};
use upstream::launch::{Ended, Errand};

use super::{Fetched, fresh, keep};
use crate::desk::Desk;
use crate::error::Error;
use crate::limits::{
    CLONE_BYTES_MAX, CLONE_FILES_MAX, CLONE_MEMORY_BYTES_MAX, SAID_BYTES_MAX, URL_BYTES_MAX,
};

/// Ends when nobody waits for a clone any more.
type Left = oneshot::Receiver<Infallible>;

/// Where a repository is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    Https {
        url: String,
        host: String,
        port: u16,
    },
    /// A folder that the operator allows.
    Local(PathBuf),
}

impl Origin {
    /// Reads what a model calls a repository; git itself is never asked what a text might mean.
    pub fn parse(text: &str, allowed: &[PathBuf]) -> Result<Origin, Error> {
        let refused =
            |why: &str| Err(Error::RepoUrl { url: without_credentials(text), why: why.to_owned() });
        if text.is_empty() || text.len() > URL_BYTES_MAX {
            return refused("is empty or too long");
        }
        if text.starts_with('-') {
            return refused("begins with `-`, as options do");
        }
        if text.chars().any(|c| c.is_control() || c.is_whitespace() || "\\\"'`^|<>".contains(c)) {
            return refused("holds a character that no address has");
        }
        if text.starts_with('/') {
            return local(text, allowed);
        }
        let Some((scheme, rest)) = text.split_once("://") else {
            return refused("is no `https` address");
        };
        if scheme != "https" {
            return refused("is no `https` address; no other protocol is used");
        }
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        if authority.contains('@') {
            return refused("holds a user or password; only public repositories are read");
        }
        if path.is_empty() || path.contains(['?', '#']) || path.split('/').any(|part| part == "..")
        {
            return refused("has no plain path");
        }
        let (host, port) = match authority.split_once(':') {
            Some((host, port)) => (host, port.parse().unwrap_or(0)),
            None => (authority, 443),
        };
        let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '.' || c == '-';
        if host.is_empty()
            || host.starts_with(['-', '.'])
            || !host.chars().all(is_letter)
            || port == 0
        {
            return refused("names no host that can be asked");
        }
        Ok(Origin::Https { url: text.to_owned(), host: host.to_owned(), port })
    }

    /// What the sources are kept under.
    pub fn name(&self) -> String {
        match self {
            Origin::Https { url, .. } => url.clone(),
            Origin::Local(path) => path.display().to_string(),
        }
    }
}

/// A folder that the operator allows, or that lies beneath one.
fn local(text: &str, allowed: &[PathBuf]) -> Result<Origin, Error> {
    let refused = || Error::RepoUrl {
        url: shorten(text),
        why: "is no folder that the operator allows; `ALLOWED_REPO_PATHS` names them".to_owned(),
    };
    let path = fs::canonicalize(text).map_err(|_| refused())?;
    let is_allowed = allowed
        .iter()
        .filter_map(|root| fs::canonicalize(root).ok())
        .any(|root| path.starts_with(root));
    if is_allowed && path.is_dir() { Ok(Origin::Local(path)) } else { Err(refused()) }
}

/// An address for a message: what stands before `@` may be a secret.
fn without_credentials(text: &str) -> String {
    match text.split_once("://") {
        Some((scheme, rest)) => {
            let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
            let host = authority.rsplit('@').next().unwrap_or_default();
            shorten(&format!("{scheme}://{host}/{path}"))
        }
        None => shorten(text.rsplit('@').next().unwrap_or_default()),
    }
}

/// Clones a repository into its place; what was there before is replaced.
///
/// When this is dropped while it waits for its turn, that is all. Later, git is ended and what it has written is removed,
/// and then the next has its turn.
pub async fn clone(desk: &Arc<Desk>, origin: &Origin) -> Result<Fetched, Error> {
    let turn = Arc::clone(&desk.sources.fetching).lock_owned().await;
    let (desk, origin) = (Arc::clone(desk), origin.clone());
    // Nothing is ever sent; it ends when it is dropped, with us.
    let (_waited_for, left) = oneshot::channel::<Infallible>();
    let here = Handle::current();
    let cloned = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        here.block_on(clone_until(&desk, &origin, left))
    });
    cloned.await.unwrap_or(Err(Error::Fault))
}

async fn clone_until(desk: &Desk, origin: &Origin, left: Left) -> Result<Fetched, Error> {
    let (name, place) = fresh(desk, &origin.name())?;
    let cloned = clone_into(desk, origin, &place, left).await;
    let fetched = match cloned {
        Ok((version, notes)) => {
            Fetched { origin: origin.name(), version, time: (desk.clock)(), notes }
        }
        Err(error) => {
            _ = desk.data.remove_folder(&name);
            return Err(error);
        }
    };
    keep(desk, &name, &fetched)?;
    Ok(fetched)
}

/// The commit that was cloned, and what is to be said of it.
async fn clone_into(
    desk: &Desk,
    origin: &Origin,
    place: &Path,
    left: Left,
) -> Result<(String, Vec<String>), Error> {
    let failed = |why: String| Error::Clone { url: shorten(&origin.name()), why };
    let git = program::find().ok_or_else(|| {
        failed("`git` is not installed on the machine of the manager; ask a person to".to_owned())
    })?;
    let mut notes: Vec<String> = program::warning(desk, &git).await.into_iter().collect();
    let pins = match origin {
        Origin::Https { host, port, .. } => {
            let addresses = address::public(host, *port).await.map_err(failed)?;
            // Git is not to look the name up again, and find another address.
            vec![address::pin(host, *port, &addresses)]
        }
        Origin::Local(_) => Vec::new(),
    };
    let (protocol, from) = match origin {
        Origin::Https { url, .. } => ("https", OsString::from(url)),
        Origin::Local(path) => ("file", path.clone().into_os_string()),
    };
    let (target, home) = (place.join("source"), place.join("home"));
    fs::create_dir(&home).map_err(|error| failed(error.to_string()))?;
    let errand = Errand {
        args: arguments(&pins, from, &target),
        env: environment(&home, protocol),
        cwd: place.to_owned(),
        confinement: Some(confinement(origin, &git, place)),
        program: git,
        input: Vec::new(),
        time_max: desk.sources.clone_time_max,
        output_bytes_max: SAID_BYTES_MAX,
    };
    let ended = watched(desk, errand, &target, left).await.map_err(failed)?;
    let is_ours = |line: &&str| line.starts_with(confine::SANDBOX_SAID);
    if let Some(line) = ended.errors.lines().find(|line| is_ours(line) && line.contains("NOT")) {
        let reached = line.trim_start_matches(confine::SANDBOX_SAID);
        notes.push(format!("git was confined only in part: {reached}"));
    }
    if !ended.is_success {
        let is_said = |line: &&str| !line.starts_with("Cloning into") && !is_ours(line);
        let said: Vec<&str> = ended.errors.lines().filter(is_said).collect();
        return Err(failed(format!("git {}: {}", ended.how, shorten(&tame(&said.join("; "))))));
    }
    let version = commit(&target);
    // Nobody needs what git keeps for itself.
    let removed = fs::remove_dir_all(target.join(".git")).and_then(|()| fs::remove_dir_all(&home));
    removed.map_err(|error| failed(error.to_string()))?;
    Ok((version, notes))
}

/// All that git is told; `pins` are settings of this clone alone.
fn arguments(pins: &[String], from: OsString, target: &Path) -> Vec<OsString> {
    let settings = SETTINGS.iter().copied().chain(pins.iter().map(String::as_str));
    let mut args: Vec<OsString> =
        settings.flat_map(|setting| ["-c", setting]).map(OsString::from).collect();
    args.extend(CLONE.map(OsString::from));
    args.extend([OsString::from("--"), from, target.as_os_str().to_owned()]);
    args
}

/// It reads the system and the repository, and writes where it clones to.
fn confinement(origin: &Origin, git: &Path, place: &Path) -> Confinement {
    let mut reads = confine::common_reads();
    reads.extend(git.parent().map(Path::to_owned));
    reads.extend(confine::home_of(git));
    if let Origin::Local(path) = origin {
        reads.push(path.clone());
    }
    let mut writes = confine::common_writes();
    writes.push(place.to_owned());
    Confinement {
        reads,
        writes,
        has_network: matches!(origin, Origin::Https { .. }),
        memory_bytes_max: CLONE_MEMORY_BYTES_MAX,
        // Whoever watches the folder says it in words, and sooner.
        file_bytes_max: 2 * CLONE_BYTES_MAX,
        least: confine::Level::Limits,
    }
}

/// Nothing of a repository, of the system or of the user may make git do more than copy.
const SETTINGS: [&str; 13] = [
    "core.hooksPath=/dev/null",
    "core.symlinks=false",
    "core.fsmonitor=false",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.autocrlf=false",
    "credential.helper=",
    "protocol.ext.allow=never",
    "transfer.fsckObjects=true",
    "http.followRedirects=false",
    "http.lowSpeedLimit=1000",
    "http.lowSpeedTime=20",
    "submodule.recurse=false",
];

const CLONE: [&str; 8] = [
    "clone",
    "--quiet",
    "--depth=1",
    "--single-branch",
    "--no-tags",
    "--no-recurse-submodules",
    "--no-local",
    "--template=",
];

/// All that git finds in its environment.
fn environment(home: &Path, protocol: &str) -> Vec<(OsString, OsString)> {
    let fixed = [
        ("GIT_ALLOW_PROTOCOL", protocol),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ASKPASS", "/bin/false"),
        ("GIT_CONFIG_NOSYSTEM", "1"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("GIT_LFS_SKIP_SMUDGE", "1"),
        ("GIT_PROTOCOL_FROM_USER", "0"),
        ("LC_ALL", "C"),
    ];
    let mut all: Vec<(OsString, OsString)> =
        fixed.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    all.push(("HOME".into(), home.into()));
    all.push(("PATH".into(), std::env::var_os("PATH").unwrap_or_else(|| "/usr/bin:/bin".into())));
    all
}

/// Runs git, and ends it when it writes too much, or when nobody waits for it any more.
async fn watched(desk: &Desk, errand: Errand, target: &Path, left: Left) -> Result<Ended, String> {
    let too_much = async {
        let mut ticks = tokio::time::interval(Duration::from_millis(250));
        loop {
            ticks.tick().await;
            if let Err(why) = measure(target.to_owned()).await {
                return why;
            }
        }
    };
    let objection = async {
        tokio::select! {
            why = too_much => why,
            _ = left => Error::Left.to_string(),
        }
    };
    let ended = desk.spawner.run_until(errand, objection).await;
    let ended = ended.map_err(|error| format!("git can't be run: {error}"))?;
    measure(target.to_owned()).await.map(|()| ended)
}

/// Whether a folder is still within the bounds.
async fn measure(folder: PathBuf) -> Result<(), String> {
    let measured = tokio::task::spawn_blocking(move || {
        let (mut bytes, mut files) = (0, 0);
        let mut open = vec![folder];
        while let Some(folder) = open.pop() {
            for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
                let Ok(about) = entry.metadata() else { continue };
                files += 1;
                bytes += about.len();
                if about.is_dir() {
                    open.push(entry.path());
                }
                if bytes > CLONE_BYTES_MAX || files > CLONE_FILES_MAX {
                    return Err(format!(
                        "it is larger than {CLONE_BYTES_MAX} bytes or {CLONE_FILES_MAX} files"
                    ));
                }
            }
        }
        Ok(())
    });
    measured.await.unwrap_or(Ok(()))
}

/// The commit that was checked out, as git wrote it down.
fn commit(target: &Path) -> String {
    let read = |path: &str| fs::read_to_string(target.join(".git").join(path)).unwrap_or_default();
    let head = read("HEAD");
    let Some(name) = head.trim().strip_prefix("ref: ") else { return head.trim().to_owned() };
    let loose = if name.contains("..") { String::new() } else { read(name) };
    let packed = read("packed-refs");
    let packed = packed.lines().find_map(|line| line.strip_suffix(name)).unwrap_or_default();
    let found = if loose.is_empty() { packed } else { &loose };
    found.trim().to_owned()
}
