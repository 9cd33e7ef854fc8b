//! `toolman toolset`: what a person does with toolsets on the command line.

use serde_json::{Value, json};
use testkit::binary::Folder;

use crate::{TOOLMAN, example, folder};

const SERVERS: [(&str, &str); 2] = [("git", "echo tree fail"), ("hub", "echo issue")];

/// The exit code and all that was said.
async fn run(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String) {
    let output = folder.run(&[&["toolset"], arguments].concat()).await;
    let said = [output.stdout, output.stderr].concat();
    (output.status.code(), String::from_utf8(said).unwrap())
}

/// What was said as JSON, of a command that has ended with this code.
async fn json_of(folder: &Folder, arguments: &[&str], code: i32) -> Value {
    let output = folder.run(&[&["toolset"], arguments, &["--json"]].concat()).await;
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}{errors}");
    serde_json::from_str(&said).unwrap()
}

fn saved(folder: &Folder) -> Value {
    let path = folder.path().join("data/toolman/toolsets.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// A server whose tools can be defined anew.
struct Changing {
    folder: Folder,
}

impl Changing {
    fn new(tools: &Value) -> Changing {
        let folder = Folder::new(TOOLMAN);
        let file = folder.path().join("defined.json");
        let command = format!("{} --tools {}", example("fake_upstream"), file.display());
        let text = format!("[[servers]]\nnamespace = \"git\"\ncommand = \"{command}\"\n");
        let changing = Changing { folder: folder.with_tools_toml(&text) };
        changing.define(tools);
        changing
    }

    fn define(&self, tools: &Value) {
        std::fs::write(self.folder.path().join("defined.json"), tools.to_string()).unwrap();
    }
}

fn tool(name: &str, description: &str) -> Value {
    json!({"name": name, "description": description,
        "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}}})
}

#[tokio::test]
async fn built_toolset_has_both_ids_of_every_tool_however_it_was_named() {
    // HT-01, HT-02, HT-03, HT-04, HT-05, HT-06, HT-07
    let folder = folder("", &SERVERS);
    let arguments = ["build", "dev", "git_echo", "hub:issue", "git.tree", "git__echo"];
    let (code, said) =
        run(&folder, &[&arguments[..], &["--description", "for work"]].concat()).await;
    assert_eq!(
        (code, said.as_str()),
        (Some(0), "saved toolset `dev` with 3 tools: git.echo, hub.issue, git.tree\n")
    );
    let dev = &saved(&folder)["dev"];
    assert_eq!((&dev["name"], &dev["description"]), (&json!("dev"), &json!("for work")));
    assert_eq!(dev["version"], "1.0.0");
    assert!(dev["createdAt"].as_str().unwrap().ends_with('Z'), "{dev}");
    let members: Vec<_> = dev.as_object().unwrap().keys().cloned().collect();
    let known = ["name", "description", "version", "createdAt", "lastModified", "tools"];
    assert_eq!(members, known, "no settings of servers");
    for tool in dev["tools"].as_array().unwrap() {
        assert!(tool["refId"].as_str().unwrap().starts_with("sha256:"), "{tool}");
        assert!(
            tool["namespacedName"]
                .as_str()
                .unwrap()
                .ends_with(tool["definition"]["name"].as_str().unwrap())
        );
    }
    // HT-49: one toolset with all tools; also a whole server, a pattern, a ref id.
    let all = json_of(&folder, &["build", "all", "*"], 0).await;
    assert_eq!(all["tools"].as_array().unwrap().len(), 5);
    let server = json_of(&folder, &["build", "server", "hub:*"], 0).await;
    assert_eq!(server["tools"], json!(["hub.echo", "hub.issue"]));
    let ref_id = saved(&folder)["dev"]["tools"][2]["refId"].as_str().unwrap().to_owned();
    let by_id = json_of(&folder, &["build", "by-id", &ref_id], 0).await;
    assert_eq!(by_id["tools"], json!(["git.tree"]));
}

#[tokio::test]
async fn what_can_not_be_built_is_refused_in_words() {
    let folder = folder("", &SERVERS);
    for (arguments, code, words) in [
        (&["build", "Dev", "git_echo"][..], 2, "use 2 to 50 lowercase letters, digits and hyphens"),
        (&["build", "dev"], 2, "required arguments were not provided"),
        (&["build", "dev", "git_ecoh"], 1, "no tool is named `git_ecoh`; did you mean `git_echo`?"),
        (
            &["build", "dev", "echo"],
            1,
            "`echo` could mean more than one tool; use one of `git_echo`, `hub_echo`",
        ),
        (
            &["build", "dev", "git_echo", "--description", &"x".repeat(201)],
            2,
            "the description has 201 characters",
        ),
        (&["show", "dev"], 1, "no toolset is named `dev`; none is saved"),
        (&["equip", "dev"], 1, "no toolset is named `dev`; none is saved"),
        (&["delete", "dev", "--yes"], 1, "no toolset is named `dev`; none is saved"),
        (&["export", "dev"], 1, "no toolset is named `dev`; none is saved"),
        (&["import", "none.json"], 2, "none.json: can't be read: entity not found"),
        (&["suggest", "--since", "never"], 2, "`--since` is `never`"),
    ] {
        let (ended, said) = run(&folder, arguments).await;
        assert_eq!(ended, Some(code), "{arguments:?}: {said}");
        assert!(said.contains(words), "{arguments:?}: {said}");
    }
    assert_eq!(run(&folder, &["build", "dev", "git_echo"]).await.0, Some(0));
    let (code, said) = run(&folder, &["build", "dev", "git_tree"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("there is a toolset `dev` already; delete it first"), "{said}");
    let (code, said) = run(&folder, &["delete", "dev"]).await;
    assert_eq!(
        (code, said.as_str()),
        (Some(2), "toolman: nobody can be asked here; say `--yes`\n")
    );
    let (_, said) = run(&folder, &["show", "dve"]).await;
    assert_eq!(said, "toolman: no toolset is named `dve`; there are `dev`\n");
}

#[tokio::test]
async fn toolset_is_listed_equipped_unequipped_and_deleted() {
    let folder = folder("", &SERVERS);
    assert!(run(&folder, &["list"]).await.1.starts_with("no toolset is saved"));
    run(&folder, &["build", "dev", "git_echo", "--description", "for work"]).await;
    run(&folder, &["build", "other", "hub_issue"]).await;
    let (code, said) = run(&folder, &["equip", "dev"]).await;
    assert_eq!((code, said.as_str()), (Some(0), "`dev` is equipped from the next start on\n"));
    let listed = json_of(&folder, &["list"], 0).await;
    let dev = &listed["toolsets"][0];
    assert_eq!(
        (&dev["name"], &dev["equipped"], &dev["toolCount"]),
        (&json!("dev"), &json!(true), &json!(1))
    );
    assert_eq!(listed["toolsets"][1]["equipped"], false);
    let (_, said) = run(&folder, &["list"]).await;
    assert!(said.contains("*  dev    1 tools  for work"), "{said}");
    assert_eq!(json_of(&folder, &["delete", "dev", "--yes"], 0).await, json!({"deleted": "dev"}));
    assert_eq!(saved(&folder).as_object().unwrap().len(), 1);
    let equipped = std::fs::read_to_string(folder.path().join("data/toolman/equipped-toolset"));
    assert_eq!(equipped.unwrap(), "\n", "what is deleted is not equipped");
    run(&folder, &["equip", "other"]).await;
    assert_eq!(json_of(&folder, &["unequip"], 0).await, json!({"equipped": null}));
    assert_eq!(json_of(&folder, &["list"], 0).await["toolsets"][0]["equipped"], false);
}

#[tokio::test]
async fn changed_tool_is_shown_member_by_member_until_a_person_approves_it() {
    // HT-08, HT-11, HT-12, HT-21, HT-44: a version of a tool is its ref id, with what it was then.
    let tools =
        json!([tool("log", "shows the log"), tool("diff", "shows a diff"), tool("gone", "x")]);
    let server = Changing::new(&tools);
    let folder = &server.folder;
    run(folder, &["build", "dev", "git:*"]).await;
    let (code, said) = run(folder, &["diff", "dev"]).await;
    assert_eq!((code, said.as_str()), (Some(0), "every tool is what it was\n"));
    let mut changed = tool("log", "shows the log, and sends it to me");
    changed["inputSchema"]["properties"]["to"] = json!({"type": "string"});
    server.define(&json!([changed, tool("diff", "shows a diff")]));
    let (code, said) = run(folder, &["diff", "dev"]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("git.gone  missing   no server has it now"), "{said}");
    let was =
        "`description` was `\"shows the log\"` and is `\"shows the log, and sends it to me\"`";
    assert!(said.contains(&format!("git.log   withheld  {was}")), "{said}");
    assert!(said.contains("`inputSchema.properties.to` is new"), "{said}");
    assert!(!said.contains("git.diff"), "{said}");
    let shown = json_of(folder, &["show", "dev"], 0).await;
    let states: Vec<_> =
        shown["tools"].as_array().unwrap().iter().map(|tool| &tool["state"]).collect();
    assert_eq!(states, ["resolved", "missing", "withheld"], "{shown}");
    // HT-12
    assert_eq!(shown["errors"].as_array().unwrap().len(), 2, "{shown}");
    let lists = |at: usize| {
        ["warnings", "errors"].map(|key| shown["tools"][at][key].as_array().unwrap().len())
    };
    assert_eq!([lists(0), lists(1)], [[0, 0], [0, 1]], "{shown}");
    let log = &shown["tools"][2];
    assert_eq!((&log["exists"], &log["serverName"]), (&json!(true), &json!("git")));
    assert_eq!((&log["namespacedNameMatch"], &log["refIdMatch"]), (&json!(true), &json!(false)));
    assert!(shown["warnings"][0].as_str().unwrap().starts_with("SECURITY: `git.log`"), "{shown}");
    let (_, said) = run(folder, &["show", "dev"]).await;
    assert!(said.contains("1 of 3 tools can be used"), "{said}");
    // A script has to say that it means it.
    let before = saved(folder);
    let (code, said) = run(folder, &["approve", "dev"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("nobody can be asked here; say `--yes`"), "{said}");
    assert_eq!(saved(folder), before);
    let (code, said) = run(folder, &["approve", "dev", "--yes"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains(was) && said.ends_with("approved git.log of toolset `dev`\n"), "{said}");
    let shown = json_of(folder, &["show", "dev"], 0).await;
    assert_eq!(shown["tools"][2]["state"], "resolved");
    assert_eq!(shown["tools"][2]["refId"], shown["tools"][2]["currentRefId"]);
    let (code, said) = run(folder, &["approve", "dev", "--yes"]).await;
    assert_eq!(code, Some(0));
    assert!(said.ends_with("there is nothing to approve; what is missing stays so\n"), "{said}");
}

#[tokio::test]
async fn server_that_is_not_there_is_told_and_its_tools_are_missing() {
    let folder = folder("", &SERVERS);
    run(&folder, &["build", "dev", "git_echo", "hub_issue"]).await;
    let text = std::fs::read_to_string(folder.path().join("tools.toml")).unwrap();
    std::fs::write(folder.path().join("tools.toml"), text.replace("echo issue", "--crash"))
        .unwrap();
    let (code, said) = run(&folder, &["diff", "dev"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("server `hub` is not ready, so its tools are not there"), "{said}");
    assert!(said.contains("hub.issue  missing") && !said.contains("git.echo"), "{said}");
}

#[tokio::test]
async fn toolset_is_suggested_by_what_was_used() {
    // HT-46, HT-47
    let folder = folder("surface = \"filter\"\n[audit]\n", &SERVERS);
    for (agent, tools) in
        [("dev", &["git_tree", "hub_echo", "hub_echo", "git_fail"][..]), ("ops", &["hub_issue"])]
    {
        let mut running = folder.start_as(agent).await;
        for tool in tools {
            running.client.call(tool, json!({"x": 1})).await;
        }
        running.client.close().await;
        running.ended().await;
    }
    let (code, said) = run(&folder, &["suggest", "--agent", "dev"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("hub.echo  2 calls"), "{said}");
    assert!(said.ends_with("\ntoolman toolset build dev-tools hub.echo git.tree\n"), "{said}");
    let everybody = json_of(&folder, &["suggest", "--since", "1h"], 0).await;
    let used = everybody["used-tools"]["tools"].as_array().unwrap();
    assert_eq!(used.len(), 3, "{everybody}");
    let (code, said) = run(&folder, &["suggest", "--agent", "nobody"]).await;
    assert_eq!(code, Some(1));
    assert!(said.contains("no successful call of a tool by agent `nobody`"), "{said}");
    // What is proposed can be taken as it is.
    std::fs::write(folder.path().join("used.json"), everybody.to_string()).unwrap();
    assert_eq!(run(&folder, &["import", "used.json"]).await.1, "added `used-tools`\n");
    let shown = json_of(&folder, &["show", "used-tools"], 0).await;
    assert_eq!(shown["tools"][0]["reasons"], json!(["not pinned"]));
    assert_eq!(
        json_of(&folder, &["approve", "used-tools", "--yes"], 0).await["approved"]
            .as_array()
            .unwrap()
            .len(),
        3
    );
}
