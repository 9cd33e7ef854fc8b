//! What the manager waits for, and for how long; what it does not begin at all.

use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;

use futures_util::future::join_all;
use serde_json::json;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::send;
use tokio::time::timeout;

use super::{Manager, written};
use crate::TOOLMAN;
use crate::dock::{Data, HELLO};
use crate::secrets_cli::{act_on_terminal, run};

#[tokio::test]
async fn manager_serves_others_while_a_process_that_stands_still_holds_the_files() {
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "auto")]).await;
    let mut lock = File::create(data.path().join("manager.lock")).unwrap();
    lock.lock().unwrap();
    writeln!(lock, "4242").unwrap();
    let asked = json!({"namespace": "shared", "key": "SOME_KEY"});
    let waiting = join_all((0..16).map(|_| manager.call("declare_secret", &asked)));
    let others = async {
        for _ in 0..3 {
            assert_eq!(send(&manager.address, "GET", "/health", &[], "").await.status, 200);
            manager.done("server_config", json!({})).await;
        }
    };
    let both = async { tokio::join!(waiting, others) };
    let (refused, ()) = timeout(PATIENCE, both).await.expect("nobody is waited for without end");
    for answer in refused {
        let said = answer["content"][0]["text"].as_str().unwrap();
        assert!(said.starts_with("another process (4242) has changed files for a while"), "{said}");
    }
    drop(lock);
    manager.done("declare_secret", asked.clone()).await;
}

#[tokio::test]
async fn key_that_never_comes_to_an_end_is_not_waited_for() {
    let folder = Folder::new(TOOLMAN);
    let (code, said) = run(&folder, &["set", "TOKEN"], "the value").await;
    assert_eq!(code, Some(0), "{said}");
    std::fs::remove_file(folder.path().join("data/toolman/secrets.key")).unwrap();
    // The shell holds the other end of the pipe, and waits for toolman.
    let script = format!("mkfifo pipe; exec 3<>pipe; printf half >&3; {TOOLMAN} secrets list");
    let mut shell = tokio::process::Command::new("sh");
    shell.args(["-c", &script]).current_dir(folder.path()).env("SECRETS_KEY_FD", "3");
    shell.env("XDG_DATA_HOME", folder.path().join("data"));
    let output = timeout(PATIENCE, shell.output()).await.expect("it ends").unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("SECRETS_KEY_FD: nobody has closed its other end in time"), "{said}");
}

#[tokio::test]
async fn secret_whose_value_is_gone_is_told_as_one_to_be_set() {
    // TD-64, TD-131, TD-134: both tools say the same, or a model would turn in circles.
    let data = Data::new(&[("web/t.py", HELLO), ("web/tooldock.yaml", "secrets: [LOST_KEY]\n")]);
    let ledger = data.path().join("secrets.meta.yaml");
    std::fs::write(&ledger, "global:\n  LOST_KEY:\n    status: set\n").unwrap();
    let manager = Manager::start(&data, &[]).await;
    let told = manager.done("prepare_secret", json!({"key": "LOST_KEY"})).await;
    assert_eq!(told["status"], "placeholder", "{told}");
    let standing = manager.done("check_secrets", json!({"namespace": "web"})).await;
    assert_eq!(standing["placeholders"], json!(["LOST_KEY"]), "{standing}");
}

#[tokio::test]
async fn nobody_can_fill_the_ledger_with_wishes() {
    // TD-131
    let data = Data::new(&[]);
    let mut ledger = "global:\n".to_owned();
    for number in 0..1_000 {
        _ = writeln!(ledger, "  KEY_{number}:\n    status: placeholder");
    }
    std::fs::write(data.path().join("secrets.meta.yaml"), ledger).unwrap();
    let manager = Manager::start(&data, &[]).await;
    let said = manager.refused("prepare_secret", json!({"key": "ONE_MORE"})).await;
    assert!(said.starts_with("1000 secrets are wanted and not set"), "{said}");
    assert_eq!(
        manager.done("prepare_secret", json!({"key": "KEY_7"})).await["status"],
        "placeholder"
    );
    manager.done("remove_secret", json!({"key": "KEY_8"})).await;
    manager.done("prepare_secret", json!({"key": "ONE_MORE"})).await;
}

#[tokio::test]
async fn nothing_is_installed_that_a_person_has_not_seen() {
    // TD-139
    let data = Data::new(&[]);
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "required")]).await;
    let said = manager.refused("install_pip_packages", json!({"packages": ["idna"]})).await;
    assert!(said.contains("nothing is installed that no person has seen"), "{said}");
    assert!(!data.path().join("venvs").exists());
}

#[tokio::test]
async fn file_that_was_edited_while_its_diff_was_looked_at_is_not_replaced() {
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let manager = Manager::start(&data, &[("TOOL_APPROVAL", "required")]).await;
    let of_model = HELLO.replace("Hello", "Welcome");
    manager.done("write_tool", written("hello.py", &of_model)).await;
    let file = data.path().join("tools/shared/hello.py");
    let path = data.path().display().to_string();
    let arguments = ["approve", "shared/hello.py", "--data-dir", path.as_str()];
    // Between the question and the answer somebody saves the file.
    let edit = format!("echo '# mine' >> {}", file.display());
    let steps = json!([["[y/N]", "y\n", edit]]);
    let (code, shown) = act_on_terminal(&Folder::new(TOOLMAN), &arguments, &steps).await;
    assert_eq!(code, 1, "{shown}");
    assert!(shown.contains("was changed meanwhile, so nothing was done; look again"), "{shown}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), format!("{HELLO}# mine\n"));
    let steps = json!([["[y/N]", "y\n"]]);
    let (code, shown) = act_on_terminal(&Folder::new(TOOLMAN), &arguments, &steps).await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("- # mine"), "{shown}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), of_model);
}

#[tokio::test]
async fn command_to_set_a_secret_names_the_safe_that_is_looked_into() {
    // TD-131
    let folder = Folder::new(TOOLMAN);
    let (code, said) = run(&folder, &["prepare", "SOME_KEY", "--data-dir", "else where"], "").await;
    let place = folder.path().join("else where");
    assert_eq!(code, Some(0), "{said}");
    let command = format!("run `toolman secrets set SOME_KEY --data-dir '{}'`", place.display());
    assert!(said.contains(&command), "{said}");
    std::fs::create_dir_all(place.join("tools/web")).unwrap();
    std::fs::write(place.join("tools/web/tooldock.yaml"), "secrets: [SOME_KEY]\n").unwrap();
    let (code, said) = run(&folder, &["check", "--data-dir", "else where"], "").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains(&command), "{said}");
    let (_, said) = run(&folder, &["prepare", "SOME_KEY"], "").await;
    assert!(said.ends_with("run `toolman secrets set SOME_KEY`\n"), "{said}");
}
