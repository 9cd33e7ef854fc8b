//! Who is measured: Toolman, its anchors, and the peers that are installed.
//!
//! `peer` knows how each of the others is started.

pub mod peer;

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;
use tempfile::TempDir;

use crate::load::request::Dialect;
use crate::load::{self, Door};
use crate::process::Process;
use peer::Peer;

/// What clients must show.
pub const TOKEN: &str = "bench-token-0123456789abcdef0123456789abcdef";

/// What lies behind a gateway.
#[derive(Clone, Debug)]
pub struct Scene {
    pub upstreams: Vec<Upstream>,
    pub dialect: Dialect,
    /// Policies of Toolman, if any.
    pub rules: String,
}

#[derive(Clone, Debug)]
pub enum Upstream {
    Http { port: u16 },
    Stdio { command: Vec<String> },
}

/// A gateway, or none.
#[derive(Clone, Debug)]
pub enum Contestant {
    /// The upstream itself, without a gateway.
    Direct,
    /// The anchor that carries bytes.
    Limit,
    Toolman(PathBuf),
    Peer(Peer),
}

/// A gateway that runs, and where to ask it.
pub struct Running {
    /// There is none for the upstream itself.
    pub process: Option<Process>,
    pub door: Door,
    /// Its configuration and what it says, removed with it.
    pub folder: TempDir,
}

impl Running {
    pub fn pid(&self) -> Option<u32> {
        self.process.as_ref().map(Process::pid)
    }

    pub fn stop(self) -> anyhow::Result<()> {
        self.process.map_or(Ok(()), Process::stop)
    }
}

impl Contestant {
    pub fn name(&self) -> &str {
        match self {
            Contestant::Direct => "direct",
            Contestant::Limit => "limit",
            Contestant::Toolman(_) => "toolman",
            Contestant::Peer(peer) => &peer.name,
        }
    }

    /// Starts it, below another program if `above` names one; `None` where it can't do that.
    pub fn start(&self, scene: &Scene, above: &[String]) -> anyhow::Result<Option<Running>> {
        match (self, scene.upstreams.as_slice()) {
            (Contestant::Direct, [Upstream::Http { port }]) => {
                let door = door(*port, scene.dialect, None, "");
                Ok(Some(Running { process: None, door, folder: TempDir::new()? }))
            }
            (Contestant::Limit, [upstream]) => start_limit(scene, upstream, above).map(Some),
            (Contestant::Direct | Contestant::Limit, _) => Ok(None),
            (Contestant::Toolman(binary), _) => {
                start_toolman(binary, scene, "filter", above).map(Some)
            }
            (Contestant::Peer(peer), _) => peer.start(scene, above),
        }
    }
}

fn start_limit(scene: &Scene, upstream: &Upstream, above: &[String]) -> anyhow::Result<Running> {
    let mut command = below(above, &own_binary()?);
    match upstream {
        Upstream::Http { port } => {
            command.args(["limit-http", "--upstream", &format!("http://127.0.0.1:{port}")])
        }
        Upstream::Stdio { command: child } => command.args(["limit-stdio", "--"]).args(child),
    };
    let (process, port) = Process::with_port(&mut command)?;
    let door = door(port, scene.dialect, None, "");
    Ok(Running { process: Some(process), door, folder: TempDir::new()? })
}

/// Starts Toolman over HTTP and waits until it serves.
pub fn start_toolman(
    binary: &Path,
    scene: &Scene,
    surface: &str,
    above: &[String],
) -> anyhow::Result<Running> {
    let running = start_toolman_in(folder(scene, surface)?, binary, above)?;
    Ok(Running { door: Door { dialect: scene.dialect, ..running.door }, ..running })
}

/// Starts Toolman over HTTP with the configuration that a folder has, and waits until it serves.
pub fn start_toolman_in(
    folder: TempDir,
    binary: &Path,
    above: &[String],
) -> anyhow::Result<Running> {
    let port = free_port()?;
    let mut command = below(above, binary);
    command
        .args(["serve", "--listen", &format!("127.0.0.1:{port}")])
        .current_dir(folder.path())
        .env("BEARER_TOKEN", TOKEN);
    let (process, _) = Process::with_line(quiet(&mut command, folder.path()))?;
    let door = door(port, Dialect::Legacy, Some(TOKEN), "s0_");
    Ok(Running { process: Some(process), door, folder })
}

