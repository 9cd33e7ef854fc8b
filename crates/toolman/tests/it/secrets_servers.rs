//! Secrets on their way to servers: by declaration, when they start, and to nobody else.

use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::fake::Script;
use testkit::processes::{command_line, descendants, kill};
use testkit::web::{Dialect, Manners, Site};
use tokio::io::{AsyncBufReadExt as _, BufReader};

use crate::secrets_cli::{run, set};
use crate::{TOOLMAN, fake};

/// A folder with these servers: namespace, further lines.
fn folder(servers: &[(&str, &str)]) -> Folder {
    let mut text = "surface = \"filter\"\n".to_owned();
    for (namespace, lines) in servers {
        // Each writes down how it was started, and how often.
        let command =
            format!("env > {namespace}.env; echo >> {namespace}.starts; {}", fake("echo"));
        text += &format!(
            "[[servers]]\nnamespace = \"{namespace}\"\ncommand = \"{command}\"\n{lines}\n"
        );
    }
    Folder::new(TOOLMAN).with_tools_toml(&text)
}

fn read(folder: &Folder, name: &str) -> String {
    std::fs::read_to_string(folder.path().join(name)).unwrap_or_default()
}

/// Waits until a file is as it ought to be.
#[track_caller]
fn until(holds: impl Fn() -> bool) -> impl Future<Output = ()> {
    let deadline = Instant::now() + Duration::from_secs(20);
    async move {
        while !holds() {
            assert!(Instant::now() < deadline, "it happens in time");
            tokio::task::yield_now().await;
        }
    }
}

fn starts(folder: &Folder, namespace: &str) -> usize {
    read(folder, &format!("{namespace}.starts")).lines().count()
}

#[tokio::test]
async fn server_gets_the_secrets_that_it_declares_and_no_others() {
    // TD-60, TD-61
    let folder = folder(&[
        ("slack", "env = { API = \"Bearer ${secret:TOKEN}!\", PLAIN = \"x\" }"),
        ("other", "env = { API = \"${secret:TOKEN}\" }"),
        ("none", ""),
    ]);
    set(&folder, "TOKEN", "global", "the global one").await;
    set(&folder, "TOKEN", "slack", "the one of slack").await;
    set(&folder, "UNASKED", "slack", "for nobody here").await;
    let key = std::fs::read_to_string(folder.path().join("data/toolman/secrets.key")).unwrap();
    let mut command = folder.command(&["check", "--json"]);
    command.env("SECRETS_KEY", key.trim()).env("MANAGER_INTERNAL_TOKEN", "ours alone");
    command.env("SECRETS_KEY_FILE", "data/toolman/secrets.key");
    let output = command.stdin(Stdio::null()).output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}{}", String::from_utf8_lossy(&output.stderr));
    let slack = read(&folder, "slack.env");
    assert!(slack.contains("API=Bearer the one of slack!\n") && slack.contains("PLAIN=x\n"));
    assert!(read(&folder, "other.env").contains("API=the global one\n"));
    for name in ["slack.env", "other.env", "none.env"] {
        let env = read(&folder, name);
        for hidden in ["for nobody here", "UNASKED", "SECRETS_KEY", "ours alone", key.trim()] {
            assert!(!env.contains(hidden), "{name} holds {hidden}");
        }
    }
    assert!(!read(&folder, "none.env").contains("the global one"));
}

