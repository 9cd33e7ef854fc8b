//! The data directory: what toolman itself writes.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Context as _;
use config::http::{Http, TokenSource, weakness};
use upstream::inventories::Inventories;

use crate::cli::{Cli, Command, Misuse};

/// The operator's token.
const TOKEN: &str = "token";
const MANAGER_TOKEN: &str = "manager.token";
const RELOAD_TOKEN: &str = "reload.token";
const ADDRESS: &str = "core.url";

/// The folder to use, which may not be there yet.
pub fn folder(cli: &Cli) -> Result<PathBuf, Misuse> {
    let folder = cli.data_dir.clone().or_else(default_folder).ok_or_else(|| {
        Misuse("there is no home folder; say with `--data-dir DIR` where to keep data".into())
    })?;
    // Programs that are started elsewhere are told of it.
    std::path::absolute(&folder).map_err(|error| unusable(&folder, &error))
}

/// The same, made if need be.
fn open(cli: &Cli) -> anyhow::Result<PathBuf> {
    let folder = folder(cli)?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder);
    made.map_err(|error| unusable(&folder, &error))?;
    Ok(folder)
}

fn unusable(folder: &Path, error: &std::io::Error) -> Misuse {
    let folder = folder.display();
    Misuse(format!("can't use the data directory `{folder}`: {error}; name another one"))
}

fn default_folder() -> Option<PathBuf> {
    home("XDG_DATA_HOME", ".local/share")
}

/// Where is kept what is about this machine alone.
pub fn state_folder() -> Option<PathBuf> {
    home("XDG_STATE_HOME", ".local/state")
}

fn home(variable: &str, usual: &str) -> Option<PathBuf> {
    let folder = std::env::var_os(variable).map(PathBuf::from);
    let folder = folder
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(usual)))?;
    Some(folder.join("toolman"))
}

/// What servers have offered, for those who serve it before the servers have answered, and kept by all who ask them.
pub fn inventories(cli: &Cli) -> Option<Arc<Inventories>> {
    let serves = matches!(cli.command, None | Some(Command::Up(_) | Command::Serve(_)));
    let folder = folder(cli).map(|folder| folder.join("inventories"));
    let opened = match folder {
        Ok(folder) => Inventories::open(folder.clone(), serves)
            .map_err(|error| format!("can't use `{}`: {error}", folder.display())),
        Err(Misuse(problem)) => Err(problem),
    };
    match opened {
        Ok(inventories) => Some(Arc::new(inventories)),
        Err(problem) => {
            if serves {
                tracing::warn!(
                    "clients wait for servers at each start, as no inventory is kept: {problem}"
                );
            }
            None
        }
    }
}

/// The folder that namespaces are put into, with nothing in it. TD-33
pub fn make_tools(cli: &Cli) -> anyhow::Result<()> {
    let tools = open(cli)?.join("tools");
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&tools);
    made.map_err(|error| unusable(&tools, &error).into())
}

/// What a newcomer finds in the data directory: one namespace with one tool. TD-34
pub fn make_starter(cli: &Cli) -> anyhow::Result<()> {
    let tools = open(cli)?.join("tools");
    if tools.exists() {
        return Ok(());
    }
    let shared = tools.join("shared");
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&shared)?;
    let hello = include_str!("../../../examples/basic-tool/hello.py");
    let path = shared.join("hello.py");
    replace(&path, hello.as_bytes()).with_context(|| format!("can't write `{}`", path.display()))
}

/// The bearer token that was given: in a file, else in the environment, else in the configuration.
pub fn given_token(file: Option<&Path>, http: &Http) -> Result<Option<String>, Misuse> {
    let in_environment = std::env::var_os("BEARER_TOKEN");
    let (token, source) = match (file, in_environment, &http.token) {
        (Some(file), _, _) => (read_token(file)?, "the token in the file"),
        (None, Some(token), _) => (token.into_string().unwrap_or_default(), "BEARER_TOKEN"),
        (None, None, Some(TokenSource::File(file))) => (read_token(file)?, "the token in the file"),
        (None, None, Some(TokenSource::Text(token))) => return Ok(Some(token.clone())),
        (None, None, None) => return Ok(None),
    };
    match weakness(&token) {
        Some(weakness) => {
            Err(Misuse(format!("{source} {weakness}, or none to have one generated")))
        }
        None => Ok(Some(token)),
    }
}

