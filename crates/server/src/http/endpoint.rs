//! `/mcp`: a message by POST, a stream by GET, the end of a session by DELETE; and the probes.

use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use gateway::Gateway;
use gateway::auth::Caller;
use gateway::dispatch::Request as GatewayRequest;
use gateway::error::{Class, Error};
use gateway::outbox::{self, OutboxQueue};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use mcp::rpc::{self, Code, Message, Outcome, Rejection};
use mcp::version::Revision;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::body::{self, Fault};
use super::checks::Checks;
use super::crowd::Crowd;
use super::events::{self, Body};
use super::metrics::Metrics;
use super::modern;
use super::sessions::{Session, Sessions};
use super::streams::{self, EventId, STANDING, Streams};
use crate::limits::{MESSAGE_BYTES_MAX, SESSION_ID_BYTES_MAX};
use crate::{batch, reply};

const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
const LAST_EVENT: &str = "last-event-id";
pub(super) const EVENT_STREAM: &str = "text/event-stream";

/// Makes the answer to a request.
pub(super) type Work = Pin<Box<dyn Future<Output = (StatusCode, Bytes)> + Send>>;

pub struct Endpoint {
    pub(super) gateway: Gateway,
    pub(super) sessions: Sessions,
    pub(super) checks: Checks,
    pub(super) crowd: Arc<Crowd>,
    pub(super) metrics: Metrics,
    pub(super) stop: CancellationToken,
    /// Counts the requests that are being answered.
    pub(super) under_way: TaskTracker,
    /// Whether the transport of 2024-11-05 is served.
    has_sse: bool,
    /// Set once nobody needs to wait for starting upstreams any more.
    pub(super) awake: OnceCell<()>,
}

/// A refusal: the status, and what to do.
pub(super) struct Refused(pub(super) StatusCode, String);

pub(super) fn refuse<T>(status: StatusCode, reason: &str) -> Result<T, Refused> {
    Err(Refused(status, reason.to_owned()))
}

impl Endpoint {
    pub fn new(
        gateway: Gateway,
        sessions: Sessions,
        checks: Checks,
        crowd: Arc<Crowd>,
        stop: CancellationToken,
        has_sse: bool,
    ) -> Endpoint {
        let (metrics, under_way, awake) = (Metrics::default(), TaskTracker::new(), OnceCell::new());
        Endpoint { gateway, sessions, checks, crowd, metrics, stop, under_way, has_sse, awake }
    }

