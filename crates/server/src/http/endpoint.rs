//! `/mcp`: a message by POST, a stream by GET, the end of a session by DELETE; and the probes.

use std::sync::Arc;

use bytes::Bytes;
use gateway::Gateway;
use gateway::auth::Caller;
use gateway::dispatch::Request as GatewayRequest;
use gateway::error::{Class, Error};
use gateway::outbox::{self, OutboxQueue};
use gateway::place::{Misplaced, Place};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, HeaderMap, HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use mcp::rpc::{self, Message, Outcome, Rejection};
use mcp::version::Revision;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::checks::Checks;
use super::crowd::Crowd;
use super::events::{self, Body};
use super::exchange::{
    EVENT_STREAM, Refused, Streaming, Work, check_accept, empty, error, first_of, is_json, json,
    lists, not_allowed, plain, read, refuse, stream,
};
use super::metrics::Metrics;
use super::modern;
use super::sessions::{Session, Sessions};
use super::streams::{self, EventId, STANDING, Streams};
use crate::limits::SESSION_ID_BYTES_MAX;
use crate::{batch, reply};

const SESSION: &str = "mcp-session-id";
pub(super) const VERSION: &str = "mcp-protocol-version";
const NAMESPACE: &str = "x-namespace";
const LAST_EVENT: &str = "last-event-id";

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
    pub(super) has_sse: bool,
    /// Where MCP is served, and what is shown there.
    pub(super) places: Vec<(String, Place)>,
}

impl Endpoint {
    /// Waits until all requests are answered; to be called when no more are accepted.
    pub async fn drained(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    pub async fn respond(self: &Arc<Self>, request: Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let is_mcp = self.place_at(path).is_some() || matches!(path, "/sse" | "/messages");
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
            (path, _) if self.place_at(path).is_some() => {}
            ("/metrics", &Method::GET) => return Ok(self.show_metrics()),
            ("/sse", &Method::GET) if self.has_sse => return self.open_sse(caller, headers),
            ("/messages", &Method::POST) if self.has_sse => {
                return self.post_message(request).await;
            }
            _ => return self.rest(&caller, request).await,
        }
        let place = self.place(uri.path(), headers)?;
        match *request.method() {
            Method::POST => self.post(caller, &place, request).await,
            // Requests that stand alone have neither streams of their own nor sessions.
            _ if modern::is_named(headers) => Ok(not_allowed("POST")),
            Method::GET => self.get(&place, headers),
            Method::DELETE => self.delete(&place, headers),
            _ => Ok(not_allowed("GET, POST, DELETE")),
        }
    }

    pub(super) fn place_at(&self, path: &str) -> Option<&Place> {
        self.places.iter().find(|(known, _)| known == path).map(|(_, place)| place)
    }

