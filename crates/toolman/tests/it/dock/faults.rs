//! What tools can do to their worker, and what that costs: its own namespace, for a moment.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::binary::Folder;

use super::{Data, Dock, HELLO, TOKEN};
use crate::TOOLMAN;
use crate::up::request;

const FAULTY: &str = r#"
import os, sys, time, ctypes
from fastmcp.tools import tool
from fastmcp.exceptions import ToolError

@tool
def divide(a: int, b: int) -> float:
    """Divide."""
    return a / b

@tool
def refuse() -> str:
    """Say no."""
    raise ToolError("not today")

@tool
def lack() -> str:
    """Import what is not there."""
    import surely_not_installed
    return ""

@tool
def leave() -> str:
    """End the process."""
    os._exit(7)

@tool
def quit() -> str:
    """Ask for the end."""
    sys.exit(1)

@tool
def crash() -> str:
    """Read what is not there."""
    ctypes.string_at(0)
    return ""

@tool
def forever() -> str:
    """Never end."""
    while True:
        time.sleep(0.05)

@tool
def large(bytes: int) -> str:
    """Return a lot."""
    return "x" * bytes
"#;

fn faulty() -> Data {
    Data::new(&[("bad/t.py", FAULTY), ("bad/tooldock.yaml", "timeout: 1\n"), ("good/t.py", HELLO)])
}

