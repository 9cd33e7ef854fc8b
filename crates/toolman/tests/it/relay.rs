//! What goes back and forth while a call is under way: progress, questions, cancellation, logs.

use std::time::Duration;

use serde_json::json;
use testkit::client::LineClient;
use testkit::fake::Script;
use testkit::world::{Plan, World};
use upstream::limits::CRASHES_MAX;
use upstream::supervisor::{Phase, SessionChoice};

fn plan() -> Plan {
    let tools = ["progress", "ask", "never", "seen", "log", "echo", "slow"];
    World::of([("a", Script::with_tools(tools))]).active(&["*"])
}

fn world() -> World {
    plan().start()
}

async fn able_client(world: &World) -> LineClient {
    let mut client = world.connect_raw();
    client.initialize(json!({"roots": {}, "sampling": {}, "elicitation": {}})).await;
    client
}

#[tokio::test(start_paused = true)]
async fn progress_comes_under_the_clients_own_token_before_the_answer() {
    let world = world();
    let mut client = world.connect().await;
    for token in [json!("abc"), json!(7)] {
        let params = json!({"name": "a_progress", "_meta": {"progressToken": token}});
        let id = client.begin("tools/call", params).await;
        for step in 1..=3 {
            let progress = client.next("notifications/progress").await;
            assert_eq!(
                progress["params"],
                json!({"progressToken": token, "progress": step, "total": 3, "x-vendor": "kept"})
            );
        }
        client.answer(id).await;
    }
}

#[tokio::test(start_paused = true)]
async fn silent_call_is_given_up_and_one_that_reports_progress_is_not() {
    let world = World::of([("a", Script::with_tools(["plod", "never"]))])
        .active(&["*"])
        .call_timeout(Duration::from_secs(5))
        .start();
    let mut client = world.connect().await;
    let params = json!({"name": "a_plod", "_meta": {"progressToken": 1}});
    let started = tokio::time::Instant::now();
    let plodded = client.request("tools/call", params).await;
    assert_eq!(plodded["result"]["content"][0]["text"], "ok");
    assert_eq!(started.elapsed().as_secs(), 16);
    let result = client.call("a_never", json!({})).await;
    assert_eq!(
        result["structuredContent"]["error"],
        "upstream `a` was silent for 5s; see its log, or raise `timeout`"
    );
    assert_eq!(result["isError"], true);
}

#[tokio::test(start_paused = true)]
async fn upstream_questions_reach_the_client_whose_call_is_under_way() {
    let world = world();
    let mut bystander = able_client(&world).await;
    let mut client = able_client(&world).await;
    for method in ["roots/list", "sampling/createMessage", "elicitation/create"] {
        let question = json!({"method": method, "params": {"x-unknown": 1}});
        let id = client.begin("tools/call", json!({"name": "a_ask", "arguments": question})).await;
        let asked = client.next(method).await;
        assert_eq!(asked["params"], json!({"x-unknown": 1}));
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"the": method}});
        client.send(&answer.to_string()).await;
        assert_eq!(client.answer(id).await["result"]["structuredContent"], json!({"the": method}));
        bystander.request("ping", json!({})).await;
        assert_eq!(bystander.count(method), 0);
    }
}

