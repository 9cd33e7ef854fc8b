//! The event streams of one session: numbered, kept for a while, so that a lost one can go on.
//!
//! Every message is an event of exactly one stream. Stream 0 is the standing one, opened by GET;
//! the others answer a POST each.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gateway::outbox::{self, Outbox, OutboxQueue};

use crate::limits::{EVENT_BYTES_KEPT, EVENTS_KEPT, RETRY, STREAMS_MAX};

/// The stream for what belongs to no request.
pub const STANDING: u64 = 0;

/// A place in a session's streams: what `Last-Event-ID` names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventId {
    pub stream: u64,
    pub event: u64,
}

impl EventId {
    pub fn parse(text: &str) -> Option<EventId> {
        let (stream, event) = text.split_once('-')?;
        Some(EventId { stream: stream.parse().ok()?, event: event.parse().ok()? })
    }
}

#[derive(Debug)]
pub struct Streams(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    last_stream: u64,
    open: HashMap<u64, Stream>,
    /// The last events of all streams, oldest first.
    kept: VecDeque<(EventId, Bytes)>,
    kept_bytes: usize,
}

#[derive(Debug, Default)]
struct Stream {
    last_event: u64,
    /// The last event that somebody was there to take.
    delivered: u64,
    reader: Option<Outbox>,
}

impl Stream {
    fn is_read(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| !reader.is_gone())
    }
}

impl Streams {
    pub fn new() -> Streams {
        let open = HashMap::from([(STANDING, Stream::default())]);
        Streams(Mutex::new(State { open, ..State::default() }))
    }

    /// A new stream for the answer to a POST; `None` if there are too many.
    pub fn begin(&self) -> Option<u64> {
        let mut state = self.state();
        if state.open.len() > STREAMS_MAX {
            return None;
        }
        state.last_stream += 1;
        let stream = state.last_stream;
        state.open.insert(stream, Stream::default());
        Some(stream)
    }

    /// Makes an event of a message, for whoever reads the stream now or later.
    pub fn push(&self, stream: u64, frame: Bytes) {
        let mut state = self.state();
        let Some(open) = state.open.get_mut(&stream) else { return };
        open.last_event += 1;
        let id = EventId { stream, event: open.last_event };
        let text = event(id, frame);
        if let Some(reader) = open.reader.take()
            && reader.try_send(text.clone())
        {
            // One that is too slow is cut off here, and may come back for the rest.
            open.delivered = id.event;
            open.reader = Some(reader);
        }
        state.keep(id, text);
    }

    /// Ends a stream: its reader gets what is there, then the end.
    pub fn finish(&self, stream: u64) {
        self.state().open.remove(&stream);
    }

    /// Reads a stream: after the event named, or what nobody has taken yet. A later reader of
    /// the same stream takes over.
    pub fn read(&self, stream: u64, after: Option<u64>) -> OutboxQueue {
        // Bounded in bytes too: one that does not read is cut off.
        let (sender, receiver) = outbox::channel_of(EVENTS_KEPT + 64);
        let mut state = self.state();
        let after = after.or_else(|| Some(state.open.get(&stream)?.delivered)).unwrap_or(0);
        let missed = state.kept.iter().filter(|(id, _)| id.stream == stream && id.event > after);
        for (_, text) in missed {
            _ = sender.try_send(text.clone()); // There is room for all that is kept.
        }
        if let Some(open) = state.open.get_mut(&stream) {
            open.delivered = open.last_event;
            open.reader = Some(sender);
        }
        receiver
    }

    /// Whether something can be said of what came after an event.
    pub fn knows(&self, id: EventId) -> bool {
        let state = self.state();
        state.open.contains_key(&id.stream)
            || state.kept.iter().any(|(kept, _)| kept.stream == id.stream)
    }

    /// Whether somebody reads one of the streams now.
    pub fn is_read(&self) -> bool {
        self.state().open.values().any(Stream::is_read)
    }

    /// Whether somebody reads what belongs to no request now.
    pub fn is_standing_read(&self) -> bool {
        self.state().open.get(&STANDING).is_some_and(Stream::is_read)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn keep(&mut self, id: EventId, text: Bytes) {
        self.kept_bytes += text.len();
        self.kept.push_back((id, text));
        while self.kept.len() > EVENTS_KEPT || self.kept_bytes > EVENT_BYTES_KEPT {
            let Some((_, text)) = self.kept.pop_front() else { return };
            self.kept_bytes -= text.len();
        }
    }
}

/// The event with which a stream begins: it names the place to come back to, and after what time.
pub fn primer(stream: u64) -> Bytes {
    format!("id: {stream}-0\nretry: {}\ndata:\n\n", RETRY.as_millis()).into()
}

fn event(id: EventId, frame: Bytes) -> Bytes {
    let head = format!("id: {}-{}\nevent: message\ndata: ", id.stream, id.event);
    let frame = mcp::lines::one_line(frame);
    [head.as_bytes(), frame.as_ref(), b"\n\n"].concat().into()
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::{EventId, STANDING, Streams};
    use crate::limits::EVENTS_KEPT;

    fn read(streams: &Streams, stream: u64, after: Option<u64>) -> Vec<String> {
        let mut reader = streams.read(stream, after);
        let mut texts = Vec::new();
        while let Some(text) = reader.try_recv() {
            let text = String::from_utf8(text.to_vec()).unwrap();
            texts.push(text.replace("\nevent: message\ndata: ", " ").trim().to_owned());
        }
        texts
    }

    #[test]
    fn events_are_numbered_and_kept_for_who_comes_back() {
        // TD-101, TD-102
        let streams = Streams::new();
        let own = streams.begin().unwrap();
        for text in ["a", "b", "c"] {
            streams.push(own, Bytes::from_static(text.as_bytes()));
        }
        streams.push(STANDING, Bytes::from_static(b"x"));
        assert_eq!(read(&streams, own, Some(1)), ["id: 1-2 b", "id: 1-3 c"]);
        streams.finish(own);
        assert_eq!(read(&streams, own, Some(2)), ["id: 1-3 c"]);
        assert_eq!(read(&streams, STANDING, None), ["id: 0-1 x"]);
        assert!(read(&streams, STANDING, None).is_empty(), "it was taken");
        assert_eq!(read(&streams, STANDING, Some(0)), ["id: 0-1 x"]);
    }

    #[test]
    fn only_so_many_events_are_kept() {
        let streams = Streams::new();
        for _ in 0..EVENTS_KEPT + 10 {
            streams.push(STANDING, Bytes::from_static(b"x"));
        }
        assert_eq!(read(&streams, STANDING, Some(0)).len(), EVENTS_KEPT);
        streams.push(STANDING, Bytes::from(vec![b'x'; 2 * 1024 * 1024]));
        assert!(read(&streams, STANDING, Some(0)).is_empty(), "too large to be kept");
    }

    #[test]
    fn event_ids_are_read_strictly() {
        assert_eq!(EventId::parse("3-14"), Some(EventId { stream: 3, event: 14 }));
        for garbage in ["", "3", "a-b", "3-", "-1-2", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(garbage), None, "{garbage}");
        }
    }
}
