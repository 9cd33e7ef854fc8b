//! The body of an answer. A plain one holds its connection until it has ended.

use std::future::Future as _;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, Incoming, SizeHint};
use tokio::time::timeout;

use super::link::Link;
use super::plain::Plain;
use crate::limits::{LINGER_BYTES_MAX, LINGER_MAX};

/// The body of an answer. Dropped before its end it closes its connection, or its stream where
/// there are several on one: the server sees that nobody listens.
pub struct Body {
    incoming: Incoming,
    carrier: Option<Carrier>,
}

/// What a plain answer comes over, and where that goes afterwards.
struct Carrier {
    link: Box<Link>,
    pool: Arc<Plain>,
}

impl Body {
    pub(super) fn plain(incoming: Incoming, link: Box<Link>, pool: &Arc<Plain>) -> Body {
        let carrier = Some(Carrier { link, pool: Arc::clone(pool) });
        let mut body = Body { incoming, carrier };
        if body.incoming.is_end_stream() {
            body.let_go();
        }
        body
    }

    pub(super) fn tls(incoming: Incoming) -> Body {
        Body { incoming, carrier: None }
    }

    /// Parts with the connection at the end of the answer.
    fn let_go(&mut self) {
        if let Some(Carrier { link, pool }) = self.carrier.take()
            && link.is_idle()
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
        let Some(carrier) = &self.carrier else { return };
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
        while self.carrier.is_some() {
            let Some(Ok(frame)) = self.frame().await else { return };
            let Some(less) = left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) else {
                return;
            };
            left = less;
        }
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Body { incoming, carrier } = &mut *self;
        let Some(Carrier { link, .. }) = carrier else {
            return Pin::new(incoming).poll_frame(context);
        };
        let frame = link.poll_frame(incoming, context);
        match &frame {
            Poll::Ready(Some(Ok(_))) if !incoming.is_end_stream() => {}
            Poll::Ready(_) => self.let_go(),
            Poll::Pending => {}
        }
        frame
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}
