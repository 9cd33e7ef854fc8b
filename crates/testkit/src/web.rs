//! A fake MCP server over HTTP on loopback, in every dialect, that misbehaves on demand.
//!
//! Behind each session stands the fake server of `fake.rs`; here is only how its messages travel.

mod answer;
mod backend;

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use mcp::rpc::{self, Message};
use mcp::{headers, json, modern};
use tokio::net::TcpListener;
use tokio::task::{AbortHandle, JoinSet};

use crate::fake::Script;
use answer::{Body, Events, empty, events, refusal, whole};
use backend::Backend;

/// What a site speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Streamable HTTP with sessions.
    Legacy,
    /// Streamable HTTP without anything but requests.
    Modern,
    /// Both, told apart by the request.
    Both,
    /// The transport of 2024-11-05, at `/sse`.
    Sse,
}

/// How a site behaves.
#[derive(Clone, Debug)]
pub struct Manners {
    pub script: Script,
    pub dialect: Dialect,
    /// Answers requests with a stream of events rather than with JSON.
    pub streams: bool,
    /// Offers a stream on which it speaks by itself.
    pub has_feed: bool,
    /// What GET is answered with where there is no feed.
    pub no_feed: u16,
    /// Ends the stream of an answer at once; the client has to come back for the rest.
    pub polls: bool,
    /// What it says to a notification.
    pub accepted: u16,
}