/// Starts Toolman as a client does: it talks on stdin and stdout.
pub fn start_toolman_on_pipes(
    binary: &Path,
    scene: &Scene,
    above: &[String],
) -> anyhow::Result<(Process, Running)> {
    let folder = folder(scene, "filter")?;
    let mut command = below(above, binary);
    command.current_dir(folder.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
    let process = Process::start(quiet(&mut command, folder.path()))?;
    Ok((process, Running { process: None, door: door(0, scene.dialect, None, "s0_"), folder }))
}

/// A door of this machine.
fn door(port: u16, dialect: Dialect, token: Option<&str>, prefix: &str) -> Door {
    Door {
        address: SocketAddr::from((Ipv4Addr::LOCALHOST, port)),
        path: "/mcp".to_owned(),
        dialect,
        token: token.map(str::to_owned),
        prefix: prefix.to_owned(),
    }
}

/// Keeps the configuration of the developer's machine out of the measurement.
fn quiet<'c>(command: &'c mut Command, folder: &Path) -> &'c mut Command {
    for variable in ["TOOLMAN_CONFIG", "TOOLMAN_LOG", "RUST_LOG", "AGENT_NAME"] {
        command.env_remove(variable);
    }
    command.env("DATA_DIR", folder.join("data"))
}

/// A folder with the configuration of Toolman for a scene.
pub fn folder(scene: &Scene, surface: &str) -> anyhow::Result<TempDir> {
    let folder = TempDir::new().context("can't make a temporary folder")?;
    let rules = &scene.rules;
    // On pipes, too, every call goes into the audit trail.
    let mut text = format!("surface = \"{surface}\"\n[audit]\nenabled = true\n{rules}");
    for (number, upstream) in scene.upstreams.iter().enumerate() {
        text += &format!("\n[[servers]]\nnamespace = \"s{number}\"\n");
        match upstream {
            Upstream::Http { port } => {
                // Equal eras on both sides: what is measured is a call, not a translation.
                let era = if scene.dialect == Dialect::Modern { "modern" } else { "legacy" };
                text += &format!("url = \"http://127.0.0.1:{port}/mcp\"\nera = \"{era}\"\n");
            }
            Upstream::Stdio { command } => {
                let quoted: Vec<String> = command.iter().map(|word| format!("{word:?}")).collect();
                let (program, arguments) = quoted.split_first().context("an empty command")?;
                text += &format!("command = {program}\nargs = [{}]\n", arguments.join(", "));
            }
        }
    }
    std::fs::write(folder.path().join("tools.toml"), text)?;
    Ok(folder)
}

/// The program itself, or another one that runs it.
pub fn below(above: &[String], program: &Path) -> Command {
    match above {
        [] => Command::new(program),
        [first, rest @ ..] => {
            let mut command = Command::new(first);
            command.args(rest).arg(program);
            command
        }
    }
}

/// This program, to be started as an upstream or an anchor.
pub fn own_binary() -> anyhow::Result<PathBuf> {
    std::env::current_exe().context("can't tell where this program lies")
}

/// An upstream over HTTP with so many tools.
pub fn start_upstream(tools: usize) -> anyhow::Result<(Process, u16)> {
    let mut command = Command::new(own_binary()?);
    Process::with_port(command.args(["upstream-http", "--tools", &tools.to_string()]))
}

/// The command of an upstream over pipes with so many tools.
pub fn stdio_upstream(tools: usize) -> anyhow::Result<Upstream> {
    let binary = own_binary()?.to_string_lossy().into_owned();
    let command = vec![binary, "upstream-stdio".into(), "--tools".into(), tools.to_string()];
    Ok(Upstream::Stdio { command })
}

/// A port that is free now.
pub fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// How many requests for tools an upstream over HTTP has had.
pub fn requests_of(port: u16) -> anyhow::Result<u64> {
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let counts = load::get(address, "/counts")?;
    let counts: BTreeMap<String, u64> = serde_json::from_slice(&counts)?;
    Ok(["tools/call", "tools/list"].iter().filter_map(|method| counts.get(*method)).sum())
}
