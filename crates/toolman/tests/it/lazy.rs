//! Lazy servers: they run only while a client has selected what may be theirs. TC-25

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::{LineClient, PATIENCE, alone};
use testkit::processes::{command_line, survivors, working_in};

use crate::http_limits::Service;
use crate::up::request;
use crate::{TOOLMAN, fake};

/// A lazy server `slow`, which rests soon, beside one that always runs.
fn folder(head: &str, slow: &str) -> Folder {
    let (hub, slow) = (fake("echo"), fake(slow));
    let text = format!(
        "{head}\n[toolsets]\nhub = [\"hub:*\"]\nslow = [\"slow:*\"]\nboth = [\"hub:*\", \"slow_echo\"]\n\
         [[servers]]\nnamespace = \"hub\"\ncommand = \"{hub}\"\n\
         [[servers]]\nnamespace = \"slow\"\ncommand = \"{slow}\"\nlazy = true\nidle_timeout = \"200ms\"\n"
    );
    Folder::new(TOOLMAN).with_tools_toml(&text)
}

const DYNAMIC: &str = "surface = \"dynamic\"";
const SLOW: &str = "echo fail --delay 300";

/// The processes of the lazy server.
fn running(folder: &Folder) -> Vec<u32> {
    let is_slow = |pid: &u32| {
        let line = command_line(*pid);
        let program = line.split(' ').next().unwrap_or_default();
        program.ends_with("fake_upstream") && line.contains("fail")
    };
    working_in(folder.path()).into_iter().filter(is_slow).collect()
}

#[track_caller]
fn check_ended(folder: &Folder) {
    assert!(survivors(&running(folder), PATIENCE).is_empty(), "nobody needs it");
}

