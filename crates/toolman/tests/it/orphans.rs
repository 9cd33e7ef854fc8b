//! No orphans, ever: however Toolman ends, every descendant of an upstream is gone within 1 s.

use std::time::Duration;

use serde_json::json;
use testkit::binary::{Folder, Running};
use testkit::processes::{
    command_line, descendants, is_alive, kill, session_and_group, survivors, working_in,
};

use crate::{MACHINE, folder};

const WITHIN: Duration = Duration::from_secs(1);

/// Upstreams of every stubborn sort: they ignore EOF, cling to pipes, breed in new sessions.
fn stubborn() -> Folder {
    folder(
        "active_toolsets = [\"*\"]",
        &[("a", "--ignore-eof breed die"), ("b", "--cling --ignore-eof echo"), ("c", "breed")],
    )
}

/// Starts Toolman and its brood; gives every process below it.
async fn start(folder: &Folder) -> (Running, Vec<u32>) {
    let mut toolman = folder.start().await;
    let mut all = Vec::new();
    for tool in ["a_breed", "c_breed"] {
        let result = toolman.client.call(tool, json!({})).await;
        let pids = result["structuredContent"]["pids"].as_array().unwrap();
        assert_eq!(pids.len(), 3, "{result}");
        all.extend(pids.iter().map(|pid| u32::try_from(pid.as_u64().unwrap()).unwrap()));
    }
    all.extend(descendants(toolman.pid));
    all.sort_unstable();
    all.dedup();
    assert!(all.len() >= 12, "guards, servers and their broods: {all:?}");
    assert!(all.iter().all(|pid| is_alive(*pid)));
    (toolman, all)
}

#[track_caller]
fn assert_gone(pids: &[u32]) {
    let left = survivors(pids, WITHIN);
    let lines: Vec<_> = left.iter().map(|pid| command_line(*pid)).collect();
    assert!(left.is_empty(), "left over: {lines:?}");
}

#[tokio::test]
async fn closing_stdin_leaves_nobody() {
    let _quiet = MACHINE.write().await;
    // TA-61
    let folder = stubborn();
    let (mut toolman, all) = start(&folder).await;
    toolman.client.close().await;
    assert_gone(&all);
    assert!(toolman.ended().await.success());
}

#[tokio::test]
async fn signals_leave_nobody() {
    let _quiet = MACHINE.write().await;
    // TA-61
    for signal in ["-INT", "-TERM"] {
        let folder = stubborn();
        let (mut toolman, all) = start(&folder).await;
        kill(signal, toolman.pid);
        assert_gone(&all);
        assert!(toolman.ended().await.success(), "an orderly end");
    }
}

#[tokio::test]
async fn kill_9_of_toolman_leaves_nobody() {
    let _quiet = MACHINE.write().await;
    for _ in 0..5 {
        let folder = stubborn();
        let (mut toolman, all) = start(&folder).await;
        kill("-9", toolman.pid);
        assert_gone(&all);
        toolman.ended().await;
    }
}

#[tokio::test]
async fn crash_of_toolman_leaves_nobody() {
    let _quiet = MACHINE.write().await;
    // As a panic that aborts, or a fault in native code, would end it.
    for signal in ["-ABRT", "-ILL"] {
        let folder = stubborn();
        let (mut toolman, all) = start(&folder).await;
        kill(signal, toolman.pid);
        assert_gone(&all);
        toolman.ended().await;
    }
}

#[tokio::test]
async fn every_server_has_a_session_and_group_of_its_own() {
    let folder = folder("", &[("a", "one"), ("b", "two")]);
    let toolman = folder.start().await;
    let is_server = |pid: &u32| command_line(*pid).contains("examples/fake_upstream");
    let servers: Vec<_> = descendants(toolman.pid).into_iter().filter(is_server).collect();
    let own = servers.iter().filter(|pid| session_and_group(**pid) == (**pid, **pid));
    assert_eq!(own.count(), 2, "{servers:?}");
}

