//! The log on stderr, written by a thread of its own.
//!
//! Whoever reads our stderr may stop doing so, and a full pipe must stop nobody but the log.

use std::borrow::Cow;
use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use upstream::veil::Veil;

/// Lines that wait to be written; more are lost.
const LINES_MAX: usize = 1_024;
/// How long the end of the program waits for the last lines.
const FLUSH_MAX: Duration = Duration::from_millis(100);

enum Entry {
    Line(Vec<u8>),
    /// Answered when everything before it is written.
    Flush(SyncSender<()>),
}

static QUEUE: OnceLock<SyncSender<Entry>> = OnceLock::new();
static VEIL: OnceLock<Arc<Veil>> = OnceLock::new();

/// Has the values of secrets hidden in every line from now on.
pub fn hide_by(veil: &Arc<Veil>) {
    _ = VEIL.set(Arc::clone(veil));
}

/// A text that may be written to stderr.
pub fn hidden(text: &[u8]) -> Cow<'_, [u8]> {
    VEIL.get().map_or(Cow::Borrowed(text), |veil| veil.over_text(text))
}

/// One event of the log, queued when it is complete.
pub struct Log(Vec<u8>);

impl Log {
    pub fn start() -> Log {
        Log(Vec::new())
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        match queue().try_send(Entry::Line(std::mem::take(&mut self.0))) {
            Ok(()) | Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) => {}
        }
    }
}

type SetLevel = Box<dyn Fn(&str) + Send + Sync>;

static SET_LEVEL: OnceLock<SetLevel> = OnceLock::new();

/// Says how the level is set; to be left out where the environment has set it.
pub fn on_level(set: impl Fn(&str) + Send + Sync + 'static) {
    _ = SET_LEVEL.set(Box::new(set));
}

/// Sets the level that the configuration wants.
pub fn set_level(level: &str) {
    if let Some(set) = SET_LEVEL.get() {
        set(level);
    }
}

/// Waits a little for what is queued to be written.
pub fn flush() {
    let (done, written) = sync_channel(1);
    if QUEUE.get().is_some_and(|queue| queue.try_send(Entry::Flush(done)).is_ok()) {
        _ = written.recv_timeout(FLUSH_MAX);
    }
}

fn queue() -> &'static SyncSender<Entry> {
    QUEUE.get_or_init(|| {
        let (queue, entries) = sync_channel(LINES_MAX);
        std::thread::spawn(move || write_all(&entries));
        queue
    })
}

fn write_all(entries: &Receiver<Entry>) {
    for entry in entries {
        match entry {
            Entry::Line(line) => _ = io::stderr().write_all(&hidden(&line)),
            Entry::Flush(done) => _ = done.try_send(()),
        }
    }
}
