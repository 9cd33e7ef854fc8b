//! The control tool `toolman_activate`, as a client meets it.

use serde_json::{Value, json};
use testkit::fake::{Script, prompt, resource, template};
use testkit::world::World;

fn git() -> Script {
    Script {
        resources: vec![resource("repo://head")],
        templates: vec![template("repo://{id}")],
        prompts: vec![prompt("ask")],
        ..Script::with_tools(["log", "status"])
    }
}

/// What our own errors and confirmations carry.
fn envelope(result: &Value) -> Value {
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, result["structuredContent"], "text and structure say the same");
    text
}

#[tokio::test(start_paused = true)]
async fn patterns_decide_what_starts_active() {
    // TA-08, TA-09, TA-10, TA-19, TA-40, TA-41, TA-46, TA-47, TA-53, TA-54
    let world = World::of([("git", git())]).active(&["git_log", "git_repo://h*"]).start();
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log"]);
    assert_eq!(client.names("resources/list", "resources", "uri").await, ["git_repo://head"]);
    let templates = client.names("resources/templates/list", "resourceTemplates", "uriTemplate");
    assert!(templates.await.is_empty());
    assert_eq!(client.names("prompts/list", "prompts", "name").await, ["git_ask"]);
}

#[tokio::test(start_paused = true)]
async fn without_patterns_nothing_is_active_but_the_control_tool() {
    // TA-11, TA-21
    let world = World::of([("git", git())]).start();
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await, ["toolman_activate"]);
}

#[tokio::test(start_paused = true)]
async fn control_tool_takes_four_required_lists() {
    // TA-22
    let world = World::of([("git", git())]).start();
    let answer = world.connect().await.request("tools/list", json!({})).await;
    let schema = &answer["result"]["tools"][0]["inputSchema"];
    let lists = ["tools_on", "tools_off", "resources_on", "resources_off"];
    assert_eq!(schema["required"], json!(lists));
    for list in lists {
        assert_eq!(schema["properties"][list]["type"], "array");
        assert_eq!(schema["properties"][list]["items"], json!({"type": "string"}));
    }
}

#[tokio::test(start_paused = true)]
async fn items_are_switched_on_and_off_and_others_stay() {
    // TA-23, TA-24, TA-25, TA-26, TA-27, TA-74
    let world = World::of([("git", git())]).active(&["git_log"]).start();
    let mut client = world.connect().await;
    let templates = ("resources/templates/list", "resourceTemplates", "uriTemplate");
    let result =
        client.activate(&["git_status"], &[], &["git_repo://head", "git_repo://{id}"], &[]).await;
    assert_eq!(result["isError"], false);
    client.next("notifications/tools/list_changed").await;
    client.next("notifications/resources/list_changed").await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log", "git_status"]);
    assert_eq!(client.names("resources/list", "resources", "uri").await, ["git_repo://head"]);
    assert_eq!(client.names(templates.0, templates.1, templates.2).await, ["git_repo://{id}"]);

    client.activate(&[], &["git_log"], &[], &["git_repo://head"]).await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_status"]);
    assert!(client.names("resources/list", "resources", "uri").await.is_empty());
    assert_eq!(client.names(templates.0, templates.1, templates.2).await, ["git_repo://{id}"]);
}

