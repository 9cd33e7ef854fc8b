//! Upstreams of which each client has a process or session of its own.

use serde_json::json;
use testkit::binary::Folder;
use testkit::fake::Script;
use testkit::lone::Lone;
use testkit::processes::{descendants, survivors};
use testkit::web::{Dialect, Fault, Manners, Site};
use testkit::world::{Plan, World};
use upstream::limits::{PRIVATE_IDLE_MAX, PRIVATES_MAX};
use upstream::supervisor::SessionChoice;

fn script() -> Script {
    Script::with_tools(["grow", "seen", "echo", "log"])
}

fn own(plan: Plan) -> World {
    plan.tuned(|settings| settings.session = SessionChoice::PerClient).filter().start()
}

#[tokio::test(start_paused = true)]
async fn each_client_has_a_process_of_its_own_while_it_is_there() {
    let world = own(World::of([("a", script())]));
    let mut first = world.connect().await;
    let mut second = world.connect().await;
    assert_eq!(world.starts("a"), 1, "lists need no further process");
    for round in 1..=2 {
        first.call("a_echo", json!({})).await;
        second.call("a_echo", json!({})).await;
        assert_eq!(world.starts("a"), 3, "round {round}");
    }
    // What the server of one client says is not for the other.
    first.call("a_log", json!({})).await;
    first.next("notifications/message").await;
    assert_eq!(second.count("notifications/message"), 0);
    drop(first);
    let mut third = world.connect().await;
    third.call("a_echo", json!({})).await;
    assert_eq!(world.starts("a"), 4);
}

#[tokio::test]
async fn each_client_has_a_session_of_its_own_and_it_ends_with_the_client() {
    let site = Site::start(Manners::new(Dialect::Legacy, script())).await;
    let world = own(World::of([]).remote("a", &site.url()));
    let mut first = world.connect().await;
    let mut second = world.connect().await;
    first.call("a_echo", json!({})).await;
    second.call("a_echo", json!({})).await;
    assert_eq!(site.sessions(), 3);
    let used: Vec<_> = site.seen("tools/call");
    let sessions: Vec<_> = used.iter().map(|seen| seen.header("mcp-session-id")).collect();
    assert_ne!(sessions[0], sessions[1]);
    first.close().await;
    site.wait_until(|site| site.seen("DELETE").len() == 1).await;
    site.forget_sessions();
    let result = second.call("a_echo", json!({"x": 1})).await;
    assert_eq!(result["structuredContent"], json!({"x": 1}));
    world.gateway.stop().await;
}

#[tokio::test]
async fn calls_that_lose_one_session_share_the_next() {
    // Without a stream of its own only the calls notice.
    let script = Script::with_tools(["slow"]);
    let manners = Manners { has_feed: false, ..Manners::new(Dialect::Legacy, script) };
    let site = Site::start(manners).await;
    let plan = World::of([]).remote("a", &site.url());
    let lone =
        Lone::start(plan.tuned(|settings| settings.session = SessionChoice::PerClient)).await;
    let call = || lone.call_as(Some(1), "slow", json!({"ms": 50}), &[]);
    call().await;
    site.forget_sessions();
    let answers = tokio::join!(call(), call());
    assert_eq!(answers.0["content"][0]["text"], "ok");
    assert_eq!(answers.1["content"][0]["text"], "ok");
    assert_eq!(site.seen("initialize").len(), 3);
}

#[tokio::test(start_paused = true)]
async fn idle_conversation_is_closed_and_opened_again_when_needed() {
    let world = own(World::of([("a", script())]));
    let mut client = world.connect().await;
    client.call("a_echo", json!({})).await;
    tokio::time::sleep(PRIVATE_IDLE_MAX / 2).await;
    client.call("a_echo", json!({})).await;
    tokio::time::sleep(PRIVATE_IDLE_MAX * 2 / 3).await;
    client.call("a_echo", json!({})).await;
    assert_eq!(world.starts("a"), 2);
    tokio::time::sleep(PRIVATE_IDLE_MAX * 2).await;
    client.call("a_echo", json!({})).await;
    assert_eq!(world.starts("a"), 3);
}

