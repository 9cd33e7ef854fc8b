//! Secrets, between a model that knows their names and a person who types their values.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use tokio::time::timeout;

use super::{Manager, both};
use crate::TOOLMAN;
use crate::dock::Data;
use crate::secrets_cli::type_on_terminal;

/// Whoever finds this in an answer of the manager has found a leak.
const HUSH: &str = "hush-2c9e41d7";

const USER: &str = "import os\nfrom fastmcp.tools import tool\n\n@tool\ndef length() -> int:\n    \"\"\"Tell.\"\"\"\n    return len(os.environ[\"GITHUB_TOKEN\"])\n";

/// A person runs the command that a model was told, at a real terminal.
pub async fn run_instructions(told: &Value, value: &str) {
    let line = told["instructions"].as_str().unwrap();
    let arguments: Vec<_> = line.strip_prefix("Run: toolman ").unwrap().split(' ').collect();
    let keys = format!("{value}\n");
    let steps = [("GITHUB_TOKEN", keys.as_str()), ("again", keys.as_str())];
    let (code, shown) = type_on_terminal(&Folder::new(TOOLMAN), &arguments, &steps).await;
    assert_eq!(code, 0, "{shown}");
    assert!(!shown.contains(value), "it was typed in the dark");
}

fn nothing_leaks(data: &Data) {
    for file in ["secrets.meta.yaml", "secrets.enc"] {
        let text = std::fs::read_to_string(data.path().join(file)).unwrap();
        assert!(!text.contains(HUSH), "{file}");
    }
}

#[tokio::test]
async fn secret_is_checked_prepared_set_by_a_person_and_used() {
    // TD-131, TD-132, TD-133, TD-134, TD-154, TD-157
    let files = [("github/t.py", USER), ("github/tooldock.yaml", "secrets: [GITHUB_TOKEN]\n")];
    let (data, _core, manager) = both(&files).await;
    let check = json!({"namespace": "github"});
    let standing = |satisfied: &[&str], missing: &[&str], placeholders: &[&str]| json!({"namespace": "github", "satisfied": satisfied, "missing": missing, "placeholders": placeholders});
    let key = ["GITHUB_TOKEN"].as_slice();
    assert_eq!(manager.done("check_secrets", check.clone()).await, standing(&[], key, &[]));
    let listed = manager.done("list_secrets", json!({})).await;
    let row = |scope, status| json!({"key": "GITHUB_TOKEN", "scope": scope, "status": status});
    assert_eq!(listed, json!([row("github", "missing")]));

    let told =
        manager.done("prepare_secret", json!({"key": "GITHUB_TOKEN", "namespace": "github"})).await;
    assert_eq!((&told["key"], &told["scope"]), (&json!("GITHUB_TOKEN"), &json!("github")));
    let meta = data.path().canonicalize().unwrap().join("secrets.meta.yaml");
    assert_eq!(told["meta_file"], json!(meta));
    assert!(meta.exists());
    let command = "Run: toolman secrets set GITHUB_TOKEN --scope github --data-dir ";
    assert!(told["instructions"].as_str().unwrap().starts_with(command), "{told}");
    assert_eq!(manager.done("check_secrets", check.clone()).await, standing(&[], &[], key));
    let listed = manager.done("list_secrets", json!({"namespace": "github"})).await;
    assert_eq!(listed, json!([row("github", "placeholder")]));

    run_instructions(&told, HUSH).await;
    manager.done("reload_core", json!({})).await;
    assert_eq!(manager.done("check_secrets", check.clone()).await, standing(key, &[], &[]));
    let test = json!({"namespace": "github", "tool_name": "length", "input": {}});
    let tried = manager.done("test_tool", test.clone()).await;
    assert_eq!(tried["result"]["result"], json!(HUSH.len()), "{tried}");
    let listed = manager.done("list_namespaces", json!({})).await;
    assert_eq!(listed[0]["secrets_status"], "ok");
    assert_eq!(manager.done("list_secrets", json!({})).await, json!([row("github", "set")]));
    nothing_leaks(&data);

    let gone = json!({"key": "GITHUB_TOKEN", "namespace": "github"});
    let removed = manager.done("remove_secret", gone.clone()).await;
    let expected =
        [("removed", json!(true)), ("scope", json!("github")), ("reloaded", json!(true))];
    for (name, value) in expected {
        assert_eq!(removed[name], value, "{removed}");
    }
    assert_eq!(manager.done("check_secrets", check).await, standing(&[], key, &[]));
    assert!(manager.refused("remove_secret", gone).await.contains("there is no secret"));
    // The worker that had the value is replaced as soon as that is noticed.
    let refused =
        async { while manager.done("test_tool", test.clone()).await["success"] == true {} };
    timeout(PATIENCE, refused).await.expect("no tool has the value any more");
}

