//! Files of MCP clients, served as they are.

use testkit::binary::Folder;

use crate::{TOOLMAN, example};

/// A file as people have it: comments, a comma too many, keys of the client, a name with a blank.
fn file(folder: &Folder) -> String {
    let text = r#"{
  // servers that I use every day
  "mcpServers": {
    "My Git": {"command": "FAKE", "args": ["log", "--prompt", "${env:WORD}"], "autoApprove": ["log"]},
    "hub": {"command": "FAKE", "args": ["push", "pull"], "disabled": false, "excludeTools": ["push"],},
    "off": {"command": "${env:NOT_SET}", "disabled": true}, /* broken */
  },
  "theme": "dark",
}
"#;
    let text = text.replace("FAKE", &example("fake_upstream"));
    std::fs::write(folder.path().join("settings.json"), &text).unwrap();
    text
}

#[tokio::test]
async fn file_of_a_client_is_served_as_toolsets_and_what_is_left_out_is_told_once() {
    let folder = Folder::new(TOOLMAN);
    let text = file(&folder);
    let mut command = folder.command(&["--config", "settings.json", "check"]);
    let output = command.env("WORD", "ask").output().await.unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert_eq!((output.status.code(), output.stderr.len()), (Some(0), 0), "{said}");
    for line in [
        "settings.json:4:5: `My Git` is served under the name `My_Git`",
        "`autoApprove` in a server mean nothing to Toolman; left out",
        "`theme` at the top mean nothing to Toolman; left out",
    ] {
        assert_eq!(said.matches(line).count(), 1, "{line} in {said}");
    }
    assert!(said.contains("(surface `toolset`)"), "{said}");
    let mut command =
        folder.command(&["--config", "settings.json", "--agent", "x", "tools", "list"]);
    let output = command.env("WORD", "ask").output().await.unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let names: Vec<_> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().find(|word| *word != "*"))
        .collect();
    assert_eq!(names, ["My_Git_log", "hub_pull"], "{listed}");
    assert_eq!(std::fs::read_to_string(folder.path().join("settings.json")).unwrap(), text);
}

#[tokio::test]
async fn variable_that_is_not_set_is_a_fault_at_its_place() {
    let folder = Folder::new(TOOLMAN);
    file(&folder);
    let output = folder.run(&["--config", "settings.json", "check"]).await;
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("settings.json:4:"), "{said}");
    assert!(said.contains("argument 3 of `args` uses `${WORD}`, which is not set"), "{said}");
    assert_eq!(said.matches("settings.json:").count(), 1, "{said}");
}
