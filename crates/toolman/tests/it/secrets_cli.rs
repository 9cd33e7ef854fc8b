//! `toolman secrets …`: what it does, what it says, and that it never shows a value.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::peers;
use tokio::io::AsyncWriteExt as _;

use crate::{TOOLMAN, folder};

/// Whoever finds this in an output has found a leak.
const HUSH: &str = "hush-7f3a9";

pub fn empty() -> Folder {
    Folder::new(TOOLMAN)
}

/// Runs `toolman secrets …` with something on stdin; its exit code and all that it has said.
pub async fn run(folder: &Folder, arguments: &[&str], input: &str) -> (Option<i32>, String) {
    run_with(folder, arguments, input, &[]).await
}

/// The same with these variables.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn run_with(
    folder: &Folder,
    arguments: &[&str],
    input: &str,
    env: &[(&str, &str)],
) -> (Option<i32>, String) {
    let mut command = folder.command(&[&["secrets"], arguments].concat());
    command.envs(env.iter().copied());
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().unwrap();
    // It may have ended without having read.
    _ = child.stdin.take().unwrap().write_all(input.as_bytes()).await;
    let output = child.wait_with_output().await.unwrap();
    let said = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
    assert!(!said.contains(HUSH), "a value was shown");
    (output.status.code(), said)
}

pub async fn set(folder: &Folder, key: &str, scope: &str, value: &str) {
    let (code, said) = run(folder, &["set", key, "--scope", scope], value).await;
    assert_eq!(code, Some(0), "{said}");
}

fn file(folder: &Folder, name: &str) -> std::path::PathBuf {
    folder.path().join("data/toolman").join(name)
}

#[tokio::test]
async fn newcomer_needs_nothing_and_no_output_holds_a_value() {
    // TD-50, TD-51, TD-58, TD-63, TD-65
    let folder = empty();
    let (code, said) = run(&folder, &["list"], "").await;
    assert_eq!(
        (code, &*said),
        (Some(0), "there are no secrets; set one with `toolman secrets set KEY`\n")
    );
    let (code, said) = run(&folder, &["set", "GITHUB_TOKEN"], &format!("{HUSH}\n")).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.starts_with("set `GITHUB_TOKEN` (global)\n"), "{said}");
    assert!(said.contains("made a key for secrets, `"), "{said}");
    // As ToolDock spells it.
    let seed = ["set", "--key", "SLACK_BOT_TOKEN", "--scope", "slack", "--json"];
    let (_, said) = run(&folder, &seed, HUSH).await;
    let expected = json!({"key": "SLACK_BOT_TOKEN", "scope": "slack", "status": "set"});
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), expected, "{said}");
    let (_, said) = run(&folder, &["prepare", "AWS_KEY"], "").await;
    assert_eq!(said, "secret `AWS_KEY` is not set; run `toolman secrets set AWS_KEY`\n");
    let (_, said) = run(&folder, &["prepare", "GITHUB_TOKEN"], "").await;
    assert_eq!(said, "`GITHUB_TOKEN` (global) is set already\n");
    let (_, said) = run(&folder, &["list", "--json"], "").await;
    let listed: Value = serde_json::from_str(&said).unwrap();
    let row = |key, scope, status| json!({"key": key, "scope": scope, "status": status});
    let rows = [
        row("AWS_KEY", "global", "placeholder"),
        row("GITHUB_TOKEN", "global", "set"),
        row("SLACK_BOT_TOKEN", "slack", "set"),
    ];
    assert_eq!(listed["secrets"], json!(rows));
    let (_, said) = run(&folder, &["list", "--scope", "slack"], "").await;
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["SLACK_BOT_TOKEN", "slack", "set"]);
    for name in ["secrets.enc", "secrets.key", "secrets.lock"] {
        let mode = file(&folder, name).metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{name}");
    }
    let ledger = std::fs::read_to_string(file(&folder, "secrets.meta.yaml")).unwrap();
    assert!(ledger.contains("AWS_KEY:\n    status: placeholder\n"), "{ledger}");
    assert!(!ledger.contains(HUSH));
    let (_, said) = run(&folder, &["rm", "SLACK_BOT_TOKEN", "--scope", "slack"], "").await;
    assert_eq!(said, "removed `SLACK_BOT_TOKEN` (slack)\n");
    let (code, said) = run(&folder, &["rm", "SLACK_BOT_TOKEN", "--scope", "slack"], "").await;
    assert_eq!(code, Some(1));
    assert!(said.contains("there is no secret `SLACK_BOT_TOKEN` (slack)"), "{said}");
}

