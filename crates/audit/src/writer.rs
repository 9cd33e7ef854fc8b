//! Writing the trail: one write for all that waits, at the end of the file of the day.

use std::fs::{DirBuilder, File, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use crate::calendar::Day;
use crate::entry::Event;
use crate::error::Error;
use crate::files::{self, FileName};
use crate::limits::RETRY_AFTER;
use crate::slot::Slot;
use crate::tail;

/// Where a trail is kept, and for how long.
#[derive(Clone)]
pub struct Settings {
    pub folder: PathBuf,
    pub retention_days: u32,
    /// What takes out of an event, as JSON, what nobody may read.
    pub hide: Hide,
}

/// Gives back an event as JSON that may be written, if it is to be another one.
pub type Hide = Arc<dyn Fn(&[u8]) -> Option<Vec<u8>> + Send + Sync>;

/// Writes one chain.
pub struct Writer {
    settings: Settings,
    /// What every process that writes says first.
    greeting: Option<Event<'static>>,
    open: Option<Open>,
    /// When writing has failed the last time, unless it has gone well since.
    pub(crate) failed: Option<Instant>,
}

struct Open {
    slot: Slot,
    day: Day,
    path: PathBuf,
    file: File,
    /// How much of it is whole.
    length: u64,
    /// Whether it ends within a line that was torn.
    is_torn: bool,
}

impl Writer {
    /// A writer that has touched nothing yet.
    pub fn new(settings: Settings, greeting: Event<'static>) -> Writer {
        Writer { settings, greeting: Some(greeting), open: None, failed: None }
    }

    /// Writes all these, or none. After a failure it is tried again, but not at once.
    pub fn write<'a>(
        &mut self,
        now: SystemTime,
        events: impl IntoIterator<Item = (SystemTime, Event<'a>)>,
    ) -> Result<(), Error> {
        if self.failed.is_some_and(|failed| failed.elapsed() < RETRY_AFTER) {
            return Err(Error::TooSoon);
        }
        let written = self.try_write(now, events);
        self.failed = written.is_err().then(Instant::now);
        if written.is_ok() {
            self.greeting = None;
        } else {
            // Whatever has changed below us is found out anew.
            self.open = None;
        }
        written
    }

    fn try_write<'a>(
        &mut self,
        now: SystemTime,
        events: impl IntoIterator<Item = (SystemTime, Event<'a>)>,
    ) -> Result<(), Error> {
        let day = Day::of(now);
        let mut open = match self.open.take().filter(Open::is_there) {
            Some(open) if open.day == day => open,
            Some(open) => Open::new(&self.settings, open.slot, day)?,
            None => {
                make_folder(&self.settings.folder)?;
                let slot = Slot::take(&self.settings.folder)?;
                Open::new(&self.settings, slot, day)?
            }
        };
        let first = open.slot.torn.take().into_iter().chain(self.greeting.clone());
        let first = first.map(|event| (now, event));
        open.append(&self.settings.hide, first.chain(events))?;
        self.open = Some(open);
        Ok(())
    }

    /// Makes sure that what was written stays, also when the machine fails.
    pub fn sync(&mut self) {
        if let Some(open) = &self.open {
            _ = open.file.sync_data();
        }
    }
}

impl Open {
    fn new(settings: &Settings, slot: Slot, day: Day) -> Result<Open, Error> {
        files::prune(&settings.folder, day.before(settings.retention_days.saturating_sub(1)))?;
        let path = FileName { day, slot: slot.number }.in_folder(&settings.folder);
        let open = || {
            let mut options = OpenOptions::new();
            let file = options.create(true).append(true).mode(0o600).open(&path)?;
            let length = file.metadata()?.len();
            Ok((file, length, tail::read(&path)?.is_open))
        };
        let (file, length, is_torn) = open().map_err(Error::at(&path))?;
        Ok(Open { slot, day, path, file, length, is_torn })
    }

    /// Whether the file is still in its folder.
    fn is_there(&self) -> bool {
        self.file.metadata().is_ok_and(|known| known.nlink() > 0)
    }

    fn append<'a>(
        &mut self,
        hide: &Hide,
        events: impl Iterator<Item = (SystemTime, Event<'a>)>,
    ) -> Result<(), Error> {
        // What was torn gets a line of its own, so that the next one begins where lines do.
        let mut lines = if self.is_torn { b"\n".to_vec() } else { Vec::new() };
        let mut link = self.slot.link.clone();
        for (at, event) in events {
            link.add(at, &event, hide, &mut lines);
        }
        if let Err(error) = self.file.write_all(&lines) {
            // A disk that is full may have taken a part.
            _ = self.file.set_len(self.length);
            return Err(Error::at(&self.path)(error));
        }
        self.length += lines.len() as u64;
        self.slot.link = link;
        self.is_torn = false;
        Ok(())
    }
}

fn make_folder(folder: &Path) -> Result<(), Error> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(Error::at(folder))
}
