//! Upstreams that are reached over HTTP, in both eras, and what becomes of them when they fail.

use std::sync::Arc;
use std::time::Duration;

use mcp::version::Era;
use serde_json::{Value, json};
use testkit::client::LineClient;
use testkit::fake::Script;
use testkit::lone::Lone;
use testkit::web::{Dialect, Fault, Manners, Site};
use testkit::world::World;
use upstream::launch::Launch;
use upstream::remote::Transport;
use upstream::supervisor::{EraChoice, Phase};

const TOOLS: [&str; 10] =
    ["echo", "progress", "ask", "never", "seen", "log", "grow", "error", "slow", "touch"];

fn manners(dialect: Dialect) -> Manners {
    Manners::new(dialect, Script::with_tools(TOOLS))
}

async fn site(dialect: Dialect, streams: bool) -> Site {
    Site::start(Manners { streams, ..manners(dialect) }).await
}

fn world(site: &Site) -> World {
    World::of([]).remote("a", &site.url()).filter().start()
}

async fn able_client(world: &World) -> LineClient {
    let mut client = world.connect_raw();
    client.initialize(json!({"roots": {}, "sampling": {}, "elicitation": {}})).await;
    client
}

fn params(tool: &str, arguments: &Value) -> Value {
    json!({"name": tool, "arguments": arguments})
}

async fn call(client: &mut LineClient, tool: &str, arguments: Value) -> Value {
    client.request("tools/call", params(tool, &arguments)).await["result"].clone()
}

/// The error that the model reads when a call of `a_echo` fails.
async fn failure(client: &mut LineClient) -> String {
    let result = call(client, "a_echo", json!({})).await;
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"].as_str().unwrap().to_owned()
}

/// Waits until the site has got a message with this method.
async fn until_seen(site: &Site, method: &str) {
    site.wait_until(|site| !site.seen(method).is_empty()).await;
}

fn phase(world: &World) -> Phase {
    world.gateway.upstreams().next().unwrap().1.status().phase
}

const DIALECTS: [(Dialect, &str); 4] = [
    (Dialect::Legacy, "2025-11-25"),
    (Dialect::Modern, "2026-07-28"),
    (Dialect::Both, "2026-07-28"),
    (Dialect::Sse, "2025-11-25"),
];

#[tokio::test]
async fn every_dialect_is_found_out_and_its_tools_are_listed_and_called() {
    // TA-69
    for (dialect, revision) in DIALECTS {
        for streams in [false, true] {
            let site = site(dialect, streams).await;
            let world = world(&site);
            let mut client = world.connect().await;
            assert_eq!(client.tool_names().await.len(), TOOLS.len(), "{dialect:?}");
            let result = call(&mut client, "a_echo", json!({"x": 1})).await;
            assert_eq!(result["structuredContent"], json!({"x": 1}), "{dialect:?} {streams}");
            let introduction = world.gateway.upstreams().next().unwrap().1.status().introduction;
            let introduction = introduction.unwrap();
            assert_eq!(introduction.revision.as_str(), revision);
            let info: Value =
                serde_json::from_slice(introduction.server_info.unwrap().as_bytes()).unwrap();
            assert_eq!(info["name"], "fake");
        }
    }
}

#[tokio::test]
async fn legacy_requests_carry_session_and_revision_and_nothing_of_the_client() {
    let site = site(Dialect::Legacy, false).await;
    let world = world(&site);
    let mut client = world.connect().await;
    call(&mut client, "a_echo", json!({})).await;
    let seen = site.seen("tools/call").remove(0);
    assert_eq!(seen.header("mcp-session-id"), Some("session-1"));
    assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"));
    assert_eq!(seen.header("accept"), Some("application/json, text/event-stream"));
    for name in ["cookie", "authorization", "origin", "mcp-method"] {
        assert_eq!(seen.header(name), None, "{name}");
    }
    assert_eq!(site.seen("notifications/initialized").len(), 1);
    world.gateway.stop().await;
    assert_eq!(site.seen("DELETE").len(), 1);
    assert_eq!(site.sessions(), 0);
}