/// What goes wrong with one call of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// This status and text instead of an answer.
    Status(u16, &'static str),
    /// Sends the client elsewhere.
    Redirect(&'static str),
    /// Breaks off in the middle of the stream.
    BreaksOff,
    /// An event over all bounds before the answer.
    HugeEvent,
    /// A page for people.
    Page,
    /// Nothing, ever.
    Freezes,
    /// This error of the protocol, with the status.
    Refuses(u16, &'static str),
}

/// A request as it came.
#[derive(Clone, Debug)]
pub struct Seen {
    pub method: String,
    /// The method of the message in the body.
    pub rpc: String,
    /// What was sent.
    pub body: Bytes,
    headers: HashMap<String, String>,
}

impl Seen {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }
}

/// A running site.
pub struct Site {
    pub address: SocketAddr,
    state: Arc<State>,
    serving: AbortHandle,
}

struct State {
    manners: Mutex<Manners>,
    /// What goes wrong next, by the method of the message.
    faults: Mutex<Vec<(String, Fault)>>,
    seen: Mutex<Vec<Seen>>,
    sessions: Mutex<HashMap<String, Backend>>,
    /// What is said to everything instead of an answer.
    refusal: Mutex<Option<u16>>,
    last_session: Mutex<u64>,
    connections: AtomicU64,
    /// Told of every request.
    told: tokio::sync::Notify,
    /// Requests whose streams the client has closed before the answer.
    closed: tokio::sync::watch::Sender<u64>,
}

impl Manners {
    pub fn new(dialect: Dialect, script: Script) -> Manners {
        Manners {
            script,
            dialect,
            streams: false,
            has_feed: true,
            no_feed: 405,
            polls: false,
            accepted: 202,
        }
    }
}

impl Manners {
    /// The arguments of a tool that must be mirrored into header fields.
    fn mirrored_by(&self, tool: &str) -> Vec<headers::ParamHeader> {
        let tool = self.script.tools.iter().find(|definition| definition["name"] == tool);
        let schema = tool.map(|tool| tool["inputSchema"].to_string());
        schema.map(|schema| headers::param_headers(&schema).unwrap()).unwrap_or_default()
    }
}

impl Site {
    /// Changes how it behaves from now on; servers behind sessions stay as they are.
    pub fn change(&self, change: impl FnOnce(&mut Manners)) {
        change(&mut self.state.manners.lock().unwrap());
    }

    pub async fn start(manners: Manners) -> Site {
        Site::start_at("127.0.0.1:0", manners).await
    }

    /// Starts where another site was, for instance.
    pub async fn start_at(address: &str, manners: Manners) -> Site {
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let state = Arc::new(State {
            manners: Mutex::new(manners),
            faults: Mutex::default(),
            seen: Mutex::default(),
            sessions: Mutex::default(),
            refusal: Mutex::default(),
            last_session: Mutex::new(0),
            connections: AtomicU64::new(0),
            told: tokio::sync::Notify::new(),
            closed: tokio::sync::watch::Sender::new(0),
        });
        let serving = tokio::spawn(accept(listener, Arc::clone(&state))).abort_handle();
        Site { address, state, serving }
    }

    pub fn url(&self) -> String {
        let is_sse = self.state.manners.lock().unwrap().dialect == Dialect::Sse;
        format!("http://{}/{}", self.address, if is_sse { "sse" } else { "mcp" })
    }

    /// Ends it with all its connections, as a crash would.
    pub fn stop(&self) {
        self.serving.abort();
    }

    /// Lets the next calls of tools go wrong, one each.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        for fault in faults {
            self.fail("tools/call", fault);
        }
    }

    /// Lets the next request with this method go wrong.
    pub fn fail(&self, method: &str, fault: Fault) {
        self.state.faults.lock().unwrap().push((method.to_owned(), fault));
    }

    /// Refuses everything with this status from now on, or no more.
    pub fn refuse_all(&self, status: Option<u16>) {
        *self.state.refusal.lock().unwrap() = status;
    }

    /// How many connections were made so far.
    pub fn connections(&self) -> u64 {
        self.state.connections.load(Ordering::Relaxed)
    }

    pub fn forget_sessions(&self) {
        self.state.sessions.lock().unwrap().clear();
    }

    pub fn sessions(&self) -> usize {
        self.state.sessions.lock().unwrap().len()
    }

    /// All requests so far whose message has this method, or that were made by this HTTP method.
    pub fn seen(&self, method: &str) -> Vec<Seen> {
        let seen = self.state.seen.lock().unwrap();
        seen.iter().filter(|seen| seen.rpc == method || seen.method == method).cloned().collect()
    }

    /// The very first request.
    pub fn first(&self) -> Seen {
        self.state.seen.lock().unwrap()[0].clone()
    }

    /// Waits until something holds, looking at every request.
    pub async fn wait_until(&self, holds: impl Fn(&Site) -> bool) {
        let waiting = async {
            loop {
                let told = self.state.told.notified();
                tokio::pin!(told);
                told.as_mut().enable();
                if holds(self) {
                    return;
                }
                told.await;
            }
        };
        tokio::time::timeout(crate::client::PATIENCE, waiting).await.expect("it holds in time");
    }

    /// Waits until the client has closed so many streams before their answers.
    pub async fn closed(&self, count: u64) {
        let mut closed = self.state.closed.subscribe();
        let waiting = closed.wait_for(|so_far| *so_far >= count);
        tokio::time::timeout(crate::client::PATIENCE, waiting).await.unwrap().unwrap();
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn accept(listener: TcpListener, state: Arc<State>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        _ = stream.set_nodelay(true);
        state.connections.fetch_add(1, Ordering::Relaxed);
        let state = Arc::clone(&state);
        connections.spawn(async move {
            let service = service_fn(move |request| {
                let state = Arc::clone(&state);
                async move { Ok::<_, Infallible>(state.respond(request).await) }
            });
            let connection = hyper::server::conn::http1::Builder::new();
            _ = connection.serve_connection(TokioIo::new(stream), service).await;
        });
    }
}

