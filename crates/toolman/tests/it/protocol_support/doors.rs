//! Raw clients of every door, which all ask in the same way.

use std::time::Duration;

use serde_json::{Value, json};
use testkit::client::{LineClient, alone};
use testkit::http::{HttpAnswer, send};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::peers::Peer;
use crate::up::request;

/// More than is ever under way between a test and the oldest transport.
const PIPE_BYTES: usize = 1 << 20;

/// Longest wait for the next server, a little shorter than that of the client itself.
const JOIN_TIMEOUT: Duration = Duration::from_secs(28);

pub enum Client {
    /// Stdio, or what has been made to look like it.
    Line {
        client: LineClient,
        is_modern: bool,
    },
    Http {
        address: String,
        /// Those of every request.
        headers: Vec<(&'static str, String)>,
        is_modern: bool,
    },
    Rest {
        address: String,
        token: String,
    },
}

pub struct Answer {
    /// The whole answer; nothing where the door has no such request.
    pub message: Value,
    /// The token of every progress notification before it.
    pub progress: Vec<Value>,
}

impl Client {
    /// A client of Streamable HTTP after its handshake.
    pub async fn over_http(address: &str, token: &str, revision: &str) -> Client {
        let mut headers = vec![("Authorization", format!("Bearer {token}"))];
        let hello = request(0, "initialize", hello(revision));
        let welcome = post(address, &headers, &hello).await;
        assert_eq!(welcome.json()["result"]["protocolVersion"], revision);
        headers.push(("Mcp-Session-Id", welcome.header("mcp-session-id").unwrap().to_owned()));
        // Revisions before this one do not know the header.
        if revision >= "2025-06-18" {
            headers.push(("MCP-Protocol-Version", revision.to_owned()));
        }
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(post(address, &headers, &initialized).await.status, 202);
        Client::Http { address: address.to_owned(), headers, is_modern: false }
    }

    pub fn modern_http(address: &str, token: &str) -> Client {
        let headers = vec![
            ("Authorization", format!("Bearer {token}")),
            ("MCP-Protocol-Version", "2026-07-28".to_owned()),
        ];
        Client::Http { address: address.to_owned(), headers, is_modern: true }
    }

    pub async fn ask(&mut self, method: &str, params: Value) -> Answer {
        match self {
            Client::Line { client, is_modern } => {
                let params = if *is_modern { alone(params) } else { params };
                let message = client.request(method, params).await;
                let mut progress = Vec::new();
                for _ in 0..client.count("notifications/progress") {
                    let told = client.next("notifications/progress").await;
                    progress.push(told["params"]["progressToken"].clone());
                }
                Answer { message, progress }
            }
            Client::Http { address, headers, is_modern } => {
                let mut headers = headers.clone();
                let mut message = request(1, method, params);
                if *is_modern {
                    let params = &message["params"];
                    let name = params["name"].as_str().or(params["uri"].as_str());
                    headers.extend(name.map(|name| ("Mcp-Name", name.to_owned())));
                    headers.push(("Mcp-Method", method.to_owned()));
                    message["params"] = alone(params.clone());
                }
                Answer::of(&post(address, &headers, &message).await)
            }
            Client::Rest { address, token } => {
                let message = rest(address, token, method, &params).await.unwrap_or_default();
                Answer { message, progress: Vec::new() }
            }
        }
    }
}

impl Answer {
    fn of(answer: &HttpAnswer) -> Answer {
        if answer.header("content-type") != Some("text/event-stream") {
            return Answer { message: answer.json(), progress: Vec::new() };
        }
        let mut events = answer.events();
        let message = events.pop().unwrap_or_default();
        events.retain(|event| event["method"] == "notifications/progress");
        let progress = events.iter().map(|event| event["params"]["progressToken"].clone());
        Answer { message, progress: progress.collect() }
    }
}

fn hello(revision: &str) -> Value {
    json!({"protocolVersion": revision, "capabilities": {},
        "clientInfo": {"name": "test", "version": "0"}})
}

async fn post(address: &str, headers: &[(&str, String)], message: &Value) -> HttpAnswer {
    let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
    send(address, "POST", "/mcp", &headers, &message.to_string()).await
}

/// Tools, in the words of this door; it has nothing else.
async fn rest(address: &str, token: &str, method: &str, params: &Value) -> Option<Value> {
    let bearer = format!("Bearer {token}");
    let headers = [("Authorization", bearer.as_str())];
    let answer = match method {
        "tools/list" => send(address, "GET", "/tools", &headers, "").await,
        "tools/call" => {
            let path = format!("/tools/{}", params["name"].as_str()?);
            send(address, "POST", &path, &headers, &params["arguments"].to_string()).await
        }
        _ => return None,
    };
    Some(answer.json())
}

/// The handshake, in this revision and no other.
pub async fn greet(client: &mut LineClient, revision: &str) {
    let welcome = client.request("initialize", hello(revision)).await;
    assert_eq!(welcome["result"]["protocolVersion"], revision);
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
}

/// Waits until every server has joined; each change of the list is a new chance.
pub async fn wait_for_all(client: &mut LineClient, peers: &[Peer]) {
    loop {
        let names = client.tool_names().await;
        let is_missing = |peer: &&Peer| !names.contains(&peer.exposed(peer.walk.sum.0));
        let missing: Vec<_> = peers.iter().filter(is_missing).map(Peer::row).collect();
        if missing.is_empty() {
            return;
        }
        let joined = timeout(JOIN_TIMEOUT, client.next("notifications/tools/list_changed")).await;
        assert!(joined.is_ok(), "these servers do not join: {missing:?}");
    }
}

/// The oldest transport, as a client that reads and writes lines.
pub async fn over_sse(address: &str, token: &str) -> LineClient {
    let bearer = format!("Bearer {token}");
    let mut stream = TcpStream::connect(address).await.unwrap();
    let head = format!(
        "GET /sse HTTP/1.1\r\nHost: {address}\r\nAccept: text/event-stream\r\nAuthorization: {bearer}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let (mut heard, reader) = tokio::io::duplex(PIPE_BYTES);
    let (writer, said) = tokio::io::duplex(PIPE_BYTES);
    let address = address.to_owned();
    tokio::spawn(async move {
        let mut stream = BufReader::new(stream).lines();
        let mut said = BufReader::new(said).lines();
        let mut path = None;
        loop {
            tokio::select! {
                Ok(Some(line)) = stream.next_line() => {
                    let Some(data) = line.strip_prefix("data: ") else { continue };
                    // The first event says where to post; all others are messages.
                    if path.is_none() {
                        path = Some(data.to_owned());
                    } else if heard.write_all(format!("{data}\n").as_bytes()).await.is_err() {
                        return;
                    }
                }
                Ok(Some(line)) = said.next_line(), if path.is_some() => {
                    let headers = [("Authorization", bearer.as_str())];
                    let path = path.as_deref().unwrap_or_default();
                    let answer = send(&address, "POST", path, &headers, &line).await;
                    assert_eq!(answer.status, 202, "{answer:?}");
                }
                else => return,
            }
        }
    });
    LineClient::new(reader, writer)
}