#[tokio::test(start_paused = true)]
async fn idlest_conversation_gives_way_when_there_are_too_many() {
    let world = own(World::of([("a", script())]));
    let mut clients = Vec::new();
    for _ in 0..=PRIVATES_MAX {
        let mut client = world.connect().await;
        client.call("a_echo", json!({})).await;
        tokio::time::advance(std::time::Duration::from_millis(1)).await;
        clients.push(client);
    }
    let started = world.starts("a");
    clients[PRIVATES_MAX].call("a_echo", json!({})).await;
    clients[1].call("a_echo", json!({})).await;
    assert_eq!(world.starts("a"), started, "these two were not the idlest");
    clients[0].call("a_echo", json!({})).await;
    assert_eq!(world.starts("a"), started + 1);
}

#[tokio::test(start_paused = true)]
async fn conversation_in_use_gives_way_to_nobody() {
    let world = own(World::of([("a", Script::with_tools(["echo", "never"]))]));
    let mut clients = Vec::new();
    for _ in 0..PRIVATES_MAX {
        let mut client = world.connect().await;
        client.call("a_echo", json!({})).await;
        client.begin("tools/call", json!({"name": "a_never"})).await;
        client.request("ping", json!({})).await;
        clients.push(client);
    }
    let started = world.starts("a");
    let mut late = world.connect().await;
    let refused = late.call("a_echo", json!({})).await;
    let error = "upstream `a` serves 64 clients, each in a session of its own; try again later";
    assert_eq!(refused["structuredContent"]["error"], error);
    assert_eq!(world.starts("a"), started);
    clients[7].close().await;
    clients[7].closed().await;
    let result = late.call("a_echo", json!({"x": 1})).await;
    assert_eq!(result["structuredContent"], json!({"x": 1}));
}

#[tokio::test]
async fn calls_that_wait_for_a_session_that_can_not_be_opened_all_fail_and_leave_none() {
    let site = Site::start(Manners::new(Dialect::Legacy, script())).await;
    let world = own(World::of([]).remote("a", &site.url()));
    let mut client = world.connect().await;
    site.fail("initialize", Fault::Status(500, "not now"));
    let params = json!({"name": "a_echo", "arguments": {}});
    let waiting = [
        client.begin("tools/call", params.clone()).await,
        client.begin("tools/call", params).await,
    ];
    for id in waiting {
        assert_eq!(client.answer(id).await["result"]["isError"], true);
    }
    client.call("a_echo", json!({})).await;
    // The shared one, the one that failed, and the client's own.
    assert_eq!(site.seen("initialize").len(), 3);
}

#[tokio::test]
async fn processes_of_single_clients_end_with_the_gateway() {
    let _quiet = crate::MACHINE.write().await;
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"a\"\nsession = \"per-client\"\n\
         command = \"{}\"\n",
        crate::fake("echo --ignore-eof")
    );
    let folder = Folder::new(crate::TOOLMAN).with_tools_toml(&text);
    let mut toolman = folder.start().await;
    let before = descendants(toolman.pid).len();
    toolman.client.call("a_echo", json!({})).await;
    let all = descendants(toolman.pid);
    assert_eq!(all.len(), 2 * before);
    toolman.client.close().await;
    assert!(toolman.ended().await.success());
    assert_eq!(survivors(&all, std::time::Duration::from_secs(1)), [0; 0]);
}

#[tokio::test(start_paused = true)]
async fn private_server_is_told_what_its_client_can_be_asked_for_and_a_shared_one_everything() {
    let tools =
        || Script { capabilities: Some(json!({"tools": {}})), ..Script::with_tools(["client"]) };
    let plan = World::of([("shared", tools()), ("own", tools())]);
    let world = own(plan);
    for declared in [json!({}), json!({"roots": {}, "elicitation": {"form": {}, "url": {}}})] {
        let mut client = world.connect_raw();
        client.initialize(declared.clone()).await;
        let mut told = async |tool: &str| -> serde_json::Value {
            let result = client.call(tool, json!({})).await;
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
        };
        assert_eq!(told("own_client").await, declared);
        let everything = json!({
            "roots": {"listChanged": true},
            "sampling": {"tools": {}, "context": {}},
            "elicitation": {"form": {}, "url": {}},
        });
        assert_eq!(told("shared_client").await, everything);
    }
}