async fn switch(client: &mut LineClient, deed: &str, toolset: &str) -> String {
    let result = client.call(deed, json!({"name": toolset})).await;
    assert_eq!(result["isError"], false, "{result}");
    result["structuredContent"]["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn lazy_server_is_started_by_the_first_enable_and_ended_when_idle() {
    // TC-25
    const CHANGED: &str = "notifications/tools/list_changed";
    let folder = folder(DYNAMIC, SLOW);
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    let all = client.call("list_toolsets", json!({})).await["structuredContent"].clone();
    assert_eq!(all["toolsets"][1]["key"], "slow", "it is told of, though nothing of it is known");
    switch(client, "enable_toolset", "hub").await;
    client.next(CHANGED).await;
    assert!(running(&folder).is_empty(), "nobody needs it yet");
    for _ in 0..2 {
        let said = switch(client, "enable_toolset", "slow").await;
        assert_eq!(said, "toolset `slow` is enabled; it has `slow.echo`, `slow.fail`");
        client.next(CHANGED).await;
        let echo = client.call("slow.echo", json!({"n": 1})).await;
        assert_eq!(echo["structuredContent"]["n"], 1, "it can be used at once");
        assert_eq!(client.count(CHANGED), 0, "one change is announced once");
        assert_eq!(running(&folder).len(), 1);
        // While another toolset may need it, it goes on.
        switch(client, "enable_toolset", "both").await;
        client.next(CHANGED).await;
        switch(client, "disable_toolset", "slow").await;
        client.next(CHANGED).await;
        assert_eq!(client.call("both.echo", json!({})).await["isError"], Value::Null);
        switch(client, "disable_toolset", "both").await;
        client.next(CHANGED).await;
        check_ended(&folder);
    }
    assert_eq!(client.count(CHANGED), 0, "what nobody sees is not announced");
    assert!(toolman.client.tool_names().await.contains(&"hub.echo".to_owned()));
}

#[tokio::test]
async fn last_client_that_needs_a_lazy_server_keeps_it() {
    // TC-02, TC-25
    let folder = folder(DYNAMIC, SLOW);
    let service = Service::start(&folder, &[]).await;
    let mut sessions = Vec::new();
    for _ in 0..3 {
        let session = service.session().await;
        let call = json!({"name": "enable_toolset", "arguments": {"name": "slow"}});
        let body = request(1, "tools/call", call).to_string();
        let answer = service.send("/mcp", &[("Mcp-Session-Id", &session)], &body).await.json();
        assert_eq!(answer["result"]["structuredContent"]["success"], true, "{answer}");
        sessions.push(session);
    }
    let running_before = running(&folder);
    assert_eq!(running_before.len(), 1, "all share it");
    let bearer = format!("Bearer {}", crate::http_limits::TOKEN);
    let kept = sessions.pop().unwrap();
    for session in sessions {
        let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", &session)];
        let gone = testkit::http::send(&service.address, "DELETE", "/mcp", &headers, "").await;
        assert!(gone.status < 300, "{gone:?}");
    }
    let call = json!({"name": "slow.echo", "arguments": {"n": 1}});
    for id in 2..6 {
        // Longer than it would be kept for nobody.
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let body = request(id, "tools/call", call.clone()).to_string();
        let answer = service.send("/mcp", &[("Mcp-Session-Id", &kept)], &body).await.json();
        assert_eq!(answer["result"]["structuredContent"]["n"], 1, "{answer}");
    }
    assert_eq!(running(&folder), running_before, "it was never ended");
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", &kept)];
    testkit::http::send(&service.address, "DELETE", "/mcp", &headers, "").await;
    check_ended(&folder);
}

#[tokio::test]
async fn clients_that_come_and_go_at_once_find_a_lazy_server_whenever_they_need_it() {
    // TC-25
    let _load = crate::MACHINE.read().await;
    let folder = folder(DYNAMIC, "echo fail --delay 20");
    let path = folder.path().join("tools.toml");
    let text = std::fs::read_to_string(&path).unwrap().replace("200ms", "1ms");
    std::fs::write(&path, text).unwrap();
    let service = Arc::new(Service::start(&folder, &[]).await);
    let mut clients = tokio::task::JoinSet::new();
    // Two need it now and then; whenever the others go, it is looked at who does.
    for (toolset, rounds) in [("slow", 20), ("slow", 20), ("hub", 150), ("hub", 150)] {
        let service = Arc::clone(&service);
        clients.spawn(async move {
            let session = service.session().await;
            for n in 0..rounds {
                for (name, arguments) in [
                    ("enable_toolset", json!({"name": toolset})),
                    (&*format!("{toolset}.echo"), json!({"n": n})),
                    ("disable_toolset", json!({"name": toolset})),
                ] {
                    let call = json!({"name": name, "arguments": arguments});
                    let body = request(1, "tools/call", call).to_string();
                    let headers = [("Mcp-Session-Id", session.as_str())];
                    let answer = service.send("/mcp", &headers, &body).await.json();
                    let said = answer["result"].to_string();
                    assert!(!said.contains("\"isError\":true"), "{n} {name}: {said}");
                    assert!(!said.contains("not answered") && !said.contains("no tools"), "{said}");
                }
            }
        });
    }
    assert_eq!(clients.join_all().await.len(), 4);
    check_ended(&folder);
}

#[tokio::test]
async fn toolset_of_a_failing_server_is_enabled_with_what_there_is() {
    // TC-14
    let folder = folder(DYNAMIC, "--crash");
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    let said = switch(client, "enable_toolset", "both").await;
    assert_eq!(
        said,
        "toolset `both` is enabled; it has `both.echo`; server `slow` is not there: it ended with exit \
         code 1; its last words on stderr: crashing as told"
    );
    assert_eq!(client.call("both.echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
    let said = switch(client, "enable_toolset", "slow").await;
    assert!(said.starts_with("toolset `slow` is enabled; it has no tools now; "), "{said}");
    let said = switch(client, "enable_toolset", "hub").await;
    assert_eq!(said, "toolset `hub` is enabled; it has `hub.echo`");
}

#[tokio::test]
async fn other_surfaces_need_lazy_servers_as_soon_as_a_client_comes() {
    let static_surface = "surface = \"static\"\n[startup]\ntoolsets = [\"slow\"]\n";
    let cases = [
        ("surface = \"filter\"", vec!["hub_echo", "slow_echo", "slow_fail"]),
        (static_surface, vec!["list_tools", "slow.echo", "slow.fail"]),
    ];
    for (head, names) in cases {
        let folder = folder(head, SLOW);
        let mut toolman = folder.start().await;
        assert_eq!(toolman.client.tool_names().await, names);
        drop(toolman);
        let service = Service::start(&folder, &[]).await;
        let headers = [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
        let list = request(1, "tools/list", alone(json!({}))).to_string();
        let list = service.send("/mcp", &headers, &list).await.json();
        let tools = list["result"]["tools"].as_array().expect("there is a list");
        assert_eq!(tools.iter().map(|tool| &tool["name"]).collect::<Vec<_>>(), names);
    }
    let unused = static_surface.replace("[\"slow\"]", "[\"hub\"]");
    let folder = folder(&unused, SLOW);
    let mut toolman = folder.start().await;
    assert_eq!(toolman.client.tool_names().await, ["list_tools", "hub.echo"]);
    assert!(running(&folder).is_empty(), "nothing of it is selected");
}

#[tokio::test]
async fn whoever_checks_a_configuration_sees_lazy_servers_too() {
    let check = folder(DYNAMIC, SLOW).run(&["check", "--json"]).await;
    let report: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(report["servers"][1]["state"], "ready", "{report}");
    assert_eq!(report["servers"][1]["tools"], 2);
    let check = folder(DYNAMIC, "--crash").run(&["check"]).await;
    assert_eq!(check.status.code(), Some(1));
}
