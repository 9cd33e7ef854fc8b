//! Tools of the program that holds the gateway: functions of its own as an upstream, without a process.
//!
//! They are spoken to like any other server, so that nothing else knows of them.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use mcp::lines::{Line, Lines};
use mcp::names::{NameError, Namespace, UpstreamName};
use mcp::rpc::{self, Code, Message, Raw};
use mcp::version::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use upstream::launch::{BuiltIn, Launch};
use upstream::limits::LINE_BYTES_MAX;
use upstream::supervisor::Settings;

use crate::Member;
use crate::limits::{OWN_ANSWERS_MAX, OWN_PIPE_BYTES};

type Answer = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;

/// An upstream made of functions.
#[derive(Clone)]
pub struct OwnTools {
    name: UpstreamName,
    namespace: Namespace,
    tools: Vec<Tool>,
}

#[derive(Clone)]
struct Tool {
    definition: Value,
    call: Arc<dyn Fn(Value) -> Answer + Send + Sync>,
}

impl fmt::Debug for OwnTools {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "OwnTools({}, {})", self.name, self.tools.len())
    }
}

impl OwnTools {
    /// Tools under this name, which is the prefix of theirs.
    pub fn new(name: &str) -> Result<OwnTools, NameError> {
        Ok(OwnTools { name: name.parse()?, namespace: name.parse()?, tools: Vec::new() })
    }

    /// Adds a tool: what it wants as a JSON Schema, and what it does with its arguments. An object that it gives
    /// becomes structured content, and an error is told to the model.
    #[must_use]
    pub fn tool<F, R>(mut self, name: &str, description: &str, schema: &Value, call: F) -> OwnTools
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let definition = json!({"name": name, "description": description, "inputSchema": schema});
        let call = Arc::new(move |arguments| -> Answer { Box::pin(call(arguments)) });
        self.tools.push(Tool { definition, call });
        self
    }

    /// The upstream, for the settings of a gateway.
    pub fn member(self) -> Member {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        let tools = Arc::new(self);
        let start = move || {
            let (ours, theirs) = duplex(OWN_PIPE_BYTES);
            tokio::spawn(Arc::clone(&tools).serve(theirs));
            ours
        };
        let launch = Launch::BuiltIn(BuiltIn(Arc::new(start)));
        Member { namespace, upstream: Settings::new(name, launch) }
    }

    /// Answers what comes through the pipe; calls side by side.
    async fn serve(self: Arc<Self>, pipe: DuplexStream) {
        let (mut reader, mut writer) = split(pipe);
        let (answers, mut ready) = mpsc::channel::<bytes::Bytes>(OWN_ANSWERS_MAX);
        let writing = tokio::spawn(async move {
            while let Some(frame) = ready.recv().await {
                let line = [frame.as_ref(), b"\n"].concat();
                if writer.write_all(&line).await.is_err() {
                    return;
                }
            }
        });
        let mut lines = Lines::new(LINE_BYTES_MAX);
        while let Ok(1..) = reader.read_buf(lines.buffer()).await {
            while let Some(line) = lines.next_line() {
                let Line::Frame(frame) = line else { continue };
                let Ok(Message::Request { id, method, params }) = rpc::parse(&frame) else {
                    continue;
                };
                let (tools, answers) = (Arc::clone(&self), answers.clone());
                tokio::spawn(async move {
                    let frame = match tools.answer(&method, params.as_ref()).await {
                        Ok(result) => rpc::result(&id, result.to_string().as_bytes()),
                        Err(error) => rpc::error(Some(&id), error.as_bytes()),
                    };
                    _ = answers.send(frame).await;
                });
            }
        }
        writing.abort();
    }

    async fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Value, Raw> {
        match method {
            "initialize" => Ok(json!({
                "protocolVersion": Revision::NEWEST_LEGACY.as_str(),
                "capabilities": {"tools": {}},
                "serverInfo": {"name": self.name.as_str(), "version": env!("CARGO_PKG_VERSION")},
            })),
            "tools/list" => {
                let tools: Vec<_> = self.tools.iter().map(|tool| &tool.definition).collect();
                Ok(json!({"tools": tools}))
            }
            "tools/call" => self.call(params).await,
            "ping" => Ok(json!({})),
            _ => Err(rpc::error_object(Code::METHOD_NOT_FOUND, "method not found", None)),
        }
    }

    async fn call(&self, params: Option<&Raw>) -> Result<Value, Raw> {
        let params = params.map(|raw| serde_json::from_slice(raw.as_bytes()).unwrap_or_default());
        let mut params: Value = params.unwrap_or_default();
        let tool = self.tools.iter().find(|tool| tool.definition["name"] == params["name"]);
        let Some(tool) = tool else {
            return Err(rpc::error_object(Code::INVALID_PARAMS, "unknown tool", None));
        };
        let arguments = match params["arguments"].take() {
            Value::Null => json!({}),
            arguments => arguments,
        };
        let block = |text: &str| json!([{"type": "text", "text": text}]);
        Ok(match (tool.call)(arguments).await {
            Ok(Value::String(text)) => json!({"content": block(&text)}),
            Ok(value) if value.is_object() => {
                json!({"content": block(&value.to_string()), "structuredContent": value})
            }
            Ok(value) => json!({"content": block(&value.to_string())}),
            Err(problem) => json!({"content": block(&problem), "isError": true}),
        })
    }
}
