//! Tools that take all they can get: it costs their own namespace, for a moment.

use std::time::{Duration, Instant};

use serde_json::json;
use testkit::processes::{command_line, descendants, is_alive, resident_kib};

use super::{Data, Dock, HELLO};

/// All of them end by themselves after some seconds, should nobody end them.
const BOMBS: &str = r#"
import os, sys, time
from fastmcp.tools import tool

@tool
def fine() -> str:
    """Say so."""
    return "fine"

@tool
def fork_bomb() -> str:
    """Multiply."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        try:
            os.fork()
        except OSError:
            pass
    os._exit(1)

@tool
def hiding_bomb() -> str:
    """Multiply, each process in a session of its own and without a parent."""
    end = time.monotonic() + 4
    while time.monotonic() < end:
        if os.fork() == 0:
            os.setsid()
            if os.fork():
                os._exit(0)
    os._exit(1)

@tool
def children(count: int) -> int:
    """Have some children for a moment."""
    import subprocess
    living = [subprocess.Popen(["sleep", "30"]) for _ in range(count)]
    time.sleep(2.5)
    for child in living:
        child.kill()
        child.wait()
    return count

@tool
def memory_bomb(processes: int, megabytes: int) -> str:
    """Take memory in many processes."""
    for _ in range(processes):
        if os.fork() == 0:
            taken = bytearray(megabytes * 1024 * 1024)
            time.sleep(8)
            os._exit(len(taken) % 2)
    time.sleep(8)
    return "survived"

@tool
def endless() -> str:
    """Never end, and hold the interpreter while at it."""
    while True:
        pass
"#;

fn bombs() -> Data {
    Data::new(&[
        ("bad/t.py", BOMBS),
        ("bad/tooldock.yaml", "processes: 24\nmemory_mb: 400\ntimeout: 20\n"),
        ("good/t.py", HELLO),
    ])
}

/// Calls what goes off, while a neighbour is served; what its caller is told.
async fn set_off(dock: &Dock, tool: &str, arguments: &serde_json::Value) -> String {
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    let neighbour = dock.workers("good");
    let nothing = json!({});
    let bomb = dock.call("bad", tool, arguments);
    tokio::pin!(bomb);
    let answer = loop {
        tokio::select! {
            answer = &mut bomb => break answer,
            served = dock.text("good", "hello", &nothing) => assert_eq!(served, "Hello, World!"),
        }
    };
    assert_eq!(answer.status, 502, "{answer:?}");
    let began = Instant::now();
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(dock.workers("good"), neighbour, "its worker is the same");
    assert_eq!(dock.workers("bad").len(), 1, "nothing is left of it");
    answer.body
}

#[tokio::test]
async fn fork_bomb_costs_its_namespace_only() {
    // HARDENING §4.3
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    let dock = Dock::start(&data).await;
    for tool in ["fork_bomb", "hiding_bomb"] {
        let told = set_off(&dock, tool, &json!({})).await;
        assert!(told.contains("`processes` allows 24"), "{tool}: {told}");
        // What has no parent any more is not left over, either.
        let below = descendants(dock.child.id().unwrap());
        let living: Vec<_> = below.into_iter().filter(|pid| is_alive(*pid)).collect();
        let lines: Vec<_> = living.iter().map(|pid| command_line(*pid)).collect();
        assert!(living.len() <= 4, "two guards and two workers: {lines:?}");
    }
    // Some are allowed.
    assert_eq!(dock.text("bad", "children", &json!({"count": 10})).await, "10");
}

#[tokio::test]
async fn memory_of_many_processes_is_bounded_together() {
    // HARDENING W11
    let _machine = crate::MACHINE.write().await;
    let data = bombs();
    let dock = Dock::start(&data).await;
    let before = resident_kib(dock.child.id().unwrap());
    let told = set_off(&dock, "memory_bomb", &json!({"processes": 6, "megabytes": 150})).await;
    assert!(told.contains("`memory_mb` allows"), "{told}");
    let after = resident_kib(dock.child.id().unwrap());
    assert!(after < before + 16 * 1024, "{before} KiB before, {after} KiB after");
}

#[tokio::test]
async fn endless_loop_costs_its_namespace_only() {
    // TD-13, HARDENING W09
    let data = bombs();
    data.write("bad/tooldock.yaml", "timeout: 1\n");
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    let began = Instant::now();
    let (endless, neighbour) =
        tokio::join!(async { dock.call("bad", "endless", &json!({})).await }, async {
            dock.text("good", "hello", &json!({})).await
        });
    assert_eq!((endless.status, neighbour.as_str()), (504, "Hello, World!"), "{endless:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // Those who call before it is replaced may be told so; the next one is served.
    let next = dock.call("bad", "fine", &json!({})).await;
    if next.status != 200 {
        assert!(next.body.contains("was silent, and is replaced"), "{next:?}");
        assert_eq!(dock.text("bad", "fine", &json!({})).await, "fine");
    }
}

#[tokio::test]
async fn modules_named_like_libraries_stand_in_nobodys_way() {
    let data = Data::new(&[
        ("bad/json.py", "raise RuntimeError('not the library')\n"),
        ("bad/asyncio.py", "loads = None\n"),
        ("bad/socket.py", HELLO),
        ("bad/toolman_dock.py", "raise RuntimeError('nor the runtime')\n"),
        (
            "bad/t.py",
            "import json\nfrom fastmcp.tools import tool\n\n@tool\ndef dump() -> str:\n    \"\"\"Use it.\"\"\"\n    return json.dumps([1])\n",
        ),
        ("good/t.py", HELLO),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("bad", "dump", &json!({})).await, "[1]");
    assert_eq!(dock.text("bad", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
}