/// Calls over MCP, without a session.
pub async fn call_mcp(dock: &Dock, namespace: &str, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments, "_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "0"}}});
    let headers = [
        ("X-Namespace", namespace),
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    let body = request(1, "tools/call", params).to_string();
    let answer = dock.ask("POST", "/mcp", &headers, &body).await;
    assert_eq!(answer.status, 200, "{answer:?}");
    answer.json()["result"].clone()
}

#[tokio::test]
async fn failures_have_codes_over_rest_and_are_results_over_mcp() {
    // TD-26, TD-27, TD-28, TD-108, TD-149, TD-150
    let data = faulty();
    let dock = Dock::start(&data).await;
    for (tool, arguments, status, code, message) in [
        ("divide", json!({"a": 1, "b": 0}), 500, "internal_error", "ZeroDivisionError"),
        ("divide", json!({"a": "one", "b": 2}), 422, "invalid_arguments", "/a"),
        ("divide", json!({"a": 1}), 422, "invalid_arguments", "b"),
        ("divide", json!({"a": 1, "b": 2, "c": 3}), 422, "invalid_arguments", "c"),
        ("refuse", json!({}), 500, "internal_error", "not today"),
        ("lack", json!({}), 500, "dependency_error", "surely_not_installed"),
        ("quit", json!({}), 500, "internal_error", "sys.exit(1)"),
        ("forever", json!({}), 504, "execution_timeout", "within 1 s"),
        ("large", json!({"bytes": 9_000_000}), 500, "internal_error", "too large"),
    ] {
        let answer = dock.call("bad", tool, &arguments).await;
        assert_eq!(answer.status, status, "{tool}: {answer:?}");
        let error = &answer.json()["error"];
        assert_eq!(error["code"], code, "{tool}: {error}");
        assert!(error["message"].as_str().unwrap().contains(message), "{tool}: {error}");

        let result = call_mcp(&dock, "bad", tool, &arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        // A structure beside that of results: strict clients hold those to the output schema.
        assert!(result.get("structuredContent").is_none(), "{tool}: {result}");
        assert_eq!(result["_meta"]["toolman/error"]["code"], code, "{tool}: {result}");
        let text = result["content"][0]["text"].as_str().unwrap();
        assert!(text.contains(message), "{tool}: {result}");
    }
    let details = dock.call("bad", "divide", &json!({"a": 1, "b": 0})).await.json();
    let traceback = details["error"]["details"]["traceback"].as_str().unwrap();
    assert!(traceback.contains("t.py") && !traceback.contains("toolman_dock"), "{traceback}");
    assert!(!traceback.contains(data.path().to_str().unwrap()), "no path of the machine");
    assert_eq!(dock.text("bad", "divide", &json!({"a": 1, "b": 2})).await, "0.5");
}

#[tokio::test]
async fn value_that_is_there_as_text_and_as_structure_counts_once() {
    // HARDENING W03
    let data = Data::new(&[("bad/t.py", FAULTY)]);
    let dock = Dock::start(&data).await;
    let answer = dock.call("bad", "large", &json!({"bytes": 8_000_000})).await.json();
    assert_eq!(answer["content"][0]["text"].as_str().map(str::len), Some(8_000_000));
    assert_eq!(answer["structuredContent"]["result"].as_str().map(str::len), Some(8_000_000));
    let answer = dock.call("bad", "large", &json!({"bytes": 8_400_000})).await;
    assert!(answer.body.contains("result too large: 8400"), "{}", answer.body);
}

#[tokio::test]
async fn call_of_a_tool_whose_file_can_not_be_imported_is_told_why() {
    // TD-26, TD-27, TD-28, TD-44
    let tool = |name: &str, first: &str| {
        format!("{first}\nfrom fastmcp.tools import tool\n\n@tool\ndef {name}():\n    'One.'\n")
    };
    let data = Data::new(&[
        ("bad/lacks.py", &tool("lacks", "import nosuch")),
        ("bad/raises.py", &tool("raises", "1 / 0")),
        ("bad/withheld.py", &tool("withheld", "import nosuch")),
        ("bad/tooldock.yaml", "deny: [withheld]\n"),
        ("bad/t.py", HELLO),
        ("good/t.py", HELLO),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.tools("bad").await, ["hello", "lacks", "raises"], "the sources tell no more");
    let reasons = [
        ("lacks", "dependency_error", "lacks.py:1: the package `nosuch` is not installed"),
        ("raises", "internal_error", "raises.py:1: ZeroDivisionError: division by zero"),
    ];
    // The first call starts the worker; when the last one comes, its own list has long been shown.
    for _ in 0..2 {
        for (tool, code, reason) in reasons {
            let answer = dock.call("bad", tool, &json!({})).await;
            assert_eq!(answer.status, 500, "{answer:?}");
            let error = &answer.json()["error"];
            assert_eq!(error["code"], code, "{error}");
            assert!(error["message"].as_str().unwrap().contains(reason), "{error}");
            let result = call_mcp(&dock, "bad", tool, &json!({})).await;
            assert_eq!(result["isError"], true, "{result}");
            assert_eq!(result["structuredContent"]["code"], code, "{result}");
            assert!(result["content"][0]["text"].as_str().unwrap().contains(reason), "{result}");
        }
        assert_eq!(dock.text("bad", "hello", &json!({})).await, "Hello, World!");
        assert_eq!(dock.tools("bad").await, ["hello"], "what can't be called is not listed");
    }
    for (namespace, tool) in [("bad", "withheld"), ("bad", "other"), ("good", "lacks")] {
        let answer = dock.call(namespace, tool, &json!({})).await;
        assert_eq!(answer.status, 404, "{tool}: {answer:?}");
        assert!(!answer.body.contains("nosuch"), "{answer:?}");
    }
    data.write("bad/lacks.py", &tool("lacks", ""));
    dock.reload().await;
    assert_eq!(dock.call("bad", "lacks", &json!({})).await.status, 200);
}

#[tokio::test]
async fn worker_that_ends_fails_its_calls_at_once_and_comes_back() {
    // TD-02, TD-12, HARDENING W05, L05
    let data = faulty();
    let dock = Dock::start(&data).await;
    for tool in ["leave", "crash"] {
        // What is measured is not its start.
        assert_eq!(dock.text("bad", "divide", &json!({"a": 1, "b": 2})).await, "0.5");
        let began = Instant::now();
        let answer = dock.call("bad", tool, &json!({})).await;
        assert_eq!(answer.status, 502, "{answer:?}");
        assert!(answer.body.contains("`bad`"), "{}", answer.body);
        assert!(began.elapsed() < Duration::from_secs(1), "{tool}: {:?}", began.elapsed());
        assert_eq!(dock.text("bad", "divide", &json!({"a": 1, "b": 2})).await, "0.5");
        assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
    }
}

#[tokio::test]
async fn tool_that_closes_all_descriptors_costs_its_worker_and_its_call_at_once() {
    // TD-12, HARDENING W07
    let text = "import asyncio, os\nfrom fastmcp.tools import tool\n\n@tool\ndef close():\n    'Close.'\n    os.closerange(0, 256)\n\n@tool\nasync def close_and_wait():\n    'Close.'\n    os.closerange(0, 256)\n    await asyncio.sleep(0.1)\n";
    let data = Data::new(&[("bad/t.py", text), ("bad/hello.py", HELLO)]);
    let dock = Dock::start(&data).await;
    for tool in ["close", "close_and_wait"] {
        assert_eq!(dock.text("bad", "hello", &json!({})).await, "Hello, World!");
        let began = Instant::now();
        let answer = dock.call("bad", tool, &json!({})).await;
        assert_eq!(answer.status, 502, "{answer:?}");
        // A call may take 60 seconds.
        assert!(began.elapsed() < Duration::from_secs(20), "{tool}: {:?}", began.elapsed());
        assert_eq!(dock.text("bad", "hello", &json!({})).await, "Hello, World!");
    }
}

#[tokio::test]
async fn tool_that_goes_on_after_its_time_costs_its_worker_only() {
    // TD-13, TD-29, HARDENING W09
    let data = faulty();
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("bad", "divide", &json!({"a": 1, "b": 2})).await, "0.5");
    let before = dock.workers("bad");
    assert_eq!(dock.call("bad", "forever", &json!({})).await.status, 504);
    // It is still there for a moment, and serves; then it is replaced.
    assert_eq!(dock.text("bad", "divide", &json!({"a": 1, "b": 2})).await, "0.5");
    let replaced = async {
        loop {
            if dock.workers("bad").iter().all(|worker| !before.contains(worker)) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), replaced).await.expect("it is replaced");
    assert_eq!(dock.text("bad", "divide", &json!({"a": 1, "b": 2})).await, "0.5");
    assert_eq!(dock.text("good", "hello", &json!({})).await, "Hello, World!");
}

#[tokio::test]
async fn broken_file_loses_its_own_tools_and_says_why() {
    // TD-44, TD-45, HARDENING F09
    let data = Data::new(&[
        ("a/good.py", HELLO),
        ("a/syntax.py", "def broken(:\n"),
        (
            "a/imports.py",
            "import surely_not_there\nfrom fastmcp.tools import tool\n\n@tool\ndef lost() -> str:\n    \"\"\"Lost.\"\"\"\n    return ''\n",
        ),
        ("a/none.py", "x = 1\n"),
        ("b/good.py", HELLO),
        ("c/good.py", HELLO),
        ("c/tooldock.yaml", "processes: 0\n"),
    ]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.tools("a").await, ["hello"], "the worker's own report is the truth");
    assert_eq!(dock.tools("b").await, ["hello"]);
    let folder = Folder::new(TOOLMAN);
    let mut check = folder.command(&["check"]);
    check.arg("--data-dir").arg(data.path()).env("BEARER_TOKEN", TOKEN);
    let output = check.output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("syntax.py:1:"), "{text}");
    assert!(text.contains("surely_not_there"), "{text}");
    assert!(text.contains("`processes` is 0; it must be from 1 to 4294967295"), "{text}");
}

#[tokio::test]
async fn worker_sees_only_what_it_is_given() {
    // TD-61
    let data = Data::new(&[
        (
            "a/t.py",
            "import os\nfrom fastmcp.tools import tool\n\n@tool\ndef seen() -> dict:\n    \"\"\"Show.\"\"\"\n    files = [os.readlink('/proc/self/fd/' + fd) for fd in os.listdir('/proc/self/fd') if os.path.lexists('/proc/self/fd/' + fd)]\n    return {'env': dict(os.environ), 'files': files, 'line': open('/proc/self/cmdline').read()}\n",
        ),
        ("a/tooldock.yaml", "env:\n  BASE_URL: https://example.com\n"),
    ]);
    let dock = Dock::start_with(&data, &[("OTHER_SECRET", "hush-hush")]).await;
    let seen = dock.call("a", "seen", &json!({})).await;
    assert_eq!(seen.status, 200, "{seen:?}");
    assert!(seen.body.contains("https://example.com"));
    for secret in [TOKEN, super::MANAGER, "hush-hush"] {
        assert!(!seen.body.contains(secret), "{}", seen.body);
    }
}
