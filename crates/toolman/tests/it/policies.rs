//! What the rules of a file lead to: consent, conditions, limits, and why.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::alone;
use testkit::http::send;

use crate::up::{Up, call, request};
use crate::{TOOLMAN, folder};

const CONSENT: &str = "surface = \"filter\"\n[security_settings]\n\
    require_confirmation = [\"git:echo\"]\n";

/// Calls a tool over stdio and answers the question that comes with `action`.
async fn call_and_answer(folder: &Folder, action: &str) -> (Value, Value) {
    let mut running = folder.start_raw();
    running.client.initialize(json!({"elicitation": {}})).await;
    let params = json!({"name": "git_echo", "arguments": {"x": 7}});
    let id = running.client.begin("tools/call", params).await;
    let asked = running.client.next("elicitation/create").await;
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": action}});
    running.client.send(&answer.to_string()).await;
    (asked["params"].clone(), running.client.answer(id).await)
}

#[tokio::test]
async fn person_is_asked_before_a_call_that_needs_consent() {
    // TF-09
    let folder = folder(CONSENT, &[("git", "echo fail")]);
    let (asked, answer) = call_and_answer(&folder, "accept").await;
    let words = "The agent wants to call `git_echo` of server `git` with {\"x\":7}";
    assert_eq!(asked["message"], words);
    assert_eq!(answer["result"]["x-first"], 1.1, "{answer}");
    for action in ["decline", "cancel", "nonsense"] {
        let (_, answer) = call_and_answer(&folder, action).await;
        assert_eq!(answer["result"]["isError"], true);
        let said = answer["result"]["structuredContent"]["error"].as_str().unwrap();
        assert!(said.starts_with("`git_echo` was not called: the person did not allow it"));
    }
}

#[tokio::test]
async fn client_that_can_not_ask_a_person_is_refused_with_guidance() {
    let folder = folder(CONSENT, &[("git", "echo fail")]);
    let mut running = folder.start().await;
    let answer = running.client.call("git_echo", json!({})).await;
    let said = answer["structuredContent"]["error"].as_str().unwrap();
    assert!(said.contains("use a client that supports elicitation"), "{said}");
    let other = running.client.call("git_fail", json!({})).await;
    assert_eq!(other["isError"], true, "the tool's own failure");
    assert!(!other.to_string().contains("elicitation"));
    let up = Up::start(&folder).await;
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str())];
    let rest = send(&up.address, "POST", "/tools/git_echo", &headers, "{}").await;
    assert!(rest.body.contains("supports elicitation"), "{}", rest.body);
}

#[tokio::test]
async fn modern_client_is_asked_in_the_answer_and_consent_holds_for_that_call_only() {
    let folder = folder(CONSENT, &[("git", "echo fail")]);
    let up = Up::start(&folder).await;
    let headers = [
        ("Mcp-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "git_echo"),
    ];
    let ask = async |mut params: Value, more: Value, can_ask: bool| {
        for (key, value) in more.as_object().unwrap() {
            params[key] = value.clone();
        }
        if can_ask {
            params["_meta"]["io.modelcontextprotocol/clientCapabilities"] =
                json!({"elicitation": {}});
        }
        let message = request(1, "tools/call", alone(params));
        up.send("POST", &headers, &message.to_string()).await.json()["result"].clone()
    };
    let params = json!({"name": "git_echo", "arguments": {"x": 7}});
    let refused = ask(params.clone(), json!({}), false).await;
    assert!(refused.to_string().contains("supports elicitation"), "{refused}");
    let question = ask(params.clone(), json!({}), true).await;
    assert_eq!(question["resultType"], "input_required");
    let asked = &question["inputRequests"]["toolman-consent"];
    assert_eq!(asked["method"], "elicitation/create");
    let state = &question["requestState"];
    let accept = json!({"inputResponses": {"toolman-consent": {"action": "accept"}},
        "requestState": state});
    let done = ask(params.clone(), accept.clone(), true).await;
    assert_eq!(done["x-first"], 1.1, "{done}");
    let other = json!({"name": "git_echo", "arguments": {"x": 8}});
    let again = ask(other, accept, true).await;
    assert_eq!(again["resultType"], "input_required", "the arguments are others: {again}");
    let question = ask(params.clone(), json!({}), true).await;
    let decline = json!({"inputResponses": {"toolman-consent": {"action": "decline"}},
        "requestState": question["requestState"]});
    let declined = ask(params, decline, true).await;
    assert!(declined.to_string().contains("did not allow it"), "{declined}");
}

const CONDITIONS: &str = r#"
surface = "filter"
[http]
trusted_peers = ["127.0.0.1"]

[agents.near]
tool_overrides.git = ["*"]
[[agents.near.conditions]]
tools = ["git:echo"]
addresses = ["127.0.0.0/8"]
[[agents.near.conditions]]
tools = ["git:echo"]
arguments = { properties = { x = { maximum = 9 } }, required = ["x"] }
[[agents.near.conditions]]
tools = ["git:fail"]
hours = "00:00-00:00"

[agents.far]
extends = "near"
[[agents.far.conditions]]
tools = ["*"]
addresses = ["10.0.0.0/8"]
"#;

async fn tools_of(up: &Up, agent: &str) -> Vec<String> {
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str()), ("X-Agent-Id", agent)];
    let list = send(&up.address, "GET", "/tools", &headers, "").await.json();
    let tools = list["tools"].as_array().unwrap();
    tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn conditions_look_at_address_time_and_arguments() {
    // TF-32, TF-53, TF-54
    let folder = folder(CONDITIONS, &[("git", "echo fail")]);
    let up = Up::start(&folder).await;
    assert_eq!(tools_of(&up, "near").await, ["git_echo", "git_fail"]);
    assert!(tools_of(&up, "far").await.is_empty(), "it calls from elsewhere");
    assert!(tools_of(&up, "stranger").await.is_empty(), "there is no list for it");
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str()), ("X-Agent-Id", "near")];
    let mut calls = Vec::new();
    for body in ["{\"x\":9}", "{\"x\":10}", "{}"] {
        calls.push(send(&up.address, "POST", "/tools/git_echo", &headers, body).await);
    }
    assert_eq!(calls[0].json()["x-first"], 1.1);
    assert!(
        calls[1].body.contains("`/x`: 10 is greater than the maximum of 9"),
        "{}",
        calls[1].body
    );
    assert!(calls[2].body.contains("may not be called with these arguments"), "{}", calls[2].body);
    // On its own pipes a client has no address, and none is the right one.
    let mut near = folder.start_as("near").await;
    assert_eq!(near.client.tool_names().await, ["git_fail"]);
}

