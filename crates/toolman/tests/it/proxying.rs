//! Calls, reads and prompts on their way to an upstream and back.

use mcp::names::UriStyle;
use serde_json::{Value, json};
use testkit::fake::{Script, prompt, resource, template};
use testkit::world::World;

fn shop() -> Script {
    Script {
        resources: vec![resource("item://list"), resource("item://missing")],
        templates: vec![template("item://{id}/text")],
        prompts: vec![prompt("ask")],
        ..Script::with_tools(["echo", "error", "fail", "off"])
    }
}

fn open_shop() -> World {
    World::of([("shop", shop())]).active(&["shop_e*", "shop_fail", "shop_item*"]).start()
}

#[tokio::test(start_paused = true)]
async fn call_reaches_its_upstream_and_comes_back_as_it_was_said() {
    // TA-42, TA-45: integers beyond 2^53, 1e400, key order and unknown members survive
    let mut client = open_shop().connect().await;
    let arguments = r#"{"z":9007199254740993,"a":1e400,"s":"é\u0041","deep":{"name":"shop_echo"}}"#;
    let meta = r#"{"vendor/x":[1.10]}"#;
    client
        .send(&format!(
            r#"{{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{{"_meta":{meta},"arguments":{arguments},"name":"shop_echo","x-unknown":null}}}}"#
        ))
        .await;
    assert_eq!(
        client.answer_line(77).await,
        format!(
            r#"{{"jsonrpc":"2.0","id":77,"result":{{"x-first":1.10,"content":[{{"type":"text","text":"ok","x":[]}}],"structuredContent":{arguments},"_meta":{meta},"x-last":12345678901234567890}}}}"#
        )
    );
}

#[tokio::test(start_paused = true)]
async fn surface_filter_shows_a_server_as_it_is() {
    let script = Script {
        instructions: Some("use with care".into()),
        ..Script::with_tools(["echo", "toolman_activate"])
    };
    let world = World::of([("", script)]).filter().start();
    let mut client = world.connect_raw();
    let introduction = client.initialize(json!({})).await;
    assert_eq!(introduction["instructions"], "use with care");
    assert_eq!(client.tool_names().await, ["echo", "toolman_activate"]);
    assert_eq!(client.call("echo", json!({})).await["content"][0]["text"], "ok");
    let unknown = client.call("nothing_like_it", json!({})).await;
    assert_eq!(
        unknown["structuredContent"]["error"],
        "no tool is named `nothing_like_it`; see `tools/list`"
    );
}

#[tokio::test(start_paused = true)]
async fn capabilities_are_those_of_the_upstreams() {
    let script = Script {
        capabilities: Some(json!({"tools": {}, "experimental": {"x": {"y": 1}}})),
        ..Script::with_tools(["echo"])
    };
    let world = World::of([("", script)]).filter().start();
    assert_eq!(
        world.connect_raw().initialize(json!({})).await["capabilities"],
        json!({"tools": {"listChanged": true}, "experimental": {"x": {"y": 1}}})
    );
}

#[tokio::test(start_paused = true)]
async fn definitions_keep_everything_but_their_name() {
    // TA-40
    let mut client = open_shop().connect().await;
    let answer = client.request("tools/list", json!({})).await;
    let mut expected = testkit::fake::tool("echo");
    expected["name"] = json!("shop_echo");
    assert_eq!(answer["result"]["tools"][1], expected);
}

#[tokio::test(start_paused = true)]
async fn every_spelling_of_a_name_is_understood() {
    let mut client = open_shop().connect().await;
    for name in ["shop_echo", "shop:echo", "shop.echo", "shop__echo", "echo"] {
        assert_eq!(client.call(name, json!({})).await["content"][0]["text"], "ok", "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_spelling_gets_around_the_selection() {
    let mut client = open_shop().connect().await;
    for name in ["shop_off", "shop:off", "shop.off", "shop__off", "off"] {
        let result = client.call(name, json!({})).await;
        assert_eq!(result["isError"], true, "{name}");
        let error = result["structuredContent"]["error"].as_str().unwrap();
        assert_eq!(
            error,
            "tool `shop_off` is not active; pass it in `tools_on` of `toolman_activate` first"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn inactive_and_unknown_tools_are_refused_with_guidance() {
    // TA-43, TA-44, TA-64, TA-65
    let mut client = open_shop().connect().await;
    let result = client.call("shop_ecko", json!({})).await;
    assert_eq!(result["isError"], true);
    let envelope: Value =
        serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(
        envelope,
        json!({
            "success": false, "result": null,
            "error": "no tool is named `shop_ecko`; did you mean `shop_echo`?",
        })
    );
}

#[tokio::test(start_paused = true)]
async fn upstream_errors_pass_unwrapped_and_are_no_crash() {
    // TA-62, TA-63, TA-66
    let mut client = open_shop().connect().await;
    let id = client.begin("tools/call", json!({"name": "shop_error"})).await;
    assert_eq!(
        client.answer_line(id).await,
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32050,"message":"no","data":{{"big":12345678901234567890}}}}}}"#
        )
    );
    let failed = client.call("shop_fail", json!({})).await;
    assert_eq!(failed["isError"], true);
    assert_eq!(failed["content"][0]["text"], "it failed");
    let id = client.begin("resources/read", json!({"uri": "shop_item://missing"})).await;
    assert_eq!(
        client.answer_line(id).await,
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32002,"message":"not there","data":{{"uri":"kept"}}}}}}"#
        )
    );
    assert_eq!(client.tool_names().await.len(), 4);
}

