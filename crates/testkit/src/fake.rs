//! A fake MCP server whose tools do what their names say, good or bad.
//!
//! The same server runs in memory and as a process (`examples/fake_upstream.rs` of the binary).

mod deeds;
mod modern;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use mcp::items::Kind;
use mcp::lines::{Line, Lines};
use mcp::rpc::{self, Code, Message, Outcome, Raw};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{mpsc, oneshot};

/// What a fake server offers and how it behaves.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a habit of its own")]
pub struct Script {
    pub tools: Vec<Value>,
    pub resources: Vec<Value>,
    pub templates: Vec<Value>,
    pub prompts: Vec<Value>,
    /// Items on one page; all on one if absent.
    pub page: Option<usize>,
    /// Hands out a further page for ever.
    pub endless: bool,
    /// Never answers anything.
    pub hangs: bool,
    /// How long it takes to answer `initialize`.
    pub delay: Duration,
    pub revision: Option<String>,
    pub instructions: Option<String>,
    /// What it declares instead of everything.
    pub capabilities: Option<Value>,
    /// Asks the client for its roots before it gives its first list of tools.
    pub asks_first: bool,
    /// Speaks the modern era and nothing else.
    pub is_modern: bool,
    /// It answers `initialize` once this file is there.
    pub gate: Option<PathBuf>,
    /// It refuses to list its tools while this file is there.
    pub sulk: Option<PathBuf>,
    /// A file to be made when the list of prompts, the last one, has been given.
    pub mark: Option<PathBuf>,
}

impl Script {
    /// A server with these tools; see `deeds.rs` for what they do.
    pub fn with_tools<S: AsRef<str>>(names: impl IntoIterator<Item = S>) -> Script {
        let tools = names.into_iter().map(|name| tool(name.as_ref())).collect();
        Script { tools, ..Script::default() }
    }

    fn items(&self, kind: Kind) -> &[Value] {
        match kind {
            Kind::Tool => &self.tools,
            Kind::Resource => &self.resources,
            Kind::Template => &self.templates,
            Kind::Prompt => &self.prompts,
        }
    }
}

/// A plain tool definition, with fields that nobody knows.
pub fn tool(name: &str) -> Value {
    if name == "tree" {
        return tree();
    }
    json!({
        "name": name,
        "description": format!("does {name}"),
        "inputSchema": {"type": "object", "properties": {"x": {"type": "integer"}}},
        "x-vendor": {"kept": true},
    })
}

/// A definition with everything that one can have, and schemas that refer to themselves.
fn tree() -> Value {
    let node = json!({
        "type": "object",
        "properties": {
            "label": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#/$defs/node"}},
        },
        "required": ["label"],
    });
    json!({
        "name": "tree",
        "title": "Plant a tree",
        "description": "gives back the tree",
        "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#",
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/node"}},
            "required": ["root"],
            "additionalProperties": false,
            "$defs": {"node": node},
        },
        "outputSchema": {
            "type": "object",
            "properties": {"root": {"$ref": "#/$defs/node"}},
            "required": ["root"],
            "$defs": {"node": node},
        },
        "annotations": {"readOnlyHint": true},
    })
}

pub fn resource(uri: &str) -> Value {
    json!({"uri": uri, "name": uri, "description": format!("about {uri}")})
}

pub fn template(uri: &str) -> Value {
    json!({"uriTemplate": uri, "name": uri, "description": format!("about {uri}")})
}

pub fn prompt(name: &str) -> Value {
    json!({"name": name, "description": format!("asks {name}"), "arguments": [{"name": "topic"}]})
}

/// Serves until the other side closes.
pub async fn serve(
    script: Script,
    reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
) {
    serve_until(script, reader, writer, std::future::pending()).await;
}

/// Serves until the other side closes or the server is to crash.
pub async fn serve_until(
    script: Script,
    mut reader: impl AsyncRead + Unpin,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    crash: impl Future<Output = ()>,
) {
    let (frames, queue) = mpsc::unbounded_channel();
    let writing = tokio::spawn(write_all(writer, queue));
    let server = Server {
        script: Arc::new(Mutex::new(script)),
        frames,
        asks: Arc::default(),
        client: Arc::default(),
        seen: Arc::default(),
        listeners: Arc::default(),
    };
    let mut lines = Lines::new(64 * 1024 * 1024);
    let serving = async {
        while let Ok(1..) = reader.read_buf(lines.buffer()).await {
            while let Some(Line::Frame(frame)) = lines.next_line() {
                if let Ok(message) = rpc::parse(&frame) {
                    server.receive(message);
                }
            }
        }
    };
    tokio::select! {
        () = serving => {}
        () = crash => {}
    }
    writing.abort();
}

