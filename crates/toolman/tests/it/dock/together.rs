//! Reloads, calls, secrets and signals at the same time.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;
use std::time::Duration;

use serde_json::json;
use testkit::client::PATIENCE;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::environments::set;
use super::{Data, Dock, HELLO, MANAGER, TOKEN};

fn greeting(word: &str) -> String {
    HELLO.replace("Hello,", word)
}

/// Waits until something is so.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let waiting = async {
        while !is_so() {
            sleep(Duration::from_millis(10)).await;
        }
    };
    assert!(timeout(PATIENCE, waiting).await.is_ok(), "{what}");
}

#[tokio::test]
async fn reloads_at_the_same_time_leave_what_was_written_last() {
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO)]);
    let dock = Arc::new(Dock::start(&data).await);
    for round in 0..4 {
        let mut reloads = JoinSet::new();
        for part in 0..4 {
            data.write("a/t.py", &greeting(&format!("Round {round}.{part},")));
            let dock = Arc::clone(&dock);
            reloads.spawn(async move { dock.reload().await });
        }
        while let Some(done) = reloads.join_next().await {
            let done = done.unwrap();
            assert_eq!((&done["reloaded"], &done["problems"]), (&json!(true), &json!([])));
        }
        let said = dock.text("a", "hello", &json!({})).await;
        assert_eq!(said, format!("Round {round}.3, World!"));
        assert_eq!(dock.text("b", "hello", &json!({})).await, "Hello, World!");
    }
}

#[tokio::test]
async fn client_that_leaves_a_reload_leaves_no_worker_behind() {
    let slow = |word: &str| format!("import time\n{}\ntime.sleep(0.5)\n", greeting(word));
    let data = Data::new(&[("a/t.py", &slow("One,")), ("a/tooldock.yaml", "eager: true\n")]);
    let dock = Dock::start(&data).await;
    let first = dock.workers("a");
    assert_eq!(first.len(), 1);
    data.write("a/t.py", &slow("Two,"));
    let mut leaving = TcpStream::connect(&dock.address).await.unwrap();
    let request = format!(
        "POST /reload HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {TOKEN}\r\nX-Manager-Token: {MANAGER}\r\nContent-Length: 0\r\n\r\n",
        dock.address
    );
    leaving.write_all(request.as_bytes()).await.unwrap();
    until("the new worker is started", || dock.workers("a").len() == 2).await;
    drop(leaving);
    data.write("a/t.py", &slow("Three,"));
    dock.reload().await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Three, World!");
    until("the others have ended", || dock.workers("a").len() == 1).await;
    assert!(!first.contains(&dock.workers("a")[0]));
}

#[tokio::test]
async fn hangup_while_environments_are_made_ready_is_a_reload_later() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    // Whoever asks this Python for its version is hung up on, and finds another folder.
    let python = data.path().join("python");
    let other = data.path().join("tools/b");
    let script = format!(
        "#!/bin/sh\nif [ ! -e {0} ]; then\n  mkdir {0} && cp {0}/../a/t.py {0}\n  kill -HUP $(sed 's/.*) //' /proc/$PPID/stat | cut -d' ' -f2)\nfi\nexec python3 \"$@\"\n",
        other.display()
    );
    std::fs::write(&python, script).unwrap();
    std::fs::set_permissions(&python, std::fs::Permissions::from_mode(0o755)).unwrap();
    data.write("a/tooldock.yaml", &format!("python: {}\n", python.display()));
    let dock = Dock::start(&data).await;
    let appears = async {
        while dock.ask("GET", "/tools", &[("X-Namespace", "b")], "").await.status != 200 {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, appears).await.expect("it is reloaded");
}

#[tokio::test]
async fn change_of_a_secret_lets_calls_finish() {
    // TD-62
    let nap = "import os, time\nfrom fastmcp.tools import tool\n\n@tool\ndef nap(until: str) -> str:\n    \"\"\"Wait for a file.\"\"\"\n    while not os.path.exists(until):\n        time.sleep(0.02)\n    return str(len(os.environ.get('API_KEY', '')))\n";
    let data = Data::new(&[("a/t.py", nap), ("a/tooldock.yaml", "secrets: [API_KEY]\n")]);
    let dock = Arc::new(Dock::start(&data).await);
    let end = data.path().join("scratch/a/end");
    let arguments = json!({"until": end});
    let napping = {
        let (dock, arguments) = (Arc::clone(&dock), arguments.clone());
        tokio::spawn(async move { dock.call("a", "nap", &arguments).await })
    };
    until("the worker is started", || dock.workers("a").len() == 1).await;
    let first = dock.workers("a");
    set(&data, "API_KEY", "a", "new-value-0123").await;
    until("another worker is started", || dock.workers("a").iter().any(|pid| !first.contains(pid)))
        .await;
    std::fs::write(&end, "").unwrap();
    let answer = napping.await.unwrap();
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_eq!(answer.json()["structuredContent"]["result"], "0");
    assert_eq!(dock.text("a", "nap", &arguments).await, "14");
    until("the former one has ended", || dock.workers("a").len() == 1).await;
}
