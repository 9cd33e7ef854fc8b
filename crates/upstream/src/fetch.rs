//! Fetching a document or an archive: one GET, bounded in bytes and time. Redirects are told of, not followed.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{ACCEPT, HeaderValue, USER_AGENT};
use tokio::time::timeout;

use crate::remote::Url;
use crate::web::{Failure, Fields, Request, Web, read_on, read_refusal, redirect, shown};

/// What is wanted, and how much of it is taken.
#[derive(Clone, Copy, Debug)]
pub struct Wanted {
    /// The media types that are understood.
    pub accept: &'static str,
    pub bytes_max: usize,
    pub time_max: Duration,
}

/// Why nothing came.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FetchError {
    #[error("{url} can't be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("{url} answered with status {status}{said}")]
    Refused { url: String, status: u16, said: String },
    #[error("{url} redirects to {to}, which is not followed")]
    Redirected { url: String, to: String },
    #[error("{url} gives more than {most} bytes")]
    TooLarge { url: String, most: usize },
    #[error("{url} was not done within {waited:?}")]
    Slow { url: String, waited: Duration },
}

/// Fetches what is at an address.
pub async fn fetch(url: &Url, wanted: Wanted) -> Result<Bytes, FetchError> {
    match timeout(wanted.time_max, Box::pin(get(url, wanted))).await {
        Ok(fetched) => fetched,
        Err(_) => Err(FetchError::Slow { url: url.to_string(), waited: wanted.time_max }),
    }
}

async fn get(url: &Url, wanted: Wanted) -> Result<Bytes, FetchError> {
    let named = url.to_string();
    let unreachable = |reason| FetchError::Unreachable { url: named.clone(), reason };
    let web = Web::new(url).map_err(unreachable)?;
    let mut headers = web.headers();
    headers.insert(ACCEPT, HeaderValue::from_static(wanted.accept));
    let agent = concat!("toolman/", env!("CARGO_PKG_VERSION"));
    headers.insert(USER_AGENT, HeaderValue::from_static(agent));
    let fields = Fields::new(headers);
    let (method, body) = (Method::GET, Bytes::new());
    let request = Request { method, target: web.target(), fields: &fields, more: &[], body: &body };
    let failed = |failure| match failure {
        Failure::Unreachable(reason) | Failure::Broken(reason) => unreachable(reason),
        Failure::Malformed(_) => unreachable("its answer is no HTTP".to_owned()),
        Failure::TooLarge => FetchError::TooLarge { url: named.clone(), most: wanted.bytes_max },
    };
    let mut reply = web.send(&request).await.map_err(failed)?;
    if let Some(to) = redirect(url, &reply) {
        return Err(FetchError::Redirected { url: named, to });
    }
    if !reply.status.is_success() {
        let said = shown(&read_refusal(&mut reply.body).await);
        return Err(FetchError::Refused { url: named, status: reply.status.as_u16(), said });
    }
    read_on(&mut reply.body, Bytes::new(), wanted.bytes_max).await.map_err(failed)
}
