//! Packages that take their time, or can't be had: others are served meanwhile, and everybody is told what is going on.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::processes::kill;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::time::timeout;

use super::faults::call_mcp;
use super::hostile::check;
use super::index::Index;
use super::{Data, Dock, HELLO, TOKEN};
use crate::TOOLMAN;

/// A tool that tells the version of a package.
fn tells(package: &str) -> String {
    format!(
        "from fastmcp.tools import tool\n\n@tool\ndef version() -> str:\n    \"\"\"Tell.\"\"\"\n    import {package}\n    return {package}.__version__\n"
    )
}

/// What that tool says in the namespace `with`.
async fn version(dock: &Dock) -> String {
    dock.text("with", "version", &json!({})).await
}

/// `toolman serve` over a data directory, which is reachable though it has not said so yet.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
pub async fn early(mut command: Command, data: &Data) -> Dock {
    command.env("BEARER_TOKEN", TOKEN).env("MANAGER_INTERNAL_TOKEN", super::MANAGER);
    let child = command.stdout(Stdio::null()).spawn().unwrap();
    let told = data.path().join("core.url");
    let address = timeout(PATIENCE, async {
        loop {
            match std::fs::read_to_string(&told) {
                Ok(url) if url.ends_with('\n') => break url.trim().replace("http://", ""),
                _ => tokio::time::sleep(Duration::from_millis(20)).await,
            }
        }
    });
    Dock { child, address: address.await.expect("it says where it is") }
}

