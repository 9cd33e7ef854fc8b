//! What requests say in their headers and bodies, and what answers look like.

use std::future::{poll_fn, ready};
use std::pin::Pin;
use std::task::Poll;

use bytes::Bytes;
use gateway::outbox::OutboxQueue;
use hyper::body::{Body as _, Incoming};
use hyper::header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};
use mcp::rpc::{self, Code};

use super::body::{self, Fault};
use super::events::Body;
use crate::limits::MESSAGE_BYTES_MAX;
use crate::reply::Reply;

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Makes the answer to a request.
pub type Work = Pin<Box<dyn Future<Output = (StatusCode, Reply)> + Send>>;

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
    /// Whether an answer may be sent while it is still coming: as an event it must be whole.
    pub fn takes_pieces(self) -> bool {
        self != Streaming::Preferred
    }
}

/// What comes before the answer, if anything does; otherwise the answer.
pub async fn first_of(
    queue: &mut OutboxQueue,
    work: &mut Work,
) -> Result<Bytes, (StatusCode, Reply)> {
    poll_fn(|context| {
        // Asked in this way, the queue wakes nobody at its end, which comes with the answer.
        if let Some(first) = queue.try_recv() {
            return Poll::Ready(Ok(first));
        }
        if let Poll::Ready(answer) = work.as_mut().poll(context) {
            return Poll::Ready(match queue.try_recv() {
                None => Err(answer),
                Some(first) => {
                    *work = Box::pin(ready(answer));
                    Ok(first)
                }
            });
        }
        match queue.poll_recv(context) {
            Poll::Ready(Some(first)) => Poll::Ready(Ok(first)),
            Poll::Ready(None) | Poll::Pending => Poll::Pending,
        }
    })
    .await
}

/// Lets the connection go on first. hyper wakes its own task once a body is taken from it: what has
/// begun by then is asked once more for nothing.
pub async fn let_go_on() {
    let mut is_first = true;
    poll_fn(|context| {
        if !std::mem::take(&mut is_first) {
            return Poll::Ready(());
        }
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

pub async fn plain(work: Work, companion: impl Send + Unpin + 'static) -> Response<Body> {
    let (status, reply) = work.await;
    replied(status, reply, companion)
}

/// The answer that a reply makes; `companion` goes with the last of it.
pub fn replied(
    status: StatusCode,
    reply: Reply,
    companion: impl Send + Unpin + 'static,
) -> Response<Body> {
    let mut response = json(status, Bytes::new());
    *response.body_mut() = match reply {
        Reply::Frame(frame) => Body::Whole(frame),
        Reply::Large { id, result } => {
            let [head, tail] = rpc::around_result(&id);
            Body::Pieces([head, result, tail])
        }
        Reply::Coming { request, result } => Body::coming(&request.id, result).with(companion),
    };
    response
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

/// An answer in JSON, which need not be said: [`label`] does.
pub fn json(status: StatusCode, frame: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::Whole(frame));
    *response.status_mut() = status;
    response
}

/// Says of an answer that says nothing else of itself that it is JSON. `used` is the map of the request's
/// fields: hyper takes it back with the answer and reads the next request into it, so that none is made anew.
pub fn label(response: &mut Response<Body>, mut used: HeaderMap) {
    if response.body().is_end_stream() || response.headers().contains_key(CONTENT_TYPE) {
        return;
    }
    if response.headers().is_empty() {
        used.clear();
        *response.headers_mut() = used;
    }
    response.headers_mut().insert(CONTENT_TYPE, JSON);
}

pub fn error(status: StatusCode, reason: &str) -> Response<Body> {
    let object = rpc::error_object(Code::INVALID_REQUEST, reason, None);
    json(status, rpc::error(None, object.as_bytes()))
}

pub fn empty(status: StatusCode) -> Response<Body> {
    let mut response = Response::new(Body::Whole(Bytes::new()));
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
