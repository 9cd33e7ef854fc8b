//! What a model wrote waits for a person, and can be taken back.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::Folder;

use super::{Manager, tool, written};
use crate::TOOLMAN;
use crate::dock::{Data, Dock, HELLO};
use crate::secrets_cli::type_on_terminal;

/// Runs the binary over a data directory; its exit code and all that it says.
async fn run(data: &Data, arguments: &[&str]) -> (i32, String) {
    let folder = Folder::new(TOOLMAN);
    let mut command = folder.command(arguments);
    command.arg("--data-dir").arg(data.path()).stdin(std::process::Stdio::null());
    let output = command.output().await.unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    (output.status.code().unwrap(), said)
}

#[tokio::test]
async fn file_of_a_model_is_served_after_a_person_has_approved_the_diff() {
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let core = Dock::start(&data).await;
    let url = format!("http://{}", core.address);
    // In a process of its own, a person is asked.
    let manager = Manager::start(&data, &[("CORE_URL", &url)]).await;
    let changed = HELLO.replace("Hello", "Welcome");
    let laid = manager.done("write_tool", written("hello.py", &changed)).await;
    assert_eq!((&laid["written"], &laid["pending"]), (&json!(true), &json!(true)), "{laid}");
    assert!(laid["next"].as_str().unwrap().contains("toolman approve shared/hello.py"), "{laid}");
    manager.done("reload_core", json!({})).await;
    assert_eq!(core.text("shared", "hello", &json!({})).await, "Hello, World!");
    let added =
        manager.done("add_requirement", json!({"namespace": "shared", "package": "idna"})).await;
    assert_eq!(added["pending"], true, "{added}");
    assert!(!data.path().join("tools/shared/requirements.txt").exists());

    let (code, said) = run(&data, &["approve", "--list"]).await;
    assert_eq!((code, said.as_str()), (0, "shared/hello.py\nshared/requirements.txt\n"));
    let (code, said) =
        run(&data, &["approve", "shared/requirements.txt", "--reject", "--yes"]).await;
    assert_eq!(code, 0, "{said}");
    let (code, said) = run(&data, &["approve", "shared/hello.py"]).await;
    assert_eq!(code, 2);
    assert!(said.contains("there is nobody to ask"), "{said}");
    let path = data.path().display().to_string();
    let arguments = ["approve", "shared/hello.py", "--data-dir", path.as_str()];
    let typed = |keys| [("[y/N]", keys)];
    let (_, shown) = type_on_terminal(&Folder::new(TOOLMAN), &arguments, &typed("n\n")).await;
    assert!(shown.contains("left as it is"), "{shown}");
    let (code, shown) = type_on_terminal(&Folder::new(TOOLMAN), &arguments, &typed("y\n")).await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("-     return f\"Hello, {name}!\""), "{shown}");
    assert!(shown.contains("+     return f\"Welcome, {name}!\""), "{shown}");
    manager.done("reload_core", json!({})).await;
    assert_eq!(core.text("shared", "hello", &json!({})).await, "Welcome, World!");
    let (code, said) = run(&data, &["approve", "shared/hello.py", "--yes"]).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("does not wait"), "{said}");
    let (_, said) = run(&data, &["approve"]).await;
    assert_eq!(said, "nothing waits for approval\n");
}

#[tokio::test]
async fn every_tool_says_what_waits_for_a_person() {
    // TD-124, TD-128, TD-129, TD-138
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let core = Dock::start(&data).await;
    let url = format!("http://{}", core.address);
    let manager = Manager::start(&data, &[("CORE_URL", &url)]).await;
    let changed = HELLO.replace("def hello", "def greet");
    manager.done("write_tool", written("hello.py", &changed)).await;
    let shared = json!({"namespace": "shared"});
    let listed = manager.done("list_tools", shared.clone()).await;
    let row = |row: &Value| (row["name"].clone(), row["pending"].clone());
    let rows: Vec<_> = listed.as_array().unwrap().iter().map(row).collect();
    let greet = (json!("greet"), json!(true));
    assert_eq!(rows, [(json!("hello"), Value::Null), greet], "{listed}");

    let try_it = |tool: &str| json!({"namespace": "shared", "tool_name": tool, "input": {}});
    for (tool, works) in [("hello", true), ("greet", false)] {
        let tried = manager.done("test_tool", try_it(tool)).await;
        assert_eq!((&tried["success"], &tried["pending"]), (&json!(works), &json!(["hello.py"])));
        assert!(tried["next"].as_str().unwrap().contains("toolman approve"), "{tried}");
    }

    let added =
        manager.done("add_requirement", json!({"namespace": "shared", "package": "idna"})).await;
    assert_eq!((&added["pending"], &added["installed"]), (&json!(true), &json!(false)), "{added}");
    let listed = manager.done("list_requirements", shared.clone()).await;
    assert_eq!((&listed["packages"], &listed["pending"]), (&json!([]), &json!(["idna"])));
    let installed = manager.done("install_requirements", shared.clone()).await;
    assert_eq!(installed["not_installed"], json!(["idna"]), "{installed}");
    assert_eq!((&installed["installed"], &installed["pending"]), (&json!(true), &json!(true)));
    for package in ["httpx>>=1", "httpx 1.0", "httpx; colour == 'red'"] {
        let wrong = json!({"namespace": "shared", "package": package});
        let refused = manager.refused("add_requirement", wrong).await;
        assert!(refused.contains("write it like"), "{refused}");
    }
}

