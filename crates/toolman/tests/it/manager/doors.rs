//! Who may come to the manager, by which token, and what of it is written down.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use tokio::time::timeout;

use super::{Manager, tool, written};
use crate::TOOLMAN;
use crate::dock::{Data, Dock, HELLO, TOKEN, served};
use crate::secrets_cli::{run, set};
use crate::up::Up;

const AGENT: &str = "agent-0123456789abcdef0123456789abcdef";
const OWN: &str = "managers-own-0123456789abcdef0123456789";

/// The status of a request with this token.
async fn status(address: &str, token: &str, path: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    send(address, "GET", path, &[("Authorization", &bearer)], "").await.status
}

/// The address of the manager beside `toolman up`.
pub fn beside(up: &Up) -> String {
    let line = up.banner().lines().find(|line| line.contains("toolman-manager")).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned()
}

#[tokio::test]
async fn tokens_of_agents_open_the_core_and_not_the_manager() {
    // TD-117, TD-145: whoever is restricted there would be free here.
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let file = format!("surface = \"filter\"\n[dock]\n[tokens.ada]\ntoken = \"{AGENT}\"\n");
    std::fs::write(data.path().join("tools.toml"), &file).unwrap();
    let core = Dock::start(&data).await;
    let manager = Manager::beside(&data, &core).await;
    assert_eq!(status(&core.address, AGENT, "/tools").await, 200);
    assert_eq!(status(&manager.address, AGENT, "/tools").await, 401);
    assert_eq!(status(&manager.address, TOKEN, "/tools").await, 200);
    drop((core, manager));
    let folder = Folder::new(TOOLMAN).with_tools_toml(&file);
    let up = Up::start(&folder).await;
    assert_eq!(status(&up.address, AGENT, "/tools").await, 200);
    assert_eq!(status(&beside(&up), AGENT, "/tools").await, 401);
    assert_eq!(status(&beside(&up), &up.token, "/tools").await, 200);
}

