//! `toolman check`: what is wrong, what is worth knowing, and what a client pays.

use serde_json::{Value, json};
use testkit::binary::Folder;

use crate::{TOOLMAN, folder};

/// Exit code, stdout and stderr of a check.
async fn check(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = folder.run(&[&["check"], arguments].concat()).await;
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// A server that declares resources and prompts, and knows no method for the former.
const PRETENDER: &str = r#"
import json, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    if asked["method"] == "initialize":
        answer = {"result": {"protocolVersion": "2025-06-18", "serverInfo": {"name": "p", "version": "1"},
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}}}}
    elif asked["method"] == "tools/list":
        answer = {"result": {"tools": [{"name": "log", "inputSchema": {"type": "object"}}]}}
    elif asked["method"] == "prompts/list":
        answer = {"result": {"prompts": []}}
    else:
        answer = {"error": {"code": -32601, "message": "Method not found"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"#;

#[tokio::test]
async fn server_that_declares_what_it_does_not_implement_is_a_remark() {
    let folder = Folder::new(TOOLMAN)
        .with_tools_toml("[[servers]]\nnamespace = \"hub\"\ncommand = \"python3 pretender.py\"\n");
    std::fs::write(folder.path().join("pretender.py"), PRETENDER).unwrap();
    let (code, stdout, stderr) = check(&folder, &[]).await;
    assert_eq!((code, stderr.as_str()), (0, ""), "{stdout}");
    let remark = "server `hub` declares resources but does not implement it, so it has none";
    assert_eq!(stdout.matches(remark).count(), 1, "{stdout}");
    let (_, stdout, _) = check(&folder, &["--json"]).await;
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((&report["ok"], &report["servers"][0]["state"]), (&json!(true), &json!("ready")));
}

#[tokio::test]
async fn each_failure_is_told_once_and_all_are_counted() {
    let folder = folder("", &[("a", "echo log"), ("down", "--crash"), ("gone", "--crash")]);
    let (code, stdout, stderr) = check(&folder, &[]).await;
    assert_eq!(code, 1);
    assert_eq!(stderr, "", "the report says it all");
    assert_eq!(stdout.matches("server `down` ended with exit code 1").count(), 1, "{stdout}");
    assert!(stdout.contains("something is wrong, see above: 2 servers with problems"), "{stdout}");
    let total = stdout.lines().find(|line| line.trim_start().starts_with("total")).unwrap();
    let cells: Vec<_> = total.split_whitespace().collect();
    assert_eq!(cells[..4], ["total", "2", "0", "0"]);
}

#[tokio::test]
async fn last_lines_are_what_a_client_pays_with_and_without() {
    let tools: Vec<_> = (0..60).map(|number| format!("tool_{number}")).collect();
    let folder = folder("", &[("a", &tools.join(" ")), ("b", &tools.join(" "))]);
    let (code, stdout, _) = check(&folder, &[]).await;
    assert_eq!(code, 0, "{stdout}");
    let lines: Vec<_> = stdout.lines().rev().take(3).collect();
    assert_eq!(lines[2], "what the tools cost a client, in tokens:");
    assert!(lines[1].starts_with("  without Toolman ") && lines[1].contains(" 120 tools of every"));
    assert!(lines[0].starts_with("  with Toolman "), "{lines:?}");
    assert!(lines[0].contains("1 tool at the start (surface `activate`): "), "{lines:?}");
    assert!(lines[0].ends_with(" % less"), "{lines:?}");
    let (_, stdout, _) = check(&folder, &["--json"]).await;
    let cost = &serde_json::from_str::<Value>(&stdout).unwrap()["tokens"];
    let tokens = |side: &str| cost[side]["tokens_estimated"].as_u64().unwrap();
    assert!(tokens("without_toolman") > 2 * tokens("with_toolman"), "{cost}");
    assert_eq!(
        (&cost["with_toolman"]["surface"], &cost["without_toolman"]["tools"]),
        (&json!("activate"), &json!(120))
    );
    assert!(cost["saved_percent"].as_f64().unwrap() > 50.0);
}

#[tokio::test]
async fn cost_is_that_of_the_agent_and_of_the_surface() {
    let head = "surface = \"filter\"\n[agents.ci]\nallowed_tools = [\"a_echo\"]\n";
    let text = |folder: &Folder| std::fs::read_to_string(folder.path().join("tools.toml")).unwrap();
    let folder = folder("", &[("a", "echo log")]);
    let with_agent = Folder::new(TOOLMAN).with_tools_toml(&format!(
        "{}\n{}",
        "surface = \"filter\"",
        text(&folder)
    ));
    let (_, stdout, _) = check(&with_agent, &["--json"]).await;
    let cost = &serde_json::from_str::<Value>(&stdout).unwrap()["tokens"];
    assert_eq!(cost["saved_percent"], json!(0.0), "{cost}");
    let servers = text(&folder);
    let with_agent = Folder::new(TOOLMAN).with_tools_toml(&format!(
        "surface = \"filter\"\n{servers}\n{}",
        head.split_once('\n').unwrap().1
    ));
    let (code, stdout, stderr) = check(&with_agent, &["--agent", "ci", "--json"]).await;
    assert_eq!(code, 0, "{stdout}{stderr}");
    let cost = &serde_json::from_str::<Value>(&stdout).unwrap()["tokens"];
    assert_eq!(
        (&cost["with_toolman"]["tools"], &cost["saved_percent"]),
        (&json!(1), &json!(50.0)),
        "{cost}"
    );
}

/// Rules with slips of the pen beside right ones, for servers `git` and `hub`.
const SLIPS: &str = r#"active_toolsets = ["git_*", "gti_*", "hub:*"]
exposed_tools = { git = ["echo", "ehco"], hbu = ["*"], off = ["x"] }

[toolsets]
work = ["git.log", "hub:pushh", "off_*"]

[agents.ci]
allowed_servers = ["git", "hubb"]
blocked_tools = ["git_log", "delete_*"]

[tokens.cii]
sha256 = "000102030405060708090a0b0c0d0e0f000102030405060708090a0b0c0d0e0f"

[[servers]]
namespace = "off"
command = "no"
enabled = false
"#;

#[tokio::test]
async fn rules_about_nothing_are_told_with_near_names() {
    let folder = folder(SLIPS, &[("git", "echo log"), ("hub", "push")]);
    let (code, stdout, _) = check(&folder, &[]).await;
    assert_eq!(code, 1, "{stdout}");
    let told: Vec<_> = stdout.lines().filter(|line| line.contains("tools.toml:")).collect();
    for (line, expected) in told.iter().zip([
        "tools.toml:1:29: `gti_*` (pattern 2 of `active_toolsets`) matches nothing; did you mean `git_*`?",
        "tools.toml:2:34: `ehco` (pattern 2 of `git` in `exposed_tools`) matches nothing of that server; did you mean `git_echo`?",
        "tools.toml:2:49: `hbu` (`hbu` in `exposed_tools`) names no server; did you mean `hub`?",
        "tools.toml:5:20: `hub:pushh` (pattern 2 of `work` in `toolsets`) matches nothing; did you mean `hub_push`?",
        "tools.toml:8:27: `hubb` (pattern 2 of `allowed_servers`) names no server; did you mean `hub`?",
        "tools.toml:9:29: `delete_*` (pattern 2 of `blocked_tools`) matches nothing",
        "tools.toml:11:1: `cii` (`cii` in `tokens`) names no policy of `agents`; did you mean `ci`?",
    ]) {
        assert!(line.trim().starts_with(expected), "{line}\n{expected}");
    }
    assert_eq!(told.len(), 7, "{stdout}");
    assert!(stdout.contains("7 rules about nothing"), "{stdout}");
    let (_, stdout, _) = check(&folder, &["--json"]).await;
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(report["unmatched"].as_array().unwrap().len(), 7);
}

#[tokio::test]
async fn start_warns_of_rules_about_nothing_and_serves() {
    let folder = folder(SLIPS, &[("git", "echo log"), ("hub", "push")]);
    let mut toolman = folder.start().await;
    toolman.client.tool_names().await;
    toolman.client.request("ping", json!({})).await;
    tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    toolman.client.close().await;
    let log = toolman.log().await;
    assert_eq!(log.matches("WARN toolman::unmatched: tools.toml:").count(), 7, "{log}");
}

#[tokio::test]
async fn rules_that_a_server_that_is_down_may_meet_are_not_judged() {
    let head = "active_toolsets = [\"down_*\", \"anything\", \"gone:*\"]";
    let folder = folder(head, &[("a", "echo"), ("down", "--crash"), ("gone", "--crash")]);
    let (_, stdout, _) = check(&folder, &[]).await;
    assert!(!stdout.contains("rules about nothing"), "{stdout}");
}