#[tokio::test]
async fn wrong_use_is_told_without_the_value() {
    // K08, K12, TD-55
    let folder = empty();
    let reserved = "decides how programs are started, so it can't be a secret; use another name";
    for (key, words) in [
        ("PATH", reserved),
        ("LD_PRELOAD", reserved),
        ("PYTHONPATH", reserved),
        ("A=B", "is no name of a secret; use capital letters, digits and `_`, a letter first"),
    ] {
        let (code, said) = run(&folder, &["set", key], HUSH).await;
        assert_eq!((code, said), (Some(2), format!("toolman: `{key}` {words}\n")));
    }
    // The value was typed where others can see it; it is not repeated.
    let (code, said) = run(&folder, &["set", "TOKEN", HUSH], "").await;
    assert_eq!(code, Some(2));
    assert!(said.contains("a value on the command line can be read by others"), "{said}");
    let (code, said) = run(&folder, &["set", "TOKEN", "--scope", "a/b"], HUSH).await;
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = run(&folder, &["set", "TOKEN"], "").await;
    assert_eq!(code, Some(1));
    assert!(said.contains("the value is empty; nothing was set"), "{said}");
    std::fs::remove_file(file(&folder, "secrets.key")).unwrap();
    for key in ["", "change_me", "fifteen letters"] {
        let env = [("SECRETS_KEY", key)];
        let (code, words) = run_with(&folder, &["set", "TOKEN"], HUSH, &env).await;
        assert_eq!(code, Some(2), "{words}");
        assert!(words.starts_with("toolman: the master key from SECRETS_KEY "), "{words}");
        let env = [("SECRETS_KEY", key), ("ALLOW_INSECURE_SECRETS", "1")];
        let (code, words) = run_with(&folder, &["list"], "", &env).await;
        assert_eq!(code, Some(0), "{words}");
        assert!(words.contains("ALLOW_INSECURE_SECRETS is set: weak master keys"), "{words}");
    }
    assert!(!file(&folder, "secrets.enc").exists());
}

#[tokio::test]
async fn broken_and_unsafe_files_are_named_and_left_alone() {
    // K01, K03, K06
    let folder = empty();
    set(&folder, "TOKEN", "global", HUSH).await;
    let vault = file(&folder, "secrets.enc");
    let whole = std::fs::read(&vault).unwrap();
    let chmod = |mode| std::fs::set_permissions(&vault, PermissionsExt::from_mode(mode)).unwrap();
    chmod(0o644);
    let (code, said) = run(&folder, &["list"], "").await;
    assert_eq!(code, Some(2));
    assert!(said.contains(&format!("run `chmod 600 {}`", vault.display())), "{said}");
    chmod(0o600);
    std::fs::write(&vault, "").unwrap();
    let (code, said) = run(&folder, &["set", "OTHER"], HUSH).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("is damaged: it is empty; put a copy of it back"), "{said}");
    assert_eq!(std::fs::read(&vault).unwrap(), b"");
    std::fs::write(&vault, whole).unwrap();
    std::fs::write(file(&folder, "secrets.key"), "a key that is another one").unwrap();
    let (code, said) = run(&folder, &["list"], "").await;
    assert_eq!(code, Some(1));
    assert!(said.starts_with("toolman: wrong key or damaged file: `"), "{said}");
    assert!(said.contains("secrets.key`"), "it says whose key: {said}");
    std::fs::remove_file(file(&folder, "secrets.key")).unwrap();
    let (code, said) = run(&folder, &["set", "OTHER"], HUSH).await;
    assert_eq!(code, Some(2));
    assert!(said.contains("there is no key for `"), "{said}");
}

/// Types on a real terminal: waits for each word, then sends the keys. Prints what the terminal showed.
const TYPIST: &str = r#"
import os, pty, sys, termios, json
steps = json.loads(sys.argv[1])
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(sys.argv[2], sys.argv[2:])
shown = b""
def read():
    global shown
    try:
        more = os.read(terminal, 4096)
    except OSError:
        more = b""
    shown += more
    return more
