//! Folders of Python tools, served by the real binary with real workers.

mod arguments;
mod asking;
mod bombs;
mod cancelled;
mod conditions;
mod deadlines;
mod doors;
mod environments;
mod escapes;
mod faults;
mod hostile;
mod index;
mod installing;
mod named;
mod offers;
mod openapi;
mod printed;
mod reach;
mod records;
mod reloads;
mod reported;
mod storms;
mod together;
mod unserved;
mod watched;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::{HttpAnswer, send};
use testkit::processes::{command_line, descendants};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::TOOLMAN;
use crate::up::{Up, request};

pub const TOKEN: &str = "bearer-0123456789abcdef0123456789abcdef";
pub const MANAGER: &str = "manager-0123456789abcdef0123456789abcdef";

/// A tool for many tests.
pub const HELLO: &str = "from fastmcp.tools import tool\n\n@tool\ndef hello(name: str = \"World\") -> str:\n    \"\"\"Greet.\"\"\"\n    return f\"Hello, {name}!\"\n";

/// A data directory with folders of tools.
pub struct Data(TempDir);

impl Data {
    pub fn new(files: &[(&str, &str)]) -> Data {
        let data = Data(TempDir::new().unwrap());
        std::fs::create_dir(data.0.path().join("tools")).unwrap();
        for (file, text) in files {
            data.write(file, text);
        }
        data
    }

    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file below `tools`.
    pub fn write(&self, file: &str, text: &str) {
        let path = self.0.path().join("tools").join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        // At once, as editors do: a worker may be started at any moment.
        let fresh = path.with_file_name(".fresh");
        std::fs::write(&fresh, text).unwrap();
        std::fs::rename(fresh, path).unwrap();
    }

    pub fn remove(&self, folder: &str) {
        std::fs::remove_dir_all(self.0.path().join("tools").join(folder)).unwrap();
    }

