//! The HTTP client of one upstream: a bounded pool of connections, and answers of bounded size.
//!
//! Follows no redirects and keeps no cookies. What is said over it is not known here. Without TLS
//! the connections are our own (`plain`), which is cheap; with it they are a library's, which knows
//! HTTP/2 too.

mod body;
mod link;
mod plain;

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Body as _;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue, LOCATION};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp::text::tame;
use tokio::time::{sleep, timeout};

pub use body::Body;
use plain::Plain;

use crate::limits::{
    CONNECT_PAUSES, CONNECT_TIMEOUT, IDLE_CONNECTION_TIME, IDLE_CONNECTIONS_MAX, PROBE_AFTER,
    PROBE_PAUSE, PROBES_MAX, REFUSAL_BYTES_MAX, REFUSAL_CHARS_SHOWN, REFUSAL_TIME_MAX,
};
use crate::remote::{Url, place};

/// A client for one server.
pub struct Web {
    url: Url,
    /// How a request to that address names it.
    target: Uri,
    pool: Pool,
}

/// The pool with and without TLS: certificates are only loaded where they are needed.
enum Pool {
    Plain(Arc<Plain>),
    Tls(Box<TlsClient>),
}

type TlsClient = Client<HttpsConnector<HttpConnector>, Full<Bytes>>;

/// Why a request got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection could be made, so nothing was sent.
    Unreachable(String),
    /// The connection broke while it was in use.
    Broken(String),
    /// The answer is over the bound.
    TooLarge,
}

impl Web {
    pub fn new(url: &Url) -> Result<Web, String> {
        let pool = if url.is_https() {
            let mut builder = Client::builder(TokioExecutor::new());
            builder
                .timer(TokioTimer::new())
                .pool_timer(TokioTimer::new())
                .pool_idle_timeout(IDLE_CONNECTION_TIME)
                .pool_max_idle_per_host(IDLE_CONNECTIONS_MAX)
                .http2_keep_alive_interval(PROBE_AFTER)
                .http2_keep_alive_timeout(PROBE_PAUSE);
            Pool::Tls(Box::new(builder.build(tls()?)))
        } else {
            Pool::Plain(Plain::new(url))
        };
        Ok(Web { url: url.clone(), target: target(url), pool })
    }

    pub fn url(&self) -> &Url {
        &self.url
    }

    /// How a request to the server's own address names it.
    pub fn target(&self) -> &Uri {
        &self.target
    }

    /// The header fields that every request must carry.
    pub fn headers(&self) -> HeaderMap {
        let mut headers = HeaderMap::new();
        // With TLS it depends on the version of HTTP whether there is one.
        if let (Pool::Plain(_), Some(host)) = (&self.pool, host(self.url.uri())) {
            headers.insert(HOST, host);
        }
        headers
    }

    /// Sends a request to a [`target`], and again while no connection can be made, for a moment:
    /// a server that restarts is not to be noticed.
    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Body>, Failure> {
        match &self.pool {
            Pool::Plain(plain) => {
                let (response, link) = plain.send(request).await?;
                Ok(response.map(|body| Body::plain(body, link, plain)))
            }
            // In a box, so that it does not make the way without it larger.
            Pool::Tls(client) => Box::pin(send_over_tls(client, request)).await,
        }
    }
}

async fn send_over_tls(
    client: &TlsClient,
    request: Request<Full<Bytes>>,
) -> Result<Response<Body>, Failure> {
    let mut pauses = CONNECT_PAUSES.iter();
    loop {
        let error = match client.request(request.clone()).await {
            Ok(response) => return Ok(response.map(Body::tls)),
            Err(error) => error,
        };
        let reason = innermost(&error);
        if !error.is_connect() {
            return Err(Failure::Broken(reason));
        }
        match pauses.next() {
            Some(pause) => sleep(*pause).await,
            None => return Err(Failure::Unreachable(reason)),
        }
    }
}

/// How a request names an address: without the server where the connection says which.
pub fn target(url: &Url) -> Uri {
    match url.uri().path_and_query() {
        Some(path) if !url.is_https() => Uri::from(path.clone()),
        _ => url.uri().clone(),
    }
}

/// The server as the header field names it.
fn host(uri: &Uri) -> Option<HeaderValue> {
    let name = uri.host()?;
    let port = uri.port_u16().filter(|port| *port != 80);
    let host = port.map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
    HeaderValue::try_from(host).ok()
}

