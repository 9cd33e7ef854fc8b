//! `/mcp`: a message by POST, a stream by GET, the end of a session by DELETE; and the probes.

use std::sync::Arc;

use bytes::Bytes;
use gateway::Gateway;
use gateway::answer::Answer;
use gateway::auth::Caller;
use gateway::error::{Class, Error};
use gateway::outbox::{self, OutboxQueue};
use gateway::place::Place;
use gateway::request::Request as GatewayRequest;
use hyper::body::Incoming;
use hyper::header::{HeaderValue, WWW_AUTHENTICATE};
use hyper::{Method, Response, StatusCode, Version};
use mcp::rpc::{self, Message, Rejection};
use mcp::version::{Era, Revision};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::checks::{Checks, Proof};
use super::crowd::Crowd;
use super::docs;
use super::events::{self, Body};
use super::exchange::{
    Refused, Streaming, Work, empty, error, first_of, json, let_go_on, not_allowed, plain, read,
    refuse, replied, stream,
};
use super::head::Head;
use super::metrics::Metrics;
use super::reload::Reload;
use super::routes::Route;
use super::sessions::{Session, Sessions};
use super::streams::{self, EventId, Streams};
use super::traffic::Traffic;
use crate::batch;
use crate::limits::SESSION_ID_BYTES_MAX;
use crate::reply::{self, Reply};

const SESSION: &str = "mcp-session-id";

pub struct Endpoint {
    pub(super) gateway: Gateway,
    pub(super) sessions: Sessions,
    pub(super) checks: Checks,
    pub(super) crowd: Arc<Crowd>,
    pub(super) metrics: Metrics,
    pub(super) reload: Option<Reload>,
    pub(super) stop: CancellationToken,
    /// Counts the requests that are being answered.
    pub(super) under_way: TaskTracker,
    /// Whether the transport of 2024-11-05 is served.
    pub(super) has_sse: bool,
    /// Whether `/readyz` wants all servers to be ready.
    pub(super) awaits_all: bool,
    /// Where MCP is served, and what is shown there.
    pub(super) places: Vec<(String, Place)>,
    /// What may stand before every path.
    pub(super) base_path: Option<String>,
    /// Paths that call a tool each.
    pub(super) routes: Vec<Route>,
}

impl Endpoint {
    /// Waits until all requests are answered; to be called when no more are accepted.
    pub async fn drained(&self) {
        self.under_way.close();
        self.under_way.wait().await;
    }

