//! Whose toolsets are: those of an agent are its own, those of the operator everybody's to use and nobody's to change.

use serde_json::{Value, json};
use testkit::binary::{Folder, Running};
use testkit::client::LineClient;

use crate::folder;

const SERVERS: [(&str, &str); 2] = [("git", "echo fail tree"), ("vault", "echo open")];

const RULES: &str = "surface = \"toolset\"\n[agents.ada]\nallow_unknown = true\n\
    [agents.eve]\nallow_unknown = true\n[agents.bob]\nallowed_servers = [\"git\"]\nallow_unknown = true\n";

async fn call(client: &mut LineClient, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_ne!(result["isError"], true, "{result}");
    result["structuredContent"].clone()
}

async fn problem(client: &mut LineClient, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"].as_str().unwrap().to_owned()
}

async fn build(client: &mut LineClient, name: &str, tools: &[&str]) -> Value {
    let tools: Value = tools.iter().map(|name| json!({"namespacedName": name})).collect();
    call(client, "build-toolset", json!({"name": name, "tools": tools})).await
}

/// The names of the saved toolsets that a client is told of, with their owners.
async fn saved(client: &mut LineClient) -> Vec<String> {
    let list = call(client, "list-saved-toolsets", json!({})).await;
    let toolsets = list["toolsets"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    toolsets.map(|one| format!("{} of {}", text(&one["name"]), text(&one["owner"]))).collect()
}

async fn end(mut running: Running) {
    running.client.close().await;
    running.ended().await;
}

fn file(folder: &Folder) -> Value {
    let path = folder.path().join("data/toolman/toolsets.json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

#[tokio::test]
async fn agents_have_toolsets_of_their_own() {
    let folder = folder(RULES, &SERVERS);
    let (mut ada, mut bob) = (folder.start_as("ada").await, folder.start_as("bob").await);
    let built = build(&mut ada.client, "work", &["git.echo", "vault.open"]).await;
    assert_eq!(built["toolset"]["version"], "1.0.0");
    assert!(saved(&mut bob.client).await.is_empty());
    let said = problem(&mut bob.client, "equip-toolset", json!({"name": "work"})).await;
    assert_eq!(said, "no toolset is named `work`; none is saved; make one with `build-toolset`");
    let delete = json!({"name": "work", "confirm": true});
    let said = problem(&mut bob.client, "delete-toolset", delete.clone()).await;
    assert_eq!(said, "no toolset is named `work`; see `list-saved-toolsets`");
    // One of the same name is another one, and each keeps its own.
    build(&mut bob.client, "work", &["git.fail"]).await;
    call(&mut bob.client, "equip-toolset", json!({"name": "work"})).await;
    call(&mut ada.client, "equip-toolset", json!({"name": "work"})).await;
    let note =
        json!({"toolRef": {"namespacedName": "git.fail"}, "notes": [{"name": "a", "note": "b"}]});
    call(&mut bob.client, "add-tool-annotation", note).await;
    assert_eq!(file(&folder)["work"]["owner"], "ada");
    assert_eq!(file(&folder)["bob/work"]["toolNotes"].as_array().unwrap().len(), 1);
    assert_eq!(bob.client.tool_names().await[8..], ["git_fail"]);
    // What one has equipped is what it begins with the next time, and nobody else does.
    end(ada).await;
    end(bob).await;
    let (mut ada, mut bob) = (folder.start_as("ada").await, folder.start_as("bob").await);
    assert_eq!(ada.client.tool_names().await[8..], ["git_echo", "vault_open"]);
    assert_eq!(bob.client.tool_names().await[8..], ["git_fail"]);
    let mut other = folder.start_as("eve").await;
    assert_eq!(other.client.tool_names().await.len(), 8 + 5);
    call(&mut bob.client, "delete-toolset", delete).await;
    assert_eq!(saved(&mut ada.client).await, ["work of you"]);
    assert!(saved(&mut other.client).await.is_empty());
    // The operator sees them all.
    let listed = folder.run(&["toolset", "list"]).await;
    let listed = String::from_utf8(listed.stdout).unwrap();
    assert!(listed.contains("work") && listed.contains("saved by ada"), "{listed}");
}

#[tokio::test]
async fn toolset_of_the_operator_is_everybodys_to_use_and_nobodys_to_change() {
    let folder = folder(RULES, &SERVERS);
    for (name, tools) in [("both", &["git.echo", "vault.open"][..]), ("closed", &["vault:*"])] {
        let arguments = [&["toolset", "build", name][..], tools].concat();
        assert!(folder.run(&arguments).await.status.success());
    }
    let text = std::fs::read_to_string(folder.path().join("data/toolman/toolsets.json")).unwrap();
    let mut bob = folder.start_as("bob").await;
    assert_eq!(saved(&mut bob.client).await, ["both of operator"]);
    call(&mut bob.client, "equip-toolset", json!({"name": "both"})).await;
    assert_eq!(bob.client.tool_names().await[8..], ["git_echo"]);
    // Nothing that is hidden is named in any answer.
    for (tool, arguments) in [
        ("list-saved-toolsets", json!({})),
        ("get-active-toolset", json!({})),
        ("equip-toolset", json!({"name": "both"})),
        ("equip-toolset", json!({"name": "closed"})),
        ("list-available-tools", json!({"full": true})),
        ("delete-toolset", json!({"name": "closed", "confirm": true})),
    ] {
        let answer = bob.client.call(tool, arguments).await.to_string();
        assert!(!answer.contains("vault") && !answer.contains("open\\\""), "{tool}: {answer}");
    }
    let said = problem(&mut bob.client, "list-available-tools", json!({"server": "vault"})).await;
    assert_eq!(said, "no server is named `vault`; there are `git`");
    let active = call(&mut bob.client, "get-active-toolset", json!({})).await;
    assert_eq!(
        (&active["toolset"]["toolCount"], &active["toolset"]["availableTools"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(active["warnings"], json!(["1 of its tools are not available; they are left out"]));
    let said =
        problem(&mut bob.client, "delete-toolset", json!({"name": "both", "confirm": true})).await;
    assert_eq!(said, "`both` is the operator's; you can equip it, but not delete it");
    let note =
        json!({"toolRef": {"namespacedName": "git.echo"}, "notes": [{"name": "a", "note": "b"}]});
    let said = problem(&mut bob.client, "add-tool-annotation", note).await;
    assert!(said.starts_with("`both` is the operator's, and its notes can't be changed"), "{said}");
    let path = folder.path().join("data/toolman/toolsets.json");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
    // A toolset of its own comes before the operator's of that name, and does not touch it.
    build(&mut bob.client, "both", &["git.tree"]).await;
    call(&mut bob.client, "equip-toolset", json!({"name": "both"})).await;
    assert_eq!(bob.client.tool_names().await[8..], ["git_tree"]);
    assert_eq!(saved(&mut bob.client).await, ["both of you"]);
    let file = file(&folder);
    assert!(file["both"]["owner"].is_null() && file["bob/both"]["owner"] == "bob", "{file}");
    let mut ada = folder.start_as("ada").await;
    assert_eq!(saved(&mut ada.client).await, ["both of operator", "closed of operator"]);
}

#[tokio::test]
async fn tools_are_listed_in_pages_that_a_model_can_afford() {
    // HT-32
    let folder = folder("surface = \"toolset\"", &SERVERS);
    let mut running = folder.start().await;
    let client = &mut running.client;
    let first = call(client, "list-available-tools", json!({"limit": 2})).await;
    let shown = json!({"totalTools": 5, "totalServers": 2, "matchingTools": 5, "shownTools": 2});
    assert_eq!(first["summary"], shown);
    let tool = &first["toolsByServer"][0]["tools"][0];
    assert_eq!(tool["namespacedName"], "git.echo");
    assert!(tool["refId"].is_string() && tool["exposedName"].is_null(), "{tool}");
    let mut names: Vec<String> = Vec::new();
    let mut cursor = Value::Null;
    loop {
        let mut arguments = json!({"limit": 2});
        if !cursor.is_null() {
            arguments["cursor"] = cursor;
        }
        let page = call(client, "list-available-tools", arguments).await;
        for server in page["toolsByServer"].as_array().unwrap() {
            let tools = server["tools"].as_array().unwrap().iter();
            names.extend(tools.map(|tool| tool["namespacedName"].as_str().unwrap().to_owned()));
        }
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            break;
        }
    }
    assert_eq!(names, ["git.echo", "git.fail", "git.tree", "vault.echo", "vault.open"]);
    let found = call(
        client,
        "list-available-tools",
        json!({"query": "ECHO does", "server": "vault", "full": true}),
    )
    .await;
    let tool = &found["toolsByServer"][0]["tools"][0];
    assert_eq!(
        (&tool["exposedName"], &found["summary"]["matchingTools"]),
        (&json!("vault_echo"), &json!(1))
    );
    for (arguments, words) in [
        (json!({"server": "none"}), "no server is named `none`; there are `git`, `vault`"),
        (json!({"cursor": "git.none"}), "`git.none` is not on this list any more"),
        (json!({"querry": "x"}), "unknown field `querry`"),
    ] {
        let said = problem(client, "list-available-tools", arguments).await;
        assert!(said.contains(words), "{said}");
    }
}
