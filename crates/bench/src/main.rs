//! The benchmark of MCP gateways: upstreams, anchors, load and counting, in one binary.
//!
//! `cargo xtask bench` runs all of it. Here only the command line is read.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads this program's output in a terminal"
)]

mod callgrind;
mod contestant;
mod count;
mod door;
mod figures;
mod gate;
mod ids;
mod layout;
mod limit;
mod limits;
mod load;
mod offer;
mod process;
mod run;
mod upstream;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::{Parser, Subcommand};
use rustix::process::{Resource, getrlimit, setrlimit};

use crate::callgrind::Profile;
use crate::contestant::Contestant;
use crate::contestant::peer::Peer;
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
    /// Write down which functions a start and a call run; `cargo xtask layout` runs it
    Layout {
        #[arg(long, default_value = "target/gate/toolman")]
        toolman: PathBuf,
        #[arg(long, default_value = "crates/toolman/layout.txt")]
        file: PathBuf,
    },
    /// Measure all gateways at all works; `cargo xtask bench` runs it
    Run(Run),
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

#[derive(Debug, clap::Args)]
struct Run {
    #[arg(long, default_value = "target/gate/toolman")]
    toolman: PathBuf,
    /// A further gateway: `agentgateway=/path`, or `name=command {port} {upstream}`
    #[arg(long = "peer", value_name = "NAME=COMMAND")]
    peers: Vec<Peer>,
    /// Rounds of each work
    #[arg(long, default_value_t = 5)]
    rounds: usize,
    /// Seconds of each round
    #[arg(long, default_value_t = 1.0)]
    seconds: f64,
    /// The letters of the works to do, such as `ab`; `s` are the counts [default: all]
    #[arg(long, default_value = "")]
    only: String,
    /// Leave out the peers that are installed
    #[arg(long)]
    alone: bool,
    /// Where the results are saved
    #[arg(long, default_value = "target/bench")]
    out: PathBuf,
}

fn main() -> ExitCode {
    match run_command(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("error: {problem:#}");
            ExitCode::FAILURE
        }
    }
}

fn run_command(command: Command) -> anyhow::Result<()> {
    match command {
        Command::UpstreamHttp { tools, port } => upstream::serve_http(tools, port),
        Command::UpstreamStdio { tools } => upstream::serve_stdio(tools),
        Command::LimitHttp { upstream, port } => limit::serve_http(&upstream, port),
        Command::LimitStdio { port, command } => limit::serve_stdio(&command, port),
        Command::Load(load) => run_load(load),
        Command::Run(run) => run_all(run),
        Command::Layout { toolman, file } => layout::write(&absolute(&toolman)?, &file),
        Command::Gate { toolman, baseline } => gate::run(&absolute(&toolman)?, &baseline),
        Command::Count { toolman, json: true, routes, .. } => {
            let toolman = Contestant::Toolman(absolute(&toolman)?);
            for route in routes {
                let count = Count::of(&count::instructions(&toolman, route)?);
                println!("{}", serde_json::to_string(&count)?);
            }
            Ok(())
        }
        Command::Count { toolman, top, routes, .. } => {
            let toolman = Contestant::Toolman(absolute(&toolman)?);
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

fn run_all(run: Run) -> anyhow::Result<()> {
    anyhow::ensure!(run.rounds > 0, "at least one round must be made");
    // A thousand sessions are a thousand open files, here and in every gateway.
    let mut files = getrlimit(Resource::Nofile);
    files.current = files.maximum;
    setrlimit(Resource::Nofile, files).context("can't have as many open files as allowed")?;
    let installed = if run.alone { Vec::new() } else { Peer::installed(&std::env::current_dir()?) };
    let mut contestants =
        vec![Contestant::Direct, Contestant::Limit, Contestant::Toolman(absolute(&run.toolman)?)];
    contestants.extend(installed.into_iter().chain(run.peers).map(Contestant::Peer));
    run::run(&run::Settings {
        contestants,
        rounds: run.rounds,
        round: Duration::try_from_secs_f64(run.seconds)?,
        only: run.only.chars().collect(),
        out: run.out,
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

fn show_count(toolman: &Contestant, route: Route, top: usize) -> anyhow::Result<()> {
    let cost = count::instructions(toolman, route)?;
    let name = route.name();
    show_profile(&format!("{name}: {:.0} instructions a call", cost.way.total()), &cost.way, top);
    if cost.trail.total() > 0.0 {
        let title = format!("{name}: {:.0} more in the audit trail", cost.trail.total());
        show_profile(&title, &cost.trail, top);
    }
    Ok(())
}

fn show_profile(title: &str, profile: &Profile, top: usize) {
    println!("{title}");
    let mut crates: Vec<_> = profile.by_crate().into_iter().collect();
    crates.sort_by(|a, b| b.1.total_cmp(&a.1));
    for (name, cost) in crates {
        println!("  {cost:>8.0}  {name}");
    }
    println!("  heaviest functions:");
    for (name, cost) in profile.heaviest(top) {
        println!("  {cost:>8.0}  {}", name.chars().take(140).collect::<String>());
    }
}
