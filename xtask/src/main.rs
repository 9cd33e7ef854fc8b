//! The chores of this repository: `cargo xtask test` and what it is made of.
//!
//! Here only the command line is read; `steps` runs the checks, `peers` installs the real MCP
//! clients and servers that the tests talk to, `tools` the programs that the gate counts with.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer reads this program's output in a terminal"
)]

mod agents;
mod peers;
mod program;
mod steps;
mod tools;

use std::env;
use std::path::Path;
use std::process::ExitCode;

const HELP: &str = "\
The chores of this repository.

Usage: cargo xtask <command>

Commands:
  test    install the test peers, then run the Python tests, fmt, clippy, all tests and the gate
  gate    count what a call costs and compare it with crates/bench/baseline.json
  layout  write crates/toolman/layout.txt anew: the functions that lie side by side in the binary
  bench   measure Toolman beside other gateways; `cargo xtask bench --help` shows the options
  agents  try real coding agents and client libraries; `cargo xtask agents --help` shows the options
  peers   install the test peers into target/peers
  help    show this text";

fn main() -> ExitCode {
    let arguments: Vec<String> =
        env::args_os().skip(1).map(|argument| argument.to_string_lossy().into_owned()).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        [] | ["help" | "--help" | "-h"] => {
            println!("{HELP}");
            return ExitCode::SUCCESS;
        }
        ["test"] => steps::test(workspace()),
        ["peers"] => steps::peers(workspace()),
        ["bench", rest @ ..] => steps::bench(workspace(), rest),
        ["agents", rest @ ..] => match agents::agents(workspace(), rest) {
            Ok(agents::Ending::Misused) => return ExitCode::from(2),
            other => other.map(drop),
        },
        ["gate"] => steps::gate(workspace()),
        ["layout"] => steps::layout(workspace()),
        ["test" | "gate" | "layout" | "peers", extra, ..] => {
            return misused(&format!("unexpected argument `{extra}`"));
        }
        [unknown, ..] => return misused(&format!("no command is named `{unknown}`")),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn misused(problem: &str) -> ExitCode {
    eprintln!("error: {problem}; run `cargo xtask --help` to see the commands");
    ExitCode::from(2)
}

/// The root of the workspace, wherever the command was given.
fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the xtask crate lies in the workspace")
}
