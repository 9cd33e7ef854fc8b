//! The upstreams of the benchmark: the same offer behind HTTP and behind pipes.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::header::CONTENT_TYPE;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};

use crate::door;
use crate::offer::Offer;

/// The offer, and how often each method was asked for.
struct Shop {
    offer: Offer,
    counts: BTreeMap<&'static str, u64>,
}

/// Serves over HTTP, on one thread: it shall be a small part of what is measured.
pub fn serve_http(tools: usize, port: u16) -> anyhow::Result<()> {
    let shop = Arc::new(Mutex::new(Shop { offer: Offer::new(tools), counts: BTreeMap::new() }));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = door::open(port).await?;
        loop {
            let stream = door::accept(&listener).await;
            let shop = shop.clone();
            tokio::spawn(async move {
                let service = service_fn(move |request| answer(shop.clone(), request));
                let mut http = http1::Builder::new();
                // A client that breaks off harms nobody.
                _ = http
                    .timer(TokioTimer::new())
                    .serve_connection(TokioIo::new(stream), service)
                    .await;
            });
        }
    })
}

async fn answer(
    shop: Arc<Mutex<Shop>>,
    request: Request<Incoming>,
) -> Result<Response<Full<Bytes>>, Infallible> {
    match *request.method() {
        Method::POST => {}
        Method::DELETE => return Ok(empty(StatusCode::OK)),
        Method::GET if request.uri().path() == "/counts" => {
            let counts = &shop.lock().unwrap_or_else(PoisonError::into_inner).counts;
            return Ok(json(serde_json::to_vec(counts).unwrap_or_default()));
        }
        _ => return Ok(empty(StatusCode::METHOD_NOT_ALLOWED)),
    }
    let Ok(body) = request.into_body().collect().await else {
        return Ok(empty(StatusCode::BAD_REQUEST));
    };
    let mut shop = shop.lock().unwrap_or_else(PoisonError::into_inner);
    let answer = shop.offer.answer(&body.to_bytes());
    *shop.counts.entry(answer.method).or_default() += 1;
    Ok(answer.frame.map_or_else(|| empty(StatusCode::ACCEPTED), json))
}

fn empty(status: StatusCode) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::default());
    *response.status_mut() = status;
    response
}

fn json(frame: Vec<u8>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(frame.into()));
    let json = hyper::header::HeaderValue::from_static("application/json");
    response.headers_mut().insert(CONTENT_TYPE, json);
    response
}

/// Serves on stdin and stdout, a line each message.
pub fn serve_stdio(tools: usize) -> anyhow::Result<()> {
    let mut offer = Offer::new(tools);
    let mut input = BufReader::with_capacity(64 * 1024, std::io::stdin().lock());
    let mut output = std::io::stdout().lock();
    let mut line = Vec::new();
    let mut out = Vec::new();
    loop {
        line.clear();
        if input.read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Some(frame) = offer.answer(&line).frame {
            out.extend_from_slice(&frame);
            out.push(b'\n');
        }
        // What was read together is answered together.
        if input.buffer().is_empty() || out.len() > 64 * 1024 {
            output.write_all(&out)?;
            output.flush()?;
            out.clear();
        }
    }
}
