//! The command line: what can be said to the binary.

pub mod manager;
pub mod secrets;
pub mod toolset;

use std::path::PathBuf;

use clap::{Args, CommandFactory as _, Parser, Subcommand};
use clap_complete::Shell;

/// One gateway between AI agents and all their tools.
///
/// Without a command, and with a client on stdin, toolman is an MCP server over stdio: it starts
/// the servers of `tools.toml` and serves what they offer. That is how MCP clients start it.
#[derive(Debug, Parser)]
#[command(
    name = "toolman",
    version,
    after_help = "Examples:\n  \
        toolman up                          serve ./tools.toml (or a demo) on 127.0.0.1:8000\n  \
        toolman check                       start every server once and show what it offers\n  \
        toolman tools call git_status '{}'  try a tool\n\n\
        The smallest tools.toml:\n  \
        active_toolsets = [\"git_*\"]\n\n  \
        [[servers]]\n  \
        namespace = \"git\"\n  \
        command = \"uvx mcp-server-git\"\n\n\
        Set TOOLMAN_LOG=info (or debug) for more on stderr."
)]
pub struct Cli {
    /// The configuration to use instead of ./tools.toml
    #[arg(long, value_name = "FILE", global = true, env = "TOOLMAN_CONFIG")]
    pub config: Option<PathBuf>,

    /// Where toolman keeps what it writes [default: the XDG data home]
    #[arg(long, value_name = "DIR", global = true, env = "DATA_DIR")]
    pub data_dir: Option<PathBuf>,

    /// A file with the master key of the secrets [default: `secrets.key` of the data directory]
    #[arg(long, value_name = "FILE", global = true, env = "SECRETS_KEY_FILE")]
    pub key_file: Option<PathBuf>,

    /// A program that writes the master key to stdout, with its arguments; runs without a shell
    #[arg(long, value_name = "COMMAND", global = true, env = "SECRETS_KEY_COMMAND")]
    pub key_command: Option<String>,

    /// The name of the agent: whoever is on stdin, or whose calls are meant
    #[arg(long, value_name = "NAME", global = true, env = "AGENT_NAME")]
    pub agent: Option<String>,

    /// The one namespace to show on stdin
    #[arg(long, value_name = "NAME")]
    pub namespace: Option<String>,

    #[command(subcommand)]
    pub command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve on this machine over HTTP, with a token and ready-to-paste client settings
    Up(Up),
    /// Serve over HTTP, as a service: on any address, with a token of yours
    Serve(Serve),
    /// Be an MCP server over stdio that passes everything on to a gateway elsewhere
    #[command(name = "connect-stdio")]
    ConnectStdio(ConnectStdio),
    /// Start every server once and show what it offers, what it costs and what is wrong
    ///
    /// With files of Python tools: judge these, and run nothing. Ends with 1 if anything is wrong.
    Check(Check),
    /// List, inspect and call the tools of all servers
    #[command(subcommand)]
    Tools(Tools),
    /// Save, show, approve, hand on and equip toolsets
    #[command(subcommand)]
    Toolset(toolset::Toolset),
    /// Keep the secrets that servers and tools need: encrypted, and never shown
    #[command(subcommand)]
    Secrets(secrets::Secrets),
    /// Show why an agent may or may not see a tool, resource or prompt: rule by rule
    ///
    /// Ends with 1 if it is denied.
    Explain(Explain),
    /// Print the least configuration for a task, with the reason for each tool
    Plan(Plan),
    /// Make a token that proves an agent, and the lines for the configuration
    Token(Token),
    /// Read the audit trail: who has used what, and whether anybody has changed the record
    #[command(subcommand)]
    Audit(Audit),
    /// Make policies for agents
    #[command(subcommand)]
    Policy(Policy),
    /// Serve the tools by which a model makes, changes and tests tools: beside a core, in a process of its own
    Manager(manager::Manager),
    /// Look at what models have written, and put it in place
    Approve(manager::Approve),
    /// Show the versions of a file of tools, and who wrote them
    #[command(name = "tool-history")]
    ToolHistory(manager::History),
    /// Put a former version of a file of tools in place again
    Revert(manager::Revert),
    /// Make a folder of Python tools to begin with, in the data directory
    New {
        /// Lowercase letters, digits and hyphens
        namespace: String,
    },
    /// Ask a core that runs to read its folders of Python tools again
    Reload(Reload),
    /// Show what the tools of a namespace have printed
    Logs(Logs),
    /// Print completions for a shell: `toolman completions bash > …`
    Completions { shell: Shell },
}

