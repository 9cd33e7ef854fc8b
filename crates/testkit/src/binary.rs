//! The real binary in a folder of its own.

use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Output, Stdio};

use serde_json::json;
use tempfile::TempDir;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::client::{LineClient, PATIENCE};

/// A folder with a `tools.toml`, and the binary to run in it.
pub struct Folder {
    dir: TempDir,
    binary: PathBuf,
}

/// The binary as an MCP server over stdio.
pub struct Running {
    pub client: LineClient,
    pub child: Child,
    pub pid: u32,
    /// Reads what it logs, so that it never has to wait for a reader.
    logging: JoinHandle<String>,
}

impl Running {
    /// All that it has logged; it must have ended.
    pub async fn log(self) -> String {
        self.logging.await.unwrap()
    }

    /// How the process ended; it must do so soon.
    pub async fn ended(&mut self) -> ExitStatus {
        timeout(PATIENCE, self.child.wait()).await.expect("it ends").unwrap()
    }
}

impl Folder {
    /// `binary` is the path that cargo gives to integration tests.
    pub fn new(binary: &str) -> Folder {
        Folder { dir: TempDir::new().unwrap(), binary: binary.into() }
    }

    pub fn with_tools_toml(self, text: &str) -> Folder {
        std::fs::write(self.path().join("tools.toml"), text).unwrap();
        self
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The fake upstream as a shell command, with its arguments.
    pub fn fake(binary: &str, arguments: &str) -> String {
        format!("{} {arguments}", example(binary, "fake_upstream").display())
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.binary);
        command.args(arguments).current_dir(self.path()).kill_on_drop(true);
        command.env("XDG_DATA_HOME", self.path().join("data"));
        command.env("XDG_STATE_HOME", self.path().join("state"));
        for variable in [
            "TOOLMAN_CONFIG",
            "TOOLMAN_CONFIG_PATH",
            "TOOLMAN_PORT",
            "TOOLMAN_SERVING",
            "TOOLMAN_SERVER_URL",
            "TOOLMAN_TOKEN",
            "MCP_TOOLMAN_SERVER_URL",
            "TOOLMAN_LOG",
            "DATA_DIR",
            "BEARER_TOKEN",
            "AGENT_NAME",
            "ALLOW_INSECURE_SECRETS",
            "EDITOR",
            "SECRETS_KEY",
            "SECRETS_KEY_COMMAND",
            "SECRETS_KEY_FD",
            "SECRETS_KEY_FILE",
            "VISUAL",
            "CORE_PORT",
            "CORE_TOKEN",
            "CORE_URL",
            "CORS_ORIGINS",
            "ENABLE_FS_WATCHER",
            "ENABLE_LEGACY_MCP",
            "INTERNAL_ALLOWED_CIDRS",
            "LOG_LEVEL",
            "LOG_RETENTION_DAYS",
            "MANAGER_INTERNAL_TOKEN",
            "MANAGER_PORT",
            "TOOLDOCK_GID",
            "TOOLDOCK_UID",
            "MCP_SESSION_TTL_HOURS",
            "MCP_SUPPORTED_VERSIONS",
            "MCP_TOOLMAN_SERVER_URL",
            "MCP_WRAPPER_TIMEOUT",
            "TOOLMAN_TOKEN",
        ] {
            command.env_remove(variable);
        }
        command
    }

    /// Runs the binary to its end, without input.
    pub async fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).stdin(Stdio::null()).output().await.unwrap()
    }

    /// Starts the binary as an MCP server for an agent.
    pub async fn start_as(&self, agent: &str) -> Running {
        let mut running = Folder::start_command(self.command(&["--agent", agent]));
        running.client.initialize(json!({})).await;
        running
    }

    /// The same, where programs are looked for in a folder of this one first.
    pub async fn start_with_path(&self, agent: &str, folder: &str) -> Running {
        let mut command = self.command(&["--agent", agent]);
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{}:{path}", self.path().join(folder).display()));
        let mut running = Folder::start_command(command);
        running.client.initialize(json!({})).await;
        running
    }

    /// Starts the binary as an MCP server, before the handshake.
    pub fn start_raw(&self) -> Running {
        Folder::start_command(self.command(&[]))
    }

    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    fn start_command(mut command: Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let client = LineClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let pid = child.id().unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let logging = tokio::spawn(async move {
            let mut log = String::new();
            _ = stderr.read_to_string(&mut log).await;
            log
        });
        Running { client, child, pid, logging }
    }

    /// Starts the binary as an MCP server.
    pub async fn start(&self) -> Running {
        let mut running = self.start_raw();
        running.client.initialize(json!({})).await;
        running
    }
}

/// An example program of the package, which lies beside its binary.
pub fn example(binary: &str, name: &str) -> PathBuf {
    let example = Path::new(binary).parent().unwrap().join("examples").join(name);
    assert!(example.exists(), "{} is missing; run `cargo test -p toolman`", example.display());
    example
}