at = 0
for word, keys, *deeds in steps:
    while word.encode() not in shown[at:]:
        if not read():
            break
    at = shown.find(word.encode(), at) + len(word.encode())
    for deed in deeds:
        os.system(deed)
    os.write(terminal, keys.encode())
while read():
    pass
_, status = os.waitpid(pid, 0)
print(json.dumps({"code": os.waitstatus_to_exitcode(status), "shown": shown.decode()}))
"#;

/// What a person at a terminal sees, and the exit code.
pub async fn type_on_terminal(
    folder: &Folder,
    arguments: &[&str],
    steps: &[(&str, &str)],
) -> (i64, String) {
    act_on_terminal(folder, arguments, &json!(steps)).await
}

/// The same, where a step may have a third part: what a shell does before the keys.
pub async fn act_on_terminal(folder: &Folder, arguments: &[&str], steps: &Value) -> (i64, String) {
    let toolman = folder.command(&[]);
    let mut command = tokio::process::Command::new("python3");
    command.arg("-c").arg(TYPIST).arg(steps.to_string());
    command.arg(toolman.as_std().get_program()).args(arguments).current_dir(folder.path());
    for (name, value) in toolman.as_std().get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{words}");
    let seen: Value = serde_json::from_slice(&output.stdout).unwrap();
    (seen["code"].as_i64().unwrap(), seen["shown"].as_str().unwrap().to_owned())
}

#[tokio::test]
async fn value_is_typed_twice_on_a_terminal_without_being_shown() {
    // TD-58
    let folder = empty();
    let arguments = ["secrets", "set", "GITHUB_TOKEN"];
    let typed = format!("{HUSH}\n");
    let steps = [("value of GITHUB_TOKEN (global): ", &*typed), ("again: ", &*typed)];
    let (code, shown) = type_on_terminal(&folder, &arguments, &steps).await;
    assert_eq!(code, 0, "{shown}");
    assert!(shown.contains("set `GITHUB_TOKEN` (global)") && !shown.contains(HUSH), "{shown}");
    let steps = [("): ", "one value\n"), ("again: ", "another\n")];
    let (code, shown) = type_on_terminal(&folder, &arguments, &steps).await;
    assert_eq!(code, 1);
    assert!(shown.contains("the two are not the same; nothing was set"), "{shown}");
    // Ctrl-C, and the shell that follows can be seen again.
    let line =
        format!("trap : INT; {TOOLMAN} secrets set GITHUB_TOKEN; echo ended with $?; stty -a");
    let steps = [("): ", "half a val"), ("", "\u{3}")];
    let (_, shown) = in_shell(&folder, &line, &steps).await;
    assert!(shown.contains("ended with 130") && shown.contains(" echo "), "{shown}");
    assert!(!shown.contains("half a val") && shown.contains("susp = ^Z"), "{shown}");
    let (_, said) = run(&folder, &["list"], "").await;
    assert_eq!(said.split_whitespace().collect::<Vec<_>>(), ["GITHUB_TOKEN", "global", "set"]);
}

/// The same for a line of the shell.
async fn in_shell(folder: &Folder, line: &str, steps: &[(&str, &str)]) -> (i64, String) {
    let file = folder.path().join("line.sh");
    std::fs::write(&file, format!("#!/bin/sh\n{line}\n")).unwrap();
    std::fs::set_permissions(&file, PermissionsExt::from_mode(0o700)).unwrap();
    let shell = Folder::new(file.to_str().unwrap());
    let data = [shell.path().join("data"), folder.path().join("data")];
    std::os::unix::fs::symlink(&data[1], &data[0]).unwrap();
    type_on_terminal(&shell, &[], steps).await
}

/// An editor that notes where it was called and what it saw, and then does as the script says.
fn editor(folder: &Folder, script: &str) -> String {
    let path = folder.path().join("editor.sh");
    let note = "echo \"$1\" > seen; stat -c %a \"$1\" >> seen; stat -c %a \"$(dirname \"$1\")\" >> seen\n\
        df --output=fstype \"$1\" | tail -1 >> seen; env | grep -c SECRETS_KEY >> seen\n";
    std::fs::write(&path, format!("{note}{script}")).unwrap();
    format!("sh {}", path.display())
}

