//! From a configuration to a running gateway, and to its orderly end.

use std::path::{Path, PathBuf};

use gateway::{Gateway, Member, Settings};
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use upstream::launch::Spawner;

use crate::cli::{Cli, Misuse};
use crate::demo;

/// A running gateway and where its configuration came from.
pub struct Host {
    pub gateway: Gateway,
    pub source: Source,
}

pub enum Source {
    File(PathBuf),
    Demo,
}

impl Host {
    /// Starts what the configuration says; it must be there.
    pub fn start(cli: &Cli) -> anyhow::Result<Host> {
        let path = cli.config.clone().unwrap_or_else(|| PathBuf::from("tools.toml"));
        Ok(Host { gateway: run(load(&path)?), source: Source::File(path) })
    }

    /// The same, but with a demo where there is no `tools.toml` and none was asked for.
    pub fn start_or_demo(cli: &Cli) -> anyhow::Result<Host> {
        if cli.config.is_none() && !Path::new("tools.toml").exists() {
            return Ok(Host { gateway: run(demo::settings()?), source: Source::Demo });
        }
        Host::start(cli)
    }
}

fn load(path: &Path) -> Result<Settings, Misuse> {
    let environment = |name: &str| std::env::var(name).ok();
    let config = config::load(path, &environment).map_err(|faults| {
        let lines: Vec<_> = faults.iter().map(ToString::to_string).collect();
        Misuse(format!("bad configuration\n{}", lines.join("\n")))
    })?;
    let member =
        |server: config::Server| Member { namespace: server.namespace, upstream: server.settings };
    Ok(Settings {
        upstreams: config.servers.into_iter().map(member).collect(),
        rules: config.rules,
        surface: config.surface,
    })
}

fn run(settings: Settings) -> Gateway {
    // Our own binary is the guard; by this path even when it was replaced meanwhile.
    Gateway::start(settings, &Spawner::new("/proc/self/exe"))
}

/// A token that is cancelled by SIGINT and SIGTERM; a second signal ends the process at once.
pub fn stop_on_signals() -> std::io::Result<CancellationToken> {
    let stop = CancellationToken::new();
    let stopped = stop.clone();
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    tokio::spawn(async move {
        loop {
            let code = tokio::select! {
                _ = interrupt.recv() => 130,
                _ = terminate.recv() => 143,
            };
            if stopped.is_cancelled() {
                std::process::exit(code);
            }
            stopped.cancel();
        }
    });
    Ok(stop)
}