#[tokio::test]
async fn agent_is_only_believed_from_trusted_addresses() {
    // TF-31, TF-32
    let text = CONDITIONS.replace("127.0.0.1", "10.9.9.9");
    let up = Up::start(&folder(&text, &[("git", "echo fail")])).await;
    assert!(tools_of(&up, "near").await.is_empty());
}

#[tokio::test]
async fn too_many_tools_are_cut_with_a_warning_and_strangers_can_be_shut_out() {
    // TF-08
    let head = "surface = \"filter\"\nrequire_agent = true\n[default_policy]\n\
        allow_unknown_tools = true\nmax_tools_per_agent = 2\n[agents.dev]\n";
    let folder = folder(head, &[("git", "echo fail tree")]);
    let mut dev = folder.start_as("dev").await;
    assert_eq!(dev.client.tool_names().await, ["git_echo", "git_fail"]);
    dev.client.close().await;
    dev.ended().await;
    let log = dev.log().await;
    assert!(log.contains("`max_tools_per_agent` leaves out 1 tools that are allowed"), "{log}");
    let mut stranger = folder.start_as("stranger").await;
    assert!(stranger.client.tool_names().await.is_empty());
}

#[tokio::test]
async fn session_is_unknown_to_other_agents() {
    let tokens = "surface = \"filter\"\n[tokens.a]\ntoken = \"aaaa-0123456789abcdef\"\n\
        [tokens.b]\ntoken = \"bbbb-0123456789abcdef\"\n";
    let mut up = Up::start(&folder(tokens, &[("git", "echo")])).await;
    up.token = "aaaa-0123456789abcdef".to_owned();
    up.initialize().await;
    let list = request(1, "tools/list", json!({}));
    assert_eq!(up.post(&list).await.status, 200);
    up.token = "bbbb-0123456789abcdef".to_owned();
    assert_eq!(up.post(&list).await.status, 404);
    assert_eq!(up.send("DELETE", &[], "").await.status, 404);
    up.token = "cccc-0123456789abcdef".to_owned();
    assert_eq!(up.post(&list).await.status, 401);
}

#[tokio::test]
async fn explain_tells_the_rule_and_its_place() {
    let head = "[security_settings]\ndangerous_tools = [\"git:fail\"]\n\
        [exposed_tools]\ngit = [\"echo\"]\n[agents.dev]\nallowed_servers = [\"hub\"]\n";
    let folder = folder(head, &[("git", "echo fail"), ("hub", "echo")]);
    let text = async |arguments: &[&str]| {
        let output = folder.run(arguments).await;
        (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap())
    };
    assert_eq!(
        text(&["explain", "dev", "git_echo"]).await,
        (
            1,
            "tool `git_echo` for agent `dev`: denied\n  \
             1. `tools.toml:6 agents.dev.allowed_servers` does not have `git`: denied\n"
                .to_owned()
        )
    );
    assert_eq!(
        text(&["explain", "x", "git:echo"]).await,
        (
            0,
            "tool `git_echo` for agent `x`: allowed\n  \
             1. agent `x`: no policy is named so; the rules for everybody hold\n  \
             2. `tools.toml:4 exposed_tools.git` has it: allowed\n"
                .to_owned()
        )
    );
    let (code, said) = text(&["explain", "dev", "nothing"]).await;
    assert_eq!(code, 1);
    assert!(said.contains("no server offers anything named `nothing`"), "{said}");
    let (_, json) = text(&["explain", "dev", "echo", "--json"]).await;
    let json: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json.as_array().unwrap().len(), 2, "both servers have one: {json}");
}

