//! The surfaces `dynamic` and `static`: toolsets that clients enable, or that are chosen at the start.

use std::sync::Arc;

use serde_json::{Value, json};
use testkit::client::{LineClient, alone};
use testkit::http::HttpAnswer;

use crate::folder;
use crate::http_limits::Service;
use crate::up::request;

const TOOLSETS: &str = r#"
[toolsets]
read = ["git:echo", "hub:tree", "git:r://a", "git:ask"]
hub = ["hub:echo"]
[toolsets.write]
description = "All that changes something"
decision_criteria = "Only when asked to"
tools = ["git:*"]
"#;

const SERVERS: [(&str, &str); 2] =
    [("git", "echo fail grow --resource r://a --prompt ask"), ("hub", "echo tree")];

const META: [&str; 5] =
    ["list_tools", "list_toolsets", "enable_toolset", "disable_toolset", "describe_toolset"];

fn dynamic(more: &str) -> testkit::binary::Folder {
    folder(&format!("surface = \"dynamic\"\n{more}\n{TOOLSETS}"), &SERVERS)
}

/// Calls a meta-tool; its answer, and whether that is a failure.
async fn meta(client: &mut LineClient, name: &str, toolset: &str) -> (Value, bool) {
    let result = client.call(name, json!({"name": toolset})).await;
    let text: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
    let mut structure = result["structuredContent"].clone();
    structure.as_object_mut().unwrap().remove("activated");
    assert_eq!(text, structure, "text and structure say the same");
    (text, result["isError"] == true)
}

async fn done(client: &mut LineClient, name: &str, toolset: &str) -> String {
    let (answer, is_error) = meta(client, name, toolset).await;
    assert_eq!((&answer["success"], is_error), (&json!(true), false), "{answer}");
    answer["message"].as_str().unwrap().to_owned()
}

async fn fails(client: &mut LineClient, name: &str, toolset: &str, code: &str) -> String {
    let (answer, is_error) = meta(client, name, toolset).await;
    assert_eq!((&answer["success"], is_error), (&json!(false), true), "{answer}");
    assert_eq!(answer["code"], code, "{answer}");
    answer["message"].as_str().unwrap().to_owned()
}

/// The names of the tools besides the meta-tools.
async fn tools(client: &mut LineClient) -> Vec<String> {
    let mut names = client.tool_names().await;
    let own = names.split_off(META.len());
    assert_eq!(names, META);
    own
}

#[tokio::test]
async fn toolsets_are_enabled_and_disabled_at_run_time() {
    // TC-01, TC-03, TC-18 to TC-24; the peer lists what is disabled and can't enable it again.
    let mut toolman = dynamic("").start().await;
    let client = &mut toolman.client;
    assert!(tools(client).await.is_empty(), "nothing is on at the start");
    let all = client.call("list_toolsets", json!({})).await["structuredContent"].clone();
    let about = json!({
        "key": "write",
        "active": false,
        "definition": {
            "name": "write",
            "description": "All that changes something",
            "modules": ["git"],
            "decisionCriteria": "Only when asked to",
        },
        "tools": ["write.echo", "write.fail", "write.grow"],
    });
    assert_eq!(all["toolsets"][2], about);
    assert_eq!(meta(client, "describe_toolset", "write").await, (about, false));
    let refused = client.call("read.echo", json!({})).await;
    assert_eq!(refused["isError"], true);
    let guidance = "enable its toolset `read` with `enable_toolset` first";
    assert!(refused.to_string().contains(guidance), "{refused}");
    for round in 0..3 {
        let said = done(client, "enable_toolset", "read").await;
        assert_eq!(said, "toolset `read` is enabled; it has `read.echo`, `read.tree`");
        assert_eq!(tools(client).await, ["read.echo", "read.tree"], "round {round}");
        let list = client.call("list_tools", json!({})).await["structuredContent"].clone();
        let tools_now = json!(["read.echo", "read.tree"]);
        assert_eq!(list, json!({"tools": tools_now, "toolsetToTools": {"read": tools_now}}));
        let echo = client.call("read.echo", json!({"round": round})).await;
        assert_eq!(echo["structuredContent"]["round"], round, "{echo}");
        let uris = client.names("resources/list", "resources", "uri").await;
        let prompts = client.names("prompts/list", "prompts", "name").await;
        assert_eq!((uris, prompts), (vec!["git_r://a".into()], vec!["read.ask".into()]));
        assert_eq!(
            fails(client, "enable_toolset", "read", "E_VALIDATION").await,
            "toolset `read` is enabled already"
        );
        done(client, "disable_toolset", "read").await;
        assert!(tools(client).await.is_empty(), "what is disabled is not listed");
        for name in ["read.echo", "git_echo", "git:echo", "git.echo", "read.tree", "tree"] {
            let refused = client.call(name, json!({})).await;
            assert_eq!(refused["isError"], true, "{name}: {refused}");
        }
        assert_eq!(
            fails(client, "disable_toolset", "read", "E_VALIDATION").await,
            "toolset `read` is not enabled"
        );
    }
    let unknown = "no toolset is named `raed`; did you mean `read`?";
    for name in ["enable_toolset", "disable_toolset", "describe_toolset"] {
        assert_eq!(fails(client, name, "raed", "E_VALIDATION").await, unknown);
    }
    let result = client.call("enable_toolset", json!({"toolset": "read"})).await;
    assert_eq!(result["structuredContent"]["code"], "E_VALIDATION");
}