#[tokio::test]
async fn former_versions_are_kept_and_put_in_place_again() {
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
    let (_, said) = run(&data, &["tool-history", "shared", "hello.py"]).await;
    assert_eq!(said, "the manager has never changed this file\n");
    let changed = HELLO.replace("Hello", "Welcome");
    manager.done("write_tool", written("hello.py", &changed)).await;
    manager.done("delete_tool", json!({"namespace": "shared", "filename": "hello.py"})).await;
    let (_, said) = run(&data, &["tool-history", "shared", "hello.py", "--json"]).await;
    let history: Value = serde_json::from_str(&said).unwrap();
    let rows = history["versions"].as_array().unwrap();
    let told: Vec<_> = rows
        .iter()
        .map(|row| format!("{} {} {}", row["version"], row["by"], row["deed"]))
        .collect();
    let expected = ["1 \"person\" \"found\"", "2 \"model\" \"written\"", "3 \"model\" \"deleted\""];
    assert_eq!(told, expected);
    let file = data.path().join("tools/shared/hello.py");
    let (code, said) = run(&data, &["revert", "shared", "hello.py"]).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), changed);
    run(&data, &["revert", "shared", "hello.py", "1"]).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), HELLO);
    let (code, said) = run(&data, &["revert", "shared", "hello.py", "77"]).await;
    assert_eq!(code, 1);
    assert!(said.contains("there is no such version"), "{said}");
    for wrong in [["revert", "../x", "hello.py"], ["revert", "shared", "../x.py"]] {
        assert_eq!(run(&data, &wrong).await.0, 2);
    }
}

#[tokio::test]
async fn revert_does_not_throw_away_what_waits_for_a_person() {
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "required")]).await;
    let file = data.path().join("tools/shared/hello.py");
    let (first, second) = (HELLO.replace("Hello", "Welcome"), HELLO.replace("Hello", "Moin"));
    manager.done("write_tool", written("hello.py", &first)).await;
    run(&data, &["approve", "shared/hello.py", "--yes"]).await;
    manager.done("write_tool", written("hello.py", &second)).await;
    let (code, said) = run(&data, &["revert", "shared", "hello.py"]).await;
    assert_eq!(code, 1, "{said}");
    assert!(said.contains("decide on it first: `toolman approve shared/hello.py`"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), first);
    let waiting = data.path().join("pending/shared/hello.py");
    assert_eq!(std::fs::read_to_string(waiting).unwrap(), second);
    run(&data, &["approve", "shared/hello.py", "--reject", "--yes"]).await;
    let (code, said) = run(&data, &["revert", "shared", "hello.py"]).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), HELLO);
}

#[tokio::test]
async fn manager_that_is_killed_while_it_writes_leaves_the_old_or_the_new_file() {
    let data = Data::new(&[("shared/t.py", &tool("t", "return \"none\""))]);
    let file = data.path().join("tools/shared/t.py");
    let log = data.path().join("history/shared/t.py/log.jsonl");
    let (mut old, mut new) = (0, 0);
    let mut moment = Duration::from_millis(150);
    let mut round = 0_u32;
    // At the moment that matters: later if it was too early, else earlier.
    while round < 16 || (round < 60 && (old < 3 || new < 3)) {
        let mut manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
        let code = tool("t", &format!("return \"{round}{}\"", "x".repeat(200_000)));
        let before = std::fs::read_to_string(&file).unwrap();
        let writing = written("t.py", &code);
        tokio::select! {
            _ = manager.call("write_tool", &writing) => {}
            () = tokio::time::sleep(moment) => {}
        }
        manager.child.kill().await.unwrap();
        let after = std::fs::read_to_string(&file).unwrap();
        let step = moment / (4 + round % 8);
        if after == before {
            old += 1;
            moment += step;
        } else {
            assert!(after == code, "round {round}: the new one, whole");
            new += 1;
            moment -= step;
        }
        for line in std::fs::read_to_string(&log).unwrap_or_default().lines() {
            serde_json::from_str::<Value>(line).unwrap();
        }
        round += 1;
    }
    assert!(old > 0 && new > 0, "both happen: {old} old, {new} new");
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
    let last = manager.done("write_tool", written("t.py", &tool("t", "return text"))).await;
    assert_eq!(last["written"], true, "a lock of the dead holds nobody up");
    for folder in ["tools/shared", "history/shared/t.py"] {
        let names = std::fs::read_dir(data.path().join(folder)).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<_> = names.filter(|name| name.starts_with('.')).collect();
        assert!(left.is_empty(), "{folder}: {left:?}");
    }
}

