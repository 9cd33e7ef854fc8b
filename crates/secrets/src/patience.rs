//! Reading a key from somebody who may never come to an end.

use std::io::{self, Read};
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use zeroize::Zeroizing;

use crate::limits::MASTER_BYTES_MAX;

/// All that is written until the end, which must come in time. A byte too many is kept, so that it is noticed.
pub(crate) fn read(
    source: impl Read + Send + 'static,
    time_max: Duration,
) -> io::Result<Zeroizing<Vec<u8>>> {
    let (done, heard) = sync_channel(1);
    std::thread::spawn(move || {
        // With room for all of it, so that no copy is left behind as it grows.
        let room = usize::try_from(MASTER_BYTES_MAX).unwrap_or(0) + 1;
        let mut said = Zeroizing::new(Vec::with_capacity(room));
        let read = source.take(MASTER_BYTES_MAX + 1).read_to_end(&mut said);
        _ = done.send(read.map(|_| said));
    });
    heard.recv_timeout(time_max).unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}
