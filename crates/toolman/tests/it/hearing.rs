//! Hearing of changed resources and lists from upstreams of both eras, over pipes and HTTP.

use mcp::log_level::LogLevel;
use serde_json::json;
use testkit::fake::Script;
use testkit::lone::Lone;
use testkit::web::{Dialect, Fault, Manners, Site};
use testkit::world::World;
use upstream::supervisor::SessionChoice;

fn script(is_modern: bool) -> Script {
    let capabilities = json!({"tools": {"listChanged": true}, "resources": {"subscribe": true}});
    let capabilities = Some(capabilities);
    Script { is_modern, capabilities, ..Script::with_tools(["touch", "seen", "grow", "echo"]) }
}

#[tokio::test]
async fn legacy_server_is_subscribed_to_what_is_watched_and_no_more() {
    // TA-73
    let site = Site::start(Manners::new(Dialect::Legacy, script(false))).await;
    for plan in [World::of([("a", script(false))]), World::of([]).remote("a", &site.url())] {
        let mut lone = Lone::start(plan).await;
        lone.watch(&["x://1", "x://2"]);
        lone.until_seen(&["resources/subscribe", "x://1"]).await;
        lone.until_seen(&["resources/subscribe", "x://2"]).await;
        lone.call("touch", json!({"uri": "x://1"})).await;
        assert_eq!(lone.next_updated().await, "x://1");
        lone.watch(&["x://2"]);
        lone.until_seen(&["resources/unsubscribe", "x://1"]).await;
    }
}

#[tokio::test]
async fn modern_server_is_listened_to_and_again_when_something_else_is_watched() {
    let site = Site::start(Manners::new(Dialect::Modern, script(true))).await;
    for plan in [World::of([("a", script(true))]), World::of([]).remote("a", &site.url())] {
        let mut lone = Lone::start(plan).await;
        lone.until_seen(&["subscriptions/listen", "toolsListChanged"]).await;
        lone.watch(&["x://1"]);
        let listened = ["subscriptions/listen", "toolsListChanged", r#"["x://1"]"#];
        lone.until_seen(&listened).await;
        lone.call("touch", json!({"uri": "x://1"})).await;
        assert_eq!(lone.next_updated().await, "x://1");
        lone.call("grow", json!({})).await;
        lone.until_tools(5).await;
    }
}

#[tokio::test]
async fn stream_of_changes_that_ended_is_opened_again_and_what_was_missed_is_read() {
    let site = Site::start(Manners::new(Dialect::Modern, script(true))).await;
    let mut lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    site.wait_until(|site| site.seen("subscriptions/listen").len() == 1).await;
    site.change(|manners| manners.script.tools.truncate(2));
    // A new server stands behind the site from now on, and the streams of the old one end.
    site.forget_sessions();
    lone.until_tools(2).await;
    assert_eq!(site.seen("subscriptions/listen").len(), 2);
}

#[tokio::test]
async fn server_that_refuses_a_resource_is_still_listened_to_for_its_lists() {
    let site = Site::start(Manners::new(Dialect::Modern, script(true))).await;
    let mut lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    let listened = |count| move |site: &Site| site.seen("subscriptions/listen").len() == count;
    site.wait_until(listened(1)).await;
    let error = r#"{"code":-32602,"message":"no such resource"}"#;
    site.fail("subscriptions/listen", Fault::Refuses(400, error));
    lone.watch(&["x://bad"]);
    site.wait_until(listened(3)).await;
    lone.call("grow", json!({})).await;
    lone.until_tools(5).await;
    lone.watch(&["x://1"]);
    lone.until_seen(&["subscriptions/listen", r#"["x://1"]"#]).await;
    lone.call("touch", json!({"uri": "x://1"})).await;
    assert_eq!(lone.next_updated().await, "x://1");
}

#[tokio::test]
async fn server_that_is_asked_too_often_is_listened_to_later() {
    let site = Site::start(Manners::new(Dialect::Modern, script(true))).await;
    site.fail("subscriptions/listen", Fault::Status(429, "slow down"));
    let mut lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    lone.until_seen(&["subscriptions/listen", "toolsListChanged"]).await;
    lone.call("grow", json!({})).await;
    lone.until_tools(5).await;
}

#[tokio::test]
async fn forgotten_session_is_subscribed_anew() {
    let site = Site::start(Manners::new(Dialect::Legacy, script(false))).await;
    let lone = Lone::start(World::of([]).remote("a", &site.url())).await;
    lone.watch(&["x://1"]);
    lone.until_seen(&["resources/subscribe", "x://1"]).await;
    site.forget_sessions();
    // The new session has a server of its own behind it.
    lone.until_seen(&["resources/subscribe", "x://1"]).await;
    assert_eq!(site.seen("initialize").len(), 2);
}

#[tokio::test]
async fn wanted_log_level_is_told_at_once_and_in_every_later_conversation() {
    let talkative = || Script::with_tools(["seen"]);
    let site = Site::start(Manners::new(Dialect::Legacy, talkative())).await;
    for plan in [World::of([("a", talkative())]), World::of([]).remote("a", &site.url())] {
        let own = plan.tuned(|settings| settings.session = SessionChoice::PerClient);
        let lone = Lone::start(own).await;
        lone.until_seen(&["notifications/initialized"]).await;
        lone.upstream.want_logs(LogLevel::Debug);
        lone.until_seen(&["logging/setLevel", "debug"]).await;
        lone.until_seen_for(Some(1), &["logging/setLevel", "debug"]).await;
        lone.upstream.want_logs(LogLevel::Error);
        lone.until_seen(&["logging/setLevel", "error"]).await;
        lone.until_seen_for(Some(1), &["logging/setLevel", "error"]).await;
        site.forget_sessions();
        // The new session has a server of its own behind it.
        lone.until_seen(&["logging/setLevel", "error"]).await;
    }
    assert_eq!(site.seen("logging/setLevel").len(), 5);
    let silent = Site::start(Manners::new(Dialect::Legacy, script(false))).await;
    let lone = Lone::start(World::of([]).remote("a", &silent.url())).await;
    lone.upstream.want_logs(LogLevel::Debug);
    lone.watch(&["x://1"]);
    lone.until_seen(&["resources/subscribe"]).await;
    assert_eq!(silent.seen("logging/setLevel").len(), 0, "it declares no logs");
}

#[tokio::test(start_paused = true)]
async fn modern_server_over_a_pipe_is_found_out_and_called() {
    let world = World::of([("a", script(true))]).filter().start();
    let mut client = world.connect().await;
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({"name": "a_echo", "arguments": {"x": 1}, "_meta": meta});
    let answer = client.request("tools/call", params.clone()).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"x": 1}));
    let introduction = world.gateway.upstreams().next().unwrap().1.status().introduction;
    assert_eq!(introduction.unwrap().revision.as_str(), "2026-07-28");
}
