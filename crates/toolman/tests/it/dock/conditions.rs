//! How namespaces are: confined so far, in a loop of crashes, and who is told.

use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::time::{sleep, timeout};

use super::{Data, Dock, HELLO, TOKEN};
use crate::TOOLMAN;

/// Ends its process as it is imported, with a traceback before.
const BROKEN: &str = "import os, sys, traceback\n\ndef broken():\n    raise RuntimeError('so it ends')\n\ntry:\n    broken()\nexcept RuntimeError:\n    traceback.print_exc()\n    sys.stderr.flush()\n    os._exit(3)\n";

/// Becomes a program for which the kernel has no Landlock.
const WITHOUT_LANDLOCK: &str = r#"
import ctypes, os, struct, sys
def step(code, yes, no, value):
    return struct.pack("HBBI", code, yes, no, value)
steps = [step(0x20, 0, 0, 0), step(0x15, 0, 1, 444), step(0x06, 0, 0, 0x00050000 | 38), step(0x06, 0, 0, 0x7FFF0000)]
code = ctypes.create_string_buffer(b"".join(steps))
program = ctypes.create_string_buffer(struct.pack("HxxxxxxP", len(steps), ctypes.addressof(code)))
libc = ctypes.CDLL(None, use_errno=True)
assert libc.prctl(38, 1, 0, 0, 0) == 0
assert libc.prctl(22, 2, program, 0, 0) == 0, os.strerror(ctypes.get_errno())
os.execv(sys.argv[1], sys.argv[1:])
"#;

fn server<'a>(health: &'a Value, name: &str) -> &'a Value {
    let servers = health["servers"].as_array().expect("the operator is told of each");
    servers.iter().find(|server| server["name"] == name).expect("it is there")
}

#[tokio::test]
async fn operator_is_told_how_far_a_worker_is_confined_and_nobody_else() {
    // TD-74, TD-75
    let data = Data::new(&[
        ("a/t.py", HELLO),
        ("open/t.py", HELLO),
        ("open/tooldock.yaml", "sandbox: false\n"),
        ("offline/t.py", HELLO),
        ("offline/tooldock.yaml", "network: false\n"),
    ]);
    let dock = Dock::start(&data).await;
    for namespace in ["a", "open", "offline"] {
        assert_eq!(dock.text(namespace, "hello", &json!({})).await, "Hello, World!");
    }
    let health = dock.ask("GET", "/health", &[], "").await.json();
    let sandbox = server(&health, "a")["sandbox"].as_str().unwrap();
    // Where it may be mounted.
    let sandbox = sandbox.strip_suffix(", own /dev/shm").unwrap_or(sandbox);
    assert_eq!(sandbox, "full: files confined, system calls reduced");
    assert_eq!(server(&health, "a")["state"], "ready");
    assert_eq!(server(&health, "open")["sandbox"], "none: not confined");
    let offline = server(&health, "offline")["sandbox"].as_str().unwrap();
    assert!(offline.ends_with(", no network"), "{offline}");
    let names = dock.ask("GET", "/namespaces", &[], "").await.json();
    assert_eq!(names["namespaces"], json!(["a", "offline", "open"]));
    assert_eq!(names["details"]["open"]["sandbox"], "none: not confined");
    let public = send(&dock.address, "GET", "/health", &[], "").await;
    assert_eq!(public.status, 200);
    assert_eq!(public.json()["servers"], Value::Null, "{public:?}");
    let output = check(&data, &[]).await;
    assert!(output.contains("sandbox of `a`: full: files confined"), "{output}");
    assert!(output.contains("sandbox of `open`: none"), "{output}");
}

async fn check(data: &Data, arguments: &[&str]) -> String {
    let mut command = Folder::new(TOOLMAN).command(&[&["check"], arguments].concat());
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    let output = command.output().await.unwrap();
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn loop_of_crashes_is_shown_with_its_traceback_and_harms_nobody_else() {
    // TD-02, TD-12
    let data = Data::new(&[("bad/t.py", BROKEN), ("bad/u.py", HELLO), ("good/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    let call = dock.call("bad", "hello", &json!({})).await;
    assert_eq!(call.status, 502, "{call:?}");
    assert!(call.body.contains("so it ends") && call.body.contains("Traceback"), "{call:?}");
    let looping = async {
        loop {
            let health = dock.ask("GET", "/health", &[], "").await.json();
            if server(&health, "bad")["state"] == "crash-loop" {
                return health;
            }
            // Somebody who needs it keeps it being tried.
            _ = dock.call("bad", "hello", &json!({})).await;
            sleep(Duration::from_millis(50)).await;
        }
    };
    let health = timeout(Duration::from_mins(1), looping).await.expect("it is called so");
    let problem = server(&health, "bad")["problem"].as_str().unwrap();
    assert!(problem.contains("times in a row") && problem.contains("so it ends"), "{problem}");
    assert_eq!(health["status"], "degraded");
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
    let output = check(&data, &[]).await;
    assert!(output.contains("RuntimeError: so it ends"), "{output}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn worker_that_can_not_be_confined_as_required_is_not_started() {
    // HARDENING §4.3
    let data = Data::new(&[("a/t.py", HELLO)]);
    for (required, is_served) in [("landlock", false), ("full", false), ("best-effort", true)] {
        let config = format!("surface = 'namespace'\n[dock]\nrequire_sandbox = '{required}'\n");
        let folder = Folder::new(TOOLMAN).with_tools_toml(&config);
        let mut command = tokio::process::Command::new("python3");
        command.args(["-I", "-c", WITHOUT_LANDLOCK, TOOLMAN, "serve", "--listen", "127.0.0.1:0"]);
        command.arg("--data-dir").arg(data.path()).env("BEARER_TOKEN", TOKEN);
        command.current_dir(folder.path()).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let url = line.rsplit(' ').next().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let dock = Dock { child, address };
        let answer = dock.call("a", "hello", &json!({})).await;
        let health = dock.ask("GET", "/health", &[], "").await.json();
        if is_served {
            assert_eq!(answer.status, 200, "{answer:?}");
            let sandbox = server(&health, "a")["sandbox"].as_str().unwrap().to_owned();
            assert!(sandbox.starts_with("limits: files NOT confined"), "{sandbox}");
        } else {
            assert_eq!(answer.status, 502, "{answer:?}");
            assert!(answer.body.contains("can't be met here"), "{answer:?}");
        }
    }
}
