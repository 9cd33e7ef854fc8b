//! The way out to one client: a queue of frames, bounded in number and in bytes.
//!
//! Answers wait for room; what upstreams say meanwhile finds room or is lost. Nothing new is
//! taken on for a client that does not read. There is one for every request, so that an empty
//! one has to be cheap.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::limits::{BATCH_BYTES, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX};

/// The sending end; its clones are the same one.
#[derive(Debug)]
pub struct Outbox(Arc<Shared>);

/// The end from which a door sends.
#[derive(Debug)]
pub struct OutboxQueue(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    frames_max: usize,
    state: Mutex<State>,
    /// Told when there is more room than before.
    sunk: Notify,
}

#[derive(Debug)]
struct State {
    frames: VecDeque<Bytes>,
    /// Places that are kept free.
    reserved: usize,
    /// Answers that wait for a place; what may get lost does not overtake them.
    waiting: usize,
    /// How many bytes are waiting, also of answers that wait for a place.
    bytes: usize,
    senders: usize,
    /// Set once nobody will ever send what is put in here.
    is_gone: bool,
    reader: Option<Waker>,
}

/// A new queue.
pub fn channel() -> (Outbox, OutboxQueue) {
    channel_of(OUTBOX_FRAMES_MAX)
}

/// A new queue with so many places.
pub fn channel_of(frames_max: usize) -> (Outbox, OutboxQueue) {
    let state = State {
        frames: VecDeque::new(),
        reserved: 0,
        waiting: 0,
        bytes: 0,
        senders: 1,
        is_gone: false,
        reader: None,
    };
    let shared = Arc::new(Shared { frames_max, state: Mutex::new(state), sunk: Notify::new() });
    (Outbox(Arc::clone(&shared)), OutboxQueue(shared))
}

impl Outbox {
    /// Sends an answer; waits for its place. Whether there is still somebody to send to.
    pub async fn send(&self, frame: Bytes) -> bool {
        let waiting = Waiting::new(&self.0, frame.len());
        loop {
            let sunk = self.0.sunk.notified();
            {
                let mut state = self.0.state();
                if state.is_gone {
                    return false;
                }
                if state.frames.len() + state.reserved < self.0.frames_max {
                    // Its bytes are in the queue now, which gives them back.
                    std::mem::forget(waiting);
                    state.waiting -= 1;
                    state.push(frame);
                    return true;
                }
            }
            sunk.await;
        }
    }

    /// Sends what may get lost, if there is room.
    pub fn try_send(&self, frame: Bytes) -> bool {
        let Some(place) = self.reserve() else { return false };
        place.send(frame);
        true
    }

    /// A place for one frame, if there is room and somebody to send to.
    pub fn reserve(&self) -> Option<Place<'_>> {
        let mut state = self.0.state();
        if state.is_gone || !self.0.has_room(&state) {
            return None;
        }
        state.reserved += 1;
        Some(Place(&self.0))
    }

    /// Waits until the client has read enough of what waits for it.
    pub async fn has_room(&self) {
        loop {
            let sunk = self.0.sunk.notified();
            {
                let state = self.0.state();
                // Nobody waits for room at an end that is gone.
                if state.is_gone || self.0.has_room(&state) {
                    return;
                }
            }
            sunk.await;
        }
    }

    /// Whether nobody will ever send what is put in here.
    pub fn is_gone(&self) -> bool {
        self.0.state().is_gone
    }
}

impl Clone for Outbox {
    fn clone(&self) -> Outbox {
        self.0.state().senders += 1;
        Outbox(Arc::clone(&self.0))
    }
}

impl Drop for Outbox {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.senders -= 1;
        if state.senders == 0 {
            state.wake_reader();
        }
    }
}

/// A place in the queue that is kept free.
pub struct Place<'a>(&'a Shared);

impl Place<'_> {
    pub fn send(self, frame: Bytes) {
        let mut state = self.0.state();
        state.bytes += frame.len();
        state.push(frame);
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.0.state().reserved -= 1;
        self.0.sunk.notify_waiters();
    }
}

impl OutboxQueue {
    /// The next frame; `None` when there will be none.
    pub async fn recv(&mut self) -> Option<Bytes> {
        poll_fn(|context| self.poll_recv(context)).await
    }

    pub fn poll_recv(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut state = self.0.state();
        match state.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(self.0.sink(state, frame))),
            None if state.senders == 0 => Poll::Ready(None),
            None => {
                let waker = context.waker();
                if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(waker)) {
                    state.reader = Some(waker.clone());
                }
                Poll::Pending
            }
        }
    }

    /// A frame that is there already. Without one, nobody is woken until the next is waited for.
    pub fn try_recv(&mut self) -> Option<Bytes> {
        let mut state = self.0.state();
        match state.frames.pop_front() {
            Some(frame) => Some(self.0.sink(state, frame)),
            None => {
                state.reader = None;
                None
            }
        }
    }

    /// Appends frames as lines: the next one, and more while they are there and small.
    pub async fn recv_lines(&mut self, lines: &mut Vec<u8>) -> bool {
        let Some(mut frame) = self.recv().await else { return false };
        loop {
            lines.extend_from_slice(&mcp::lines::one_line(frame));
            lines.push(b'\n');
            if lines.len() > BATCH_BYTES {
                return true;
            }
            match self.try_recv() {
                Some(next) => frame = next,
                None => return true,
            }
        }
    }
}

