//! A single request over HTTP, outside of any conversation: one process of ours asks another.

use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use tokio::time::timeout;

use crate::limits::POST_ANSWER_BYTES_MAX;
use crate::remote::{Headers, Url};
use crate::web::{Failure, Fields, Request, Web, read_on};

/// Posts a body of JSON; the status and the body of the answer, or in words why there is none.
pub async fn post(
    url: &Url,
    headers: &Headers,
    body: &Bytes,
    time_max: Duration,
) -> Result<(u16, Bytes), String> {
    ask(Method::POST, url, headers, body, time_max).await
}

/// The same without a body.
pub async fn get(url: &Url, headers: &Headers, time_max: Duration) -> Result<(u16, Bytes), String> {
    ask(Method::GET, url, headers, &Bytes::new(), time_max).await
}

async fn ask(
    method: Method,
    url: &Url,
    headers: &Headers,
    body: &Bytes,
    time_max: Duration,
) -> Result<(u16, Bytes), String> {
    let web = Web::new(url)?;
    let mut fields = web.headers();
    fields.extend(headers.map().clone());
    if method == Method::POST {
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    let fields = Fields::new(fields);
    let request = Request { method, target: web.target(), fields: &fields, more: &[], body };
    let asking = async {
        let mut reply = web.send(&request).await?;
        let body = read_on(&mut reply.body, Bytes::new(), POST_ANSWER_BYTES_MAX).await?;
        Ok((reply.status.as_u16(), body))
    };
    match timeout(time_max, asking).await {
        Ok(answer) => answer.map_err(|failure| match failure {
            Failure::Unreachable(reason) => format!("can't be reached: {reason}"),
            Failure::Broken(reason) => format!("broke off: {reason}"),
            Failure::Malformed(_) => "answered what is no HTTP".to_owned(),
            Failure::TooLarge => "answered more than can be read".to_owned(),
        }),
        Err(_) => Err(format!("has not answered within {time_max:?}")),
    }
}
