//! `/mcp`: one message a POST, a stream by GET, the end of a session by DELETE.

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use gateway::Gateway;
use gateway::auth::Caller;
use gateway::client::Client;
use gateway::dispatch::Request as GatewayRequest;
use gateway::outbox;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue, WWW_AUTHENTICATE,
};
use hyper::{Method, Request, Response, StatusCode};
use mcp::rpc::{self, Code, Message};
use mcp::version::Revision;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::checks::Checks;
use super::events::{self, Body};
use super::sessions::Sessions;
use crate::limits::{BODY_TIMEOUT, MESSAGE_BYTES_MAX, SESSION_ID_BYTES_MAX};
use crate::reply;

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

pub struct Endpoint {
    gateway: Gateway,
    sessions: Sessions,
    checks: Checks,
    stop: CancellationToken,
    /// Counts the requests that are being answered.
    under_way: TaskTracker,
}

/// A refusal: the status, and what to do.
struct Refused(StatusCode, String);

fn refuse<T>(status: StatusCode, reason: &str) -> Result<T, Refused> {
    Err(Refused(status, reason.to_owned()))
}

impl Endpoint {
    pub fn new(
        gateway: Gateway,
        sessions: Sessions,
        checks: Checks,
        stop: CancellationToken,
    ) -> Endpoint {
        Endpoint { gateway, sessions, checks, stop, under_way: TaskTracker::new() }
    }

