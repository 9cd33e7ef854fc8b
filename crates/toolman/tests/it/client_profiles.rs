//! Clients as they are: some never list again, some list a turn late, and models get only a part of a result.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::LineClient;
use testkit::fake::Script;
use testkit::world::World;
use tokio::time::Instant;

const CHANGED: &str = "notifications/tools/list_changed";

fn world() -> World {
    World::of([("git", Script::with_tools(["log", "status"]))]).start()
}

fn switching_on(tool: &str) -> Value {
    let lists =
        json!({"tools_on": [tool], "tools_off": [], "resources_on": [], "resources_off": []});
    json!({"name": "toolman_activate", "arguments": lists})
}

/// Switches a tool on as a client that does not list again; how long that takes.
async fn activate(client: &mut LineClient, tool: &str) -> (Value, Duration) {
    let start = Instant::now();
    let answer = client.request("tools/call", switching_on(tool)).await;
    (answer["result"].clone(), start.elapsed())
}

/// The texts of a result, read as JSON, and its structure.
fn parts(result: &Value) -> (Vec<Value>, Value) {
    let texts = result["content"].as_array().unwrap().iter();
    let texts = texts.map(|block| serde_json::from_str(block["text"].as_str().unwrap()).unwrap());
    (texts.collect(), result["structuredContent"].clone())
}

#[tokio::test(start_paused = true)]
async fn reply_comes_after_the_client_has_listed_again() {
    let world = world();
    let mut client = world.connect_as("opencode").await;
    let start = Instant::now();
    let call = client.begin("tools/call", switching_on("git_log")).await;
    client.next(CHANGED).await;
    tokio::time::sleep(Duration::from_millis(60)).await;
    let (listing, reply) = client.both("tools/list", call).await;
    assert_eq!(listing["result"]["tools"][1]["name"], "git_log");
    assert_eq!(reply["result"]["isError"], false);
    let took = start.elapsed();
    assert!((60..100).contains(&took.as_millis()), "no longer than the client takes: {took:?}");
}

#[tokio::test(start_paused = true)]
async fn reply_waits_for_a_bounded_time_and_only_that_of_a_control_tool() {
    let world = world();
    let mut client = world.connect().await;
    let (_, took) = activate(&mut client, "git_log").await;
    assert_eq!(took.as_millis(), 100, "of a client that nobody knows");
    assert_eq!(client.count(CHANGED), 1);
    let start = Instant::now();
    client.call("git_log", json!({})).await;
    client.tool_names().await;
    assert!(start.elapsed().is_zero());
    let mut other = world.connect_as("opencode").await;
    assert_eq!(activate(&mut other, "git_log").await.1.as_millis(), 500);
    // Nothing has changed, so nobody is waited for.
    assert!(activate(&mut other, "git_log").await.1.is_zero());
}

#[tokio::test(start_paused = true)]
async fn client_that_lists_once_has_a_stub_of_each_tool_and_calls_by_it() {
    let world = world();
    for program in ["codex-mcp-client", "qwen-cli-mcp-client-tools"] {
        let mut client = world.connect_as(program).await;
        let listed = client.request("tools/list", json!({})).await;
        let tools = listed["result"]["tools"].as_array().unwrap();
        let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["toolman_activate", "git_log", "git_status"]);
        assert!(tools[2]["description"].as_str().unwrap().starts_with("does status (Off: "));
        // Any arguments: some endpoints want `properties`, some clients check.
        let any = json!({"type": "object", "properties": {}, "additionalProperties": true});
        assert_eq!(tools[2]["inputSchema"], any);

        let refused = client.call("git_status", json!({"any": 1})).await;
        assert!(refused.to_string().contains("`toolman_activate` first"), "{refused}");
        let (result, took) = activate(&mut client, "git_status").await;
        assert!(took.is_zero(), "it is not waited for");
        assert_eq!(parts(&result).1["activated"][0]["name"], "git_status");
        let called = client.call("git_status", json!({"any": 1})).await;
        assert_eq!(called["content"][0]["text"], "ok");
    }
}

#[tokio::test(start_paused = true)]
async fn definitions_reach_the_model_in_the_part_that_its_client_hands_on() {
    let world = world();
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    for (program, blocks, is_structured) in [
        ("claude-code", 2, true),
        ("opencode", 2, true),
        ("smolagents", 1, true),
        ("copilot-cli", 2, false),
    ] {
        let mut client = world.connect_as(program).await;
        let (result, _) = activate(&mut client, "git_log").await;
        let (texts, structure) = parts(&result);
        assert_eq!(texts.len(), blocks, "{program}");
        assert_eq!(texts[0]["result"], "on: git_log", "TA-35");
        let text = texts.last().unwrap();
        let list = if blocks == 1 { "activated" } else { "tools" };
        assert_eq!(text[list][0]["inputSchema"], schema, "{program}");
        assert_eq!(structure["success"], true, "TA-64");
        assert_eq!(structure["activated"][0]["inputSchema"] == schema, is_structured, "{program}");
    }
}

#[tokio::test(start_paused = true)]
async fn stubs_that_would_cost_too_much_are_left_out_and_the_model_is_told() {
    let names: Vec<String> = (0..400).map(|at| format!("tool{at}")).collect();
    let many = Script::with_tools(names.iter().map(String::as_str));
    let world = World::of([("git", many)]).start();
    let mut client = world.connect_as("codex-mcp-client").await;
    assert_eq!(client.tool_names().await, ["toolman_activate"]);
    let description = client.activation_catalog().await;
    assert!(description.contains("lists tools once only"), "{description}");
    let mut other = world.connect_as("opencode").await;
    assert!(!other.activation_catalog().await.contains("lists tools once only"));
}

#[tokio::test(start_paused = true)]
async fn what_is_observed_holds_for_the_next_session_of_the_program() {
    let world = world();
    let mut client = world.connect_as("new-agent").await;
    assert_eq!(client.tool_names().await, ["toolman_activate"]);
    for tool in ["git_log", "git_status"] {
        activate(&mut client, tool).await;
        client.call(tool, json!({})).await;
    }
    client.begin("tools/call", switching_on("git_log")).await;
    // It was told twice and has called both times without listing again.
    let mut next = world.connect_as("new-agent").await;
    assert_eq!(next.tool_names().await, ["toolman_activate", "git_log", "git_status"]);
    assert!(activate(&mut next, "git_log").await.1.is_zero());

    // It lists again after all, so that the one after that has no stubs.
    next.begin("tools/call", switching_on("git_status")).await;
    next.next(CHANGED).await;
    next.next(CHANGED).await;
    next.tool_names().await;
    let mut last = world.connect_as("new-agent").await;
    assert_eq!(last.tool_names().await, ["toolman_activate"]);
    // Others are not concerned.
    assert_eq!(world.connect_as("other").await.tool_names().await, ["toolman_activate"]);
}
