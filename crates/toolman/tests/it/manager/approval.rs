//! What a model wrote waits for a person, and can be taken back.

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
async fn manager_that_is_killed_while_it_writes_leaves_the_old_or_the_new_file() {
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let file = data.path().join("tools/shared/t.py");
    for round in 0..12_u64 {
        let mut manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
        let code = tool("t", &format!("return \"{round}{}\"", "x".repeat(20_000)));
        let writing = written("t.py", &code);
        tokio::select! {
            _ = manager.call("write_tool", &writing) => {}
            () = tokio::time::sleep(std::time::Duration::from_millis(60 + round * 15)) => {}
        }
        manager.child.kill().await.unwrap();
        if let Ok(text) = std::fs::read_to_string(&file) {
            assert!(text.starts_with("from fastmcp") && text.ends_with("x\"\n"), "round {round}");
        }
    }
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
    let last = manager.done("write_tool", written("t.py", &tool("t", "return text"))).await;
    assert_eq!(last["written"], true, "a lock of the dead holds nobody up");
}