#[tokio::test]
async fn modern_requests_say_in_header_fields_what_the_body_says() {
    let site = site(Dialect::Modern, false).await;
    let world = world(&site);
    let mut client = world.connect().await;
    call(&mut client, "a_echo", json!({})).await;
    let seen = site.seen("tools/call").remove(0);
    assert_eq!(seen.header("mcp-protocol-version"), Some("2026-07-28"));
    assert_eq!(seen.header("mcp-method"), Some("tools/call"));
    assert_eq!(seen.header("mcp-name"), Some("echo"));
    assert_eq!(seen.header("mcp-session-id"), None);
    assert_eq!(site.seen("initialize").len(), 0);
    let listed = site.seen("tools/list").remove(0);
    assert_eq!(listed.header("mcp-name"), None);
}

#[tokio::test]
async fn progress_and_logs_come_on_the_stream_of_their_call() {
    // TA-70
    for dialect in [Dialect::Legacy, Dialect::Modern, Dialect::Sse] {
        let site = site(dialect, true).await;
        let world = world(&site);
        let mut bystander = world.connect().await;
        let mut client = world.connect().await;
        let mut with_token = params("a_progress", &json!({}));
        with_token["_meta"]["progressToken"] = json!("mine");
        let id = client.begin("tools/call", with_token).await;
        for step in 1..=3 {
            let progress = client.next("notifications/progress").await;
            assert_eq!(progress["params"]["progressToken"], "mine", "{dialect:?}");
            assert_eq!(progress["params"]["progress"], step);
        }
        client.answer(id).await;
        call(&mut client, "a_log", json!({})).await;
        assert_eq!(client.next("notifications/message").await["params"]["data"], "hello");
        bystander.request("ping", json!({})).await;
        assert_eq!(bystander.count("notifications/message"), 0);
    }
}

#[tokio::test]
async fn logs_of_two_calls_at_a_time_reach_each_its_own_client() {
    let site = site(Dialect::Legacy, true).await;
    let world = world(&site);
    let mut waiting = world.connect().await;
    let mut client = world.connect().await;
    waiting.begin("tools/call", params("a_never", &json!({}))).await;
    until_seen(&site, "tools/call").await;
    call(&mut client, "a_log", json!({})).await;
    assert_eq!(client.next("notifications/message").await["params"]["data"], "hello");
    waiting.request("ping", json!({})).await;
    assert_eq!(waiting.count("notifications/message"), 0);
}

#[tokio::test]
async fn questions_of_a_legacy_server_are_answered_over_http() {
    for dialect in [Dialect::Legacy, Dialect::Sse] {
        let site = site(dialect, true).await;
        let world = world(&site);
        let mut client = able_client(&world).await;
        for method in ["roots/list", "sampling/createMessage", "elicitation/create"] {
            let question = json!({"method": method, "params": {"x": 1}});
            let id = client.begin("tools/call", params("a_ask", &question)).await;
            let asked = client.next(method).await;
            let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"the": method}});
            client.send(&answer.to_string()).await;
            let answer = client.answer(id).await;
            assert_eq!(answer["result"]["structuredContent"], json!({"the": method}));
        }
    }
}

#[tokio::test]
async fn cancelled_call_is_told_to_a_legacy_server_and_closed_on_a_modern_one() {
    for dialect in [Dialect::Legacy, Dialect::Sse] {
        let site = site(dialect, true).await;
        let world = world(&site);
        let mut client = world.connect().await;
        let id = client.begin("tools/call", params("a_never", &json!({}))).await;
        until_seen(&site, "tools/call").await;
        let cancel = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
            "params": {"requestId": id}});
        client.send(&cancel.to_string()).await;
        until_seen(&site, "notifications/cancelled").await;
    }
    let site = site(Dialect::Modern, true).await;
    let world = world(&site);
    let mut client = world.connect().await;
    let id = client.begin("tools/call", params("a_never", &json!({}))).await;
    call(&mut client, "a_echo", json!({})).await;
    let cancel =
        json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}});
    client.send(&cancel.to_string()).await;
    site.closed(1).await;
    assert_eq!(site.seen("notifications/cancelled").len(), 0);
}

#[tokio::test]
async fn changed_list_is_heard_of_in_every_dialect() {
    for (dialect, _) in DIALECTS {
        let site = site(dialect, false).await;
        let world = world(&site);
        let mut client = world.connect().await;
        if matches!(dialect, Dialect::Modern | Dialect::Both) {
            // A modern server tells only who listens.
            until_seen(&site, "subscriptions/listen").await;
        }
        call(&mut client, "a_grow", json!({})).await;
        client.next("notifications/tools/list_changed").await;
        assert!(client.tool_names().await.contains(&"a_extra".to_owned()), "{dialect:?}");
    }
}

