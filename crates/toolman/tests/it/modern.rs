//! Requests that stand alone: the modern era, over stdio and over HTTP, before legacy upstreams.

use serde_json::{Value, json};
use testkit::client::alone;
use testkit::fake::{Script, prompt, resource};
use testkit::http::{HttpAnswer, send};
use testkit::world::World;

use crate::folder;
use crate::up::Up;

fn shop() -> Script {
    Script {
        resources: vec![resource("item://list")],
        prompts: vec![prompt("ask")],
        ..Script::with_tools(["echo", "error", "fail", "grow", "stroll"])
    }
}

#[tokio::test(start_paused = true)]
async fn client_without_a_handshake_is_served_on_stdio() {
    let world = World::of([("shop", shop())]).active(&["shop_*"]).start();
    let mut client = world.connect_raw();
    let found = client.ask_alone("server/discover", json!({})).await["result"].clone();
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["supportedVersions"], json!(["2026-07-28"]));
    assert_eq!(found["capabilities"]["tools"], json!({"listChanged": true}));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "toolman");
    let list = client.ask_alone("tools/list", json!({})).await["result"].clone();
    assert_eq!((&list["ttlMs"], &list["cacheScope"]), (&json!(0), &json!("private")));
    assert_eq!(list["tools"][1]["name"], "shop_echo");
    let params = json!({"name": "shop_echo", "arguments": {"n": 1}, "_meta": {"traceparent": "t"}});
    let echo = client.ask_alone("tools/call", params).await["result"].clone();
    assert_eq!(echo["resultType"], "complete");
    assert_eq!(echo["structuredContent"], json!({"n": 1}));
    assert_eq!(echo["_meta"], json!({"traceparent": "t"}), "the upstream sees no envelope");
    let uri = json!({"uri": "shop_item://list"});
    let read = client.ask_alone("resources/read", uri).await["result"].clone();
    assert_eq!((&read["ttlMs"], &read["cacheScope"]), (&json!(0), &json!("private")));
    let prompt = client.ask_alone("prompts/get", json!({"name": "shop_ask"})).await;
    assert_eq!(prompt["result"]["resultType"], "complete");
    // A handshake is still possible afterwards, and both may go on side by side.
    assert_eq!(client.initialize(json!({})).await["protocolVersion"], "2025-11-25");
    assert!(client.request("tools/list", json!({})).await["result"]["ttlMs"].is_null());
    assert_eq!(client.ask_alone("tools/list", json!({})).await["result"]["ttlMs"], 0);
}

#[tokio::test(start_paused = true)]
async fn what_belongs_to_sessions_is_unknown_to_requests_that_stand_alone() {
    let world = World::of([("shop", shop())]).start();
    let mut client = world.connect_raw();
    for method in ["initialize", "ping", "logging/setLevel", "resources/subscribe", "no/such"] {
        let answer = client.ask_alone(method, json!({"uri": "x"})).await;
        assert_eq!(answer["error"]["code"], -32601, "{method}");
    }
    let unknown = json!({"_meta": {"io.modelcontextprotocol/protocolVersion": "v999.0.0"}});
    let error = client.ask_alone("tools/list", unknown).await["error"].clone();
    assert_eq!(error["code"], -32022);
    assert_eq!(error["data"], json!({"supported": ["2026-07-28"], "requested": "v999.0.0"}));
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28"});
    let error = client.request("tools/list", json!({"_meta": meta})).await["error"].clone();
    assert_eq!(error["code"], -32602);
    assert_eq!(
        error["message"],
        "`params._meta` can't be used: member `io.modelcontextprotocol/clientCapabilities` is missing"
    );
    let missing = client.ask_alone("resources/read", json!({"uri": "no://such"})).await;
    assert_eq!(missing["error"]["code"], -32602);
    assert_eq!(missing["error"]["data"]["uri"], "no://such");
}

#[tokio::test(start_paused = true)]
async fn listener_hears_of_what_it_asked_for() {
    let world = World::of([("shop", shop())]).active(&["shop_*"]).start();
    let mut client = world.connect_raw();
    let wanted = json!({"notifications": {"toolsListChanged": true, "promptsListChanged": false,
        "resourceSubscriptions": ["shop_item://list"]}});
    let listen = client.begin_alone("subscriptions/listen", wanted).await;
    let first = client.next("notifications/subscriptions/acknowledged").await;
    let subscription = json!({"io.modelcontextprotocol/subscriptionId": listen});
    assert_eq!(first["params"]["_meta"], subscription);
    assert_eq!(
        first["params"]["notifications"],
        json!({"toolsListChanged": true}),
        "what is honoured"
    );
    client.ask_alone("tools/call", json!({"name": "shop_grow"})).await;
    let changed = client.next("notifications/tools/list_changed").await;
    assert_eq!(changed["params"]["_meta"], subscription);
    // The selection of a client that keeps none of its own is the process's.
    client
        .ask_alone(
            "tools/call",
            json!({"name": "toolman_activate", "arguments": {"tools_on": [],
        "tools_off": ["shop_echo"], "resources_on": [], "resources_off": []}}),
        )
        .await;
    client.next("notifications/tools/list_changed").await;
    assert_eq!(client.count("notifications/resources/list_changed"), 0);
    let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": listen}});
    client.send(&cancel.to_string()).await;
    client.ask_alone("tools/call", json!({"name": "shop_grow"})).await;
    client.ask_alone("tools/list", json!({})).await;
    assert_eq!(client.count("notifications/tools/list_changed"), 0, "it no longer listens");
    let wrong = json!({"notifications": {"toolsListChanged": 1}});
    let error = client.ask_alone("subscriptions/listen", wrong).await["error"].clone();
    assert_eq!(error["code"], -32602);
}