pub fn command(data: &Data, environment: &[(&str, &str)]) -> Command {
    let mut command = Folder::new(TOOLMAN).command(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command.envs(environment.iter().copied());
    command
}

/// What `/health` tells the operator of a namespace, when it is as it should be.
pub async fn health(dock: &Dock, name: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let looking = async {
        loop {
            let answer = dock.ask("GET", "/health", &[], "").await;
            assert_eq!(answer.status, 200, "{answer:?}");
            let health = answer.json();
            let servers = health["servers"].as_array().unwrap();
            let found = servers.iter().find(|server| server["name"] == name);
            if let Some(found) = found.filter(|found| is_so(found)) {
                break found.clone();
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, looking).await.expect("it becomes so")
}

/// A Python that does nothing before a file is there, and that file.
pub async fn gated(data: &Data) -> (PathBuf, PathBuf) {
    let (python, gate) = (data.path().join("python-slow"), data.path().join("gate"));
    let text = format!(
        "#!/bin/sh\nwhile [ ! -e {} ]; do sleep 0.05; done\nexec python3 \"$@\"\n",
        gate.display()
    );
    // Written by another process: what is open for writing here can't be run while another test forks.
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf %s \"$1\" > \"$0\" && chmod 755 \"$0\""]).arg(&python).arg(&text);
    assert!(shell.output().await.unwrap().status.success());
    (python, gate)
}

#[tokio::test]
async fn slow_python_keeps_nobody_waiting_but_its_own_namespace() {
    // HARDENING §3.13: nothing that a namespace does stops the core or another namespace.
    let data = Data::new(&[("quick/t.py", HELLO), ("slow/t.py", HELLO), ("hasty/t.py", HELLO)]);
    let (python, gate) = gated(&data).await;
    data.write("slow/tooldock.yaml", &format!("python: {}\n", python.display()));
    data.write("hasty/tooldock.yaml", &format!("python: {}\ntimeout: 1\n", python.display()));
    let dock = early(command(&data, &[]), &data).await;
    assert_eq!(health(&dock, "slow", |_| true).await["state"], "installing");
    health(&dock, "quick", |quick| quick["state"] == "resting").await;
    assert_eq!(dock.text("quick", "hello", &json!({})).await, "Hello, World!");
    let named = dock.ask("GET", "/namespaces", &[], "").await.json();
    assert!(named.to_string().contains("installing"), "{named}");
    let hasty = dock.call("hasty", "hello", &json!({})).await;
    assert_eq!(hasty.status, 503, "it waits no longer than a call may take: {hasty:?}");
    // Others can be read again meanwhile.
    data.write("new/t.py", HELLO);
    kill("-HUP", dock.child.id().unwrap());
    let arrives = async {
        while dock.call("new", "hello", &json!({})).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, arrives).await.expect("it is served");
    std::fs::write(gate, "").unwrap();
    health(&dock, "slow", |slow| slow["state"] == "resting").await;
    assert_eq!(dock.text("slow", "hello", &json!({})).await, "Hello, World!");
}

#[tokio::test]
async fn calls_and_lists_wait_for_a_folder_that_is_still_to_be_read() {
    // TD-18, TD-114
    let data = Data::new(&[("quick/t.py", HELLO), ("slow/t.py", HELLO)]);
    let (python, gate) = gated(&data).await;
    data.write("slow/tooldock.yaml", &format!("python: {}\n", python.display()));
    let dock = early(command(&data, &[]), &data).await;
    let slow = [("X-Namespace", "slow")];
    let arguments = json!({});
    let waiting = async {
        tokio::join!(
            dock.tools("slow"),
            dock.call("slow", "hello", &arguments),
            call_mcp(&dock, "slow", "hello", &arguments),
            dock.ask("GET", "/tools/hello/schema", &slow, ""),
            dock.ask("GET", "/openapi.json", &slow, ""),
        )
    };
    let others = async {
        assert_eq!(dock.text("quick", "hello", &json!({})).await, "Hello, World!");
        assert_eq!(health(&dock, "slow", |_| true).await["state"], "installing");
        std::fs::write(&gate, "").unwrap();
    };
    let waiting = timeout(PATIENCE, async { tokio::join!(waiting, others).0 });
    let (tools, called, over_mcp, schema, document) = waiting.await.expect("all are answered");
    assert_eq!(tools, ["hello"]);
    assert_eq!(called.status, 200, "{called:?}");
    assert_eq!(over_mcp["isError"], false, "{over_mcp}");
    assert_eq!(schema.status, 200, "{schema:?}");
    assert!(document.body.contains("/tools/hello"), "{document:?}");
}

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn calls_wait_for_packages_that_are_being_installed() {
    let index = Index::of(&[("quince", "wheel")]).await.close();
    let data = Data::new(&[
        ("with/t.py", &tells("quince")),
        ("with/requirements.txt", "quince\n"),
        ("hasty/t.py", &tells("quince")),
        ("hasty/requirements.txt", "quince==1.0\n"),
        ("hasty/tooldock.yaml", "timeout: 1\n"),
        ("other/t.py", HELLO),
    ]);
    let dock = Dock::start_with(&data, &[("UV_INDEX_URL", &index.url())]).await;
    let making = health(&dock, "with", |with| with["making"] == "installing quince").await;
    assert_eq!(making["state"], "installing");
    assert_eq!(dock.tools("with").await, ["version"], "the list is there before the packages");
    assert_eq!(dock.text("other", "hello", &json!({})).await, "Hello, World!");
    let late = dock.call("hasty", "version", &json!({})).await;
    assert_eq!(late.status, 503, "{late:?}");
    assert!(late.body.contains("its packages are being installed; try again later"), "{late:?}");
    let called = async {
        let (answer, ()) = tokio::join!(version(&dock), async {
            index.is_asked().await;
            index.open();
        });
        answer
    };
    assert_eq!(timeout(PATIENCE, called).await.expect("it is answered"), "1.0");
    // A newer version goes on with the former environment until its own is there. TD-114, TD-115
    let index = index.close();
    data.write("with/requirements.txt", "quince==1.0\n");
    data.write("new/t.py", HELLO);
    let mut command = Folder::new(TOOLMAN).command(&["reload", "--json"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command.env("BEARER_TOKEN", TOKEN).env("MANAGER_INTERNAL_TOKEN", super::MANAGER);
    let mut reload = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut told = BufReader::new(reload.stderr.take().unwrap()).lines();
    let (output, ()) = tokio::join!(reload.wait_with_output(), async {
        let step = timeout(PATIENCE, told.next_line()).await.expect("it says what it does");
        assert_eq!(step.unwrap().unwrap(), "with: installing quince==1.0");
        assert_eq!(version(&dock).await, "1.0");
        assert_eq!(dock.text("new", "hello", &json!({})).await, "Hello, World!");
        index.open();
    });
    let done: Value = serde_json::from_slice(&output.unwrap().stdout).unwrap();
    assert_eq!(done["deps_synced"], json!(["with"]), "the other has none: {done}");
    assert_eq!(done["workers_restarted"], json!(["new", "with"]), "{done}");
    assert_eq!(done["problems"], json!([]), "{done}");
}

#[tokio::test]
async fn what_can_not_be_installed_is_told_and_not_tried_at_each_reload() {
    // TD-114, HARDENING D01, D06
    let index = Index::of(&[("quince", "wheel"), ("onlysource", "sdist")]).await;
    let data = Data::new(&[("with/t.py", &tells("quince")), ("with/requirements.txt", "quince\n")]);
    let dock = Dock::start_with(&data, &[("UV_INDEX_URL", &index.url())]).await;
    assert_eq!(version(&dock).await, "1.0");
    let problem = |done: &Value| done["problems"].as_array().unwrap().last().unwrap().to_string();

    data.write("with/requirements.txt", "quince\nonlysource\n");
    let done = dock.reload().await;
    let told = problem(&done);
    assert!(
        told.contains("`onlysource` has no wheel for this Python, and builds are off"),
        "{told}"
    );
    assert!(told.contains("the former ones are used"), "{told}");
    assert_eq!(version(&dock).await, "1.0");
    let (asked, workers) = (index.asked(), dock.workers("with"));
    let done = dock.reload().await;
    assert_eq!(done["workers_restarted"], json!([]), "{done}");
    assert!(problem(&done).contains("builds are off"), "{done}");
    assert_eq!((index.asked(), dock.workers("with")), (asked, workers), "it is left alone");

    data.write("with/requirements.txt", "quince==7\n");
    let done = dock.reload().await;
    assert_eq!(done["deps_synced"], json!([]));
    let told = problem(&done);
    assert!(told.contains("quince==7") && !told.contains(".new-"), "{told}");
    assert!(!told.contains("Using Python"), "{told}");

    // What is refused is not sought elsewhere, and changes nothing.
    data.write("with/requirements.txt", "quince\n--index-url https://example.com\n");
    data.write("with/pyproject.toml", "[project]\ndependencies = [\"onlysource\"]\n");
    let done = dock.reload().await;
    assert_eq!(done["deps_synced"], json!([]), "{done}");
    assert!(done.to_string().contains("requirements.txt:2: "), "{done}");
    assert!(!done.to_string().contains("onlysource"), "{done}");
    assert_eq!(version(&dock).await, "1.0");
}

#[tokio::test]
async fn silent_index_is_given_up_while_the_former_packages_serve() {
    // HARDENING D08
    let index = Index::of(&[]).await.close();
    let data = Data::new(&[("with/t.py", HELLO)]);
    let settings = "surface = 'namespace'\n[dock]\ninstall_timeout = 6\n";
    std::fs::write(data.path().join("tools.toml"), settings).unwrap();
    let settings = [("UV_INDEX_URL", index.url()), ("PIP_INDEX_URL", index.url())];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let dock = Dock::start_with(&data, &settings).await;
    assert_eq!(dock.text("with", "hello", &json!({})).await, "Hello, World!");
    data.write("with/requirements.txt", "quince==1.0\n");
    let done = timeout(PATIENCE, dock.reload()).await.expect("it ends");
    let told = done["problems"][0].as_str().unwrap();
    assert!(told.contains("the former ones are used: "), "{told}");
    assert!(told.contains("was not done when 6s were over"), "{told}");
    assert!(told.contains("raise `install_timeout` of `[dock]`"), "{told}");
    assert_eq!(dock.text("with", "hello", &json!({})).await, "Hello, World!");
}

#[tokio::test]
async fn pip_installs_where_uv_can_not_be_had() {
    let index = Index::of(&[("quince", "wheel"), ("onlysource", "sdist")]).await;
    let data = Data::new(&[
        ("a/t.py", &tells("quince")),
        ("a/pyproject.toml", "[project]\nname = \"a\"\ndependencies = [\"quince==1.0\"]\n"),
        ("b/t.py", HELLO),
        ("b/requirements.txt", "onlysource\n"),
    ]);
    // The index has no uv.
    let path = std::env::var("PATH").unwrap();
    let path: Vec<_> =
        path.split(':').filter(|folder| !Path::new(folder).join("uv").exists()).collect();
    let settings = [
        ("PIP_INDEX_URL", index.url()),
        ("PIP_FIND_LINKS", String::new()),
        ("PATH", path.join(":")),
    ];
    let settings = settings.each_ref().map(|(name, value)| (*name, value.as_str()));
    let dock = Dock::start_with(&data, &settings).await;
    assert_eq!(dock.text("a", "version", &json!({})).await, "1.0");
    assert!(!data.path().join("uv/bin/uv").exists());
    let told = health(&dock, "b", |b| b["state"] == "flawed").await["problem"].to_string();
    let reason =
        "the index has no `onlysource`, or no wheel of it for this Python, and builds are off";
    assert!(told.contains(reason), "{told}");
}

#[tokio::test]
async fn missing_python_is_the_matter_of_its_namespace_alone() {
    // HARDENING X11
    let data = Data::new(&[
        ("a/t.py", HELLO),
        ("b/t.py", HELLO),
        ("b/tooldock.yaml", "python: /nowhere/python3\n"),
    ]);
    let (code, text) = check(&data).await;
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("has no Python: `/nowhere/python3`"), "{text}");
    assert!(text.contains("install it, or name another"), "{text}");
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
}

#[tokio::test]
async fn environment_whose_python_is_gone_is_built_again() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    drop(dock);
    let environment = data.path().join("venvs/a/current/bin");
    for name in ["python", "python3"] {
        std::fs::remove_file(environment.join(name)).unwrap();
        std::os::unix::fs::symlink("/nowhere/python3", environment.join(name)).unwrap();
    }
    let dock = Dock::start(&data).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    assert_eq!(dock.reload().await["problems"], json!([]));
}
