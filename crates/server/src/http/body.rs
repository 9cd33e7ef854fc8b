//! Reading the body of a request: not too much, not too slowly, not too many at once.

use bytes::Bytes;
use futures_util::FutureExt as _;
use http_body_util::BodyExt as _;
use hyper::body::Body;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Duration, Instant, timeout_at};

use crate::limits::{
    BODIES_BYTES_MAX, BODY_GRACE, BODY_IDLE_MAX, BODY_RATE_MIN, MESSAGE_BYTES_MAX,
};

/// Room for the bodies of all requests. There is one memory, so there is one room.
static ROOM: Semaphore = Semaphore::const_new(BODIES_BYTES_MAX);

/// Why a body was not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    TooLarge,
    TooSlow,
    CutOff,
    NoRoom,
}

/// Bytes of requests that are being read or worked on.
pub fn bytes_in_flight() -> usize {
    BODIES_BYTES_MAX - ROOM.available_permits()
}

/// Reads a body. Its room is given back when the last part of it is forgotten.
pub async fn read<B>(mut body: B) -> Result<Bytes, Fault>
where
    B: Body<Data = Bytes> + Unpin,
{
    if body.size_hint().lower() > MESSAGE_BYTES_MAX as u64 {
        return Err(Fault::TooLarge); // It says so itself; nothing needs to be read.
    }
    // Most bodies come whole, together with the head.
    let first = match body.frame().now_or_never() {
        None => None,
        Some(None) => return Ok(Bytes::new()),
        Some(Some(Err(_))) => return Err(Fault::CutOff),
        Some(Some(Ok(frame))) => frame.into_data().ok(),
    };
    let mut kept = Kept { bytes: first.unwrap_or_default(), more: Vec::new(), room: None };
    kept.take_room(kept.bytes.len())?;
    if !body.is_end_stream() {
        Box::pin(read_on(&mut body, &mut kept)).await?;
    }
    Ok(Bytes::from_owner(kept))
}

/// Reads what follows the first piece.
async fn read_on<B>(body: &mut B, kept: &mut Kept) -> Result<(), Fault>
where
    B: Body<Data = Bytes> + Unpin,
{
    let began = Instant::now();
    loop {
        let earned = Duration::from_secs((kept.len() / BODY_RATE_MIN) as u64);
        let deadline = (Instant::now() + BODY_IDLE_MAX).min(began + BODY_GRACE + earned);
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Fault::TooSlow),
            Ok(Some(Err(_))) => return Err(Fault::CutOff),
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return Ok(()),
        };
        if let Ok(data) = frame.into_data() {
            kept.add(&data)?;
        }
    }
}

/// Bytes, and the room that they take.
struct Kept {
    /// All of it, where it came in one piece.
    bytes: Bytes,
    /// All of it otherwise.
    more: Vec<u8>,
    room: Option<SemaphorePermit<'static>>,
}

impl Kept {
    fn len(&self) -> usize {
        self.as_ref().len()
    }

    fn add(&mut self, data: &[u8]) -> Result<(), Fault> {
        self.take_room(data.len())?;
        if self.more.is_empty() {
            self.more.extend_from_slice(&std::mem::take(&mut self.bytes));
        }
        self.more.extend_from_slice(data);
        Ok(())
    }

    /// Room is taken as bytes come: who only announces much must not keep others out.
    fn take_room(&mut self, bytes: usize) -> Result<(), Fault> {
        if self.room.as_ref().map_or(0, SemaphorePermit::num_permits) + bytes > MESSAGE_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        let count = u32::try_from(bytes).map_err(|_| Fault::TooLarge)?;
        let room = ROOM.try_acquire_many(count).map_err(|_| Fault::NoRoom)?;
        match &mut self.room {
            Some(taken) => taken.merge(room),
            None => self.room = Some(room),
        }
        Ok(())
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        if self.more.is_empty() { &self.bytes } else { &self.more }
    }
}
