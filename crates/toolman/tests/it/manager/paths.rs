//! Attacks on the paths that the manager takes: nothing outside is read or written.

use std::fs;
use std::os::unix::fs::symlink;

use serde_json::{Value, json};

use super::{both, tool};
use crate::dock::HELLO;

/// Names of files that must be refused.
const FILES: [&str; 26] = [
    "../x.py",
    "../../x.py",
    "/etc/x.py",
    "a/b.py",
    "a\\b.py",
    "./x.py",
    "x.py/",
    "..",
    ".",
    "",
    "x",
    "x.txt",
    ".x.py",
    "_x.py",
    "__init__.py",
    "x.py\0",
    "x\0.py",
    "x.py\n",
    "x y.py",
    "~/x.py",
    "%2e%2e/x.py",
    "..%2fx.py",
    "x.PY",
    "ｘ.py",
    "x.py/../../../y.py",
    "file:///x.py",
];

/// Names of namespaces that must be refused.
const NAMESPACES: [&str; 14] = [
    "..",
    ".",
    "../shared",
    "/tmp",
    "a/b",
    "shared/",
    "shared/../other",
    "_system",
    "_manager",
    "Shared",
    "sha.red",
    "",
    "shared\0",
    "a b",
];

#[tokio::test]
async fn forty_paths_that_lead_elsewhere_are_refused() {
    // HARDENING F05, F07
    assert_eq!(FILES.len() + NAMESPACES.len(), 40);
    let (data, _core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let before = tree(data.path());
    for name in FILES {
        let read = json!({"namespace": "shared", "filename": name});
        manager.refused("get_tool_source", read.clone()).await;
        manager.refused("delete_tool", read.clone()).await;
        let mut write = read;
        write["code"] = json!(HELLO);
        let refused = manager.done("write_tool", write).await;
        assert_eq!(refused["written"], false, "{name:?}");
    }
    for name in NAMESPACES {
        let of = |extra: Value| {
            let mut arguments = extra;
            arguments["namespace"] = json!(name);
            arguments
        };
        manager.refused("write_tool", of(json!({"filename": "x.py", "code": HELLO}))).await;
        manager.refused("get_tool_source", of(json!({"filename": "hello.py"}))).await;
        manager.refused("add_requirement", of(json!({"package": "idna"}))).await;
        manager.refused("list_tools", of(json!({}))).await;
        manager.refused("delete_namespace", json!({"name": name})).await;
        manager.refused("create_namespace", json!({"name": name})).await;
    }
    assert_eq!(tree(data.path()), before);
}

/// All files below a folder, but for what is made anew to read sources.
fn tree(folder: &std::path::Path) -> Vec<String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let is_ours = ["runtime", "cache", "uv", "logs"].iter().any(|name| path.ends_with(name));
        if is_ours {
            continue;
        }
        found.push(path.display().to_string());
        if path.is_dir() && !path.is_symlink() {
            found.extend(tree(&path));
        }
    }
    found.sort();
    found
}

