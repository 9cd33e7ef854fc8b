//! Tools of the program that holds the gateway: functions of its own as an upstream, without a process.
//!
//! They are spoken to like any other server, so that nothing else knows of them.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catalog::schema::Schema;
use mcp::lines::{Line, Lines};
use mcp::names::{NameError, Namespace, UpstreamName};
use mcp::rpc::{self, Code, Message, Raw};
use mcp::version::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, duplex, split};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use upstream::launch::{BuiltIn, Launch};
use upstream::limits::{CALL_TIMEOUT, LINE_BYTES_MAX};
use upstream::supervisor::Settings;

use crate::Member;
use crate::limits::{OWN_ANSWERS_MAX, OWN_PIPE_BYTES};

type Answer = Pin<Box<dyn Future<Output = Result<Value, String>> + Send>>;
type Check = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What is under way, by the ids of requests, so that it can be ended.
#[derive(Clone, Default)]
struct Underway(Arc<Mutex<HashMap<Vec<u8>, CancellationToken>>>);

/// A request under way; it is none when this goes.
struct Begun {
    underway: Underway,
    id: Vec<u8>,
    ended: CancellationToken,
}

impl Underway {
    fn begin(&self, id: &Raw, all: &CancellationToken) -> Begun {
        let (id, ended) = (id.as_bytes().to_vec(), all.child_token());
        let mut requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.insert(id.clone(), ended.clone());
        Begun { underway: self.clone(), id, ended }
    }

    /// Ends the request that such a notification names.
    fn cancel(&self, params: Option<&Raw>) {
        let Some(Ok([Some(id)])) = params.map(|params| params.members(["requestId"])) else {
            return;
        };
        let requests = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = requests.get(Raw::trusted(id.to_owned()).as_bytes()) {
            ended.cancel();
        }
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut requests = self.underway.0.lock().unwrap_or_else(PoisonError::into_inner);
        requests.remove(&self.id);
    }
}

/// An upstream made of functions.
#[derive(Clone)]
pub struct OwnTools {
    name: UpstreamName,
    namespace: Namespace,
    instructions: Option<String>,
    call_timeout: Duration,
    tools: Vec<Tool>,
    /// What is done after each call, before anybody is told what it gave.
    check: Option<Arc<dyn Fn() -> Check + Send + Sync>>,
}

/// A function as a tool.
#[derive(Clone)]
pub struct Tool {
    definition: Value,
    /// What arguments must be like, or why that can't be told.
    input: Result<Schema, String>,
    call: Arc<dyn Fn(Value) -> Answer + Send + Sync>,
}

impl Tool {
    /// A tool: what it wants as a JSON Schema, and what it does with arguments that are like that. An object
    /// that it gives becomes structured content, and an error is told to the model. What it does is dropped, at the
    /// next point where it waits, as soon as nobody waits for its answer any more.
    pub fn new<F, R>(name: &str, description: &str, schema: &Value, call: F) -> Tool
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        let definition = json!({"name": name, "description": description, "inputSchema": schema});
        let call = Arc::new(move |arguments| -> Answer { Box::pin(call(arguments)) });
        Tool { definition, input: Schema::new(schema), call }
    }

    /// Under this title, for people.
    #[must_use]
    pub fn titled(mut self, title: &str) -> Tool {
        self.definition["title"] = title.into();
        self
    }

    /// Gives what is like this JSON Schema of an object. What is no object, it gives as its member `result`.
    #[must_use]
    pub fn giving(mut self, schema: &Value) -> Tool {
        self.definition["outputSchema"] = schema.clone();
        self
    }

    /// With these hints of the protocol, such as `readOnlyHint`.
    #[must_use]
    pub fn hinting(mut self, annotations: &Value) -> Tool {
        self.definition["annotations"] = annotations.clone();
        self
    }

    /// Runs it, unless the arguments are wrong. One that is `null` counts as absent where it may be absent: models send
    /// that.
    async fn run(&self, mut arguments: Value) -> Result<Value, String> {
        let schema = self.input.as_ref().map_err(Clone::clone)?;
        if schema.check(&arguments).is_err()
            && let Some(members) = arguments.as_object_mut()
        {
            let required = self.definition["inputSchema"]["required"].as_array();
            let must_be =
                |name: &str| required.is_some_and(|names| names.iter().any(|it| it == name));
            members.retain(|name, value| !value.is_null() || must_be(name));
        }
        schema.check(&arguments).map_err(|mismatch| {
            let place = mismatch.at.trim_start_matches('/').replace('/', ".");
            let place = if place.is_empty() { place } else { format!("`{place}`: ") };
            format!("the arguments are wrong: {place}{}; see the input schema", mismatch.problem)
        })?;
        (self.call)(arguments).await
    }
}

impl fmt::Debug for OwnTools {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        write!(formatter, "OwnTools({}, {})", self.name, self.tools.len())
    }
}

impl OwnTools {
    /// Tools under this name, which is the prefix of theirs.
    pub fn new(name: &str) -> Result<OwnTools, NameError> {
        let (name, namespace) = (name.parse()?, name.parse()?);
        let (tools, call_timeout) = (Vec::new(), CALL_TIMEOUT);
        Ok(OwnTools { name, namespace, instructions: None, call_timeout, tools, check: None })
    }

