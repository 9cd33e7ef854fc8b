//! A client that speaks raw JSON-RPC, one message a line, over any pair of pipes.

use std::collections::VecDeque;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::mpsc;
use tokio::time::timeout;

/// Longest wait for anything. Tests never wait for time to pass, only for this not to.
pub const PATIENCE: Duration = Duration::from_secs(30);

/// Parameters with what every request of the modern era must say of itself, where it is not said.
pub fn alone(mut params: Value) -> Value {
    let said = [
        ("io.modelcontextprotocol/protocolVersion", json!("2026-07-28")),
        ("io.modelcontextprotocol/clientCapabilities", json!({})),
        ("io.modelcontextprotocol/clientInfo", json!({"name": "test", "version": "0"})),
    ];
    for (key, value) in said {
        if params["_meta"][key].is_null() {
            params["_meta"][key] = value;
        }
    }
    params
}

pub struct LineClient {
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    lines: mpsc::UnboundedReceiver<String>,
    /// Messages that were read while waiting for others.
    kept: VecDeque<String>,
    last_id: u64,
}

impl LineClient {
    pub fn new(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
    ) -> LineClient {
        let (sender, lines) = mpsc::unbounded_channel();
        tokio::spawn(async move {
            let mut reader = BufReader::new(reader).lines();
            while let Ok(Some(line)) = reader.next_line().await {
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        let writer: Option<Box<dyn AsyncWrite + Send + Unpin>> = Some(Box::new(writer));
        LineClient { writer, lines, kept: VecDeque::new(), last_id: 0 }
    }

    /// The handshake, with these capabilities.
    pub async fn initialize(&mut self, capabilities: Value) -> Value {
        self.initialize_as("test", capabilities).await
    }

    /// The same as the program of this name.
    pub async fn initialize_as(&mut self, program: &str, capabilities: Value) -> Value {
        let result = self
            .request(
                "initialize",
                json!({
                    "protocolVersion": "2025-11-25",
                    "capabilities": capabilities,
                    "clientInfo": {"name": program, "version": "0"},
                }),
            )
            .await;
        self.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
        result["result"].clone()
    }

    /// Sends a line as it is.
    pub async fn send(&mut self, line: &str) {
        let writer = self.writer.as_mut().expect("the client is open");
        writer.write_all(format!("{line}\n").as_bytes()).await.unwrap();
        writer.flush().await.unwrap();
    }

    /// Sends a request and gives its id.
    pub async fn begin(&mut self, method: &str, params: Value) -> u64 {
        self.last_id += 1;
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        self.send(&request.to_string()).await;
        id
    }

    /// Sends a request and waits for the whole answer.
    pub async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin(method, params).await;
        self.answer(id).await
    }

    /// Sends a request of the modern era and gives its id.
    pub async fn begin_alone(&mut self, method: &str, params: Value) -> u64 {
        self.begin(method, alone(params)).await
    }

    /// Sends a request of the modern era and waits for the whole answer.
    pub async fn ask_alone(&mut self, method: &str, params: Value) -> Value {
        let id = self.begin_alone(method, params).await;
        self.answer(id).await
    }

    /// Makes a request and waits for its answer, then for that to one that was begun before: in this order.
    pub async fn both(&mut self, method: &str, begun: u64) -> (Value, Value) {
        let answer = self.request(method, json!({})).await;
        let is_early = self.kept.iter().any(|line| Head::of(line).id == Some(begun.to_string()));
        assert!(!is_early, "the answer to {begun} has come before");
        (answer, self.answer(begun).await)
    }

    /// The answer to a request that was begun.
    pub async fn answer(&mut self, id: u64) -> Value {
        serde_json::from_str(&self.answer_line(id).await).unwrap()
    }

    /// The same, as it was written.
    pub async fn answer_line(&mut self, id: u64) -> String {
        let id = id.to_string();
        self.wait_for(&format!("the answer to {id}"), |head| {
            head.id.as_ref() == Some(&id) && head.method.is_none()
        })
        .await
    }

    /// The answer to a request with a textual id.
    pub async fn answer_text(&mut self, id: &str) -> Value {
        let quoted = mcp::json::quote(id);
        let line = self.wait_for(id, |head| head.id.as_ref() == Some(&quoted)).await;
        serde_json::from_str(&line).unwrap()
    }

    /// The next error.
    pub async fn next_error(&mut self) -> Value {
        let line = self.wait_for("an error", |head| head.is_error).await;
        serde_json::from_str(&line).unwrap()
    }

    /// The next batch of answers, as it was written.
    pub async fn next_array(&mut self) -> String {
        self.wait_for("an array", |head| head.is_array).await
    }

    /// Calls a tool and gives the result.
    pub async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        self.request("tools/call", params).await["result"].clone()
    }

    /// Switches items on and off; gives the result.
    pub async fn activate(
        &mut self,
        tools_on: &[&str],
        tools_off: &[&str],
        resources_on: &[&str],
        resources_off: &[&str],
    ) -> Value {
        let lists = json!({
            "tools_on": tools_on, "tools_off": tools_off,
            "resources_on": resources_on, "resources_off": resources_off,
        });
        self.call("toolman_activate", lists).await
    }

    pub async fn tool_names(&mut self) -> Vec<String> {
        self.names("tools/list", "tools", "name").await
    }

    pub async fn names(&mut self, method: &str, member: &str, key: &str) -> Vec<String> {
        let answer = self.request(method, json!({})).await;
        let items = answer["result"][member].as_array().unwrap_or_else(|| panic!("{answer}"));
        items.iter().map(|item| item[key].as_str().unwrap().to_owned()).collect()
    }

    /// The description of `toolman_activate`.
    pub async fn activation_catalog(&mut self) -> String {
        let answer = self.request("tools/list", json!({})).await;
        answer["result"]["tools"][0]["description"].as_str().unwrap().to_owned()
    }

    /// The next message with this method: a notification, or a request to this client.
    pub async fn next(&mut self, method: &str) -> Value {
        let line = self.wait_for(method, |head| head.method.as_deref() == Some(method)).await;
        serde_json::from_str(&line).unwrap()
    }

    /// How many messages with this method have come so far, unlooked at.
    pub fn count(&mut self, method: &str) -> usize {
        while let Ok(line) = self.lines.try_recv() {
            self.kept.push_back(line);
        }
        let is_it = |line: &&String| Head::of(line).method.as_deref() == Some(method);
        self.kept.iter().filter(is_it).count()
    }

    /// Closes this end; what still comes can be read.
    pub async fn close(&mut self) {
        if let Some(mut writer) = self.writer.take() {
            _ = writer.shutdown().await;
        }
    }

    /// Waits until the other side has closed its end.
    pub async fn closed(&mut self) {
        while self.read("the end").await.is_some() {}
    }

    async fn wait_for(&mut self, what: &str, is_it: impl Fn(&Head) -> bool) -> String {
        let wanted = |line: &str| is_it(&Head::of(line));
        if let Some(at) = self.kept.iter().position(|line| wanted(line)) {
            return self.kept.remove(at).unwrap();
        }
        loop {
            let line = self.read(what).await;
            let line = line.unwrap_or_else(|| panic!("closed while waiting for {what}"));
            if wanted(&line) {
                return line;
            }
            self.kept.push_back(line);
        }
    }

    async fn read(&mut self, what: &str) -> Option<String> {
        let read = timeout(PATIENCE, self.lines.recv()).await;
        read.unwrap_or_else(|_| panic!("waited too long for {what}; kept: {:?}", self.kept))
    }
}

/// What tells messages apart, read without touching the rest.
struct Head {
    id: Option<String>,
    method: Option<String>,
    is_error: bool,
    is_array: bool,
}

impl Head {
    fn of(line: &str) -> Head {
        if line.starts_with('[') {
            return Head { id: None, method: None, is_error: false, is_array: true };
        }
        let found = mcp::json::members(line.as_bytes(), ["id", "method", "error"]);
        let [id, method, error] =
            found.unwrap_or_else(|e| panic!("not a message: {e}: {line:.200}"));
        Head {
            id: id.map(str::to_owned),
            method: method.and_then(mcp::json::string).map(String::from),
            is_error: error.is_some(),
            is_array: false,
        }
    }
}
