//! What requests say in their headers and bodies, and what answers look like.

use std::future::ready;
use std::pin::Pin;

use bytes::Bytes;
use gateway::outbox::OutboxQueue;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::{ACCEPT, ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use mcp::rpc::{self, Code};
use mcp::version::Revision;

use super::body::{self, Fault};
use super::events::Body;
use crate::limits::MESSAGE_BYTES_MAX;

pub const EVENT_STREAM: &str = "text/event-stream";

/// Makes the answer to a request.
pub type Work = Pin<Box<dyn Future<Output = (StatusCode, Bytes)> + Send>>;

/// A refusal: the status, and what to do.
pub struct Refused(pub StatusCode, pub String);

pub fn refuse<T>(status: StatusCode, reason: &str) -> Result<T, Refused> {
    Err(Refused(status, reason.to_owned()))
}

/// Whether an answer may be an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streaming {
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
pub async fn first_of(
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

pub async fn plain(work: Work) -> Response<Body> {
    let (status, frame) = work.await;
    json(status, frame)
}

/// Whether the client accepts what the answer to a POST may be.
pub fn check_accept(headers: &HeaderMap, revision: Revision) -> Result<(), Refused> {
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
pub fn is_json(headers: &HeaderMap) -> bool {
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
pub fn lists(headers: &HeaderMap, header: &str, media_type: &str) -> bool {
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

pub async fn read(body: Incoming) -> Result<Bytes, Refused> {
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

pub fn json(status: StatusCode, frame: Bytes) -> Response<Body> {
    let mut response = Response::new(Full::new(frame).boxed_unsync());
    *response.status_mut() = status;
    let value = HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, value);
    response
}

pub fn error(status: StatusCode, reason: &str) -> Response<Body> {
    let object = rpc::error_object(Code::INVALID_REQUEST, reason, None);
    json(status, rpc::error(None, object.as_bytes()))
}

pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Full::new(Bytes::new()).boxed_unsync());
    *response.status_mut() = status;
    response
}

pub fn stream(events: Body) -> Response<Body> {
    let mut response = Response::new(events);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub fn not_allowed(allowed: &'static str) -> Response<Body> {
    let mut response = empty(StatusCode::METHOD_NOT_ALLOWED);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(allowed));
    response
}
