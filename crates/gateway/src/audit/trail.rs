//! The queue between those who call and the one who writes it down.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use upstream::veil::Find;

use super::Record;
use crate::limits::{RECORDED_BYTES_MAX, RECORDS_GATHER, RECORDS_MAX};

/// Records that wait to be written. Nobody who adds one waits for whoever writes.
#[derive(Default)]
pub struct Trail {
    waiting: Mutex<Waiting>,
    changed: Condvar,
    pub written: AtomicU64,
    /// Found no room, or could not be written.
    pub lost: AtomicU64,
}

/// What has come since the last time.
#[derive(Default)]
pub struct Batch {
    pub records: Vec<Record>,
    /// Values of secrets that were hidden.
    pub finds: Vec<Find>,
}

#[derive(Default)]
struct Waiting {
    records: Vec<Record>,
    finds: Vec<Find>,
    /// Bytes that belong to others.
    shared_bytes: usize,
    is_closed: bool,
}

impl Trail {
    pub(crate) fn add(&self, mut record: Record) {
        let mut waiting = self.waiting();
        if waiting.records.len() >= RECORDS_MAX || waiting.is_closed {
            drop(waiting);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let shared = record.texts.shared_bytes();
        if waiting.shared_bytes + shared > RECORDED_BYTES_MAX {
            record.forgo_shared();
        } else {
            waiting.shared_bytes += shared;
        }
        waiting.records.push(record);
        let is_first = waiting.records.len() == 1;
        drop(waiting);
        // Whoever comes later is found by the one who is awake by then.
        if is_first {
            self.changed.notify_one();
        }
    }

    /// Adds a value that was hidden.
    pub(crate) fn add_find(&self, find: Find) {
        let mut waiting = self.waiting();
        if waiting.finds.len() >= RECORDS_MAX || waiting.is_closed {
            drop(waiting);
            self.lost.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.finds.push(find);
        drop(waiting);
        self.changed.notify_one();
    }

    /// Waits for records and takes all that have come; `None` when there will be no more.
    ///
    /// `former` gives back its memory, so that none is asked for on the way of a call.
    pub fn take(&self, mut former: Batch) -> Option<Batch> {
        former.records.clear();
        former.finds.clear();
        let is_idle = |waiting: &mut Waiting| {
            waiting.records.is_empty() && waiting.finds.is_empty() && !waiting.is_closed
        };
        let waiting = self.changed.wait_while(self.waiting(), is_idle);
        let waiting = waiting.unwrap_or_else(PoisonError::into_inner);
        let is_open = |waiting: &mut Waiting| !waiting.is_closed;
        let gathered = self.changed.wait_timeout_while(waiting, RECORDS_GATHER, is_open);
        let (mut waiting, _) = gathered.unwrap_or_else(PoisonError::into_inner);
        waiting.shared_bytes = 0;
        let batch = Batch {
            records: std::mem::replace(&mut waiting.records, former.records),
            finds: std::mem::replace(&mut waiting.finds, former.finds),
        };
        (!batch.records.is_empty() || !batch.finds.is_empty()).then_some(batch)
    }

    /// Takes no more records; those that wait can still be taken.
    pub fn close(&self) {
        self.waiting().is_closed = true;
        self.changed.notify_all();
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
