//! Server-sent events: frames as a response body.

use std::convert::Infallible;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::limits::KEEP_ALIVE;

/// A body of one event a frame, until the queue or the server ends.
pub fn body(
    queue: mpsc::Receiver<Bytes>,
    stop: CancellationToken,
) -> UnsyncBoxBody<Bytes, Infallible> {
    let events = stream::unfold((queue, stop), |(mut queue, stop)| async move {
        let next = tokio::select! {
            next = timeout(KEEP_ALIVE, queue.recv()) => next,
            () = stop.cancelled() => return None,
        };
        let event = match next {
            Ok(Some(frame)) => event(frame),
            Ok(None) => return None,
            Err(_) => Bytes::from_static(b": still here\n\n"),
        };
        Some((Ok(Frame::data(event)), (queue, stop)))
    });
    StreamBody::new(events).boxed_unsync()
}

fn event(frame: Bytes) -> Bytes {
    let frame = mcp::lines::one_line(frame);
    let mut event = BytesMut::with_capacity(frame.len() + 24);
    event.put_slice(b"event: message\ndata: ");
    event.put_slice(&frame);
    event.put_slice(b"\n\n");
    event.freeze()
}
