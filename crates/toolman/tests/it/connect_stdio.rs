//! `toolman connect-stdio`: an agent on stdio at a gateway that many share. TF-44

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::{LineClient, PATIENCE};
use testkit::fake::Script;
use testkit::processes::kill;
use testkit::web::{Dialect, Manners, Site};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::http_limits::{Service, TOKEN};
use crate::up::call;
use crate::{TOOLMAN, folder};

/// The bridge, and the agent before it.
struct Bridge {
    client: LineClient,
    child: Child,
}

impl Bridge {
    /// Starts it, before the handshake.
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    fn start(mut command: Command) -> Bridge {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let client = LineClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        Bridge { client, child }
    }

    async fn to(folder: &Folder, address: &str) -> Bridge {
        let url = format!("http://{address}");
        let mut command = folder.command(&["connect-stdio", "--url", &url, "--agent", "ada"]);
        command.env("TOOLMAN_TOKEN", TOKEN);
        let mut bridge = Bridge::start(command);
        bridge.client.initialize(json!({"elicitation": {}, "sampling": {}})).await;
        bridge
    }

    async fn leave(mut self) {
        self.client.close().await;
        self.client.closed().await;
        let status = timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(0));
    }
}

async fn end(mut service: Service, signal: &str) {
    kill(signal, service.pid);
    timeout(PATIENCE, service.child.wait()).await.unwrap().unwrap();
}

/// A gateway at an address that was used before.
async fn serve_at(folder: &Folder, address: &str) -> Service {
    let mut command = folder.command(&["serve", "--listen", address]);
    command.env("BEARER_TOKEN", TOKEN);
    Service::run(command).await
}

/// Calls a tool until it answers as it should.
async fn call_until_there(client: &mut LineClient, name: &str) {
    let called = async {
        while client.call(name, json!({"x": 1})).await["structuredContent"] != json!({"x": 1}) {}
    };
    timeout(PATIENCE, called).await.expect("it comes back");
}

#[tokio::test]
async fn agent_on_stdio_uses_the_gateway_as_if_it_was_its_own() {
    // TF-44
    let folder = folder("active_toolsets = [\"a_echo\"]", &[("a", "echo error fail progress ask")]);
    let service = Service::start(&folder, &[]).await;
    let mut bridge = Bridge::to(&folder, &service.address).await;
    let client = &mut bridge.client;
    assert_eq!(client.tool_names().await, ["a_echo", "toolman_activate"]);
    assert_eq!(client.call("a_echo", json!({"x": 1})).await["structuredContent"], json!({"x": 1}));

    // Errors are the gateway's and the server's own, under every spelling.
    let session = service.session().await;
    for (name, arguments) in
        [("a_ecko", json!({})), ("a_fail", json!({})), ("a:echo", json!({"y": 2}))]
    {
        let body = call(7, name, arguments.clone()).to_string();
        let direct = service.send("/mcp", &[("Mcp-Session-Id", &session)], &body).await.json();
        assert_eq!(client.call(name, arguments).await, direct["result"], "{name}");
    }

    // What was switched on can be called at once, and the list changes.
    let names = ["a_error", "a_progress", "a_ask"];
    let switched = client.activate(&names, &[], &[], &[]).await;
    assert_eq!(switched["isError"], false, "{switched}");
    let params = json!({"name": "a_error", "arguments": {}});
    let error = client.request("tools/call", params).await["error"].clone();
    assert_eq!((&error["code"], &error["message"]), (&json!(-32050), &json!("no")));
    client.next("notifications/tools/list_changed").await;
    let params = json!({"name": "a_progress", "arguments": {}, "_meta": {"progressToken": "t"}});
    let id = client.begin("tools/call", params).await;
    let progress = client.next("notifications/progress").await;
    assert_eq!(progress["params"]["progressToken"], "t");
    client.answer(id).await;

    // What a server asks reaches the agent, and its answer the server.
    let ask = json!({"method": "elicitation/create", "params": {"message": "sure?"}});
    let id = client.begin("tools/call", json!({"name": "a_ask", "arguments": ask})).await;
    let question = client.next("elicitation/create").await;
    assert_eq!(question["params"]["message"], "sure?");
    let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    client.send(&answer.to_string()).await;
    let answered = client.answer(id).await;
    assert_eq!(answered["result"]["structuredContent"], json!({"action": "accept"}));
    bridge.leave().await;
}

#[tokio::test]
async fn gateway_hears_who_the_agent_is() {
    let script = Script::with_tools(["echo"]);
    let site = Site::start(Manners::new(Dialect::Legacy, script)).await;
    let folder = Folder::new(TOOLMAN);
    std::fs::write(folder.path().join("token"), "from-the-file\n").unwrap();
    for (more, environment, token) in [
        (vec!["--token-file", "token"], vec![("BEARER_TOKEN", "b")], "Bearer from-the-file"),
        (vec![], vec![("BEARER_TOKEN", "b")], "Bearer b"),
        (vec![], vec![("BEARER_TOKEN", "b"), ("TOOLMAN_TOKEN", "t")], "Bearer t"),
    ] {
        let mut command = folder.command(&[&["connect-stdio"], more.as_slice()].concat());
        command.env("MCP_TOOLMAN_SERVER_URL", site.url()).env("AGENT_NAME", "ada");
        command.envs(environment);
        let mut bridge = Bridge::start(command);
        bridge.client.initialize(json!({})).await;
        bridge.client.call("echo", json!({})).await;
        bridge.leave().await;
        let seen = site.seen("tools/call").pop().unwrap();
        assert_eq!(seen.header("authorization"), Some(token));
        assert_eq!(seen.header("x-agent-id"), Some("ada"));
    }
}