#[tokio::test(start_paused = true)]
async fn logs_come_only_to_requests_that_ask_for_them() {
    let world = World::of([("a", Script::with_tools(["log", "ask"]))]).active(&["*"]).start();
    let mut client = world.connect_raw();
    client.ask_alone("tools/call", json!({"name": "a_log"})).await;
    assert_eq!(client.count("notifications/message"), 0);
    let meta = json!({"io.modelcontextprotocol/logLevel": "info"});
    client.ask_alone("tools/call", json!({"name": "a_log", "_meta": meta})).await;
    client.next("notifications/message").await;
    // What an upstream asks can't be carried yet: it is refused, and the call goes on.
    let arguments = json!({"method": "sampling/createMessage", "params": {}});
    let params = json!({"name": "a_ask", "arguments": arguments});
    let asked = client.ask_alone("tools/call", params).await;
    assert_eq!(client.count("sampling/createMessage"), 0);
    assert!(asked.to_string().contains("no client could answer"), "{asked}");
}

async fn post(up: &Up, headers: &[(&str, &str)], body: &Value) -> HttpAnswer {
    let bearer = format!("Bearer {}", up.token);
    let mut all = vec![("Authorization", bearer.as_str())];
    all.extend(headers);
    send(&up.address, "POST", "/mcp", &all, &body.to_string()).await
}

fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": alone(params)})
}

/// Headers and body of a request, the status of its answer, and the error in it.
type Case<'a> = (&'a [(&'a str, &'a str)], &'a Value, u16, i64);

const MODERN: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

#[tokio::test]
async fn headers_must_say_what_the_message_says() {
    // H20, H22, J21, J25
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let up = Up::start(&folder).await;
    let list = request("tools/list", json!({}));
    let call = request("tools/call", json!({"name": "a_echo"}));
    let unknown = {
        let meta = json!({"io.modelcontextprotocol/protocolVersion": "v999.0.0"});
        request("tools/list", json!({"_meta": meta}))
    };
    let method = |method| ("Mcp-Method", method);
    let name = |name| ("Mcp-Name", name);
    let cases: &[Case] = &[
        (&[MODERN, method("tools/list")], &list, 200, 0),
        (&[MODERN, ("mcp-method", "  tools/list  ")], &list, 200, 0),
        (&[MODERN], &list, 400, -32020),
        (&[MODERN, method("TOOLS/LIST")], &list, 400, -32020),
        (&[MODERN, method("tools/list"), method("tools/list")], &list, 400, -32020),
        (&[method("tools/list")], &list, 400, -32020),
        (&[("MCP-Protocol-Version", "2025-11-25"), method("tools/list")], &list, 400, -32020),
        (&[MODERN, method("tools/list")], &unknown, 400, -32020),
        (&[("MCP-Protocol-Version", "v999.0.0"), method("tools/list")], &unknown, 400, -32022),
        (&[MODERN, method("tools/call"), name("a_echo")], &call, 200, 0),
        (&[MODERN, method("tools/call"), name("=?base64?YV9lY2hv?=")], &call, 200, 0),
        (&[MODERN, method("tools/call"), name("=?base64?YV9l!?=")], &call, 400, -32020),
        (&[MODERN, method("tools/call"), name("A_ECHO")], &call, 400, -32020),
        (&[MODERN, method("tools/call")], &call, 400, -32020),
    ];
    for (headers, body, status, code) in cases {
        let answer = post(&up, headers, body).await;
        assert_eq!(answer.status, *status, "{headers:?} {}", answer.body);
        assert_eq!(answer.json()["id"], 5);
        assert_eq!(answer.json()["error"]["code"].as_i64().unwrap_or(0), *code, "{headers:?}");
        assert!(answer.header("mcp-session-id").is_none());
    }
    let bare = json!({"jsonrpc": "2.0", "id": 5, "method": "tools/list", "params": {}});
    let answer = post(&up, &[MODERN, method("tools/list")], &bare).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (400, &json!(-32602)));
    for gone in ["initialize", "ping", "no/such"] {
        let answer = post(&up, &[MODERN, method(gone)], &request(gone, json!({}))).await;
        assert_eq!((answer.status, &answer.json()["error"]["code"]), (404, &json!(-32601)));
    }
    let notice = json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {}});
    let answer = post(&up, &[MODERN], &notice).await;
    assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    let bearer = format!("Bearer {}", up.token);
    for verb in ["GET", "DELETE"] {
        let headers = [("Authorization", bearer.as_str()), MODERN];
        assert_eq!(send(&up.address, verb, "/mcp", &headers, "").await.status, 405);
    }
}

