//! What a server asks or logs reaches the client that caused it, or nobody.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::LineClient;
use testkit::fake::Script;
use testkit::world::{Plan, World};
use tokio::time::sleep;
use upstream::limits::{AFTERMATH, APART_MAX};
use upstream::supervisor::SessionChoice;

const QUESTION: &str = "elicitation/create";

fn script() -> Script {
    Script::with_tools(["ask", "log", "slow", "seen", "echo"])
}

/// A server that does not say that it logs: what it asks tells that it speaks to clients.
fn plan() -> Plan {
    let capabilities = Some(json!({"tools": {}}));
    World::of([("a", Script { capabilities, ..script() })]).filter()
}

fn shared() -> World {
    plan().tuned(|settings| settings.session = SessionChoice::Shared).start()
}

async fn able_client(world: &World) -> LineClient {
    let mut client = world.connect_raw();
    client.initialize(json!({"elicitation": {}})).await;
    client
}

async fn begin(client: &mut LineClient, tool: &str, mut arguments: Value) -> u64 {
    if tool == "a_ask" {
        arguments["method"] = json!(QUESTION);
        arguments["params"] = json!({"message": "?"});
    }
    client.begin("tools/call", json!({"name": tool, "arguments": arguments})).await
}

async fn cancel(client: &mut LineClient, id: u64) {
    let params = json!({"requestId": id});
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params});
    client.send(&notice.to_string()).await;
}

/// What a call that asks comes to, with the question answered if it comes.
async fn outcome(client: &mut LineClient, id: u64, is_asked: bool) -> Value {
    if is_asked {
        let asked = client.next(QUESTION).await;
        let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}});
        client.send(&answer.to_string()).await;
    }
    client.answer(id).await["result"]["structuredContent"].clone()
}

#[tokio::test(start_paused = true)]
async fn question_of_a_call_that_was_given_up_is_shown_to_no_other_client() {
    for leaves in [false, true] {
        let world = plan().start();
        let (mut first, mut second) = (able_client(&world).await, able_client(&world).await);
        let asking = begin(&mut first, "a_ask", json!({"ms": 1000})).await;
        sleep(Duration::from_millis(400)).await;
        if leaves {
            first.close().await;
            first.closed().await;
        } else {
            cancel(&mut first, asking).await;
        }
        let busy = begin(&mut second, "a_slow", json!({"ms": 2000})).await;
        second.answer(busy).await;
        assert_eq!(second.count(QUESTION), 0, "leaves: {leaves}");
    }
}

#[tokio::test(start_paused = true)]
async fn question_of_a_call_that_timed_out_is_shown_to_no_other_client() {
    let world = plan().call_timeout(Duration::from_secs(5)).start();
    let (mut first, mut second) = (able_client(&world).await, able_client(&world).await);
    let asking = begin(&mut first, "a_ask", json!({"ms": 6000})).await;
    first.answer(asking).await;
    let busy = begin(&mut second, "a_slow", json!({"ms": 2000})).await;
    second.answer(busy).await;
    assert_eq!(second.count(QUESTION), 0);
}

#[tokio::test(start_paused = true)]
async fn what_a_server_asks_or_logs_after_its_answer_is_shown_to_no_other_client() {
    let world = plan().start();
    let (mut first, mut second) = (able_client(&world).await, able_client(&world).await);
    let late = json!({"answers_first": true, "ms": 1000});
    let log = begin(&mut first, "a_log", late.clone()).await;
    first.answer(log).await;
    let ask = begin(&mut first, "a_ask", late).await;
    first.answer(ask).await;
    let busy = begin(&mut second, "a_slow", json!({"ms": 2000})).await;
    second.answer(busy).await;
    assert_eq!(second.count("notifications/message"), 0);
    assert_eq!(second.count(QUESTION), 0);
    let upstream = world.gateway.upstreams().next().unwrap().1;
    assert_eq!(upstream.unattributed(), 2);
}