#[tokio::test(start_paused = true)]
async fn progress_of_the_client_reaches_the_upstream_under_its_own_token() {
    let world = world();
    let mut client = able_client(&world).await;
    let question = json!({"method": "sampling/createMessage",
        "params": {"_meta": {"progressToken": "theirs"}}});
    let id = client.begin("tools/call", json!({"name": "a_ask", "arguments": question})).await;
    let asked = client.next("sampling/createMessage").await;
    let token = &asked["params"]["_meta"]["progressToken"];
    let progress = json!({"jsonrpc": "2.0", "method": "notifications/progress",
        "params": {"progressToken": token, "progress": 1, "x-vendor": 2}});
    client.send(&progress.to_string()).await;
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {}});
    client.send(&answer.to_string()).await;
    client.answer(id).await;
    let seen = client.call("a_seen", json!({})).await["structuredContent"]["seen"].clone();
    let expected = r#"notifications/progress {"progressToken":"theirs","progress":1,"x-vendor":2}"#;
    assert!(seen.as_array().unwrap().contains(&json!(expected)), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn question_that_the_client_can_not_answer_is_refused_for_it() {
    let mut client = world().connect().await;
    let result = client.call("a_ask", json!({"method": "sampling/createMessage"})).await;
    assert_eq!(
        result["structuredContent"]["refused"],
        json!({"code": -32601, "message": "no client could answer `sampling/createMessage`"})
    );
}

#[tokio::test(start_paused = true)]
async fn ping_of_an_upstream_is_answered_by_us() {
    let mut client = world().connect().await;
    let result = client.call("a_ask", json!({"method": "ping"})).await;
    assert_eq!(result["structuredContent"], json!({}));
    assert_eq!(client.count("ping"), 0);
}

#[tokio::test(start_paused = true)]
async fn question_that_is_withdrawn_is_withdrawn_from_the_client() {
    let world = world();
    let mut client = able_client(&world).await;
    let question = json!({"method": "elicitation/create", "params": {}, "cancel": true});
    let id = client.begin("tools/call", json!({"name": "a_ask", "arguments": question})).await;
    let asked = client.next("elicitation/create").await;
    let withdrawn = client.next("notifications/cancelled").await;
    assert_eq!(withdrawn["params"]["requestId"], asked["id"]);
    client.answer(id).await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_call_is_cancelled_at_the_upstream_and_not_answered() {
    let mut client = world().connect().await;
    let id = client.begin("tools/call", json!({"name": "a_never"})).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    client.send(&cancel.to_string()).await;
    client.request("ping", json!({})).await;
    let seen = client.call("a_seen", json!({})).await["structuredContent"]["seen"].clone();
    let cancelled = seen.as_array().unwrap().iter().filter(|s| s.to_string().contains("cancelled"));
    assert_eq!(cancelled.count(), 1);
    // The id is free again, and its answer was never sent.
    client.send(&format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#)).await;
    assert_eq!(client.answer(id).await["result"], json!({}));
}

#[tokio::test(start_paused = true)]
async fn call_of_a_client_that_leaves_is_cancelled_at_the_upstream() {
    let world = plan().tuned(|settings| settings.session = SessionChoice::Shared).start();
    let mut leaving = world.connect().await;
    leaving.begin("tools/call", json!({"name": "a_never"})).await;
    leaving.close().await;
    leaving.closed().await;
    let mut client = world.connect().await;
    let seen = client.call("a_seen", json!({})).await["structuredContent"]["seen"].clone();
    assert!(seen.to_string().contains("notifications/cancelled"), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn log_messages_of_a_call_reach_its_client() {
    let mut client = world().connect().await;
    client.call("a_log", json!({})).await;
    let message = client.next("notifications/message").await;
    assert_eq!(message["params"], json!({"level": "info", "data": "hello", "x-vendor": 1}));
}

#[tokio::test(start_paused = true)]
async fn log_message_of_a_modern_call_goes_on_no_other_calls_stream() {
    let world = world();
    let mut client = world.connect_raw();
    let params = |tool: &str, level: Option<&str>| {
        let mut meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        if let Some(level) = level {
            meta["io.modelcontextprotocol/logLevel"] = json!(level);
        }
        json!({"name": tool, "arguments": {"ms": 50}, "_meta": meta})
    };
    let logging = client.begin("tools/call", params("a_log", None)).await;
    client.begin("tools/call", params("a_never", Some("debug"))).await;
    client.answer(logging).await;
    assert_eq!(client.count("notifications/message"), 0);
}

#[tokio::test(start_paused = true)]
async fn log_level_is_passed_on() {
    let mut client = world().connect().await;
    let answer = client.request("logging/setLevel", json!({"level": "debug"})).await;
    assert_eq!(answer["result"], json!({}));
    client.call("a_echo", json!({})).await;
    let seen = client.call("a_seen", json!({})).await["structuredContent"]["seen"].clone();
    let expected = json!(r#"logging/setLevel {"level":"debug"}"#);
    assert!(seen.as_array().unwrap().contains(&expected), "{seen}");
}

#[tokio::test(start_paused = true)]
async fn question_that_nobody_is_asked_gives_the_call_no_more_time() {
    let world = World::of([("a", Script::with_tools(["ask"]))])
        .active(&["*"])
        .call_timeout(Duration::from_secs(5))
        .start();
    let mut client = world.connect().await;
    let started = tokio::time::Instant::now();
    let question = json!({"method": "elicitation/create", "then": "never"});
    assert_eq!(client.call("a_ask", question).await["isError"], true);
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn person_who_is_asked_may_take_longer_than_a_call() {
    let world = World::of([("a", Script::with_tools(["ask"]))])
        .active(&["*"])
        .call_timeout(Duration::from_secs(5))
        .start();
    let mut client = able_client(&world).await;
    let question = json!({"method": "elicitation/create", "then": "never"});
    let id = client.begin("tools/call", json!({"name": "a_ask", "arguments": question})).await;
    let asked = client.next("elicitation/create").await;
    let started = tokio::time::Instant::now();
    tokio::time::sleep(Duration::from_mins(1)).await;
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}});
    client.send(&answer.to_string()).await;
    assert_eq!(client.answer(id).await["result"]["isError"], true, "then it is silent again");
    assert_eq!(started.elapsed().as_secs(), 65);
}

#[tokio::test(start_paused = true)]
async fn person_who_has_answered_one_question_may_take_longer_for_another() {
    let world = World::of([("a", Script::with_tools(["ask"]))])
        .active(&["*"])
        .call_timeout(Duration::from_secs(5))
        .start();
    let mut client = able_client(&world).await;
    let question = json!({"name": "a_ask", "arguments": {"method": "elicitation/create"}});
    let mut calls = Vec::new();
    let mut asked = Vec::new();
    for _ in 0..2 {
        calls.push(client.begin("tools/call", question.clone()).await);
        asked.push(client.next("elicitation/create").await["id"].clone());
    }
    for (call, asked) in calls.into_iter().zip(asked) {
        tokio::time::sleep(Duration::from_mins(1)).await;
        let answer = json!({"jsonrpc": "2.0", "id": asked, "result": {"action": "accept"}});
        client.send(&answer.to_string()).await;
        let result = client.answer(call).await["result"].clone();
        assert_eq!(result["structuredContent"], json!({"action": "accept"}));
    }
}

#[tokio::test(start_paused = true)]
async fn question_that_is_withdrawn_gives_the_call_no_more_time() {
    let world = World::of([("a", Script::with_tools(["ask"]))])
        .active(&["*"])
        .call_timeout(Duration::from_secs(5))
        .start();
    let mut client = able_client(&world).await;
    let started = tokio::time::Instant::now();
    let question = json!({"method": "elicitation/create", "cancel": true, "then": "never"});
    assert_eq!(client.call("a_ask", question).await["isError"], true);
    assert_eq!(started.elapsed().as_secs(), 5);
}

#[tokio::test(start_paused = true)]
async fn change_is_not_lost_among_logs() {
    let world = World::of([("a", Script::with_tools(["chatter"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    client.call("a_chatter", json!({})).await;
    client.next("notifications/tools/list_changed").await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "a_chatter", "a_extra"]);
}

#[tokio::test(start_paused = true)]
async fn client_gets_logs_of_the_level_that_it_has_set() {
    let world = World::of([("a", Script::with_tools(["log", "echo"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    for (level, count) in [("error", 0), ("info", 1), ("warning", 1)] {
        client.request("logging/setLevel", json!({"level": level})).await;
        client.call("a_log", json!({})).await;
        client.call("a_echo", json!({})).await;
        assert_eq!(client.count("notifications/message"), count, "{level}");
    }
    let wrong = client.request("logging/setLevel", json!({"level": "loud"})).await;
    assert_eq!(wrong["error"]["code"], -32602);
    assert_eq!(
        wrong["error"]["message"],
        "the parameters of `logging/setLevel` can't be used: member `level` must be a level from `debug` to `emergency`"
    );
}

#[tokio::test(start_paused = true)]
async fn server_that_never_answers_well_and_crashes_is_parked() {
    let plan = World::of([("a", Script::with_tools(["nan"]))]).filter().restarting();
    let world = plan.start();
    let mut client = world.connect().await;
    for crash in 1..=CRASHES_MAX {
        assert_eq!(client.call("a_nan", json!({})).await["isError"], true);
        world.crash("a");
        client.next("notifications/tools/list_changed").await;
        if crash < CRASHES_MAX {
            client.next("notifications/tools/list_changed").await;
        }
    }
    let phase = world.gateway.upstreams().next().unwrap().1.status().phase;
    let Phase::Down { reason } = phase else { panic!("{phase:?}") };
    assert!(reason.contains("was parked after 5 failures in a row"), "{reason}");
}