impl State {
    fn manners(&self) -> Manners {
        self.manners.lock().unwrap().clone()
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, Backend>> {
        self.sessions.lock().unwrap()
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let (head, body) = request.into_parts();
        let body =
            body.collect().await.map(http_body_util::Collected::to_bytes).unwrap_or_default();
        let message = rpc::parse(&body).ok();
        let rpc = match &message {
            Some(Message::Request { method, .. } | Message::Notification { method, .. }) => method,
            Some(Message::Response { .. }) => "response",
            None => "",
        };
        let text = |value: &hyper::header::HeaderValue| value.to_str().unwrap().to_owned();
        let headers = head.headers.iter().map(|(name, value)| (name.to_string(), text(value)));
        let seen = Seen {
            method: head.method.to_string(),
            rpc: rpc.to_owned(),
            body: body.clone(),
            headers: headers.collect(),
        };
        self.seen.lock().unwrap().push(seen.clone());
        self.told.notify_waiters();
        if let Some(status) = *self.refusal.lock().unwrap() {
            return answer::status(status, "go away");
        }
        let manners = self.manners();
        let query = head.uri.query().unwrap_or_default();
        if manners.dialect == Dialect::Sse {
            return self.respond_by_sse(&manners, &seen, head.uri.path(), query, &body).await;
        }
        let is_modern = match manners.dialect {
            Dialect::Legacy | Dialect::Sse => false,
            Dialect::Modern => true,
            Dialect::Both => seen.header("mcp-protocol-version") == Some("2026-07-28"),
        };
        match (head.method, message) {
            (Method::POST, Some(message)) if is_modern => {
                self.post_modern(&manners, &seen, message, &body).await
            }
            (Method::POST, Some(message)) => self.post(&manners, &seen, message, &body).await,
            (Method::GET, _) if !is_modern => self.get(&manners, &seen),
            (Method::DELETE, _) if !is_modern => {
                let session = seen.header("mcp-session-id").unwrap_or_default();
                self.sessions().remove(session);
                empty(200)
            }
            _ => empty(405),
        }
    }

    /// What goes wrong with this request.
    fn fault_of(&self, seen: &Seen) -> Option<Fault> {
        let mut faults = self.faults.lock().unwrap();
        let at = faults.iter().position(|(method, _)| *method == seen.rpc)?;
        Some(faults.remove(at).1)
    }

    /// Opens a session with a server of its own behind it.
    fn open(&self, manners: &Manners) -> (String, Backend) {
        let mut last = self.last_session.lock().unwrap();
        *last += 1;
        let (name, backend) = (format!("session-{last}"), Backend::start(manners.script.clone()));
        self.sessions().insert(name.clone(), backend.clone());
        (name, backend)
    }

    async fn post(
        &self,
        manners: &Manners,
        seen: &Seen,
        message: Message,
        frame: &Bytes,
    ) -> Response<Body> {
        if seen.rpc == "server/discover" {
            return refusal(400, None, r#"{"code":-32000,"message":"Server not initialized"}"#);
        }
        let (session, backend) = if seen.rpc == "initialize" {
            self.open(manners)
        } else {
            let Some(session) = seen.header("mcp-session-id") else { return empty(400) };
            let Some(backend) = self.sessions().get(session).cloned() else { return empty(404) };
            (session.to_owned(), backend)
        };
        let Message::Request { id, .. } = message else {
            backend.send(frame);
            return empty(manners.accepted);
        };
        let mut response = self.answer(manners, seen, &backend, id.as_bytes(), frame).await;
        response.headers_mut().insert("mcp-session-id", session.parse().unwrap());
        response.headers_mut().insert("set-cookie", "flavour=chocolate".parse().unwrap());
        response
    }

    async fn post_modern(
        &self,
        manners: &Manners,
        seen: &Seen,
        message: Message,
        frame: &Bytes,
    ) -> Response<Body> {
        let Message::Request { id, method, params } = message else { return empty(400) };
        let mismatch = |what: &str| {
            let error = format!(r#"{{"code":-32020,"message":"mismatch of {what}"}}"#);
            refusal(400, Some(&id), &error)
        };
        let params = params.unwrap();
        let [meta, name, uri] = params.members(["_meta", "name", "uri"]).unwrap();
        let wanted = [modern::PROTOCOL_VERSION, modern::CLIENT_CAPABILITIES];
        let [version, capabilities] = json::members(meta.unwrap().as_bytes(), wanted).unwrap();
        let version = version.and_then(json::string);
        if version.as_deref() != seen.header("mcp-protocol-version") || capabilities.is_none() {
            return mismatch("the revision");
        }
        if seen.header("mcp-method") != Some(&method) {
            return mismatch("the method");
        }
        let is_named = matches!(method.as_str(), "tools/call" | "prompts/get" | "resources/read");
        let name = name.or(uri).filter(|_| is_named).and_then(json::string);
        if seen.header("mcp-name").and_then(headers::decode).as_deref() != name.as_deref() {
            return mismatch("the name");
        }
        let arguments = params.members(["arguments"]).unwrap()[0].unwrap_or("{}");
        for field in manners.mirrored_by(name.as_deref().unwrap_or_default()) {
            let value = field.find(arguments);
            let said = seen.header(&field.name.to_ascii_lowercase());
            let fits = match (said, value) {
                (Some(said), Some(value)) => headers::matches(said, &value),
                (said, value) => said.is_none() && value.is_none(),
            };
            if !fits {
                return mismatch(&field.name);
            }
        }
        let kept = self.sessions().get("modern").cloned();
        let backend = kept.unwrap_or_else(|| {
            let script = Script { is_modern: true, ..manners.script.clone() };
            let backend = Backend::start(script);
            self.sessions().insert("modern".into(), backend.clone());
            backend
        });
        if matches!(method.as_str(), "initialize" | "ping") {
            return refusal(404, Some(&id), r#"{"code":-32601,"message":"not here"}"#);
        }
        self.answer(manners, seen, &backend, id.as_bytes(), frame).await
    }

    /// Passes a request on and answers it in the manner of the site.
    async fn answer(
        &self,
        manners: &Manners,
        seen: &Seen,
        backend: &Backend,
        id: &[u8],
        frame: &Bytes,
    ) -> Response<Body> {
        let is_call = seen.rpc == "tools/call";
        if let Some(fault) = self.fault_of(seen) {
            return answer::go_wrong(&fault, id).await;
        }
        let id = String::from_utf8_lossy(id).into_owned();
        let mut messages = backend.expect(&id);
        backend.send(frame);
        if seen.rpc == "subscriptions/listen" || is_call && manners.streams {
            if manners.polls {
                backend.park(&id, messages);
                return whole("text/event-stream", format!("id: {id}\nretry: 20\ndata:\n\n"));
            }
            return events(Events {
                messages,
                closed: Some(self.closed.clone()),
                has_ended: false,
            });
        }
        match messages.recv().await {
            Some(answer) => whole("application/json", answer),
            None => empty(500),
        }
    }

    fn get(&self, manners: &Manners, seen: &Seen) -> Response<Body> {
        let backend =
            seen.header("mcp-session-id").map(|session| self.sessions().get(session).cloned());
        let backend = match backend {
            None => return empty(400),
            Some(None) => return empty(404),
            Some(Some(backend)) => backend,
        };
        let parked = seen.header("last-event-id").and_then(|id| backend.unpark(id));
        if let Some(messages) = parked {
            return events(Events { messages, closed: None, has_ended: false });
        }
        if !manners.has_feed {
            return empty(manners.no_feed);
        }
        events(Events { messages: backend.feed(), closed: None, has_ended: false })
    }

    async fn respond_by_sse(
        &self,
        manners: &Manners,
        seen: &Seen,
        path: &str,
        query: &str,
        frame: &Bytes,
    ) -> Response<Body> {
        if let Some(fault) = self.fault_of(seen) {
            return answer::go_wrong(&fault, b"0").await;
        }
        match (seen.method.as_str(), path) {
            ("GET", "/sse") => {
                let (session, backend) = self.open(manners);
                let messages = backend.everything(&format!("/messages?session={session}"));
                events(Events { messages, closed: Some(self.closed.clone()), has_ended: false })
            }
            ("POST", "/messages") => {
                let session = query.strip_prefix("session=").unwrap_or_default();
                let Some(backend) = self.sessions().get(session).cloned() else {
                    return empty(StatusCode::NOT_FOUND.as_u16());
                };
                backend.send(frame);
                empty(manners.accepted)
            }
            _ => empty(404),
        }
    }
}