    /// Where a request is made: by its path, or the usual place, and by the namespace it names.
    pub(super) fn place(&self, path: &str, headers: &HeaderMap) -> Result<Place, Refused> {
        let usual = || self.gateway.place();
        let place = self.place_at(path).cloned().unwrap_or_else(usual);
        let mut named = headers.get_all(NAMESPACE).iter();
        let namespace = match (named.next().map(|name| name.to_str()), named.next()) {
            (None, _) => None,
            (Some(Ok(name)), None) if !name.is_empty() => Some(name),
            _ => {
                let reason = "name one namespace in `X-Namespace`, in plain letters";
                return refuse(StatusCode::BAD_REQUEST, reason);
            }
        };
        self.gateway.narrow(&place, namespace).or_else(|misplaced| {
            let names = self.gateway.namespaces_in(&place);
            let names: Vec<_> = names.iter().map(|name| format!("`{}`", name.as_str())).collect();
            let names = names.join(", ");
            match misplaced {
                // TD-78
                Misplaced::NamespaceMissing => {
                    let reason = format!("name a namespace in `X-Namespace`; there are {names}");
                    refuse(StatusCode::BAD_REQUEST, &reason)
                }
                // TD-79
                Misplaced::NamespaceUnknown => {
                    let reason = format!("there is no such namespace; there are {names}");
                    refuse(StatusCode::NOT_FOUND, &reason)
                }
            }
        })
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
        place: &Place,
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
            return self.post_alone(&caller, place, &headers, message.clone()).await;
        }
        let version = self.version(&headers)?;
        let message = match parsed {
            Ok(Message::Request { id, method, params }) if method == "initialize" => {
                let revision = self.gateway.revision_asked(params.as_ref());
                check_accept(&headers, revision)?;
                let request = GatewayRequest::new(id, method, params);
                return Ok(self.initialize(caller, place, &request).await);
            }
            Ok(message) => message,
            Err(rejection) => {
                let session = self.session(place, &headers, version).ok();
                return self.batch(session, &frame, &rejection).await;
            }
        };
        let session = self.session(place, &headers, version)?;
        check_accept(&headers, session.revision())?;
        let Some(request) = self.gateway.take(&session.client, message) else {
            return Ok(empty(StatusCode::ACCEPTED));
        };
        Ok(self.answer(session, request, Streaming::wanted(&headers)).await)
    }

    /// Several messages at once, where the session's revision has that.
    async fn batch(
        &self,
        session: Option<Arc<Session>>,
        frame: &Bytes,
        rejection: &Rejection,
    ) -> Result<Response<Body>, Refused> {
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

    async fn initialize(
        &self,
        caller: Caller,
        place: &Place,
        request: &GatewayRequest,
    ) -> Response<Body> {
        let newcomer = self.sessions.admit(caller, place);
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
            Streaming::Refused => {
                // What can't be told is refused at once, and not kept.
                drop(queue);
                return plain(work).await;
            }
            Streaming::Accepted => match first_of(&mut queue, &mut work).await {
                Err((status, frame)) => return json(status, frame),
                Ok(first) => Some(first),
            },
        };
        let number = session.streams.begin();
        if let Some(first) = first {
            session.streams.push(number.unwrap_or(STANDING), first);
        }
        let Some(number) = number else {
            drop(queue);
            return plain(work).await;
        };
        let events = session.streams.read(number, None);
        let primer = session.revision().primes_streams().then(|| streams::primer(number));
        tokio::spawn(async move {
            stream_out(&session.streams, number, queue, work).await;
            drop(under_way);
        });
        stream(events::body(primer, events, CancellationToken::new()))
    }

    fn get(&self, place: &Place, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
        if !lists(headers, ACCEPT.as_str(), EVENT_STREAM) {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`");
        }
        let session = self.session(place, headers, self.version(headers)?)?;
        let asked = headers.get(LAST_EVENT).map(|id| id.to_str().ok().and_then(EventId::parse));
        let (first, events) = match asked {
            Some(Some(id)) if session.streams.knows(id) => {
                (None, session.streams.read(id.stream, Some(id.event)))
            }
            Some(_) => {
                let gap = Bytes::from_static(b": this event is not known; some may be missing\n\n");
                (Some(gap), session.streams.read(STANDING, None))
            }
            None => (None, session.streams.read(STANDING, None)),
        };
        Ok(stream(events::body(first, events, self.stop.clone())))
    }

    fn delete(&self, place: &Place, headers: &HeaderMap) -> Result<Response<Body>, Refused> {
        self.session(place, headers, None)?;
        self.sessions.close(session_id(headers)?);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The session that a request belongs to; its revision holds for every request.
    fn session(
        &self,
        place: &Place,
        headers: &HeaderMap,
        version: Option<Revision>,
    ) -> Result<Arc<Session>, Refused> {
        let session = self.sessions.find(session_id(headers)?);
        let Some(session) = session.filter(|session| session.place == *place) else {
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

fn status(outcome: &Result<Outcome, Error>) -> StatusCode {
    match outcome {
        Err(error) if error.class() == Class::Protocol => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
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
