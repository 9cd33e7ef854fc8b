//! Server-sent events as a response body.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::sync::mpsc;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::limits::KEEP_ALIVE;

pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body of the events that come, until their stream or the server ends.
///
/// `first` is sent as it is, before them.
pub fn body(first: Option<Bytes>, events: mpsc::Receiver<Bytes>, stop: CancellationToken) -> Body {
    let state = (first, events, stop);
    let chunks = stream::unfold(state, |(first, mut events, stop)| async move {
        let chunk = match first {
            Some(first) => first,
            None => tokio::select! {
                biased;
                event = events.recv() => event?,
                () = stop.cancelled() => return None,
                // TD-104
                () = sleep(KEEP_ALIVE) => Bytes::from_static(b": still here\n\n"),
            },
        };
        Some((Ok(Frame::data(chunk)), (None, events, stop)))
    });
    StreamBody::new(chunks).boxed_unsync()
}
