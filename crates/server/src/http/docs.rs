//! The page at `/docs`, where a person reads what the tools of a namespace are and tries them.
//!
//! It holds nothing of anybody, so it needs no token: it asks for `/openapi.json` and calls tools as every client does,
//! with the token that is typed in. It loads nothing from elsewhere, and a browser holds it to that.

use bytes::Bytes;
use hyper::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderValue, REFERRER_POLICY,
    X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS,
};
use hyper::{Response, StatusCode};

use super::events::Body;
use super::exchange::json;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What is at a path of the page, if anything is.
pub fn at(path: &str) -> Option<Response<Body>> {
    let (media_type, text) = match path {
        "/docs" => ("text/html; charset=utf-8", include_str!("docs/page.html")),
        "/docs/page.js" => ("text/javascript; charset=utf-8", include_str!("docs/page.js")),
        "/docs/style.css" => ("text/css; charset=utf-8", include_str!("docs/style.css")),
        _ => return None,
    };
    let mut response = json(StatusCode::OK, Bytes::from_static(text.as_bytes()));
    for (name, value) in [
        (CONTENT_TYPE, media_type),
        (CONTENT_SECURITY_POLICY, POLICY),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (X_FRAME_OPTIONS, "DENY"),
        (REFERRER_POLICY, "no-referrer"),
        (CACHE_CONTROL, "no-cache"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    Some(response)
}
