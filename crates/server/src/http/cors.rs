//! Letting pages of other origins read our answers, where the operator has named them.

use bytes::Bytes;
use hyper::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, HeaderMap, HeaderValue, VARY,
};
use hyper::{Response, StatusCode};

use super::events::Body;

/// A request from a page of an origin that is allowed.
pub struct CrossOrigin {
    pub origin: HeaderValue,
    /// Whether the browser only asks if it may send the request.
    pub is_preflight: bool,
}

impl CrossOrigin {
    pub fn allow(self, headers: &mut HeaderMap) {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, self.origin);
        let exposed = HeaderValue::from_static("Mcp-Session-Id, WWW-Authenticate");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
    }
}

/// Tells caches that the answer depends on who asks.
pub fn vary(headers: &mut HeaderMap) {
    headers.append(VARY, HeaderValue::from_static("Origin"));
}

/// The answer to a browser that asks first. It shows no token yet.
pub fn preflight() -> Response<Body> {
    let mut response = Response::new(Body::whole(Bytes::new()));
    *response.status_mut() = StatusCode::NO_CONTENT;
    let headers = response.headers_mut();
    for (name, value) in [
        (ACCESS_CONTROL_ALLOW_METHODS, "GET, POST, PUT, PATCH, DELETE"),
        (
            ACCESS_CONTROL_ALLOW_HEADERS,
            "Authorization, Content-Type, Accept, Mcp-Session-Id, MCP-Protocol-Version, \
             Mcp-Method, Mcp-Name, Last-Event-ID, X-Namespace, traceparent",
        ),
        (ACCESS_CONTROL_MAX_AGE, "600"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}
