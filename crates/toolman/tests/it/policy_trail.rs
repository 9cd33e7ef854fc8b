//! Policies and the audit trail: what was denied is on record, and what was used makes a policy.

use serde_json::{Value, json};
use testkit::binary::Folder;

use crate::{TOOLMAN, example, fake, folder};

const RULES: &str = "surface = \"filter\"\n[audit]\n[exposed_tools]\ngit = [\"echo\", \"tree\"]\n\
    [security_settings]\nrequire_confirmation = [\"git:tree\"]\n";

/// Lets an agent call these tools, then leave.
async fn calls_of(folder: &Folder, agent: &str, tools: &[&str]) {
    let mut running = folder.start_as(agent).await;
    for tool in tools {
        running.client.call(tool, json!({"x": 1})).await;
    }
    running.client.close().await;
    running.ended().await;
}

async fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(arguments).await;
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[tokio::test]
async fn what_was_denied_is_on_record_with_its_rule_and_unknown_to_the_client() {
    // TF-25, TF-48
    let folder = folder(RULES, &[("git", "echo fail tree")]);
    calls_of(&folder, "dev", &["git_echo", "git:fail", "nothing", "git_tree"]).await;
    let (_, shown) = run(&folder, &["audit", "show", "--json"]).await;
    let calls: Vec<Value> = shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told = |at: usize, member: &str| calls[at][member].as_str().unwrap_or("-").to_owned();
    let decisions: Vec<_> = (0..4).map(|at| told(at, "decision")).collect();
    assert_eq!(decisions, ["allowed", "denied", "unknown", "denied"], "{shown}");
    assert_eq!(told(1, "rule"), "`tools.toml:4 exposed_tools.git` does not have it: denied");
    assert_eq!(told(1, "upstream"), "git");
    assert!(told(1, "error").starts_with("no tool is named `git:fail`"), "{shown}");
    assert!(told(3, "error").contains("needs the consent of a person"), "{shown}");
    let (_, denied) = run(&folder, &["audit", "show", "--denied", "--json"]).await;
    assert_eq!(denied.lines().count(), 3, "{denied}");
}

#[tokio::test]
async fn policy_is_suggested_by_use_and_tried_on_it() {
    // TF-52
    let folder = folder("surface = \"filter\"\n[audit]\n", &[("git", "echo fail tree")]);
    calls_of(&folder, "dev", &["git_echo", "git_tree", "git_echo", "git_fail"]).await;
    calls_of(&folder, "ops", &["git_tree"]).await;
    let (code, suggested) = run(&folder, &["policy", "suggest", "--agent", "dev"]).await;
    assert_eq!(code, Some(0), "{suggested}");
    let server = format!("[[servers]]\nnamespace = \"git\"\ncommand = \"{}\"\n", fake("echo tree"));
    let candidate = folder.path().join("candidate.toml");
    std::fs::write(&candidate, format!("surface = \"filter\"\n{server}{suggested}")).unwrap();
    // The policy that was suggested allows what was used, and nothing else.
    let text = std::fs::read_to_string(&candidate).unwrap();
    let mut dev = Folder::new(TOOLMAN).with_tools_toml(&text).start_as("dev").await;
    assert_eq!(dev.client.tool_names().await, ["git_echo", "git_tree"]);
    let (code, said) = run(&folder, &["policy", "test", "candidate.toml", "--agent", "dev"]).await;
    let (fine, words) = (Some(0), "0 of 3 calls would be denied by candidate.toml\n");
    assert_eq!((code, said.as_str()), (fine, words));
    let (code, said) = run(&folder, &["policy", "test", "candidate.toml"]).await;
    assert_eq!(code, Some(1), "{said}");
    let loss = "agent `ops` would lose `git_tree` (1 calls): no list is about it, and \
        `default_policy.allow_unknown_tools` is false: denied";
    assert!(said.contains(loss), "{said}");
    assert!(said.contains("1 of 4 calls would be denied"), "{said}");
    let (code, said) = run(&folder, &["policy", "test", "none.toml"]).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("none.toml: no such file"), "{said}");
}

#[tokio::test]
async fn settings_of_the_file_switch_the_trail_and_the_log_on() {
    // TF-09
    let folder = Folder::new(TOOLMAN);
    let command = example("fake_upstream");
    let text = json!({"servers": {"git": {"command": command, "args": ["echo"]}},
        "security_settings": {"audit_all_calls": true, "log_level": "info"}});
    std::fs::write(folder.path().join("toolman.json"), text.to_string()).unwrap();
    let mut running = folder.start_as("dev").await;
    running.client.call("git_echo", json!({})).await;
    running.client.close().await;
    running.ended().await;
    let log = running.log().await;
    assert!(log.contains("connected") && log.contains("dev"), "{log}");
    let (_, shown) = run(&folder, &["audit", "show", "--json"]).await;
    assert_eq!(
        shown.lines().filter(|line| line.contains("\"asked\":\"git_echo\"")).count(),
        1,
        "{shown}"
    );
}