#[tokio::test]
async fn forgotten_session_is_opened_anew_and_the_call_succeeds() {
    let site = site(Dialect::Legacy, false).await;
    let world = world(&site);
    let mut client = world.connect().await;
    call(&mut client, "a_echo", json!({})).await;
    for round in 2..=3 {
        site.forget_sessions();
        let result = call(&mut client, "a_echo", json!({"round": round})).await;
        assert_eq!(result["structuredContent"], json!({"round": round}));
        assert_eq!(site.seen("initialize").len(), round);
    }
    assert_eq!(client.count("notifications/tools/list_changed"), 0);
}

#[tokio::test]
async fn server_that_opens_no_new_session_is_withdrawn_and_tried_again_with_pauses() {
    let site = site(Dialect::Legacy, false).await;
    let world = world(&site);
    let mut client = world.connect().await;
    call(&mut client, "a_echo", json!({})).await;
    for _ in 0..3 {
        site.fail("initialize", Fault::Status(500, "not yet"));
    }
    site.forget_sessions();
    let error = failure(&mut client).await;
    assert!(error.contains("HTTP status 500: not yet"), "{error}");
    let Phase::Waiting { reason } = phase(&world) else { panic!("{:?}", phase(&world)) };
    assert!(reason.contains("HTTP status 500"), "{reason}");
    client.next("notifications/tools/list_changed").await;
    client.next("notifications/tools/list_changed").await;
    call(&mut client, "a_echo", json!({})).await;
    assert_eq!(site.seen("initialize").len(), 5);
}

#[tokio::test]
async fn server_that_restarts_is_found_again_and_its_tools_come_back() {
    for dialect in [Dialect::Legacy, Dialect::Modern, Dialect::Sse] {
        let site = site(dialect, false).await;
        let address = site.address.to_string();
        let world = world(&site);
        let mut client = world.connect().await;
        assert_eq!(client.tool_names().await.len(), TOOLS.len());
        site.stop();
        client.next("notifications/tools/list_changed").await;
        assert_eq!(client.tool_names().await.len(), 0, "{dialect:?}");
        let Phase::Waiting { reason } = phase(&world) else { panic!("{:?}", phase(&world)) };
        assert!(reason.contains("onnection") || reason.contains("stream"), "{reason}");
        let _site = Site::start_at(&address, manners(dialect)).await;
        client.next("notifications/tools/list_changed").await;
        let result = call(&mut client, "a_echo", json!({"x": 2})).await;
        assert_eq!(result["structuredContent"], json!({"x": 2}), "{dialect:?}");
    }
}

#[tokio::test]
async fn answer_that_goes_wrong_fails_its_call_only_and_says_how() {
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let site = site(dialect, true).await;
        let world = world(&site);
        let mut client = world.connect().await;
        for (fault, error) in [
            (
                Fault::Status(500, "the\u{1b}[8m database is away"),
                "upstream `a` answered with HTTP status 500: the [8m database is away",
            ),
            (Fault::Status(503, ""), "upstream `a` answered with HTTP status 503"),
            (
                Fault::Redirect("http://10.1.2.3/secret?token=hush"),
                "upstream `a` redirects to a private address `10.1.2.3`, which is not followed; \
                 if you trust it, put it into `url`",
            ),
            (
                Fault::Redirect("/elsewhere"),
                "upstream `a` redirects to another path of the same host, which is not followed; \
                 if you trust it, put it into `url`",
            ),
            (Fault::HugeEvent, "upstream `a` answered with more than 67108864 bytes on one line"),
            (
                Fault::Page,
                "upstream `a` sent a reply that is not valid JSON-RPC: not valid JSON: \
                 expected value at line 1 column 1 in `<html><body>Welcome!</body></html>`",
            ),
            (
                Fault::Status(204, ""),
                "upstream `a` sent a reply that is not valid JSON-RPC: HTTP status 204 without a message",
            ),
        ] {
            site.fail_next([fault.clone()]);
            assert_eq!(failure(&mut client).await, error, "{fault:?}");
            call(&mut client, "a_echo", json!({})).await;
        }
        site.fail_next([Fault::BreaksOff]);
        let error = failure(&mut client).await;
        assert!(error.starts_with("upstream `a` did not answer:"), "{error}");
        assert_eq!(call(&mut client, "a_echo", json!({})).await["isError"], Value::Null);
        assert!(matches!(phase(&world), Phase::Ready));
    }
}