#[tokio::test]
async fn token_is_made_with_the_lines_for_the_configuration() {
    let made = Folder::new(TOOLMAN).run(&["token", "dev", "--json"]).await;
    let made: Value = serde_json::from_slice(&made.stdout).unwrap();
    let head = format!(
        "surface = \"filter\"\n[tokens.dev]\nsha256 = \"{}\"\n[agents.dev]\n\
         tool_overrides.git = [\"fail\"]\n",
        made["sha256"].as_str().unwrap()
    );
    let mut up = Up::start(&folder(&head, &[("git", "echo fail")])).await;
    up.token = made["token"].as_str().unwrap().to_owned();
    up.initialize().await;
    let list = up.post(&request(1, "tools/list", json!({}))).await.json();
    assert_eq!(list["result"]["tools"].as_array().unwrap().len(), 1);
    assert_eq!(list["result"]["tools"][0]["name"], "git_fail");
    let wrong = Folder::new(TOOLMAN).run(&["token", "a b"]).await;
    assert_eq!(wrong.status.code(), Some(2));
}

#[tokio::test]
async fn read_only_results_are_remembered_where_that_is_wanted() {
    // TF-10
    let head = "surface = \"filter\"\n[performance_settings]\ncache_tool_responses = true\n\
        cache_duration_seconds = 60\nmax_concurrent_calls = 1\ntool_call_timeout = 30000\n";
    let mut up = Up::start(&folder(head, &[("git", "tree echo")])).await;
    up.initialize().await;
    let result = async |id, name, arguments: Value| {
        up.post(&call(id, name, arguments)).await.json()["result"].to_string()
    };
    let root = json!({"root": {"label": "a"}});
    let first = result(1, "git_tree", root.clone()).await;
    assert_eq!(result(2, "git_tree", root).await, first);
    // It does not say that it changes nothing.
    result(3, "git_echo", json!({})).await;
    result(4, "git_echo", json!({})).await;
    let bearer = format!("Bearer {}", up.token);
    let headers = [("Authorization", bearer.as_str())];
    let metrics = send(&up.address, "GET", "/metrics", &headers, "").await.body;
    let calls = metrics.lines().find(|line| {
        line.contains("calls_total{") && line.contains("\"git\"") && line.contains("\"ok\"")
    });
    assert!(calls.is_some_and(|line| line.ends_with(" 3")), "{calls:?}");
}

#[tokio::test]
async fn explain_needs_neither_variables_nor_secrets() {
    let folder = Folder::new(TOOLMAN).with_tools_toml(
        "[agents.dev]\nallowed_tools = [\"git:log\", \"hub:*\"]\n\
         [[servers]]\nname = \"git\"\nnamespace = \"g\"\ncommand = \"x\"\nenv = { TOKEN = \"${NOT_SET}\" }\n\
         [[servers]]\nnamespace = \"hub\"\ncommand = \"x\"\nenv = { TOKEN = \"${secret:NOBODY}\" }\n",
    );
    for (name, code, words) in [
        (
            "git:log",
            0,
            "server `git` is not there, so the name alone counts: it needs `NOT_SET`, which is not set",
        ),
        ("g_log", 0, "tool `g_log` for agent `dev`: allowed"),
        ("g_push", 1, "tool `g_push` for agent `dev`: denied"),
        ("hub_push", 0, "server `hub` is not there, so the name alone counts: it"),
        ("other_push", 1, "no server offers anything named `other_push`"),
    ] {
        let output = folder.run(&["explain", "dev", name]).await;
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert_eq!(output.status.code(), Some(code), "{name}: {said} {output:?}");
        assert!(said.contains(words), "{name}: {said}");
    }
    let output = folder.run(&["check"]).await;
    assert_eq!(output.status.code(), Some(2), "what serves still needs them");
}

#[tokio::test]
async fn call_that_is_cut_off_names_the_setting_as_the_file_does() {
    for (head, tail, setting) in [
        ("[performance_settings]\ntool_call_timeout = 300\n", "", "tool_call_timeout"),
        ("", "timeout = \"300ms\"\n", "timeout"),
    ] {
        let text = format!(
            "surface = \"filter\"\n{head}[[servers]]\nnamespace = \"git\"\ncommand = \"{}\"\n{tail}",
            crate::fake("never")
        );
        let mut toolman = Folder::new(TOOLMAN).with_tools_toml(&text).start().await;
        let answer = toolman.client.call("git_never", json!({})).await;
        let said = answer["structuredContent"]["error"].as_str().unwrap();
        let words = format!("was silent for 300ms; see its log, or raise `{setting}`");
        assert!(said.ends_with(&words), "{said}");
    }
}
