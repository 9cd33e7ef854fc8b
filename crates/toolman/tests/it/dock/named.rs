//! Single folders of Python tools as servers of `tools.toml`, and `toolman reload`.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use testkit::processes::kill;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Child;
use tokio::time::{sleep, timeout};

use super::HELLO;
use crate::TOOLMAN;

const CONFIG: &str = r#"
surface = "filter"

[[servers]]
namespace = "greet"
python = "my tools"
env = { WORD = "Hello" }
deny = ["hidden"]
timeout = 20
"#;

const SOURCE: &str = r#"
import os
from fastmcp.tools import tool

@tool
def word(name: str = "World") -> str:
    """Greet."""
    return f"{os.environ['WORD']}, {os.environ.get('OTHER', 'dear')} {name}"

@tool
def hidden() -> str:
    """Not for anybody."""
    return ""
"#;

fn folder(config: &str) -> Folder {
    let folder = Folder::new(TOOLMAN).with_tools_toml(config);
    write(folder.path(), "t.py", SOURCE);
    // The file that names the folder counts for more.
    write(folder.path(), "tooldock.yaml", "env:\n  WORD: Bye\n  OTHER: own\n");
    folder
}

fn write(folder: &Path, file: &str, text: &str) {
    std::fs::create_dir_all(folder.join("my tools")).unwrap();
    std::fs::write(folder.join("my tools").join(file), text).unwrap();
}

/// `toolman serve` or `toolman up`, and where it is served.
struct Core {
    child: Child,
    address: String,
}

#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn start(folder: &Folder, command: &str, environment: &[(&str, &str)]) -> Core {
    let mut command = folder.command(&[command, "--listen", "127.0.0.1:0"]);
    command.envs(environment.iter().copied());
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    tokio::spawn(async move { while let Ok(Some(_)) = lines.next_line().await {} });
    let url = line.rsplit(' ').next().unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
    Core { child, address }
}

impl Core {
    async fn word(&self, folder: &Folder) -> String {
        let token = std::fs::read_to_string(folder.path().join("data/toolman/token")).unwrap();
        let bearer = format!("Bearer {token}");
        let headers = [("Authorization", bearer.as_str())];
        let answer = send(&self.address, "POST", "/tools/greet_word", &headers, "").await;
        assert_eq!(answer.status, 200, "{answer:?}");
        answer.json()["structuredContent"]["result"].as_str().unwrap().to_owned()
    }

    /// Waits until a tool says this, as it must after a while.
    async fn says(&self, folder: &Folder, word: &str) {
        let saying = async {
            while self.word(folder).await != word {
                sleep(std::time::Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, saying).await.expect("it is read again");
    }
}

async fn reload(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let output = folder.run(&[&["reload"], arguments].concat()).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[tokio::test]
async fn folder_named_in_the_configuration_is_served_and_reloaded_like_others() {
    // TD-01, TD-114, TD-115
    let folder = folder(CONFIG);
    let core = start(&folder, "serve", &[]).await;
    assert_eq!(core.word(&folder).await, "Hello, own World");
    write(folder.path(), "t.py", &SOURCE.replace("{name}", "{name}!"));
    let (code, text, _) = reload(&folder, &["--json"]).await;
    let done: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((code, &done["namespaces"]), (Some(0), &json!(["greet"])));
    assert_eq!(done["workers_restarted"], json!(["greet"]));
    assert_eq!(core.word(&folder).await, "Hello, own World!");
    write(folder.path(), "t.py", &SOURCE.replace("{name}", "{name}?"));
    kill("-HUP", core.child.id().unwrap());
    core.says(&folder, "Hello, own World?").await;
    let (code, text, _) = reload(&folder, &[]).await;
    assert_eq!((code, text.as_str()), (Some(0), "namespaces: greet\n"));
    let token = folder.path().join("data/toolman/manager.token");
    assert_eq!(token.metadata().unwrap().permissions().mode() & 0o777, 0o600);

    // What was killed is not there any more, and the next one is found where it is.
    kill("-KILL", core.child.id().unwrap());
    let mut core = core;
    core.child.wait().await.unwrap();
    let (code, _, errors) = reload(&folder, &[]).await;
    assert_eq!(code, Some(1));
    assert!(errors.contains("can't be reached") && errors.contains("--url"), "{errors}");
    let up = start(&folder, "up", &[("ENABLE_FS_WATCHER", "1")]).await;
    let (code, text, errors) = reload(&folder, &[]).await;
    assert_eq!((code, text.as_str()), (Some(0), "namespaces: greet\n"), "{errors}");
    drop(up);
}

#[tokio::test]
async fn folder_is_checked_and_served_over_stdio() {
    let folder = folder(CONFIG);
    let output = folder.run(&["check"]).await;
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.contains("greet"), "{text}");
    let mut running = folder.start().await;
    assert_eq!(running.client.tool_names().await, ["greet_word"]);
    write(folder.path(), "more.py", HELLO);
    kill("-HUP", running.pid);
    // One may be of the start still: of the folder that was not read when we came.
    while running.client.tool_names().await != ["greet_hello", "greet_word"] {
        running.client.next("notifications/tools/list_changed").await;
    }
}

#[tokio::test]
async fn watched_folder_is_read_again_by_itself() {
    // TD-118
    let folder = folder(&format!("{CONFIG}\n[dock]\nwatch = true\nwatch_debounce = 0.05\n"));
    let core = start(&folder, "serve", &[]).await;
    assert_eq!(core.word(&folder).await, "Hello, own World");
    write(folder.path(), "t.py", &SOURCE.replace("{name}", "{name}!"));
    core.says(&folder, "Hello, own World!").await;
}

#[tokio::test]
async fn reload_says_why_it_is_refused() {
    // TD-113
    let folder = folder(CONFIG);
    let (code, _, errors) = reload(&folder, &[]).await;
    assert_eq!(code, Some(2));
    assert!(errors.contains("there are no tokens to show"), "{errors}");
    let core = start(&folder, "serve", &[]).await;
    let mut command = folder.command(&["reload"]);
    command.env("MANAGER_INTERNAL_TOKEN", "another-0123456789abcdef");
    let output = command.output().await.unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(errors.contains("refuses") && errors.contains("MANAGER_INTERNAL_TOKEN"), "{errors}");
    assert!(!errors.contains("another-0123456789abcdef"), "{errors}");
    let (code, _, errors) = reload(&folder, &["--url", "here"]).await;
    assert_eq!(code, Some(2), "{errors}");
    drop(core);
}

#[tokio::test]
async fn folder_of_the_dock_gives_way_to_a_server_of_the_same_name() {
    let folder = folder(&format!("{CONFIG}\n[dock]\nfolder = 'all'\n"));
    for name in ["greet", "other"] {
        let path = folder.path().join("all").join(name);
        std::fs::create_dir_all(&path).unwrap();
        std::fs::write(path.join("t.py"), HELLO).unwrap();
    }
    let core = start(&folder, "serve", &[]).await;
    let (_, text, _) = reload(&folder, &["--json"]).await;
    let done: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(done["namespaces"], json!(["greet", "other"]));
    assert!(done["problems"][0].as_str().unwrap().contains("configured already"), "{done}");
    assert_eq!(core.word(&folder).await, "Hello, own World");
}
