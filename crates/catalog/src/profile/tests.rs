//! Who is recognised, and what corrects a profile.

use std::time::Duration;

use mcp::names::UriStyle;

use super::{Change, Lists, Override, Profiles, Reads};

fn profiles(pattern: &str, change: Change) -> Profiles {
    Profiles { overrides: [Override::new(pattern, change).unwrap()].into(), ..Profiles::default() }
}

#[track_caller]
fn check(client: &str, name: &str, lists: Lists, reads: Reads) {
    let profile = Profiles::default().of(client, "1");
    assert_eq!((&*profile.name, profile.lists, profile.reads), (name, lists, reads), "{client}");
}

#[test]
fn programs_are_recognised_by_patterns_of_their_names() {
    check("codex-mcp-client", "codex", Lists::Once, Reads::Structured);
    check("codex", "codex", Lists::Once, Reads::Structured);
    check("claude-code", "claude-code", Lists::Late, Reads::Structured);
    check("qwen-cli-mcp-client-tools", "qwen-code", Lists::Once, Reads::Everything);
    check("Visual Studio Code - Insiders", "vscode", Lists::AtOnce, Reads::Everything);
    check("copilot-cli", "copilot-cli", Lists::AtOnce, Reads::Both);
    check("mcp", "python-sdk", Lists::Once, Reads::FirstBlock);
    check("langchain", "python-sdk", Lists::Once, Reads::FirstBlock);
    check("fastmcp", "fastmcp", Lists::Once, Reads::Structured);
    check("inspector-cli", "inspector-cli", Lists::Unknown, Reads::Everything);
    check("opencode (via mcp-remote 0.1.37)", "opencode", Lists::Late, Reads::Everything);
    check("somebody", "unknown", Lists::Unknown, Reads::Everything);
    assert_eq!(Profiles::default().of("mcp", "0.1.0").naming.uri_style, UriStyle::Rfc);
}

#[test]
fn clients_that_never_list_again_are_not_waited_for() {
    let wait = |client| Profiles::default().of(client, "1").reply_wait;
    assert_eq!(wait("codex-mcp-client"), Duration::ZERO);
    assert_eq!(wait("somebody"), Duration::from_millis(100));
    assert!(wait("claude-code") > wait("somebody"));
}

#[test]
fn operator_counts_more_than_what_was_observed_and_that_more_than_the_table() {
    let change = Change { lists: Some(Lists::AtOnce), ..Change::default() };
    let profiles = profiles("codex*", change);
    let corrected = |client| profiles.corrected(client, "1", |profile| profile.lists = Lists::Once);
    assert_eq!(corrected("codex-mcp-client").lists, Lists::AtOnce);
    assert_eq!(corrected("opencode").lists, Lists::Once);
    assert!(Override::new("[", Change::default()).is_none());
}
