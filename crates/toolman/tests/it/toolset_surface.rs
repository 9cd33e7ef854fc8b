//! The surface `toolset`: a client builds, saves, equips and deletes toolsets by itself.

use serde_json::{Value, json};
use testkit::binary::{Folder, Running};
use testkit::client::{LineClient, alone};

use crate::folder;
use crate::up::{Up, call, request};

const SERVERS: [(&str, &str); 2] =
    [("git", "echo fail tree --resource r://a --prompt p"), ("hub", "echo chatter")];

fn project() -> Folder {
    folder("surface = \"toolset\"", &SERVERS)
}

/// The structured result of a control call, which must fit its text.
async fn control(client: &mut LineClient, tool: &str, arguments: Value) -> Value {
    let result = client.call(tool, arguments).await;
    assert_ne!(result["isError"], true, "{result}");
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let mut structure = result["structuredContent"].clone();
    structure.as_object_mut().unwrap().remove("activated");
    assert_eq!(text, structure);
    text
}

/// What is wrong with a control call.
async fn problem(client: &mut LineClient, tool: &str, arguments: Value) -> String {
    let result = client.call(tool, arguments).await;
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"].as_str().unwrap().to_owned()
}

fn tools(names: &[&str]) -> Value {
    names.iter().map(|name| json!({"namespacedName": name})).collect()
}

/// The tools that are listed besides the control tools.
async fn listed(client: &mut LineClient) -> Vec<String> {
    let mut names = client.tool_names().await;
    names.drain(..8);
    names
}

const ALL: [&str; 5] = ["git_echo", "git_fail", "git_tree", "hub_chatter", "hub_echo"];

#[tokio::test]
async fn toolset_is_built_equipped_and_taken_off() {
    // HT-01, HT-02, HT-04, HT-05, HT-06, HT-07, HT-24, HT-25, HT-27, HT-28, HT-29, HT-31, HT-32, HT-33
    let folder = project();
    let Running { mut client, child: _child, .. } = folder.start().await;
    assert_eq!(listed(&mut client).await, ALL, "with nothing equipped all is listed");
    let available = control(&mut client, "list-available-tools", json!({})).await;
    assert_eq!(available["summary"], json!({"totalTools": 5, "totalServers": 2}));
    let first = &available["toolsByServer"][0]["tools"][0];
    assert_eq!(first["namespacedName"], "git.echo");
    assert!(first["refId"].as_str().unwrap().starts_with("sha256:"));
    assert!(first["tokens"].as_u64().unwrap() > 0);
    let wanted = json!([{"namespacedName": "git.echo"}, {"refId": available["toolsByServer"][1]["tools"][1]["refId"]}]);
    let built = control(
        &mut client,
        "build-toolset",
        json!({"name": "mine", "tools": wanted, "description": "for me"}),
    )
    .await;
    assert_eq!(built["toolset"]["tools"][1]["namespacedName"], "hub.echo", "{built}");
    assert!(built["toolset"]["tools"][0]["refId"].is_string(), "both ids are stored");
    assert_eq!(listed(&mut client).await, ALL, "it is not equipped yet");
    let equipped = control(&mut client, "equip-toolset", json!({"name": "mine"})).await;
    assert_eq!(equipped["message"], "`mine` is equipped: 2 of 2 tools");
    client.next("notifications/tools/list_changed").await;
    assert_eq!(listed(&mut client).await, ["git_echo", "hub_echo"]);
    let active = control(&mut client, "get-active-toolset", json!({})).await;
    assert_eq!(active["exposedTools"], json!({"git": ["git_echo"], "hub": ["hub_echo"]}));
    // No way around it, whatever it is called.
    for name in ["git_fail", "git.fail", "git:fail", "git__fail", "fail"] {
        let said = problem(&mut client, name, json!({})).await;
        assert!(said.contains("it is not in the equipped toolset `mine`"), "{name}: {said}");
    }
    assert_eq!(client.call("git.echo", json!({})).await["x-first"], 1.1);
    let saved = control(&mut client, "list-saved-toolsets", json!({})).await;
    assert_eq!(
        (&saved["toolsets"][0]["name"], &saved["toolsets"][0]["active"]),
        (&json!("mine"), &json!(true))
    );
    let off = control(&mut client, "unequip-toolset", json!({})).await;
    assert_eq!(off["message"], "`mine` is no longer equipped; all tools are shown");
    assert_eq!(listed(&mut client).await, ALL);
    assert_eq!(client.call("git_fail", json!({})).await["content"][0]["text"], "it failed");
    let active = control(&mut client, "get-active-toolset", json!({})).await;
    assert_eq!(active["equipped"], false);
}

