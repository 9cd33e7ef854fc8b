//! Environments of namespaces, with real packages from the index.

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;
use testkit::binary::Folder;
use tokio::io::AsyncWriteExt as _;

use super::{Data, Dock};
use crate::TOOLMAN;
use crate::up::request;

const VERSION: &str = "from fastmcp.tools import tool\n\n@tool\ndef version() -> str:\n    \"\"\"Tell.\"\"\"\n    import idna\n    return idna.__version__\n";

#[tokio::test]
async fn requirements_are_installed_for_their_namespace_alone() {
    // TD-09, TD-10, TD-128 in part
    let data = Data::new(&[
        ("with/t.py", VERSION),
        ("with/requirements.txt", "idna==3.10\n"),
        ("without/t.py", VERSION),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");
    let missing = dock.call("without", "version", &json!({})).await;
    assert_eq!(missing.status, 500);
    assert_eq!(missing.json()["error"]["code"], "dependency_error");
    assert!(data.path().join("venvs/with/current/bin/python").exists());

    data.write("with/requirements.txt", "idna==3.9\n");
    let done = dock.reload().await;
    assert_eq!(done["deps_synced"], json!(["with"]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.9");
    // Known by its hash, the former one is there at once.
    data.write("with/requirements.txt", "idna==3.10\n");
    assert_eq!(dock.reload().await["deps_synced"], json!([]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");

    // Of earlier ones only the last is kept, when nobody uses the others any more.
    data.write("with/requirements.txt", "idna==3.8\n");
    let environments = || {
        let entries = std::fs::read_dir(data.path().join("venvs/with")).unwrap();
        entries.filter(|entry| entry.as_ref().unwrap().file_type().unwrap().is_dir()).count()
    };
    assert_eq!(environments(), 2);
    dock.reload().await;
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.8");
    let tidied = async {
        while environments() > 2 {
            tokio::time::sleep(Duration::from_millis(100)).await;
            dock.reload().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), tidied).await.expect("the first is removed");
    data.write("with/requirements.txt", "idna==3.10\n");
    assert_eq!(dock.reload().await["deps_synced"], json!([]), "the last one is there");

    // An install that fails keeps what is there.
    data.write("with/requirements.txt", "idna==0.0.0\n");
    assert_eq!(dock.reload().await["deps_synced"], json!([]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");
    // HARDENING D01: options are refused, with all of the file.
    data.write("with/requirements.txt", "idna==3.9\n--index-url https://example.com\n");
    assert_eq!(dock.reload().await["deps_synced"], json!([]));
    assert_eq!(dock.text("with", "version", &json!({})).await, "3.10");
}

/// The seed's pattern, servers' tools, hints of pydantic, and a message on the way.
const LIBRARY: &str = r#"
from typing import Annotated
from pydantic import Field
from fastmcp import Context, FastMCP
from fastmcp.tools import tool

mcp = FastMCP("x")

@tool
def version() -> str:
    """Tell which it is."""
    import fastmcp
    return fastmcp.__version__

@mcp.tool
async def half(n: Annotated[int, Field(ge=2)], ctx: Context) -> int:
    """Halve."""
    await ctx.info("told")
    return n // 2
"#;

const CHECKED: &str = r#"
import httpx
from pydantic import BaseModel
from fastmcp.tools import tool

class Pair(BaseModel):
    left: int
    right: int = 2

@tool
def half(n: int) -> int:
    """Halve."""
    return n // 2

@tool
def add(pair: Pair) -> Pair:
    """Add."""
    return Pair(left=pair.left + pair.right, right=0)

@tool
def version() -> str:
    """Tell which it is."""
    return httpx.__version__
"#;

/// The version of the newest `fastmcp` that tools are tested with.
fn newest() -> String {
    let peers = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers/python/dock-fastmcp.txt");
    let pinned = std::fs::read_to_string(peers).unwrap();
    pinned.lines().find_map(|line| line.strip_prefix("fastmcp==")).unwrap().to_owned()
}

#[tokio::test]
async fn real_libraries_are_installed_and_their_tools_called_confined() {
    // TD-09, TD-10, TD-38, TD-106: FastMCP as the seed has it and the newest, pydantic and httpx, by requirements.txt.
    let _machine = crate::MACHINE.read().await;
    let newest = newest();
    let data = Data::new(&[
        ("old/t.py", LIBRARY),
        ("old/requirements.txt", "fastmcp==2.14.*\n"),
        ("new/t.py", LIBRARY),
        ("new/requirements.txt", &format!("fastmcp=={newest}\n")),
        ("plain/t.py", CHECKED),
        ("plain/requirements.txt", "pydantic\nhttpx>=0.28\n"),
        ("old/tooldock.yaml", "timeout: 150\n"),
        ("new/tooldock.yaml", "timeout: 150\n"),
        ("plain/tooldock.yaml", "timeout: 150\n"),
    ]);
    let dock = Dock::start(&data).await;
    for (namespace, version) in [("old", "2.14."), ("new", newest.as_str()), ("plain", "0.")] {
        let told = dock.text(namespace, "version", &json!({})).await;
        assert!(told.starts_with(version), "{namespace}: {told}");
        let over_rest = dock.call(namespace, "half", &json!({"n": 84})).await.json();
        assert_eq!(over_rest["structuredContent"], json!({"result": 42}), "{namespace}");
        let params = json!({"name": "half", "arguments": {"n": 84}, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}}});
        let headers = [
            ("X-Namespace", namespace),
            ("Mcp-Method", "tools/call"),
            ("Mcp-Name", "half"),
            ("MCP-Protocol-Version", "2026-07-28"),
        ];
        let call = request(1, "tools/call", params).to_string();
        let over_mcp = dock.ask("POST", "/mcp", &headers, &call).await;
        assert!(over_mcp.body.contains(r#""structuredContent":{"result":42}"#), "{over_mcp:?}");
        // Bytecode was made with the environment: the worker, which may not write it, starts sooner.
        let packages = data.path().join("venvs").join(namespace).join("current/lib");
        let compiled = |library: &str| {
            let found = std::fs::read_dir(&packages).unwrap().map(|entry| entry.unwrap().path());
            let mut found = found.map(|python| python.join("site-packages").join(library));
            found.any(|library| library.join("__pycache__").is_dir())
        };
        assert!(compiled("pydantic"), "{namespace}");
    }
    let wrong = dock.call("plain", "add", &json!({"pair": {"left": "x"}})).await;
    assert_eq!(wrong.status, 422, "{wrong:?}");
    let added = dock.call("plain", "add", &json!({"pair": {"left": 40}})).await.json();
    assert_eq!(added["structuredContent"], json!({"left": 42, "right": 0}));
    let health = dock.ask("GET", "/health", &[], "").await.json();
    for server in health["servers"].as_array().unwrap() {
        assert!(server["sandbox"].as_str().unwrap().starts_with("full"), "{server}");
        assert_eq!(server["state"], "ready", "{server}");
    }
    let runtime = std::fs::read_dir(data.path().join("runtime")).unwrap().next().unwrap().unwrap();
    assert!(runtime.path().join("toolman_dock/__pycache__").is_dir(), "ours are compiled, too");
}

#[tokio::test]
async fn folders_are_made_ready_side_by_side() {
    let data = Data::new(&[]);
    let meeting = data.path().join("meeting");
    std::fs::create_dir(&meeting).unwrap();
    // A Python that begins when the Pythons of two more folders are there, too.
    let text = format!(
        "#!/bin/sh\ntouch {0}/$$\nfor i in $(seq 200); do\n  [ $(ls {0} | wc -l) -ge 3 ] && exec python3 \"$@\"\n  sleep 0.05\ndone\nexit 1\n",
        meeting.display()
    );
    for name in ["a", "b", "c"] {
        let python = data.path().join(format!("python-{name}"));
        // Written by another process: what is open for writing here can't be run while another test forks.
        let mut shell = tokio::process::Command::new("sh");
        shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(&python).arg(&text);
        assert!(shell.output().await.unwrap().status.success());
        data.write(&format!("{name}/t.py"), super::HELLO);
        data.write(&format!("{name}/tooldock.yaml"), &format!("python: {}\n", python.display()));
    }
    let dock = Dock::start(&data).await;
    for name in ["a", "b", "c"] {
        assert_eq!(dock.text(name, "hello", &json!({})).await, "Hello, World!");
    }
}

const LOOK: &str = "import os\nfrom fastmcp.tools import tool\n\n@tool\ndef look(name: str) -> str:\n    \"\"\"Look.\"\"\"\n    return os.environ.get(name, 'nothing')[::-1]\n";

/// Sets a secret as a person does, with the value on stdin.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
pub async fn set(data: &Data, key: &str, scope: &str, value: &str) {
    let folder = Folder::new(TOOLMAN);
    let mut command = folder.command(&["secrets", "set", key, "--scope", scope]);
    command.arg("--data-dir").arg(data.path());
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(value.as_bytes()).await.unwrap();
    assert!(child.wait().await.unwrap().success());
}

#[tokio::test]
async fn secrets_reach_the_worker_that_declares_them_and_no_other() {
    // TD-60, TD-61, TD-62, TD-63, TD-64
    let data = Data::new(&[
        ("a/t.py", LOOK),
        (
            "a/tooldock.yaml",
            "secrets: [API_KEY, OTHER_KEY]\nenv:\n  API_KEY: default\n  BASE: plain\n",
        ),
        ("b/t.py", LOOK),
    ]);
    let dock = Dock::start(&data).await;
    let look = |namespace: &'static str, name: &'static str| {
        let dock = &dock;
        async move {
            // Backwards, as it is hidden otherwise.
            let text = dock.text(namespace, "look", &json!({"name": name})).await;
            text.chars().rev().collect::<String>()
        }
    };
    assert_eq!(look("a", "OTHER_KEY").await, "nothing", "what is missing stops nobody");
    assert_eq!(look("a", "BASE").await, "plain");
    assert_eq!(look("a", "API_KEY").await, "default", "it stands in for what is not set");
    assert_eq!(look("b", "BASE").await, "nothing");
    let (a, b) = (dock.workers("a"), dock.workers("b"));
    set(&data, "API_KEY", "global", "for-all-0123").await;
    set(&data, "API_KEY", "a", "for-a-alone-0123").await;
    let arrives = async {
        while look("a", "API_KEY").await != "for-a-alone-0123" {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), arrives)
        .await
        .expect("the namespace's own counts");
    assert_ne!(dock.workers("a"), a);
    assert_eq!(dock.workers("b"), b, "only who declares it is started anew");
    assert_eq!(look("b", "API_KEY").await, "nothing");
}