#[tokio::test]
async fn manager_may_have_a_token_of_its_own_and_still_reach_its_core() {
    // TD-145: what opens the one need not open the other.
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let core = Dock::start(&data).await;
    let url = format!("http://{}", core.address);
    std::fs::write(data.path().join("own.token"), OWN).unwrap();
    let mut command = Folder::new(TOOLMAN).command(&["manager", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).args(["--token-file", "own.token"]);
    command.current_dir(data.path()).env("CORE_URL", &url).env("TOOL_APPROVAL", "auto");
    let with_file = Dock::spawn(command).await;
    reaches_core(&with_file.address, OWN).await;
    assert_eq!(status(&with_file.address, TOKEN, "/tools").await, 401, "that of the core");
    assert_eq!(status(&core.address, OWN, "/namespaces").await, 401, "that of the manager");
    // By variables alone: `BEARER_TOKEN` is for who comes to us, `CORE_TOKEN` for whom we go to.
    let mut command = Folder::new(TOOLMAN).command(&["manager", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path()).env("CORE_URL", &url);
    command.env("CORE_TOKEN", "another-0123456789abcdef0123456789abc");
    let wrong = Dock::spawn(command).await;
    let manager = Manager { child: wrong.child, address: wrong.address };
    let said = manager.refused("test_tool", tried()).await;
    assert!(said.contains("CORE_TOKEN"), "{said}");
    let folder = Folder::new(TOOLMAN);
    let weak = folder.command(&["manager"]).env("CORE_TOKEN", "short").output().await.unwrap();
    assert_eq!(weak.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&weak.stderr).contains("CORE_TOKEN"), "{weak:?}");
}

fn tried() -> Value {
    json!({"namespace": "shared", "tool_name": "hello", "input": {}})
}

async fn reaches_core(address: &str, token: &str) {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    for (tool, arguments, path, expected) in [
        ("reload_core", json!({}), "reloaded", json!(true)),
        ("test_tool", tried(), "success", json!(true)),
        ("health", json!({}), "core_reachable", json!(true)),
    ] {
        let path_of = format!("/tools/{tool}");
        let answer = send(address, "POST", &path_of, &headers, &arguments.to_string()).await.json();
        assert_eq!(answer["structuredContent"][path], expected, "{tool}: {answer}");
    }
}

/// The lines of all audit trails beneath a data directory.
fn trail(data: &std::path::Path) -> Vec<Value> {
    let files = std::fs::read_dir(data.join("logs/audit")).into_iter().flatten().flatten();
    let files = files.map(|entry| entry.path());
    let files = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl"));
    let texts = files.map(|path| std::fs::read_to_string(path).unwrap_or_default());
    let lines: Vec<String> =
        texts.flat_map(|text| text.lines().map(str::to_owned).collect::<Vec<_>>()).collect();
    lines.iter().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// Waits until the trail holds a line that is wanted.
async fn recorded(data: &std::path::Path, is_it: impl Fn(&Value) -> bool) -> Value {
    let found = async {
        loop {
            if let Some(line) = trail(data).into_iter().find(|line| is_it(line)) {
                return line;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, found).await.expect("it is written down")
}

const CANARY: &str = "canary-of-the-manager-8f1e";

/// A file of tools into which somebody has written a value.
fn careless() -> String {
    tool("show", &format!("return '{CANARY}'")).replace("Do show.", &format!("Do {CANARY}."))
}

#[tokio::test]
async fn manager_tells_no_value_and_writes_down_what_it_did() {
    // TD-65, TD-144
    let folder = Folder::new(TOOLMAN);
    let data = Data::new(&[("shared/hello.py", HELLO), ("shared/careless.py", &careless())]);
    let log = folder.path().join("log");
    let mut command = folder.command(&["manager", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command.env("TOOL_APPROVAL", "auto").env("TOOLMAN_LOG", "trace");
    command.stderr(std::fs::File::create(&log).unwrap());
    let Dock { child, address } = Dock::spawn(command).await;
    let mut manager = Manager { child, address };
    // A person sets it while the manager runs.
    let input = data.path().display().to_string();
    let (code, said) = run(&folder, &["set", "TOKEN", "--data-dir", &input], CANARY).await;
    assert_eq!(code, Some(0), "{said}");
    let shown = [
        manager
            .done("get_tool_source", json!({"namespace": "shared", "filename": "careless.py"}))
            .await,
        manager.done("list_tools", json!({"namespace": "shared"})).await,
    ];
    for shown in shown {
        let text = shown.to_string();
        assert!(text.contains("[redacted:TOKEN]") && !text.contains(CANARY), "{text}");
    }
    let asked = manager.refused("delete_namespace", json!({"name": CANARY})).await;
    assert!(!asked.contains(CANARY), "{asked}");
    manager.done("write_tool", written("x.py", &tool("x", "return text"))).await;
    let found = recorded(data.path(), |line| line["event"] == "hidden").await;
    assert_eq!((&found["secret"], &found["method"]), (&json!("TOKEN"), &json!("tools/call")));
    for name in ["get_tool_source", "list_tools", "delete_namespace", "write_tool"] {
        recorded(data.path(), |line| line["event"] == "call" && line["asked"] == name).await;
    }
    testkit::processes::kill("-TERM", manager.child.id().unwrap());
    manager.child.wait().await.unwrap();
    for line in trail(data.path()) {
        assert!(!line.to_string().contains(CANARY), "{line}");
    }
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("hid the value of a secret") && !log.contains(CANARY), "{log}");
    let verified = folder.run(&["audit", "verify", "--data-dir", input.as_str()]).await;
    assert!(verified.status.success(), "{verified:?}");
}

#[tokio::test]
async fn calls_of_the_manager_beside_up_are_in_the_trail_too() {
    let folder = Folder::new(TOOLMAN);
    let up = Up::start(&folder).await;
    let data = folder.path().join("data/toolman");
    std::fs::write(data.join("tools/shared/careless.py"), careless()).unwrap();
    set(&folder, "TOKEN", "global", CANARY).await;
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str())];
    let asked = json!({"namespace": "shared", "filename": "careless.py"}).to_string();
    let answer = send(&beside(&up), "POST", "/tools/get_tool_source", &headers, &asked).await;
    assert!(answer.body.contains("[redacted:TOKEN]"), "{}", answer.body);
    assert!(!answer.body.contains(CANARY), "{}", answer.body);
    let call = recorded(&data, |line| line["asked"] == "get_tool_source").await;
    let hidden = recorded(&data, |line| line["event"] == "hidden").await;
    assert_eq!(hidden["session"], call["session"], "it says whose call that was");
}

#[tokio::test]
async fn manager_heeds_the_variables_that_it_shows() {
    // TD-144, TD-146
    let data = Data::new(&[]);
    let folder = Folder::new(TOOLMAN);
    let log = folder.path().join("log");
    let mut command = folder.command(&["manager", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command.env("LOG_LEVEL", "info").env("CORS_ORIGINS", "*").env("TOOLDOCK_UID", "4242");
    command.stderr(std::fs::File::create(&log).unwrap());
    let Dock { child, address } = Dock::spawn(command).await;
    let manager = Manager { child, address };
    let shown = manager.done("server_config", json!({})).await;
    assert_eq!((&shown["log_level"], &shown["cors_origins"]), (&json!("info"), &json!("*")));
    let said = async {
        loop {
            let log = std::fs::read_to_string(&log).unwrap();
            let wanted =
                ["CORS_ORIGINS lets pages of all origins in", "TOOLDOCK_UID is 4242", "INFO"];
            if wanted.iter().all(|words| log.contains(words)) {
                break;
            }
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, said).await.expect("it says so");
    let named = [("CORS_ORIGINS", "https://app.example"), ("LOG_LEVEL", "warning")];
    let (child, address) = served(&data, "manager", &named).await;
    let shown = Manager { child, address }.done("server_config", json!({})).await;
    assert_eq!(shown["log_level"], "warn");
    assert_eq!(shown["cors_origins"], "https://app.example");
}