#[tokio::test]
async fn secret_that_is_read_and_not_declared_is_named_everywhere() {
    // TD-126, TD-131, TD-134
    let files = [
        ("github/t.py", USER),
        ("github/tooldock.yaml", "secrets: [OTHER]\nenv:\n  OTHER: default\n"),
    ];
    let (_data, _core, manager) = both(&files).await;
    let github = json!({"namespace": "github"});
    let checked = manager.done("check_secrets", github.clone()).await;
    assert_eq!(checked["undeclared"], json!(["GITHUB_TOKEN"]), "{checked}");
    assert_eq!((&checked["missing"], &checked["defaults"]), (&json!([]), &json!(["OTHER"])));
    let listed = manager.done("list_namespaces", json!({})).await;
    assert_eq!(listed[0]["secrets_status"], "ok", "{listed}");
    let key = json!({"key": "GITHUB_TOKEN", "namespace": "github"});
    let told = manager.done("prepare_secret", key.clone()).await;
    assert_eq!(told["declared"], false, "{told}");
    assert!(told["next"].as_str().unwrap().contains("declare_secret"), "{told}");
    let test = json!({"namespace": "github", "tool_name": "length", "input": {}});
    let tried = manager.done("test_tool", test).await;
    let error = tried["error"].as_str().unwrap();
    assert!(error.contains("name it under `secrets:` in tooldock.yaml"), "{error}");
    let again = json!({"namespace": "github", "filename": "u.py", "code": USER});
    let written = manager.done("write_tool", again).await;
    let doubled =
        "the tool `length` is defined in `t.py`, too; `t.py`, the first by name, keeps it";
    let unset =
        "it reads `GITHUB_TOKEN`, which nothing sets: if it is a secret, call declare_secret";
    assert_eq!(written["warnings"], json!([doubled, unset]), "{written}");
    let reloaded = manager.done("reload_core", json!({})).await;
    let problem = reloaded["problems"].to_string();
    assert!(
        problem.contains("u.py:4: the tool `length` is already defined in `t.py`"),
        "{problem}"
    );

    manager.done("declare_secret", key.clone()).await;
    assert_eq!(manager.done("prepare_secret", key).await["declared"], true);
    let checked = manager.done("check_secrets", github).await;
    assert_eq!(checked["undeclared"], Value::Null, "{checked}");
}

#[tokio::test]
async fn names_that_decide_what_runs_are_no_secrets_and_a_manager_without_the_key_knows_names() {
    // TD-51, TD-65, HARDENING K12
    let (data, core, manager) = both(&[]).await;
    for key in ["PATH", "LD_PRELOAD", "lower", "A=B", ""] {
        manager.refused("prepare_secret", json!({"key": key})).await;
    }
    manager.refused("prepare_secret", json!({"key": "A_KEY", "namespace": "../x"})).await;
    manager.refused("prepare_secret", json!({"key": "A_KEY", "value": "x"})).await;
    let told =
        manager.done("prepare_secret", json!({"key": "GITHUB_TOKEN", "namespace": null})).await;
    assert_eq!(told["scope"], "global");
    run_instructions(&told, HUSH).await;
    let elsewhere = data.path().join("elsewhere.key");
    std::fs::rename(data.path().join("secrets.key"), elsewhere).unwrap();
    let keyless = Manager::beside(&data, &core).await;
    let listed = keyless.done("list_secrets", json!({})).await;
    assert_eq!(listed, json!([{"key": "GITHUB_TOKEN", "scope": "global", "status": "set"}]));
    let refused = keyless.refused("remove_secret", json!({"key": "GITHUB_TOKEN"})).await;
    assert!(refused.contains("there is no key for `"), "{refused}");
}
