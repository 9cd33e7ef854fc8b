//! Ways around a ceiling that somebody may try, and that lead nowhere.

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::alone;
use testkit::http::send_raw;

use crate::up::{Up, request};
use crate::{TOOLMAN, fake, folder};

#[tokio::test]
async fn arguments_are_refused_that_the_rules_and_the_server_could_read_differently() {
    let rules = "surface = \"filter\"\n[agents.dev]\ntool_overrides.git = [\"*\"]\n\
        [[agents.dev.conditions]]\ntools = [\"git:echo\"]\n\
        arguments = { required = [\"x\"], properties = { x = { const = 1 } } }\n";
    let mut dev = folder(rules, &[("git", "echo tree")]).start_as("dev").await;
    for params in [
        r#"{"name":"git_echo","arguments":{"x":2},"Arguments":{"x":1}}"#,
        r#"{"name":"git_echo","arguments":{"x":2},"arguments":{"x":1}}"#,
        r#"{"name":"git_echo","arguments":{"x":2,"x":1}}"#,
        r#"{"name":"git_echo","arguments":null}"#,
        r#"{"name":"git_echo","arguments":[]}"#,
        r#"{"name":"git_echo"}"#,
    ] {
        dev.client
            .send(&format!(
                r#"{{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{params}}}"#
            ))
            .await;
        let answer = dev.client.answer_text("a").await;
        let refused = !answer["error"].is_null() || answer["result"]["isError"] == true;
        assert!(refused, "{params}: {answer}");
    }
    assert_eq!(dev.client.call("git_echo", json!({"x": 1})).await["x-first"], 1.1);
}

#[tokio::test]
async fn consent_is_used_up_by_one_call() {
    let rules = "surface = \"filter\"\n[security_settings]\nrequire_confirmation = [\"git:*\"]\n";
    let up = Up::start(&folder(rules, &[("git", "echo --resource r://a --prompt p")])).await;
    let ask = async |method: &str, name: &str, mut params: Value| {
        params["_meta"]["io.modelcontextprotocol/clientCapabilities"] = json!({"elicitation": {}});
        let headers =
            [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method), ("Mcp-Name", name)];
        let message = request(1, method, alone(params));
        up.send("POST", &headers, &message.to_string()).await.json()["result"].clone()
    };
    for (method, key, name) in [
        ("tools/call", "name", "git_echo"),
        ("resources/read", "uri", "git_r://a"),
        ("prompts/get", "name", "git_p"),
    ] {
        let question = ask(method, name, json!({key: name})).await;
        assert_eq!(question["resultType"], "input_required", "{method}: {question}");
        let accept = json!({key: name, "requestState": question["requestState"],
            "inputResponses": {"toolman-consent": {"action": "accept"}}});
        let done = ask(method, name, accept.clone()).await;
        assert_ne!(done["resultType"], "input_required", "{method}: {done}");
        let again = ask(method, name, accept).await;
        assert_eq!(again["resultType"], "input_required", "{method}: it was used up");
        let forged = json!({key: name, "requestState": "whatever"});
        assert_eq!(ask(method, name, forged).await["resultType"], "input_required");
    }
}

#[tokio::test]
async fn hidden_resource_is_not_to_be_had_through_a_template() {
    let rules = "surface = \"filter\"\n[agents.dev]\nallow_unknown = true\n\
        blocked_tools = [\"file:///secret\", \"file:///keys*\"]\n";
    let servers = [("git", "echo --resource file:///secret --template file:///{path}")];
    let mut dev = folder(rules, &servers).start_as("dev").await;
    let read = async |client: &mut testkit::client::LineClient, uri: &str| {
        client.request("resources/read", json!({"uri": uri})).await
    };
    assert!(read(&mut dev.client, "git_file:///open").await["error"].is_null());
    for uri in ["git_file:///secret", "file:///secret", "git_file:///keys/1", "git+file:///secret"]
    {
        let answer = read(&mut dev.client, uri).await;
        assert_eq!(answer["error"]["code"], -32002, "{uri}: {answer}");
    }
}

