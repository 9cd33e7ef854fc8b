//! The other gateways: how each is started for a scene, and which scenes it can't do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::str::FromStr;
use std::time::Instant;

use anyhow::{Context as _, bail};
use tempfile::TempDir;

use super::{Running, Scene, TOKEN, Upstream, below, door, free_port};
use crate::limits::{LOOK_PAUSE, START_TIME_MAX};
use crate::load::request::Dialect;
use crate::load::{self, Question, Until};
use crate::process::Process;

/// Another gateway.
#[derive(Clone, Debug)]
pub struct Peer {
    pub name: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    /// The interpreter of its environment, and our script.
    Fastmcp(PathBuf, PathBuf),
    McpProxy(PathBuf),
    Mcpo(PathBuf),
    Agentgateway(PathBuf),
    /// A command with `{port}` and `{upstream}` in it.
    Command(String),
}

/// `name=/path`, or `name=command with {port} and {upstream}`.
impl FromStr for Peer {
    type Err = String;

    fn from_str(text: &str) -> Result<Peer, String> {
        let (name, command) =
            text.split_once('=').ok_or("write `name=/path` or `name=command {port} {upstream}`")?;
        let kind = match name {
            "agentgateway" => Kind::Agentgateway(command.into()),
            _ if command.contains("{port}") && command.contains("{upstream}") => {
                Kind::Command(command.to_owned())
            }
            _ => {
                return Err(format!("the command of `{name}` needs `{{port}}` and `{{upstream}}`"));
            }
        };
        Ok(Peer { name: name.to_owned(), kind })
    }
}

impl Peer {
    /// The peers that `cargo xtask bench` has installed.
    pub fn installed(workspace: &Path) -> Vec<Peer> {
        let home = workspace.join("target/peers");
        let script = workspace.join("peers/servers/fastmcp_proxy.py");
        let python = home.join("fastmcp/bin/python");
        let found = [
            ("fastmcp", python.clone(), Kind::Fastmcp(python, script)),
            ("mcp-proxy", home.join("mcp-proxy/bin/mcp-proxy"), {
                Kind::McpProxy(home.join("mcp-proxy/bin/mcp-proxy"))
            }),
            ("mcpo", home.join("mcpo/bin/mcpo"), Kind::Mcpo(home.join("mcpo/bin/mcpo"))),
        ];
        let there = found.into_iter().filter(|(_, program, _)| program.exists());
        there.map(|(name, _, kind)| Peer { name: name.to_owned(), kind }).collect()
    }

    /// Whether its instructions can be counted in reasonable time.
    pub fn is_native(&self) -> bool {
        matches!(self.kind, Kind::Agentgateway(_) | Kind::Command(_))
    }

    pub fn start(&self, scene: &Scene, above: &[String]) -> anyhow::Result<Option<Running>> {
        let folder = TempDir::new()?;
        let port = free_port()?;
        let Some((mut command, prefix)) = self.command(scene, port, folder.path(), above)? else {
            return Ok(None);
        };
        let log = File::create(folder.path().join("log"))?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        let process = Process::start(command.current_dir(folder.path()))?;
        let dialect =
            if matches!(self.kind, Kind::Mcpo(_)) { Dialect::Rest } else { scene.dialect };
        let mut door = door(port, dialect, Some(TOKEN), prefix);
        if dialect == Dialect::Rest {
            door.path = String::from("/");
        }
        let mut running = Running { process: Some(process), door, folder };
        self.wait_for(&mut running)?;
        Ok(Some(running))
    }

    /// The command, and what it puts before the names of tools.
    fn command(
        &self,
        scene: &Scene,
        port: u16,
        folder: &Path,
        above: &[String],
    ) -> anyhow::Result<Option<(Command, &'static str)>> {
        let number = port.to_string();
        let is_legacy = scene.dialect == Dialect::Legacy;
        let prefix = if scene.upstreams.len() == 1 { "" } else { "s0_" };
        let made = match (&self.kind, scene.upstreams.as_slice()) {
            (Kind::Fastmcp(python, script), upstreams) => {
                let config = folder.join("mcp.json");
                fs::write(&config, client_config(upstreams).to_string())?;
                let mut command = below(above, python);
                command.arg(script).args([&number, TOKEN]).arg(config);
                (command, prefix)
            }
            (Kind::McpProxy(binary), [Upstream::Stdio { command: child }]) if is_legacy => {
                let mut command = below(above, binary);
                command.args(["--host", "127.0.0.1", "--port", &number, "--log-level", "ERROR"]);
                command.arg("--").args(child);
                (command, "")
            }
            (Kind::Mcpo(binary), [upstream]) if is_legacy => {
                let mut command = below(above, binary);
                command.args(["--host", "127.0.0.1", "--port", &number, "--api-key", TOKEN]);
                command.args(["--log-level", "ERROR"]);
                match upstream {
                    Upstream::Http { port } => command
                        .args(["--server-type", "streamable-http", "--"])
                        .arg(format!("http://127.0.0.1:{port}/mcp")),
                    Upstream::Stdio { command: child } => command.arg("--").args(child),
                };
                (command, "")
            }
            (Kind::Agentgateway(binary), upstreams) => {
                let config = folder.join("config.yaml");
                fs::write(&config, agentgateway_config(port, upstreams).to_string())?;
                let mut command = below(above, binary);
                command.arg("--file").arg(config);
                (command, prefix)
            }
            (Kind::Command(text), [Upstream::Http { port }]) => {
                let upstream = format!("http://127.0.0.1:{port}/mcp");
                let text = text.replace("{port}", &number).replace("{upstream}", &upstream);
                let mut words = text.split_ascii_whitespace();
                let program = words.next().context("the command of a peer is empty")?;
                let mut command = below(above, Path::new(program));
                command.args(words);
                (command, "")
            }
            _ => return Ok(None),
        };
        Ok(Some(made))
    }

