//! Several things at once: calls of one manager, and the processes of one program.

use std::os::unix::fs::PermissionsExt;

use futures_util::future::join_all;
use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use testkit::processes::{command_line, descendants, is_alive, kill};
use tokio::time::timeout;

use super::Manager;
use super::doors::beside;
use crate::dock::{Data, HELLO};
use crate::up::Up;
use crate::{TOOLMAN, fake};

const KEYS: [&str; 8] = ["KEY_A", "KEY_B", "KEY_C", "KEY_D", "KEY_E", "KEY_F", "KEY_G", "KEY_H"];
const PACKAGES: [&str; 8] =
    ["idna", "six", "attrs", "certifi", "packaging", "toml", "wheel", "pip"];

/// One call for each, all at once; none may fail.
async fn all_at_once(manager: &Manager, tool: &str, calls: impl Iterator<Item = Value>) {
    let calls: Vec<Value> = calls.collect();
    let asked = calls.iter().map(|arguments| manager.call(tool, arguments));
    for answer in join_all(asked).await {
        assert_ne!(answer["isError"], true, "{tool}: {answer}");
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut words: Vec<_> = text.lines().map(|line| line.trim_start_matches([' ', '-'])).collect();
    words.retain(|word| !word.is_empty() && *word != "secrets:");
    words.sort_unstable();
    words
}

#[tokio::test]
async fn calls_at_once_lose_nothing_of_each_other() {
    // TD-129, TD-131: clients call tools side by side.
    let data = Data::new(&[("web/t.py", HELLO)]);
    for (approval, folder) in [("required", "pending/web"), ("auto", "tools/web")] {
        let manager = Manager::start(&data, &[("TOOL_APPROVAL", approval)]).await;
        let declared = KEYS.iter().map(|key| json!({"namespace": "web", "key": key}));
        all_at_once(&manager, "declare_secret", declared).await;
        let path = data.path().join(folder);
        let text = std::fs::read_to_string(path.join("tooldock.yaml")).unwrap();
        assert_eq!(sorted(&text), KEYS, "{approval}");
        // Installing is slow, so here what waits for a person will do.
        if approval == "required" {
            let wanted = PACKAGES.iter().map(|name| json!({"namespace": "web", "package": name}));
            all_at_once(&manager, "add_requirement", wanted).await;
            let text = std::fs::read_to_string(path.join("requirements.txt")).unwrap();
            let mut expected = PACKAGES;
            expected.sort_unstable();
            assert_eq!(sorted(&text), expected);
        }
    }
}

#[tokio::test]
async fn package_that_is_added_while_another_is_installed_stays() {
    // TD-129
    let data = Data::new(&[("web/t.py", HELLO)]);
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
    let wanted = ["idna==3.10", "six==1.17.0"];
    let calls = wanted.iter().map(|package| json!({"namespace": "web", "package": package}));
    all_at_once(&manager, "add_requirement", calls).await;
    let listed = manager.done("list_requirements", json!({"namespace": "web"})).await;
    let mut packages: Vec<_> =
        listed["packages"].as_array().unwrap().iter().map(|one| one.as_str().unwrap()).collect();
    packages.sort_unstable();
    assert_eq!(packages, wanted);
}

#[tokio::test]
async fn killed_guard_of_the_manager_takes_nobody_of_the_core_along() {
    // Both have one process, which sweeps up what a killed guard has left, and nothing else.
    let text = format!(
        "surface = \"filter\"\n[dock]\n[[servers]]\nnamespace = \"a\"\ncommand = \"{}\"\n",
        fake("echo")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    // It lasts until somebody kills it.
    let script = "#!/bin/sh\ncase \"$*\" in *--version) echo git version 2.51.0;; *) exec sleep 1000;; esac\n";
    std::fs::write(bin.join("git"), script).unwrap();
    std::fs::set_permissions(bin.join("git"), PermissionsExt::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    let here = folder.path().display().to_string();
    let up = Up::start_with(&folder, &[("PATH", &path), ("ALLOWED_REPO_PATHS", &here)]).await;
    let pid = up.pid();
    let with = |words: &str| -> Option<u32> {
        descendants(pid)
            .into_iter()
            .find(|pid| command_line(*pid).contains(words) && is_alive(*pid))
    };
    let server = with("fake_upstream").expect("the server of the core runs");
    let bearer = format!("Bearer {}", up.token);
    let (manager, asked) = (beside(&up), json!({"repo_url": here}).to_string());
    let cloning = tokio::spawn(async move {
        let headers = [("Authorization", bearer.as_str())];
        send(&manager, "POST", "/tools/analyze_repo", &headers, &asked).await
    });
    let cloned = async {
        loop {
            if let Some(git) =
                with("sleep 1000").filter(|pid| command_line(*pid).starts_with("sleep"))
            {
                return git;
            }
            tokio::task::yield_now().await;
        }
    };
    let git = timeout(PATIENCE, cloned).await.expect("git is run");
    let guard = parent(git);
    assert_ne!(guard, pid, "there is a guard above it");
    kill("-KILL", guard);
    let answer = timeout(PATIENCE, cloning).await.expect("it is noticed").unwrap();
    assert_eq!(answer.json()["isError"], true, "{answer:?}");
    let gone = async {
        while is_alive(git) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, gone).await.expect("what the guard left is swept up");
    assert!(is_alive(server), "the server of the core is still the same");
    assert_eq!(with("fake_upstream"), Some(server));
}

fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit(')').next().unwrap().split_whitespace().nth(1).unwrap().parse().unwrap()
}
