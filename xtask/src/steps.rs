//! The steps of `cargo xtask test`: each is announced, timed, and can be run alone.

use std::env;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::{peers, tools};

/// One run of cargo over the whole workspace.
struct Step<'a> {
    name: &'a str,
    arguments: &'a [&'a str],
}

const CHECKS: [Step; 3] = [
    Step { name: "fmt", arguments: &["fmt", "--all", "--check"] },
    Step {
        name: "clippy",
        arguments: &["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"],
    },
    Step { name: "test", arguments: &["test", "--workspace"] },
];

/// The tests of the files that workers run; those with real libraries are in `peers` below it.
const PYTHON_TESTS: &str = "crates/upstream/python/tests";

/// The tests of what `cargo xtask agents` runs.
const HARNESS_TESTS: &str = "peers/agents/tests";

/// Installs the peers, then runs every check, the gate last; stops at the first failure.
pub fn test(workspace: &Path) -> Result<(), String> {
    let started = Instant::now();
    peers(workspace)?;
    python(workspace)?;
    for step in &CHECKS {
        check(workspace, step)?;
    }
    gate(workspace)?;
    eprintln!("xtask: all steps passed in {}", elapsed(started));
    Ok(())
}

/// Installs the peers, or finds them installed.
pub fn peers(workspace: &Path) -> Result<(), String> {
    let started = Instant::now();
    let installed = peers::install(workspace).map_err(|problem| {
        format!("{problem}\nstep `peers` failed; run it alone with `cargo xtask peers`")
    })?;
    tell_installed(&installed, started);
    Ok(())
}

/// Runs the tests that the Python side of the dock has of itself.
fn python(workspace: &Path) -> Result<(), String> {
    let started = Instant::now();
    eprintln!("xtask: python: the tests of {PYTHON_TESTS}");
    // Discovery does not walk into `peers`, which is no package: its tests run once, with their libraries.
    unittest(workspace, PYTHON_TESTS, "")?;
    unittest(workspace, HARNESS_TESTS, "")?;
    let home = workspace.join("target/peers");
    let named = peers::DOCK.map(|(name, set)| {
        let interpreter = home.join(set).join("bin/python");
        format!("{name}={}", interpreter.display())
    });
    unittest(workspace, &format!("{PYTHON_TESTS}/peers"), &named.join(":"))?;
    eprintln!("xtask: python passed ({})", elapsed(started));
    Ok(())
}

/// Runs the Python tests of a folder; `interpreters` are those that they may ask for.
fn unittest(workspace: &Path, folder: &str, interpreters: &str) -> Result<(), String> {
    let output = Command::new("python3")
        .args(["-m", "unittest", "discover", "-s", folder])
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .env("TOOLMAN_DOCK_PYTHONS", interpreters)
        .current_dir(workspace)
        .stdin(Stdio::null())
        .output()
        .map_err(|problem| format!("cannot run `python3`: {problem}; is it installed?"))?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        [output.stdout, output.stderr].map(|said| String::from_utf8_lossy(&said).into_owned());
    let needed = if interpreters.is_empty() {
        String::new()
    } else {
        format!("TOOLMAN_DOCK_PYTHONS={interpreters} ")
    };
    Err(format!(
        "{}\nstep `python` failed; run it alone with `{needed}python3 -m unittest discover -s {folder}`",
        said.concat().trim_end()
    ))
}

pub fn tell_installed(installed: &[&str], started: Instant) {
    if installed.is_empty() {
        eprintln!("xtask: peers are up to date ({})", elapsed(started));
    } else {
        eprintln!("xtask: peers installed: {} ({})", installed.join(", "), elapsed(started));
    }
}

/// Measures Toolman beside other gateways; `arguments` are for the benchmark itself.
pub fn bench(workspace: &Path, arguments: &[&str]) -> Result<(), String> {
    let started = Instant::now();
    tell_installed(&peers::install_gateways(workspace)?, started);
    tools::install(workspace)?;
    build(workspace)?;
    run_bench(workspace, &[&["run"], arguments].concat())
}

/// Counts what a call costs and compares it with what it was.
pub fn gate(workspace: &Path) -> Result<(), String> {
    let started = Instant::now();
    tools::install(workspace)?;
    build(workspace)?;
    run_bench(workspace, &["gate"]).map_err(|problem| {
        format!("{problem}\nstep `gate` failed; run it alone with `cargo xtask gate`")
    })?;
    eprintln!("xtask: gate passed ({})", elapsed(started));
    Ok(())
}

/// Writes down anew which functions of the binary are to lie side by side.
pub fn layout(workspace: &Path) -> Result<(), String> {
    tools::install(workspace)?;
    build(workspace)?;
    run_bench(workspace, &["layout"])
}

/// Builds what is measured, as it is shipped, and what measures it.
fn build(workspace: &Path) -> Result<(), String> {
    // One by one: together, each would be built with the features that the other wants.
    check(
        workspace,
        &Step { name: "build", arguments: &["build", "--profile", "gate", "-p", "toolman"] },
    )?;
    check(
        workspace,
        &Step { name: "build", arguments: &["build", "--profile", "gate", "-p", "bench"] },
    )?;
    check(
        workspace,
        &Step {
            name: "build",
            arguments: &["build", "--profile", "gate", "-p", "mcp", "--example", "envelopes"],
        },
    )
}

/// Builds the binary as users run it, or quickly.
pub fn build_binary(workspace: &Path, is_release: bool) -> Result<(), String> {
    let arguments: &[&str] = if is_release {
        &["build", "-p", "toolman", "--release"]
    } else {
        &["build", "-p", "toolman"]
    };
    check(workspace, &Step { name: "build", arguments })
}

fn run_bench(workspace: &Path, arguments: &[&str]) -> Result<(), String> {
    let bench = workspace.join("target/gate/bench");
    let status = Command::new(&bench)
        .args(arguments)
        .current_dir(workspace)
        .status()
        .map_err(|problem| format!("cannot run {}: {problem}", bench.display()))?;
    if status.success() {
        Ok(())
    } else {
        Err("what was counted or measured is not as it must be".to_owned())
    }
}

fn check(workspace: &Path, step: &Step) -> Result<(), String> {
    let started = Instant::now();
    let typed = format!("cargo {}", step.arguments.join(" "));
    eprintln!("xtask: {}: {typed}", step.name);
    let status = cargo()
        .args(step.arguments)
        .current_dir(workspace)
        .status()
        .map_err(|problem| format!("cannot run `{typed}`: {problem}; is cargo installed?"))?;
    if !status.success() {
        return Err(format!("step `{}` failed; run it alone with `{typed}`", step.name));
    }
    eprintln!("xtask: {} passed ({})", step.name, elapsed(started));
    Ok(())
}

/// The cargo that runs this program, without what it says about this package.
///
/// Build scripts that watch those variables would otherwise run again, here and in the developer's
/// next plain `cargo test`.
fn cargo() -> Command {
    let program = env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut cargo = Command::new(program);
    for (name, _) in env::vars_os() {
        let about_package = name.to_str().is_some_and(|name| {
            name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_")
        });
        if about_package {
            cargo.env_remove(name);
        }
    }
    cargo
}

fn elapsed(since: Instant) -> String {
    format!("{:.1} s", since.elapsed().as_secs_f64())
}
