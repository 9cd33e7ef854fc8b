//! The binary: command line and wiring.

mod check;
mod cli;
mod connect_stdio;
mod data_dir;
mod demo;
mod dock;
mod door;
mod explain;
mod handover;
mod hangup;
mod host;
mod library;
mod log;
mod manager;
mod nesting;
mod panics;
mod plan;
mod prompt;
mod reload;
mod replay;
mod report;
mod review;
mod run;
mod safe;
mod secrets;
mod serve;
mod terminal;
mod token;
mod tools;
mod toolset;
mod trail;
mod unmatched;
mod unset;
mod up;

use std::process::ExitCode;

use clap::Parser as _;
use rustix::process::{DumpableBehavior, Resource, getrlimit, set_dumpable_behavior, setrlimit};
use tracing_subscriber::EnvFilter;

use crate::cli::{Cli, Command};

fn main() -> ExitCode {
    if let Some(code) = upstream::guard::run() {
        return code;
    }
    forgo_core_dumps();
    // From the first moment on, also while the key is in the environment still.
    hide_memory();
    if let Err(problem) = handover::receive() {
        terminal::complain(&format!("toolman: {problem}"));
    }
    let cli = Cli::parse();
    panics::report();
    start_log(&cli);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let outcome = match runtime {
        Ok(runtime) => {
            let outcome = runtime.block_on(run(cli));
            // Without waiting: a thread may be reading input that never comes.
            runtime.shutdown_background();
            outcome
        }
        Err(error) => Err(anyhow::Error::from(error).context("can't start")),
    };
    let code = outcome.unwrap_or_else(|error| {
        let is_misuse = error.is::<cli::Misuse>();
        terminal::complain(&format!("toolman: {error:#}"));
        if is_misuse { 2 } else { 1 }
    });
    log::flush();
    std::process::exit(code)
}

async fn run(cli: Cli) -> anyhow::Result<i32> {
    match &cli.command {
        None => run::serve_stdio(&cli).await,
        Some(Command::Up(up)) => up::run(&cli, up).await,
        Some(Command::Serve(serve)) => serve::run(&cli, serve).await,
        Some(Command::ConnectStdio(connect)) => connect_stdio::run(&cli, connect).await,
        Some(Command::Check(check)) => check::run(&cli, check).await,
        Some(Command::Tools(tools)) => tools::run(&cli, tools).await,
        Some(Command::Toolset(toolset)) => toolset::run(&cli, toolset).await,
        Some(Command::Secrets(command)) => secrets::run(&cli, command).await,
        Some(Command::Explain(explain)) => explain::run(&cli, explain).await,
        Some(Command::Plan(plan)) => plan::run(&cli, plan).await,
        Some(Command::Token(token)) => token::run(token),
        Some(Command::Audit(audit)) => review::run(&cli, audit),
        Some(Command::Policy(policy)) => review::policy(&cli, policy),
        Some(Command::Manager(asked)) => manager::run(&cli, asked).await,
        Some(Command::Approve(approve)) => manager::review::approve(&cli, approve),
        Some(Command::ToolHistory(history)) => manager::review::history(&cli, history),
        Some(Command::Revert(revert)) => manager::review::revert(&cli, revert),
        Some(Command::New { namespace }) => dock::scaffold::run(&cli, namespace),
        Some(Command::Reload(asked)) => reload::request::run(&cli, asked).await,
        Some(Command::Logs(asked)) => dock::logs::run(&cli, asked).await,
        Some(Command::Completions { shell }) => {
            terminal::print(&cli::completions(*shell))?;
            Ok(0)
        }
    }
}

/// A core would hold the secrets of all servers, and while it is written nobody is cleaned up.
fn forgo_core_dumps() {
    let mut limit = getrlimit(Resource::Core);
    limit.current = Some(0);
    // Where it can't be set, a crash is slower, nothing else.
    _ = setrlimit(Resource::Core, limit);
}

/// Other processes of this user, such as our servers, must read neither our memory nor our environment. Only root may,
/// from here on; what even root must not see in our environment is not in it (`handover`).
fn hide_memory() {
    _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
}

/// Logs go to stderr: stdout belongs to the protocol, or to what was asked for.
fn start_log(cli: &Cli) {
    let wanted =
        EnvFilter::try_from_env("TOOLMAN_LOG").or_else(|_| EnvFilter::try_from_default_env()).ok();
    // Its report tells what is wrong with servers, once.
    let reports = matches!(cli.command, Some(Command::Check(_)));
    let quiet = || EnvFilter::new("warn,upstream=off,gateway=off,catalog=off");
    let wanted = wanted.or_else(|| reports.then(quiet));
    let is_wanted = wanted.is_some();
    let log = tracing_subscriber::fmt()
        .with_env_filter(wanted.unwrap_or_else(|| EnvFilter::new("warn")))
        .with_writer(log::Log::start)
        .with_ansi(terminal::has_colour())
        .with_filter_reloading();
    if !is_wanted {
        let handle = log.reload_handle();
        log::on_level(move |level| _ = handle.reload(EnvFilter::new(level)));
    }
    log.init();
}
