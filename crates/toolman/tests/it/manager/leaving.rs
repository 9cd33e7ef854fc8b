//! Calls that take long: they shut nobody else out, and end when nobody waits for them any more.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::client::PATIENCE;
use testkit::http::send;
use testkit::processes::{command_line, descendants};
use tokio::time::timeout;

use crate::dock::TOKEN;
use crate::sources::bounds::{assert_nothing_is_left, with_git};
use crate::sources::{Manager, repository};
use crate::up::request;

/// A git that never comes to an end, and a child of its own.
const ENDLESS: &str = "mkdir \"$TARGET\"; echo x > \"$TARGET/x\"; sleep 600 & sleep 600";

/// How long a tool may take that waits for nobody; this machine may be busy.
const PROMPT: Duration = Duration::from_secs(5);

fn is_cloning(manager: &Manager) -> bool {
    descendants(manager.pid()).into_iter().any(|pid| command_line(pid).contains("sleep 600"))
}

async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, waiting).await.expect(what);
}

/// Nothing is left of a clone: no process, no folder.
async fn until_nothing_is_left(manager: &Manager) {
    let repos = manager.path().join("repos");
    until("everything has ended", || {
        descendants(manager.pid()).is_empty()
            && std::fs::read_dir(&repos).is_ok_and(|all| all.count() == 0)
    })
    .await;
    assert_nothing_is_left(manager);
}

async fn answers_promptly(manager: &Manager) {
    let listing = manager.call("list_namespaces", json!({}));
    timeout(PROMPT, listing).await.expect("it waits for no clone").unwrap();
}

#[tokio::test]
async fn clones_that_wait_for_each_other_shut_nobody_out_and_end_with_their_clients() {
    // TD-135: 70 clients, of which most are told at once to come again.
    let around = TempDir::new().unwrap();
    let url = repository(around.path()).display().to_string();
    let manager = with_git(&around, ENDLESS, &[]).await;
    let asked = json!({"repo_url": url});
    let mut calls: FuturesUnordered<_> =
        (0..70).map(|_| manager.call("analyze_repo", asked.clone())).collect();
    for _ in 0..70 - 24 {
        let said = timeout(PATIENCE, calls.next()).await.expect("it is told at once").unwrap();
        let said = said.unwrap_err();
        assert!(said.starts_with("24 calls of `analyze_repo` are under way"), "{said}");
        assert!(said.contains("try again when some have ended"), "{said}");
    }
    until("git runs", || is_cloning(&manager)).await;
    // With clients that stay …
    answers_promptly(&manager).await;
    let other = json!({"repo_url": "-x", "namespace": "weather"});
    let said = manager.call("install_from_repo", other).await.unwrap_err();
    assert!(said.contains("begins with `-`"), "another tool has its own bound: {said}");
    // … and with those that leave.
    drop(calls);
    answers_promptly(&manager).await;
    until_nothing_is_left(&manager).await;
    let said = manager.call("analyze_repo", json!({"repo_url": "-x"})).await.unwrap_err();
    assert!(said.contains("begins with `-`"), "the turns were given back: {said}");
}

#[tokio::test]
async fn clone_that_is_cancelled_ends_and_the_next_has_its_turn() {
    // TD-135, TD-117
    let around = TempDir::new().unwrap();
    let url = repository(around.path()).display().to_string();
    let manager = with_git(&around, ENDLESS, &[]).await;
    let bearer = format!("Bearer {TOKEN}");
    let address = &manager.served.address;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}});
    let hello = request(0, "initialize", hello).to_string();
    let hello = manager.served.ask("POST", "/mcp", &hello).await;
    let session = hello.header("mcp-session-id").unwrap();
    let headers = [
        ("Authorization", bearer.as_str()),
        ("Mcp-Session-Id", session),
        ("MCP-Protocol-Version", "2025-11-25"),
    ];
    let post = |message: Value| async move {
        send(address, "POST", "/mcp", &headers, &message.to_string()).await
    };
    let notice =
        |method: &str, params: Value| json!({"jsonrpc": "2.0", "method": method, "params": params});
    post(notice("notifications/initialized", json!({}))).await;
    let call = json!({"name": "analyze_repo", "arguments": {"repo_url": url}});
    let called = post(request(7, "tools/call", call));
    let cancelled = async {
        until("git runs", || is_cloning(&manager)).await;
        post(notice("notifications/cancelled", json!({"requestId": 7}))).await;
        until_nothing_is_left(&manager).await;
    };
    // The connection stays open until then.
    tokio::join!(called, cancelled);
    answers_promptly(&manager).await;
}