#[derive(Debug, Args)]
pub struct Up {
    /// The address to serve on; it must be of this machine [default: 127.0.0.1:8000]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<std::net::SocketAddr>,

    /// The address of the manager [default: 127.0.0.1 and `MANAGER_PORT`, or 8001, or the next that is free]
    #[arg(long, value_name = "ADDR:PORT")]
    pub manager_listen: Option<std::net::SocketAddr>,

    /// Whether a person must approve what models write [default: `approval` of `[dock]`, or auto]
    #[arg(long, value_enum, env = "TOOL_APPROVAL")]
    pub approval: Option<manager::Approval>,
}

#[derive(Debug, Args)]
pub struct Serve {
    /// The address to serve on [default: `listen` of `[http]`, or 127.0.0.1:8000]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<std::net::SocketAddr>,

    /// A file with the token that clients must show [default: `BEARER_TOKEN`, or `token` of
    /// `[http]`, or a generated one]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// Serve HTTPS with the certificate in this PEM file, its chain included
    #[arg(long, value_name = "FILE", requires = "tls_key")]
    pub tls_cert: Option<PathBuf>,

    /// The key of the certificate, in PEM
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    pub tls_key: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "The agent's name is `--agent NAME` or AGENT_NAME. Without `--token-file`, \
    the token is in TOOLMAN_TOKEN or BEARER_TOKEN. MCP_WRAPPER_TIMEOUT is the number of seconds \
    without a sign of life after which a call is given up [default: 60]."
)]
pub struct ConnectStdio {
    /// The address of the gateway; without a path, `/mcp` is meant
    #[arg(long, value_name = "URL", env = "MCP_TOOLMAN_SERVER_URL", hide_env_values = true)]
    pub url: String,

    /// A file with the token to show
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
}

#[derive(Debug, Args)]
#[command(
    after_help = "It shows the tokens in BEARER_TOKEN and MANAGER_INTERNAL_TOKEN, or those that the core has made in its \
    data directory."
)]
pub struct Reload {
    /// The address of the core [default: where the one of this data directory was served last, or
    /// port 8000 of this machine]
    #[arg(long, value_name = "URL", env = "CORE_URL", hide_env_values = true)]
    pub url: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Logs {
    /// The namespace: the name of its folder
    pub namespace: String,

    /// Go on with what is printed from now on
    #[arg(long, short)]
    pub follow: bool,

    /// Show only this many lines, the last ones
    #[arg(long, short = 'n', value_name = "COUNT")]
    pub lines: Option<usize>,
}

#[derive(Debug, Args)]
pub struct Check {
    /// Files of Python tools, or folders of them, to be judged without running them
    #[arg(value_name = "FILE")]
    pub files: Vec<PathBuf>,