#[tokio::test(start_paused = true)]
async fn a_client_counts_no_longer_than_a_while_after_its_last_call() {
    let world = shared();
    let (mut first, mut second) = (able_client(&world).await, able_client(&world).await);
    let mut mute = world.connect().await;
    mute.call("a_echo", json!({})).await;
    let asked = begin(&mut second, "a_ask", json!({})).await;
    assert_eq!(outcome(&mut second, asked, true).await, json!({"action": "accept"}));
    first.call("a_echo", json!({})).await;
    let refused = begin(&mut second, "a_ask", json!({})).await;
    let refused = outcome(&mut second, refused, false).await;
    let message = "several clients share this server, so it is not known which of them \
                   `elicitation/create` is for; call the tool again";
    assert_eq!(refused["refused"], json!({"code": -32601, "message": message}));
    sleep(AFTERMATH).await;
    let asked = begin(&mut second, "a_ask", json!({})).await;
    assert_eq!(outcome(&mut second, asked, true).await, json!({"action": "accept"}));
    assert_eq!(first.count(QUESTION), 0);
    assert_eq!(world.starts("a"), 1);
}

#[tokio::test(start_paused = true)]
async fn clients_of_a_server_that_asks_get_processes_of_their_own() {
    let world = plan().start();
    let (mut first, mut second) = (able_client(&world).await, able_client(&world).await);
    let busy = begin(&mut first, "a_slow", json!({"ms": 2000})).await;
    let refused = begin(&mut second, "a_ask", json!({})).await;
    let refused = outcome(&mut second, refused, false).await;
    assert!(refused["refused"].is_object(), "nobody knows yet that it asks: {refused}");
    first.answer(busy).await;
    for _ in 0..2 {
        let busy = begin(&mut first, "a_slow", json!({"ms": 2000})).await;
        let asked = begin(&mut second, "a_ask", json!({})).await;
        assert_eq!(outcome(&mut second, asked, true).await, json!({"action": "accept"}));
        first.answer(busy).await;
        assert_eq!(first.count(QUESTION), 0);
        assert_eq!(world.starts("a"), 3, "one that is shared, and one for each of the two");
    }
}

#[tokio::test(start_paused = true)]
async fn first_client_of_a_server_that_asks_keeps_the_shared_process() {
    let world = plan().start();
    let mut first = able_client(&world).await;
    let asked = begin(&mut first, "a_ask", json!({})).await;
    assert_eq!(outcome(&mut first, asked, true).await, json!({"action": "accept"}));
    let mut second = able_client(&world).await;
    for (client, starts) in [(&mut first, 1), (&mut second, 2)] {
        let asked = begin(client, "a_ask", json!({"ms": 100})).await;
        assert_eq!(outcome(client, asked, true).await, json!({"action": "accept"}));
        assert_eq!(world.starts("a"), starts);
    }
}

#[tokio::test(start_paused = true)]
async fn processes_of_clients_are_bounded_and_what_can_not_be_attributed_beyond_is_refused() {
    let world = plan().start();
    let mut clients = Vec::new();
    // The first one has the shared process.
    for at in 0..=APART_MAX {
        let mut client = able_client(&world).await;
        let asked = begin(&mut client, "a_ask", json!({})).await;
        assert_eq!(outcome(&mut client, asked, true).await["action"], "accept", "{at}");
        clients.push(client);
    }
    let mut busy = Vec::new();
    for client in &mut clients {
        busy.push(begin(client, "a_slow", json!({"ms": 2000})).await);
    }
    let mut late = able_client(&world).await;
    let refused = begin(&mut late, "a_ask", json!({})).await;
    assert!(outcome(&mut late, refused, false).await["refused"].is_object());
    assert_eq!(world.starts("a") as usize, APART_MAX + 1);
    for (client, id) in clients.iter_mut().zip(busy) {
        client.answer(id).await;
    }
    let asked = begin(&mut late, "a_ask", json!({})).await;
    assert_eq!(outcome(&mut late, asked, true).await["action"], "accept", "an idle one gives way");
    assert_eq!(world.starts("a") as usize, APART_MAX + 2);
}

#[tokio::test(start_paused = true)]
async fn programs_with_one_token_are_told_apart_by_their_names() {
    let world = plan().start();
    let mut client = world.connect_raw();
    let call = |tool: &str, program: &str, arguments: Value| {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": {"name": program, "version": "1"},
            "io.modelcontextprotocol/logLevel": "debug",
        });
        json!({"name": tool, "arguments": arguments, "_meta": meta})
    };
    let late = json!({"answers_first": true, "ms": 1000});
    for (other, logs) in [("one", 1), ("two", 1)] {
        client.request("tools/call", call("a_log", "one", late.clone())).await;
        client.request("tools/call", call("a_slow", other, json!({"ms": 2000}))).await;
        assert_eq!(client.count("notifications/message"), logs, "{other}");
    }
}
