//! Counting calls: plain counters, cheap enough to be always on.
//!
//! How the figures are shown is a door's matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use foldhash::HashMap;
use mcp::names::UpstreamName;
use mcp::rpc::Outcome;
use tokio::time::Instant;
use upstream::answer::Answer;
use upstream::error::Error;
use upstream::supervisor::Phase;

use crate::Gateway;

/// Upper ends of the durations that are told apart, in milliseconds; longer ones are one class.
pub const DURATIONS_MS: [u64; 12] =
    [5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 60_000];

/// What a gateway counts.
#[derive(Debug, Default)]
pub struct Metrics {
    calls: ArcSwap<HashMap<UpstreamName, Arc<Calls>>>,
    /// Messages of upstreams that a client had no room for.
    pub lost_notices: Arc<AtomicU64>,
}

/// The calls to one upstream.
#[derive(Debug, Default)]
pub struct Calls {
    pub ok: AtomicU64,
    /// Answered with an error, or not at all because the upstream is down.
    pub failed: AtomicU64,
    pub timed_out: AtomicU64,
    /// Given up by the client.
    pub cancelled: AtomicU64,
    /// Under way now.
    pub open: AtomicU64,
    /// How many took how long; the last are those above all of [`DURATIONS_MS`].
    pub durations: [AtomicU64; DURATIONS_MS.len() + 1],
    pub total_micros: AtomicU64,
}

/// One upstream in numbers.
#[derive(Debug)]
pub struct Figures {
    pub name: UpstreamName,
    pub is_up: bool,
    pub restarts: u64,
    /// Messages that no client got, as they could be for several.
    pub unattributed: u64,
    pub calls: Arc<Calls>,
}

impl Metrics {
    /// Counts the calls to these upstreams from now on; what was counted under a name before goes on.
    pub(crate) fn count_for<'a>(&self, upstreams: impl Iterator<Item = &'a UpstreamName>) {
        let former = self.calls.load_full();
        let counted = |name: &'a UpstreamName| former.get(name).cloned().unwrap_or_default();
        let calls = upstreams.map(|name| (name.clone(), counted(name)));
        self.calls.store(Arc::new(calls.collect()));
    }

    /// Begins to measure a call.
    pub(crate) fn begin(&self, upstream: &UpstreamName) -> Option<Timing> {
        let calls = Arc::clone(self.calls.load().get(upstream)?);
        calls.open.fetch_add(1, Ordering::Relaxed);
        Some(Timing { calls, began: Instant::now(), end: |calls| &calls.cancelled })
    }
}

impl Gateway {
    pub fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// The figures of all upstreams, in the order of the configuration.
    pub fn figures(&self) -> impl Iterator<Item = Figures> {
        let counted = self.0.metrics.calls.load_full();
        self.upstreams().filter_map(move |(_, upstream)| {
            let name = upstream.name().clone();
            let calls = Arc::clone(counted.get(&name)?);
            let is_up = matches!(upstream.status().phase, Phase::Ready);
            let (restarts, unattributed) = (upstream.restarts(), upstream.unattributed());
            Some(Figures { name, is_up, restarts, unattributed, calls })
        })
    }
}

/// A call that is measured; counts as cancelled unless its end is told.
pub(crate) struct Timing {
    calls: Arc<Calls>,
    began: Instant,
    /// What it counts as.
    end: fn(&Calls) -> &AtomicU64,
}

impl Timing {
    pub fn finish(mut self, answer: &Result<Answer, Error>) {
        self.end = match answer {
            Ok(Answer::Whole(Outcome::Result(_)) | Answer::Coming(_)) => |calls| &calls.ok,
            Err(Error::Timeout { .. } | Error::Unfinished { .. }) => |calls| &calls.timed_out,
            Ok(Answer::Whole(Outcome::Error(_))) | Err(_) => |calls| &calls.failed,
        };
    }
}

impl Drop for Timing {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let class = DURATIONS_MS.partition_point(|end| Duration::from_millis(*end) < took);
        if let Some(count) = self.calls.durations.get(class) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        self.calls.total_micros.fetch_add(micros, Ordering::Relaxed);
        self.calls.open.fetch_sub(1, Ordering::Relaxed);
        (self.end)(&self.calls).fetch_add(1, Ordering::Relaxed);
    }
}