#[tokio::test]
async fn wrong_calls_are_answered_with_what_to_do_and_change_nothing() {
    // HT-25, HT-26, HT-28, HT-30
    let folder = project();
    let Running { mut client, child: _child, .. } = folder.start().await;
    let one = tools(&["git.echo"]);
    for (tool, arguments, words) in [
        ("build-toolset", json!({"name": "A b", "tools": one}), "use 2 to 50 lowercase letters"),
        ("build-toolset", json!({"name": "ok", "tools": []}), "a toolset needs a tool"),
        (
            "build-toolset",
            json!({"name": "ok", "tools": tools(&["git.eco"])}),
            "no tool is named `git.eco`; did you mean",
        ),
        (
            "build-toolset",
            json!({"name": "ok", "tools": [{}]}),
            "needs `namespacedName` or `refId`",
        ),
        ("build-toolset", json!({"name": "ok", "tools": one, "x": 1}), "unknown field `x`"),
        (
            "build-toolset",
            json!({"name": "ok", "tools": one, "description": "x".repeat(201)}),
            "use at most 200",
        ),
        ("build-toolset", json!({}), "missing field `name`"),
        ("equip-toolset", json!({"name": "none"}), "no toolset is named `none`; none is saved"),
        ("delete-toolset", json!({"name": "none", "confirm": true}), "no toolset is named `none`"),
        ("delete-toolset", json!({"name": "none"}), "pass `confirm: true`"),
        (
            "add-tool-annotation",
            json!({"toolRef": {"namespacedName": "git.echo"}, "notes": [{"name": "a", "note": "b"}]}),
            "use `equip-toolset` first",
        ),
    ] {
        let said = problem(&mut client, tool, arguments.clone()).await;
        assert!(said.contains(words), "{tool} {arguments}: {said}");
    }
    let made = json!({"name": "mine", "tools": one, "autoEquip": true});
    assert_eq!(control(&mut client, "build-toolset", made.clone()).await["autoEquipped"], true);
    assert_eq!(listed(&mut client).await, ["git_echo"]);
    let said = problem(&mut client, "build-toolset", made).await;
    assert!(said.contains("there is a toolset `mine` already"), "{said}");
    let gone =
        control(&mut client, "delete-toolset", json!({"name": "mine", "confirm": true})).await;
    assert_eq!(gone["message"], "`mine` is deleted");
    assert_eq!(listed(&mut client).await, ALL, "it was unequipped");
}

#[tokio::test]
async fn tools_that_others_can_not_do_without_are_added_and_told() {
    // HT-45
    let requires = "surface = \"toolset\"\n[requires]\n\"git.echo\" = [\"git:tree\"]\n\
        git_tree = [\"hub_echo\", \"hub.lost\", \"git.echo\"]\n";
    let folder = folder(requires, &SERVERS);
    let Running { mut client, child: _child, .. } = folder.start().await;
    let wanted = json!({"name": "mine", "tools": tools(&["git.echo"])});
    let built = control(&mut client, "build-toolset", wanted).await;
    let names = built["toolset"]["tools"].as_array().unwrap().iter();
    let names: Vec<_> = names.map(|tool| tool["namespacedName"].as_str().unwrap()).collect();
    assert_eq!(names, ["git.echo", "git.tree", "hub.echo"]);
    let told = json!([
        "`git_tree` was added, as `git_echo` needs it",
        "`hub_echo` was added, as `git_tree` needs it",
        "`git_tree` needs `hub.lost`, which is not there",
    ]);
    assert_eq!(built["warnings"], told);
    let output = folder.run(&["toolset", "build", "other", "git_echo", "git_fail"]).await;
    let said = String::from_utf8(output.stdout).unwrap();
    let all = "saved toolset `other` with 4 tools: git.echo, git.fail, git.tree, hub.echo\n";
    assert!(said.starts_with(all), "{said}");
    assert!(said.contains("`git_tree` was added, as `git_echo` needs it\n"), "{said}");
}

