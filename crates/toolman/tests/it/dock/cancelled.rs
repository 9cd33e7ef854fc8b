//! Calls that nobody waits for any more: the tool is told, within a second.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::client::PATIENCE;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use super::doors::{Session, modern_headers, modern_params};
use super::{Data, Dock, TOKEN};
use crate::up::request;

/// Notes in its scratch folder when it begins, and when it is cancelled.
const WAIT: &str = r#"
import asyncio, os, time
from fastmcp.tools import tool

def note(name):
    open(os.path.join(os.environ["HOME"], name), "w").close()

@tool
async def wait(name: str) -> str:
    """Wait until it is cancelled."""
    note(name + ".began")
    try:
        await asyncio.sleep(60)
    except asyncio.CancelledError:
        note(name + ".cancelled")
        raise
    return "never"

@tool
def stay(name: str) -> str:
    """Wait, whoever has left."""
    note(name + ".began")
    time.sleep(60)
    return "never"

@tool
def pid() -> int:
    """Say who runs."""
    return os.getpid()
"#;

/// Waits for a file; how long that took.
async fn appears(path: &Path) -> Duration {
    let began = Instant::now();
    let waiting = async {
        while !path.exists() {
            sleep(Duration::from_millis(5)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "{} appears", path.display());
    began.elapsed()
}

fn note(data: &Data, name: &str) -> PathBuf {
    data.path().join("scratch/a").join(name)
}

/// A request that is under way, and whose client can leave.
async fn begin(dock: &Dock, path: &str, headers: &[(&str, &str)], body: &Value) -> TcpStream {
    let body = body.to_string();
    let mut text = format!(
        "POST {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nX-Namespace: a\r\nContent-Type: application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n",
        dock.address,
        body.len()
    );
    for (name, value) in headers {
        text += &format!("{name}: {value}\r\n");
    }
    let mut stream = TcpStream::connect(&dock.address).await.unwrap();
    stream.write_all(format!("{text}\r\n{body}").as_bytes()).await.unwrap();
    stream
}

#[tokio::test]
async fn tool_is_cancelled_when_its_caller_leaves_or_says_so() {
    // TD-32
    let _machine = crate::MACHINE.read().await;
    let data = Data::new(&[("a/t.py", WAIT)]);
    let dock = Arc::new(Dock::start(&data).await);
    let before = dock.text("a", "pid", &json!({})).await;

    let leaving = begin(&dock, "/tools/wait", &[], &json!({"name": "rest"})).await;
    appears(&note(&data, "rest.began")).await;
    drop(leaving);
    let rest = appears(&note(&data, "rest.cancelled")).await;

    let params = modern_params(json!({"name": "wait", "arguments": {"name": "modern"}}));
    let headers = modern_headers("tools/call", "wait");
    let message = request(1, "tools/call", params);
    let leaving = begin(&dock, "/mcp", &headers, &message).await;
    appears(&note(&data, "modern.began")).await;
    drop(leaving);
    let modern = appears(&note(&data, "modern.cancelled")).await;

    let session = Session::open(&dock, "a", "2025-11-25").await;
    let params = json!({"name": "wait", "arguments": {"name": "said"}});
    let (address, headers) = (Arc::clone(&dock), session.headers("a"));
    let call = request(7, "tools/call", params).to_string();
    let waiting = tokio::spawn(async move {
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        address.ask("POST", "/mcp", &headers, &call).await
    });
    appears(&note(&data, "said.began")).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": 7, "reason": "enough"}});
    assert_eq!(session.post(&dock, "a", &cancelled).await.status, 202);
    let said = appears(&note(&data, "said.cancelled")).await;
    timeout(PATIENCE, waiting).await.expect("who has cancelled does not wait").unwrap();

    for (how, took) in [("REST", rest), ("modern", modern), ("notification", said)] {
        println!("{how}: told after {took:?}");
        assert!(took <= Duration::from_secs(1), "{how}: told after {took:?}");
    }
    assert_eq!(dock.text("a", "pid", &json!({})).await, before, "it is still the same worker");
}

#[tokio::test]
async fn tool_that_ignores_its_caller_s_leaving_costs_its_worker_only() {
    // TD-32, HARDENING W09
    let data = Data::new(&[("a/t.py", WAIT), ("a/tooldock.yaml", "timeout: 1\n")]);
    let dock = Dock::start(&data).await;
    let before = dock.text("a", "pid", &json!({})).await;
    let leaving = begin(&dock, "/tools/stay", &[], &json!({"name": "sync"})).await;
    appears(&note(&data, "sync.began")).await;
    drop(leaving);
    let replaced = async {
        loop {
            let answer = dock.call("a", "pid", &json!({})).await;
            let is_other = answer.status == 200
                && answer.json()["content"][0]["text"].as_str() != Some(&before);
            if is_other {
                return;
            }
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, replaced).await.expect("its worker is replaced");
}
