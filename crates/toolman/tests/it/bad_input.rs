//! Bad input from clients and upstreams: a clear error, and the next request works.

use serde_json::json;
use testkit::fake::Script;
use testkit::world::World;

use crate::folder;

fn world() -> World {
    World::of([("a", Script::with_tools(["echo"]))]).active(&["*"]).start()
}

#[tokio::test(start_paused = true)]
async fn frames_that_are_no_requests_are_answered_with_the_right_code() {
    let mut client = world().connect().await;
    let deep =
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"x","params":{}}}"#, "[".repeat(100_000));
    for (frame, code, words) in [
        ("{oops", -32700, "not valid JSON"),
        ("\u{feff}{}", -32700, "not valid JSON"),
        (deep.as_str(), -32700, "nested deeper than 128 levels"),
        (
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#,
            -32600,
            "batches are part of revision 2025-03-26 alone",
        ),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, "`id` must be"),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, "`id` must be"),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#, -32600, "`id` must be"),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600, "`jsonrpc` must be"),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"ping"}"#, -32600, "must be spelled `method`"),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","method":"x"}"#, -32600, "there twice"),
        (r#"{"jsonrpc":"2.0","id":1}"#, -32600, "`method` is missing"),
        ("7", -32600, "not a JSON object"),
    ] {
        client.send(frame).await;
        let error = client.next_error().await["error"].clone();
        assert_eq!(error["code"], code, "{frame:.80}");
        assert!(error["message"].as_str().unwrap().contains(words), "{error}");
        assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    }
}

#[tokio::test(start_paused = true)]
async fn requests_that_make_no_sense_are_answered_with_the_right_code() {
    let mut client = world().connect().await;
    for (method, params, code, words) in [
        ("no/such", json!({}), -32601, "method `no/such` is not known here"),
        ("tools/call", json!({}), -32602, "member `name` is missing"),
        ("tools/call", json!({"name": 7}), -32602, "member `name` must be a string"),
        ("tools/call", json!({"name": "a", "NAME": "b"}), -32602, "must be spelled `name`"),
        ("tools/call", json!([]), -32602, "not a JSON object"),
        ("tools/list", json!({"cursor": "7"}), -32602, "list again without `cursor`"),
        ("resources/read", json!({}), -32602, "member `uri` is missing"),
        ("prompts/get", json!({}), -32602, "member `name` is missing"),
        ("completion/complete", json!({}), -32602, "member `ref` is missing"),
        ("initialize", json!({"protocolVersion": "2025-11-25"}), -32600, "answered already"),
    ] {
        let answer = client.request(method, params).await;
        assert_eq!(answer["error"]["code"], code, "{method}: {answer}");
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
    assert_eq!(client.call("a_echo", json!({})).await["content"][0]["text"], "ok");
}

#[tokio::test(start_paused = true)]
async fn handshake_comes_first() {
    let mut client = world().connect_raw();
    let answer = client.request("tools/list", json!({})).await;
    assert_eq!(answer["error"]["message"], "`tools/list` must wait until `initialize` is answered");
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
    let answer = client.request("initialize", json!({})).await;
    assert_eq!(answer["error"]["code"], -32602);
    client.initialize(json!({})).await;
    assert_eq!(client.tool_names().await, ["toolman_activate", "a_echo"]);
}

#[tokio::test(start_paused = true)]
async fn unknown_revision_is_answered_with_ours() {
    for (wanted, expected) in [("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-11-25")] {
        let mut client = world().connect_raw();
        let params = json!({"protocolVersion": wanted, "capabilities": {}});
        let answer = client.request("initialize", params).await;
        assert_eq!(answer["result"]["protocolVersion"], expected);
    }
}

#[tokio::test(start_paused = true)]
async fn id_in_use_is_refused_and_the_first_is_still_answered() {
    let world = World::of([("a", Script::with_tools(["slow"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    let call = r#"{"jsonrpc":"2.0","id":"x","method":"tools/call","params":{"name":"a_slow","arguments":{"ms":1000}}}"#;
    client.send(call).await;
    client.send(call).await;
    let first = client.answer_text("x").await;
    assert!(first["error"]["message"].as_str().unwrap().contains("still under way"), "{first}");
    let second = client.answer_text("x").await;
    assert_eq!(second["result"]["content"][0]["text"], "ok");
}

#[tokio::test]
async fn misbehaving_upstream_harms_only_what_it_answers() {
    let tools = "garbage twice wrong_id never huge echo nan both text_id";
    let folder = folder("active_toolsets = [\"*\"]", &[("bad", tools), ("good", "echo")]);
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    let never = client.begin("tools/call", json!({"name": "bad_never"})).await;
    for tool in ["garbage", "twice", "wrong_id", "text_id"] {
        let result = client.call(&format!("bad_{tool}"), json!({"n": 1})).await;
        assert_eq!(result["structuredContent"], json!({"n": 1}), "{tool}");
    }
    for (tool, words) in [("nan", "not valid JSON"), ("both", "either `result` or `error`")] {
        let result = client.call(&format!("bad_{tool}"), json!({})).await;
        let error = result["structuredContent"]["error"].as_str().unwrap();
        assert!(
            error.starts_with("upstream `bad` sent a reply that is not valid JSON-RPC: "),
            "{error}"
        );
        assert!(error.contains(words), "{error}");
    }
    let huge = client.call("bad_huge", json!({})).await;
    assert_eq!(
        huge["structuredContent"]["error"],
        "upstream `bad` answered with more than 67108864 bytes on one line"
    );
    assert_eq!(client.call("bad_echo", json!({})).await["content"][0]["text"], "ok");
    assert_eq!(client.call("good_echo", json!({})).await["content"][0]["text"], "ok");
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": never}});
    client.send(&cancel.to_string()).await;
    assert_eq!(client.request("ping", json!({})).await["result"], json!({}));
}

#[tokio::test]
async fn oversized_message_of_a_client_is_refused() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let mut toolman = folder.start().await;
    let big = "x".repeat(5 * 1024 * 1024);
    let call = json!({"jsonrpc": "2.0", "id": "big", "method": "tools/call",
        "params": {"name": "a_echo", "arguments": {"big": big}}});
    toolman.client.send(&call.to_string()).await;
    let error = toolman.client.answer_text("big").await;
    assert_eq!(error["error"]["message"], "the message is over 4194304 bytes");
    assert_eq!(toolman.client.call("a_echo", json!({})).await["content"][0]["text"], "ok");
}
