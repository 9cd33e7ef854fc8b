//! A configuration for a look at it: variables and secrets that are not set keep nobody from reading it.
//!
//! Servers that need such a variable are not started.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use config::Config;
use mcp::names::{Namespace, UpstreamName};

use crate::cli::{Cli, Misuse};
use crate::host::{self, Host, Plan, Source};

/// What stands for a variable that is not set: it can be an address, too.
const STAND_IN: &str = "http://unset.invalid";

/// A server that is not there, and why.
pub struct Absent {
    pub name: UpstreamName,
    pub namespace: Namespace,
    pub reason: String,
}

/// The configuration, and the servers of it that can't be started; `None` if there is no file.
pub fn configuration(cli: &Cli) -> Result<Option<(Config, Vec<Absent>)>, Misuse> {
    host::file(cli).map(|path| read(&path)).transpose()
}

fn read(path: &Path) -> Result<(Config, Vec<Absent>), Misuse> {
    let strict = match host::read(path) {
        Ok(config) => return Ok((config, Vec::new())),
        Err(strict) => strict,
    };
    let unset = RefCell::new(Vec::new());
    let environment = |name: &str| {
        std::env::var(name).ok().or_else(|| {
            unset.borrow_mut().push(format!("${{{name}"));
            Some(STAND_IN.to_owned())
        })
    };
    // What else is wrong with it, is wrong.
    let Ok(config) = config::load(path, &environment) else { return Err(strict) };
    let unset = unset.into_inner();
    let absent = config.servers.iter().filter_map(|server| {
        let written = serde_json::to_string(&server.written).unwrap_or_default();
        let written = written.replace("${env:", "${");
        let missing = unset.iter().find(|name| written.contains(*name))?;
        let (name, namespace) = (server.settings.name.clone(), server.namespace.clone());
        let variable = missing.trim_start_matches("${");
        Some(Absent { name, namespace, reason: format!("needs `{variable}`, which is not set") })
    });
    let absent = absent.collect();
    Ok((config, absent))
}

/// Starts what can be started of the configuration; it must be there.
pub async fn start(cli: &Cli) -> anyhow::Result<(Host, Vec<Absent>)> {
    let Some(path) = host::file(cli) else { return Ok((Host::start(cli).await?, Vec::new())) };
    let (config, absent) = read(&path)?;
    Ok((start_without(cli, config, &absent, path).await?, absent))
}

/// The same of a configuration that was read.
pub async fn start_without(
    cli: &Cli,
    mut config: Config,
    absent: &[Absent],
    path: PathBuf,
) -> Result<Host, Misuse> {
    let is_absent = |name: &UpstreamName| absent.iter().any(|absent| absent.name == *name);
    config.servers.retain(|server| !is_absent(&server.settings.name));
    let (variables, config) = host::with_variables(cli, Ok(config))?;
    Ok(Plan::of(config, Source::File(path), variables)?.start(cli).await?.whole().await)
}
