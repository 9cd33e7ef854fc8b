//! `cargo xtask agents`: Toolman in the hands of real coding agents and client libraries.
//!
//! Here only what is needed is installed and built; `peers/agents/run.py` does the trying. It is no
//! part of `cargo xtask test`, because the agents are large and change every week.

use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Instant;

use crate::{peers, steps};

const RUN: &str = "peers/agents/run.py";

/// The page whose tables the run makes.
const PAGE: &str = "docs/clients.md";

/// How a run may end.
pub enum Ending {
    /// Whatever worked before, works.
    Well,
    /// The arguments were wrong, and it has been said what is.
    Misused,
}

/// Tries the clients that `arguments` name, or all.
pub fn agents(workspace: &Path, arguments: &[&str]) -> Result<Ending, String> {
    let is_release = arguments.contains(&"--release");
    let arguments: Vec<&str> =
        arguments.iter().copied().filter(|argument| *argument != "--release").collect();
    if arguments.iter().any(|argument| matches!(*argument, "-h" | "--help")) {
        ended(workspace, &mut run(workspace, &["--help"]))?;
        return Ok(Ending::Well);
    }
    let Some(needed) = needed(workspace, &arguments)? else {
        return Ok(Ending::Misused);
    };
    steps::peers(workspace)?;
    let started = Instant::now();
    steps::tell_installed(&peers::install_agents(workspace, &needed)?, started);
    let profile = if is_release { "release" } else { "debug" };
    steps::build_binary(workspace, is_release)?;

    let mut trying = run(workspace, &arguments);
    trying.arg("--toolman").arg(workspace.join("target").join(profile).join("toolman"));
    trying.arg("--peers").arg(workspace.join("target/peers"));
    trying.arg("--page").arg(workspace.join(PAGE));
    if ended(workspace, &mut trying)?.success() {
        Ok(Ending::Well)
    } else {
        Err(format!("something that works according to {PAGE} did not work"))
    }
}

/// The sets of peers that these clients need; `None` if the arguments are wrong.
fn needed(workspace: &Path, arguments: &[&str]) -> Result<Option<Vec<String>>, String> {
    let asking = run(workspace, arguments)
        .arg("--needs")
        .current_dir(workspace)
        .stdin(Stdio::null())
        .stderr(Stdio::inherit())
        .output()
        .map_err(unstarted)?;
    if !asking.status.success() {
        return Ok(None);
    }
    let printed = String::from_utf8_lossy(&asking.stdout);
    Ok(Some(printed.lines().map(str::to_owned).collect()))
}

fn run(workspace: &Path, arguments: &[&str]) -> Command {
    let mut python = Command::new("python3");
    python.arg(workspace.join(RUN)).args(arguments);
    python
}

fn ended(workspace: &Path, command: &mut Command) -> Result<ExitStatus, String> {
    command.current_dir(workspace).stdin(Stdio::null()).status().map_err(unstarted)
}

#[expect(clippy::needless_pass_by_value, reason = "it is passed to `map_err`")]
fn unstarted(problem: std::io::Error) -> String {
    format!("cannot run `python3`: {problem}; is it installed?")
}