#[tokio::test(start_paused = true)]
async fn confirmation_is_short_and_definitions_come_second() {
    // TA-34, TA-35
    let world = World::of([("git", git())]).active(&["git_log"]).start();
    let mut client = world.connect().await;
    let result = client.activate(&["git_log"], &[], &["git_repo://head"], &[]).await;
    let mut said =
        json!({"success": true, "result": "on: git_log, git_repo://head", "error": null});
    let first = result["content"][0]["text"].as_str().unwrap();
    assert_eq!(serde_json::from_str::<Value>(first).unwrap(), said);
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    said["activated"] = json!([
        {"name": "git_log", "description": "does log", "inputSchema": schema},
        {"uri": "git_repo://head", "name": "repo://head", "description": "about repo://head"},
    ]);
    assert_eq!(result["structuredContent"], said);
    let definitions: Value =
        serde_json::from_str(result["content"][1]["text"].as_str().unwrap()).unwrap();
    assert_eq!(definitions["tools"][0]["name"], "git_log");
    assert_eq!(definitions["tools"][0]["x-vendor"], json!({"kept": true}));
    assert_eq!(definitions["resources"][0]["uri"], "git_repo://head");
    let off = client.activate(&[], &["git_log"], &[], &[]).await;
    assert_eq!(off["content"].as_array().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn one_wrong_name_changes_nothing() {
    // TA-29, TA-30, TA-31, TA-32, TA-64
    let world = World::of([("git", git())]).active(&["git_log"]).start();
    let mut client = world.connect().await;
    let result =
        client.activate(&["git_status", "git_statsu"], &["git_log"], &["git_log"], &[]).await;
    assert_eq!(result["isError"], true);
    assert_eq!(
        envelope(&result),
        json!({"success": false, "result": null, "error": "no tool is named `git_statsu` (did you \
            mean `git_status`?); no resource is named `git_log`; nothing was changed"})
    );
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log"]);
    assert_eq!(client.count("notifications/tools/list_changed"), 0);
}

#[tokio::test(start_paused = true)]
async fn empty_lists_and_contradictions_are_errors() {
    // TA-28, TA-33
    let world = World::of([("git", git())]).start();
    let mut client = world.connect().await;
    for (on, off, words) in [
        (&[][..], &[][..], "give at least one name"),
        (&["git_log"][..], &["git_log"][..], "both on and off"),
    ] {
        let result = client.activate(on, off, &[], &[]).await;
        assert_eq!(result["isError"], true);
        assert!(envelope(&result)["error"].as_str().unwrap().contains(words));
    }
}

#[tokio::test(start_paused = true)]
async fn description_is_the_live_catalog() {
    // TA-36, TA-37, TA-38, TA-39
    let mut script = git();
    script.tools[0]["description"] = json!("é".repeat(1_000_000));
    let world = World::of([("git", script)]).active(&["git_log"]).start();
    let mut client = world.connect().await;
    let log = "é".repeat(132);
    let expected = |log_mark, status_mark| {
        format!(
            "TOOLS:\n{log_mark}git_log: {log}\n{status_mark}git_status: does status\n\n\
             RESOURCES:\n  git_repo://head: about repo://head\n  git_repo://{{id}}: about repo://{{id}}"
        )
    };
    assert!(client.activation_catalog().await.ends_with(&expected("* ", "  ")));
    client.activate(&["git_status"], &["git_log"], &[], &[]).await;
    assert!(client.activation_catalog().await.ends_with(&expected("  ", "* ")));
}

#[tokio::test(start_paused = true)]
async fn whole_server_is_switched_by_one_name() {
    // TA-72
    let world = World::of([("git", git()), ("hub", Script::with_tools(["log"]))]).start();
    let mut client = world.connect().await;
    client.activate(&["git:*"], &[], &["git:*"], &[]).await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log", "git_status"]);
    assert_eq!(client.names("resources/list", "resources", "uri").await, ["git_repo://head"]);
    client.activate(&["hub:*"], &["git:*"], &[], &[]).await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "hub_log"]);
}

#[tokio::test(start_paused = true)]
async fn stubs_stand_for_inactive_tools_where_wanted() {
    let world = World::of([("git", git())]).active(&["git_log"]).stubs().start();
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log", "git_status"]);
    let refused = client.call("git_status", json!({})).await;
    assert!(envelope(&refused)["error"].as_str().unwrap().contains("`toolman_activate` first"));
    client.activate(&["git_status"], &[], &[], &[]).await;
    assert_eq!(client.call("git_status", json!({})).await["content"][0]["text"], "ok");
}

#[tokio::test(start_paused = true)]
async fn two_clients_choose_for_themselves() {
    let world = World::of([("git", git())]).start();
    let (mut one, mut other) = (world.connect().await, world.connect().await);
    one.activate(&["git_log"], &[], &[], &[]).await;
    assert_eq!(one.tool_names().await, ["toolman_activate", "git_log"]);
    assert_eq!(other.tool_names().await, ["toolman_activate"]);
    assert_eq!(other.count("notifications/tools/list_changed"), 0);
}

#[tokio::test(start_paused = true)]
async fn upstream_can_not_shadow_the_control_tool() {
    // TA-15
    let world =
        World::of([("", Script::with_tools(["toolman_activate", "log"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "log"]);
    assert_eq!(client.activate(&[], &["log"], &[], &[]).await["isError"], false);
}

#[tokio::test(start_paused = true)]
async fn server_listed_first_keeps_a_name_however_slow_it_is() {
    // TA-12, TA-13, TA-14
    let offers = |text: &str, delay: u64| {
        let mut script = Script::with_tools(["log"]);
        script.tools[0]["description"] = json!(text);
        script.resources = vec![json!({"uri": "r://x", "name": text})];
        script.prompts = vec![json!({"name": "ask", "description": text})];
        script.delay = std::time::Duration::from_millis(delay);
        script
    };
    let world =
        World::of([("", offers("first", 900)), ("", offers("second", 0))]).active(&["*"]).start();
    let mut client = world.connect().await;
    for (method, member, key) in [
        ("tools/list", "tools", "description"),
        ("resources/list", "resources", "name"),
        ("prompts/list", "prompts", "description"),
    ] {
        let names = client.names(method, member, key).await;
        assert_eq!(names.last().unwrap(), "first", "{names:?}");
        assert!(!names.contains(&"second".to_owned()));
    }
}
