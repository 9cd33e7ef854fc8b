//! What a worker can't reach, however it tries. This machine's kernel must have Landlock.

use serde_json::{Value, json};

use super::{Data, Dock, HELLO};

const ESCAPE: &str = r#"
import os, socket, subprocess, sys
from fastmcp.tools import tool

def attempt(what):
    try:
        return "reached: %r" % (what(),)
    except BaseException as error:
        return type(error).__name__

@tool
def escape(other: str, data: str, gateway: int) -> dict:
    """Try to get out."""
    def connect(family, kind, host="127.0.0.1"):
        with socket.socket(family, kind) as s:
            s.connect((host, 9))
    def listen():
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as s:
            s.bind(("127.0.0.1", 0))
    def by_another_python():
        code = "import socket; socket.create_connection(('127.0.0.1', 9))"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        raise PermissionError() if "PermissionError" in done.stderr else OSError(done.stderr)
    return {
        "safe": attempt(lambda: open(data + "/secrets.enc").read()),
        "data directory": attempt(lambda: os.listdir(data)),
        "neighbour's copy": attempt(lambda: os.listdir(data + "/served/other")),
        "neighbour's scratch": attempt(lambda: open(data + "/scratch/other/x", "w")),
        "neighbour's packages": attempt(lambda: os.listdir(data + "/venvs/other")),
        "own packages": attempt(lambda: open(sys.prefix + "/x", "w")),
        "first process": attempt(lambda: open("/proc/1/environ").read()),
        "parent": attempt(lambda: open("/proc/%d/environ" % os.getppid()).read()),
        "tcp6": attempt(lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, "::1")),
        "a server": attempt(listen),
        "by another python": attempt(by_another_python),
        "accounts": attempt(lambda: open("/etc/shadow").read()),
        "neighbour": attempt(lambda: open(other).read()),
        "neighbours": attempt(lambda: os.listdir(os.path.dirname(os.path.dirname(other)))),
        "gateway": attempt(lambda: open("/proc/%d/environ" % gateway).read()),
        "gateway's memory": attempt(lambda: open("/proc/%d/mem" % gateway).read(1)),
        "own code": attempt(lambda: open(__file__, "a").write("x")),
        "home": attempt(lambda: os.listdir(os.path.expanduser("~root"))),
        "root": attempt(lambda: open("/toolman-was-here", "w")),
        "by a shell": attempt(lambda: subprocess.run(["cat", "/etc/shadow"], capture_output=True, check=True)),
        "a signal": attempt(lambda: os.kill(gateway, 15)),
        "tcp": attempt(lambda: connect(socket.AF_INET, socket.SOCK_STREAM)),
        "udp": attempt(lambda: connect(socket.AF_INET, socket.SOCK_DGRAM)),
    }

@tool
def scratch() -> str:
    """Use what is allowed."""
    import tempfile
    with tempfile.NamedTemporaryFile("w+") as file:
        file.write("fine")
        file.seek(0)
        return file.read()

@tool
def hoard(megabytes: int) -> int:
    """Take memory."""
    return len(bytearray(megabytes * 1024 * 1024))

@tool
def reach(port: int) -> str:
    """Connect."""
    with socket.create_connection(("127.0.0.1", port), timeout=5) as s:
        return "connected"
"#;

#[tokio::test]
async fn worker_gets_at_nothing_but_its_own() {
    // HARDENING §4.3, trap 7
    let data = Data::new(&[
        ("jailed/t.py", ESCAPE),
        ("jailed/tooldock.yaml", "network: false\nmemory_mb: 300\n"),
        ("other/t.py", HELLO),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("other", "hello", &json!({})).await, "Hello, World!");
    let other = data.path().join("tools/other/t.py");
    std::fs::write(data.path().join("secrets.enc"), "{}").unwrap();
    let gateway = dock.child.id().unwrap();
    let arguments = json!({"other": other, "data": data.path(), "gateway": gateway});
    let found = dock.call("jailed", "escape", &arguments).await;
    assert_eq!(found.status, 200, "{found:?}");
    let found = found.json()["structuredContent"].clone();
    for (what, outcome) in found.as_object().unwrap() {
        let outcome = outcome.as_str().unwrap();
        let is_refused = outcome == "PermissionError" || outcome == "CalledProcessError";
        assert!(is_refused, "{what}: {outcome}");
    }
    let health = dock.ask("GET", "/health", &[], "").await.json();
    let servers = health["servers"].as_array().unwrap();
    let jailed = servers.iter().find(|server| server["name"] == "jailed").unwrap();
    assert!(jailed["sandbox"].as_str().unwrap().starts_with("full: "), "{jailed}");
    assert_eq!(dock.text("jailed", "scratch", &json!({})).await, "fine");
    // HARDENING W11
    let taken = dock.call("jailed", "hoard", &json!({"megabytes": 1000})).await;
    assert_eq!(taken.status, 500, "{taken:?}");
    assert!(taken.body.contains("MemoryError"), "{}", taken.body);
    assert!(taken.body.contains("the limit is `memory_mb: 300`"), "{}", taken.body);
    assert_eq!(dock.text("jailed", "hoard", &json!({"megabytes": 1})).await, "1048576");
}

#[tokio::test]
async fn network_is_there_unless_it_is_switched_off() {
    let data = Data::new(&[("open/t.py", ESCAPE)]);
    let dock = Dock::start(&data).await;
    let port: Value = dock.address.rsplit(':').next().unwrap().parse::<u16>().unwrap().into();
    assert_eq!(dock.text("open", "reach", &json!({"port": port})).await, "connected");
}
