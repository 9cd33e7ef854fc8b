//! The command line: what people type and what they read.

use serde_json::{Value, json};
use testkit::binary::Folder;

use crate::{TOOLMAN, folder};

/// Exit code, stdout and stderr of a run.
async fn run(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = folder.run(arguments).await;
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test]
async fn missing_configuration_is_explained() {
    // TA-01, TA-11, TA-65
    let folder = Folder::new(TOOLMAN);
    let (code, stdout, stderr) = run(&folder, &[]).await;
    assert_eq!((code, stdout.as_str()), (2, ""));
    assert!(stderr.contains("bad configuration\ntools.toml: no such file"), "{stderr}");
    assert!(stderr.contains("--config FILE"), "{stderr}");
}

#[tokio::test]
async fn every_fault_of_the_file_is_reported_in_one_go() {
    // TA-11
    let folder = Folder::new(TOOLMAN).with_tools_toml(
        "active_toolsets = [\"ok*\", \"[\"]\n[[servers]]\nnamespace = \"a b\"\ncomand = \"x\"\n",
    );
    let (code, _, stderr) = run(&folder, &["check"]).await;
    assert_eq!(code, 2);
    for place in ["tools.toml:1:", "tools.toml:3:", "tools.toml:4:"] {
        assert!(stderr.contains(place), "{stderr}");
    }
    assert!(stderr.contains("did you mean `command`"), "{stderr}");
}

#[tokio::test]
async fn other_file_is_used_where_it_is_named() {
    // TA-01
    let folder = Folder::new(TOOLMAN);
    let text = format!("[[servers]]\nnamespace = \"a\"\ncommand = \"{}\"\n", crate::fake("echo"));
    std::fs::write(folder.path().join("other.toml"), text).unwrap();
    let (code, stdout, _) = run(&folder, &["--config", "other.toml", "tools", "list"]).await;
    assert_eq!(code, 0);
    assert!(stdout.contains("a_echo"), "{stdout}");
}

#[tokio::test]
async fn command_is_a_shell_string() {
    // TA-07
    let command = crate::fake("\\\"two words\\\" $(echo three) 'qu\\\"ote'");
    let text = format!("[[servers]]\nnamespace = \"a\"\ncommand = \"X=1; {command}\"\n");
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let (code, stdout, _) = run(&folder, &["tools", "list", "--json"]).await;
    assert_eq!(code, 0);
    let tools: Value = serde_json::from_str(&stdout).unwrap();
    let names: Vec<_> = tools.as_array().unwrap().iter().map(|tool| &tool["name"]).collect();
    // The others are no legal names and are shown under others.
    assert_eq!(names, ["a_qu_ote_5901733b", "a_three", "a_two_words_68b43a22"]);
}

#[tokio::test]
async fn check_shows_what_is_there() {
    // TA-02, TA-17
    let folder = folder("", &[("a", "--resource r://x --prompt p echo log"), ("b", "echo")]);
    let (code, stdout, stderr) = run(&folder, &["check"]).await;
    assert_eq!(code, 0, "{stderr}");
    let row = stdout.lines().find(|line| line.trim_start().starts_with("a ")).unwrap();
    let cells: Vec<_> = row.split_whitespace().collect();
    assert_eq!(cells[..6], ["a", "ready", "2025-11-25", "2", "1", "1"]);
    assert!(cells[7].parse::<u32>().unwrap() > 20, "tokens are counted: {row}");
    assert!(stdout.contains("all is well"), "{stdout}");
    assert!(!stdout.contains('\u{1b}'), "no colours where nobody sees them");
}

#[tokio::test]
async fn check_tells_what_is_wrong() {
    // TA-65: connection failure
    let folder = folder(
        "",
        &[
            ("a", "echo 'not ok'"),
            ("a", "echo"),
            ("down", "--crash"),
            ("gone", "--crash; exec no-such-program"),
        ],
    );
    let (code, stdout, _) = run(&folder, &["check"]).await;
    assert_eq!(code, 1);
    for words in [
        "server `down` ended with exit code 1; its last words on stderr:\n    crashing as told",
        "server `gone` ended with exit code 127",
        "tool `a_echo` of `a-2`: the name belongs to `a`, which is listed first",
        "tool `not ok` of `a` as `a_not_ok_a338544f`: its name holds characters that clients refuse",
        "something is wrong",
    ] {
        assert!(stdout.contains(words), "{words:?} in {stdout}");
    }
    let (code, stdout, _) = run(&folder, &["check", "--json"]).await;
    let report: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &report["ok"]), (1, &json!(false)));
    assert_eq!(report["servers"][2]["state"], "failed");
    assert_eq!(report["servers"][2]["stderr"], "crashing as told\n");
}

