//! Whose selections are: a session's, or a proven caller's in all of its sessions and requests, also after a restart.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::{Folder, Running};
use testkit::client::{PATIENCE, alone};
use testkit::http::{HttpAnswer, send};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::folder;
use crate::http_limits::{Service, TOKEN};
use crate::up::{Up, request};

const SERVERS: [(&str, &str); 2] = [("git", "echo fail tree"), ("hub", "echo")];

const TOKENS: &str = "[tokens.ada]\ntoken = \"ada-0123456789abcdef\"\n\
    [tokens.bob]\ntoken = \"bob-0123456789abcdef\"\n";

const ADA: &str = "ada-0123456789abcdef";
const BOB: &str = "bob-0123456789abcdef";

/// A client over HTTP, with a session or without one.
struct Web {
    address: String,
    token: String,
    path: String,
    program: &'static str,
    session: Option<String>,
}

impl Web {
    /// One whose requests stand alone.
    fn alone(up: &Up, token: &str, path: &str, program: &'static str) -> Web {
        let (address, token, path) = (up.address.clone(), token.to_owned(), path.to_owned());
        Web { address, token, path, program, session: None }
    }

    async fn open(up: &Up, token: &str, path: &str) -> Web {
        Web::open_as(up, token, path, "test").await
    }

    async fn open_as(up: &Up, token: &str, path: &str, program: &'static str) -> Web {
        let mut web = Web::alone(up, token, path, program);
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": program, "version": "0"}});
        let answer = web.post(&[], &request(0, "initialize", params)).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        web.session = answer.header("mcp-session-id").map(str::to_owned);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(web.post(&[], &initialized).await.status, 202);
        web
    }

    async fn post(&self, more: &[(&str, &str)], message: &Value) -> HttpAnswer {
        let bearer = format!("Bearer {}", self.token);
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(self.session.as_deref().map(|id| ("Mcp-Session-Id", id)));
        headers.extend(more);
        send(&self.address, "POST", &self.path, &headers, &message.to_string()).await
    }

    async fn ask(&self, method: &str, mut params: Value) -> Value {
        if self.session.is_some() {
            return self.post(&[], &request(1, method, params)).await.json();
        }
        let name = params["name"].as_str().map(str::to_owned);
        params = alone(params);
        let info = json!({"name": self.program, "version": "0"});
        params["_meta"]["io.modelcontextprotocol/clientInfo"] = info;
        let mut headers = vec![("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
        headers.extend(name.as_deref().map(|name| ("Mcp-Name", name)));
        self.post(&headers, &request(1, method, params)).await.json()
    }

    /// The tools that are listed, without control tools.
    async fn tools(&self) -> Vec<String> {
        let list = self.ask("tools/list", json!({})).await;
        let tools = list["result"]["tools"].as_array().expect("there is a list");
        let names = tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned());
        let is_control = |name: &str| name.starts_with("toolman_") || name.contains("toolset");
        names.filter(|name| !is_control(name) && !name.contains("list")).collect()
    }

    async fn call(&self, tool: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": tool, "arguments": arguments})).await;
        answer["result"].clone()
    }

    async fn activate(&self, tool: &str) {
        let lists =
            json!({"tools_on": [tool], "tools_off": [], "resources_on": [], "resources_off": []});
        let result = self.call("toolman_activate", lists).await;
        assert_ne!(result["isError"], true, "{result}");
    }

    /// Opens a stream for what belongs to no request.
    async fn listen(&self) -> Stream {
        let mut stream = TcpStream::connect(&self.address).await.unwrap();
        let Web { address, token, path, .. } = self;
        let session = self.session.as_deref().unwrap();
        let head = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\n\
             Authorization: Bearer {token}\r\nMcp-Session-Id: {session}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut stream = Stream { stream, text: String::new() };
        stream.until("text/event-stream", 1).await;
        stream
    }
}

/// An open stream, and what it has brought.
struct Stream {
    stream: TcpStream,
    text: String,
}

const CHANGED: &str = "notifications/tools/list_changed";

impl Stream {
    /// Reads until it has brought some words so often.
    async fn until(&mut self, words: &str, times: usize) {
        let mut chunk = [0; 4096];
        while self.text.matches(words).count() < times {
            let count = timeout(PATIENCE, self.stream.read(&mut chunk)).await;
            let count = count.expect("the words come").unwrap();
            assert!(count > 0, "it has ended: {}", self.text);
            self.text += &String::from_utf8_lossy(&chunk[..count]);
        }
    }

