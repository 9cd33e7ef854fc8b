//! `toolman up`: the newcomer's command, over HTTP.

use std::process::Stdio;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::{HttpAnswer, send, send_raw};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::Child;
use tokio::time::timeout;

use crate::{TOOLMAN, folder};

/// A running `toolman up` and what a client needs to reach it.
pub struct Up {
    child: Child,
    banner: String,
    pub address: String,
    pub token: String,
    pub session: Option<String>,
}

impl Up {
    pub async fn start(folder: &Folder) -> Up {
        Up::start_with(folder, &[]).await
    }

    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    pub async fn start_with(folder: &Folder, environment: &[(&str, &str)]) -> Up {
        let mut command = folder.command(&["up", "--listen", "127.0.0.1:0"]);
        command.envs(environment.iter().copied());
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut banner = String::new();
        while let Some(line) = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap() {
            banner += &format!("{line}\n");
            if line.starts_with("Stop with") {
                break;
            }
        }
        let url = banner.lines().next().unwrap().rsplit(' ').next().unwrap();
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp").to_owned();
        let token = banner.split("Token:\n").nth(1).unwrap().lines().next().unwrap().trim();
        Up { child, address, token: token.to_owned(), banner, session: None }
    }

    pub fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    /// Ends it as nobody could prepare for.
    pub async fn kill(mut self) {
        self.child.kill().await.unwrap();
    }

    /// What it has said.
    pub fn banner(&self) -> &str {
        &self.banner
    }

    pub async fn post(&self, message: &Value) -> HttpAnswer {
        self.send("POST", &[], &message.to_string()).await
    }

    /// Any request to the endpoint, with the token and the session.
    pub async fn send(&self, method: &str, more: &[(&str, &str)], body: &str) -> HttpAnswer {
        let authorization = format!("Bearer {}", self.token);
        let mut headers = vec![("Authorization", authorization.as_str())];
        headers.extend(self.session.as_deref().map(|id| ("Mcp-Session-Id", id)));
        headers.extend(more);
        send(&self.address, method, "/mcp", &headers, body).await
    }

    /// Any request to any path, with the token.
    pub async fn ask(
        &self,
        method: &str,
        path: &str,
        more: &[(&str, &str)],
        body: &str,
    ) -> HttpAnswer {
        let authorization = format!("Bearer {}", self.token);
        let mut headers = vec![("Authorization", authorization.as_str())];
        headers.extend(more);
        send(&self.address, method, path, &headers, body).await
    }

    /// The names of the tools that REST lists for a request with these headers.
    pub async fn tools(&self, headers: &[(&str, &str)]) -> Vec<String> {
        let list = self.ask("GET", "/tools", headers, "").await.json();
        let tools = list["tools"].as_array().expect("there is a list");
        tools.iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
    }

    pub async fn initialize(&mut self) {
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let answer = self.post(&request(0, "initialize", params)).await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.json()["result"]["protocolVersion"], "2025-11-25");
        self.session = answer.header("mcp-session-id").map(str::to_owned);
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = self.post(&initialized).await;
        assert_eq!((answer.status, answer.body.as_str()), (202, ""));
    }
}

#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub fn request(id: u64, method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

#[expect(clippy::needless_pass_by_value, reason = "reads better where it is called")]
pub fn call(id: u64, name: &str, arguments: Value) -> Value {
    request(id, "tools/call", json!({"name": name, "arguments": arguments}))
}

#[tokio::test]
async fn newcomer_without_a_file_gets_a_demo() {
    let folder = Folder::new(TOOLMAN);
    let mut up = Up::start(&folder).await;
    assert!(up.banner.contains("the built-in demo"), "{}", up.banner);
    assert!(up.banner.contains("claude mcp add --transport http toolman"), "{}", up.banner);
    up.initialize().await;
    let names = up.post(&request(1, "tools/list", json!({}))).await.json();
    assert_eq!(names["result"]["tools"][1]["name"], "demo_echo");
    let said = up.post(&call(2, "demo_echo", json!({"text": "hi"}))).await.json();
    assert_eq!(said["result"]["content"][0]["text"], "hi");
    let lists =
        json!({"tools_on": ["demo_add"], "tools_off": [], "resources_on": [], "resources_off": []});
    up.post(&call(3, "toolman_activate", lists)).await;
    let sum = up.post(&call(4, "demo_add", json!({"a": 2, "b": 40}))).await.json();
    assert_eq!(sum["result"]["content"][0]["text"], "42");
    let guide =
        up.post(&request(5, "resources/read", json!({"uri": "demo_guide://toolman"}))).await;
    assert!(guide.body.contains("tools.toml"));
}