#[tokio::test(start_paused = true)]
async fn resources_and_expanded_templates_are_read() {
    // TA-46, TA-48, TA-49
    let mut client = open_shop().connect().await;
    for (asked, expected) in [
        ("shop_item://list", "text of item://list"),
        ("shop+item://list", "text of item://list"),
        ("item://list", "text of item://list"),
        ("shop_item://7/text", "text of item://7/text"),
        ("shop+item://7/text", "text of item://7/text"),
    ] {
        let answer = client.request("resources/read", json!({"uri": asked})).await;
        assert_eq!(answer["result"]["contents"][0]["text"], expected, "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn rfc_style_shows_legal_uris() {
    let world = World::of([("my_shop", shop())])
        .active(&["my_shop_item*"])
        .uri_style(UriStyle::Rfc)
        .start();
    let mut client = world.connect().await;
    let uris = client.names("resources/list", "resources", "uri").await;
    assert_eq!(uris, ["my-shop+item://list", "my-shop+item://missing"]);
    client.activate(&[], &[], &[], &["my_shop_item://list"]).await;
    let uris = client.names("resources/list", "resources", "uri").await;
    assert_eq!(uris, ["my-shop+item://missing"]);
}

#[tokio::test(start_paused = true)]
async fn inactive_and_unknown_resources_are_refused_with_guidance() {
    // TA-50, TA-51
    let world = World::of([("shop", shop())]).active(&["shop_item://{id}/text"]).start();
    let mut client = world.connect().await;
    for (uri, words) in [
        (
            "shop_item://list",
            "resource `shop_item://list` is not active; pass it in `resources_on`",
        ),
        ("shop_item://lst", "did you mean `shop_item://list`"),
        ("", "no resource is named ``"),
        ("shop_file:///../../etc/passwd", "no resource is named"),
    ] {
        let answer = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(answer["error"]["code"], -32002);
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
        let data = &answer["error"]["data"];
        assert_eq!((&data["success"], &data["result"]), (&json!(false), &json!(null)));
        assert_eq!(data["error"], answer["error"]["message"]);
    }
    client.activate(&[], &[], &[], &["shop_item://{id}/text"]).await;
    let answer = client.request("resources/read", json!({"uri": "shop_item://7/text"})).await;
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("`shop_item://{id}/text` is not")
    );
}

#[tokio::test(start_paused = true)]
async fn subscriptions_are_not_offered() {
    // TA-52
    let mut client = open_shop().connect_raw();
    let hello = client.initialize(json!({})).await;
    assert_eq!(hello["capabilities"]["resources"], json!({"listChanged": true}));
    let answer = client.request("resources/subscribe", json!({"uri": "shop_item://list"})).await;
    assert_eq!(answer["error"]["code"], -32601);
}

#[tokio::test(start_paused = true)]
async fn prompts_are_always_active() {
    // TA-05, TA-53, TA-54, TA-55
    let world = World::of([
        ("shop", shop()),
        ("", Script { prompts: vec![prompt("bare")], ..Script::default() }),
    ])
    .start();
    let mut client = world.connect().await;
    assert_eq!(client.names("prompts/list", "prompts", "name").await, ["bare", "shop_ask"]);
    let params = json!({"name": "shop_ask", "arguments": {"topic": "x"}});
    let answer = client.request("prompts/get", params).await;
    let got = answer["result"]["description"].as_str().unwrap();
    assert!(got.contains(r#"\"name\":\"ask\""#), "{got}");
    let answer = client.request("prompts/get", json!({"name": "shop_aks"})).await;
    assert_eq!(answer["error"]["code"], -32602);
    assert_eq!(
        answer["error"]["message"],
        "no prompt is named `shop_aks`; did you mean `shop_ask`?"
    );
}

#[tokio::test(start_paused = true)]
async fn completions_are_asked_of_the_right_upstream() {
    let mut client = open_shop().connect().await;
    let params =
        |reference: Value| json!({"ref": reference, "argument": {"name": "topic", "value": "x"}});
    for (reference, expected) in [
        (json!({"type": "ref/prompt", "name": "shop_ask"}), r#""name":"ask""#),
        (
            json!({"type": "ref/resource", "uri": "shop_item://{id}/text"}),
            r#""uri":"item://{id}/text""#,
        ),
    ] {
        let answer = client.request("completion/complete", params(reference)).await;
        let asked = answer["result"]["completion"]["values"][0].as_str().unwrap();
        assert!(asked.contains(expected), "{asked}");
    }
}

#[tokio::test(start_paused = true)]
async fn slow_call_delays_no_other() {
    let world = World::of([("a", Script::with_tools(["slow", "echo"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    let slow =
        client.begin("tools/call", json!({"name": "a_slow", "arguments": {"ms": 5_000}})).await;
    let before = tokio::time::Instant::now();
    client.call("a_echo", json!({})).await;
    assert!(before.elapsed().as_millis() < 5_000);
    assert_eq!(client.answer(slow).await["result"]["content"][0]["text"], "ok");
}

#[tokio::test(start_paused = true)]
async fn ten_thousand_calls_at_once_are_all_answered() {
    let world = World::of([("a", Script::with_tools(["echo"]))]).active(&["*"]).start();
    let mut client = world.connect().await;
    let mut ids = Vec::new();
    for n in 0..10_000 {
        ids.push(
            client.begin("tools/call", json!({"name": "a_echo", "arguments": {"n": n}})).await,
        );
    }
    for (n, id) in ids.into_iter().enumerate() {
        assert_eq!(client.answer(id).await["result"]["structuredContent"], json!({"n": n}));
    }
}
