//! The HTTP door: Streamable HTTP at `/mcp`, on an accept loop of our own.
//!
//! The loop is ours because slow and silent connections need bounds that a ready-made one lacks.

mod checks;
mod endpoint;
mod events;
mod legacy;
mod modern;
mod openapi;
mod rest;
mod sessions;
mod streams;

use std::convert::Infallible;
use std::sync::Arc;

use gateway::Gateway;
use gateway::auth::BearerToken;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::http::checks::Checks;
use crate::http::endpoint::Endpoint;
use crate::http::sessions::Sessions;
use crate::limits::{
    ACCEPT_PAUSE, CLOSE_MAX, CONNECTIONS_MAX, DRAIN_MAX, HEAD_BYTES_MAX, HEAD_TIMEOUT, HEADERS_MAX,
};

/// What the operator chooses.
pub struct Settings {
    /// What clients must show.
    pub token: BearerToken,
    /// Whether the transport of 2024-11-05 is served as well.
    pub has_sse: bool,
}

/// Serves until `stop` is called, then lets requests under way finish.
pub async fn serve(
    gateway: Gateway,
    listener: TcpListener,
    settings: Settings,
    stop: CancellationToken,
) {
    let is_local = listener.local_addr().is_ok_and(|address| address.ip().is_loopback());
    let checks = Checks::new(settings.token, is_local);
    let sessions = Sessions::new(gateway.clone());
    let endpoint = Endpoint::new(gateway.clone(), sessions, checks, stop.clone(), settings.has_sse);
    let endpoint = Arc::new(endpoint);
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    let graceful = GracefulShutdown::new();
    loop {
        let accepted = tokio::select! {
            accepted = accept(&listener, &connections) => accepted,
            () = stop.cancelled() => break,
        };
        let (stream, permit) = accepted;
        let watcher = graceful.watcher();
        let endpoint = Arc::clone(&endpoint);
        let stop = stop.clone();
        tokio::spawn(async move {
            // A connection that never sends a byte would stay open for ever otherwise.
            let mut first = [0];
            let has_input = tokio::select! {
                readable = timeout(HEAD_TIMEOUT, stream.peek(&mut first)) => matches!(readable, Ok(Ok(1..))),
                () = stop.cancelled() => false,
            };
            if has_input {
                let service = service_fn(move |request| {
                    let endpoint = Arc::clone(&endpoint);
                    async move { Ok::<_, Infallible>(endpoint.respond(request).await) }
                });
                let builder = builder();
                let connection = builder.serve_connection(TokioIo::new(stream), service);
                _ = watcher.watch(connection).await;
            }
            drop(permit);
        });
    }
    drop(listener);
    gateway.wind_down();
    _ = timeout(DRAIN_MAX, endpoint.drained()).await;
    _ = timeout(CLOSE_MAX, graceful.shutdown()).await;
}

async fn accept(
    listener: &TcpListener,
    connections: &Arc<Semaphore>,
) -> (TcpStream, tokio::sync::OwnedSemaphorePermit) {
    let permit = Arc::clone(connections).acquire_owned().await;
    let permit = permit.expect("the semaphore is never closed");
    loop {
        match listener.accept().await {
            Ok((stream, _)) => {
                // Small messages go back and forth; waiting to fill packets costs 40 ms each.
                _ = stream.set_nodelay(true);
                return (stream, permit);
            }
            Err(error) => {
                tracing::warn!(%error, "can't accept a connection");
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new()).http1_only();
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_TIMEOUT)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
}
