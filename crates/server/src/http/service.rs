//! One request: whether it is well formed, and what every answer gets.

use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderValue, RETRY_AFTER, TRANSFER_ENCODING,
};
use hyper::{Request, Response, StatusCode, Version};

use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::error;
use super::traffic::{Paced, Traffic};
use super::wire::Lengths;
use crate::limits::HEADERS_MAX;

/// Answers a request.
pub async fn answer(
    endpoint: &Arc<Endpoint>,
    traffic: &Traffic,
    request: Request<Incoming>,
) -> Response<Paced> {
    let ticket = traffic.begin();
    let has_http1 = request.version() < Version::HTTP_2;
    let path = request.uri().path().to_owned();
    let (mut response, must_close) = match find_fault(traffic.lengths(), &request) {
        Some((status, fault)) => (error(status, fault), true),
        None => {
            let response = respond(endpoint, request).await;
            let must_close = response.status() == StatusCode::REQUEST_TIMEOUT;
            (response, must_close)
        }
    };
    let is_mcp = endpoint.place_at(&path).is_some();
    endpoint.metrics.count(&path, is_mcp, response.status());
    let status = response.status();
    let headers = response.headers_mut();
    if must_close && has_http1 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    if status == StatusCode::SERVICE_UNAVAILABLE {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
    }
    response.map(|body| Paced::new(body, ticket))
}

/// Answers a well-formed request; pages of allowed origins may read the answer.
async fn respond(endpoint: &Arc<Endpoint>, request: Request<Incoming>) -> Response<Body> {
    let cross_origin = endpoint.checks.cross_origin(&request);
    let mut response = match &cross_origin {
        Some(origin) if origin.is_preflight => super::cors::preflight(),
        _ => endpoint.respond(request).await,
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
fn find_fault<B>(lengths: &Lengths, request: &Request<B>) -> Option<(StatusCode, &'static str)> {
    let bad = |reason| (StatusCode::BAD_REQUEST, reason);
    let (headers, uri) = (request.headers(), request.uri());
    let mut hosts = headers.get_all(HOST).iter();
    if request.version() >= Version::HTTP_2 {
        let authority = uri.authority().map(|authority| authority.as_str().as_bytes());
        let is_other = |host: &HeaderValue| authority.is_some_and(|a| a != host.as_bytes());
        if headers.len() > HEADERS_MAX {
            return Some((StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "send fewer headers"));
        }
        return hosts.any(is_other).then_some(bad("`Host` is not the authority of the request"));
    }
    if headers.contains_key(TRANSFER_ENCODING) {
        if lengths.take_all() > 0 {
            return Some(bad("send `Content-Length` or `Transfer-Encoding`, not both"));
        }
    } else if headers.contains_key(CONTENT_LENGTH) {
        lengths.take_one();
    }
    match (hosts.next(), hosts.next()) {
        (Some(_), None) => None,
        (None, _) => Some(bad("the header `Host` is missing")),
        (Some(_), Some(_)) => Some(bad("the header `Host` must be there once")),
    }
}
