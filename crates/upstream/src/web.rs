//! The HTTP client of one upstream: a bounded pool of connections, and answers of bounded size.
//!
//! Follows no redirects and keeps no cookies. What is said over it is not known here. Without TLS
//! the connections are our own (`plain`), which is cheap; with it they are a library's, which knows
//! HTTP/2 too.

mod body;
mod framing;
mod link;
mod plain;

use std::sync::{Arc, OnceLock};

use bytes::{Bytes, BytesMut};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION};
use hyper::{Method, Response, StatusCode, Uri};
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use mcp::text::tame;
use tokio::time::{sleep, timeout};

pub use body::Body;
use framing::{Fault, is_event_stream};
use plain::Plain;

use crate::limits::{
    CONNECT_PAUSES, CONNECT_TIMEOUT, IDLE_CONNECTION_TIME, IDLE_CONNECTIONS_MAX, PROBE_AFTER,
    PROBE_PAUSE, PROBES_MAX, REFUSAL_BYTES_MAX, REFUSAL_CHARS_SHOWN, REFUSAL_TIME_MAX,
};
use crate::remote::{Url, place};

pub const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");

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

/// What is sent.
pub struct Request<'a> {
    pub method: Method,
    /// The path, and with TLS the server: a [`target`].
    pub target: &'a Uri,
    pub fields: &'a Fields,
    /// Header fields of this request alone.
    pub more: &'a [(HeaderName, HeaderValue)],
    pub body: &'a Bytes,
}

/// Header fields that many requests share: written once.
pub struct Fields {
    pub map: HeaderMap,
    /// As they are sent without TLS.
    written: Vec<u8>,
}

impl Fields {
    pub fn new(map: HeaderMap) -> Fields {
        let mut written = Vec::new();
        for (name, value) in &map {
            link::write_field(&mut written, name.as_str(), value.as_bytes());
        }
        Fields { map, written }
    }
}

/// What is answered.
pub struct Reply {
    pub status: StatusCode,
    pub is_event_stream: bool,
    /// Where a redirect leads.
    pub location: Option<Bytes>,
    /// The session that the server names.
    pub session: Option<Bytes>,
    pub body: Body,
}

/// Why a request got no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failure {
    /// No connection could be made, so nothing was sent.
    Unreachable(String),
    /// The connection broke while it was in use.
    Broken(String),
    /// The answer is no HTTP that can be read in one way only.
    Malformed(Fault),
    /// The answer is over the bound.
    TooLarge,
}

impl Failure {
    fn cut_off() -> Failure {
        Failure::Broken("it was closed before the answer was whole".to_owned())
    }
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

    /// Sends a request, and again while no connection can be made, for a moment: a server that
    /// restarts is not to be noticed.
    pub async fn send(&self, request: &Request<'_>) -> Result<Reply, Failure> {
        match &self.pool {
            Pool::Plain(plain) => {
                let (head, link) = plain.send(request).await?;
                Ok(Reply {
                    status: head.status,
                    is_event_stream: head.is_event_stream,
                    location: head.location,
                    session: head.session,
                    body: Body::plain(link, head.framing, head.is_kept, plain),
                })
            }
            // In a box, so that it does not make the way without it larger.
            Pool::Tls(client) => Box::pin(send_over_tls(client, request)).await,
        }
    }
}

async fn send_over_tls(client: &TlsClient, asked: &Request<'_>) -> Result<Reply, Failure> {
    let mut request = hyper::Request::new(Full::new(asked.body.clone()));
    *request.method_mut() = asked.method.clone();
    *request.uri_mut() = asked.target.clone();
    *request.headers_mut() = asked.fields.map.clone();
    request.headers_mut().extend(asked.more.iter().cloned());
    let mut pauses = CONNECT_PAUSES.iter();
    loop {
        let error = match client.request(request.clone()).await {
            Ok(response) => return Ok(reply_over_tls(response)),
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

fn reply_over_tls(response: Response<Incoming>) -> Reply {
    let field = |name: HeaderName| response.headers().get(name).map(HeaderValue::as_bytes);
    Reply {
        status: response.status(),
        is_event_stream: field(CONTENT_TYPE).is_some_and(is_event_stream),
        location: field(LOCATION).map(Bytes::copy_from_slice),
        session: field(SESSION_ID).map(Bytes::copy_from_slice),
        body: Body::tls(response.into_body()),
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

/// The whole body that begins with `held`, if it is within the bound.
pub async fn read_on(body: &mut Body, held: Bytes, bytes_max: usize) -> Result<Bytes, Failure> {
    let mut whole = BytesMut::from(held);
    while let Some(chunk) = body.next().await? {
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
        while let Ok(Some(chunk)) = body.next().await {
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

/// Where a redirect leads, without the parts that may be secret; `None` if it is none.
pub fn redirect(url: &Url, reply: &Reply) -> Option<String> {
    if !reply.status.is_redirection() || reply.status == StatusCode::NOT_MODIFIED {
        return None;
    }
    let to = reply.location.as_ref().and_then(|location| Uri::try_from(&location[..]).ok());
    let Some(host) = to.as_ref().and_then(Uri::host) else {
        return Some("another path of the same host".into());
    };
    let is_downgrade = url.is_https() && to.as_ref().and_then(Uri::scheme_str) == Some("http");
    let by = if is_downgrade { "plain http at " } else { "" };
    Some(format!("{by}{} `{}`", place(host), tame(host)))
}
