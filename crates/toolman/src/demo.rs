//! The built-in `demo` server: what a newcomer without a `tools.toml` gets to try.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use catalog::patterns::Patterns;
use catalog::snapshot::Rules;
use catalog::surface::Surface;
use gateway::{Member, Settings};
use mcp::lines::{Line, Lines};
use mcp::rpc::{self, Code, Message, Raw};
use mcp::version::Revision;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};
use upstream::launch::{BuiltIn, Launch};
use upstream::limits::LINE_BYTES_MAX;
use upstream::supervisor::Settings as UpstreamSettings;

const PIPE_BYTES: usize = 64 * 1024;

const GUIDE: &str = "# Toolman\n\nToolman gathers the tools of many MCP servers and shows an agent \
    only those that are switched on.\n\n1. `demo_echo` is on from the start.\n2. `demo_add` and \
    `demo_now` are off: switch them on with `toolman_activate`.\n3. Write a `tools.toml` with your \
    own servers and start `toolman up` again.\n";

/// A gateway over the demo server alone.
pub fn settings() -> anyhow::Result<Settings> {
    let starts_on = Patterns::parse(&["demo_echo", "demo_guide://*"]);
    let starts_on = starts_on.map_err(|errors| anyhow::anyhow!("{errors:?}"))?;
    let launch = Launch::BuiltIn(BuiltIn(Arc::new(start)));
    let upstream = UpstreamSettings::new("demo".parse()?, launch);
    let demo = Member { namespace: "demo".parse()?, upstream };
    let settings = Settings::new(Surface::default(), vec![demo]);
    Ok(Settings { rules: Rules { starts_on, ..Rules::default() }, ..settings })
}

fn start() -> DuplexStream {
    let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
    tokio::spawn(serve(theirs));
    ours
}

async fn serve(mut pipe: DuplexStream) {
    let mut lines = Lines::new(LINE_BYTES_MAX);
    while let Ok(1..) = pipe.read_buf(lines.buffer()).await {
        while let Some(line) = lines.next_line() {
            let Line::Frame(frame) = line else { continue };
            let Ok(Message::Request { id, method, params }) = rpc::parse(&frame) else {
                continue;
            };
            let answer = match answer(&method, params.as_ref()) {
                Ok(result) => rpc::result(&id, result.to_string().as_bytes()),
                Err(error) => rpc::error(Some(&id), error.as_bytes()),
            };
            if write(&mut pipe, &answer).await.is_err() {
                return;
            }
        }
    }
}

async fn write(pipe: &mut DuplexStream, frame: &Bytes) -> std::io::Result<()> {
    pipe.write_all(frame).await?;
    pipe.write_all(b"\n").await
}

fn answer(method: &str, params: Option<&Raw>) -> Result<Value, Raw> {
    match method {
        "initialize" => Ok(json!({
            "protocolVersion": Revision::NEWEST_LEGACY.as_str(),
            "capabilities": {"tools": {}, "resources": {}, "prompts": {}},
            "serverInfo": {"name": "toolman-demo", "version": env!("CARGO_PKG_VERSION")},
        })),
        "tools/list" => Ok(json!({"tools": [
            tool("echo", "Says back what it is told.", &json!({"text": {"type": "string"}})),
            tool("add", "Adds two numbers.", &json!({"a": {"type": "number"}, "b": {"type": "number"}})),
            tool("now", "Tells the seconds since 1970.", &json!({})),
        ]})),
        "tools/call" => call(params),
        "resources/list" => Ok(json!({"resources": [
            {"uri": "guide://toolman", "name": "Guide", "description": "What to try first.", "mimeType": "text/markdown"},
        ]})),
        "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
        "resources/read" => Ok(json!({"contents": [
            {"uri": "guide://toolman", "mimeType": "text/markdown", "text": GUIDE},
        ]})),
        "prompts/list" => Ok(json!({"prompts": [
            {"name": "tour", "description": "Ask the model for a tour of Toolman."},
        ]})),
        "prompts/get" => Ok(json!({"messages": [
            {"role": "user", "content": {"type": "text", "text": "Read the guide of Toolman and show me, step by step, what it can do."}},
        ]})),
        _ => Err(rpc::error_object(Code::METHOD_NOT_FOUND, "method not found", None)),
    }
}

fn tool(name: &str, description: &str, properties: &Value) -> Value {
    let required: Vec<_> = properties.as_object().into_iter().flat_map(|p| p.keys()).collect();
    json!({
        "name": name,
        "description": description,
        "inputSchema": {"type": "object", "properties": properties, "required": required},
        "annotations": {"readOnlyHint": true},
    })
}

fn call(params: Option<&Raw>) -> Result<Value, Raw> {
    let params = params
        .map_or(Value::Null, |raw| serde_json::from_slice(raw.as_bytes()).unwrap_or_default());
    let arguments = &params["arguments"];
    let text = match params["name"].as_str() {
        Some("echo") => arguments["text"].as_str().map(str::to_owned),
        Some("add") => {
            arguments["a"].as_f64().zip(arguments["b"].as_f64()).map(|(a, b)| (a + b).to_string())
        }
        Some("now") => {
            let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
            Some(since.as_secs().to_string())
        }
        _ => {
            return Err(rpc::error_object(Code::INVALID_PARAMS, "unknown tool", None));
        }
    };
    Ok(match text {
        Some(text) => json!({"content": [{"type": "text", "text": text}], "isError": false}),
        None => {
            let text = "an argument is missing or of the wrong type; see the input schema";
            json!({"content": [{"type": "text", "text": text}], "isError": true})
        }
    })
}