#[tokio::test]
async fn server_without_its_secret_waits_for_it_while_the_others_serve() {
    // TD-62, TD-64
    let folder = folder(&[
        ("slack", "env = { API = \"${secret:TOKEN}\" }"),
        ("other", "env = { API = \"${secret:OTHER}\" }"),
    ]);
    set(&folder, "OTHER", "global", "is set").await;
    run(&folder, &["prepare", "TOKEN"], "").await;
    let output = folder.run(&["check", "--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let words = "secret `TOKEN` is not set; run `toolman secrets set TOKEN`";
    assert!(report.to_string().contains(words), "{report}");
    let mut running = folder.start().await;
    assert_eq!(running.client.tool_names().await, ["other_echo"]);
    // It is listed before it runs, as it was checked before.
    running.client.call("other_echo", json!({})).await;
    let before = starts(&folder, "other");
    set(&folder, "TOKEN", "global", "first value").await;
    running.client.next("notifications/tools/list_changed").await;
    assert_eq!(running.client.tool_names().await, ["other_echo", "slack_echo"]);
    assert!(read(&folder, "slack.env").contains("API=first value\n"));
    // Another value: only who uses it is started anew.
    set(&folder, "TOKEN", "global", "second value").await;
    until(|| read(&folder, "slack.env").contains("API=second value\n")).await;
    assert_eq!(starts(&folder, "other"), before, "the other one was left alone");
}

#[tokio::test]
async fn remote_server_gets_secrets_in_its_headers() {
    let manners = Manners::new(Dialect::Modern, Script::with_tools(["echo"]));
    let site = Site::start(manners).await;
    let text = format!(
        "[[servers]]\nnamespace = \"hub\"\nurl = \"{}\"\nheaders = {{ X-Key = \"k ${{secret:HUB}}\" }}\n",
        site.url()
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let output = folder.run(&["check"]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("secret `HUB` is not set; run `toolman secrets set HUB`"), "{said}");
    set(&folder, "HUB", "hub", "of the hub").await;
    let output = folder.run(&["check"]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    let seen = site.seen("POST");
    assert!(!seen.is_empty());
    assert!(seen.iter().all(|seen| seen.header("x-key") == Some("k of the hub")));
    set(&folder, "HUB", "hub", "two\nlines").await;
    let output = folder.run(&["check"]).await;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("with its secret, `x-key` holds what no header can"), "{said}");
    assert!(!said.contains("lines"), "{said}");
}

#[tokio::test]
async fn newcomer_gets_a_key_from_up_when_a_server_declares_a_secret() {
    let folder = folder(&[("slack", "env = { API = \"${secret:TOKEN}\" }")]);
    let key = folder.path().join("data/toolman/secrets.key");
    let mut command = folder.command(&["up", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    let mut child = command.spawn().unwrap();
    until(|| key.exists()).await;
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    child.kill().await.unwrap();
}

#[tokio::test]
async fn newcomer_gets_a_key_from_up_though_nobody_needs_one_yet() {
    // A folder of Python tools may declare secrets, and a person set one at any time.
    let folder = Folder::new(TOOLMAN);
    let up = crate::up::Up::start(&folder).await;
    let key = folder.path().join("data/toolman/secrets.key");
    assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let before = read(&folder, "data/toolman/secrets.key");
    drop(up);
    crate::up::Up::start(&folder).await;
    assert_eq!(read(&folder, "data/toolman/secrets.key"), before, "there is one for ever");
    // Who has said where the key is gets no other, and is asked for it only when it is needed.
    let folder = Folder::new(TOOLMAN);
    let asked = format!("touch {}", folder.path().join("asked").display());
    crate::up::Up::start_with(&folder, &[("SECRETS_KEY_COMMAND", &asked)]).await;
    assert!(!folder.path().join("data/toolman/secrets.key").exists());
    assert!(!folder.path().join("asked").exists(), "the keyring was left alone");
}

#[tokio::test]
async fn who_edits_a_declared_secret_away_is_told_whose_it_was() {
    // TD-59: required keys are looked at.
    let folder = folder(&[("slack", "env = { API = \"${secret:TOKEN}\" }"), ("none", "")]);
    let tools = folder.path().join("data/toolman/tools/web");
    std::fs::create_dir_all(&tools).unwrap();
    std::fs::write(tools.join("tooldock.yaml"), "secrets: [WEB_KEY, TOKEN]\n").unwrap();
    for (key, scope) in
        [("TOKEN", "global"), ("TOKEN", "web"), ("WEB_KEY", "web"), ("SPARE", "global")]
    {
        set(&folder, key, scope, "a value").await;
    }
    std::fs::write(
        folder.path().join("editor.sh"),
        "echo 'namespaces: {web: {TOKEN: a value}}' > \"$1\"\n",
    )
    .unwrap();
    let mut command = folder.command(&["secrets", "edit"]);
    let output = command.env("EDITOR", "sh editor.sh").output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let slack = "TOKEN is declared by `slack` and has no value now; run `toolman secrets set TOKEN --scope slack`";
    let web = "WEB_KEY is declared by `web` and has no value now; run `toolman secrets set WEB_KEY --scope web`";
    assert_eq!(said, format!("toolman: {slack}\ntoolman: {web}\n"), "and of no other");
}

#[tokio::test]
async fn master_key_comes_from_a_program() {
    // TD-55, the keyring of a system
    let folder = folder(&[("slack", "env = { API = \"${secret:TOKEN}\" }")]);
    std::fs::write(folder.path().join("key"), "a master key that a keyring keeps\n").unwrap();
    let by = ["--key-command", "cat key"];
    let (code, said) = run(&folder, &[&["set", "TOKEN"], &by[..]].concat(), "the value").await;
    assert_eq!(code, Some(0), "{said}");
    assert!(!folder.path().join("data/toolman/secrets.key").exists(), "no other key was made");
    let (code, said) = run(&folder, &[&["list"], &by[..]].concat(), "").await;
    assert_eq!(
        (code, said.split_whitespace().collect::<Vec<_>>()),
        (Some(0), vec!["TOKEN", "global", "set"])
    );
    let up = crate::up::Up::start_with(&folder, &[("SECRETS_KEY_COMMAND", "cat key")]).await;
    until(|| read(&folder, "slack.env").contains("API=the value\n")).await;
    assert!(!read(&folder, "slack.env").contains("SECRETS_KEY"));
    drop(up);
    for (command, words) in [
        ("false", "`false` failed with exit status: 1; run it by hand to see why"),
        ("true", "`true` wrote nothing; see whether it knows the key"),
        ("no-such-keyring", "`no-such-keyring` can't be run"),
        ("yes", "wrote over 4096 bytes, which is no key"),
        ("", "it is empty; name a program and its arguments"),
    ] {
        let (code, said) = run(&folder, &["list", "--key-command", command], "").await;
        assert_eq!(code, Some(2), "{command}: {said}");
        assert!(said.contains(words), "{command}: {said}");
    }
    let (code, said) =
        run(&folder, &["list", "--key-command", "echo another master key"], "").await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("wrong key or damaged file"), "{said}");
}

#[tokio::test]
async fn safe_without_a_key_keeps_nobody_from_serving_who_needs_none() {
    let folder = folder(&[("slack", "env = { API = \"${secret:TOKEN}\" }"), ("none", "")]);
    set(&folder, "TOKEN", "global", "the value").await;
    std::fs::remove_file(folder.path().join("data/toolman/secrets.key")).unwrap();
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let mut command = folder.command(&["up", "--listen", "127.0.0.1:0"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(log);
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    let mut child = command.spawn().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut banner = String::new();
    while !banner.contains("Token:") {
        banner += &(lines.next_line().await.unwrap().unwrap() + "\n");
    }
    assert!(banner.contains("\n1 tool "), "{banner}");
    let log = read(&folder, "log");
    assert!(log.contains("toolman: there is no key for `"), "{log}");
    assert!(log.contains("can't be started: there is no key for `"), "{log}");
    child.kill().await.unwrap();
}

#[tokio::test]
async fn weak_master_key_lets_nothing_start() {
    // K08
    let folder = folder(&[("none", "")]);
    for arguments in [&["up", "--listen", "127.0.0.1:0"][..], &["serve"], &["check"], &[]] {
        let mut command = folder.command(arguments);
        command.env("SECRETS_KEY", "change_me").stdin(Stdio::null());
        let output = command.output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains("the master key from SECRETS_KEY is one that everybody"), "{said}");
    }
}

#[tokio::test]
async fn master_key_comes_from_a_pipe_that_was_opened_before() {
    let folder = folder(&[("slack", "env = { API = \"${secret:TOKEN}\" }")]);
    set(&folder, "TOKEN", "global", "the value").await;
    let file = folder.path().join("data/toolman/secrets.key");
    let key = std::fs::read_to_string(&file).unwrap();
    std::fs::remove_file(&file).unwrap();
    // `up` looks for a key to see whether it must make one, and then needs it.
    for command in ["check", "up --listen 127.0.0.1:0"] {
        let script = format!(
            "printf %s \"$KEY\" | {{ unset KEY; exec {TOOLMAN} {command} 3<&0 < /dev/null; }}"
        );
        let mut shell = tokio::process::Command::new("sh");
        shell.arg("-c").arg(script).env("KEY", key.trim()).env("SECRETS_KEY_FD", "3");
        shell.current_dir(folder.path()).env("XDG_DATA_HOME", folder.path().join("data"));
        shell.stdout(Stdio::null()).stderr(Stdio::null());
        #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
        let mut child = shell.spawn().unwrap();
        until(|| read(&folder, "slack.env").contains("API=the value\n")).await;
        std::fs::remove_file(folder.path().join("slack.env")).unwrap();
        for pid in descendants(child.id().unwrap()) {
            if command_line(pid).contains("up --listen") {
                kill("-TERM", pid);
            }
        }
        child.wait().await.unwrap();
        assert!(!file.exists(), "no other key was made");
    }
}

#[tokio::test]
async fn servers_of_the_same_user_can_not_read_our_environment() {
    // The row "gateway non-dumpable"; root may read everything, so the test steps down from it.
    let folder = Folder::new(TOOLMAN);
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let binary = folder.path().join("toolman");
    std::fs::copy(TOOLMAN, &binary).unwrap();
    // A server that looks at the process above its guard.
    let server = "gateway=$(cut -d' ' -f4 /proc/$PPID/stat); cat /proc/$gateway/comm > whom; \
        cat /proc/$gateway/environ > stolen; echo $? > told; cat /proc/$PPID/environ > stolen2; \
        echo $? >> told; cat /proc/self/environ > own";
    let text = format!("[[servers]]\nnamespace = \"thief\"\ncommand = \"{server}\"\n");
    std::fs::write(folder.path().join("tools.toml"), text).unwrap();
    let script = "import os, subprocess, sys\n\
        user = 65534 if os.getuid() == 0 else os.getuid()\n\
        env = {'PATH': os.environ['PATH'], 'SECRETS_KEY': 'canary-of-the-environment', 'HOME': os.getcwd()}\n\
        subprocess.run([sys.argv[1], '--config', sys.argv[2], 'check'], user=user, group=user, extra_groups=[], env=env)\n";
    // The file must be believed by that user.
    let config = folder.path().join("tools.toml");
    let mut command = tokio::process::Command::new("python3");
    command.args(["-c", script]).arg(&binary).arg(&config).current_dir(folder.path());
    let output = command.output().await.unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(read(&folder, "whom").trim(), "toolman");
    assert_eq!(read(&folder, "told"), "1\n1\n", "reading was refused: {said}");
    assert_eq!(read(&folder, "stolen") + &read(&folder, "stolen2"), "", "nor from the guard");
    assert!(!read(&folder, "own").is_empty());
    assert!(!read(&folder, "own").contains("canary"), "nor is it handed down");
}
