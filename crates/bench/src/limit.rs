//! The anchors: gateways that do nothing but carry bytes, on the HTTP stack of the real one.
//!
//! No gateway on this stack can be faster. They read no JSON, know nobody and check nothing.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::Context as _;
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HOST, HeaderValue};
use hyper::http::uri::Authority;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::process::{ChildStdin, ChildStdout};
use tokio::sync::{mpsc, oneshot};

use crate::limits::OUTGOING_MAX;
use crate::{door, ids, process};

type Body = Either<Incoming, Full<Bytes>>;

/// A reverse proxy for an HTTP upstream.
pub fn serve_http(upstream: &Uri, port: u16) -> anyhow::Result<()> {
    let authority = upstream.authority().cloned().context("the upstream's URL names no host")?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        let client = Client::builder(TokioExecutor::new()).build(connector);
        let listener = door::open(port).await?;
        loop {
            let stream = door::accept(&listener).await;
            let (client, authority) = (client.clone(), authority.clone());
            let service = service_fn(move |request| {
                let (client, authority) = (client.clone(), authority.clone());
                async move { Ok::<_, Infallible>(forward(&client, authority, request).await) }
            });
            tokio::spawn(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    })
}

async fn forward(
    client: &Client<HttpConnector, Incoming>,
    authority: Authority,
    mut request: Request<Incoming>,
) -> Response<Body> {
    let path = request.uri().path_and_query().cloned();
    let uri = Uri::builder().scheme("http").authority(authority);
    let Ok(uri) = uri.path_and_query(path.map_or("/".into(), |path| path.to_string())).build()
    else {
        return plain(StatusCode::BAD_REQUEST, Bytes::new());
    };
    *request.uri_mut() = uri;
    request.headers_mut().remove(HOST);
    match client.request(request).await {
        Ok(response) => response.map(Either::Left),
        Err(problem) => plain(StatusCode::BAD_GATEWAY, problem.to_string().into()),
    }
}

/// A bridge from HTTP to one child that all clients share.
pub fn serve_stdio(command: &[String], port: u16) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let (mut child, stdin, stdout) = process::piped(command)?;
        let (outgoing, queue) = mpsc::channel(OUTGOING_MAX);
        let bridge = Arc::new(Bridge {
            next: AtomicU64::new(1),
            outgoing,
            waiting: Mutex::new(HashMap::new()),
        });
        tokio::spawn(write(stdin, queue));
        tokio::spawn(read(stdout, bridge.clone()));
        let listener = door::open(port).await?;
        loop {
            let stream = tokio::select! {
                stream = door::accept(&listener) => stream,
                _ = child.wait() => anyhow::bail!("the child has ended; see what it said above"),
            };
            let bridge = bridge.clone();
            let service = service_fn(move |request| {
                let bridge = bridge.clone();
                async move { Ok::<_, Infallible>(bridge.carry(request).await) }
            });
            tokio::spawn(
                http1::Builder::new()
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    })
}

struct Bridge {
    next: AtomicU64,
    outgoing: mpsc::Sender<Vec<u8>>,
    /// Who waits for the answer with an id.
    waiting: Mutex<HashMap<u64, oneshot::Sender<Vec<u8>>>>,
}

impl Bridge {
    async fn carry(&self, request: Request<Incoming>) -> Response<Body> {
        let Ok(body) = request.into_body().collect().await else {
            return plain(StatusCode::BAD_REQUEST, Bytes::new());
        };
        let frame = body.to_bytes();
        let gone = || plain(StatusCode::BAD_GATEWAY, Bytes::new());
        let Some(place) = ids::find(&frame) else {
            if self.outgoing.send(frame.to_vec()).await.is_err() {
                return gone();
            }
            return plain(StatusCode::ACCEPTED, Bytes::new());
        };
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        let (answered, answer) = oneshot::channel();
        self.waiting().insert(id, answered);
        let replaced = ids::replace(&frame, place.clone(), id.to_string().as_bytes());
        if self.outgoing.send(replaced).await.is_err() {
            return gone();
        }
        let Ok(answer) = answer.await else { return gone() };
        let Some(found) = ids::find(&answer) else { return gone() };
        plain(StatusCode::OK, ids::replace(&answer, found, &frame[place]).into())
    }

    fn waiting(&self) -> std::sync::MutexGuard<'_, HashMap<u64, oneshot::Sender<Vec<u8>>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes what waits in one go, as far as it is there.
async fn write(mut stdin: ChildStdin, mut queue: mpsc::Receiver<Vec<u8>>) {
    let mut frames = Vec::new();
    let mut batch = Vec::new();
    while queue.recv_many(&mut frames, OUTGOING_MAX).await > 0 {
        batch.clear();
        for frame in frames.drain(..) {
            batch.extend_from_slice(&frame);
            batch.push(b'\n');
        }
        if stdin.write_all(&batch).await.is_err() {
            return;
        }
    }
}

async fn read(stdout: ChildStdout, bridge: Arc<Bridge>) {
    let mut lines = BufReader::with_capacity(64 * 1024, stdout);
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        let id = ids::find(&line).and_then(|place| std::str::from_utf8(&line[place]).ok());
        let waiting = id.and_then(|id| bridge.waiting().remove(&id.parse().ok()?));
        if let Some(waiting) = waiting {
            // Its client may have left.
            _ = waiting.send(std::mem::take(&mut line));
        }
        line.clear();
    }
    bridge.waiting().clear();
}

fn plain(status: StatusCode, body: Bytes) -> Response<Body> {
    let mut response = Response::new(Either::Right(Full::new(body)));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
