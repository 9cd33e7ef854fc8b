//! The examples of the documentation do what the text beside them says.

use testkit::binary::Folder;

use crate::{TOOLMAN, fake};

const POLICIES: &str = include_str!("../../../../docs/policies.md");

/// The servers that the examples are about.
const SERVERS: [(&str, &str); 2] = [
    ("git", "git_status git_log git_diff git_diff_staged git_commit"),
    ("files", "read_file list_directory write_file move_file"),
];

/// The blocks of a language, in the order of the page.
fn blocks<'p>(page: &'p str, language: &str) -> Vec<&'p str> {
    let fence = format!("```{language}\n");
    page.split(&*fence).skip(1).map(|rest| rest.split("\n```").next().unwrap()).collect()
}

/// The whole `tools.toml` examples of a page, with servers for them.
fn files(page: &str) -> Vec<Folder> {
    let mut servers = String::new();
    for (name, tools) in SERVERS {
        let command = fake(tools);
        servers += &format!("\n[[servers]]\nnamespace = \"{name}\"\ncommand = \"{command}\"\n");
    }
    let folder = |block: &str| Folder::new(TOOLMAN).with_tools_toml(&format!("{block}\n{servers}"));
    blocks(page, "toml").into_iter().map(folder).collect()
}

async fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(arguments).await;
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

#[tokio::test]
async fn rules_of_the_policies_page_are_about_something() {
    let folders = files(POLICIES);
    assert_eq!(folders.len(), 2);
    for folder in folders {
        let (code, said) = run(&folder, &["check"]).await;
        assert_eq!(code, Some(0), "{said}");
    }
}

#[tokio::test]
async fn agents_of_the_policies_page_may_use_what_they_are_given() {
    let folder = &files(POLICIES)[0];
    for (agent, tool, is_allowed) in [
        ("developer", "git_git_status", true),
        ("developer", "files:write_file", true),
        ("base", "files:read_file", true),
        ("base", "git_commit", false),
        ("developer", "files:move_file", false),
        ("stranger", "files:read_file", true),
        ("stranger", "files:write_file", false),
    ] {
        let (code, said) = run(folder, &["explain", agent, tool]).await;
        assert_eq!(code, Some(i32::from(!is_allowed)), "{agent} {tool}: {said}");
    }
    let console = blocks(POLICIES, "console")[0];
    let (asked, told) = console.split_once('\n').unwrap();
    let asked: Vec<_> = asked.trim_start_matches("$ toolman ").split(' ').collect();
    let (_, said) = run(folder, &asked).await;
    assert_eq!(said.trim_end(), told);
}