#[tokio::test]
async fn all_secrets_are_edited_at_once_in_memory_and_wiped() {
    // TD-59, K10
    let folder = empty();
    set(&folder, "FIRST", "global", HUSH).await;
    set(&folder, "SECOND", "slack", "to be removed").await;
    run(&folder, &["prepare", "THIRD"], "").await;
    let script = format!(
        "cp \"$1\" shown; cp \"$1\" \"$1~\"\n\
         sed -i -e '/SECOND/d' -e 's/\"THIRD\": \"\"/\"THIRD\": third value/' \"$1\"\n\
         echo value | {TOOLMAN} secrets set FOURTH > other 2>&1; true\n"
    );
    let editor = editor(&folder, &script);
    let env = [("EDITOR", &*editor), ("SECRETS_KEY", "not for the editor, ever")];
    let (code, words) = run_with(&folder, &["edit"], "", &env).await;
    assert_eq!((code, &*words), (Some(0), "removed `SECOND` (slack)\nset `THIRD` (global)\n"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let seen = read("seen");
    let seen: Vec<&str> = seen.lines().collect();
    // No worker can list what is there, so nobody finds a name of 128 random bits.
    let name = seen[0].split("/toolman-secrets-").nth(1).unwrap();
    assert_eq!(name.split('/').next().unwrap().len(), 32, "{seen:?}");
    assert_eq!(seen[1..], ["600", "700", "tmpfs", "0"]);
    assert!(!Path::new(seen[0]).parent().unwrap().exists(), "all of it is gone");
    let shown = format!(
        "global:\n  \"FIRST\": \"{HUSH}\"\n  \"THIRD\": \"\"\nnamespaces:\n  \"slack\":\n    \
         \"SECOND\": \"to be removed\"\n"
    );
    assert!(read("shown").ends_with(&shown), "{}", read("shown"));
    // Another writer waits five seconds and then says for whom.
    let other = read("other");
    assert!(other.starts_with("toolman: the secrets are locked by pid "), "{other}");
    let (_, words) = run(&folder, &["list", "--json"], "").await;
    let listed: Value = serde_json::from_str(&words).unwrap();
    let status = |key: &str| {
        let rows = listed["secrets"].as_array().unwrap();
        rows.iter().find(|row| row["key"] == key).map(|row| row["status"].clone())
    };
    assert_eq!((status("FIRST"), status("THIRD")), (Some(json!("set")), Some(json!("set"))));
    assert_eq!((status("SECOND"), status("FOURTH")), (None, None));
}

#[tokio::test]
async fn what_a_killed_edit_has_left_is_wiped_by_the_next_command() {
    // TD-59
    let folder = empty();
    set(&folder, "FIRST", "global", HUSH).await;
    let lock = file(&folder, "secrets.lock");
    let script =
        format!("cp \"$1\" shown; kill -9 $(grep -o '[0-9]*' {} | head -1)", lock.display());
    let editor = editor(&folder, &script);
    let (code, _) = run_with(&folder, &["edit"], "", &[("EDITOR", &editor)]).await;
    assert_eq!(code, None, "it was killed");
    let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
    let left = Path::new(seen.lines().next().unwrap());
    assert!(std::fs::read_to_string(folder.path().join("shown")).unwrap().contains(HUSH));
    // Any command of the user wipes it, so another test may have done it already.
    run(&folder, &["list"], "").await;
    assert!(!left.parent().unwrap().exists());
}

#[tokio::test]
async fn edit_that_can_not_be_understood_changes_nothing_and_is_not_shown() {
    let folder = empty();
    set(&folder, "FIRST", "global", HUSH).await;
    let before = std::fs::read(file(&folder, "secrets.enc")).unwrap();
    for (script, words) in [
        ("echo '  x: [' >> \"$1\"", "this is not YAML with `global` and `namespaces`"),
        ("sed -i s/FIRST/LD_PRELOAD/ \"$1\"", "`LD_PRELOAD` decides how programs are started"),
        ("sed -i s/global/globl/ \"$1\"", "this is not YAML with `global` and `namespaces`"),
        ("exit 3", "has failed (exit status: 3); nothing was changed"),
    ] {
        let editor = editor(&folder, script);
        let (code, words_said) = run_with(&folder, &["edit"], "", &[("EDITOR", &editor)]).await;
        assert_eq!(code, Some(1), "{words_said}");
        assert!(words_said.contains(words), "{words_said}");
        let seen = std::fs::read_to_string(folder.path().join("seen")).unwrap();
        assert!(!Path::new(seen.lines().next().unwrap()).exists(), "it is wiped all the same");
    }
    let editor = editor(&folder, "true");
    let (code, words) = run_with(&folder, &["edit"], "", &[("VISUAL", &editor)]).await;
    assert_eq!((code, &*words), (Some(0), "nothing was changed\n"));
    assert_eq!(std::fs::read(file(&folder, "secrets.enc")).unwrap(), before);
}

#[tokio::test]
async fn check_compares_what_is_declared_with_what_is_set() {
    // TD-64
    let folder = folder(
        "[[servers]]\nnamespace = \"hub\"\ncommand = \"x\"\nenv = { T = \"${secret:HUB_TOKEN}\" }\n",
        &[],
    );
    let write = |namespace: &str, text: &str| {
        let path = file(&folder, &format!("tools/{namespace}/tooldock.yaml"));
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write(
        "github",
        "name: github\nsecrets:\n  - GITHUB_TOKEN\n  - SLACK_TOKEN\n  - AWS_KEY\nenv:\n  A: b\n",
    );
    write("shared", "description: none needed\n");
    set(&folder, "GITHUB_TOKEN", "global", HUSH).await;
    set(&folder, "SLACK_TOKEN", "slack", HUSH).await;
    run(&folder, &["prepare", "AWS_KEY"], "").await;
    let (code, said) = run(&folder, &["check", "github", "--json"], "").await;
    assert_eq!(code, Some(1));
    let expected = json!({"namespace": "github", "satisfied": ["GITHUB_TOKEN"],
        "missing": ["SLACK_TOKEN"], "placeholders": ["AWS_KEY"]});
    assert_eq!(serde_json::from_str::<Value>(&said).unwrap(), expected);
    let (code, said) = run(&folder, &["check"], "").await;
    let lines = "GITHUB_TOKEN of `github`: set\n\
        AWS_KEY of `github`: placeholder; run `toolman secrets set AWS_KEY`\n\
        SLACK_TOKEN of `github`: missing; run `toolman secrets set SLACK_TOKEN`\n\
        HUB_TOKEN of `hub`: missing; run `toolman secrets set HUB_TOKEN`\n";
    assert_eq!((code, &*said), (Some(1), lines));
    set(&folder, "HUB_TOKEN", "hub", HUSH).await;
    assert_eq!(run(&folder, &["check", "hub"], "").await.0, Some(0));
    assert_eq!(run(&folder, &["check", "shared"], "").await.0, Some(0));
    std::fs::create_dir(file(&folder, "tools/plain")).unwrap();
    assert_eq!(run(&folder, &["check", "plain"], "").await.0, Some(0), "it declares nothing");
    for arguments in [&["check", "nope"][..], &["check", "..", "--json"]] {
        let (code, said) = run(&folder, arguments, "").await;
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(&format!("there is no namespace `{}`", arguments[1])), "{said}");
    }
    write("github", "secrets: [PATH]\n");
    let (code, said) = run(&folder, &["check"], "").await;
    assert_eq!(code, Some(2));
    assert!(said.contains("tooldock.yaml: the secret `PATH` decides how"), "{said}");
}

#[tokio::test]
async fn dotenv_files_are_imported_and_the_master_key_is_exchanged() {
    let folder = empty();
    let text = format!("# tokens\nexport FIRST={HUSH}\nSECOND=\"two\\nlines\"\n");
    std::fs::write(folder.path().join("my.env"), &text).unwrap();
    let (code, said) = run(&folder, &["import", "my.env", "--scope", "slack"], "").await;
    assert_eq!(code, Some(0));
    assert!(said.starts_with("set `FIRST`, `SECOND` (slack); `my.env` still holds"), "{said}");
    std::fs::write(folder.path().join("bad.env"), format!("GOOD={HUSH}\nPATH={HUSH}\n")).unwrap();
    let (code, said) = run(&folder, &["import", "bad.env"], "").await;
    assert_eq!(code, Some(2));
    assert!(
        said.starts_with("toolman: nothing was set\nbad.env:2: the name decides how"),
        "{said}"
    );
    let key = || std::fs::read(file(&folder, "secrets.key")).unwrap();
    let old = key();
    let (code, said) = run(&folder, &["rotate"], "").await;
    assert_eq!(code, Some(0), "{said}");
    assert_ne!(key(), old);
    assert_eq!(run(&folder, &["rotate", "--data"], "").await.0, Some(0));
    let (_, said) = run(&folder, &["rotate", "--new-key-file", "another.key"], "").await;
    assert!(said.contains("the master key is now the one in `another.key`"), "{said}");
    assert_eq!(run(&folder, &["list"], "").await.0, Some(1), "the old key opens nothing");
    let (code, said) = run(&folder, &["list", "--key-file", "another.key"], "").await;
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(said.lines().count(), 2);
}

#[tokio::test]
async fn stores_go_to_and_come_from_python() {
    // TD-52, TD-53, TD-54
    const KEY: &str = "a master key of both programs";
    let folder = empty();
    let python = r#"
import base64, json, sys
from cryptography.fernet import Fernet
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.kdf.pbkdf2 import PBKDF2HMAC
def fernet(salt):
    kdf = PBKDF2HMAC(algorithm=hashes.SHA256(), length=32, salt=salt, iterations=390000)
    return Fernet(base64.urlsafe_b64encode(kdf.derive(sys.argv[2].encode())))
if sys.argv[1] == "read":
    envelope = json.load(open(sys.argv[3]))
    salt = base64.urlsafe_b64decode(envelope["salt"])
    print(json.dumps(json.loads(fernet(salt).decrypt(envelope["ciphertext"].encode()))))
else:
    salt = b"0123456789abcdef"
    text = json.dumps({"global": {"OLD": "old värue"}, "namespaces": {"slack": {"BOT": "x"}}})
    print(json.dumps({"version": 1, "kdf": "pbkdf2-sha256",
        "salt": base64.urlsafe_b64encode(salt).decode(),
        "ciphertext": fernet(salt).encrypt(text.encode()).decode(), "created_at": "2026-02-13"}))
"#;
    let run_python = async |arguments: &[&str]| {
        let program = peers::python_program("sdk1", "python");
        let mut command = tokio::process::Command::new(program);
        command.args(["-c", python]).args(arguments).current_dir(folder.path());
        let output = command.output().await.unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    let vault = file(&folder, "secrets.enc");
    std::fs::create_dir_all(vault.parent().unwrap()).unwrap();
    std::fs::write(&vault, run_python(&["write", KEY]).await).unwrap();
    std::fs::set_permissions(&vault, PermissionsExt::from_mode(0o600)).unwrap();
    let env = [("SECRETS_KEY", KEY)];
    let (code, words) = run_with(&folder, &["list"], "", &env).await;
    assert_eq!((code, words.lines().count()), (Some(0), 2), "{words}");
    let (code, words) = run_with(&folder, &["set", "NEW", "--scope", "slack"], HUSH, &env).await;
    assert_eq!(code, Some(0), "{words}");
    assert!(std::fs::read_to_string(&vault).unwrap().contains("\"version\": 2"));
    let export = ["export", "--format", "fernet", "for-python.enc"];
    let (code, words) = run_with(&folder, &export, "", &env).await;
    assert_eq!(code, Some(0), "{words}");
    let found: Value =
        serde_json::from_str(&run_python(&["read", KEY, "for-python.enc"]).await).unwrap();
    let expected =
        json!({"global": {"OLD": "old värue"}, "namespaces": {"slack": {"BOT": "x", "NEW": HUSH}}});
    assert_eq!(found, expected);
    let mode = folder.path().join("for-python.enc").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let (code, words) = run_with(&folder, &export, "", &env).await;
    assert_eq!(code, Some(2));
    assert!(words.contains("name a file that is not there"), "{words}");
}