#[tokio::test]
async fn file_of_the_folder_is_served_and_the_token_stays() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "echo")]);
    let mut up = Up::start(&folder).await;
    assert!(up.banner.contains("from tools.toml"), "{}", up.banner);
    up.initialize().await;
    assert_eq!(up.post(&call(1, "a_echo", json!({}))).await.json()["result"]["x-first"], 1.1);
    let again = Up::start(&folder).await;
    assert_eq!(again.token, up.token);
}

#[tokio::test]
async fn stranger_is_not_let_in() {
    let up = Up::start(&Folder::new(TOOLMAN)).await;
    let bearer = format!("Bearer {}", up.token);
    let ping = request(1, "ping", json!({})).to_string();
    let own = ("Authorization", bearer.as_str());
    for (headers, status) in [
        (vec![], 401),
        (vec![("Authorization", "Bearer wrong")], 401),
        (vec![("Authorization", "Basic wrong")], 401),
        (vec![own, ("Host", "evil.example")], 403),
        (vec![own, ("Origin", "https://evil.example")], 403),
        (vec![own, ("Origin", "http://localhost:3000")], 400),
        (vec![own, ("Mcp-Session-Id", "nobody")], 404),
        (vec![own, ("Content-Type", "text/plain")], 415),
        (vec![own, ("MCP-Protocol-Version", "1999-01-01")], 400),
    ] {
        let answer = send(&up.address, "POST", "/mcp", &headers, &ping).await;
        assert_eq!(answer.status, status, "{headers:?}");
        assert!(!answer.json()["error"]["message"].as_str().unwrap().is_empty());
        if status == 401 {
            let wrong = r#"Bearer error="invalid_token""#;
            let challenge = if headers.is_empty() { "Bearer" } else { wrong };
            assert_eq!(answer.header("www-authenticate"), Some(challenge));
        }
    }
    for path in ["/", "/MCP", "//mcp", "/mcp/x"] {
        assert_eq!(send(&up.address, "POST", path, &[own], &ping).await.status, 404, "{path}");
    }
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: {}\r\nAuthorization: {bearer}\r\nAccept: */*\r\n\
         Content-Type: application/json\r\nContent-Length: 104857600\r\n\r\n",
        up.address
    );
    assert_eq!(send_raw(&up.address, &head).await.status, 413, "before the body is sent");
    assert_eq!(send(&up.address, "POST", "/mcp", &[own], "{oops").await.status, 400);
    assert_eq!(send(&up.address, "PUT", "/mcp", &[own], "").await.status, 405);
}

#[tokio::test]
async fn answer_with_progress_before_it_is_a_stream() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "progress")]);
    let mut up = Up::start(&folder).await;
    up.initialize().await;
    let params = json!({"name": "a_progress", "_meta": {"progressToken": "p"}});
    let answer = up.post(&request(1, "tools/call", params)).await;
    assert_eq!(answer.header("content-type"), Some("text/event-stream"));
    let events = answer.events();
    assert_eq!(events.len(), 4);
    assert_eq!(events[0]["params"]["progressToken"], "p");
    assert_eq!(events[3]["result"]["content"][0]["text"], "ok");
}

#[tokio::test]
async fn session_streams_changes_and_ends() {
    // TA-74
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "grow")]);
    let mut up = Up::start(&folder).await;
    up.initialize().await;
    let session = up.session.clone().unwrap();
    let bearer = format!("Bearer {}", up.token);
    let mut stream = tokio::net::TcpStream::connect(&up.address).await.unwrap();
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: {}\r\nAccept: text/event-stream\r\nAuthorization: {bearer}\r\n\
         Mcp-Session-Id: {session}\r\n\r\n",
        up.address
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut heard = String::new();
    let mut chunk = [0; 1024];
    let count = stream.read(&mut chunk).await.unwrap();
    heard += &String::from_utf8_lossy(&chunk[..count]);
    up.post(&call(1, "a_grow", json!({}))).await;
    while !heard.contains("notifications/tools/list_changed") {
        let count = timeout(PATIENCE, stream.read(&mut chunk)).await.unwrap().unwrap();
        assert!(count > 0, "{heard}");
        heard += &String::from_utf8_lossy(&chunk[..count]);
    }
    let headers = [("Authorization", bearer.as_str()), ("Mcp-Session-Id", session.as_str())];
    assert_eq!(send(&up.address, "DELETE", "/mcp", &headers, "").await.status, 204);
    assert_eq!(send(&up.address, "DELETE", "/mcp", &headers, "").await.status, 404);
    assert_eq!(up.post(&request(2, "ping", json!({}))).await.status, 404);
    let rest = timeout(PATIENCE, stream.read_to_end(&mut Vec::new())).await;
    rest.unwrap().expect("the stream ends with its session");
}

#[tokio::test]
async fn signal_ends_it_at_once_but_for_calls_under_way() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "slow --ignore-eof")]);
    let mut up = Up::start(&folder).await;
    up.initialize().await;
    let _quiet = crate::MACHINE.write().await;
    // One connection that says nothing, and one call that takes its time.
    let _silent = tokio::net::TcpStream::connect(&up.address).await.unwrap();
    let slow = call(1, "a_slow", json!({"ms": 600}));
    let pid = up.child.id().unwrap();
    let (answer, ()) = tokio::join!(up.post(&slow), async {
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        testkit::processes::kill("-TERM", pid);
    });
    assert_eq!(answer.json()["result"]["content"][0]["text"], "ok");
    let ended = timeout(std::time::Duration::from_secs(2), up.child.wait()).await;
    assert!(ended.expect("nothing else is waited for").unwrap().success());
}

#[tokio::test]
async fn wrong_uses_are_explained() {
    let folder = Folder::new(TOOLMAN);
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for (listen, words) in [
        (address.as_str(), "choose another port with `--listen 127.0.0.1:PORT`"),
        ("0.0.0.0:0", "is not an address of this machine alone; use `toolman serve`"),
    ] {
        let output = folder.run(&["up", "--listen", listen]).await;
        assert_eq!(output.status.code(), Some(2));
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert!(stderr.contains(words), "{stderr}");
    }
    let output = folder.command(&["up"]).env("BEARER_TOKEN", "change_me").output().await.unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("BEARER_TOKEN is too weak"));
}

#[tokio::test]
async fn client_that_leaves_cancels_its_call() {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", "never seen")]);
    let mut up = Up::start(&folder).await;
    up.initialize().await;
    let message = call(1, "a_never", json!({}));
    let leaving = timeout(std::time::Duration::from_millis(500), up.post(&message)).await;
    assert!(leaving.is_err(), "it is still under way");
    let deadline = tokio::time::Instant::now() + PATIENCE;
    loop {
        let seen = up.post(&call(3, "a_seen", json!({}))).await.json();
        if seen.to_string().contains("notifications/cancelled") {
            return;
        }
        assert!(tokio::time::Instant::now() < deadline, "{seen}");
    }
}

#[tokio::test]
async fn silent_connection_is_closed() {
    let up = Up::start(&Folder::new(TOOLMAN)).await;
    for first in ["", "P"] {
        let mut stream = tokio::net::TcpStream::connect(&up.address).await.unwrap();
        stream.write_all(first.as_bytes()).await.unwrap();
        let within = std::time::Duration::from_secs(15);
        let closed = timeout(within, stream.read_to_end(&mut Vec::new())).await;
        assert!(closed.is_ok(), "{first:?}");
    }
}