#[tokio::test]
async fn one_change_is_announced_once() {
    // The peer sends three for one.
    const CHANGED: &str = "notifications/tools/list_changed";
    let mut toolman = dynamic("").start().await;
    let client = &mut toolman.client;
    for (deed, toolset) in [
        ("enable_toolset", "read"),
        ("enable_toolset", "write"),
        ("disable_toolset", "read"),
        ("enable_toolset", "read"),
    ] {
        done(client, deed, toolset).await;
        client.next(CHANGED).await;
        client.request("ping", json!({})).await;
        assert_eq!(client.count(CHANGED), 0, "{deed} {toolset}");
    }
    meta(client, "enable_toolset", "read").await;
    meta(client, "enable_toolset", "none").await;
    client.call("list_toolsets", json!({})).await;
    client.request("ping", json!({})).await;
    assert_eq!(client.count(CHANGED), 0, "nothing has changed");
    // A tool that is new at its server joins the toolset that is on, and no other list changes.
    client.call("write.grow", json!({})).await;
    client.next(CHANGED).await;
    assert_eq!(tools(client).await.len(), 6);
}

#[tokio::test]
async fn requests_that_stand_alone_share_the_selection_of_their_process() {
    // TC-01, in the modern era on stdio
    const CHANGED: &str = "notifications/tools/list_changed";
    let folder = dynamic("");
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    client.begin_alone("subscriptions/listen", wanted).await;
    client.next("notifications/subscriptions/acknowledged").await;
    for (name, count) in [("enable_toolset", 6), ("disable_toolset", 5), ("enable_toolset", 6)] {
        let call = json!({"name": name, "arguments": {"name": "hub"}});
        let answer = client.ask_alone("tools/call", call).await;
        assert_eq!(answer["result"]["resultType"], "complete", "{answer}");
        assert_eq!(answer["result"]["structuredContent"]["success"], true);
        client.next(CHANGED).await;
        let list = client.ask_alone("tools/list", json!({})).await;
        assert_eq!(list["result"]["tools"].as_array().unwrap().len(), count);
        assert_eq!(client.count(CHANGED), 0, "one change is announced once");
    }
    let echo = json!({"name": "hub.echo", "arguments": {"n": 1}});
    let echo = client.ask_alone("tools/call", echo).await;
    assert_eq!(echo["result"]["structuredContent"]["n"], 1);
}

#[tokio::test]
async fn toolsets_that_share_a_tool_show_it_each() {
    // TC-24; disabling one leaves the other.
    let mut toolman = dynamic("").start().await;
    let client = &mut toolman.client;
    done(client, "enable_toolset", "read").await;
    done(client, "enable_toolset", "write").await;
    let both = ["read.echo", "read.tree", "write.echo", "write.fail", "write.grow"];
    assert_eq!(tools(client).await, both);
    done(client, "disable_toolset", "read").await;
    assert_eq!(tools(client).await, ["write.echo", "write.fail", "write.grow"]);
    for name in ["write.echo", "git_echo", "git:echo"] {
        assert_eq!(client.call(name, json!({"n": 1})).await["structuredContent"]["n"], 1);
    }
    assert_eq!(client.call("read.echo", json!({})).await["isError"], true);
    let uris = client.names("resources/list", "resources", "uri").await;
    assert_eq!(uris, ["git_r://a"], "it is in the other one, too");
}

