//! The command line of xtask: what a developer sees who mistypes.

use std::process::{Command, Output};

fn xtask(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_xtask")).args(arguments).output().expect("xtask runs")
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).expect("xtask prints UTF-8")
}

#[test]
fn without_a_command_the_commands_are_listed() {
    for arguments in [&[][..], &["--help"], &["-h"], &["help"]] {
        let output = xtask(arguments);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("  peers   install the test peers"));
    }
}

#[test]
fn unknown_command_is_wrong_use_and_points_at_the_help() {
    let output = xtask(&["tset"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: no command is named `tset`; run `cargo xtask --help` to see the commands\n"
    );
}

#[test]
fn extra_argument_is_wrong_use_and_nothing_is_run() {
    let output = xtask(&["peers", "--now"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        text(&output.stderr),
        "error: unexpected argument `--now`; run `cargo xtask --help` to see the commands\n"
    );
}

#[test]
fn unknown_agent_is_wrong_use_and_nothing_is_installed() {
    let output = xtask(&["agents", "codx"]);
    assert_eq!(output.status.code(), Some(2));
    let said = text(&output.stderr);
    assert!(said.starts_with("error: no client is named codx; there are: codex, "), "{said}");
}
