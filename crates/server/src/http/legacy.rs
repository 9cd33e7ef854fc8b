//! The transport of 2024-11-05: a stream by GET `/sse`, messages by POST `/messages`.

use std::iter;
use std::pin::pin;
use std::sync::Arc;

use gateway::outbox;
use gateway::request::Request as GatewayRequest;
use hyper::body::Incoming;
use hyper::{Response, StatusCode, Uri};
use mcp::rpc;

use super::checks::Proof;
use super::endpoint::{Endpoint, UNKNOWN_SESSION};
use super::events::{self, Body};
use super::exchange::{Refused, empty, json, read, refuse, stream};
use super::head::Head;
use super::sessions::Session;
use super::streams::STANDING;
use crate::reply;

impl Endpoint {
    /// Opens the stream, and with it a session that ends when the stream does.
    pub(super) fn open_sse(
        self: &Arc<Self>,
        proof: &Proof,
        head: &Head<'_>,
    ) -> Result<Response<Body>, Refused> {
        if !head.accepts_streams() {
            return refuse(StatusCode::NOT_ACCEPTABLE, "accept `text/event-stream`");
        }
        let place = self.place(proof, head)?;
        let id = self.sessions.admit(proof.caller.clone(), &place).open();
        let Some(session) = self.sessions.find(&id) else {
            return refuse(StatusCode::SERVICE_UNAVAILABLE, "there are too many sessions");
        };
        let first = format!("event: endpoint\ndata: /messages?session_id={id}\n\n");
        let events = session.streams.read(STANDING, None);
        let body = events::body(Some(first.into()), events, self.stop.clone());
        let ending = Ending { endpoint: Arc::clone(self), id };
        Ok(stream(body.with(ending)))
    }

    /// Takes a message; what there is to answer comes on the stream.
    pub(super) async fn post_message(
        &self,
        proof: &Proof,
        head: &Head<'_>,
        body: Incoming,
    ) -> Result<Response<Body>, Refused> {
        let session = session_id(head.uri).and_then(|id| self.sessions.find(id));
        let is_own = |session: &Arc<Session>| {
            let caller = &proof.caller;
            session.is_of(caller) && self.gateway.still_stands(&session.place, caller)
        };
        let Some(session) = session.filter(is_own) else {
            return refuse(StatusCode::NOT_FOUND, UNKNOWN_SESSION);
        };
        if head.content_type.value().is_some() && !head.has_json() {
            return refuse(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send `application/json`");
        }
        let frame = read(body).await?;
        let message = match rpc::parse(&frame) {
            Ok(message) => message,
            Err(rejection) => {
                return Ok(json(StatusCode::BAD_REQUEST, reply::to_rejected(&rejection)));
            }
        };
        if let Some(request) = self.gateway.take(&session.client, message) {
            self.answer_on_stream(session, request);
        }
        Ok(empty(StatusCode::ACCEPTED))
    }

    fn answer_on_stream(&self, session: Arc<Session>, request: GatewayRequest) {
        let gateway = self.gateway.clone();
        let under_way = self.under_way.token();
        tokio::spawn(async move {
            if request.method != "initialize" {
                // TD-153: some callers never introduce themselves.
                gateway.assume_introduced(&session.client);
            }
            // A queue of its own, so that the answer overtakes nothing that belongs before it.
            let (outbox, mut queue) = outbox::channel();
            let outlet = session.client.outlet(outbox);
            let mut handling = pin!(gateway.handle(&session.client, &request, &outlet));
            let answer = loop {
                tokio::select! {
                    biased;
                    Some(frame) = queue.recv() => session.streams.push(STANDING, frame),
                    answer = &mut handling => break answer,
                }
            };
            let last = reply::unless_cancelled(&request, answer).await;
            for frame in iter::from_fn(|| queue.try_recv()).chain(last) {
                session.streams.push(STANDING, frame);
            }
            drop(under_way);
        });
    }
}

/// Ends the session when its stream is gone.
struct Ending {
    endpoint: Arc<Endpoint>,
    id: String,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.endpoint.sessions.close(&self.id);
    }
}

fn session_id(uri: &Uri) -> Option<&str> {
    let pairs = uri.query()?.split('&').filter_map(|pair| pair.split_once('='));
    pairs.into_iter().find_map(|(name, value)| (name == "session_id").then_some(value))
}