#[tokio::test]
async fn notes_are_shown_behind_the_description_once() {
    let folder = project();
    let Running { mut client, child: _child, .. } = folder.start().await;
    let made = json!({"name": "mine", "tools": tools(&["git.echo"]), "autoEquip": true});
    control(&mut client, "build-toolset", made).await;
    let note = json!({"toolRef": {"namespacedName": "git.echo"}, "notes": [{"name": "tip", "note": "Pass x."}]});
    control(&mut client, "add-tool-annotation", note.clone()).await;
    control(&mut client, "add-tool-annotation", note).await;
    for _ in 0..3 {
        let list = client.request("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][8]["description"], "does echo\n\n[tip] Pass x.");
    }
    let outside =
        json!({"toolRef": {"namespacedName": "git.fail"}, "notes": [{"name": "a", "note": "b"}]});
    let said = problem(&mut client, "add-tool-annotation", outside).await;
    assert!(said.contains("not in the equipped toolset"), "{said}");
}

#[tokio::test]
async fn clients_over_http_disturb_nobody() {
    let folder = project();
    let (mut one, mut two) = (Up::start(&folder).await, None);
    one.initialize().await;
    let made = json!({"name": "mine", "tools": tools(&["git.echo"]), "autoEquip": true});
    let built = one.post(&call(1, "build-toolset", made)).await.json();
    assert_ne!(built["result"]["isError"], true, "{built}");
    let names = async |up: &Up| {
        let list = up.post(&request(2, "tools/list", json!({}))).await.json();
        list["result"]["tools"].as_array().unwrap().len() - 8
    };
    assert_eq!(names(&one).await, 1);
    let session = one.session.take();
    one.initialize().await;
    assert_eq!(names(&one).await, 5, "another session has a selection of its own");
    two.replace(one.session.take());
    one.session = session;
    assert_eq!(names(&one).await, 1);
    // In the modern era the selection belongs to the caller, and lists are private.
    one.session = None;
    let headers = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    let list = request(3, "tools/list", alone(json!({}))).to_string();
    let listed = one.send("POST", &headers, &list).await.json();
    assert_eq!(listed["result"]["cacheScope"], "private");
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 13);
    let headers = [
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "equip-toolset"),
    ];
    let equip = json!({"name": "equip-toolset", "arguments": {"name": "mine"}});
    let equip = request(4, "tools/call", alone(equip)).to_string();
    let equipped = one.send("POST", &headers, &equip).await.json();
    assert_eq!(equipped["result"]["structuredContent"]["success"], true, "{equipped}");
    let headers = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
    let listed = one.send("POST", &headers, &list).await.json();
    assert_eq!(listed["result"]["tools"].as_array().unwrap().len(), 9);
}

#[tokio::test]
async fn client_that_lists_once_chooses_as_it_connects() {
    let head = "surface = \"filter\"\n[toolsets]\nread = [\"git:echo\", \"hub:echo\"]\n\
        trees = [\"git:tree\"]\n";
    let up = Up::start(&folder(head, &SERVERS)).await;
    let bearer = format!("Bearer {}", up.token);
    let names = async |path: &str, more: &[(&str, &str)]| {
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(more);
        let modern = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
        headers.extend(modern);
        let list = request(1, "tools/list", alone(json!({}))).to_string();
        let answer = testkit::http::send(&up.address, "POST", path, &headers, &list).await;
        let tools = answer.json()["result"]["tools"].as_array().cloned().unwrap_or_default();
        let names: Vec<_> =
            tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
        (answer.status, names.join(" "))
    };
    let read = (200, "git_echo hub_echo".to_owned());
    assert_eq!(names("/mcp?toolsets=read", &[]).await, read);
    assert_eq!(names("/mcp", &[("X-MCP-Toolsets", "read, none")]).await, read);
    assert_eq!(names("/mcp/read", &[]).await, read);
    let both = (200, "git_echo git_tree hub_echo".to_owned());
    assert_eq!(names("/mcp?toolsets=read%2Ctrees", &[]).await, both);
    assert_eq!(names("/mcp/read?tools=git_tree", &[]).await, both);
    let single = (200, "git_fail hub_chatter".to_owned());
    assert_eq!(names("/mcp", &[("X-MCP-Tools", "git.fail,hub_ch*")]).await, single);
    assert_eq!(names("/mcp?toolsets=none", &[]).await.0, 404);
    assert_eq!(names("/mcp/none", &[]).await.0, 404);
    assert_eq!(names("/mcp?x=%zz", &[]).await.1.split(' ').count(), 5, "others' words are theirs");
}

