//! What a run has found: kept as JSON, shown as a table and a plot.

use serde::Serialize;

use crate::figures::Middle;

/// Everything that one run has measured.
#[derive(Debug, Default, Serialize)]
pub struct Results {
    pub machine: String,
    pub rounds: usize,
    pub seconds: f64,
    pub works: Vec<Work>,
    /// Figures that have nothing to do with time.
    pub still: Vec<Still>,
}

/// The same work for all contestants.
#[derive(Debug, Default, Serialize)]
pub struct Work {
    /// The letter of the kind of work.
    pub letter: char,
    pub title: String,
    pub rows: Vec<Row>,
}

/// One contestant at one work, over all rounds.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Row {
    pub name: String,
    pub per_second: Option<Middle>,
    pub p50_us: Option<Middle>,
    pub p99_us: Option<Middle>,
    /// CPU time of the gateway itself for one answer.
    pub cpu_us: Option<Middle>,
    pub wrong: u64,
    pub swapped: u64,
    pub lost: u64,
    /// Requests to upstreams for one answer, where they are counted.
    pub upstream_requests: Option<f64>,
    /// Processes of each stdio upstream.
    pub children: Option<f64>,
    /// Memory before and after, where that is the work.
    pub memory_kib: Option<(u64, u64)>,
    /// How much longer a call takes than in its own process, where that is the work.
    pub more_us: Option<f64>,
    /// What an idle worker of Python tools keeps in memory.
    pub worker_kib: Option<Middle>,
    /// The first thing that went wrong.
    pub complaint: Option<String>,
}

/// Figures of one contestant that are counted, not timed.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Still {
    pub name: String,
    pub idle_kib: Option<u64>,
    pub binary_bytes: Option<u64>,
    pub instructions: Option<f64>,
    pub instructions_stdio: Option<f64>,
    pub system_calls: Option<f64>,
    pub system_calls_crowd: Option<f64>,
}