    /// Waits until a call is answered: that it listens says little of a gateway.
    fn wait_for(&self, running: &mut Running) -> anyhow::Result<()> {
        let question = Question::Call { tool: "echo".to_owned(), bytes: 0 };
        let started = Instant::now();
        loop {
            let asked = load::run(&running.door, &question, 1, Until::Asked(1));
            let complaint = match asked {
                Ok(report) if report.answers == 1 => return Ok(()),
                Ok(report) => report.complaint.unwrap_or_default(),
                Err(problem) => format!("{problem:#}"),
            };
            let ended = running.process.as_mut().map_or(Ok(()), Process::check);
            if ended.is_err() || started.elapsed() > START_TIME_MAX / 4 {
                let log = fs::read_to_string(running.folder.path().join("log")).unwrap_or_default();
                let last = log.lines().rev().find(|line| !line.trim().is_empty());
                let last = last.unwrap_or("nothing").trim();
                bail!("`{}` does not serve: {complaint}; it said last: {last}", self.name);
            }
            std::thread::sleep(LOOK_PAUSE / 4);
        }
    }
}

/// The configuration of servers that most MCP clients understand.
fn client_config(upstreams: &[Upstream]) -> serde_json::Value {
    let server = |(number, upstream): (usize, &Upstream)| {
        let server = match upstream {
            Upstream::Http { port } => {
                serde_json::json!({"url": format!("http://127.0.0.1:{port}/mcp"), "transport": "http"})
            }
            Upstream::Stdio { command } => {
                serde_json::json!({"command": command[0], "args": command[1..]})
            }
        };
        (format!("s{number}"), server)
    };
    let servers: serde_json::Map<_, _> = upstreams.iter().enumerate().map(server).collect();
    serde_json::json!({"mcpServers": servers})
}

/// JSON is YAML as well.
fn agentgateway_config(port: u16, upstreams: &[Upstream]) -> serde_json::Value {
    let target = |(number, upstream): (usize, &Upstream)| {
        let name = format!("s{number}");
        match upstream {
            Upstream::Http { port } => {
                serde_json::json!({"name": name, "mcp": {"host": format!("http://127.0.0.1:{port}/mcp")}})
            }
            Upstream::Stdio { command } => {
                serde_json::json!({"name": name, "stdio": {"cmd": command[0], "args": command[1..]}})
            }
        }
    };
    let targets: Vec<_> = upstreams.iter().enumerate().map(target).collect();
    let policies = serde_json::json!({"apiKey": {"mode": "strict", "keys": [{"key": TOKEN}]}});
    let route =
        serde_json::json!({"policies": policies, "backends": [{"mcp": {"targets": targets}}]});
    let anywhere = "127.0.0.1:0";
    serde_json::json!({
        // Its usual ports may be taken.
        "config": {"adminAddr": anywhere, "statsAddr": anywhere, "readinessAddr": anywhere},
        // By default it refuses results and lists that are part of the work.
        "frontendPolicies": {"http": {"maxBufferSize": 128 * 1024 * 1024}},
        "binds": [{"port": port, "listeners": [{"routes": [route]}]}],
    })
}

#[cfg(test)]
mod tests {
    use super::{Peer, agentgateway_config, client_config};
    use crate::contestant::Upstream;

    #[test]
    fn peer_is_a_name_and_a_command_that_knows_its_port_and_its_upstream() {
        assert_eq!("agentgateway=bin/ag".parse::<Peer>().unwrap().name, "agentgateway");
        assert_eq!("x=run {port} {upstream}".parse::<Peer>().unwrap().name, "x");
        let problem = "x=run".parse::<Peer>().unwrap_err();
        assert_eq!(problem, "the command of `x` needs `{port}` and `{upstream}`");
        assert!("x".parse::<Peer>().is_err());
    }

    #[test]
    fn configurations_name_every_upstream() {
        let stdio = Upstream::Stdio { command: vec!["a".to_owned(), "b".to_owned()] };
        let upstreams = [Upstream::Http { port: 7 }, stdio];
        let config = client_config(&upstreams);
        assert_eq!(config["mcpServers"]["s0"]["url"], "http://127.0.0.1:7/mcp");
        assert_eq!(config["mcpServers"]["s1"]["args"][0], "b");
        let config = agentgateway_config(5, &upstreams);
        let targets = &config["binds"][0]["listeners"][0]["routes"][0]["backends"][0]["mcp"];
        assert_eq!(targets["targets"][1]["stdio"]["cmd"], "a");
    }
}