impl Drop for OutboxQueue {
    fn drop(&mut self) {
        let frames = {
            let mut state = self.0.state();
            state.is_gone = true;
            state.bytes = 0;
            std::mem::take(&mut state.frames)
        };
        drop(frames);
        self.0.sunk.notify_waiters();
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self, state: &State) -> bool {
        let taken = state.frames.len() + state.reserved + state.waiting;
        taken < self.frames_max && state.bytes <= OUTBOX_BYTES_MAX
    }

    fn sink(&self, mut state: MutexGuard<'_, State>, frame: Bytes) -> Bytes {
        state.bytes = state.bytes.saturating_sub(frame.len());
        drop(state);
        self.sunk.notify_waiters();
        frame
    }
}

impl State {
    fn push(&mut self, frame: Bytes) {
        self.frames.push_back(frame);
        self.wake_reader();
    }

    fn wake_reader(&mut self) {
        if let Some(reader) = self.reader.take() {
            reader.wake();
        }
    }
}

/// The bytes of an answer that waits for its place.
struct Waiting<'a> {
    shared: &'a Shared,
    bytes: usize,
}

impl Waiting<'_> {
    fn new(shared: &Shared, bytes: usize) -> Waiting<'_> {
        let mut state = shared.state();
        state.bytes += bytes;
        state.waiting += 1;
        drop(state);
        Waiting { shared, bytes }
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        {
            let mut state = self.shared.state();
            state.bytes = state.bytes.saturating_sub(self.bytes);
            state.waiting -= 1;
        }
        self.shared.sunk.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{channel, channel_of};
    use crate::limits::OUTBOX_BYTES_MAX;

    #[tokio::test]
    async fn what_may_get_lost_is_lost_when_too_much_waits() {
        let (outbox, mut queue) = channel();
        assert!(outbox.send(Bytes::from(vec![b'x'; OUTBOX_BYTES_MAX + 1])).await);
        assert!(!outbox.try_send(Bytes::from_static(b"notice")));
        queue.recv().await.unwrap();
        assert!(outbox.try_send(Bytes::from_static(b"notice")));
        outbox.has_room().await;
    }

    #[tokio::test(start_paused = true)]
    async fn room_comes_back_when_an_answer_gives_up_its_place() {
        let (outbox, queue) = channel();
        assert!(outbox.send(Bytes::from_static(b"x")).await);
        let places: Vec<_> = std::iter::from_fn(|| outbox.reserve()).collect();
        let large = Bytes::from(vec![b'x'; OUTBOX_BYTES_MAX + 1]);
        let patience = std::time::Duration::from_secs(1);
        assert!(tokio::time::timeout(patience, outbox.send(large)).await.is_err());
        drop(places);
        outbox.has_room().await;
        drop(queue);
        assert!(!outbox.send(Bytes::from_static(b"x")).await);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_room_at_an_end_that_is_gone() {
        let (outbox, queue) = channel();
        assert!(outbox.send(Bytes::from(vec![b'x'; OUTBOX_BYTES_MAX + 1])).await);
        let waiting = tokio::spawn({
            let outbox = outbox.clone();
            async move { outbox.has_room().await }
        });
        tokio::task::yield_now().await;
        drop(queue);
        let patience = std::time::Duration::from_secs(1);
        tokio::time::timeout(patience, waiting).await.unwrap().unwrap();
        assert!(!outbox.try_send(Bytes::from_static(b"x")));
    }

    #[tokio::test]
    async fn notice_does_not_overtake_an_answer_that_waits() {
        let (outbox, mut queue) = channel_of(1);
        assert!(outbox.try_send(Bytes::from_static(b"first")));
        let mut answer = std::pin::pin!(outbox.send(Bytes::from_static(b"answer")));
        assert!(futures_util::poll!(answer.as_mut()).is_pending());
        assert_eq!(queue.recv().await.unwrap(), "first");
        assert!(!outbox.try_send(Bytes::from_static(b"notice")), "the place is the answer's");
        assert!(answer.await);
        assert_eq!(queue.recv().await.unwrap(), "answer");
        assert!(outbox.try_send(Bytes::from_static(b"notice")));
    }

    #[tokio::test]
    async fn small_frames_become_lines_of_one_batch() {
        let (outbox, mut queue) = channel();
        outbox.try_send(Bytes::from_static(b"{\n}"));
        outbox.try_send(Bytes::from_static(b"{}"));
        let mut lines = Vec::new();
        assert!(queue.recv_lines(&mut lines).await);
        assert_eq!(lines, b"{ }\n{}\n");
        drop(outbox);
        assert!(!queue.recv_lines(&mut lines).await);
    }
}