#[tokio::test]
async fn error_of_the_server_itself_is_passed_whatever_the_status() {
    let site = site(Dialect::Legacy, false).await;
    let world = world(&site);
    let mut client = world.connect().await;
    let error = r#"{"code":-32050,"message":"no","data":{"big":12345678901234567890}}"#;
    site.fail_next([Fault::Refuses(400, error)]);
    let id = client.begin("tools/call", params("a_echo", &json!({}))).await;
    let line = client.answer_line(id).await;
    assert!(line.contains(error), "{line}");
}

#[tokio::test]
async fn frozen_server_hurts_only_the_calls_that_it_froze_on() {
    let site = site(Dialect::Legacy, false).await;
    let world = World::of([])
        .remote("a", &site.url())
        .filter()
        .call_timeout(Duration::from_millis(300))
        .start();
    let mut client = world.connect().await;
    site.fail_next([Fault::Freezes]);
    let frozen = client.begin("tools/call", params("a_echo", &json!({}))).await;
    until_seen(&site, "tools/call").await;
    assert_eq!(call(&mut client, "a_echo", json!({"x": 1})).await["structuredContent"]["x"], 1);
    let error = client.answer(frozen).await["result"]["structuredContent"]["error"].clone();
    assert_eq!(error, "upstream `a` was silent for 300ms; see its log, or raise `timeout`");
}

#[tokio::test]
async fn answer_whose_stream_was_ended_is_fetched_where_it_broke_off() {
    let manners = Manners { streams: true, polls: true, ..manners(Dialect::Legacy) };
    let site = Site::start(manners).await;
    let world = world(&site);
    let mut client = world.connect().await;
    let result = call(&mut client, "a_slow", json!({"ms": 50})).await;
    assert_eq!(result["content"][0]["text"], "ok");
    let resumed = site
        .seen("GET")
        .into_iter()
        .filter_map(|seen| seen.header("last-event-id").map(str::to_owned));
    assert_eq!(resumed.count(), 1);
}

#[tokio::test]
async fn call_that_was_accepted_is_not_made_again_when_the_session_is_forgotten() {
    let manners = Manners { streams: true, polls: true, ..manners(Dialect::Legacy) };
    let site = Site::start(manners).await;
    let world = world(&site);
    let mut client = world.connect().await;
    let id = client.begin("tools/call", params("a_slow", &json!({"ms": 1000}))).await;
    until_seen(&site, "tools/call").await;
    site.forget_sessions();
    let error = client.answer(id).await["result"]["structuredContent"]["error"].clone();
    assert_eq!(
        error,
        "upstream `a` did not answer: it has forgotten the session, and perhaps done the work"
    );
    assert_eq!(site.seen("tools/call").len(), 1);
}

#[tokio::test]
async fn server_without_a_stream_of_its_own_and_with_odd_statuses_is_served() {
    // 404 is what a framework says to a method that has no handler.
    for no_feed in [405, 404, 501] {
        let manners =
            Manners { has_feed: false, no_feed, accepted: 204, ..manners(Dialect::Legacy) };
        let site = Site::start(manners).await;
        let world = world(&site);
        let mut client = world.connect().await;
        assert_eq!(call(&mut client, "a_echo", json!({"x": 1})).await["structuredContent"]["x"], 1);
        assert_eq!(site.seen("initialize").len(), 1, "{no_feed}");
    }
}