#[tokio::test]
async fn tool_that_changes_while_it_is_equipped_is_withheld_at_once_and_after_a_restart() {
    // HT-14, HT-18, HT-19, HT-36, HT-37
    let folder = folder("surface = \"toolset\"", &[("git", "echo mutate"), ("hub", "echo")]);
    let mut running = folder.start().await;
    let made = json!({"name": "mine", "tools": tools(&["git.echo", "hub.echo", "git.mutate"]), "autoEquip": true});
    control(&mut running.client, "build-toolset", made).await;
    // All tools are in it, so that no list has changed so far.
    running.client.call("git_mutate", json!({})).await;
    running.client.next("notifications/tools/list_changed").await;
    assert_eq!(listed(&mut running.client).await, ["hub_echo"]);
    let said = problem(&mut running.client, "git_echo", json!({})).await;
    assert!(said.contains("or withheld; see `get-active-toolset`"), "{said}");
    let active = control(&mut running.client, "get-active-toolset", json!({})).await;
    let warning = active["warnings"][0].as_str().unwrap();
    assert_eq!(
        warning,
        "SECURITY: `git.echo` is not what it was when it was chosen: `description` was `\"does echo\"` \
         and is `\"does something else\"`; it is withheld"
    );
    running.client.close().await;
    running.ended().await;
    // The next start equips it again; by then the server is what it was.
    let mut again = folder.start().await;
    while listed(&mut again.client).await != ["git_echo", "git_mutate", "hub_echo"] {
        // Until it has answered, it is taken for what it was last.
        again.client.next("notifications/tools/list_changed").await;
    }
    let file = folder.path().join("data/toolman/toolsets.json");
    let saved: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
    assert!(saved["mine"]["createdAt"].as_str().unwrap().ends_with('Z'), "{saved}");
    assert_eq!(saved["mine"]["tools"][0]["namespacedName"], "git.echo");
    assert!(saved["mine"]["tools"][0]["refId"].as_str().unwrap().starts_with("sha256:"));
}

#[tokio::test]
async fn official_clients_walk_through_toolsets() {
    let _loud = crate::MACHINE.read().await;
    let python = testkit::peers::python_program("sdk1", "python");
    for (surface, rules) in
        [("toolset", ""), ("dynamic", "[toolsets]\nread = [\"git:echo\"]\nfail = [\"git:fail\"]\n")]
    {
        for (program, script) in [(python.as_str(), "toolsets.py"), ("node", "toolsets.mjs")] {
            let head = format!("surface = \"{surface}\"\n{rules}");
            let folder = folder(&head, &[("git", "echo fail")]);
            let path = folder.path().to_str().unwrap().to_owned();
            crate::real_peers::run(program, script, &[crate::TOOLMAN, &path, surface]).await;
        }
    }
}

#[tokio::test]
async fn choice_of_one_request_is_not_that_of_the_next_on_its_connection() {
    let up = Up::start(&folder("surface = \"filter\"", &SERVERS)).await;
    let (address, token) = (&up.address, &up.token);
    let get = |path: &str, more: &str| {
        format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
        )
    };
    let all = [
        get("/tools?tools=git_fail", ""),
        get("/tools?tools=git_fail", ""),
        get("/tools", "X-Namespace: hub\r\n"),
        get("/tools", "X-MCP-Tools: git_tree\r\nConnection: close\r\n"),
    ];
    let answers = testkit::http::send_raw(address, all.concat()).await.body;
    let times = |name: &str| answers.matches(&format!("\"name\":\"{name}\"")).count();
    let found = ["git_fail", "git_tree", "hub_echo", "hub_chatter", "git_echo"].map(times);
    assert_eq!(found, [2, 1, 1, 1, 0], "{answers}");
}
