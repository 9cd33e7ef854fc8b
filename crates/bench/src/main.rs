//! The benchmark of MCP gateways: upstreams, anchors, load and counting, in one binary.
//!
//! `cargo xtask bench` runs all of it. Here only the command line is read.

#![expect(clippy::print_stdout, reason = "a developer reads this program's output in a terminal")]

mod callgrind;
mod contestant;
mod count;
mod door;
mod figures;
mod gate;
mod ids;
mod limit;
mod limits;
mod load;
mod offer;
mod process;
mod upstream;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};

use crate::count::Route;
use crate::gate::baseline::Count;
use crate::load::request::Dialect;
use crate::load::{Door, Question, Until};

#[derive(Debug, Parser)]
#[command(name = "bench", about = "The benchmark of MCP gateways; `cargo xtask bench` runs it")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// An MCP server over HTTP, of both eras; it prints its port
    UpstreamHttp {
        #[arg(long, default_value_t = 2)]
        tools: usize,
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// An MCP server on stdin and stdout
    UpstreamStdio {
        #[arg(long, default_value_t = 2)]
        tools: usize,
    },
    /// The anchor for HTTP upstreams: a proxy that carries bytes; it prints its port
    LimitHttp {
        #[arg(long)]
        upstream: hyper::Uri,
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// The anchor for stdio upstreams: a bridge that replaces ids; it prints its port
    LimitStdio {
        #[arg(long, default_value_t = 0)]
        port: u16,
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Ask a server again and again, check every answer, and print figures as JSON
    Load(Load),
    /// Count the instructions of a call with callgrind
    Count {
        /// The binary to count in; build it with `cargo build --profile gate -p toolman`
        #[arg(long, default_value = "target/gate/toolman")]
        toolman: PathBuf,
        /// How many of the heaviest functions are shown
        #[arg(long, default_value_t = 25)]
        top: usize,
        /// Print JSON, of one route
        #[arg(long)]
        json: bool,
        /// The routes to count [default: all]
        routes: Vec<Route>,
    },
    /// Hold the counts of all routes to what they were; `cargo xtask gate` runs it
    Gate {
        #[arg(long, default_value = "target/gate/toolman")]
        toolman: PathBuf,
        #[arg(long, default_value = "crates/bench/baseline.json")]
        baseline: PathBuf,
    },
}

#[derive(Debug, clap::Args)]
struct Load {
    #[arg(long)]
    address: SocketAddr,
    #[arg(long, default_value = "/mcp")]
    path: String,
    #[arg(long, value_enum, default_value_t = Dialect::Legacy)]
    era: Dialect,
    #[arg(long)]
    token: Option<String>,
    /// The tool to call; without it, tools are listed
    #[arg(long)]
    tool: Option<String>,
    /// The size of the result, for the tool `big`
    #[arg(long, default_value_t = 0)]
    bytes: usize,
    #[arg(long, default_value_t = 1)]
    connections: usize,
    /// Stop after so many requests, not after a time
    #[arg(long)]
    requests: Option<u64>,
    #[arg(long, default_value_t = 2.0)]
    seconds: f64,
}

fn main() -> anyhow::Result<()> {
    match Cli::parse().command {
        Command::UpstreamHttp { tools, port } => upstream::serve_http(tools, port),
        Command::UpstreamStdio { tools } => upstream::serve_stdio(tools),
        Command::LimitHttp { upstream, port } => limit::serve_http(&upstream, port),
        Command::LimitStdio { port, command } => limit::serve_stdio(&command, port),
        Command::Load(load) => run_load(load),
        Command::Gate { toolman, baseline } => gate::run(&absolute(&toolman)?, &baseline),
        Command::Count { toolman, json: true, routes, .. } => {
            let toolman = absolute(&toolman)?;
            for route in routes {
                let count = Count::of(&count::instructions(&toolman, route)?);
                println!("{}", serde_json::to_string(&count)?);
            }
            Ok(())
        }
        Command::Count { toolman, top, routes, .. } => {
            let toolman = absolute(&toolman)?;
            let routes = if routes.is_empty() { Route::ALL.to_vec() } else { routes };
            for route in routes {
                show_count(&toolman, route, top)?;
            }
            Ok(())
        }
    }
}

/// Gateways run in folders of their own, where a relative path means nothing.
fn absolute(program: &Path) -> anyhow::Result<PathBuf> {
    program.canonicalize().with_context(|| {
        let build = "build it with `cargo build --profile gate -p toolman`";
        format!("there is no {}; {build}", program.display())
    })
}

fn run_load(load: Load) -> anyhow::Result<()> {
    let door = Door {
        address: load.address,
        path: load.path,
        dialect: load.era,
        token: load.token,
        prefix: String::new(),
    };
    let question = match load.tool {
        Some(tool) => Question::Call { tool, bytes: load.bytes },
        None => Question::List { tools: 0 },
    };
    let until = match load.requests {
        Some(requests) => Until::Asked(requests),
        None => Until::Elapsed(Duration::try_from_secs_f64(load.seconds)?),
    };
    let report = load::run(&door, &question, load.connections, until)?;
    println!("{}", serde_json::to_string(&report)?);
    Ok(())
}

fn show_count(toolman: &Path, route: Route, top: usize) -> anyhow::Result<()> {
    let profile = count::instructions(toolman, route)?;
    println!("{}: {:.0} instructions a call", route.name(), profile.total());
    let mut crates: Vec<_> = profile.by_crate().into_iter().collect();
    crates.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (name, cost) in crates {
        println!("  {cost:>8.0}  {name}");
    }
    println!("  heaviest functions:");
    for (name, cost) in profile.heaviest(top) {
        println!("  {cost:>8.0}  {}", name.chars().take(140).collect::<String>());
    }
    Ok(())
}
