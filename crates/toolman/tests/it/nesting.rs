//! Toolman below Toolman: chains of different files, and files that list themselves.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::processes::descendants;

use crate::{TOOLMAN, fake};

/// Ways to list Toolman with the file that it serves; `THIS` is its path.
const WAYS: [&str; 5] = [
    "THIS",
    "env -u NOTHING THIS --config ./tools.toml",
    "sh -c 'sh -c THIS; exit 0'",
    "./start.sh",
    "env TOOLMAN_CONFIG=tools.toml setsid -w THIS",
];

fn with_itself(way: &str) -> Folder {
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"a\"\ncommand = \"{}\"\n\
         [[servers]]\nnamespace = \"self\"\ncommand = \"{}\"\nrestart = \"on-failure\"\n",
        fake("echo"),
        way.replace("THIS", TOOLMAN),
    );
    let folder = Folder::new(TOOLMAN);
    let script = folder.path().join("start.sh");
    std::fs::write(&script, format!("#!/bin/sh\n{TOOLMAN} \"$@\"\n")).unwrap();
    std::fs::set_permissions(&script, Permissions::from_mode(0o755)).unwrap();
    folder.with_tools_toml(&text)
}

#[tokio::test]
async fn file_that_lists_itself_starts_it_once_at_most() {
    for way in WAYS {
        let folder = with_itself(way);
        let mut toolman = folder.start_raw();
        toolman.client.initialize(json!({})).await;
        assert_eq!(toolman.client.tool_names().await, ["a_echo"], "{way}");
        // Two guards, a shell and a server below each, and what stands between.
        let mut most = 0;
        for _ in 0..20 {
            most = most.max(descendants(toolman.pid).len());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(most <= 10, "{way}: {most} processes");
        toolman.client.close().await;
        let log = toolman.log().await;
        let warnings: Vec<_> = log.lines().filter(|line| line.contains("left out")).collect();
        let [warning] = &warnings[..] else { panic!("{way}: {log}") };
        assert!(warning.contains("WARN") && warning.contains("upstream=self"), "{warning}");
    }
}

#[tokio::test]
async fn check_tells_of_a_file_that_lists_itself_and_is_content() {
    let folder = with_itself(WAYS[1]);
    let output = folder.run(&["check"]).await;
    let stdout = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stdout}");
    let remark = "server `self` is left out: it starts Toolman again with the configuration that is served here";
    assert_eq!(stdout.matches(remark).count(), 1, "{stdout}");
    let output = folder.run(&["check", "--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(report["servers"][1]["state"], "left-out");
    assert_eq!(report["servers"][1]["problem"], Value::Null);
    assert!(report["servers"][1]["remark"].as_str().unwrap().contains("left out"));
}

/// Files of which each lists the next one; the last one has a tool.
fn chain(length: usize) -> Folder {
    let folder = Folder::new(TOOLMAN);
    for place in 1..=length {
        let command = match place {
            place if place == length => fake("echo"),
            place => format!("env {TOOLMAN} --config {}.toml", place + 1),
        };
        let server = format!("[[servers]]\nnamespace = \"n{place}\"\ncommand = \"{command}\"\n");
        let text = format!("surface = \"filter\"\n{server}");
        std::fs::write(folder.path().join(format!("{place}.toml")), text).unwrap();
    }
    folder
}

#[tokio::test]
async fn chain_of_three_files_works_and_a_fourth_is_refused() {
    let folder = chain(3);
    let output = folder.run(&["--config", "1.toml", "tools", "call", "n1_n2_n3_echo"]).await;
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let folder = chain(4);
    let output = folder.run(&["--config", "1.toml", "tools", "list"]).await;
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "");
    let mut third = folder.command(&["--config", "3.toml", "check"]);
    third.env("TOOLMAN_SERVING", "/1.toml\n/2.toml");
    let output = third.output().await.unwrap();
    assert_eq!(output.status.code(), Some(1));
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains("3 Toolmans stand above this one already"), "{report}");
}

#[tokio::test]
async fn two_files_that_list_each_other_end_at_the_second() {
    let folder = Folder::new(TOOLMAN);
    for (own, other) in [("a", "b"), ("b", "a")] {
        let text = format!(
            "surface = \"filter\"\n[[servers]]\nnamespace = \"{other}\"\ncommand = \"{TOOLMAN} --config {other}.toml\"\n\
             [[servers]]\nnamespace = \"of_{own}\"\ncommand = \"{}\"\n",
            fake("echo")
        );
        std::fs::write(folder.path().join(format!("{own}.toml")), text).unwrap();
    }
    let output = folder.run(&["--config", "a.toml", "tools", "list"]).await;
    let listed = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = listed.lines().filter_map(|line| line.split_whitespace().next()).collect();
    assert_eq!(names, ["b_of_b_echo", "of_a_echo"]);
}

#[tokio::test]
async fn chain_ends_also_where_a_program_clears_the_environment() {
    let folder = Folder::new(TOOLMAN);
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"self\"\ncommand = \"env -i {TOOLMAN}\"\n\
         [[servers]]\nnamespace = \"a\"\ncommand = \"{}\"\n",
        fake("echo")
    );
    let folder = folder.with_tools_toml(&text);
    let mut toolman = folder.start_raw();
    toolman.client.initialize(json!({})).await;
    let names = toolman.client.tool_names().await;
    assert_eq!(names, ["a_echo", "self_a_echo", "self_self_a_echo"]);
    assert!(descendants(toolman.pid).len() < 24);
}
