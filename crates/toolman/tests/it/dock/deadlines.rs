//! How long calls take at most, how many wait, and how long a worker that fails rests.

use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::client::PATIENCE;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::{Data, Dock, HELLO};

const NAP: &str = "import asyncio, os\nfrom fastmcp.tools import tool\n\n@tool\nasync def nap(seconds: float) -> str:\n    \"\"\"Sleep.\"\"\"\n    await asyncio.sleep(seconds)\n    return 'awake'\n\n@tool\nasync def until(path: str) -> str:\n    \"\"\"Wait for a file.\"\"\"\n    while not os.path.exists(path):\n        await asyncio.sleep(0.01)\n    return 'there'\n";

#[tokio::test]
async fn time_of_a_call_is_for_its_turn_and_its_start_too() {
    // TD-13, TD-29, HARDENING L10
    let _machine = crate::MACHINE.read().await;
    let slow_start = format!("import time\ntime.sleep(20)\n{HELLO}");
    let data = Data::new(&[
        ("busy/t.py", NAP),
        ("busy/tooldock.yaml", "max_concurrency: 1\ntimeout: 4\n"),
        ("slow/t.py", &slow_start),
        ("slow/tooldock.yaml", "timeout: 1\n"),
    ]);
    let dock = Arc::new(Dock::start(&data).await);
    assert_eq!(dock.text("busy", "nap", &json!({"seconds": 0})).await, "awake");
    let (began, mut calls) = (Instant::now(), JoinSet::new());
    for _ in 0..3 {
        let dock = Arc::clone(&dock);
        calls.spawn(async move { dock.call("busy", "nap", &json!({"seconds": 3})).await.status });
    }
    let mut statuses = calls.join_all().await;
    statuses.sort_unstable();
    // The second one has its turn after three seconds, and one second left.
    assert_eq!(statuses, [200, 504, 504]);
    assert!(began.elapsed() < Duration::from_millis(5_800), "{:?}", began.elapsed());

    let began = Instant::now();
    let answer = dock.call("slow", "hello", &json!({})).await;
    assert_eq!(answer.status, 504, "{answer:?}");
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
}

#[tokio::test]
async fn calls_beyond_the_queue_are_refused_at_once() {
    // TD-15, TD-30
    let data = Data::new(&[("a/t.py", NAP), ("a/tooldock.yaml", "max_concurrency: 2\n")]);
    let folder = testkit::binary::Folder::new(crate::TOOLMAN)
        .with_tools_toml("surface = 'namespace'\n[dock]\nqueue = 3\n");
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0", "--data-dir"]);
    command.arg(data.path());
    let dock = Arc::new(Dock::spawn(command).await);
    assert_eq!(dock.text("a", "nap", &json!({"seconds": 0})).await, "awake");
    let end = data.path().join("scratch/a/end");
    let mut calls = JoinSet::new();
    for _ in 0..6 {
        let (dock, end) = (Arc::clone(&dock), end.clone());
        calls.spawn(async move { dock.call("a", "until", &json!({"path": end})).await });
    }
    // Two are made and three wait, so one is left over; which one is open.
    let refused = calls.join_next().await.unwrap().unwrap();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert!(refused.body.contains("has 5 calls under way"), "{}", refused.body);
    std::fs::write(&end, "").unwrap();
    for answer in calls.join_all().await {
        assert_eq!(answer.status, 200, "{answer:?}");
    }
}

#[tokio::test]
async fn worker_that_fails_again_and_again_rests_longer_each_time() {
    // TD-12, HARDENING L05
    let starts = "import os, time\nwith open(os.path.join(os.environ['HOME'], 'starts'), 'a') as file:\n    file.write('%f\\n' % time.monotonic())\nos._exit(3)\n";
    let data = Data::new(&[
        ("bad/t.py", starts),
        ("bad/u.py", HELLO),
        ("bad/tooldock.yaml", "eager: true\n"),
    ]);
    let dock = Dock::start(&data).await;
    let path = data.path().join("scratch/bad/starts");
    let waiting = async {
        loop {
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            let times: Vec<f64> = text.lines().filter_map(|line| line.parse().ok()).collect();
            if times.len() >= 5 {
                return times;
            }
            // Somebody who needs it keeps it being tried.
            _ = dock.call("bad", "hello", &json!({})).await;
            sleep(Duration::from_millis(50)).await;
        }
    };
    let times = timeout(PATIENCE * 2, waiting).await.expect("it is tried again");
    let pauses: Vec<_> = times.windows(2).map(|two| two[1] - two[0]).collect();
    println!("pauses: {pauses:?}");
    // They are at least 0.1, 0.2, 0.4 and 0.8 s, less what chance takes off; a busy machine only adds.
    for (number, pause) in pauses.iter().enumerate() {
        let least = 0.05 * f64::from(1 << number.min(5));
        assert!(*pause >= least, "pause {number} of {pauses:?}");
    }
}
