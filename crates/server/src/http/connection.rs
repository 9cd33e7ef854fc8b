//! One connection, from its first byte to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::io::{AsyncRead, AsyncWrite};

use super::endpoint::Endpoint;
use super::service;
use super::traffic::{Order, Traffic};
use super::wire::Wire;
use crate::limits::{
    H2_CONNECTION_WINDOW, H2_PENDING_RESETS_MAX, H2_PING_EVERY, H2_PING_TIMEOUT, H2_SEND_BUFFER,
    H2_STREAM_WINDOW, H2_STREAMS_MAX, HEAD_BYTES_MAX, HEADERS_MAX,
};

/// Answers the requests of a connection, in HTTP/1.1 or HTTP/2, as it begins, for as long as its
/// traffic is ordered to.
pub async fn serve<I>(io: I, traffic: &Traffic, endpoint: Arc<Endpoint>)
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let wire = Wire::new(io, Arc::clone(traffic.signs()));
    let requests = traffic.clone();
    let service = service_fn(move |request| {
        let (endpoint, traffic) = (Arc::clone(&endpoint), requests.clone());
        async move { Ok::<_, Infallible>(service::answer(&endpoint, &traffic, request).await) }
    });
    let builder = builder();
    let mut connection = pin!(builder.serve_connection(TokioIo::new(wire), service));
    let mut is_closing = false;
    poll_fn(|context| {
        match traffic.ordered(context) {
            Order::Leave => return Poll::Ready(()),
            Order::Close if !is_closing => {
                is_closing = true;
                connection.as_mut().graceful_shutdown();
            }
            Order::Close | Order::Serve => {}
        }
        // Errors are the client's: it left, or spoke no HTTP and was told so.
        connection.as_mut().poll(context).map(|_| ())
    })
    .await;
}

fn builder() -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        // Slow heads are the crowd's matter; a timer for each would cost as much as reading it.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(H2_PING_EVERY)
        .keep_alive_timeout(H2_PING_TIMEOUT)
        .max_concurrent_streams(H2_STREAMS_MAX)
        .initial_stream_window_size(H2_STREAM_WINDOW)
        .initial_connection_window_size(H2_CONNECTION_WINDOW)
        .max_pending_accept_reset_streams(H2_PENDING_RESETS_MAX)
        .max_local_error_reset_streams(H2_PENDING_RESETS_MAX)
        .max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .max_send_buf_size(H2_SEND_BUFFER);
    builder
}