pub fn read_token(file: &Path) -> Result<String, Misuse> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Misuse(format!("can't read the token file `{}`: {error}", file.display()))
    })?;
    Ok(text.trim().to_owned())
}

/// The bearer token: the one given, else the one kept, else a new one that is kept.
///
/// It is kept so that clients need no new settings after a restart.
pub fn token(cli: &Cli, http: &Http) -> anyhow::Result<String> {
    if let Some(token) = given_token(None, http)? {
        return Ok(token);
    }
    kept_or_new(&open(cli)?.join(TOKEN))
}

/// The token that the manager shows besides, where none is given: on one machine it needs no settings.
pub fn manager_token(cli: &Cli) -> anyhow::Result<String> {
    kept_or_new(&open(cli)?.join(MANAGER_TOKEN))
}

fn kept_or_new(path: &Path) -> anyhow::Result<String> {
    if let Some(kept) = kept(path) {
        return Ok(kept);
    }
    let token = gateway::auth::unguessable();
    replace(path, token.as_bytes()).with_context(|| format!("can't write `{}`", path.display()))?;
    Ok(token)
}

/// The token in a file, if it is one.
fn kept(path: &Path) -> Option<String> {
    let kept = std::fs::read_to_string(path).ok()?;
    weakness(kept.trim()).is_none().then(|| kept.trim().to_owned())
}

/// A new token for who reads our data directory and asks for a reload, whatever the other tokens are.
pub fn new_reload_token(cli: &Cli) -> anyhow::Result<String> {
    let (path, token) = (open(cli)?.join(RELOAD_TOKEN), gateway::auth::unguessable());
    replace(&path, token.as_bytes())
        .with_context(|| format!("can't write `{}`", path.display()))?;
    Ok(token)
}

/// The token that the core which was started last has made for that.
pub fn reload_token(cli: &Cli) -> Option<String> {
    kept(&folder(cli).ok()?.join(RELOAD_TOKEN))
}

/// The two tokens of a core that has made them itself, as far as they are there.
pub fn kept_tokens(cli: &Cli) -> Result<(Option<String>, Option<String>), Misuse> {
    let folder = folder(cli)?;
    Ok((kept(&folder.join(TOKEN)), kept(&folder.join(MANAGER_TOKEN))))
}

/// Notes where the core is served, for who looks for it on this machine.
pub fn note_address(cli: &Cli, url: &str) -> anyhow::Result<()> {
    let path = open(cli)?.join(ADDRESS);
    replace(&path, url.as_bytes()).with_context(|| format!("can't write `{}`", path.display()))
}

/// Where the core was served last, if it was.
pub fn noted_address(cli: &Cli) -> Option<String> {
    let noted = std::fs::read_to_string(folder(cli).ok()?.join(ADDRESS)).ok()?;
    Some(noted.trim().to_owned())
}

/// Replaces a file at once: it holds the old or the new bytes, never a part.
pub fn replace(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}

/// Files that lie where somebody may think that they are read.
pub fn ignored(cli: &Cli, has_file: bool) -> Vec<String> {
    let data = cli.data_dir.is_some().then(|| folder(cli).ok()).flatten();
    let here = (!has_file).then(PathBuf::new);
    let names = ["config.yaml", "config.yml"];
    let files = data.into_iter().chain(here).flat_map(|folder| names.map(|name| folder.join(name)));
    let files = files.filter(|file| file.is_file());
    let words = "is not read; settings are in `tools.toml`, in the `tooldock.yaml` of a folder, or in the environment";
    files.map(|file| format!("{}: {words}", file.display())).collect()
}