    /// Tell what a client program is shown, by the name in its `clientInfo` or that of its profile
    #[arg(long, value_name = "NAME", conflicts_with = "files")]
    pub client: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Explain {
    /// The agent, as policies name it
    pub agent: String,
    /// The tool, resource or prompt, under any of its names
    pub name: String,
    /// The address that the agent calls from, where a condition asks for it
    #[arg(long, value_name = "IP")]
    pub address: Option<std::net::IpAddr>,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "Servers and rules are taken from the configuration, if there is one; what it does not \
    expose, or calls dangerous, is left out and said so on stderr.\n\nExample:\n  \
    toolman plan --service user-api --task 'add an endpoint and test it' > toolman.json"
)]
pub struct Plan {
    /// The service that the task is about
    #[arg(long, value_name = "NAME", required_unless_present = "taskrun")]
    pub service: Option<String>,
    /// What is to be done, in words
    #[arg(long, value_name = "TEXT", required_unless_present = "taskrun")]
    pub task: Option<String>,
    /// A document with `spec.serviceName` and `spec.taskDescription`, such as a `TaskRun`
    #[arg(long, value_name = "FILE")]
    pub taskrun: Option<PathBuf>,
    /// Print JSON or TOML
    #[arg(long, value_enum, default_value = "json")]
    pub format: PlanFormat,
    /// Print a `ConfigMap` of this name, with the JSON in it
    #[arg(long, value_name = "NAME")]
    pub configmap: Option<String>,
    /// Start the planned servers instead, and tell which planned tools they do not have
    #[arg(long)]
    pub check: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub enum PlanFormat {
    Json,
    Toml,
}

#[derive(Debug, Args)]
pub struct Token {
    /// The agent that the token proves
    pub agent: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Subcommand)]
pub enum Tools {
    /// List all tools, with `*` before those that start active
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show the full definition of a tool
    Inspect { name: String },
    /// Call a tool, active or not
    Call {
        name: String,
        /// The arguments as a JSON object, or `-` to read them from stdin
        #[arg(default_value = "{}")]
        arguments: String,
        /// Print the whole result as JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Subcommand)]
pub enum Audit {
    /// Walk all files and say the first place where a record was changed, left out or put in
    ///
    /// Exit code 0 if all records hold together, 1 if not.
    Verify {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show calls, the newest last
    Show {
        #[command(flatten)]
        choice: Choice,
        /// Only what was not let through
        #[arg(long)]
        denied: bool,
        /// Show at most this many, the newest
        #[arg(long, value_name = "COUNT", default_value_t = 100,
            value_parser = clap::value_parser!(u32).range(1..=100_000))]
        limit: u32,
        /// Print the records as JSON, one a line
        #[arg(long)]
        json: bool,
    },
    /// Count calls, errors and denials, with durations and bytes
    Stats {
        #[command(flatten)]
        choice: Choice,
        /// What a row is for [default: an agent and a tool]
        #[arg(long, value_enum)]
        by: Option<StatsBy>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Which calls of the trail count.
#[derive(Debug, Args)]
pub struct Choice {
    /// Only calls of this tool, resource or prompt; a `*` at the end stands for anything
    #[arg(long, value_name = "NAME")]
    pub tool: Option<String>,

    /// Only calls since then: `30m`, `1h` or `7d` ago, or a day such as 2026-07-28
    #[arg(long, value_name = "TIME")]
    pub since: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum StatsBy {
    Agent,
    Tool,
}

#[derive(Debug, Subcommand)]
pub enum Policy {
    /// Print the least policy that allows what an agent has used with success, by the audit trail
    ///
    /// Say with `--agent NAME` which one.
    Suggest {
        /// Only what was used since then: `1h` or `7d` ago, or a day such as 2026-07-28
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Print `agent_policies` as JSON instead of TOML
        #[arg(long)]
        json: bool,
    },
    /// Replay the audit trail against a candidate file, and list what it would have denied
    ///
    /// Of what was used with success, by all agents or by the one of `--agent NAME`. Conditions are left
    /// out. Ends with 1 if anything would break.
    Test {
        /// A configuration with the policies to be tried
        candidate: PathBuf,
        /// Only what was used since then: `1h` or `7d` ago, or a day such as 2026-07-28
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// The command line or the configuration is wrong: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Misuse(pub String);

pub fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "toolman", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}