    /// The same with the folders of the examples.
    pub fn with_examples(self) -> Data {
        for name in ["basic-tool", "multi-tool", "typed-tool"] {
            for entry in std::fs::read_dir(examples().join(name)).unwrap() {
                let path = entry.unwrap().path();
                if path.is_file() {
                    let file = path.file_name().unwrap().to_str().unwrap().to_owned();
                    self.write(&format!("{name}/{file}"), &std::fs::read_to_string(&path).unwrap());
                }
            }
        }
        self
    }
}

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// Starts a command that serves a data directory; its process, and its address.
pub async fn served(data: &Data, what: &str, environment: &[(&str, &str)]) -> (Child, String) {
    let mut command = Folder::new(TOOLMAN).command(&[what, "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command.envs(environment.iter().copied());
    let Dock { child, address } = Dock::spawn(command).await;
    (child, address)
}

/// `toolman serve` over a data directory alone.
pub struct Dock {
    pub child: Child,
    pub address: String,
}

impl Dock {
    pub async fn start(data: &Data) -> Dock {
        Dock::start_with(data, &[]).await
    }

    pub async fn start_with(data: &Data, environment: &[(&str, &str)]) -> Dock {
        let (child, address) = served(data, "serve", environment).await;
        Dock { child, address }
    }

    /// The same by a command that serves on a free port.
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    pub async fn spawn(mut command: Command) -> Dock {
        command.env("BEARER_TOKEN", TOKEN).env("MANAGER_INTERNAL_TOKEN", MANAGER);
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
        let url = line.rsplit(' ').next().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        Dock { child, address }
    }

    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> HttpAnswer {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [&[("Authorization", bearer.as_str())], headers].concat();
        send(&self.address, method, path, &headers, body).await
    }

    /// The names of the tools of a namespace.
    pub async fn tools(&self, namespace: &str) -> Vec<String> {
        let list = self.ask("GET", "/tools", &[("X-Namespace", namespace)], "").await.json();
        let tools = list["tools"].as_array().expect("there is a list");
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn call(&self, namespace: &str, tool: &str, arguments: &Value) -> HttpAnswer {
        let path = format!("/tools/{tool}");
        self.ask("POST", &path, &[("X-Namespace", namespace)], &arguments.to_string()).await
    }

    /// The text of a result, which must be one.
    pub async fn text(&self, namespace: &str, tool: &str, arguments: &Value) -> String {
        let answer = self.call(namespace, tool, arguments).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["content"][0]["text"].as_str().unwrap_or_default().to_owned()
    }

    pub async fn reload(&self) -> Value {
        let answer = self.ask("POST", "/reload", &[("X-Manager-Token", MANAGER)], "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()
    }

    /// The workers of a namespace.
    pub fn workers(&self, namespace: &str) -> Vec<u32> {
        let of_it = format!("--namespace {namespace} ");
        let is_worker = |pid: &u32| {
            let line = command_line(*pid).replace('\0', " ");
            line.contains("worker.py") && line.contains(&of_it) && !line.starts_with("mcp-")
        };
        descendants(self.child.id().unwrap()).into_iter().filter(is_worker).collect()
    }
}

#[tokio::test]
async fn folder_of_functions_is_served_over_rest_and_mcp_with_the_same_answers() {
    // TD-01, TD-06, TD-07, TD-36, TD-38, TD-48, TD-49, TD-71, TD-72, TD-73, TD-106, TD-107
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let dock = Dock::start(&data).await;
    let shared = [("X-Namespace", "shared")];
    let listed = dock.ask("GET", "/tools", &shared, "").await;
    let schema = dock.ask("GET", "/tools/hello/schema", &shared, "").await.json();
    assert_eq!(schema["inputSchema"]["properties"]["name"]["default"], "World", "{schema}");
    assert!(dock.workers("shared").is_empty(), "a list starts no worker");
    let called = dock.call("shared", "hello", &json!({"name": "Ada"})).await;
    assert_eq!(called.json()["structuredContent"], json!({"result": "Hello, Ada!"}));
    assert_eq!(dock.workers("shared").len(), 1);

    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}});
    let opened =
        dock.ask("POST", "/mcp", &shared, &request(0, "initialize", params).to_string()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [("X-Namespace", "shared"), ("Mcp-Session-Id", &session)];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    assert_eq!(dock.ask("POST", "/mcp", &headers, initialized).await.status, 202);
    let list = request(1, "tools/list", json!({})).to_string();
    let over_mcp = dock.ask("POST", "/mcp", &headers, &list).await;
    assert!(over_mcp.body.contains(&listed.body[1..listed.body.len() - 1]), "{}", over_mcp.body);
    let call = request(2, "tools/call", json!({"name": "hello", "arguments": {"name": "Ada"}}));
    let over_mcp = dock.ask("POST", "/mcp", &headers, &call.to_string()).await;
    assert!(over_mcp.body.contains(&called.body), "{}", over_mcp.body);
    // A session is bound to its namespace.
    data.write("other/hello.py", HELLO);
    dock.reload().await;
    let elsewhere = [("X-Namespace", "other"), ("Mcp-Session-Id", &session)];
    assert_ne!(dock.ask("POST", "/mcp", &elsewhere, &list).await.status, 200);
}

#[tokio::test]
async fn namespace_must_be_named_and_be_there() {
    // TD-08, TD-43, TD-46, TD-75, TD-78, TD-79, TD-80
    let data = Data::new(&[("a/x.py", HELLO), ("empty/README.md", "")]);
    // Examples lie beside the folders and are none of them.
    data.write("../examples/basic-tool/hello.py", HELLO);
    let dock = Dock::start(&data).await;
    let names = dock.ask("GET", "/namespaces", &[], "").await.json();
    assert_eq!(names["namespaces"], json!(["a", "empty"]));
    let list = request(1, "tools/list", json!({})).to_string();
    for (headers, status) in [(&[][..], 400), (&[("X-Namespace", "nope")][..], 404)] {
        assert_eq!(dock.ask("GET", "/tools", headers, "").await.status, status);
        assert_eq!(dock.ask("POST", "/tools/hello", headers, "{}").await.status, status);
        assert_eq!(dock.ask("POST", "/mcp", headers, &list).await.status, status);
    }
    assert_eq!(dock.tools("empty").await, Vec::<String>::new());
    assert_eq!(dock.call("a", "nope", &json!({})).await.status, 404);
    assert_eq!(dock.call("empty", "hello", &json!({})).await.status, 404);
}

#[tokio::test]
async fn examples_work_as_they_are() {
    // TD-48, TD-49
    let data = Data::new(&[]).with_examples();
    let dock = Dock::start(&data).await;
    let say = dock.text("basic-tool", "say_hello", &json!({"name": "Ada"})).await;
    assert_eq!(say, "Hello, Ada!");
    assert_eq!(dock.text("multi-tool", "add", &json!({"a": 1, "b": 2.5})).await, "3.5");
    for namespace in ["basic-tool", "multi-tool", "typed-tool"] {
        let document = dock.ask("GET", "/openapi.json", &[("X-Namespace", namespace)], "").await;
        let tools = dock.tools(namespace).await;
        assert!(!tools.is_empty());
        for tool in tools {
            assert!(document.body.contains(&format!("/tools/{tool}\"")), "{tool}");
        }
    }
}

#[tokio::test]
async fn newcomer_finds_a_namespace_with_a_tool() {
    // TD-34
    let folder = Folder::new(TOOLMAN);
    let up = Up::start(&folder).await;
    let tool = folder.path().join("data/toolman/tools/shared/hello.py");
    assert!(tool.exists());
    let call = up.ask("POST", "/tools/say_hello", &[("X-Namespace", "shared")], "{}").await;
    assert_eq!(call.status, 404, "it is off at first: {call:?}");
    let on = json!({"tools_on": ["shared_say_hello"], "tools_off": [], "resources_on": [],
        "resources_off": []});
    let on = up.ask("POST", "/tools/toolman_activate", &[], &on.to_string()).await;
    assert_eq!(on.status, 200, "{on:?}");
    let call = up.ask("POST", "/tools/shared_say_hello", &[], "{}").await;
    assert_eq!(call.json()["structuredContent"]["result"], "Hello, World!");
}

#[tokio::test]
async fn settings_are_checked_at_the_start_all_at_once() {
    // TD-145, TD-146, TD-147
    let data = Data::new(&[("a/x.py", HELLO)]);
    let mut command = Folder::new(TOOLMAN).command(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).env("BEARER_TOKEN", TOKEN);
    command.current_dir(data.path());
    command.env("TOOL_CALL_TIMEOUT_SECONDS", "soon").env("NAMESPACE_MAX_CONCURRENCY", "0");
    command.env("ENABLE_FS_WATCHER", "perhaps");
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for name in ["TOOL_CALL_TIMEOUT_SECONDS", "NAMESPACE_MAX_CONCURRENCY", "ENABLE_FS_WATCHER"] {
        assert!(text.contains(name), "{text}");
    }
    // With what is wrong in the file.
    let folder = Folder::new(TOOLMAN).with_tools_toml("[dock]\nqueu = 1\n");
    let mut command = folder.command(&["serve"]);
    command.env("LOG_LEVEL", "loud").env("CORE_PORT", "0").env("BEARER_TOKEN", "change_me");
    let output = command.output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    let text = String::from_utf8(output.stderr).unwrap();
    for part in
        ["LOG_LEVEL is `loud`", "CORE_PORT is `0`", "BEARER_TOKEN is too weak", "tools.toml:2:1:"]
    {
        assert!(text.contains(part), "{text}");
    }
}

#[tokio::test]
async fn calls_of_one_namespace_are_bounded_in_number_and_in_frequency() {
    // TD-15, TD-17, TD-18, TD-30
    let data = Data::new(&[
        (
            "slow/a.py",
            "import time\nfrom fastmcp.tools import tool\n\n@tool\ndef nap() -> float:\n    \"\"\"Sleep.\"\"\"\n    began = time.monotonic()\n    time.sleep(0.2)\n    return began\n",
        ),
        ("slow/tooldock.yaml", "max_concurrency: 1\n"),
        ("rare/a.py", HELLO),
        ("rare/tooldock.yaml", "rate_limit: 2\n"),
        (
            "some/a.py",
            &format!("{HELLO}\n@tool\ndef hidden() -> str:\n    \"\"\"No.\"\"\"\n    return ''\n"),
        ),
        ("some/tooldock.yaml", "deny: ['hid*']\n"),
    ]);
    let dock = Dock::start(&data).await;
    let (nothing, first) = (json!({}), json!({}));
    let (first, second) =
        tokio::join!(dock.call("slow", "nap", &first), dock.call("slow", "nap", &nothing));
    let began =
        |answer: &HttpAnswer| answer.json()["structuredContent"]["result"].as_f64().unwrap();
    assert!((began(&first) - began(&second)).abs() >= 0.2, "one after the other");

    assert_eq!(dock.call("rare", "hello", &nothing).await.status, 200);
    assert_eq!(dock.call("rare", "hello", &nothing).await.status, 200);
    let third = dock.call("rare", "hello", &nothing).await;
    assert_eq!(third.status, 503, "{third:?}");
    assert!(third.body.contains("more often than it may be"), "{}", third.body);

    assert_eq!(dock.tools("some").await, ["hello"]);
    assert_eq!(dock.call("some", "hello", &nothing).await.status, 200);
    assert_eq!(dock.tools("some").await, ["hello"], "nor does the worker's own report show it");
    assert_eq!(dock.call("some", "hidden", &nothing).await.status, 404);
}

#[tokio::test]
async fn asynchronous_calls_of_one_worker_overlap() {
    // TD-31
    let data = Data::new(&[
        (
            "a/t.py",
            "import asyncio\nfrom fastmcp.tools import tool\n\nrunning = 0\n\n@tool\nasync def together() -> int:\n    \"\"\"Wait until 64 are here.\"\"\"\n    global running\n    running += 1\n    while running < 64:\n        await asyncio.sleep(0.005)\n    return running\n",
        ),
        ("a/tooldock.yaml", "max_concurrency: 64\n"),
    ]);
    let dock = Dock::start(&data).await;
    let mut calls = tokio::task::JoinSet::new();
    let dock = std::sync::Arc::new(dock);
    for _ in 0..64 {
        let dock = std::sync::Arc::clone(&dock);
        calls.spawn(async move { dock.call("a", "together", &json!({})).await.status });
    }
    while let Some(status) = timeout(Duration::from_secs(20), calls.join_next()).await.unwrap() {
        assert_eq!(status.unwrap(), 200);
    }
}

#[tokio::test]
async fn progress_and_logs_of_a_tool_reach_its_client() {
    let data = Data::new(&[(
        "a/t.py",
        "from fastmcp import Context\nfrom fastmcp.tools import tool\n\n@tool\nasync def work(ctx: Context) -> str:\n    \"\"\"Work.\"\"\"\n    await ctx.info('begun')\n    await ctx.report_progress(1, 2, 'half')\n    return 'done'\n",
    )]);
    let dock = Dock::start(&data).await;
    let namespace = ("X-Namespace", "a");
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}});
    let opened =
        dock.ask("POST", "/mcp", &[namespace], &request(0, "initialize", params).to_string()).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let headers = [namespace, ("Mcp-Session-Id", session.as_str())];
    let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    dock.ask("POST", "/mcp", &headers, initialized).await;
    let call = json!({"name": "work", "arguments": {}, "_meta": {"progressToken": "mine"}});
    let answer =
        dock.ask("POST", "/mcp", &headers, &request(1, "tools/call", call).to_string()).await;
    let events = answer.events();
    let find = |method: &str| events.iter().find(|event| event["method"] == method).cloned();
    let progress = find("notifications/progress").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(progress["params"]["progressToken"], "mine");
    assert_eq!(progress["params"]["message"], "half");
    let log = find("notifications/message").unwrap_or_else(|| panic!("{events:?}"));
    assert_eq!(log["params"]["data"], "begun");
    assert_eq!(events.last().unwrap()["result"]["structuredContent"]["result"], "done");
}

#[tokio::test]
async fn new_namespace_is_there_to_be_edited() {
    let data = Data::new(&[]);
    let folder = Folder::new(TOOLMAN);
    let run = |name: &'static str| {
        let mut command = folder.command(&["new", name]);
        command.arg("--data-dir").arg(data.path());
        async move { command.output().await.unwrap() }
    };
    let made = run("my-tools").await;
    assert_eq!(made.status.code(), Some(0));
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(said.contains("`toolman reload`") && said.contains("`toolman check "), "{said}");
    let again = run("my-tools").await;
    assert_eq!(again.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&again.stderr).contains("is there already"));
    for name in ["_system", "Upper", "a.b"] {
        assert_eq!(run(name).await.status.code(), Some(2), "{name}");
    }
    // Where the configuration has them elsewhere, it is there.
    let elsewhere = Folder::new(TOOLMAN).with_tools_toml("[dock]\nfolder = 'mine'\n");
    let made = elsewhere.run(&["new", "other"]).await;
    assert_eq!(made.status.code(), Some(0), "{made:?}");
    assert!(elsewhere.path().join("mine/other/tools.py").exists(), "{made:?}");
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("my-tools", "greet", &json!({"name": "Ada"})).await, "Hello, Ada!");
}