#[tokio::test]
async fn exposure_policy_limits_what_can_be_enabled() {
    // TC-20
    let policy = "[startup]\ntoolsets = [\"read\"]\n[exposure_policy]\nmax_active = 1\n\
        denylist = [\"hub\"]\n";
    let mut toolman = dynamic(policy).start().await;
    let client = &mut toolman.client;
    assert_eq!(tools(client).await, ["read.echo", "read.tree"], "enabled from the start");
    let said = fails(client, "enable_toolset", "write", "E_POLICY_MAX_ACTIVE").await;
    assert_eq!(said, "at most 1 toolsets can be enabled at once; disable one of `read` first");
    let said = fails(client, "enable_toolset", "hub", "E_VALIDATION").await;
    assert_eq!(said, "toolset `hub` may not be enabled, by `exposure_policy`");
    done(client, "disable_toolset", "read").await;
    done(client, "enable_toolset", "write").await;
    let allowed = "[exposure_policy]\nallowlist = [\"hub\"]\n";
    let mut toolman = dynamic(allowed).start().await;
    let client = &mut toolman.client;
    fails(client, "enable_toolset", "read", "E_VALIDATION").await;
    done(client, "enable_toolset", "hub").await;
}

#[tokio::test]
async fn bare_names_are_refused_where_they_would_collide() {
    // TC-10, TC-20, TC-24
    let mut toolman = dynamic("[exposure_policy]\nnamespacing = false\n").start().await;
    let client = &mut toolman.client;
    done(client, "enable_toolset", "read").await;
    assert_eq!(tools(client).await, ["echo", "tree"]);
    let said = fails(client, "enable_toolset", "hub", "E_TOOL_NAME_CONFLICT").await;
    assert_eq!(said, "the toolset `read` has another tool that is named `echo`; disable it first");
    assert_eq!(tools(client).await, ["echo", "tree"], "nothing has changed");
    // The same tool in two toolsets is no conflict.
    done(client, "enable_toolset", "write").await;
    done(client, "disable_toolset", "read").await;
    assert_eq!(tools(client).await, ["echo", "fail", "grow"]);
    done(client, "disable_toolset", "write").await;
    done(client, "enable_toolset", "hub").await;
    assert_eq!(tools(client).await, ["echo"]);
    assert_eq!(client.call("echo", json!({"n": 2})).await["structuredContent"]["n"], 2);
    assert_eq!(client.call("git_echo", json!({})).await["isError"], true);
}

#[tokio::test]
async fn unlisted_tools_can_be_called_where_that_is_wanted() {
    // TC-11
    let mut toolman = dynamic("unlisted_calls = \"allow\"").start().await;
    let client = &mut toolman.client;
    assert!(tools(client).await.is_empty());
    for name in ["read.echo", "write.echo", "git_echo"] {
        let echo = client.call(name, json!({"n": 3})).await;
        assert_eq!(echo["structuredContent"]["n"], 3, "{name}");
    }
    assert_eq!(client.call("none.echo", json!({})).await["isError"], true);
    let read = client.request("resources/read", json!({"uri": "git_r://a"})).await;
    assert!(read["error"]["message"].as_str().unwrap().contains("`enable_toolset`"), "{read}");
}

#[tokio::test]
async fn agent_is_told_only_of_what_it_may_have() {
    let policy = "[agents.dev]\nallowed_tools = [\"hub:*\"]\n";
    let mut toolman = dynamic(policy).start_as("dev").await;
    let client = &mut toolman.client;
    let all = client.call("list_toolsets", json!({})).await["structuredContent"].clone();
    let told = all["toolsets"].as_array().unwrap();
    assert_eq!(told.iter().map(|set| &set["key"]).collect::<Vec<_>>(), ["read", "hub"]);
    assert_eq!(told[0]["tools"], json!(["read.tree"]));
    assert_eq!(told[0]["definition"]["modules"], json!(["hub"]));
    let said = fails(client, "enable_toolset", "write", "E_VALIDATION").await;
    assert_eq!(said, "no toolset is named `write`; see `list_toolsets`");
    done(client, "enable_toolset", "read").await;
    assert_eq!(tools(client).await, ["read.tree"]);
    let refused = client.call("read.echo", json!({})).await.to_string();
    assert!(refused.contains("no tool is named `read.echo`"), "{refused}");
}

/// A client over HTTP: with a session, or by its name alone.
struct Remote {
    service: Arc<Service>,
    session: Option<String>,
    name: String,
}

const TRUSTED: &str = "[http]\ntrusted_peers = [\"127.0.0.0/8\"]\n";

