//! The data directory: what toolman itself writes.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use config::http::{Http, TokenSource, weakness};

use crate::cli::{Cli, Misuse};

/// The folder to use, which may not be there yet.
pub fn folder(cli: &Cli) -> Result<PathBuf, Misuse> {
    let folder = cli.data_dir.clone().or_else(default_folder).ok_or_else(|| {
        Misuse("there is no home folder; say with `--data-dir DIR` where to keep data".into())
    })?;
    // Workers are at home elsewhere, where a relative path would mean something else.
    Ok(std::path::absolute(&folder).unwrap_or(folder))
}

/// The same, made if need be.
fn open(cli: &Cli) -> anyhow::Result<PathBuf> {
    let folder = folder(cli)?;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).map_err(|error| {
        let folder = folder.display();
        Misuse(format!("can't use the data directory `{folder}`: {error}; name another one"))
    })?;
    Ok(folder)
}

fn default_folder() -> Option<PathBuf> {
    let data_home = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from);
    let data_home = data_home
        .filter(|folder| folder.is_absolute())
        .or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")))?;
    Some(data_home.join("toolman"))
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
    replace(&path, hello).with_context(|| format!("can't write `{}`", path.display()))
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
    let path = open(cli)?.join("token");
    if let Ok(kept) = std::fs::read_to_string(&path)
        && weakness(kept.trim()).is_none()
    {
        return Ok(kept.trim().to_owned());
    }
    let token = gateway::auth::unguessable();
    replace(&path, &token).with_context(|| format!("can't write `{}`", path.display()))?;
    Ok(token)
}

/// Replaces a file at once: it holds the old or the new text, never a part.
fn replace(path: &Path, text: &str) -> std::io::Result<()> {
    let fresh = path.with_extension(format!("{}.new", std::process::id()));
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&fresh)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&fresh, path)
}
