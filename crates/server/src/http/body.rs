//! Reading the body of a request: not too much, not too slowly, not too many at once.

use bytes::Bytes;
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
    let began = Instant::now();
    let mut kept = Kept { bytes: Vec::new(), room: None };
    loop {
        let earned = Duration::from_secs((kept.bytes.len() / BODY_RATE_MIN) as u64);
        let deadline = (Instant::now() + BODY_IDLE_MAX).min(began + BODY_GRACE + earned);
        let frame = match timeout_at(deadline, body.frame()).await {
            Err(_) => return Err(Fault::TooSlow),
            Ok(Some(Err(_))) => return Err(Fault::CutOff),
            Ok(Some(Ok(frame))) => frame,
            Ok(None) => return Ok(Bytes::from_owner(kept)),
        };
        if let Ok(data) = frame.into_data() {
            kept.add(&data)?;
        }
    }
}

/// Bytes, and the room that they take.
struct Kept {
    bytes: Vec<u8>,
    room: Option<SemaphorePermit<'static>>,
}

impl Kept {
    fn add(&mut self, data: &[u8]) -> Result<(), Fault> {
        if self.bytes.len() + data.len() > MESSAGE_BYTES_MAX {
            return Err(Fault::TooLarge);
        }
        // Taken as it comes: who only announces much must not keep others out.
        let count = u32::try_from(data.len()).map_err(|_| Fault::TooLarge)?;
        let room = ROOM.try_acquire_many(count).map_err(|_| Fault::NoRoom)?;
        match &mut self.room {
            Some(taken) => taken.merge(room),
            None => self.room = Some(room),
        }
        self.bytes.extend_from_slice(data);
        Ok(())
    }
}

impl AsRef<[u8]> for Kept {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}
