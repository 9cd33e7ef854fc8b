//! The body of an answer. A plain one holds its connection until it has ended.

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use hyper::body::{Body as _, Incoming};
use tokio::time::timeout;

use super::framing::Framing;
use super::link::Link;
use super::plain::Plain;
use super::{Failure, innermost};
use crate::limits::{LINGER_BYTES_MAX, LINGER_MAX};

/// The body of an answer. Dropped before its end it closes its connection, or its stream where
/// there are several on one: the server sees that nobody listens.
pub struct Body(Source);

enum Source {
    /// Nothing more comes.
    Over,
    Plain(Carrier),
    Tls(Incoming),
}

/// What a plain answer comes over, and where that goes afterwards.
struct Carrier {
    link: Box<Link>,
    framing: Framing,
    /// Whether the connection can be used again.
    is_kept: bool,
    pool: Arc<Plain>,
}

impl Body {
    pub(super) fn plain(
        link: Box<Link>,
        framing: Framing,
        is_kept: bool,
        pool: &Arc<Plain>,
    ) -> Body {
        let mut body =
            Body(Source::Plain(Carrier { link, framing, is_kept, pool: Arc::clone(pool) }));
        body.let_go_at_the_end();
        body
    }

    /// One of which nothing more comes.
    pub fn over() -> Body {
        Body(Source::Over)
    }

    pub(super) fn tls(incoming: Incoming) -> Body {
        Body(Source::Tls(incoming))
    }

    /// The next piece; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        match &mut self.0 {
            Source::Over => Ok(None),
            Source::Plain(_) => poll_fn(|context| self.poll_plain(context)).await,
            Source::Tls(incoming) => next_over_tls(incoming).await,
        }
    }

    fn poll_plain(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Failure>> {
        let Source::Plain(Carrier { link, framing, .. }) = &mut self.0 else {
            return Poll::Ready(Ok(None));
        };
        let piece = link.poll_piece(framing, context);
        match piece {
            Poll::Ready(Ok(Some(_))) => self.let_go_at_the_end(),
            Poll::Ready(Ok(None) | Err(_)) => self.let_go(),
            Poll::Pending => {}
        }
        piece
    }

    /// Whether all of it was handed out.
    pub fn is_over(&self) -> bool {
        match &self.0 {
            Source::Over => true,
            Source::Plain(_) => false,
            Source::Tls(incoming) => incoming.is_end_stream(),
        }
    }

    /// All of it, or what has come once that is more than `held_max`.
    pub async fn read_some(&mut self, held_max: usize) -> Result<Bytes, Failure> {
        if let Source::Plain(Carrier { link, framing, .. }) = &mut self.0 {
            // As it is known how much comes, it can come into one piece.
            let announced = usize::try_from(framing.announced()).unwrap_or(usize::MAX);
            let bytes = announced.min(held_max.saturating_add(1));
            poll_fn(|context| link.poll_gather(framing, bytes, context)).await?;
        }
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        if self.is_over() || first.len() > held_max {
            return Ok(first);
        }
        let mut held = BytesMut::from(first);
        while let Some(piece) = self.next().await? {
            held.extend_from_slice(&piece);
            if held.len() > held_max {
                break;
            }
        }
        Ok(held.freeze())
    }

    fn let_go_at_the_end(&mut self) {
        if matches!(&self.0, Source::Plain(carrier) if carrier.framing.is_over()) {
            self.let_go();
        }
    }

    /// Parts with the connection: it is used again if the answer has ended as it should.
    fn let_go(&mut self) {
        if let Source::Plain(Carrier { mut link, framing, is_kept, pool }) =
            std::mem::replace(&mut self.0, Source::Over)
            && is_kept
            && framing.is_over()
            && link.rest()
        {
            pool.park(link);
        }
    }

    /// Parts with an answer of which no more is wanted. Its end is mostly there already, or comes
    /// at once: it is waited for, for a moment, so that the connection can be used again.
    pub fn leave(mut self) {
        let mut nobody = Context::from_waker(Waker::noop());
        if pin!(self.skip_rest()).poll(&mut nobody).is_ready() {
            return;
        }
        let Source::Plain(carrier) = &self.0 else { return };
        if let Ok(permit) = Arc::clone(&carrier.pool.lingering).try_acquire_owned() {
            tokio::spawn(async move {
                _ = timeout(LINGER_MAX, self.skip_rest()).await;
                drop(permit);
            });
        }
    }

    /// Reads to the end, which parks the connection, unless that is far off.
    async fn skip_rest(&mut self) {
        let mut left = LINGER_BYTES_MAX;
        while matches!(self.0, Source::Plain(_)) {
            let Ok(Some(piece)) = self.next().await else { return };
            let Some(less) = left.checked_sub(piece.len()) else { return };
            left = less;
        }
    }
}

async fn next_over_tls(incoming: &mut Incoming) -> Result<Option<Bytes>, Failure> {
    loop {
        match incoming.frame().await {
            None => return Ok(None),
            Some(Ok(frame)) => {
                if let Ok(data) = frame.into_data() {
                    return Ok(Some(data));
                }
            }
            Some(Err(error)) => return Err(Failure::Broken(innermost(&error))),
        }
    }
}