#[tokio::test]
async fn links_out_of_the_folder_are_neither_read_nor_written_nor_followed() {
    let (data, _core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let outside = tempfile::TempDir::new().unwrap();
    fs::write(outside.path().join("secret.py"), "hush = 1\n").unwrap();
    let shared = data.path().join("tools/shared");
    symlink(outside.path().join("secret.py"), shared.join("link.py")).unwrap();
    symlink(outside.path().join("fresh.py"), shared.join("dangling.py")).unwrap();
    symlink(outside.path(), data.path().join("tools/linked")).unwrap();
    symlink("/dev/zero", shared.join("endless.py")).unwrap();
    let fifo = std::process::Command::new("mkfifo").arg(shared.join("pipe.py")).status().unwrap();
    assert!(fifo.success());
    for file in ["link.py", "dangling.py", "endless.py", "pipe.py"] {
        let read = json!({"namespace": "shared", "filename": file});
        let refused = manager.refused("get_tool_source", read.clone()).await;
        assert!(!refused.contains("hush"), "{refused}");
        let mut write = read;
        write["code"] = json!(tool("x", "return text"));
        manager.refused("write_tool", write).await;
    }
    let linked = json!({"namespace": "linked", "filename": "secret.py"});
    assert!(!manager.refused("get_tool_source", linked).await.contains("hush"));
    manager.refused("delete_namespace", json!({"name": "linked"})).await;
    let gone = manager.done("delete_namespace", json!({"name": "shared"})).await;
    assert_eq!(gone["deleted"], true);
    assert!(!shared.exists());
    let left: Vec<_> =
        fs::read_dir(outside.path()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left, ["secret.py"], "nothing outside was written or removed");
    assert_eq!(fs::read_to_string(outside.path().join("secret.py")).unwrap(), "hush = 1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn folder_that_is_swapped_for_a_link_meanwhile_leads_nowhere() {
    let (data, _core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let outside = tempfile::TempDir::new().unwrap();
    let hush = tool("hush", "return text").replace("Do hush", "canary-91d2");
    fs::write(outside.path().join("hello.py"), &hush).unwrap();
    let tools = data.path().join("tools");
    symlink(outside.path(), tools.join(".link")).unwrap();
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (tools, is_over) = (tools.clone(), std::sync::Arc::clone(&is_over));
        move || {
            use rustix::fs::{CWD, RenameFlags, renameat_with};
            let (one, other) = (tools.join("shared"), tools.join(".link"));
            let mut swaps = 0_u32;
            while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                renameat_with(CWD, &one, CWD, &other, RenameFlags::EXCHANGE).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (mut done, mut refused) = (0, 0);
    for round in 0..200 {
        let file = json!({"namespace": "shared", "filename": "hello.py"});
        let answer = match round % 10 {
            0 => {
                let code = json!({"namespace": "shared", "filename": "new.py", "code": HELLO});
                manager.call("write_tool", &code).await
            }
            1 => manager.call("list_tools", &json!({"namespace": "shared"})).await,
            2 => {
                manager
                    .call("delete_tool", &json!({"namespace": "shared", "filename": "new.py"}))
                    .await
            }
            _ => manager.call("get_tool_source", &file).await,
        };
        if answer["isError"] == true {
            refused += 1;
        } else {
            done += 1;
        }
        assert!(!answer.to_string().contains("canary-91d2"), "{answer}");
    }
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert!(
        swaps > 100 && done > 0 && refused > 0,
        "{swaps} swaps, {done} done, {refused} refused"
    );
    let left = fs::read_dir(outside.path()).unwrap().flatten().map(|entry| entry.file_name());
    assert_eq!(left.collect::<Vec<_>>(), ["hello.py"]);
    assert_eq!(fs::read_to_string(outside.path().join("hello.py")).unwrap(), hush);
}

#[tokio::test]
async fn folder_with_any_depth_and_any_name_can_be_replaced() {
    let around = tempfile::TempDir::new().unwrap();
    let repository = crate::sources::repository(around.path());
    let manager = crate::sources::Manager::of_folder(around.path()).await;
    let analyse = json!({"repo_url": repository.display().to_string(), "refresh": true});
    manager.call("analyze_repo", analyse.clone()).await.unwrap();
    let repos = manager.path().join("repos");
    let clone = fs::read_dir(&repos).unwrap().next().unwrap().unwrap().path().join("source");
    let odd = std::os::unix::ffi::OsStringExt::from_vec(b"odd-\xff".to_vec());
    let mut deep: std::path::PathBuf = clone.join::<std::ffi::OsString>(odd);
    for _ in 0..300 {
        deep.push("d");
    }
    fs::create_dir_all(&deep).unwrap();
    fs::write(deep.join("file"), "x").unwrap();
    fs::create_dir_all(repos.join(".gone-1-left/over")).unwrap();
    manager.call("analyze_repo", analyse).await.unwrap();
    let names = fs::read_dir(&repos).unwrap().map(|entry| entry.unwrap().file_name());
    let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
    names.retain(|name| name != ".gone-1-left");
    assert_eq!(names.len(), 1, "{names:?}");
}