#[tokio::test]
async fn restart_of_the_gateway_is_survived() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let mut service = Service::start(&folder, &[]).await;
    let address = service.address.clone();
    let mut bridge = Bridge::to(&folder, &address).await;
    for signal in ["-TERM", "-9"] {
        call_until_there(&mut bridge.client, "a_echo").await;
        end(service, signal).await;
        let failed = bridge.client.call("a_echo", json!({})).await;
        assert_eq!(failed["isError"], true, "{failed}");
        service = serve_at(&folder, &address).await;
    }
    call_until_there(&mut bridge.client, "a_echo").await;
    bridge.leave().await;
    end(service, "-TERM").await;
}

#[tokio::test]
async fn gateway_that_is_not_there_yet_is_told_in_words_and_found_later() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    // An address that nobody has: taken, and let go of.
    let free = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let mut bridge = Bridge::to(&folder, &address).await;
    let failed = bridge.client.call("a_echo", json!({})).await;
    let said = failed["content"][0]["text"].as_str().unwrap();
    assert!(said.contains("upstream `gateway` can't be reached"), "{said}");
    assert!(said.contains("see whether it runs at"), "{said}");
    let service = serve_at(&folder, &address).await;
    bridge.client.next("notifications/tools/list_changed").await;
    assert_eq!(bridge.client.tool_names().await, ["a_echo", "toolman_activate"]);
    call_until_there(&mut bridge.client, "a_echo").await;
    bridge.leave().await;
    end(service, "-TERM").await;
}

#[tokio::test]
async fn silence_of_the_gateway_ends_a_call_after_the_time_that_was_given() {
    let folder = folder("surface = \"filter\"", &[("a", "never")]);
    let service = Service::start(&folder, &[]).await;
    let mut command = folder.command(&["connect-stdio", "--url", &service.url]);
    command.env("TOOLMAN_TOKEN", TOKEN).env("MCP_WRAPPER_TIMEOUT", "0.2");
    let mut bridge = Bridge::start(command);
    bridge.client.initialize(json!({})).await;
    let silent = bridge.client.call("a_never", json!({})).await;
    let said = silent["content"][0]["text"].as_str().unwrap();
    assert!(
        said.contains(
            "upstream `gateway` was silent for 200ms; see its log, or raise `MCP_WRAPPER_TIMEOUT`"
        ),
        "{said}"
    );
    bridge.leave().await;
}

#[tokio::test]
async fn wrong_use_is_told_before_anything_is_started() {
    let folder = Folder::new(TOOLMAN);
    let there = "http://127.0.0.1:1";
    for (arguments, environment, words) in [
        (vec![], ("X", ""), "--url <URL>"),
        (vec!["--url", "localhost"], ("X", ""), "`--url` is no URL; write one such as"),
        (vec!["--url", "ftp://x"], ("X", ""), "`--url` must begin with `http://` or `https://`"),
        (vec!["--url", there, "--token-file", "no"], ("X", ""), "can't read the token file `no`"),
        (vec!["--url", there], ("TOOLMAN_TOKEN", "a\nb"), "the token holds what no header can"),
        (vec!["--url", there], ("AGENT_NAME", "a\nb"), "`--agent` holds what no header can"),
        (vec!["--url", there], ("MCP_WRAPPER_TIMEOUT", "0"), "MCP_WRAPPER_TIMEOUT is no time;"),
    ] {
        let mut command = folder.command(&[&["connect-stdio"], arguments.as_slice()].concat());
        command.env(environment.0, environment.1).stdin(Stdio::null());
        let output = command.output().await.unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
}

#[tokio::test]
async fn gateway_that_lets_nobody_in_fails_the_handshake_with_the_reason() {
    let folder = folder("", &[("a", "echo")]);
    let service = Service::start(&folder, &[]).await;
    for (token, reason) in [
        (
            Some("a-token-of-somebody-else"),
            "the gateway does not know this token (HTTP status 401)",
        ),
        (None, "the gateway wants a token (HTTP status 401); set TOOLMAN_TOKEN"),
    ] {
        let mut command = folder.command(&["connect-stdio", "--url", &service.url]);
        command.envs(token.map(|token| ("TOOLMAN_TOKEN", token)));
        let mut bridge = Bridge::start(command);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let answer = bridge.client.request("initialize", params).await;
        let said = answer["error"]["message"].as_str().unwrap();
        assert!(said.starts_with(reason), "{said}");
        bridge.client.close().await;
        let status = timeout(PATIENCE, bridge.child.wait()).await.unwrap().unwrap();
        assert_eq!(status.code(), Some(1));
    }
    end(service, "-TERM").await;
}

#[tokio::test]
async fn gateway_hears_which_program_the_agent_uses() {
    let site = Site::start(Manners::new(Dialect::Legacy, Script::with_tools(["echo"]))).await;
    let folder = Folder::new(TOOLMAN);
    let mut command = folder.command(&["connect-stdio", "--url", &site.url()]);
    command.env("TOOLMAN_TOKEN", TOKEN);
    let mut bridge = Bridge::start(command);
    bridge.client.initialize(json!({})).await;
    bridge.client.call("echo", json!({})).await;
    bridge.leave().await;
    let seen = site.seen("initialize").pop().unwrap();
    let message: Value = serde_json::from_slice(&seen.body).unwrap();
    let info = json!({"name": "test", "version": "0"});
    assert_eq!(message["params"]["clientInfo"], info);
}