    pub async fn respond(
        self: &Arc<Self>,
        traffic: &Traffic,
        head: &Head<'_>,
        body: Incoming,
    ) -> Response<Body> {
        let path = head.path();
        self.route(traffic, head, body).await.unwrap_or_else(|Refused(status, reason)| {
            let is_mcp = self.place_at(path).is_some() || matches!(path, "/sse" | "/messages");
            let mut response = if is_mcp {
                error(status, &reason)
            } else {
                json(status, reply::rest::to_refused(status, &reason))
            };
            if status == StatusCode::UNAUTHORIZED {
                // TD-77; a token that is wrong is told from one that is missing (RFC 6750).
                let is_shown = head.authorization.value().is_some();
                let scheme = if is_shown { r#"Bearer error="invalid_token""# } else { "Bearer" };
                let scheme = HeaderValue::from_static(scheme);
                response.headers_mut().insert(WWW_AUTHENTICATE, scheme);
            }
            response
        })
    }

    async fn route(
        self: &Arc<Self>,
        traffic: &Traffic,
        head: &Head<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        let known = traffic.proof().filter(|proof| proof.holds_for(head));
        let proof = match known {
            Some(proof) => Some(proof),
            None => self.check(traffic, head)?,
        };
        match (head.path(), head.method) {
            ("/health" | "/healthz" | "/readyz", &Method::GET) => {
                return Ok(self.health(head.path(), proof.as_deref()));
            }
            (path, &Method::GET) if path.starts_with("/docs") => {
                if let Some(page) = docs::at(path) {
                    return Ok(page);
                }
            }
            _ => {}
        }
        if head.path() == "/reload" {
            return Box::pin(self.reload(traffic, proof.as_deref(), head)).await;
        }
        let Some(proof) = proof else { return Err(unproven(head)) };
        match (head.path(), head.method) {
            (path, _) if self.place_at(path).is_some() => {}
            ("/metrics", &Method::GET) if proof.caller.is_operator() => {
                return Ok(self.show_metrics());
            }
            ("/metrics", &Method::GET) => {
                return refuse(StatusCode::FORBIDDEN, "figures are for the operator's token");
            }
            ("/sse", &Method::GET) if self.has_sse => return self.open_sse(&proof, head),
            ("/messages", &Method::POST) if self.has_sse => {
                return Box::pin(self.post_message(&proof, head, body)).await;
            }
            // In boxes, as is all that is rare: the way of every request has room for it otherwise.
            _ => return Box::pin(self.rest(&proof, head, body)).await,
        }
        let place = self.place(&proof, head)?;
        match *head.method {
            Method::POST => self.post(&proof, &place, head, body).await,
            // Requests that stand alone have neither streams of their own nor sessions.
            _ if head.is_modern() => Ok(not_allowed("POST")),
            Method::GET => self.get(&proof, &place, head),
            Method::DELETE => self.delete(&proof, &place, head),
            _ => Ok(not_allowed("GET, POST, DELETE")),
        }
    }

    /// Looks at where a request comes from and what it shows, which is kept for the next one.
    fn check(&self, traffic: &Traffic, head: &Head<'_>) -> Result<Option<Arc<Proof>>, Refused> {
        if let Err(status) = self.checks.check_source(head) {
            return refuse(status, "this host or origin is not served");
        }
        if head.is_ambiguous_about_itself() {
            let reason = "say once, in plain letters, who you are";
            return refuse(StatusCode::BAD_REQUEST, reason);
        }
        let proof = self.checks.prove(head, traffic.address());
        if let Some(proof) = &proof {
            traffic.keep_proof(Arc::clone(proof));
        }
        Ok(proof)
    }

    async fn post(
        &self,
        proof: &Proof,
        place: &Place,
        head: &Head<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        if !head.has_json() {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `application/json`");
        }
        let frame = read(body).await?;
        if head.version < Version::HTTP_2 {
            let_go_on().await;
        }
        let message = match rpc::parse(&frame) {
            Ok(message) => message,
            Err(rejection) => {
                let session = self.session(proof, place, head, self.version(head)?).ok();
                return Box::pin(self.batch(session, &frame, &rejection)).await;
            }
        };
        let request = match message {
            Message::Request { id, method, params } => GatewayRequest::new(id, method, params),
            message => return self.post_notice(proof, place, head, message),
        };
        if request.era() == Era::Modern || head.is_modern() {
            return self.post_alone(proof, place, head, request.alone()).await;
        }
        let version = self.version(head)?;
        if request.method == "initialize" {
            let revision = self.gateway.revision_asked(request.params.as_ref());
            head.check_accept(revision)?;
            return Ok(Box::pin(self.initialize(&proof.caller, place, &request)).await);
        }
        let session = self.session(proof, place, head, version)?;
        head.check_accept(session.revision())?;
        Ok(self.answer(session, request, head.streaming()).await)
    }

    /// Takes a message that is no request.
    fn post_notice(
        &self,
        proof: &Proof,
        place: &Place,
        head: &Head<'_>,
        message: Message,
    ) -> Result<Response<Body>, Refused> {
        let (is_notice, params) = match &message {
            Message::Notification { params, .. } => (true, params.as_ref()),
            _ => (false, None),
        };
        if !head.is_modern() && !mcp::modern::is_modern(params) {
            let session = self.session(proof, place, head, self.version(head)?)?;
            head.check_accept(session.revision())?;
            self.gateway.take(&session.client, message);
            return Ok(empty(StatusCode::ACCEPTED));
        }
        head.check_accept(Revision::NEWEST_MODERN)?;
        if is_notice {
            // Nothing that is under way can be spoken of here: it ends when its stream does.
            return Ok(empty(StatusCode::ACCEPTED));
        }
        refuse(StatusCode::BAD_REQUEST, "nobody has asked for this answer")
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
        caller: &Caller,
        place: &Place,
        request: &GatewayRequest,
    ) -> Response<Body> {
        let newcomer = self.sessions.admit(caller.clone(), place);
        let client = newcomer.client();
        let (outbox, _) = outbox::channel();
        let answer = self.gateway.handle(client, request, &client.outlet(outbox)).await;
        let is_open = answer.is_ok();
        let frame = reply::to_request(request, reply::whole(answer).await);
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
        let outlet = client.outlet(outbox).taking_pieces(streaming.takes_pieces());
        let gateway = self.gateway.clone();
        let under_way = self.under_way.token();
        let mut work: Work = Box::pin(async move {
            let answer = gateway.handle(&client, &request, &outlet).await;
            (status(&answer), Reply::new(&request, answer))
        });
        let first = match streaming {
            Streaming::Preferred => None,
            Streaming::Refused => {
                // What can't be told is refused at once, and not kept.
                drop(queue);
                return plain(work, under_way).await;
            }
            Streaming::Accepted => match first_of(&mut queue, &mut work).await {
                Err((status, reply)) => return replied(status, reply, under_way),
                Ok(first) => Some(first),
            },
        };
        let number = session.streams.begin();
        if let Some(first) = first {
            match number {
                Some(number) => session.streams.push(number, first),
                None => session.streams.tell(first),
            }
        }
        let Some(number) = number else {
            drop(queue);
            return plain(work, under_way).await;
        };
        let events = session.streams.read(number, None);
        let primer = session.revision().primes_streams().then(|| streams::primer(number));
        tokio::spawn(async move {
            stream_out(&session.streams, number, queue, work).await;
            drop(under_way);
        });
        stream(events::body(primer, events, CancellationToken::new()))
    }

    fn get(
        &self,
        proof: &Proof,
        place: &Place,
        head: &Head<'_>,
    ) -> Result<Response<Body>, Refused> {
        if !head.accepts_streams() {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`");
        }
        let session = self.session(proof, place, head, self.version(head)?)?;
        let asked = head.last_event.value().map(|id| id.to_str().ok().and_then(EventId::parse));
        let (first, events) = match asked {
            Some(Some(id)) if session.streams.knows(id) => {
                (None, session.streams.read(id.stream, Some(id.event)))
            }
            Some(_) => {
                let gap = Bytes::from_static(b": this event is not known; some may be missing\n\n");
                (Some(gap), session.streams.stand())
            }
            None => (None, session.streams.stand()),
        };
        Ok(stream(events::body(first, events, self.stop.clone())))
    }

    fn delete(
        &self,
        proof: &Proof,
        place: &Place,
        head: &Head<'_>,
    ) -> Result<Response<Body>, Refused> {
        self.session(proof, place, head, None)?;
        self.sessions.close(session_id(head)?);
        Ok(empty(StatusCode::NO_CONTENT))
    }

    /// The session that a request belongs to; its revision holds for every request. To others than
    /// who has opened it, it is unknown.
    pub(super) fn session(
        &self,
        proof: &Proof,
        place: &Place,
        head: &Head<'_>,
        version: Option<Revision>,
    ) -> Result<Arc<Session>, Refused> {
        let session = self.sessions.find(session_id(head)?);
        let is_own = |session: &Arc<Session>| {
            session.place.is_the_same(place) && session.is_of(&proof.caller)
        };
        let Some(session) = session.filter(is_own) else {
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
    fn version(&self, head: &Head<'_>) -> Result<Option<Revision>, Refused> {
        if head.protocol.value().is_none() {
            return Ok(None);
        }
        let spoken = self.gateway.spoken();
        let known = head.protocol.text().and_then(|version| spoken.parse(version));
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
    streams.push(number, last.whole().await);
    streams.finish(number);
}

fn status(answer: &Result<Answer, Error>) -> StatusCode {
    match answer {
        Err(error) if error.class() == Class::Protocol => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}

pub(super) const UNKNOWN_SESSION: &str = "there is no such session; start anew with `initialize`";

fn session_id<'h>(head: &Head<'h>) -> Result<&'h str, Refused> {
    match (head.session.value(), head.session.text()) {
        (_, Some(id)) if id.len() <= SESSION_ID_BYTES_MAX => Ok(id),
        (Some(_), _) => {
            refuse(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is not one of ours")
        }
        (None, _) => refuse(StatusCode::BAD_REQUEST, "the header `Mcp-Session-Id` is missing"),
    }
}

/// Why a request is refused that proves nobody.
fn unproven(head: &Head<'_>) -> Refused {
    let path = head.path();
    let is_of_oauth = path == "/register"
        || path.strip_prefix("/.well-known/").is_some_and(|name| {
            name.starts_with("oauth-") || name.starts_with("openid-configuration")
        });
    // A client that is told to log in there first would never come to its token.
    let (status, reason) = if is_of_oauth {
        (
            StatusCode::NOT_FOUND,
            "there is no OAuth here; send the token as `Authorization: Bearer …`",
        )
    } else if head.authorization.value().is_some() {
        let reason = "the token is not known here; see that it is the one of this gateway, \
            sent as `Authorization: Bearer …`";
        (StatusCode::UNAUTHORIZED, reason)
    } else {
        (StatusCode::UNAUTHORIZED, "send the token as `Authorization: Bearer …`")
    };
    Refused(status, reason.to_owned())
}