#[tokio::test]
async fn era_of_the_configuration_is_spoken_without_asking() {
    for (era, revision, probes) in [(Era::Legacy, "2025-11-25", 0), (Era::Modern, "2026-07-28", 1)]
    {
        let site = site(Dialect::Both, false).await;
        let world = World::of([])
            .remote("a", &site.url())
            .tuned(|settings| settings.era = EraChoice::Only(era))
            .filter()
            .start();
        let mut client = world.connect().await;
        call(&mut client, "a_echo", json!({})).await;
        let upstream = world.gateway.upstreams().next().unwrap().1.clone();
        assert_eq!(upstream.status().introduction.unwrap().revision.as_str(), revision);
        assert_eq!(upstream.era(), era);
        assert_eq!(site.seen("server/discover").len(), probes);
    }
    let site = site(Dialect::Legacy, false).await;
    let world = World::of([])
        .remote("a", &site.url())
        .tuned(|settings| settings.era = EraChoice::Only(Era::Modern))
        .filter()
        .start();
    world.gateway.ready().await;
    let Phase::Waiting { reason } = phase(&world) else { panic!("{:?}", phase(&world)) };
    assert!(reason.starts_with("can't be used: it answered `server/discover` with"), "{reason}");
}

#[tokio::test]
async fn unreachable_server_waits_and_says_why() {
    let site = site(Dialect::Legacy, false).await;
    site.stop();
    let world = world(&site);
    world.gateway.ready().await;
    let Phase::Waiting { reason } = phase(&world) else { panic!("{:?}", phase(&world)) };
    assert!(reason.starts_with("can't be reached: "), "{reason}");
    assert!(reason.contains("refused"), "{reason}");
}

/// A tool whose argument `r` is mirrored under this name.
fn mirroring(name: &str, kind: &str) -> Value {
    let schema =
        json!({"type": "object", "properties": {"r": {"type": kind, "x-mcp-header": name}}});
    json!({"name": "echo", "inputSchema": schema})
}

#[tokio::test]
async fn argument_is_mirrored_into_the_header_field_that_its_tool_names() {
    let script = Script { tools: vec![mirroring("Region", "string")], ..Script::default() };
    let site = Site::start(Manners::new(Dialect::Modern, script)).await;
    let lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    let mirrored = [("Mcp-Param-Region".to_owned(), "zürich".to_owned())];
    let answer = lone.call_as(None, "echo", json!({"r": "zürich"}), &mirrored).await;
    assert_eq!(answer["structuredContent"]["r"], "zürich");
    let seen = site.seen("tools/call").remove(0);
    assert_eq!(seen.header("mcp-param-region"), Some("=?base64?esO8cmljaA==?="));
}

#[tokio::test]
async fn call_whose_header_fields_do_not_fit_is_made_again_as_the_tool_is_now() {
    let script = Script { tools: vec![mirroring("Region", "string")], ..Script::default() };
    let site = Site::start(Manners::new(Dialect::Modern, script)).await;
    let lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    let answer = lone.call_as(None, "echo", json!({"r": "x"}), &[]).await;
    assert_eq!(answer["structuredContent"]["r"], "x");
    assert_eq!(site.seen("tools/call").len(), 2);
    let wrong = [("Mcp-Param-Region".to_owned(), "y".to_owned())];
    let answer = lone.call_as(None, "echo", json!({"r": "x"}), &wrong).await;
    assert_eq!(answer["structuredContent"]["r"], "x");
}

#[tokio::test]
async fn tool_with_a_wrong_annotation_is_withheld_and_the_others_are_listed() {
    let mut script = Script::with_tools(["fine"]);
    script.tools.push(mirroring("Region", "number"));
    let site = Site::start(Manners::new(Dialect::Legacy, script)).await;
    let world = world(&site);
    let mut client = world.connect().await;
    assert_eq!(client.tool_names().await, ["a_fine"]);
    let inventory = world.gateway.upstreams().next().unwrap().1.inventory();
    assert_eq!(inventory.flawed()[0].name, "echo");
}

#[tokio::test]
async fn transport_of_the_configuration_is_used_without_asking() {
    for (dialect, transport) in
        [(Dialect::Sse, Transport::Sse), (Dialect::Legacy, Transport::StreamableHttp)]
    {
        let site = site(dialect, false).await;
        let plan = World::of([]).remote("a", &site.url()).tuned(|settings| {
            let Launch::Url(remote) = &mut settings.launch else { unreachable!() };
            remote.transport = transport;
            settings.era = EraChoice::Only(Era::Legacy);
        });
        let world = plan.filter().start();
        let mut client = world.connect().await;
        assert_eq!(client.tool_names().await.len(), TOOLS.len());
        let gets_first = dialect == Dialect::Sse;
        assert_eq!(site.seen("server/discover").len(), 0);
        assert_eq!(site.first().method == "GET", gets_first, "{dialect:?}");
    }
    let site = site(Dialect::Sse, false).await;
    let plan = World::of([]).remote("a", &site.url()).tuned(|settings| {
        let Launch::Url(remote) = &mut settings.launch else { unreachable!() };
        remote.transport = Transport::StreamableHttp;
    });
    let world = plan.filter().start();
    world.gateway.ready().await;
    let Phase::Waiting { reason } = phase(&world) else { panic!("{:?}", phase(&world)) };
    let expected = "can't be used: it answered `initialize` with HTTP status 404; \
                    see whether `url` is right";
    assert_eq!(reason, expected);
}

