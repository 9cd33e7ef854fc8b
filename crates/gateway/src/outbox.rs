//! The way out to one client: a queue of frames, bounded in number and in bytes.
//!
//! Answers wait for room; what upstreams say meanwhile finds room or is lost. Nothing new is
//! taken on for a client that does not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::limits::{BATCH_BYTES, OUTBOX_BYTES_MAX, OUTBOX_FRAMES_MAX};

/// The sending end; its clones are the same one.
#[derive(Clone, Debug)]
pub struct Outbox {
    frames: mpsc::Sender<Bytes>,
    level: Arc<Level>,
}

/// The end from which a door sends.
#[derive(Debug)]
pub struct OutboxQueue {
    frames: mpsc::Receiver<Bytes>,
    level: Arc<Level>,
}

/// How many bytes are waiting, also of answers that wait for a place.
#[derive(Debug, Default)]
struct Level {
    bytes: AtomicUsize,
    sunk: Notify,
}

/// A new queue.
pub fn channel() -> (Outbox, OutboxQueue) {
    channel_of(OUTBOX_FRAMES_MAX)
}

/// A new queue with so many places.
pub fn channel_of(frames_max: usize) -> (Outbox, OutboxQueue) {
    let (sender, receiver) = mpsc::channel(frames_max);
    let level = Arc::new(Level::default());
    let outbox = Outbox { frames: sender, level: Arc::clone(&level) };
    (outbox, OutboxQueue { frames: receiver, level })
}

impl Outbox {
    /// Sends an answer; waits for its place. Whether there is still somebody to send to.
    pub async fn send(&self, frame: Bytes) -> bool {
        let counted = Counted::new(&self.level, frame.len());
        let sent = self.frames.send(frame).await.is_ok();
        if sent {
            counted.hand_over();
        }
        sent
    }

    /// Sends what may get lost, if there is room.
    pub fn try_send(&self, frame: Bytes) -> bool {
        let Some(place) = self.reserve() else { return false };
        place.send(frame);
        true
    }

    /// A place for one frame, if there is room.
    pub fn reserve(&self) -> Option<Place<'_>> {
        if self.is_full() {
            return None;
        }
        let permit = self.frames.try_reserve().ok()?;
        Some(Place { permit, level: &self.level })
    }

    /// Waits until the client has read enough of what waits for it.
    pub async fn has_room(&self) {
        loop {
            let sunk = self.level.sunk.notified();
            if !self.is_full() {
                return;
            }
            sunk.await;
        }
    }

    fn is_full(&self) -> bool {
        let is_low = self.level.bytes.load(Ordering::Relaxed) <= OUTBOX_BYTES_MAX;
        // Nobody waits for room at an end that is gone.
        !(self.is_gone() || self.frames.capacity() > 0 && is_low)
    }

    /// Whether nobody will ever send what is put in here.
    pub fn is_gone(&self) -> bool {
        self.frames.is_closed()
    }
}

/// A place in the queue that is kept free.
pub struct Place<'a> {
    permit: mpsc::Permit<'a, Bytes>,
    level: &'a Level,
}

impl Place<'_> {
    pub fn send(self, frame: Bytes) {
        self.level.bytes.fetch_add(frame.len(), Ordering::Relaxed);
        self.permit.send(frame);
    }
}

impl OutboxQueue {
    /// The next frame; `None` when there will be none.
    pub async fn recv(&mut self) -> Option<Bytes> {
        let frame = self.frames.recv().await?;
        self.level.sink(frame.len());
        Some(frame)
    }

    /// A frame that is there already.
    pub fn try_recv(&mut self) -> Option<Bytes> {
        let frame = self.frames.try_recv().ok()?;
        self.level.sink(frame.len());
        Some(frame)
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
        self.frames.close();
        self.level.sunk.notify_waiters();
    }
}

impl Level {
    fn sink(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.sunk.notify_waiters();
    }
}

/// Bytes that count as waiting until they are handed over, or no longer wait.
struct Counted<'a> {
    level: &'a Level,
    bytes: usize,
}

impl Counted<'_> {
    fn new(level: &Level, bytes: usize) -> Counted<'_> {
        level.bytes.fetch_add(bytes, Ordering::Relaxed);
        Counted { level, bytes }
    }

    /// They are in the queue now, which gives them back.
    fn hand_over(mut self) {
        self.bytes = 0;
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        if self.bytes > 0 {
            self.level.sink(self.bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::channel;
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