    /// How often lists have changed, by what is there already.
    fn changes(&mut self) -> usize {
        let mut chunk = [0; 4096];
        while let Ok(count @ 1..) = self.stream.try_read(&mut chunk) {
            self.text += &String::from_utf8_lossy(&chunk[..count]);
        }
        self.text.matches(CHANGED).count()
    }
}

#[tokio::test]
async fn session_has_several_streams_and_each_message_comes_on_one() {
    // TD-103
    let up = Up::start(&folder("", &SERVERS)).await;
    let client = Web::open(&up, &up.token, "/mcp").await;
    let (mut first, mut second) = (client.listen().await, client.listen().await);
    client.activate("git_echo").await;
    second.until(CHANGED, 1).await;
    drop(second);
    // As soon as it is noticed that the second one is gone, the first one is told.
    let mut tools = ["git_fail", "git_tree", "hub_echo"].into_iter();
    while first.changes() == 0 {
        sleep(Duration::from_millis(50)).await;
        client.activate(tools.next().expect("the first stream goes on")).await;
    }
    assert_eq!(first.changes(), 1);
}

#[tokio::test]
async fn sessions_of_one_caller_share_what_it_has_chosen() {
    let head = format!("selection = \"principal\"\n{TOKENS}");
    let up = Up::start(&folder(&head, &SERVERS)).await;
    let one = Web::open(&up, ADA, "/mcp").await;
    let two = Web::open(&up, ADA, "/mcp").await;
    let other = Web::open(&up, BOB, "/mcp").await;
    let (mut heard, mut foreign) = (two.listen().await, other.listen().await);
    one.activate("git_echo").await;
    heard.until(CHANGED, 1).await;
    assert_eq!(two.tools().await, ["git_echo"]);
    two.activate("hub_echo").await;
    for client in [&one, &two, &Web::open(&up, ADA, "/mcp").await] {
        assert_eq!(client.tools().await, ["git_echo", "hub_echo"]);
    }
    let modern = Web::alone(&up, ADA, "/mcp", "test");
    assert_eq!(modern.tools().await, ["git_echo", "hub_echo"], "in both eras the same");
    modern.activate("git_tree").await;
    heard.until(CHANGED, 3).await;
    assert_eq!(one.tools().await, ["git_echo", "git_tree", "hub_echo"]);
    assert_eq!((other.tools().await.len(), foreign.changes()), (0, 0), "nobody else's");
}

#[tokio::test]
async fn sessions_have_selections_of_their_own_unless_it_is_said() {
    let up = Up::start(&folder(TOKENS, &SERVERS)).await;
    let one = Web::open(&up, ADA, "/mcp").await;
    one.activate("git_echo").await;
    assert!(Web::open(&up, ADA, "/mcp").await.tools().await.is_empty());
    let programs = ["one", "two"].map(|program| Web::alone(&up, ADA, "/mcp", program));
    programs[0].activate("hub_echo").await;
    assert_eq!(
        programs[1].tools().await,
        ["hub_echo"],
        "a caller is one, whatever it calls itself"
    );
    assert_eq!(one.tools().await, ["git_echo"]);
}

#[tokio::test]
async fn clients_of_one_token_can_be_told_apart() {
    let by_name = format!("selection = \"principal\"\ndistinguish_clients = \"name\"\n{TOKENS}");
    let up = Up::start(&folder(&by_name, &SERVERS)).await;
    Web::alone(&up, ADA, "/mcp", "cursor").activate("git_echo").await;
    assert_eq!(Web::open_as(&up, ADA, "/mcp", "cursor").await.tools().await, ["git_echo"]);
    assert!(Web::open_as(&up, ADA, "/mcp", "editor").await.tools().await.is_empty());
    assert!(Web::alone(&up, ADA, "/mcp", "editor").tools().await.is_empty());
    assert!(Web::alone(&up, BOB, "/mcp", "cursor").tools().await.is_empty());
    drop(up);
    let by_id = format!("distinguish_clients = \"id\"\n{TOKENS}");
    let up = Up::start(&folder(&by_id, &SERVERS)).await;
    Web::alone(&up, ADA, "/mcp?client=a%20b", "test").activate("git_echo").await;
    assert_eq!(Web::alone(&up, ADA, "/mcp?client=a%20b", "x").tools().await, ["git_echo"]);
    assert_eq!(Web::open(&up, ADA, "/mcp?client=a%20b").await.tools().await, ["git_echo"]);
    assert!(Web::alone(&up, ADA, "/mcp?client=c", "test").tools().await.is_empty());
    assert!(Web::open(&up, ADA, "/mcp").await.tools().await.is_empty(), "it gives no id");
    let bearer = format!("Bearer {ADA}");
    let headers = [("Authorization", bearer.as_str()), ("mcp-client-id", "a b")];
    let list = send(&up.address, "GET", "/tools", &headers, "").await.json();
    assert!(list.to_string().contains("git_echo"), "{list}");
}

/// Waits until a file of the data directory has some words.
async fn kept(folder: &Folder, words: &str) {
    let path = folder.path().join("data/toolman/selections.json");
    let is_there = async {
        while !std::fs::read_to_string(&path).is_ok_and(|text| text.contains(words)) {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, is_there).await.expect("it is kept");
}

#[tokio::test]
async fn what_a_caller_has_chosen_outlives_a_killed_process() {
    let head = format!("selection = \"principal\"\n{TOKENS}");
    let folder = folder(&head, &SERVERS);
    let up = Up::start(&folder).await;
    Web::open(&up, ADA, "/mcp").await.activate("git_echo").await;
    Web::alone(&up, BOB, "/mcp", "test").activate("hub_echo").await;
    kept(&folder, "hub").await;
    up.kill().await;
    let up = Up::start(&folder).await;
    assert_eq!(Web::open(&up, ADA, "/mcp").await.tools().await, ["git_echo"]);
    let bob = Web::alone(&up, BOB, "/mcp", "test");
    assert_eq!(bob.tools().await, ["hub_echo"]);
    // What was kept is where one goes on from.
    bob.activate("git_tree").await;
    kept(&folder, "tree").await;
    assert_eq!(Web::open(&up, BOB, "/mcp").await.tools().await, ["git_tree", "hub_echo"]);
}

#[tokio::test]
async fn agent_on_stdin_goes_on_where_it_was_and_nobody_else_does() {
    let folder = folder("", &SERVERS);
    let chosen = async |mut running: Running, wanted: Option<&str>| {
        if let Some(tool) = wanted {
            running.client.activate(&[tool], &[], &[], &[]).await;
        }
        let names = running.client.tool_names().await;
        running.client.close().await;
        running.ended().await;
        names[1..].to_vec()
    };
    assert_eq!(chosen(folder.start_as("ada").await, Some("git_echo")).await, ["git_echo"]);
    assert_eq!(chosen(folder.start().await, Some("git_fail")).await, ["git_fail"]);
    assert_eq!(chosen(folder.start_as("ada").await, None).await, ["git_echo"]);
    assert!(chosen(folder.start_as("bob").await, None).await.is_empty());
    assert!(chosen(folder.start().await, None).await.is_empty(), "who has no name has a session");
    // A file that can't be read costs nobody the start, and is not written over.
    let file = folder.path().join("data/toolman/selections.json");
    std::fs::write(&file, "{").unwrap();
    assert_eq!(chosen(folder.start_as("ada").await, Some("git_tree")).await, ["git_tree"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "{");
}

#[tokio::test]
async fn choice_while_connecting_is_what_a_client_begins_with() {
    let head =
        format!("active_toolsets = [\"git_tree\"]\n[toolsets]\nread = [\"*echo\"]\n{TOKENS}");
    let up = Up::start(&folder(&head, &SERVERS)).await;
    let client = Web::open(&up, ADA, "/mcp?tools=git_fail").await;
    assert_eq!(client.tools().await, ["git_fail"], "in place of what the file starts with");
    client.activate("hub_echo").await;
    assert_eq!(client.tools().await, ["git_fail", "hub_echo"], "the rest can be had");
    let description = client.ask("tools/list", json!({})).await.to_string();
    assert!(description.contains("* git_fail") && description.contains("  git_tree"));
    assert_eq!(Web::open(&up, ADA, "/mcp/read").await.tools().await, ["git_echo", "hub_echo"]);
    let alone = Web::alone(&up, ADA, "/mcp?toolsets=read&tools=git.fail", "test");
    assert_eq!(alone.tools().await, ["git_echo", "git_fail", "hub_echo"]);
    assert_eq!(Web::open(&up, ADA, "/mcp").await.tools().await, ["git_tree"]);
}

#[tokio::test]
async fn choice_while_connecting_enables_toolsets() {
    let head = format!(
        "surface = \"dynamic\"\n[toolsets]\nread = [\"*echo\"]\ntrees = [\"git:tree\", \"git:fail\"]\n\
         secret = [\"git:fail\"]\n[startup]\ntoolsets = [\"trees\"]\n\
         [exposure_policy]\ndenylist = [\"secret\"]\n{TOKENS}"
    );
    let up = Up::start(&folder(&head, &SERVERS)).await;
    let client = Web::open(&up, ADA, "/mcp?toolsets=read,none").await;
    assert_eq!(client.tools().await, ["read.echo"], "in place of what the file starts with");
    let enabled = client.call("enable_toolset", json!({"name": "trees"})).await;
    assert_eq!(enabled["structuredContent"]["success"], true, "{enabled}");
    assert_eq!(client.tools().await, ["read.echo", "trees.fail", "trees.tree"]);
    // A single tool is one of the first toolset that may have it.
    let single = Web::open(&up, ADA, "/mcp?tools=git_fail").await;
    assert_eq!(single.tools().await, ["trees.fail"]);
    assert_eq!(single.call("trees.fail", json!({})).await["content"][0]["text"], "it failed");
    assert_eq!(Web::alone(&up, ADA, "/mcp/trees", "x").tools().await, ["trees.fail", "trees.tree"]);
    assert_eq!(Web::open(&up, ADA, "/mcp").await.tools().await, ["trees.fail", "trees.tree"]);
}

#[tokio::test]
async fn choice_of_what_is_hidden_is_a_choice_of_nothing() {
    let rules = format!(
        "[toolsets]\nsecret = [\"hub:*\"]\nread = [\"git:echo\"]\n{TOKENS}\
         [agents.ada]\nallowed_servers = [\"git\"]\nallow_unknown = true\n"
    );
    for surface in ["activate", "dynamic", "filter", "toolset"] {
        let head = format!("surface = \"{surface}\"\n{rules}");
        let up = Up::start(&folder(&head, &SERVERS)).await;
        let bearer = format!("Bearer {ADA}");
        let answer = async |path: &str, more: &[(&str, &str)]| {
            let modern = [("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/list")];
            let headers = [&[("Authorization", bearer.as_str())], &modern[..], more].concat();
            let list = request(1, "tools/list", alone(json!({}))).to_string();
            let answer = send(&up.address, "POST", path, &headers, &list).await;
            (answer.status, answer.header("content-type").map(str::to_owned), answer.body)
        };
        assert_eq!(answer("/mcp/read", &[]).await.0, 200, "{surface}");
        for (hidden, none) in [
            ("/mcp/secret", "/mcp/nothing"),
            ("/mcp?toolsets=secret", "/mcp?toolsets=nothing"),
            ("/mcp?tools=hub_echo", "/mcp?tools=hub_none"),
        ] {
            let hidden = answer(hidden, &[]).await;
            assert_eq!(hidden.0, 404, "{surface}: {hidden:?}");
            assert_eq!(hidden, answer(none, &[]).await, "{surface}");
        }
        let hidden = answer("/mcp", &[("X-MCP-Toolsets", "secret")]).await;
        assert_eq!(hidden, answer("/mcp", &[("X-MCP-Tools", "nothing")]).await, "{surface}");
    }
}

#[tokio::test]
async fn clients_of_toolception_have_a_state_each() {
    // TC-02, TC-15, TC-16, TC-17, TC-19, TC-27
    let options = json!({
        "servers": {"git": {"command": crate::example("fake_upstream"), "args": ["echo", "fail"]}},
        "catalog": {"read": {"name": "Reading", "description": "d", "tools": ["git_echo"]}},
        "http": {"basePath": "/gate/"}
    });
    let folder = Folder::new(crate::TOOLMAN);
    let start = async |options: &Value| {
        std::fs::write(folder.path().join("options.json"), options.to_string()).unwrap();
        Service::start(&folder, &["--config", "options.json"]).await
    };
    let service = start(&options).await;
    let id = |id: &'static str| [("mcp-client-id", id)];
    let open = async |path: &str, more: &[(&str, &str)]| {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let answer = service.send(path, more, &request(0, "initialize", params).to_string()).await;
        let session = answer.header("mcp-session-id").unwrap().to_owned();
        let more = [more, &[("Mcp-Session-Id", session.as_str())]].concat();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(service.send(path, &more, &initialized.to_string()).await.status, 202);
        session
    };
    let session = open("/gate/mcp", &id("a")).await;
    let enable = json!({"name": "enable_toolset", "arguments": {"name": "read"}});
    let enable = request(1, "tools/call", enable).to_string();
    let enabled = service.send("/gate/mcp", &[("Mcp-Session-Id", &session)], &enable).await;
    assert_eq!(enabled.json()["result"]["structuredContent"]["success"], true, "{enabled:?}");
    let active = async |path: &str, more: &[(&str, &str)]| {
        service.send(path, more, "").await.json()["activeToolsets"].clone()
    };
    assert_eq!(active("/gate/tools", &id("a")).await, json!(["read"]));
    assert_eq!(active("/tools", &[("Mcp-Session-Id", &session)]).await, json!(["read"]));
    assert_eq!(active("/gate/tools", &id("b")).await, json!([]));
    assert_eq!(active("/gate/tools", &[]).await, json!([]));
    let other = open("/mcp", &[]).await;
    assert_eq!(active("/tools", &[("Mcp-Session-Id", &other)]).await, json!([]));
    let list = json!({"name": "list_toolsets", "arguments": {}});
    let list = request(2, "tools/call", list).to_string();
    let listed = service.send("/mcp", &[("Mcp-Session-Id", &other)], &list).await.json();
    let about = &listed["result"]["structuredContent"]["toolsets"][0];
    assert_eq!((&about["key"], &about["definition"]["name"]), (&json!("read"), &json!("Reading")));
    assert_eq!(service.send("/gate/healthz", &[], "").await.status, 200);
    assert_eq!(service.send("/gatehealthz", &[], "").await.status, 404);
    drop(service);
    let mut strict = options.clone();
    strict["distinguish_clients"] = json!("required-id");
    let service = start(&strict).await;
    for method in ["POST", "GET", "DELETE"] {
        let bearer = format!("Bearer {TOKEN}");
        let headers = [("Authorization", bearer.as_str())];
        let answer = send(&service.address, method, "/mcp", &headers, "").await;
        assert_eq!(answer.status, 400, "{method}");
        assert!(answer.body.contains("name your client in `mcp-client-id`"), "{answer:?}");
    }
    assert_eq!(service.send("/tools", &id("a"), "").await.status, 200);
}