    /// Waits until all requests are answered; to be called when no more are accepted.
    pub async fn drained(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    pub async fn respond(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let is_mcp = matches!(request.uri().path(), "/mcp" | "/sse" | "/messages");
        self.route(request).await.unwrap_or_else(|Refused(status, reason)| {
            let mut response = if is_mcp {
                error(status, &reason)
            } else {
                json(status, reply::rest::to_refused(status, &reason))
            };
            if status == StatusCode::UNAUTHORIZED {
                // TD-77
                let scheme = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            response
        })
    }

    async fn route(
        self: &Arc<Self>,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refused> {
        let (uri, headers) = (request.uri(), request.headers());
        if let Err(status) = self.checks.check_source(uri, headers) {
            return refuse(status, "this host or origin is not served");
        }
        match (uri.path(), request.method()) {
            ("/health" | "/healthz", &Method::GET) => return Ok(self.health(StatusCode::OK)),
            ("/readyz", &Method::GET) if self.gateway.health().is_settled => {
                return Ok(self.health(StatusCode::OK));
            }
            ("/readyz", &Method::GET) => return Ok(self.health(StatusCode::SERVICE_UNAVAILABLE)),
            _ => {}
        }
        let Some(caller) = self.checks.prove(headers) else {
            let reason = "send the token as `Authorization: Bearer …`";
            return refuse(StatusCode::UNAUTHORIZED, reason);
        };
        match (uri.path(), request.method()) {
            ("/mcp", _) => {}
            ("/metrics", &Method::GET) => return Ok(self.show_metrics()),
            ("/sse", &Method::GET) if self.has_sse => return self.open_sse(caller, headers),
            ("/messages", &Method::POST) if self.has_sse => {
                return self.post_message(request).await;
            }
            _ => return self.rest(&caller, request).await,
        }
        match *request.method() {
            Method::POST => self.post(caller, request).await,
            // Requests that stand alone have neither streams of their own nor sessions.
            _ if modern::is_named(headers) => Ok(not_allowed("POST")),
            Method::GET => self.get(headers),
            Method::DELETE => self.delete(headers),
            _ => Ok(not_allowed("GET, POST, DELETE")),
        }
    }

    /// How many upstreams are ready; no secret, so that probes need no token.
    fn health(&self, status: StatusCode) -> Response<Body> {
        let health = self.gateway.health();
        let word = match (health.is_settled, health.ready == health.total) {
            (false, _) => "starting",
            (true, true) => "ok",
            (true, false) => "degraded",
        };
        let text = format!(
            r#"{{"status":"{word}","upstreams":{{"ready":{},"total":{}}}}}"#,
            health.ready, health.total
        );
        json(status, text.into())
    }

    async fn post(
        &self,
        caller: Caller,
        request: Request<Incoming>,
    ) -> Result<Response<Body>, Refused> {
        let (head, body) = request.into_parts();
        let headers = head.headers;
        if !is_json(&headers) {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `application/json`");
        }
        let frame = read(body).await?;
        let parsed = rpc::parse(&frame);
        if let Ok(message) = &parsed
            && modern::is_meant(&headers, message)
        {
            return self.post_alone(&caller, &headers, message.clone()).await;
        }
        let version = self.version(&headers)?;
        let message = match parsed {
            Ok(Message::Request { id, method, params }) if method == "initialize" => {
                let revision = self.gateway.revision_asked(params.as_ref());
                check_accept(&headers, revision)?;
                let request = GatewayRequest::new(id, method, params);
                return Ok(self.initialize(caller, &request).await);
            }
            Ok(message) => message,
            Err(rejection) => return self.batch(&headers, version, &frame, &rejection).await,
        };
        let session = self.session(&headers, version)?;
        check_accept(&headers, session.revision())?;
        let Some(request) = self.gateway.take(&session.client, message) else {
            return Ok(empty(StatusCode::ACCEPTED));
        };
        Ok(self.answer(session, request, Streaming::wanted(&headers)).await)
    }

    /// Several messages at once, where the session's revision has that.
    async fn batch(
        &self,
        headers: &HeaderMap,
        version: Option<Revision>,
        frame: &Bytes,
        rejection: &Rejection,
    ) -> Result<Response<Body>, Refused> {
        let session = self.session(headers, version).ok();
        let messages = session.as_ref().and_then(|session| batch::of(&session.client, frame));
        let (Some(session), Some(messages)) = (session, messages) else {
            return Ok(json(StatusCode::BAD_REQUEST, reply::to_rejected(rejection)));
        };
        let _under_way = self.under_way.token();
        let answers = batch::answer(&self.gateway, &session.client, &session.outlet, messages);
        Ok(match answers.await {
            Some(array) => json(StatusCode::OK, array),
            None => empty(StatusCode::ACCEPTED),
        })
    }

    async fn initialize(&self, caller: Caller, request: &GatewayRequest) -> Response<Body> {
        let newcomer = self.sessions.admit(caller);
        let client = newcomer.client();
        let (outbox, _) = outbox::channel();
        let outcome = self.gateway.handle(client, request, &client.outlet(outbox)).await;
        let is_open = outcome.is_ok();
        let frame = reply::to_request(request, outcome);
        let mut response = json(StatusCode::OK, frame);
        if is_open {
            let id = HeaderValue::from_str(&newcomer.open());
            response.headers_mut().insert(SESSION, id.expect("ids are visible ASCII"));
        }
        response
    }

    /// A plain answer, or a stream when something comes before it.
    async fn answer(
        &self,
        session: Arc<Session>,
        request: GatewayRequest,
        streaming: Streaming,
    ) -> Response<Body> {
        let (outbox, mut queue) = outbox::channel();
        let client = Arc::clone(&session.client);
        let outlet = client.outlet(outbox);
        let gateway = self.gateway.clone();
        let under_way = self.under_way.token();
        let mut work: Work = Box::pin(async move {
            let outcome = gateway.handle(&client, &request, &outlet).await;
            let status = status(&outcome);
            (status, reply::to_request(&request, outcome))
        });
        let first = match streaming {
            Streaming::Preferred => None,
            Streaming::Refused => return plain(work).await,
            Streaming::Accepted => match first_of(&mut queue, &mut work).await {
                Err((status, frame)) => return json(status, frame),
                Ok(first) => Some(first),
            },
        };
        let Some(number) = session.streams.begin() else { return plain(work).await };
        if let Some(first) = first {
            session.streams.push(number, first);
        }
        let events = session.streams.read(number, None);
        let primer = session.revision().primes_streams().then(|| streams::primer(number));
        tokio::spawn(async move {
            stream_out(&session.streams, number, queue, work).await;
            drop(under_way);
        });
        stream(events::body(primer, events, CancellationToken::new()))
    }

    fn get(&self, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
        if !lists(headers, ACCEPT.as_str(), EVENT_STREAM) {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`");
        }
        let session = self.session(headers, self.version(headers)?)?;
        let asked = headers.get(LAST_EVENT).map(|id| id.to_str().ok().and_then(EventId::parse));
        let (first, events) = match asked {
            Some(Some(id)) => (None, session.streams.read(id.stream, Some(id.event))),
            Some(None) => {
                let gap = Bytes::from_static(b": this event is not known; some may be missing\n\n");
                (Some(gap), session.streams.read(STANDING, None))
            }
            None => (None, session.streams.read(STANDING, None)),
        };
        Ok(stream(events::body(first, events, self.stop.clone())))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
        let id = session_id(headers)?;
        if self.sessions.close(id) {
            Ok(empty(StatusCode::NO_CONTENT))
        } else {
            refuse(StatusCode::NOT_FOUND, UNKNOWN_SESSION)
        }
    }

    /// The session that a request belongs to; its revision holds for every request.
    fn session(
        &self,
        headers: &HeaderMap,
        version: Option<Revision>,
    ) -> Result<Arc<Session>, Refused> {
        let Some(session) = self.sessions.find(session_id(headers)?) else {
            return refuse(StatusCode::NOT_FOUND, UNKNOWN_SESSION);
        };
        let agreed = session.revision();
        if version.is_some_and(|version| version != agreed) {
            let reason = format!("this session speaks {agreed}; send that `MCP-Protocol-Version`");
            return refuse(StatusCode::BAD_REQUEST, &reason);
        }
        Ok(session)
    }

    /// The revision that the request names, which must be one that is spoken.
    fn version(&self, headers: &HeaderMap) -> Result<Option<Revision>, Refused> {
        let Some(version) = headers.get(VERSION) else { return Ok(None) };
        let spoken = self.gateway.spoken();
        let known = version.to_str().ok().and_then(|version| spoken.parse(version));
        if known.is_some() {
            return Ok(known);
        }
        let known = spoken.names();
        let reason = format!("this `MCP-Protocol-Version` is not spoken; use {known}");
        refuse(StatusCode::BAD_REQUEST, &reason)
    }
}

/// Makes events of what comes until `work` is done, and of what it makes. It goes on when the
/// client has left: in these revisions that is no cancellation, and it may come back.
async fn stream_out(streams: &Streams, number: u64, mut queue: OutboxQueue, mut work: Work) {
    let (_, last) = loop {
        tokio::select! {
            biased;
            Some(frame) = queue.recv() => streams.push(number, frame),
            last = &mut work => break last,
        }
    };
    while let Some(frame) = queue.try_recv() {
        streams.push(number, frame);
    }
    streams.push(number, last);
    streams.finish(number);
}

/// Whether an answer may be an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Streaming {
    Refused,
    /// If there is something to tell before the answer.
    Accepted,
    /// It is what the client names first.
    Preferred,
}

impl Streaming {
    pub fn wanted(headers: &HeaderMap) -> Streaming {
        let first = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
        let first = first.and_then(|accept| accept.split([',', ';']).next());
        match first.map(str::trim) {
            Some(EVENT_STREAM) => Streaming::Preferred,
            _ if lists(headers, ACCEPT.as_str(), EVENT_STREAM) => Streaming::Accepted,
            _ => Streaming::Refused,
        }
    }
}

/// What comes before the answer, if anything does; otherwise the answer.
pub(super) async fn first_of(
    queue: &mut OutboxQueue,
    work: &mut Work,
) -> Result<Bytes, (StatusCode, Bytes)> {
    tokio::select! {
        biased;
        Some(first) = queue.recv() => Ok(first),
        answer = &mut *work => match queue.try_recv() {
            None => Err(answer),
            Some(first) => {
                *work = Box::pin(ready(answer));
                Ok(first)
            }
        },
    }
}

pub(super) async fn plain(work: Work) -> Response<Body> {
    let (status, frame) = work.await;
    json(status, frame)
}

fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}

fn status(outcome: &Result<Outcome, Error>) -> StatusCode {
    match outcome {
        Err(error) if error.class() == Class::Protocol => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

pub(super) fn stream(events: Body) -> Response<Body> {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) const UNKNOWN_SESSION: &str = "there is no such session; start anew with `initialize`";

fn session_id(headers: &HeaderMap) -> Result<&str, Refused> {
    match headers.get(SESSION).map(|id| id.to_str()) {
        Some(Ok(id)) if id.len() <= SESSION_ID_BYTES_MAX => Ok(id),
        Some(_) => {
            refuse(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is not one of ours")
        }
        None => refuse(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is missing"),
    }
}

/// Whether the client accepts what the answer to a POST may be.
pub(super) fn check_accept(headers: &HeaderMap, revision: Revision) -> Result<(), Refused> {
    let accepts = |media_type: &str| lists(headers, ACCEPT.as_str(), media_type);
    match (accepts("application/json"), accepts(EVENT_STREAM)) {
        (true, true) => Ok(()),
        (true, false) if !revision.must_accept_streams() => Ok(()),
        _ => {
            let reason = "accept both `application/json` and `text/event-stream`";
            refuse(StatusCode::NOT_ACCEPTABLE, reason)
        }
    }
}

/// Whether the body is said to be JSON in UTF-8.
pub(super) fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let mut parts = content_type.unwrap_or_default().split(';').map(str::trim);
    let is_json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    is_json && parts.all(|part| !is_other_charset(part))
}

fn is_other_charset(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or_default();
    name.eq_ignore_ascii_case("charset") && !value.trim_matches('"').eq_ignore_ascii_case("utf-8")
}

/// Whether a header names a media type, by itself or by a wildcard.
pub(super) fn lists(headers: &HeaderMap, header: &str, media_type: &str) -> bool {
    let of_type = media_type.split_once('/').map(|(main, _)| format!("{main}/*"));
    headers.get_all(header).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|entry| {
            let entry = entry.split(';').next().unwrap_or_default().trim();
            entry.eq_ignore_ascii_case(media_type)
                || entry == "*/*"
                || of_type.as_deref().is_some_and(|of_type| entry.eq_ignore_ascii_case(of_type))
        })
    })
}

pub(super) async fn read(body: Incoming) -> Result<Bytes, Refused> {
    let (status, reason) = match body::read(body).await {
        Ok(frame) => return Ok(frame),
        Err(Fault::TooLarge) => {
            let reason = format!("the message is over {MESSAGE_BYTES_MAX} bytes");
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, &reason);
        }
        Err(Fault::TooSlow) => (StatusCode::REQUEST_TIMEOUT, "the message came too slowly"),
        Err(Fault::CutOff) => (StatusCode::BAD_REQUEST, "the message was cut off"),
        Err(Fault::NoRoom) => {
            let reason = "too many messages are being worked on; send it again soon";
            (StatusCode::SERVICE_UNAVAILABLE, reason)
        }
    };
    refuse(status, reason)
}

pub(super) fn json(status: StatusCode, frame: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(frame).boxed_unsync());
    *response.status_mut() = status;
    let value = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

pub(super) fn error(status: StatusCode, reason: &str) -> Response<Body> {
    let object = rpc::error_object(Code::INVALID_REQUEST, reason, None);
    json(status, rpc::error(None, object.as_bytes()))
}

pub(super) fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = status;
    response
}
