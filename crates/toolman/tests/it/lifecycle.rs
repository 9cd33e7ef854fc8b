//! Upstreams over time: start, change, crash, restart.

use std::time::Duration;

use serde_json::json;
use testkit::client::LineClient;
use testkit::fake::{Script, prompt, resource};
use testkit::world::World;

fn git() -> Script {
    Script {
        resources: vec![resource("repo://head")],
        prompts: vec![prompt("ask")],
        ..Script::with_tools(["log", "never"])
    }
}

#[tokio::test(start_paused = true)]
async fn crashed_upstream_takes_its_items_off_every_list() {
    // TA-57, TA-58, TA-68, TA-56
    let world =
        World::of([("git", git()), ("hub", Script::with_tools(["log"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    let pending = client.begin("tools/call", json!({"name": "git_never"})).await;
    client.request("ping", json!({})).await;
    world.crash("git");
    for list in ["tools", "resources", "prompts"] {
        client.next(&format!("notifications/{list}/list_changed")).await;
    }
    assert_eq!(client.tool_names().await, ["toolman_activate", "hub_log"]);
    assert!(client.names("resources/list", "resources", "uri").await.is_empty());
    assert!(client.names("prompts/list", "prompts", "name").await.is_empty());
    assert!(!client.activation_catalog().await.contains("git_"));
    let failed = client.answer(pending).await;
    assert_eq!(failed["result"]["structuredContent"]["error"], "upstream `git` has ended");
    let dead = client.call("git_log", json!({})).await;
    assert_eq!(dead["structuredContent"]["error"], "upstream `git` has ended");
    assert_eq!(client.call("hub_log", json!({})).await["content"][0]["text"], "ok");
}

#[tokio::test(start_paused = true)]
async fn change_is_announced_once() {
    // TA-74
    let world = World::of([("git", git())]).active(&["git_log"]).start();
    let mut client = world.connect().await;
    world.crash("git");
    client.next("notifications/tools/list_changed").await;
    tokio::time::sleep(Duration::from_mins(1)).await;
    assert_eq!(client.count("notifications/tools/list_changed"), 0);
    assert_eq!(client.count("notifications/resources/list_changed"), 0);
    assert_eq!(client.count("notifications/prompts/list_changed"), 1);
}

#[tokio::test(start_paused = true)]
async fn crashed_upstream_is_not_restarted_by_default() {
    // TA-60
    let world = World::of([("git", git())]).active(&["*"]).start();
    let mut client = world.connect().await;
    world.crash("git");
    client.next("notifications/tools/list_changed").await;
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(world.starts("git"), 1);
}

#[tokio::test(start_paused = true)]
async fn crashed_upstream_comes_back_where_restart_is_on() {
    // TA-71: and what was chosen is still chosen
    let world = World::of([("git", git())]).restarting().start();
    let mut client = world.connect().await;
    client.activate(&["git_log"], &[], &[], &[]).await;
    client.call("git_log", json!({})).await;
    client.next("notifications/tools/list_changed").await;
    world.crash("git");
    client.next("notifications/tools/list_changed").await;
    client.next("notifications/tools/list_changed").await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log"]);
    assert_eq!(world.starts("git"), 2);
}

#[tokio::test(start_paused = true)]
async fn crash_loop_ends_in_parking() {
    let world = World::of([("git", git())]).restarting().start();
    let mut client = world.connect().await;
    for _ in 0..5 {
        world.crash("git");
        client.next("notifications/tools/list_changed").await;
        tokio::time::sleep(Duration::from_secs(59)).await;
    }
    tokio::time::sleep(Duration::from_hours(1)).await;
    assert_eq!(world.starts("git"), 5);
    assert_eq!(client.tool_names().await, ["toolman_activate"]);
}

#[tokio::test(start_paused = true)]
async fn upstream_that_was_of_use_is_restarted_however_often() {
    let world = World::of([("git", git())]).active(&["*"]).restarting().start();
    let mut client = world.connect().await;
    for round in 1..=20 {
        client.call("git_log", json!({})).await;
        world.crash("git");
        client.next("notifications/tools/list_changed").await;
        client.next("notifications/tools/list_changed").await;
        assert_eq!(world.starts("git"), round + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn late_upstream_joins_with_list_changed() {
    // TA-20, TA-67
    let slow = Script { delay: Duration::from_secs(40), ..Script::with_tools(["late"]) };
    let world = World::of([("slow", slow), ("git", git())]).active(&["*"]).start();
    let started = tokio::time::Instant::now();
    let mut client = world.connect().await;
    assert!(started.elapsed() < Duration::from_secs(2), "the fast one is served at once");
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log", "git_never"]);
    world.gateway.ready().await;
    assert_eq!(started.elapsed().as_secs(), 30, "ready means out of time as well");
    client.next("notifications/tools/list_changed").await;
    assert!(client.tool_names().await.contains(&"slow_late".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn all_pages_of_all_lists_are_read() {
    // TA-17
    let numbers = || (0..25).map(|n| n.to_string());
    let script = Script {
        resources: numbers().map(|n| resource(&format!("r://{n}"))).collect(),
        prompts: numbers().map(|n| prompt(&n)).collect(),
        page: Some(3),
        ..Script::with_tools(numbers())
    };
    let world = World::of([("a", script)]).active(&["*"]).start();
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await.len(), 26);
    assert_eq!(client.names("resources/list", "resources", "uri").await.len(), 25);
    assert_eq!(client.names("prompts/list", "prompts", "name").await.len(), 25);
}

#[tokio::test(start_paused = true)]
async fn endless_pages_are_read_up_to_a_bound() {
    let endless = Script { endless: true, ..Script::default() };
    let world = World::of([("a", endless), ("git", git())]).active(&["*"]).start();
    world.gateway.ready().await;
    assert_eq!(world.connect().await.tool_names().await.len(), 3);
}

#[tokio::test(start_paused = true)]
async fn list_that_changes_at_the_upstream_changes_here() {
    let world = World::of([("a", Script::with_tools(["grow"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    client.call("a_grow", json!({})).await;
    client.next("notifications/tools/list_changed").await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "a_extra", "a_grow"]);
}

#[tokio::test(start_paused = true)]
async fn upstream_that_speaks_an_unknown_revision_is_not_used() {
    let odd = Script { revision: Some("1999-01-01".into()), ..git() };
    let world = World::of([("odd", odd), ("git", git())]).active(&["*"]).start();
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "git_log", "git_never"]);
}

#[tokio::test(start_paused = true)]
async fn every_legacy_revision_is_spoken_to_upstreams() {
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let script = Script { revision: Some(revision.into()), ..git() };
        let mut client = World::of([("git", script)]).active(&["*"]).start().connect().await;
        assert_eq!(client.tool_names().await.len(), 3, "{revision}");
    }
}

#[tokio::test(start_paused = true)]
async fn instructions_of_upstreams_are_passed_on() {
    let script = Script { instructions: Some("Always log first.".into()), ..git() };
    let mut client = World::of([("git", script)]).start().connect_raw();
    let hello = client.initialize(json!({})).await;
    let instructions = hello["instructions"].as_str().unwrap();
    assert!(instructions.contains("toolman_activate"));
    assert!(instructions.ends_with("# git\n\nAlways log first."));
}

#[tokio::test(start_paused = true)]
async fn server_that_asks_before_it_lists_is_answered() {
    let script = Script { asks_first: true, ..git() };
    let world = World::of([("git", script)]).active(&["*"]).start();
    let started = tokio::time::Instant::now();
    assert_eq!(world.connect().await.tool_names().await.len(), 3);
    assert!(started.elapsed() < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn list_is_read_up_to_a_bound_in_bytes() {
    let mut script = Script { page: Some(1), ..Script::with_tools(["a", "b", "c", "d", "e", "f"]) };
    for tool in &mut script.tools {
        tool["description"] = json!("x".repeat(15 * 1024 * 1024));
    }
    let world = World::of([("big", script)]).start();
    world.gateway.ready().await;
    let catalog = world.connect().await.activation_catalog().await;
    assert!(catalog.contains("big_d") && !catalog.contains("big_e"), "64 MiB hold four of them");
}

/// What a call of a tool fails with.
async fn refused(client: &mut LineClient, tool: &str) -> String {
    let answer = client.call(tool, json!({})).await;
    answer["structuredContent"]["error"].as_str().expect("it has failed").to_owned()
}

#[tokio::test(start_paused = true)]
async fn absent_server_tells_its_state_before_others_are_proposed() {
    let hangs = Script { hangs: true, ..Script::default() };
    let world = World::of([("git", hangs), ("hub", git())]).active(&["*"]).start();
    // It is still starting, so it is waited for; then it is late.
    let began = tokio::time::Instant::now();
    let mut client = world.connect().await;
    let late = "upstream `git` has not answered within 30s; see its command";
    for spelling in ["git_log", "git:log", "git.log"] {
        let error = refused(&mut client, spelling).await;
        assert!(error.starts_with(late), "{error}");
    }
    assert_eq!(began.elapsed().as_secs(), 30, "once it is late, nobody waits for it");
    let prompt = client.request("prompts/get", json!({"name": "git_ask"})).await;
    assert!(prompt["error"]["message"].as_str().unwrap().starts_with(late), "{prompt}");
    let resource = client.request("resources/read", json!({"uri": "git_repo://head"})).await;
    assert!(resource["error"]["message"].as_str().unwrap().starts_with(late), "{resource}");
    // A name that can't be its is unknown as ever.
    let error = refused(&mut client, "gist_log").await;
    assert!(error.starts_with("no tool is named `gist_log`; did you mean `hub_log`?"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn call_waits_for_a_server_that_is_started_again() {
    let world = World::of([("git", git())]).active(&["*"]).restarting().start();
    let mut client = world.connect().await;
    world.crash("git");
    client.next("notifications/tools/list_changed").await;
    assert_eq!(client.call("git_log", json!({})).await["content"][0]["text"], "ok");
    assert_eq!(world.starts("git"), 2);
}

#[tokio::test(start_paused = true)]
async fn reply_that_cannot_be_read_ends_its_call_with_what_is_wrong() {
    let world =
        World::of([("a", Script::with_tools(["pretty", "nan", "null_error"]))]).active(&["*"]);
    let mut client = world.start().connect().await;
    for tool in ["a_pretty", "a_nan"] {
        let error = refused(&mut client, tool).await;
        assert!(error.contains("sent a reply that is not valid JSON-RPC: "), "{error}");
    }
    let answer = client.request("tools/call", json!({"name": "a_null_error"})).await;
    assert_eq!(answer["error"]["message"], "parse error");
}

#[tokio::test(start_paused = true)]
async fn tool_of_a_server_that_is_starting_can_be_activated_and_called_at_once() {
    let slow = Script { delay: Duration::from_secs(5), ..Script::with_tools(["log"]) };
    let world = World::of([("git", slow)]).start();
    let mut client = world.connect().await;
    let result = client.activate(&["git_log"], &[], &[], &[]).await;
    assert_eq!(result["isError"], false, "{result}");
    assert_eq!(client.call("git_log", json!({})).await["content"][0]["text"], "ok");
}

#[tokio::test]
async fn name_of_a_kind_that_nobody_offers_is_sent_to_no_catalog() {
    let world = World::of([("git", Script::with_tools(["log"]))]).start();
    let mut client = world.connect().await;
    let answer = client.request("prompts/get", json!({"name": "ask"})).await;
    let said = answer["error"]["message"].as_str().unwrap();
    assert_eq!(said, "no prompt is named `ask`; there are no prompts");
}
