//! Faults in numbers: upstreams killed under calls, and nothing hangs, leaks or gets lost.

use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use testkit::processes::{
    command_line, descendants, kill, open_files, resident_kib, survivors, zombies,
};
use tokio::io::AsyncWriteExt as _;
use tokio::time::Instant;

use crate::{fake, folder};

/// The server processes below Toolman, by their arguments.
fn servers(toolman: u32, arguments: &str) -> Vec<u32> {
    let is_server = |pid: &u32| {
        let line = command_line(*pid);
        line.contains("fake_upstream") && line.contains(arguments) && !line.starts_with("mcp-")
    };
    descendants(toolman).into_iter().filter(is_server).collect()
}

#[tokio::test]
async fn two_hundred_kills_under_calls_hang_and_leak_nothing() {
    // TA-57, TA-68, TA-71
    let _quiet = crate::MACHINE.write().await;
    let names = ["k0", "k1", "k2", "k3", "k4"];
    let mut text = "active_toolsets = [\"*\"]\n".to_owned();
    for name in names {
        let command = fake(&format!("never echo tag-{name}"));
        text += &format!("[[servers]]\nnamespace = \"{name}\"\ncommand = \"{command}\"\n");
        text += "restart = \"on-failure\"\nrestart_delay_max = \"100ms\"\n";
    }
    let folder = testkit::binary::Folder::new(crate::TOOLMAN).with_tools_toml(&text);
    let mut toolman = folder.start().await;
    for name in names {
        answered(&mut toolman.client, name).await;
    }
    let files = open_files(toolman.pid);
    for round in 0..200 {
        let name = names[round * 7 % names.len()];
        answered(&mut toolman.client, name).await;
        let call = json!({"name": format!("{name}_never")});
        let pending = toolman.client.begin("tools/call", call).await;
        toolman.client.request("ping", json!({})).await;
        let server = servers(toolman.pid, &format!("tag-{name}"))[0];
        let killed = Instant::now();
        kill("-9", server);
        let failed = toolman.client.answer(pending).await;
        assert!(killed.elapsed() < Duration::from_secs(1), "{:?}", killed.elapsed());
        let error = &failed["result"]["structuredContent"]["error"];
        let expected = format!("upstream `{name}` was killed by signal 9");
        assert_eq!(error, &json!(expected), "{failed}");
    }
    for name in names {
        answered(&mut toolman.client, name).await;
    }
    assert_eq!(zombies(&descendants(toolman.pid)), 0);
    let deadline = Instant::now() + Duration::from_secs(5);
    while open_files(toolman.pid) != files {
        assert!(Instant::now() < deadline, "{} files, not {files}", open_files(toolman.pid));
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// Calls until the upstream is back and answers.
async fn answered(client: &mut testkit::client::LineClient, name: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let result = client.call(&format!("{name}_echo"), json!({})).await;
        if result["content"][0]["text"] == "ok" {
            return;
        }
        assert!(Instant::now() < deadline, "{name} did not come back: {result}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn event_of_a_crash_is_logged() {
    // TA-59
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "die")]);
    let mut toolman = folder.start().await;
    toolman.client.call("a_die", json!({})).await;
    toolman.client.close().await;
    toolman.ended().await;
    let log = toolman.log().await;
    assert!(log.contains("ERROR") && log.contains("ended with exit code 3"), "{log}");
    assert!(log.contains("upstream=a"), "{log}");
}

#[tokio::test]
async fn frozen_upstream_hurts_only_itself() {
    let folder = folder("active_toolsets = [\"*\"]", &[("cold", "echo tag-c"), ("warm", "echo")]);
    let mut toolman = folder.start().await;
    let cold = servers(toolman.pid, "tag-c")[0];
    kill("-STOP", cold);
    let big = "x".repeat(300_000);
    for _ in 0..3 {
        let call = json!({"name": "cold_echo", "arguments": {"big": big}});
        toolman.client.begin("tools/call", call).await;
    }
    for _ in 0..1_000 {
        let changed = r#"{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}"#;
        toolman.client.send(changed).await;
    }
    assert_eq!(toolman.client.call("warm_echo", json!({})).await["content"][0]["text"], "ok");
    kill("-TERM", toolman.pid);
    assert!(survivors(&[cold, toolman.pid], Duration::from_secs(2)).is_empty());
}

#[tokio::test]
async fn client_that_does_not_read_costs_bounded_memory() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let mut child = start_unread(&folder);
    let mut stdin = child.stdin.take().unwrap();
    let pid = child.id().unwrap();
    let hello = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}}});
    stdin.write_all(format!("{hello}\n").as_bytes()).await.unwrap();
    let list = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}\n".repeat(1_000);
    // It stops reading, so that our own writing stops as well.
    let flood = async {
        for _ in 0..200 {
            stdin.write_all(list.as_bytes()).await.unwrap();
        }
    };
    let flooded = tokio::time::timeout(Duration::from_secs(3), flood).await;
    assert!(flooded.is_err(), "it must not take on what it can't answer");
    assert!(resident_kib(pid) < 100 * 1024, "{} KiB", resident_kib(pid));
    kill("-TERM", pid);
    assert!(survivors(&[pid], Duration::from_secs(2)).is_empty());
}

#[tokio::test]
async fn log_that_nobody_reads_stops_nothing() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "chatter garbage echo")]);
    let mut child = start_unread(&folder);
    let (stdin, stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut client = testkit::client::LineClient::new(stdout, stdin);
    client.initialize(json!({})).await;
    for _ in 0..20 {
        client.call("a_chatter", json!({})).await;
    }
    assert_eq!(client.call("a_echo", json!({})).await["content"][0]["text"], "ok");
    kill("-TERM", child.id().unwrap());
    let ended = tokio::time::timeout(Duration::from_secs(2), child.wait()).await;
    assert!(ended.expect("it ends").unwrap().success());
}

/// Starts the binary with a full log that nobody reads.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
fn start_unread(folder: &testkit::binary::Folder) -> tokio::process::Child {
    let mut command = folder.command(&[]);
    command.env("TOOLMAN_LOG", "trace");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}