#[tokio::test]
async fn who_says_twice_who_he_is_is_nobody_at_all() {
    let rules = "surface = \"filter\"\n[http]\ntrusted_peers = [\"127.0.0.1\"]\n[agents.dev]\n\
        tool_overrides.git = [\"echo\"]\n[default_policy]\nallow_unknown_tools = true\n";
    let up = Up::start(&folder(rules, &[("git", "echo tree")])).await;
    assert_eq!(up.tools(&[("X-Agent-Id", "dev")]).await, ["git_echo"]);
    for more in [
        "X-Agent-Id: dev\r\nX-Agent-Id: other\r\n",
        "mcp-client-id: a\r\nmcp-client-id: b\r\n",
        "X-Agent-Id: d\u{e9}v\r\n",
        "Authorization: Bearer x\r\n",
    ] {
        let (address, token) = (&up.address, &up.token);
        let text = format!(
            "GET /tools HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\n{more}\r\n"
        );
        assert_eq!(send_raw(&up.address, text).await.status, 400, "{more}");
    }
}

#[tokio::test]
async fn limit_of_tools_counts_all_of_them_wherever_one_looks() {
    // TF-08
    let rules = "surface = \"filter\"\n[default_policy]\nallow_unknown_tools = true\n\
        max_tools_per_agent = 2\n";
    let up = Up::start(&folder(rules, &[("a", "echo"), ("b", "echo tree")])).await;
    assert_eq!(up.tools(&[]).await, ["a_echo", "b_echo"]);
    assert_eq!(up.tools(&[("X-Namespace", "b")]).await, ["b_echo"]);
    assert_eq!(up.ask("POST", "/tools/b_tree", &[("X-Namespace", "b")], "{}").await.status, 404);
}

#[tokio::test]
async fn operators_figures_are_not_for_agents() {
    let rules = "[tokens.dev]\ntoken = \"dev-0123456789abcdef\"\n";
    let mut up = Up::start(&folder(rules, &[("git", "echo")])).await;
    assert_eq!(up.ask("GET", "/metrics", &[], "").await.status, 200);
    up.token = "dev-0123456789abcdef".to_owned();
    assert_eq!(up.ask("GET", "/metrics", &[], "").await.status, 403);
}

#[tokio::test]
async fn hidden_name_takes_no_spelling_away() {
    let command = |tools: &str| fake(tools);
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nname = \"plain\"\ncommand = \"{}\"\n\
         [[servers]]\nnamespace = \"git\"\ncommand = \"{}\"\n[agents.dev]\n\
         allowed_servers = [\"git\"]\nallow_unknown = true\n",
        command("echo"),
        command("echo")
    );
    let mut dev = Folder::new(TOOLMAN).with_tools_toml(&text).start_as("dev").await;
    assert_eq!(dev.client.tool_names().await, ["git_echo"]);
    assert_eq!(dev.client.call("echo", json!({})).await["x-first"], 1.1);
}

#[tokio::test]
async fn many_grants_at_once_leave_the_catalog_alive() {
    let mut rules = "surface = \"activate\"\n[[endpoints]]\npath = \"/granted\"\n\
        surface = \"permission\"\n[permissions]\nsource = \"headers\"\nclient_id = \"derive\"\n\
        [toolsets]\n"
        .to_owned();
    for number in 0..9 {
        rules += &format!("t{number} = [\"git:echo\"]\n");
    }
    let mut up = Up::start(&folder(&rules, &[("git", "echo chatter")])).await;
    up.initialize().await;
    let on = json!({"tools_on": ["git_chatter"], "tools_off": [], "resources_on": [],
        "resources_off": []});
    up.post(&crate::up::call(1, "toolman_activate", on)).await;
    let hello =
        request(1, "initialize", json!({"protocolVersion": "2025-11-25", "capabilities": {}}));
    for number in 1..300_u32 {
        let names: Vec<_> =
            (0..9).filter(|bit| number >> bit & 1 == 1).map(|bit| format!("t{bit}")).collect();
        let granted = [("mcp-toolset-permissions", &*names.join(","))];
        let opened = up.ask("POST", "/granted", &granted, &hello.to_string()).await;
        assert_eq!(opened.status, 200, "{}", opened.body);
    }
    // The server has one tool more from now on, and everybody hears of it.
    up.post(&crate::up::call(2, "git_chatter", json!({}))).await;
    let deadline = tokio::time::Instant::now() + testkit::client::PATIENCE;
    loop {
        let list = up.post(&request(3, "tools/list", json!({}))).await.body;
        if list.contains("git_extra") {
            break;
        }
        assert!(tokio::time::Instant::now() < deadline, "{list}");
    }
}
