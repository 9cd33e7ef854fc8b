//! The event streams of one session: numbered, kept for a while, so that a lost one can go on.
//!
//! Every message is an event of exactly one stream. Standing streams are opened by GET, stream 0 first; the
//! others answer a POST each.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use gateway::outbox::{self, Outbox, OutboxQueue};

use crate::limits::{EVENT_BYTES_KEPT, EVENTS_KEPT, RETRY, STANDING_STREAMS_MAX, STREAMS_MAX};

/// The first stream for what belongs to no request; it is there from the start.
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
    /// How often a standing stream was opened.
    last_opened: u64,
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
    /// Which opening of a standing stream was the last one of this; `None` for one that answers a POST.
    opened: Option<u64>,
}

impl Stream {
    fn standing(opened: u64) -> Stream {
        Stream { opened: Some(opened), ..Stream::default() }
    }

    fn is_read(&self) -> bool {
        self.reader.as_ref().is_some_and(|reader| !reader.is_gone())
    }
}

impl Streams {
    pub fn new() -> Streams {
        let open = HashMap::from([(STANDING, Stream::standing(0))]);
        Streams(Mutex::new(State { open, ..State::default() }))
    }

    /// A new stream for the answer to a POST; `None` if there are too many.
    pub fn begin(&self) -> Option<u64> {
        let mut state = self.state();
        if state.open.values().filter(|open| open.opened.is_none()).count() >= STREAMS_MAX {
            return None;
        }
        Some(state.add(Stream::default()))
    }

    /// Makes an event of a message, for whoever reads the stream now or later.
    pub fn push(&self, stream: u64, frame: Bytes) {
        self.state().push(stream, frame);
    }

    /// The same for a message that belongs to no request: it goes to one standing stream, the newest that somebody
    /// reads, else the one that was read last. TD-103
    pub fn tell(&self, frame: Bytes) {
        let mut state = self.state();
        let standing = state.open.iter().filter(|(_, open)| open.opened.is_some());
        let newest = standing.max_by_key(|(_, open)| (open.is_read(), open.opened));
        if let Some((&stream, _)) = newest {
            state.push(stream, frame);
        }
    }

    /// Opens a standing stream: one that nobody reads any more, with what nobody has taken yet, else a new one.
    pub fn stand(&self) -> OutboxQueue {
        let mut state = self.state();
        let standing = || state.open.iter().filter(|(_, open)| open.opened.is_some());
        let left = standing().filter(|(_, open)| !open.is_read()).max_by_key(|(_, o)| o.opened);
        let stream = if let Some((&stream, _)) = left {
            stream
        } else {
            let oldest = standing().min_by_key(|(_, open)| open.opened).map(|(stream, _)| *stream);
            if standing().count() >= STANDING_STREAMS_MAX
                && let Some(oldest) = oldest
            {
                state.open.remove(&oldest);
            }
            state.add(Stream::standing(0))
        };
        state.read(stream, None)
    }

    /// Ends a stream: its reader gets what is there, then the end.
    pub fn finish(&self, stream: u64) {
        self.state().open.remove(&stream);
    }

    /// Reads a stream: after the event named, or what nobody has taken yet. A later reader of
    /// the same stream takes over.
    pub fn read(&self, stream: u64, after: Option<u64>) -> OutboxQueue {
        self.state().read(stream, after)
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
        let state = self.state();
        state.open.values().any(|stream| stream.opened.is_some() && stream.is_read())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn add(&mut self, stream: Stream) -> u64 {
        self.last_stream += 1;
        self.open.insert(self.last_stream, stream);
        self.last_stream
    }

    fn push(&mut self, stream: u64, frame: Bytes) {
        let Some(open) = self.open.get_mut(&stream) else { return };
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
        self.keep(id, text);
    }

    fn read(&mut self, stream: u64, after: Option<u64>) -> OutboxQueue {
        // Bounded in bytes too: one that does not read is cut off.
        let (sender, receiver) = outbox::channel_of(EVENTS_KEPT + 64);
        let after = after.or_else(|| Some(self.open.get(&stream)?.delivered)).unwrap_or(0);
        let missed = self.kept.iter().filter(|(id, _)| id.stream == stream && id.event > after);
        for (_, text) in missed {
            _ = sender.try_send(text.clone()); // There is room for all that is kept.
        }
        if let Some(open) = self.open.get_mut(&stream) {
            open.delivered = open.last_event;
            open.reader = Some(sender);
            if let Some(opened) = &mut open.opened {
                self.last_opened += 1;
                *opened = self.last_opened;
            }
        }
        receiver
    }

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
    use futures_util::FutureExt as _;
    use gateway::outbox::OutboxQueue;

    use super::{EventId, STANDING, Streams};
    use crate::limits::{EVENTS_KEPT, STANDING_STREAMS_MAX};

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
    fn standing_streams_stand_side_by_side_and_the_newest_is_told() {
        // TD-103
        let streams = Streams::new();
        let tell = |text: &'static str| streams.tell(Bytes::from_static(text.as_bytes()));
        let taken = |reader: &mut OutboxQueue| {
            let mut texts = Vec::new();
            while let Some(text) = reader.try_recv() {
                let text = String::from_utf8(text.to_vec()).unwrap();
                texts.push(text.replace("\nevent: message\ndata: ", " ").trim().to_owned());
            }
            texts
        };
        tell("a");
        let mut first = streams.stand();
        let mut second = streams.stand();
        tell("b");
        assert_eq!(
            (taken(&mut first), taken(&mut second)),
            (vec!["id: 0-1 a".into()], vec!["id: 1-1 b".into()])
        );
        drop(second);
        tell("c");
        assert_eq!(taken(&mut first), ["id: 0-2 c"], "the other one is read by nobody any more");
        // Each is read again by itself, and is the newest then.
        let mut second = streams.read(1, Some(0));
        tell("d");
        assert_eq!(taken(&mut second), ["id: 1-1 b", "id: 1-2 d"]);
        assert_eq!(taken(&mut first), Vec::<String>::new());
        drop((first, second));
        tell("e");
        assert_eq!(taken(&mut streams.stand()), ["id: 1-3 e"], "what nobody has taken is not lost");
    }

    #[test]
    fn only_so_many_streams_stand() {
        let streams = Streams::new();
        let mut readers: Vec<_> = (0..=STANDING_STREAMS_MAX).map(|_| streams.stand()).collect();
        let ended = |reader: &mut OutboxQueue| reader.recv().now_or_never().is_some();
        assert!(ended(&mut readers[0]), "the oldest one gives way");
        assert!(!readers[1..].iter_mut().any(ended));
        assert!(streams.begin().is_some(), "answers have streams of their own");
    }

    #[test]
    fn event_ids_are_read_strictly() {
        assert_eq!(EventId::parse("3-14"), Some(EventId { stream: 3, event: 14 }));
        for garbage in ["", "3", "a-b", "3-", "-1-2", "99999999999999999999-1"] {
            assert_eq!(EventId::parse(garbage), None, "{garbage}");
        }
    }
}