#[tokio::test]
async fn deleted_namespace_is_kept_whole_and_can_be_put_back() {
    let data = Data::new(&[
        ("shared/hello.py", HELLO),
        ("shared/_private.py", "x = 1\n"),
        ("shared/requirements.txt", "idna==3.10\n"),
        ("shared/data/table.csv", "a,b\n"),
    ]);
    let left_over = data.path().join("deleted/.gone-1-x");
    std::fs::create_dir_all(left_over.join("y")).unwrap();
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
    assert!(!left_over.exists(), "what a killed one left is swept up");
    manager.done("delete_namespace", json!({"name": "shared"})).await;
    let served = data.path().join("tools/shared");
    assert!(!served.exists());
    let deleted = std::fs::read_dir(data.path().join("deleted")).unwrap();
    let deleted: Vec<_> = deleted.map(|entry| entry.unwrap().path()).collect();
    assert_eq!(deleted.len(), 1, "{deleted:?}");
    for file in ["hello.py", "_private.py", "requirements.txt", "data/table.csv"] {
        assert!(deleted[0].join(file).exists(), "{file}");
    }
    let (code, said) = run(&data, &["revert", "shared", "hello.py"]).await;
    assert_eq!(code, 0, "{said}");
    assert_eq!(std::fs::read_to_string(served.join("hello.py")).unwrap(), HELLO);
    std::fs::remove_dir_all(&served).unwrap();
    std::fs::rename(&deleted[0], &served).unwrap();
    let listed = manager.done("list_tools", json!({"namespace": "shared"})).await;
    assert_eq!(listed[0]["name"], "hello");
}

/// Calls the manager that stands beside `toolman up`.
async fn call_beside(up: &crate::up::Up, tool: &str, arguments: Value) -> Value {
    let line = up.banner().lines().find(|line| line.contains("toolman-manager")).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str())];
    let path = format!("/tools/{tool}");
    let answer =
        testkit::http::send(address, "POST", &path, &headers, &arguments.to_string()).await;
    answer.json()["structuredContent"].clone()
}

#[tokio::test]
async fn up_asks_a_person_where_its_configuration_or_environment_says_so() {
    // The file's word, and above it that of the environment; the traceback of a core in the same process.
    let broken = tool("broken", "raise KeyError('here')");
    let arguments = json!({"namespace": "shared", "filename": "b.py", "code": broken});
    for (text, variable, is_pending) in [
        ("[dock]\napproval = \"required\"\n", None, true),
        ("[dock]\napproval = \"required\"\n", Some("auto"), false),
        ("[dock]\n", Some("required"), true),
        ("[dock]\n", None, false),
    ] {
        let folder = Folder::new(TOOLMAN).with_tools_toml(text);
        let shared = folder.path().join("data/toolman/tools/shared");
        std::fs::create_dir_all(&shared).unwrap();
        std::fs::write(shared.join("hello.py"), HELLO).unwrap();
        let environment: Vec<_> =
            variable.map(|value| ("TOOL_APPROVAL", value)).into_iter().collect();
        let up = crate::up::Up::start_with(&folder, &environment).await;
        let written = call_beside(&up, "write_tool", arguments.clone()).await;
        assert_eq!(written["pending"], is_pending, "{text} {variable:?}: {written}");
        call_beside(&up, "reload_core", json!({})).await;
        let test = json!({"namespace": "shared", "tool_name": "broken", "input": {}});
        let tried = call_beside(&up, "test_tool", test).await;
        assert_eq!(tried["success"], false, "{tried}");
        let traceback = tried["traceback"].as_str().unwrap_or_default();
        assert_eq!(traceback.contains("KeyError: 'here'"), !is_pending, "{tried}");
    }
}