impl Remote {
    async fn legacy(service: &Arc<Service>) -> Remote {
        let session = Some(service.session().await);
        Remote { service: Arc::clone(service), session, name: String::new() }
    }

    fn modern(service: &Arc<Service>, name: &str) -> Remote {
        Remote { service: Arc::clone(service), session: None, name: name.to_owned() }
    }

    async fn post(&self, method: &str, params: Value) -> HttpAnswer {
        if let Some(session) = &self.session {
            let body = request(1, method, params).to_string();
            return self.service.send("/mcp", &[("Mcp-Session-Id", session)], &body).await;
        }
        let subject = params["name"].as_str().unwrap_or_default().to_owned();
        let mut headers = vec![
            ("MCP-Protocol-Version", "2026-07-28"),
            ("Mcp-Method", method),
            ("mcp-client-id", &self.name),
        ];
        if !subject.is_empty() {
            headers.push(("Mcp-Name", &subject));
        }
        let body = request(1, method, alone(params)).to_string();
        self.service.send("/mcp", &headers, &body).await
    }

    async fn call(&self, name: &str, arguments: Value) -> Value {
        let answer = self.post("tools/call", json!({"name": name, "arguments": arguments})).await;
        answer.json()["result"].clone()
    }

    async fn enable(&self, toolset: &str) {
        let result = self.call("enable_toolset", json!({"name": toolset})).await;
        assert_eq!(result["structuredContent"]["success"], true, "{result}");
    }

    async fn disable(&self, toolset: &str) {
        let result = self.call("disable_toolset", json!({"name": toolset})).await;
        assert_eq!(result["structuredContent"]["success"], true, "{result}");
    }

