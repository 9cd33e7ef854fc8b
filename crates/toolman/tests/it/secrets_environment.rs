//! The master key in a variable: used, and gone from what anybody can see of our processes, root included.

use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt as _;
use std::process::Stdio;

use serde_json::json;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::processes::{command_line, descendants};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::{TOOLMAN, fake};

fn key() -> String {
    "key-of-the-environment-".to_owned() + &"x7".repeat(1_000)
}

/// A folder whose secret opens with that key alone.
async fn folder() -> Folder {
    let text = format!(
        "surface = \"filter\"\n[dock]\n[[servers]]\nnamespace = \"a\"\ncommand = \"env > a.env; {}\"\n\
         env = {{ API = \"${{secret:TOKEN}}\" }}\n",
        fake("echo")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let file = folder.path().join("new.key");
    std::fs::write(&file, key()).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o600)).unwrap();
    let mut setting = folder.command(&["secrets", "set", "TOKEN", "--key-file", "new.key"]);
    std::fs::write(folder.path().join("value"), "the value").unwrap();
    setting.stdin(std::fs::File::open(folder.path().join("value")).unwrap());
    assert!(setting.status().await.unwrap().success());
    folder
}

/// Starts something that says in a line that it serves.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn started(mut command: Command) -> Child {
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap().unwrap();
    child
}

fn environment(pid: u32) -> String {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn master_key_of_the_environment_is_in_no_environment_any_more() {
    // TD-53, TD-55: tests run as root in most places, who may read the environment of all.
    let folder = folder().await;
    for what in ["serve", "manager", "up"] {
        let mut command = folder.command(&[what, "--listen", "127.0.0.1:0"]);
        command.env("SECRETS_KEY", key()).as_std_mut().arg0("toolman-as-it-was-called");
        let child = started(command).await;
        // The same process, under the same name, with the same arguments.
        let pid = child.id().unwrap();
        let line = command_line(pid);
        assert_eq!(
            line.trim_end(),
            format!("toolman-as-it-was-called {what} --listen 127.0.0.1:0")
        );
        let comm = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap();
        assert_eq!(comm.trim(), "toolman");
        for pid in descendants(pid).into_iter().chain([pid]) {
            let environment = environment(pid);
            assert!(!environment.contains("key-of-the-environment"), "{what}: {environment}");
        }
        if what != "manager" {
            let env = || std::fs::read_to_string(folder.path().join("a.env")).unwrap_or_default();
            let opened = async {
                while !env().contains("API=the value\n") {
                    tokio::task::yield_now().await;
                }
            };
            timeout(PATIENCE, opened).await.expect("it opens the safe");
            assert!(!env().contains("TOOLMAN_KEY"), "{}", env());
            std::fs::remove_file(folder.path().join("a.env")).unwrap();
        }
    }
}

#[tokio::test]
async fn master_key_of_the_environment_leaves_input_output_and_exit_codes_as_they_were() {
    let folder = folder().await;
    let listed = folder.command(&["secrets", "list", "--json"]).env("SECRETS_KEY", key()).output();
    let listed = listed.await.unwrap();
    let expected = json!({"secrets": [{"key": "TOKEN", "scope": "global", "status": "set"}]});
    assert_eq!(serde_json::from_slice::<serde_json::Value>(&listed.stdout).unwrap(), expected);
    let mut wrong = folder.command(&["secrets", "list"]);
    assert_eq!(
        wrong
            .env("SECRETS_KEY", "another key of the same user")
            .output()
            .await
            .unwrap()
            .status
            .code(),
        Some(1)
    );
    // Whoever says that a key was handed over, but has none, changes nothing.
    for handed in ["0", "7", "many", "99999"] {
        let output = folder
            .command(&["secrets", "list"])
            .env("SECRETS_KEY_FILE", "new.key")
            .env("TOOLMAN_KEY_HANDED", handed)
            .output();
        assert!(output.await.unwrap().status.success(), "{handed}");
    }
    let mut setting = folder.command(&["secrets", "set", "OTHER"]);
    setting.env("SECRETS_KEY", key());
    setting.stdin(std::fs::File::open(folder.path().join("value")).unwrap());
    assert!(setting.status().await.unwrap().success(), "what comes on stdin is still there");
}
