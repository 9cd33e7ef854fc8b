//! One connection, from its first byte to its end.

use std::convert::Infallible;
use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper::Response;
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper::service::{HttpService, service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};

use super::endpoint::Endpoint;
use super::service;
use super::traffic::{Order, Paced, Traffic};
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
    let mut wire = Wire::new(io, Arc::clone(traffic.signs()));
    let begun = poll_fn(|context| match traffic.ordered(context) {
        Order::Serve => wire.poll_preface(context).map(Result::ok),
        // Nothing was asked yet.
        Order::Close | Order::Leave => Poll::Ready(None),
    });
    let Some(is_http2) = begun.await else { return };
    let requests = traffic.clone();
    let service = service_fn(move |request| {
        let (endpoint, traffic) = (Arc::clone(&endpoint), requests.clone());
        async move { Ok::<_, Infallible>(service::answer(&endpoint, &traffic, request).await) }
    });
    if is_http2 {
        let connection = http2().serve_connection(TokioIo::new(wire), service);
        // In a box: it is large, and rare.
        drive(Box::pin(connection).as_mut(), traffic).await;
    } else {
        drive(pin!(http1().serve_connection(TokioIo::new(wire), service)), traffic).await;
    }
}

/// Drives a connection for as long as it is ordered to.
async fn drive<C: Conversation>(mut connection: Pin<&mut C>, traffic: &Traffic) {
    let mut is_closing = false;
    poll_fn(|context| {
        match traffic.ordered(context) {
            Order::Leave => return Poll::Ready(()),
            Order::Close if !is_closing => {
                is_closing = true;
                connection.as_mut().close();
            }
            Order::Close | Order::Serve => {}
        }
        connection.as_mut().poll_on(context)
    })
    .await;
}

/// A connection of either version.
trait Conversation {
    /// Goes on. Errors are the client's: it left, or spoke no HTTP and was told so.
    fn poll_on(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()>;
    /// Ends once what is under way is answered.
    fn close(self: Pin<&mut Self>);
}

impl<I, S> Conversation for http1::Connection<TokioIo<Wire<I>>, S>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService<Incoming, ResBody = Paced, Error = Infallible>,
{
    fn poll_on(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context).map(|_| ())
    }

    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

impl<I, S> Conversation for http2::Connection<TokioIo<Wire<I>>, S, TokioExecutor>
where
    I: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: HttpService<Incoming, ResBody = Paced, Error = Infallible>,
    S::Future: Future<Output = Result<Response<Paced>, Infallible>> + Send + 'static,
{
    fn poll_on(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        self.poll(context).map(|_| ())
    }

    fn close(self: Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

fn http1() -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        // Slow heads are the crowd's matter; a timer for each would cost as much as reading it.
        .header_read_timeout(None)
        .max_buf_size(HEAD_BYTES_MAX)
        .max_headers(HEADERS_MAX);
    builder
}

fn http2() -> http2::Builder<TokioExecutor> {
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
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
