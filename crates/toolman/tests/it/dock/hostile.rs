//! Folders that hold what nobody expects there, and tools that hide.

use std::os::unix::fs::symlink;
use std::time::Duration;

use rustix::fs::{CWD, FileType, Mode, mknodat};
use serde_json::json;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use tokio::time::{sleep, timeout};

use super::{Data, Dock, HELLO};
use crate::TOOLMAN;

/// Runs `toolman check` over a data directory: its exit code, and what it says.
pub async fn check(data: &Data) -> (Option<i32>, String) {
    let mut command = Folder::new(TOOLMAN).command(&["check"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    let output = timeout(PATIENCE, command.output()).await.expect("it ends").unwrap();
    (output.status.code(), String::from_utf8(output.stdout).unwrap())
}

#[tokio::test]
async fn pipes_and_devices_in_a_folder_hold_nobody_up() {
    let data = Data::new(&[("alpha/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    let alpha = data.path().join("tools/alpha");
    mknodat(CWD, alpha.join("pipe.txt"), FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    symlink("/dev/zero", alpha.join("zero.py")).unwrap();
    let done = timeout(PATIENCE, dock.reload()).await.expect("it ends");
    let told = done["problems"].to_string();
    assert!(told.contains("alpha: zero.py: is a link that leads out of the folder"), "{told}");
    assert_eq!(dock.text("alpha", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.ask("GET", "/healthz", &[], "").await.status, 200);
    assert_eq!(dock.tools("alpha").await, ["hello"]);
}

#[tokio::test]
async fn refused_folder_runs_nothing() {
    // HARDENING K12
    let data = Data::new(&[("a/t.py", HELLO), ("a/tooldock.yaml", "netwrok: false\n")]);
    let scratch = data.path().join("scratch/a");
    std::fs::create_dir_all(&scratch).unwrap();
    let planted = format!("open({:?}, 'w').close()\n{HELLO}", scratch.join("ran"));
    std::fs::write(scratch.join("t.py"), planted).unwrap();
    let (code, text) = check(&data).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("server `a` is not served: tooldock.yaml: "), "{text}");
    assert!(!scratch.join("ran").exists());
    let dock = Dock::start(&data).await;
    assert_eq!(dock.tools("a").await, Vec::<String>::new());
    let refused = dock.call("a", "hello", &json!({})).await;
    assert_eq!(refused.status, 502);
    assert!(refused.body.contains("tooldock.yaml"), "{}", refused.body);
    assert!(dock.workers("a").is_empty() && !data.path().join("venvs/a").exists());
    data.write("a/tooldock.yaml", "network: false\n");
    assert_eq!(dock.reload().await["problems"], json!([]));
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
}

#[tokio::test]
async fn tool_with_a_name_that_sources_do_not_tell_is_denied_all_the_same() {
    // TD-18
    let hidden = format!(
        "{HELLO}\nname = 'hid' + 'den'\n\n@tool(name)\ndef other() -> str:\n    \"\"\"No.\"\"\"\n    return 'seen'\n"
    );
    let data = Data::new(&[
        ("denied/t.py", &hidden),
        ("denied/tooldock.yaml", "deny: ['hidden']\n"),
        ("allowed/t.py", &hidden),
        ("allowed/tooldock.yaml", "allow: ['hello']\n"),
        ("open/t.py", &hidden),
    ]);
    let dock = Dock::start(&data).await;
    for namespace in ["denied", "allowed", "open"] {
        assert_eq!(dock.text(namespace, "hello", &json!({})).await, "Hello, World!");
    }
    assert_eq!(dock.tools("open").await, ["hello", "hidden"], "the worker tells it");
    for namespace in ["denied", "allowed"] {
        assert_eq!(dock.tools(namespace).await, ["hello"], "{namespace}");
        assert_eq!(dock.call(namespace, "hidden", &json!({})).await.status, 404, "{namespace}");
    }
}

#[tokio::test]
async fn tools_that_only_running_tells_are_listed_without_any_call() {
    // TD-01, TD-38, TD-49
    let two = "def one() -> str:\n    'One.'\n    return 'one'\n\ndef two() -> str:\n    'Two.'\n    return 'two'\n\n";
    let looped = format!(
        "from fastmcp.tools import tool\n\n{two}for function in (one, two):\n    tool(function)\n"
    );
    let added = format!(
        "from fastmcp import FastMCP\n\n{two}mcp = FastMCP('x')\nfor function in (one, two):\n    mcp.add_tool(function)\n"
    );
    let marked = "from _common import register, tool\n\n@register\ndef one() -> str:\n    'One.'\n    return 'one'\n\n@tool\ndef two() -> str:\n    'Two.'\n    return 'two'\n";
    let common =
        "from fastmcp.tools import tool\n\ndef register(function):\n    return tool(function)\n";
    let data = Data::new(&[
        ("looped/t.py", &looped),
        ("added/t.py", &added),
        ("marked/t.py", marked),
        ("marked/_common.py", common),
        ("plain/t.py", HELLO),
    ]);
    let dock = Dock::start(&data).await;
    for namespace in ["looped", "added", "marked"] {
        let listing = async {
            while dock.tools(namespace).await != ["one", "two"] {
                sleep(Duration::from_millis(20)).await;
            }
        };
        timeout(PATIENCE, listing).await.unwrap_or_else(|_| panic!("{namespace} is listed"));
        assert_eq!(dock.text(namespace, "two", &json!({})).await, "two");
    }
    assert!(dock.workers("plain").is_empty(), "others still rest");
    // One that comes later is listed as soon as it is there.
    data.write("later/t.py", &looped);
    dock.reload().await;
    assert_eq!(dock.tools("later").await, ["one", "two"]);
}

#[tokio::test]
async fn change_of_a_large_file_and_of_a_name_of_a_folder_reaches_the_worker() {
    let look = "import os\nfrom fastmcp.tools import tool\n\nHERE = os.path.dirname(__file__)\n\n@tool\ndef look() -> str:\n    \"\"\"Look.\"\"\"\n    with open(os.path.join(HERE, 'large.txt')) as file:\n        return file.read()[-1] + ' '.join(sorted(os.listdir(HERE)))\n";
    let large = "x".repeat(2 * 1024 * 1024);
    let data = Data::new(&[("a/t.py", look), ("a/large.txt", &large), ("a/one/d", "1")]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "look", &json!({})).await, "xlarge.txt one t.py");
    data.write("a/large.txt", &format!("{}y", &large[1..]));
    assert_eq!(dock.reload().await["workers_restarted"], json!(["a"]));
    assert_eq!(dock.text("a", "look", &json!({})).await, "ylarge.txt one t.py");
    let folder = data.path().join("tools/a");
    std::fs::rename(folder.join("one"), folder.join("two")).unwrap();
    assert_eq!(dock.reload().await["workers_restarted"], json!(["a"]));
    assert_eq!(dock.text("a", "look", &json!({})).await, "ylarge.txt t.py two");
}