fn tcp() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector.set_keepalive(Some(PROBE_AFTER));
    connector.set_keepalive_interval(Some(PROBE_PAUSE));
    connector.set_keepalive_retries(Some(PROBES_MAX));
    connector.enforce_http(false);
    connector
}

/// One for all: it takes long to load the system's certificates.
fn tls() -> Result<HttpsConnector<HttpConnector>, String> {
    static LOADED: OnceLock<HttpsConnector<HttpConnector>> = OnceLock::new();
    if let Some(loaded) = LOADED.get() {
        return Ok(loaded.clone());
    }
    let loading = hyper_rustls::HttpsConnectorBuilder::new()
        .with_native_roots()
        .map_err(|error| format!("the system's certificates can't be used: {error}"))?;
    let tls = loading.https_only().enable_all_versions().wrap_connector(tcp());
    Ok(LOADED.get_or_init(|| tls).clone())
}

/// The cause of causes, which says most: "connection refused".
fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    tame(&cause.to_string())
}

/// The next piece of a body; `None` at its end.
pub async fn next_chunk(body: &mut Body) -> Result<Option<Bytes>, Failure> {
    loop {
        match body.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(Failure::Broken(innermost(&error))),
        }
    }
}

/// The whole body, or what has come of it once that is more than `held_max`; whether it is whole.
pub async fn read_some(body: &mut Body, held_max: usize) -> Result<(Bytes, bool), Failure> {
    let Some(first) = next_chunk(body).await? else { return Ok((Bytes::new(), true)) };
    if body.is_end_stream() || first.len() > held_max {
        return Ok((first, body.is_end_stream()));
    }
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    let mut held = BytesMut::with_capacity(first.len() + announced.min(held_max));
    held.extend_from_slice(&first);
    while let Some(chunk) = next_chunk(body).await? {
        held.extend_from_slice(&chunk);
        if held.len() > held_max {
            return Ok((held.freeze(), false));
        }
    }
    Ok((held.freeze(), true))
}

/// The whole body that begins with `held`, if it is within the bound.
pub async fn read_on(body: &mut Body, held: Bytes, bytes_max: usize) -> Result<Bytes, Failure> {
    let mut whole = BytesMut::from(held);
    while let Some(chunk) = next_chunk(body).await? {
        if whole.len() + chunk.len() > bytes_max {
            return Err(Failure::TooLarge);
        }
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

/// The beginning of the body of a refusal.
pub async fn read_refusal(body: &mut Body) -> Bytes {
    let mut read = BytesMut::new();
    let reading = async {
        while let Ok(Some(chunk)) = next_chunk(body).await {
            read.extend_from_slice(&chunk[..chunk.len().min(REFUSAL_BYTES_MAX - read.len())]);
            if read.len() >= REFUSAL_BYTES_MAX {
                break;
            }
        }
    };
    _ = timeout(REFUSAL_TIME_MAX, reading).await;
    read.freeze()
}

/// What a refusal says, fit for a message.
pub fn shown(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let words: Vec<&str> = text.split_whitespace().collect();
    let shown: String = tame(&words.join(" ")).chars().take(REFUSAL_CHARS_SHOWN).collect();
    if shown.is_empty() { shown } else { format!(": {shown}") }
}

/// Whether the answer is a stream of events.
pub fn is_event_stream(response: &Response<Body>) -> bool {
    let kind = response.headers().get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    kind.is_some_and(|kind| {
        kind.len() >= 17 && kind[..17].eq_ignore_ascii_case(b"text/event-stream")
    })
}

/// Where a redirect leads, without the parts that may be secret; `None` if it is none.
pub fn redirect(url: &Url, response: &Response<Body>) -> Option<String> {
    if !response.status().is_redirection() || response.status() == StatusCode::NOT_MODIFIED {
        return None;
    }
    let location = response.headers().get(LOCATION).and_then(|value| value.to_str().ok());
    let to: Option<Uri> = location.and_then(|location| location.parse().ok());
    let Some(host) = to.as_ref().and_then(Uri::host) else {
        return Some("another path of the same host".into());
    };
    let is_downgrade = url.is_https() && to.as_ref().and_then(Uri::scheme_str) == Some("http");
    let by = if is_downgrade { "plain http at " } else { "" };
    Some(format!("{by}{} `{}`", place(host), tame(host)))
}