#[tokio::test]
async fn server_that_refuses_the_revision_is_spoken_to_in_one_that_it_names() {
    for (supported, revision, asked) in [
        (r#"["2026-07-28"]"#, "2026-07-28", 2),
        (r#"["2025-06-18","2025-11-25"]"#, "2025-11-25", 1),
    ] {
        let site = site(Dialect::Both, false).await;
        let error = format!(
            r#"{{"code":-32022,"message":"no","data":{{"supported":{supported},"requested":"x"}}}}"#
        );
        site.fail("server/discover", Fault::Refuses(400, error.leak()));
        let lone = Lone::start(World::of([]).remote("a", &site.url())).await;
        let introduction = lone.upstream.status().introduction.unwrap();
        assert_eq!(introduction.revision.as_str(), revision);
        assert_eq!(site.seen("server/discover").len(), asked);
    }
}

#[tokio::test]
async fn list_that_breaks_off_is_asked_for_again() {
    let site = site(Dialect::Legacy, false).await;
    site.fail("tools/list", Fault::BreaksOff);
    let lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    assert_eq!(lone.upstream.status().problems, [""; 0]);
    assert_eq!(site.seen("tools/list").len(), 2);
}

#[tokio::test]
async fn calls_one_after_the_other_share_a_connection_however_they_are_answered() {
    for (dialect, streams) in
        [(Dialect::Legacy, false), (Dialect::Legacy, true), (Dialect::Modern, true)]
    {
        let site = site(dialect, streams).await;
        let world = world(&site);
        let mut client = world.connect().await;
        call(&mut client, "a_echo", json!({})).await;
        let before = site.connections();
        for _ in 0..20 {
            call(&mut client, "a_echo", json!({})).await;
        }
        // The end of a stream may come after the next call has begun.
        let more = site.connections() - before;
        assert!(more <= u64::from(streams), "{dialect:?} {streams}: {more}");
    }
}

#[tokio::test]
async fn five_hundred_calls_at_a_time_are_all_answered() {
    for dialect in [Dialect::Legacy, Dialect::Modern, Dialect::Sse] {
        let site = site(dialect, true).await;
        let lone = Arc::new(Lone::start(World::of([]).remote("a", &site.url())).await);
        let call = |number: u64| {
            let lone = Arc::clone(&lone);
            async move { lone.call("echo", json!({"number": number})).await }
        };
        let calls: Vec<_> = (0..500).map(|number| tokio::spawn(call(number))).collect();
        for (number, call) in (0_u64..).zip(calls) {
            assert_eq!(call.await.unwrap()["structuredContent"]["number"], number, "{dialect:?}");
        }
    }
}

#[tokio::test]
async fn message_that_is_not_accepted_fails_its_call_at_once_over_sse() {
    let site = site(Dialect::Sse, false).await;
    // The stream of a handshake that failed is not left open.
    site.fail("initialize", Fault::Status(500, "not yet"));
    let plan = World::of([]).remote("a", &site.url()).tuned(|settings| {
        let Launch::Url(remote) = &mut settings.launch else { unreachable!() };
        remote.transport = Transport::Sse;
    });
    let world = plan.filter().start();
    site.closed(1).await;
    let mut client = world.connect().await;
    while client.tool_names().await.is_empty() {
        client.next("notifications/tools/list_changed").await;
    }
    site.fail_next([Fault::Status(413, "too much")]);
    let error = "upstream `a` answered with HTTP status 413: too much";
    assert_eq!(failure(&mut client).await, error);
    call(&mut client, "a_echo", json!({})).await;
}