#[tokio::test]
async fn late_server_is_named_by_check() {
    let command = crate::fake("--hang");
    let text = format!(
        "[[servers]]\nnamespace = \"a\"\ncommand = \"{command}\"\nstartup_timeout = \"200ms\"\n"
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let (code, stdout, _) = run(&folder, &["check"]).await;
    assert_eq!(code, 1);
    assert!(
        stdout
            .contains("has not answered within 200ms; see its command, or raise `startup_timeout`"),
        "{stdout}"
    );
}

#[tokio::test]
async fn tools_are_listed_inspected_and_called() {
    let folder = folder("active_toolsets = [\"a_e*\"]", &[("a", "echo fail log error")]);
    let (code, stdout, _) = run(&folder, &["tools", "list"]).await;
    assert_eq!(code, 0);
    let rows: Vec<Vec<_>> = stdout.lines().map(|row| row.split_whitespace().collect()).collect();
    assert_eq!(rows[0][..2], ["*", "a_echo"]);
    assert_eq!(rows[2][..2], ["a_fail", "does"]);

    let (code, stdout, _) = run(&folder, &["tools", "inspect", "a:echo"]).await;
    assert_eq!(code, 0);
    assert!(stdout.contains("\"x-vendor\""), "{stdout}");
    assert!(stdout.contains("from server `a`, where it is `echo`; active at first"), "{stdout}");

    let (code, stdout, _) = run(&folder, &["tools", "call", "a_log", r#"{"n":1}"#]).await;
    assert_eq!((code, stdout.as_str()), (0, "ok\n"));
    let (code, stdout, _) = run(&folder, &["tools", "call", "a_log", r#"{"n":1}"#, "--json"]).await;
    let result: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!((code, &result["structuredContent"]), (0, &json!({"n": 1})));
    let (code, stdout, _) = run(&folder, &["tools", "call", "a_fail"]).await;
    assert_eq!((code, stdout.as_str()), (1, "it failed\n"));
    let (code, stdout, _) = run(&folder, &["tools", "call", "a_error"]).await;
    assert_eq!(code, 1);
    assert!(stdout.contains("-32050"), "{stdout}");
}

#[tokio::test]
async fn tools_are_called_whatever_the_surface_is() {
    for surface in ["activate", "filter", "namespace"] {
        let folder = folder(&format!("surface = \"{surface}\""), &[("a", "echo")]);
        let (code, stdout, stderr) = run(&folder, &["tools", "call", "a_echo"]).await;
        assert_eq!((code, stdout.as_str()), (0, "ok\n"), "{surface}: {stderr}");
    }
}

#[tokio::test]
async fn wrong_use_of_tools_is_explained() {
    let folder = folder("", &[("a", "echo")]);
    for (arguments, code, words) in [
        (&["tools", "call", "a_ecko"][..], 1, "no tool is named `a_ecko`; did you mean `a_echo`?"),
        (&["tools", "inspect", "a_ecko"], 1, "no tool is named `a_ecko`; did you mean `a_echo`?"),
        (&["tools", "call", "nosuch"], 1, "no tool is named `nosuch`; see `toolman tools list`"),
        (&["tools", "call", "a_echo", "[1]"], 2, "the arguments are no JSON object"),
        (&["tools", "frobnicate"], 2, "unrecognized subcommand"),
        (&["--no-such-flag"], 2, "unexpected argument"),
    ] {
        let (got, _, stderr) = run(&folder, arguments).await;
        assert_eq!(got, code, "{arguments:?}: {stderr}");
        assert!(stderr.contains(words), "{arguments:?}: {stderr}");
    }
}

#[tokio::test]
async fn help_teaches_and_completions_complete() {
    let folder = Folder::new(TOOLMAN);
    let (code, stdout, _) = run(&folder, &["--help"]).await;
    assert_eq!(code, 0);
    for words in ["tools.toml", "toolman up", "toolman check", "--config", "--data-dir", "--agent"]
    {
        assert!(stdout.contains(words), "{words}");
    }
    for shell in ["bash", "zsh", "fish"] {
        let (code, stdout, _) = run(&folder, &["completions", shell]).await;
        assert_eq!(code, 0);
        assert!(stdout.contains("completions"), "{shell}");
    }
}

#[tokio::test]
async fn stdout_belongs_to_the_protocol() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "garbage"), ("down", "--crash")]);
    let mut toolman = folder.start().await;
    // The client refuses any line that is no message.
    toolman.client.call("a_garbage", json!({})).await;
    toolman.client.close().await;
    toolman.client.closed().await;
}

#[tokio::test]
async fn last_64_kib_of_stderr_are_kept() {
    let folder = folder("", &[("a", "--noise 50000 --crash")]);
    let (_, stdout, _) = run(&folder, &["check", "--json"]).await;
    let report: Value = serde_json::from_str(&stdout).unwrap();
    let stderr = report["servers"][0]["stderr"].as_str().unwrap();
    assert_eq!(stderr.len(), 64 * 1024);
    assert!(stderr.ends_with("noise\ncrashing as told\n"));
}

#[tokio::test]
async fn terminal_sees_progress_and_colours_unless_it_wants_none() {
    let folder = folder("", &[("a", "--delay 300 echo"), ("down", "--crash")]);
    for (no_color, has_colour) in [("", true), ("1", false)] {
        // `script` gives it a terminal.
        let output = tokio::process::Command::new("script")
            .args(["-qec", &format!("{TOOLMAN} tools list"), "/dev/null"])
            .env("NO_COLOR", no_color)
            .current_dir(folder.path())
            .stdin(std::process::Stdio::null())
            .output()
            .await
            .unwrap();
        let shown = String::from_utf8(output.stdout).unwrap();
        assert!(shown.contains("starting servers: "), "{shown:?}");
        assert!(shown.contains("waiting for a"), "{shown:?}");
        assert_eq!(shown.contains("\u{1b}[31m"), has_colour, "{shown:?}");
    }
}

#[tokio::test]
async fn own_token_is_not_shown_to_servers() {
    let text = "[[servers]]\ncommand = \"echo token=$BEARER_TOKEN >&2; exit 1\"\n";
    let folder = Folder::new(TOOLMAN).with_tools_toml(text);
    let output = folder.command(&["check"]).env("BEARER_TOKEN", "s3cret").output().await.unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert!(stdout.contains("token=\n"), "{stdout}");
}

#[tokio::test]
async fn verdict_stays_when_nobody_reads_it() {
    let folder = folder("", &[("down", "--crash")]);
    for (output, words) in [("/dev/full", "can't write to stdout"), ("", "")] {
        let mut command = folder.command(&["check"]);
        match output {
            // A pipe whose reader is gone.
            "" => command.stdout(std::io::pipe().unwrap().1),
            file => command.stdout(std::fs::File::options().write(true).open(file).unwrap()),
        };
        #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
        let child = command.stderr(std::process::Stdio::piped()).spawn().unwrap();
        let output = child.wait_with_output().await.unwrap();
        assert_eq!(output.status.code(), Some(1));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(words), "{stderr}");
    }
}

#[tokio::test]
async fn requests_may_be_piped_in() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo"), ("b", "--hang")]);
    let requests = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize",
            "params": {"protocolVersion": "2025-11-25", "capabilities": {}}}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"}),
    ];
    let lines = requests.map(|request| request.to_string()).join("\n");
    std::fs::write(folder.path().join("requests"), lines).unwrap();
    let requests = std::fs::File::open(folder.path().join("requests")).unwrap();
    let output = folder.command(&[]).stdin(requests).output().await.unwrap();
    let answers = String::from_utf8(output.stdout).unwrap();
    let answers: Vec<Value> =
        answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(answers[0]["result"]["serverInfo"]["name"], "toolman");
    assert_eq!(answers[1]["result"]["tools"][0]["name"], "toolman_activate");
}