#[tokio::test]
async fn answer_streams_when_there_is_something_to_tell() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "stroll echo")]);
    let up = Up::start(&folder).await;
    let stroll =
        request("tools/call", json!({"name": "a_stroll", "_meta": {"progressToken": "p"}}));
    let headers = [MODERN, ("Mcp-Method", "tools/call"), ("Mcp-Name", "a_stroll")];
    let answer = post(&up, &headers, &stroll).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events = answer.events();
    assert_eq!(events[0]["params"]["progressToken"], "p");
    assert_eq!(events.last().unwrap()["result"]["resultType"], "complete");
    let headers = [MODERN, ("Mcp-Method", "tools/call"), ("Mcp-Name", "a_echo")];
    let echo = post(&up, &headers, &request("tools/call", json!({"name": "a_echo"}))).await;
    assert_eq!(echo.header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn client_that_leaves_cancels_its_request() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "plod never seen")]);
    let up = Up::start(&folder).await;
    for name in ["a_never", "a_plod"] {
        let headers = [MODERN, ("Mcp-Method", "tools/call"), ("Mcp-Name", name)];
        let body = request("tools/call", json!({"name": name, "_meta": {"progressToken": 1}}));
        let soon = std::time::Duration::from_millis(500);
        let left = tokio::time::timeout(soon, post(&up, &headers, &body)).await;
        assert!(left.is_err(), "it is still under way");
    }
    let headers = [MODERN, ("Mcp-Method", "tools/call"), ("Mcp-Name", "a_seen")];
    let count = async || {
        let seen = post(&up, &headers, &request("tools/call", json!({"name": "a_seen"}))).await;
        seen.body.matches("notifications/cancelled").count()
    };
    let both = async { while count().await < 2 {} };
    tokio::time::timeout(testkit::client::PATIENCE, both).await.expect("both are cancelled");
}

#[tokio::test]
async fn error_keeps_its_status_where_streams_are_preferred() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let up = Up::start(&folder).await;
    let streams = ("Accept", "text/event-stream, application/json");
    let headers = [MODERN, streams, ("Mcp-Method", "no/such")];
    let answer = post(&up, &headers, &request("no/such", json!({}))).await;
    assert_eq!((answer.status, answer.header("content-type")), (404, Some("application/json")));
    let headers = [MODERN, streams, ("Mcp-Method", "tools/list")];
    let answer = post(&up, &headers, &request("tools/list", json!({}))).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    assert_eq!(answer.events()[0]["result"]["resultType"], "complete");
}

#[tokio::test]
async fn stream_of_changes_ends_in_good_order_with_the_gateway() {
    let folder = folder("", &[("a", "echo")]);
    let service = crate::http_limits::Service::start(&folder, &[]).await;
    let body =
        request("subscriptions/listen", json!({"notifications": {"toolsListChanged": true}}));
    let listening = {
        let (address, body) = (service.address.clone(), body.to_string());
        tokio::spawn(async move {
            let bearer = format!("Bearer {}", crate::http_limits::TOKEN);
            let headers =
                [MODERN, ("Mcp-Method", "subscriptions/listen"), ("Authorization", &*bearer)];
            send(&address, "POST", "/mcp", &headers, &body).await
        })
    };
    service.wait_for("toolman_requests_under_way", 1).await;
    testkit::processes::kill("-TERM", service.pid);
    let answer = tokio::time::timeout(testkit::client::PATIENCE, listening).await.unwrap().unwrap();
    let events = answer.events();
    assert_eq!(events[0]["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(events.last().unwrap()["result"]["resultType"], "complete", "{}", answer.body);
}

#[tokio::test]
async fn first_request_of_a_client_sees_what_has_started() {
    // A race, lost in most starts before the views were handed out first; so, several of them.
    let folder = folder("surface = \"filter\"", &[("a", "echo")]);
    for _ in 0..8 {
        let mut toolman = folder.start_raw();
        let list = toolman.client.ask_alone("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"][0]["name"], "a_echo", "{list}");
    }
}

#[tokio::test]
async fn stream_of_changes_on_stdio_ends_with_a_result_on_a_signal() {
    let folder = folder("", &[("a", "echo")]);
    let mut toolman = folder.start_raw();
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let listen = toolman.client.begin_alone("subscriptions/listen", wanted).await;
    toolman.client.next("notifications/subscriptions/acknowledged").await;
    testkit::processes::kill("-TERM", toolman.pid);
    assert_eq!(toolman.client.answer(listen).await["result"]["resultType"], "complete");
    assert!(toolman.ended().await.success());
}
