//! One request: whether it is well formed, and what every answer gets.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{CONNECTION, HeaderValue, RETRY_AFTER};
use hyper::{Request, Response, StatusCode, Uri, Version};

use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::{error, label};
use super::head::Head;
use super::traffic::{Paced, Traffic};
use super::wire::Signs;
use crate::limits::HEADERS_MAX;

/// Answers a request.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    traffic: &Traffic,
    request: Request<Incoming>,
) -> Response<Paced> {
    let ticket = traffic.begin(request.version());
    let (mut parts, body) = request.into_parts();
    if let Some(below) = endpoint.base_path.as_deref().and_then(|base| below(base, &parts.uri)) {
        parts.uri = below;
    }
    let head = Head::of(&parts);
    let (mut response, must_close) = match find_fault(traffic.signs(), &head) {
        Some((status, fault)) => (error(status, fault), true),
        None => {
            let response = respond(endpoint, traffic, &head, body).await;
            let must_close = response.status() == StatusCode::REQUEST_TIMEOUT;
            (response, must_close)
        }
    };
    let status = response.status();
    endpoint.metrics.count(head.path(), endpoint.place_at(head.path()).is_some(), status);
    let must_say_so = must_close && head.version < Version::HTTP_2;
    label(&mut response, parts.headers);
    if must_say_so {
        response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response.map(|body| Paced::new(body, ticket))
}

/// The same address without the path that all others may stand below.
fn below(base: &str, uri: &Uri) -> Option<Uri> {
    let rest = uri.path_and_query()?.as_str().strip_prefix(base)?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(rest.parse().ok().filter(|_| rest.starts_with('/'))?);
    Uri::from_parts(parts).ok()
}

/// Answers a well-formed request; pages of allowed origins may read the answer.
async fn respond(
    endpoint: &Arc<Endpoint>,
    traffic: &Traffic,
    head: &Head<'_>,
    body: Incoming,
) -> Response<Body> {
    let cross_origin = endpoint.checks.cross_origin(head);
    let mut response = match &cross_origin {
        Some(origin) if origin.is_preflight => super::cors::preflight(),
        _ => endpoint.respond(traffic, head, body).await,
    };
    if endpoint.checks.serves_pages() {
        super::cors::vary(response.headers_mut());
    }
    if let Some(origin) = cross_origin {
        origin.allow(response.headers_mut());
    }
    response
}

/// What is wrong with the frame of a request, if something is.
///
/// What two servers could read differently is refused, and the connection is closed: what comes
/// next on it might be the other half.
fn find_fault(signs: &Signs, head: &Head<'_>) -> Option<(StatusCode, &'static str)> {
    let bad = |reason| (StatusCode::BAD_REQUEST, reason);
    if head.version >= Version::HTTP_2 {
        if head.fields.len() > HEADERS_MAX {
            return Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "send fewer headers"));
        }
        let authority = head.uri.authority().map(|authority| authority.as_str().as_bytes());
        let is_other = |host: &HeaderValue| authority.is_some_and(|a| a != host.as_bytes());
        let is_misleading = head.host.is_repeated || head.host.value().is_some_and(is_other);
        return is_misleading.then_some(bad("`Host` is not the authority of the request"));
    }
    if head.is_chunked {
        if signs.take_lengths() > 0 {
            return Some(bad("send `Content-Length` or `Transfer-Encoding`, not both"));
        }
    } else if head.has_length {
        signs.take_length();
    }
    match head.host.value() {
        None => Some(bad("the header `Host` is missing")),
        Some(_) if head.host.is_repeated => Some(bad("the header `Host` must be there once")),
        Some(_) => None,
    }
}