    /// The names of all tools but the first ones, which are ours.
    async fn tools(&self, own: usize) -> Vec<String> {
        let list = self.post("tools/list", json!({})).await.json();
        let tools = list["result"]["tools"].as_array().expect("there is a list");
        tools.iter().skip(own).map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn each_client_over_http_has_a_selection_of_its_own() {
    // TC-02
    let service = Arc::new(Service::start(&dynamic(TRUSTED), &[]).await);
    let [a, b] = [Remote::legacy(&service).await, Remote::legacy(&service).await];
    let [c, d] = [Remote::modern(&service, "c"), Remote::modern(&service, "d")];
    a.enable("read").await;
    c.enable("hub").await;
    assert_eq!(a.tools(5).await, ["read.echo", "read.tree"]);
    assert!(b.tools(5).await.is_empty());
    assert_eq!(c.tools(5).await, ["hub.echo"]);
    assert!(d.tools(5).await.is_empty());
    for other in [&b, &c, &d] {
        assert_eq!(other.call("read.echo", json!({})).await["isError"], true);
    }
    assert_eq!(a.call("read.echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
    assert_eq!(c.call("hub.echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
    // In the modern era it belongs to whoever asks, not to a connection.
    assert_eq!(Remote::modern(&service, "c").tools(5).await, ["hub.echo"]);
    c.disable("hub").await;
    assert!(c.tools(5).await.is_empty());
    assert_eq!(a.tools(5).await, ["read.echo", "read.tree"]);
    let list = c.post("tools/list", json!({})).await.json();
    assert_eq!(list["result"]["cacheScope"], "private");
}

#[tokio::test]
async fn status_tells_which_toolsets_a_caller_has_on() {
    // TC-27; the peer shows a state that is nobody's.
    let service = Arc::new(Service::start(&dynamic(TRUSTED), &[]).await);
    Remote::modern(&service, "a").enable("read").await;
    let status = async |name| service.send("/tools", &[("mcp-client-id", name)], "").await.json();
    let of_a = status("a").await;
    assert_eq!(of_a["availableToolsets"], json!(["read", "hub", "write"]));
    assert_eq!(of_a["activeToolsets"], json!(["read"]));
    assert_eq!(of_a["registeredModules"], json!(["git", "hub"]));
    assert_eq!((&of_a["totalToolsets"], &of_a["activeCount"]), (&json!(3), &json!(1)));
    assert_eq!(of_a["toolsetToTools"], json!({"read": ["read.echo", "read.tree"]}));
    assert_eq!(of_a["tools"][5]["name"], "read.echo");
    let of_b = status("b").await;
    assert_eq!((&of_b["activeToolsets"], &of_b["toolsetToTools"]), (&json!([]), &json!({})));
}

#[tokio::test]
async fn static_toolsets_are_served_to_many_clients_at_once() {
    // TC-04, TC-05, TC-06; the peer ends the first client when a second one comes, and has no `list_tools`.
    let text = format!(
        "surface = \"static\"\n{TRUSTED}[startup]\ntoolsets = [\"read\", \"hub\"]\n{TOOLSETS}"
    );
    let folder = folder(&text, &SERVERS);
    let service = Arc::new(Service::start(&folder, &[]).await);
    let names = ["hub.echo", "read.echo", "read.tree"];
    let mut clients = Vec::new();
    for at in 0..8 {
        clients.push(Remote::legacy(&service).await);
        clients.push(Remote::modern(&service, &format!("c{at}")));
    }
    for client in &clients {
        assert_eq!(client.tools(0).await, [&["list_tools"], &names[..]].concat());
        let list = client.call("list_tools", json!({})).await["structuredContent"].clone();
        assert_eq!(list["tools"], json!(names));
        assert_eq!(list["toolsetToTools"]["hub"], json!(["hub.echo"]));
        assert_eq!(client.call("hub.echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
        for name in ["enable_toolset", "write.fail", "git_fail"] {
            assert_eq!(
                client.call(name, json!({"name": "write"})).await["isError"],
                true,
                "{name}"
            );
        }
    }
    let mut toolman = folder.start().await;
    let listed = toolman.client.tool_names().await;
    assert_eq!(listed, [&["list_tools"], &names[..]].concat());
}

#[tokio::test]
async fn all_toolsets_can_be_started_and_unknown_ones_are_a_fault() {
    // TC-04
    let text = format!("surface = \"static\"\n[startup]\ntoolsets = \"ALL\"\n{TOOLSETS}");
    let mut toolman = folder(&text, &SERVERS).start().await;
    assert_eq!(toolman.client.tool_names().await.len(), 7);
    let text = text.replace("\"ALL\"", "[\"raed\"]");
    let check = folder(&text, &SERVERS).run(&["check"]).await;
    let said = String::from_utf8_lossy(&check.stderr).into_owned();
    assert_eq!(check.status.code(), Some(2), "{said}");
    assert!(said.contains("is `raed`, which is no toolset; known are `read`"), "{said}");
}

/// Numbers that look random and are the same in every run.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// Two hundred mixed lists, calls and changes of one client, which knows what it must see.
async fn live(client: Remote, seed: u64) {
    let mut dice = Dice(seed);
    let mut on = [false; 6];
    for n in 0..200 {
        let at = usize::try_from(dice.roll(6)).unwrap();
        let toolset = format!("t{at}");
        match dice.roll(6) {
            0 | 1 => {
                if on[at] {
                    client.disable(&toolset).await;
                } else {
                    client.enable(&toolset).await;
                }
                on[at] = !on[at];
            }
            2 | 3 => {
                let expected = (0..6).filter(|at| on[*at]);
                let expected: Vec<_> = expected.map(|at| format!("t{at}.echo")).collect();
                assert_eq!(client.tools(5).await, expected);
            }
            way => {
                let name = if way == 4 { format!("{toolset}.echo") } else { format!("s{at}:echo") };
                let answer = client.call(&name, json!({"seed": seed, "n": n})).await;
                if on[at] {
                    assert_eq!(
                        answer["structuredContent"],
                        json!({"seed": seed, "n": n}),
                        "{name}"
                    );
                } else {
                    assert_eq!(answer["isError"], true, "{name}: {answer}");
                    assert!(answer.to_string().contains("is not active"), "{answer}");
                }
            }
        }
    }
}

#[tokio::test]
async fn hundred_clients_with_different_selections_never_see_each_others() {
    // TC-02: 20,000 steps in all
    let _load = crate::MACHINE.read().await;
    let names = ["s0", "s1", "s2", "s3", "s4", "s5"];
    let mut text = format!("surface = \"dynamic\"\n{TRUSTED}[toolsets]\n");
    for (at, name) in names.iter().enumerate() {
        text += &format!("t{at} = [\"{name}:*\"]\n");
    }
    let folder = folder(&text, &names.map(|name| (name, "echo")));
    let service = Arc::new(Service::start(&folder, &[]).await);
    let mut lives = tokio::task::JoinSet::new();
    for seed in 0..100 {
        let client = match seed % 2 {
            0 => Remote::legacy(&service).await,
            _ => Remote::modern(&service, &format!("client-{seed}")),
        };
        lives.spawn(live(client, seed));
    }
    assert_eq!(lives.join_all().await.len(), 100);
}
