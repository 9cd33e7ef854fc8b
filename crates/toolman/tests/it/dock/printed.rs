//! What tools print: in the log of their namespace, bounded, without secrets, and for its owner only.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::processes::resident_kib;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::{sleep, timeout};

use super::environments::set;
use super::{Data, Dock, HELLO};
use crate::TOOLMAN;

const LOUD: &str = r#"
import os, sys
from fastmcp.tools import tool

@tool
def say(text: str) -> str:
    """Print."""
    print("out:", text)
    print("key:", os.environ.get("API_KEY"), file=sys.stderr, flush=True)
    return "said"

@tool
def shout(megabytes: int) -> str:
    """Print a lot, and then close the door."""
    for _ in range(megabytes):
        print("x" * (1024 * 1024 - 1))
    sys.stdout = None
    os.close(1)
    return "said"
"#;

fn log(data: &Data, file: &str) -> PathBuf {
    data.path().join("logs").join(file)
}

fn logs(data: &Data, arguments: &[&str]) -> Command {
    let mut command = Folder::new(TOOLMAN).command(&[&["logs"], arguments].concat());
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command
}

/// Waits until a file holds this.
async fn holds(path: &PathBuf, words: &str) -> String {
    let waiting = async {
        loop {
            let text = std::fs::read_to_string(path).unwrap_or_default();
            if text.contains(words) {
                return text;
            }
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, waiting).await.expect(words)
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn what_tools_print_is_in_the_log_of_their_namespace() {
    // TD-33
    let data = Data::new(&[
        ("a/t.py", LOUD),
        ("a/tooldock.yaml", "secrets: [API_KEY]\n"),
        ("b/t.py", HELLO),
    ]);
    set(&data, "API_KEY", "a", "hush-hush-0123").await;
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "say", &json!({"text": "one"})).await, "said");
    assert_eq!(dock.text("b", "hello", &json!({})).await, "Hello, World!");
    let text = holds(&log(&data, "a.log"), "key: [redacted:API_KEY]\n").await;
    assert!(text.contains("out: one\n") && !text.contains("hush-hush"), "{text}");
    let mode = log(&data, "a.log").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let others = std::fs::read_to_string(log(&data, "b.log")).unwrap_or_default();
    assert!(!others.contains("out: one"), "{others}");

    let mut following = logs(&data, &["a", "--follow", "--lines", "1"]);
    let mut following =
        following.stdout(Stdio::piped()).stdin(Stdio::null()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = async || timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert_eq!(next().await, "key: [redacted:API_KEY]");
    // What would move a cursor is shown as a blank.
    dock.text("a", "say", &json!({"text": "two \u{1b}[2J"})).await;
    while next().await != "out: two  [2J" {}
    let shown = logs(&data, &["a"]).output().await.unwrap();
    let shown = String::from_utf8(shown.stdout).unwrap();
    assert!(shown.contains("out: one\n") && shown.contains("out: two"), "{shown}");
    for (name, code) in [("nobody", 1), ("../a", 2)] {
        let refused = logs(&data, &[name]).output().await.unwrap();
        assert_eq!(refused.status.code(), Some(code), "{refused:?}");
    }
}

#[tokio::test]
async fn hundred_megabytes_of_prints_harm_nobody_and_leave_two() {
    // HARDENING W07
    let data = Data::new(&[("a/t.py", LOUD)]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "say", &json!({"text": "first"})).await, "said");
    let before = resident_kib(dock.child.id().unwrap());
    assert_eq!(dock.text("a", "shout", &json!({"megabytes": 100})).await, "said");
    let after = resident_kib(dock.child.id().unwrap());
    assert!(after < before + 16 * 1024, "{before} KiB before, {after} KiB after");
    // It still answers, and what it prints is kept again once the flood has passed.
    let kept = async {
        // Between two files there is none.
        let now = || std::fs::read_to_string(log(&data, "a.log")).unwrap_or_default();
        while !now().contains("key: None\n") {
            assert_eq!(dock.text("a", "say", &json!({"text": "last"})).await, "said");
        }
    };
    timeout(PATIENCE, kept).await.expect("a line of the log");
    let length = |file: &str| log(&data, file).metadata().unwrap().len();
    let (now, former) = (length("a.log"), length("a.log.1"));
    assert!(now + former <= 2 * 1024 * 1024 && former > 0, "{now} and {former} bytes");
}