#[tokio::test]
async fn kill_9_while_upstreams_start_leaves_nobody() {
    let _quiet = MACHINE.write().await;
    for wait_ms in [0, 1, 2, 5, 10, 20, 40] {
        let folder = stubborn();
        let mut toolman = folder.start_raw();
        tokio::time::sleep(Duration::from_millis(wait_ms)).await;
        kill("-9", toolman.pid);
        toolman.ended().await;
        let killed = std::time::Instant::now();
        // A guard may have been on its way; it finds its parent gone and ends by itself.
        while !working_in(folder.path()).is_empty() {
            assert!(killed.elapsed() < WITHIN, "{:?}", working_in(folder.path()));
        }
    }
}

#[tokio::test]
async fn upstream_that_ends_leaves_nobody_of_its_own() {
    let _quiet = MACHINE.write().await;
    let folder = stubborn();
    let (mut toolman, all) = start(&folder).await;
    let of_a: Vec<u32> = {
        let guards = descendants(toolman.pid);
        let is_a = |pid: &&u32| command_line(**pid).contains("breed die");
        let guard = guards.iter().copied().find(|pid| is_a(&pid)).unwrap();
        descendants(guard).into_iter().chain([guard]).collect()
    };
    assert!(of_a.len() >= 4, "{of_a:?}");
    let failed = toolman.client.call("a_die", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert_gone(&of_a);
    let others: Vec<_> = all.into_iter().filter(|pid| !of_a.contains(pid)).collect();
    assert!(others.iter().all(|pid| is_alive(*pid)), "the others live on");
}

#[tokio::test]
async fn killed_guard_leaves_nobody() {
    let _quiet = MACHINE.write().await;
    let folder = stubborn();
    let (mut toolman, _) = start(&folder).await;
    let is_guard = |pid: &u32| command_line(*pid).starts_with("mcp-guard");
    for guard in descendants(toolman.pid).into_iter().filter(is_guard) {
        let below = descendants(guard);
        assert!(!below.is_empty());
        kill("-9", guard);
        assert_gone(&below);
        assert_gone(&[guard]);
    }
    assert_eq!(toolman.client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn death_is_noticed_although_a_grandchild_holds_the_pipe() {
    let _quiet = MACHINE.write().await;
    let folder = folder("active_toolsets = [\"*\"]", &[("b", "--cling die never")]);
    let mut toolman = folder.start().await;
    let pending = toolman.client.begin("tools/call", json!({"name": "b_never"})).await;
    let died = tokio::time::Instant::now();
    let result = toolman.client.call("b_die", json!({})).await;
    assert_eq!(
        result["structuredContent"]["error"],
        "upstream `b` ended with exit code 3; its last words on stderr:\ndying as told"
    );
    toolman.client.answer(pending).await;
    assert!(died.elapsed() < WITHIN);
}

#[tokio::test]
async fn signal_during_the_handshake_leaves_nobody() {
    let _quiet = MACHINE.write().await;
    let folder = folder("", &[("a", "--hang --ignore-eof"), ("b", "--cling --hang --ignore-eof")]);
    let mut toolman = folder.start_raw();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    toolman.client.begin("initialize", params).await;
    while descendants(toolman.pid).len() < 4 {
        tokio::task::yield_now().await;
    }
    let all = descendants(toolman.pid);
    kill("-TERM", toolman.pid);
    assert_gone(&all);
    assert!(toolman.ended().await.success());
}

#[tokio::test]
async fn server_that_closes_its_output_is_given_up() {
    // It closes its input after the handshake's answer, so that what follows can't be written.
    let answer = r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}}"#;
    for (commands, half) in
        [("exec >&-".to_owned(), "output"), (format!("exec <&-; echo '{answer}'"), "input")]
    {
        let text = format!(
            "[[servers]]\nnamespace = \"a\"\ncommand = '''read x; {commands}; sleep 600'''\n"
        );
        let folder = Folder::new(crate::TOOLMAN).with_tools_toml(&text);
        let output = folder.run(&["check"]).await;
        let stdout = String::from_utf8(output.stdout).unwrap();
        assert!(stdout.contains(&format!("server `a` has closed its {half}")), "{stdout}");
    }
}
