//! `toolman manager`, and what people do about what models have written.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

#[derive(Debug, Args)]
#[command(
    after_help = "The core is at CORE_URL [default: where one was served last on this machine, or \
    http://127.0.0.1:8000]. It is shown CORE_TOKEN or else BEARER_TOKEN, and MANAGER_INTERNAL_TOKEN; where they are \
    not set, the tokens that lie in the data directory."
)]
pub struct Manager {
    /// The address to serve on [default: 127.0.0.1 and `MANAGER_PORT`, or 8001]
    #[arg(long, value_name = "ADDR:PORT")]
    pub listen: Option<SocketAddr>,

    /// A file with the token that clients must show [default: `BEARER_TOKEN`, or a generated one]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,

    /// A file with the token that the core is shown [default: `CORE_TOKEN`, or what clients show here]
    #[arg(long, value_name = "FILE")]
    pub core_token_file: Option<PathBuf>,

    /// Whether a person must approve what models write [default: `approval` of `[dock]`, or required]
    #[arg(long, value_enum, env = "TOOL_APPROVAL")]
    pub approval: Option<Approval>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub enum Approval {
    Auto,
    Required,
}

impl From<Approval> for config::dock::Approval {
    fn from(approval: Approval) -> Self {
        match approval {
            Approval::Auto => config::dock::Approval::Auto,
            Approval::Required => config::dock::Approval::Required,
        }
    }
}

#[derive(Debug, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub struct Approve {
    /// The file, as `NAMESPACE/FILE`, or the server, as `servers/NAME` [default: all that wait, one after another]
    pub file: Option<String>,
    /// List what waits, and change nothing
    #[arg(long, conflicts_with_all = ["reject", "yes"])]
    pub list: bool,
    /// Throw it away instead
    #[arg(long)]
    pub reject: bool,
    /// Do not ask
    #[arg(long)]
    pub yes: bool,
    /// Print JSON; with `--list` only
    #[arg(long, requires = "list")]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct History {
    pub namespace: String,
    /// The file of tools, such as `issues.py`
    pub file: String,
    /// Print JSON
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Args)]
pub struct Revert {
    pub namespace: String,
    /// The file of tools, such as `issues.py`
    pub file: String,
    /// A number that `toolman tool-history` shows [default: the version before the present one]
    pub version: Option<u64>,
}