    /// Waits until all requests are answered; to be called when no more are accepted.
    pub async fn drained(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    pub async fn respond(&self, request: Request<Incoming>) -> Response<Body> {
        let caller = match self.checks.admit(request.uri(), request.headers()) {
            Ok(caller) => caller,
            Err(StatusCode::UNAUTHORIZED) => {
                let reason = "send the token as `Authorization: Bearer …`";
                let mut response = error(StatusCode::UNAUTHORIZED, Code::INVALID_REQUEST, reason);
                let scheme = HeaderValue::from_static("Bearer");
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
                return response;
            }
            Err(status) => {
                let reason = "this host or origin is not served";
                return error(status, Code::INVALID_REQUEST, reason);
            }
        };
        if request.uri().path() != "/mcp" {
            let reason = "there is nothing here; the endpoint is `/mcp`";
            return error(StatusCode::NOT_FOUND, Code::INVALID_REQUEST, reason);
        }
        let outcome = match *request.method() {
            Method::POST => self.post(caller, request).await,
            Method::GET => self.get(request.headers()),
            Method::DELETE => self.delete(request.headers()),
            _ => {
                let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
                let allowed = HeaderValue::from_static("GET, POST, DELETE");
                response.headers_mut().insert(ALLOW, allowed);
                return response;
            }
        };
        outcome
            .unwrap_or_else(|Refused(status, reason)| error(status, Code::INVALID_REQUEST, &reason))
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
        if !lists(&headers, ACCEPT.as_str(), "application/json")
            || !lists(&headers, ACCEPT.as_str(), "text/event-stream")
        {
            let reason = "accept both `application/json` and `text/event-stream`";
            return refuse(StatusCode::NOT_ACCEPTABLE, reason);
        }
        check_version(&headers)?;
        let frame = read(body).await?;
        let message = match rpc::parse(&frame) {
            Ok(message) => message,
            Err(rejection) => {
                return Ok(json(StatusCode::BAD_REQUEST, reply::to_rejected(&rejection)));
            }
        };
        match message {
            Message::Request { id, method, params } if method == "initialize" => {
                let request = GatewayRequest { id, method, params };
                Ok(self.initialize(caller, &request).await)
            }
            Message::Request { id, method, params } => {
                let client = self.session(&headers)?;
                Ok(self.answer(client, GatewayRequest { id, method, params }).await)
            }
            Message::Notification { method, params } => {
                let client = self.session(&headers)?;
                self.gateway.notice(&client, &method, params.as_ref());
                Ok(empty(StatusCode::ACCEPTED))
            }
            Message::Response { id, outcome } => {
                let client = self.session(&headers)?;
                self.gateway.answer(&client, &id, outcome);
                Ok(empty(StatusCode::ACCEPTED))
            }
        }
    }

    async fn initialize(&self, caller: Caller, request: &GatewayRequest) -> Response<Body> {
        let newcomer = self.sessions.admit(caller);
        let client = newcomer.client();
        let (outbox, _) = outbox::channel();
        let outcome = self.gateway.handle(client, request, &client.outlet(outbox)).await;
        let is_open = outcome.is_ok();
        let frame = reply::to_request(&request.id, &request.method, outcome);
        let mut response = json(StatusCode::OK, frame);
        if is_open {
            let id = HeaderValue::from_str(&newcomer.open());
            response.headers_mut().insert(SESSION, id.expect("ids are visible ASCII"));
        }
        response
    }

    /// A plain answer, or a stream when something comes before it.
    async fn answer(&self, client: Arc<Client>, request: GatewayRequest) -> Response<Body> {
        let (outbox, mut queue) = outbox::channel();
        let outlet = client.outlet(outbox);
        let gateway = self.gateway.clone();
        let under_way = self.under_way.token();
        let mut work = Box::pin(async move {
            let outcome = gateway.handle(&client, &request, &outlet).await;
            drop(under_way);
            Some(reply::to_request(&request.id, &request.method, outcome))
        });
        tokio::select! {
            biased;
            Some(first) = queue.recv() => stream(events::ending_with(first, queue, work)),
            frame = &mut work => match (queue.try_recv(), frame) {
                (Some(first), frame) => {
                    stream(events::ending_with(first, queue, Box::pin(ready(frame))))
                }
                (None, Some(frame)) => json(StatusCode::OK, frame),
                (None, None) => empty(StatusCode::ACCEPTED),
            }
        }
    }

    fn get(&self, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
        if !lists(headers, ACCEPT.as_str(), "text/event-stream") {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`");
        }
        check_version(headers)?;
        let client = self.session(headers)?;
        let (outbox, queue) = outbox::channel();
        client.attach(client.outlet(outbox));
        Ok(stream(events::standing(queue, self.stop.clone())))
    }

    fn delete(&self, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
        let id = session_id(headers)?;
        if self.sessions.close(id) {
            Ok(empty(StatusCode::NO_CONTENT))
        } else {
            refuse(StatusCode::NOT_FOUND, UNKNOWN_SESSION)
        }
    }

    fn session(&self, headers: &HeaderMap) -> Result<Arc<Client>, Refused> {
        let id = session_id(headers)?;
        match self.sessions.find(id) {
            Some(client) => Ok(client),
            None => refuse(StatusCode::NOT_FOUND, UNKNOWN_SESSION),
        }
    }
}

fn stream(events: Body) -> Response<Body> {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

const UNKNOWN_SESSION: &str = "there is no such session; start anew with `initialize`";

fn session_id(headers: &HeaderMap) -> Result<&str, Refused> {
    match headers.get(SESSION).map(|id| id.to_str()) {
        Some(Ok(id)) if id.len() <= SESSION_ID_BYTES_MAX => Ok(id),
        Some(_) => {
            refuse(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is not one of ours")
        }
        None => refuse(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is missing"),
    }
}

fn check_version(headers: &HeaderMap) -> Result<(), Refused> {
    let Some(version) = headers.get(VERSION) else {
        return Ok(());
    };
    if version.to_str().ok().and_then(Revision::parse).is_some() {
        return Ok(());
    }
    let known: Vec<_> = Revision::ALL.iter().map(|revision| revision.as_str()).collect();
    let reason = format!("this `MCP-Protocol-Version` is not spoken; use {}", known.join(", "));
    refuse(StatusCode::BAD_REQUEST, &reason)
}

/// Whether the body is said to be JSON in UTF-8.
fn is_json(headers: &HeaderMap) -> bool {
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
fn lists(headers: &HeaderMap, header: &str, media_type: &str) -> bool {
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

async fn read(body: Incoming) -> Result<Bytes, Refused> {
    let too_large = || {
        let reason = format!("the message is over {MESSAGE_BYTES_MAX} bytes");
        refuse(StatusCode::PAYLOAD_TOO_LARGE, &reason)
    };
    if body.size_hint().lower() > MESSAGE_BYTES_MAX as u64 {
        return too_large(); // It says so itself; nothing needs to be read.
    }
    let body = Limited::new(body, MESSAGE_BYTES_MAX);
    match timeout(BODY_TIMEOUT, body.collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => too_large(),
        Ok(Err(_)) => refuse(StatusCode::BAD_REQUEST, "the message was cut off"),
        Err(_) => refuse(StatusCode::REQUEST_TIMEOUT, "the message took too long to arrive"),
    }
}

fn json(status: StatusCode, frame: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(frame).boxed_unsync());
    *response.status_mut() = status;
    let value = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

fn error(status: StatusCode, code: Code, reason: &str) -> Response<Body> {
    let object = rpc::error_object(code, reason, None);
    json(status, rpc::error(None, object.as_bytes()))
}

fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = status;
    response
}
