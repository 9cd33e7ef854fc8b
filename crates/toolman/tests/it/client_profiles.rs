//! Clients as they are: some never list again, some list a turn late, and models get only a part of a result.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::LineClient;
use testkit::fake::Script;
use testkit::world::World;
use tokio::time::Instant;

use crate::folder;
use crate::http_rules::read_stream;
use crate::up::{Up, request};

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
        ("mcp", 1, true),
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

#[tokio::test(start_paused = true)]
async fn arguments_are_taken_as_models_send_them() {
    let world = world();
    let mut client = world.connect().await;
    for arguments in [
        json!({"tools_on": ["git_log"]}),
        json!({"tools_on": "git_log", "tools_off": null, "resources_on": null}),
        json!({"tools_on": "[\"git_log\"]", "tools_off": "[]"}),
        json!({"tools_on": ["git_*"], "tools_off": []}),
    ] {
        let result = client.call("toolman_activate", arguments.clone()).await;
        assert_eq!(result["isError"], false, "{arguments} {result}");
        let called = client.call("git_log", json!({})).await;
        assert_eq!(called["content"][0]["text"], "ok");
        client.call("toolman_activate", json!({"tools_off": "git:*"})).await;
    }
}

/// What a request of the modern era says of its program.
fn as_claude(mut params: Value) -> Value {
    params["_meta"]["io.modelcontextprotocol/clientInfo"] =
        json!({"name": "claude-code", "version": "2.1.327"});
    params
}

#[tokio::test(start_paused = true)]
async fn client_without_handshake_is_waited_for_where_it_listens() {
    let world = world();
    let mut client = world.connect_raw();
    // It has no stream, so that it can't be told.
    let start = Instant::now();
    client.ask_alone("tools/call", as_claude(switching_on("git_status"))).await;
    assert!(start.elapsed().is_zero());

    let wanted = as_claude(json!({"notifications": {"toolsListChanged": true}}));
    client.begin_alone("subscriptions/listen", wanted).await;
    client.next("notifications/subscriptions/acknowledged").await;
    let call = client.begin_alone("tools/call", as_claude(switching_on("git_log"))).await;
    client.next(CHANGED).await;
    let list = client.ask_alone("tools/list", as_claude(json!({}))).await;
    let tools = list["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 3);
    for tool in tools {
        // Otherwise the model would have to look for what it has just switched on.
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{tool}");
    }
    let reply = client.answer(call).await;
    assert_eq!(parts(&reply["result"]).1["activated"][0]["name"], "git_log");
    assert!(start.elapsed() < Duration::from_millis(100));
}

/// A service with one server, and a session of a program there.
async fn service(program: &str) -> (Folder, Up) {
    let folder = folder("", &[("git", "echo")]);
    let mut up = Up::start(&folder).await;
    up.session = None;
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": {"name": program, "version": "0"}});
    let answer = up.send("POST", &[], &request(1, "initialize", hello).to_string()).await;
    up.session = answer.header("mcp-session-id").map(str::to_owned);
    up.send("POST", &[], r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    (folder, up)
}

#[tokio::test]
async fn session_without_a_stream_hears_of_changes_on_that_of_its_request() {
    let (_folder, up) = service("somebody").await;
    let message = request(2, "tools/call", switching_on("git_echo")).to_string();
    let answer = up.send("POST", &[], &message).await;
    let methods: Vec<_> = answer.events().iter().map(|event| event["method"].clone()).collect();
    assert_eq!(methods, [json!(CHANGED), Value::Null], "first the notice, then the reply");
    assert_eq!(answer.json()["result"]["isError"], false);
}

#[tokio::test]
async fn reply_over_http_comes_after_the_client_has_listed_again() {
    let (_folder, up) = service("opencode").await;
    let listing = async {
        read_stream(&up, "", CHANGED).await;
        let list = up.send("POST", &[], &request(3, "tools/list", json!({})).to_string()).await;
        assert_eq!(list.json()["result"]["tools"][1]["name"], "git_echo");
        std::time::Instant::now()
    };
    let calling = async {
        // The stream is there first.
        tokio::time::sleep(Duration::from_millis(200)).await;
        let message = request(2, "tools/call", switching_on("git_echo")).to_string();
        let answer = up.send("POST", &[], &message).await;
        assert_ne!(answer.header("content-type"), Some("text/event-stream"));
        assert_eq!(answer.json()["result"]["isError"], false);
        std::time::Instant::now()
    };
    let (listed, replied) = tokio::join!(listing, calling);
    assert!(listed < replied);
}

#[tokio::test]
async fn check_and_trail_say_which_profile_holds() {
    let folder =
        crate::folder("[clients.codex]\nname_length_max = 40\n[audit]\n", &[("git", "echo")]);
    let check = folder.run(&["check", "--client", "codex", "--json"]).await;
    let report: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(report["client"]["profile"], "codex");
    assert_eq!(report["client"]["lists"], "once");
    assert_eq!(report["client"]["stubs"], true);
    assert_eq!(report["client"]["name_length_max"], 40);
    let check = folder.run(&["check", "--client", "codex-mcp-client"]).await;
    let text = String::from_utf8(check.stdout).unwrap();
    assert!(text.contains("client `codex-mcp-client`: profile `codex`\n"), "{text}");
    assert!(text.contains("inactive tools  listed in one line each\n"), "{text}");

    let mut toolman = folder.start_raw();
    toolman.client.initialize_as("codex-mcp-client", json!({})).await;
    let names = toolman.client.tool_names().await;
    assert_eq!(names, ["toolman_activate", "git_echo"]);
    toolman.client.call("git_echo", json!({})).await;
    toolman.client.close().await;
    toolman.ended().await;
    let folder = folder.path().join("data/toolman/logs/audit");
    let files = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    let trail: String = files.map(|file| std::fs::read_to_string(file).unwrap()).collect();
    assert!(trail.contains(r#""profile":"codex""#), "{trail}");
}
