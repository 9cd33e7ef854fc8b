//! A request under way for a client, which the client may cancel.

use std::future::poll_fn;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use futures_util::task::AtomicWaker;

use super::{CallKey, Client};

/// A request under way; forgotten when dropped.
pub(crate) struct Underway<'a> {
    pub(super) client: &'a Client,
    pub(super) key: CallKey,
    pub(super) cancellation: Arc<Cancellation>,
}

impl Underway<'_> {
    /// Waits until the client cancels the request.
    pub async fn cancelled(&self) {
        let Cancellation { is_due, waiter } = &*self.cancellation;
        poll_fn(|context| {
            waiter.register(context.waker());
            if is_due.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
    }
}

/// Ends one request; there is one task that waits for it.
#[derive(Debug, Default)]
pub(super) struct Cancellation {
    is_due: AtomicBool,
    waiter: AtomicWaker,
}

impl Cancellation {
    pub(super) fn cancel(&self) {
        self.is_due.store(true, Ordering::Release);
        self.waiter.wake();
    }
}

impl Drop for Underway<'_> {
    fn drop(&mut self) {
        self.client.state().calls.remove(&self.key);
    }
}
