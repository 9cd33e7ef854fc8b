//! The bodies of answers: whole ones, and streams of server-sent events.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::stream::{self, Stream, StreamExt as _};
use gateway::answer::Coming;
use gateway::outbox::OutboxQueue;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use mcp::rpc::{self, Raw};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use super::exchange::Work;
use crate::limits::KEEP_ALIVE;

const STILL_HERE: Bytes = Bytes::from_static(b": still here\n\n");

/// The body of an answer.
pub enum Body {
    Whole(Bytes),
    /// A whole one that was not put together.
    Pieces([Bytes; 3]),
    Stream(Pin<Box<dyn Stream<Item = Result<Bytes, Broken>> + Send>>),
}

/// An answer can't be brought to its end; its client sees the connection break.
#[derive(Debug, thiserror::Error)]
#[error("the answer broke off")]
pub struct Broken;

impl Body {
    pub fn whole(bytes: impl Into<Bytes>) -> Body {
        Body::Whole(bytes.into())
    }

    fn stream(chunks: impl Stream<Item = Bytes> + Send + 'static) -> Body {
        Body::Stream(Box::pin(chunks.map(Ok)))
    }

    /// A result in its frame, as it comes.
    pub fn coming(id: &Raw, result: Box<Coming>) -> Body {
        let [head, tail] = rpc::around_result(id);
        let state = (Some(head), Some((result, tail)));
        Body::Stream(Box::pin(stream::unfold(state, |(head, rest)| async move {
            if let Some(head) = head {
                return Some((Ok(head), (None, rest)));
            }
            let (mut result, tail) = rest?;
            match result.next().await {
                Ok(Some(piece)) => Some((Ok(piece), (None, Some((result, tail))))),
                Ok(None) => Some((Ok(tail), (None, None))),
                Err(error) => {
                    tracing::warn!(%error, "an answer broke off");
                    Some((Err(Broken), (None, None)))
                }
            }
        })))
    }

    /// The same, with something that goes when it does.
    pub fn with(self, companion: impl Send + Unpin + 'static) -> Body {
        let Body::Stream(chunks) = self else { return self };
        Body::Stream(Box::pin(chunks.inspect(move |_| _ = &companion)))
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Broken;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Broken>>> {
        match self.get_mut() {
            Body::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            Body::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::Pieces(pieces) => {
                let next = pieces.iter_mut().find(|piece| !piece.is_empty());
                Poll::Ready(next.map(|piece| Ok(Frame::data(std::mem::take(piece)))))
            }
            Body::Stream(chunks) => {
                chunks.as_mut().poll_next(context).map(|chunk| chunk.map(|c| c.map(Frame::data)))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Body::Whole(bytes) => bytes.is_empty(),
            Body::Pieces(pieces) => pieces.iter().all(Bytes::is_empty),
            Body::Stream(_) => false,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Body::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            Body::Pieces(pieces) => {
                SizeHint::with_exact(pieces.iter().map(|piece| piece.len() as u64).sum())
            }
            Body::Stream(_) => SizeHint::default(),
        }
    }
}

/// A body of what comes until `work` is done, and of what it makes. The work ends with the body:
/// a client that leaves wants no answer.
pub fn live(first: Option<Bytes>, queue: OutboxQueue, work: Work) -> Body {
    let work = Box::pin(async move { work.await.1.whole().await });
    let state = Live { first, queue, work: Some(work), last: None };
    Body::stream(stream::unfold(state, |mut live| async move {
        let chunk = live.next().await?;
        Some((chunk, live))
    }))
}

struct Live {
    first: Option<Bytes>,
    queue: OutboxQueue,
    work: Option<Pin<Box<dyn Future<Output = Bytes> + Send>>>,
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
                last = work => {
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
    Body::stream(stream::unfold(state, |(first, mut events, stop)| async move {
        let chunk = match first {
            Some(first) => first,
            None => tokio::select! {
                biased;
                event = events.recv() => event?,
                () = stop.cancelled() => return None,
                () = sleep(KEEP_ALIVE) => STILL_HERE,
            },
        };
        Some((chunk, (None, events, stop)))
    }))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use bytes::Bytes;
    use futures_util::StreamExt as _;
    use gateway::outbox;
    use tokio::time::Instant;
    use tokio_util::sync::CancellationToken;

    use super::{Body, STILL_HERE, body};
    use crate::limits::KEEP_ALIVE;

    #[tokio::test(start_paused = true)]
    async fn silent_stream_is_kept_alive_by_comments() {
        // TD-104
        let (outbox, events) = outbox::channel();
        let Body::Stream(mut chunks) = body(None, events, CancellationToken::new()) else {
            unreachable!("events are streamed")
        };
        let began = Instant::now();
        for count in 1..=3 {
            assert_eq!(chunks.next().await.unwrap().unwrap(), STILL_HERE);
            assert!(began.elapsed().abs_diff(KEEP_ALIVE * count) < Duration::from_secs(1));
        }
        assert!(outbox.try_send(Bytes::from_static(b"data: x\n\n")));
        assert_eq!(chunks.next().await.unwrap().unwrap(), "data: x\n\n");
    }
}