async fn write_all(mut writer: impl AsyncWrite + Unpin, mut queue: mpsc::UnboundedReceiver<Bytes>) {
    while let Some(frame) = queue.recv().await {
        let line = [frame.as_ref(), b"\n"].concat();
        if writer.write_all(&line).await.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// One running fake server.
#[derive(Clone)]
struct Server {
    script: Arc<Mutex<Script>>,
    frames: mpsc::UnboundedSender<Bytes>,
    /// Answers that it waits for, oldest first.
    asks: Arc<Mutex<VecDeque<oneshot::Sender<Outcome>>>>,
    /// What its client declares.
    client: Arc<Mutex<String>>,
    /// Notifications that it got, in order.
    seen: Arc<Mutex<Vec<String>>>,
    /// The requests that opened streams of changes.
    listeners: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn receive(&self, message: Message) {
        match message {
            Message::Request { id, method, params } => {
                let server = self.clone();
                tokio::spawn(async move { server.answer(id, &method, params).await });
            }
            Message::Notification { method, params } => {
                self.note(&method, params.as_ref());
            }
            Message::Response { outcome, .. } => {
                if let Some(ask) = self.asks.lock().unwrap().pop_front() {
                    _ = ask.send(outcome);
                }
            }
        }
    }

    fn note(&self, method: &str, params: Option<&Raw>) {
        let params = params.map(|p| String::from_utf8_lossy(p.as_bytes()).into_owned());
        let params = params.unwrap_or_default();
        self.seen.lock().unwrap().push(format!("{method} {params}"));
    }

    async fn answer(&self, id: Raw, method: &str, params: Option<Raw>) {
        let script = self.script.lock().unwrap().clone();
        if script.hangs {
            return;
        }
        let kind = Kind::ALL.into_iter().find(|kind| kind.list_method() == method);
        match method {
            "server/discover" if script.is_modern => {
                self.result(&id, &modern::discovery(&script));
            }
            "subscriptions/listen" if script.is_modern => self.listen(&id, params.as_ref()),
            "initialize" if !script.is_modern => {
                tokio::time::sleep(script.delay).await;
                while script.gate.as_ref().is_some_and(|gate| !gate.exists()) {
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let params = params.unwrap_or_else(|| Raw::trusted("{}"));
                let [declared] = params.members(["capabilities"]).unwrap();
                declared.unwrap_or("").clone_into(&mut self.client.lock().unwrap());
                self.result(&id, &introduction(&script));
            }
            "tools/list" if script.asks_first => {
                self.script.lock().unwrap().asks_first = false;
                let (answer, answered) = oneshot::channel();
                self.asks.lock().unwrap().push_back(answer);
                self.send(rpc::request("\"first\"", "roots/list", None));
                _ = answered.await;
                self.result(&id, &page(&script, Kind::Tool, params.as_ref()));
            }
            "tools/list" if script.sulk.as_ref().is_some_and(|sulk| sulk.exists()) => {
                self.error(&id, Code::INTERNAL, "not now");
            }
            "tools/call" => self.call(id, params.unwrap()).await,
            "resources/read" => self.read(&id, &params.unwrap()),
            "prompts/get" => self.result(
                &id,
                &json!({
                    "messages": [], "description": format!("{:?}", params),
                }),
            ),
            "logging/setLevel" | "resources/subscribe" | "resources/unsubscribe" => {
                self.note(method, params.as_ref());
                self.result(&id, &json!({}));
            }
            "completion/complete" => {
                let asked = String::from_utf8_lossy(params.unwrap().as_bytes()).into_owned();
                self.result(&id, &json!({"completion": {"values": [asked]}}));
            }
            _ => match kind {
                Some(kind) => {
                    self.result(&id, &page(&script, kind, params.as_ref()));
                    if let (Kind::Prompt, Some(mark)) = (kind, &script.mark) {
                        std::fs::write(mark, "").unwrap();
                    }
                }
                None => self.error(&id, Code::METHOD_NOT_FOUND, "method not found"),
            },
        }
    }

    fn read(&self, id: &Raw, params: &Raw) {
        let params: Value = serde_json::from_slice(params.as_bytes()).unwrap();
        let uri = params["uri"].as_str().unwrap();
        if uri.ends_with("missing") {
            let error = r#"{"code":-32002,"message":"not there","data":{"uri":"kept"}}"#;
            return self.send(rpc::relayed_error(id, error.as_bytes()));
        }
        self.result(id, &json!({"contents": [{"uri": uri, "text": format!("text of {uri}")}]}));
    }

    fn result(&self, id: &Raw, result: &Value) {
        self.send(rpc::result(id, result.to_string().as_bytes()));
    }

    fn error(&self, id: &Raw, code: Code, message: &str) {
        let error = rpc::error_object(code, message, None);
        self.send(rpc::relayed_error(id, error.as_bytes()));
    }

    fn send(&self, frame: impl Into<Bytes>) {
        _ = self.frames.send(frame.into());
    }
}

fn introduction(script: &Script) -> Value {
    let revision = script.revision.clone().unwrap_or_else(|| "2025-11-25".into());
    let mut introduction = json!({
        "protocolVersion": revision,
        "capabilities": {
            "tools": {"listChanged": true}, "resources": {}, "prompts": {}, "completions": {}, "logging": {},
        },
        "serverInfo": {"name": "fake", "version": "0"},
    });
    if let Some(capabilities) = &script.capabilities {
        introduction["capabilities"] = capabilities.clone();
    }
    if let Some(instructions) = &script.instructions {
        introduction["instructions"] = json!(instructions);
    }
    introduction
}

fn page(script: &Script, kind: Kind, params: Option<&Raw>) -> Value {
    let items = script.items(kind);
    let params: Value =
        params.map_or(Value::Null, |p| serde_json::from_slice(p.as_bytes()).unwrap());
    let from: usize = params["cursor"].as_str().map_or(0, |cursor| cursor.parse().unwrap());
    if script.endless {
        let next = (from + 1).to_string();
        return json!({kind.list_member(): [], "nextCursor": next});
    }
    let size = script.page.unwrap_or(usize::MAX);
    let to = items.len().min(from.saturating_add(size));
    let mut page = json!({kind.list_member(): items[from..to]});
    if to < items.len() {
        page["nextCursor"] = json!(to.to_string());
    }
    page
}
