//! Server-sent events as a response body.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use gateway::outbox::OutboxQueue;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::exchange::Work;
use crate::limits::KEEP_ALIVE;

const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// A body of what comes until `work` is done, and of what it makes. The work ends with the body:
/// a client that leaves wants no answer.
pub fn live(first: Option<Bytes>, queue: OutboxQueue, work: Work) -> Body {
    let state = Live { first, queue, work: Some(work), last: None };
    let chunks = stream::unfold(state, |mut live| async move {
        let chunk = live.next().await?;
        Some((Ok(Frame::data(chunk)), live))
    });
    StreamBody::new(chunks).boxed_unsync()
}

struct Live {
    first: Option<Bytes>,
    queue: OutboxQueue,
    work: Option<Work>,
    last: Option<Bytes>,
}

impl Live {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(event(first));
        }
        if let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                Some(frame) = self.queue.recv() => return Some(event(frame)),
                (_, last) = work => {
                    self.work = None;
                    self.last = Some(last);
                }
                () = sleep(KEEP_ALIVE) => return Some(STILL_HERE),
            }
        }
        self.queue.try_recv().or_else(|| self.last.take()).map(event)
    }
}

fn event(frame: Bytes) -> Bytes {
    let frame = mcp::lines::one_line(frame);
    [b"event: message\ndata: ", frame.as_ref(), b"\n\n"].concat().into()
}

/// A body of the events that come, until their stream or the server ends.
///
/// `first` is sent as it is, before them.
pub fn body(first: Option<Bytes>, events: OutboxQueue, stop: CancellationToken) -> Body {
    let state = (first, events, stop);
    let chunks = stream::unfold(state, |(first, mut events, stop)| async move {
        let chunk = match first {
            Some(first) => first,
            None => tokio::select! {
                biased;
                event = events.recv() => event?,
                () = stop.cancelled() => return None,
                // TD-104
                () = sleep(KEEP_ALIVE) => STILL_HERE,
            },
        };
        Some((Ok(Frame::data(chunk)), (None, events, stop)))
    });
    StreamBody::new(chunks).boxed_unsync()
}