    /// Has something done after each call, before anybody is told what it gave.
    #[must_use]
    pub fn checking<F, R>(mut self, check: F) -> OwnTools
    where
        F: Fn() -> R + Send + Sync + 'static,
        R: Future<Output = ()> + Send + 'static,
    {
        self.check = Some(Arc::new(move || Box::pin(check())));
        self
    }

    /// The same under bare names.
    #[must_use]
    pub fn unprefixed(mut self) -> OwnTools {
        self.namespace = Namespace::default();
        self
    }

    /// What clients are told of them when they connect.
    #[must_use]
    pub fn saying(mut self, instructions: &str) -> OwnTools {
        self.instructions = Some(instructions.to_owned());
        self
    }

    /// How long a call may take.
    #[must_use]
    pub fn within(mut self, call_timeout: Duration) -> OwnTools {
        self.call_timeout = call_timeout;
        self
    }

    /// Adds a tool that is described by its name and arguments alone; see [`Tool::new`].
    #[must_use]
    pub fn tool<F, R>(self, name: &str, description: &str, schema: &Value, call: F) -> OwnTools
    where
        F: Fn(Value) -> R + Send + Sync + 'static,
        R: Future<Output = Result<Value, String>> + Send + 'static,
    {
        self.with(Tool::new(name, description, schema, call))
    }

    #[must_use]
    pub fn with(mut self, tool: Tool) -> OwnTools {
        self.tools.push(tool);
        self
    }

    /// The upstream, for the settings of a gateway.
    pub fn member(self) -> Member {
        let (name, namespace) = (self.name.clone(), self.namespace.clone());
        let (call_timeout, tools) = (self.call_timeout, Arc::new(self));
        let start = move || {
            let (ours, theirs) = duplex(OWN_PIPE_BYTES);
            tokio::spawn(Arc::clone(&tools).serve(theirs));
            ours
        };
        let launch = Launch::BuiltIn(BuiltIn(Arc::new(start)));
        let upstream = Settings { call_timeout, ..Settings::new(name, launch) };
        Member { namespace, upstream }
    }

    /// Answers what comes through the pipe; calls side by side. What nobody waits for any more is dropped.
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
        let (underway, all) = (Underway::default(), CancellationToken::new());
        let _none_is_left = all.clone().drop_guard();
        let mut lines = Lines::new(LINE_BYTES_MAX);
        while let Ok(1..) = reader.read_buf(lines.buffer()).await {
            while let Some(line) = lines.next_line() {
                let Line::Frame(frame) = line else { continue };
                let (id, method, params) = match rpc::parse(&frame) {
                    Ok(Message::Request { id, method, params }) => (id, method, params),
                    Ok(Message::Notification { method, params }) => {
                        if method == "notifications/cancelled" {
                            underway.cancel(params.as_ref());
                        }
                        continue;
                    }
                    Ok(Message::Response { .. }) | Err(_) => continue,
                };
                let (tools, answers) = (Arc::clone(&self), answers.clone());
                let begun = underway.begin(&id, &all);
                tokio::spawn(async move {
                    let answered = tools.answer(&method, params.as_ref());
                    let frame = match begun.ended.run_until_cancelled(answered).await {
                        Some(Ok(result)) => rpc::result(&id, result.to_string().as_bytes()),
                        Some(Err(error)) => rpc::error(Some(&id), error.as_bytes()),
                        None => return,
                    };
                    _ = answers.send(frame).await;
                });
            }
        }
        writing.abort();
    }

    async fn answer(&self, method: &str, params: Option<&Raw>) -> Result<Value, Raw> {
        match method {
            "initialize" => Ok(self.introduction()),
            "tools/list" => {
                let tools: Vec<_> = self.tools.iter().map(|tool| &tool.definition).collect();
                Ok(json!({"tools": tools}))
            }
            "tools/call" => self.call(params).await,
            "ping" => Ok(json!({})),
            _ => Err(rpc::error_object(Code::METHOD_NOT_FOUND, "method not found", None)),
        }
    }

    fn introduction(&self) -> Value {
        let mut said = json!({
            "protocolVersion": Revision::NEWEST_LEGACY.as_str(),
            "capabilities": {"tools": {}},
            "serverInfo": {"name": self.name.as_str(), "version": env!("CARGO_PKG_VERSION")},
        });
        if let Some(instructions) = &self.instructions {
            said["instructions"] = instructions.as_str().into();
        }
        said
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
        let is_structured = tool.definition.get("outputSchema").is_some();
        let given = tool.run(arguments).await;
        if let Some(check) = &self.check {
            check().await;
        }
        Ok(match given {
            Ok(value) if value.is_object() => {
                json!({"content": block(&value.to_string()), "structuredContent": value})
            }
            Ok(value) => {
                let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                let mut result = json!({"content": block(&text)});
                if is_structured {
                    result["structuredContent"] = json!({"result": value});
                }
                result
            }
            Err(problem) => json!({"content": block(&problem), "isError": true}),
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::Tool;

    #[tokio::test]
    async fn null_for_an_optional_argument_is_none() {
        let schema = json!({"type": "object", "required": ["name"], "additionalProperties": false,
            "properties": {"name": {"type": "string"}, "limit": {"type": "integer"}}});
        let tool = Tool::new("echo", "", &schema, |arguments: Value| async { Ok(arguments) });
        let given = tool.run(json!({"name": "a", "limit": null})).await;
        assert_eq!(given, Ok(json!({"name": "a"})));
        assert!(tool.run(json!({"name": null})).await.is_err());
        assert!(tool.run(json!({"name": "a", "limit": "b"})).await.is_err());
    }
}
