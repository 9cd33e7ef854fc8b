//! Server-sent events: frames as a response body.

use std::convert::Infallible;
use std::pin::Pin;

use bytes::{BufMut as _, Bytes, BytesMut};
use futures_util::stream;
use gateway::outbox::OutboxQueue;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, StreamBody};
use hyper::body::Frame;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::limits::KEEP_ALIVE;

pub type Body = UnsyncBoxBody<Bytes, Infallible>;

/// Makes the last frame of a stream; dropped with it when the client leaves.
pub type Work = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// A stream for as long as the session and the server last.
pub fn standing(queue: OutboxQueue, stop: CancellationToken) -> Body {
    let no_more = Box::pin(async move {
        stop.cancelled().await;
        None
    });
    body(Stream { first: None, queue, is_standing: true, work: Some(no_more), last: None })
}

/// A stream of the frames that come until `work` is done, and of what it makes.
pub fn ending_with(first: Bytes, queue: OutboxQueue, work: Work) -> Body {
    body(Stream { first: Some(first), queue, is_standing: false, work: Some(work), last: None })
}

fn body(state: Stream) -> Body {
    let events = stream::unfold(state, |mut state| async move {
        let event = state.next().await?;
        Some((Ok(Frame::data(event)), state))
    });
    StreamBody::new(events).boxed_unsync()
}

struct Stream {
    first: Option<Bytes>,
    queue: OutboxQueue,
    /// Whether the stream ends with its queue.
    is_standing: bool,
    work: Option<Work>,
    /// Held back until the queue is empty.
    last: Option<Bytes>,
}

impl Stream {
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(first) = self.first.take() {
            return Some(event(first));
        }
        while let Some(work) = &mut self.work {
            tokio::select! {
                biased;
                frame = self.queue.recv(), if self.is_standing || !self.queue.is_closed() => {
                    if frame.is_some() || self.is_standing {
                        return frame.map(event);
                    }
                }
                last = work => {
                    self.last = last;
                    self.work = None;
                }
                () = sleep(KEEP_ALIVE) => return Some(Bytes::from_static(b": still here\n\n")),
            }
        }
        self.queue.try_recv().or_else(|| self.last.take()).map(event)
    }
}

fn event(frame: Bytes) -> Bytes {
    let frame = mcp::lines::one_line(frame);
    let mut event = BytesMut::with_capacity(frame.len() + 24);
    event.put_slice(b"event: message\ndata: ");
    event.put_slice(&frame);
    event.put_slice(b"\n\n");
    event.freeze()
}
