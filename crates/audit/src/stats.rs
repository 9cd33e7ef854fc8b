//! Usage in numbers: calls, errors, refusals, durations and bytes by agent and tool.

use std::collections::{BTreeMap, HashMap};

use crate::entry::{Call, NOTHING};

/// Rows that are told apart: a client may ask for any number of names.
const ROWS_MAX: usize = 10_000;
/// What the rest is counted under.
const OTHERS: &str = "(others)";

/// What rows are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    Agent,
    Tool,
    Both,
}

/// The figures of one agent, tool or both.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Figures {
    pub calls: u64,
    /// Let through, but failed.
    pub errors: u64,
    /// Not let through.
    pub denials: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    durations: Durations,
}

/// All rows, by agent and tool; one of them is empty where it does not count.
#[derive(Clone, Debug)]
pub struct Stats {
    by: By,
    rows: HashMap<(String, String), Figures>,
}

impl Stats {
    pub fn by(by: By) -> Stats {
        Stats { by, rows: HashMap::new() }
    }

    pub fn add(&mut self, call: &Call<'_>) {
        let agent = || call.agent.as_deref().unwrap_or(NOTHING).to_owned();
        let tool = || call.subject().to_owned();
        let mut key = match self.by {
            By::Agent => (agent(), String::new()),
            By::Tool => (String::new(), tool()),
            By::Both => (agent(), tool()),
        };
        if self.rows.len() >= ROWS_MAX && !self.rows.contains_key(&key) {
            key = (OTHERS.into(), OTHERS.into());
        }
        let row = self.rows.entry(key).or_default();
        row.calls += 1;
        row.errors += u64::from(call.has_failed());
        row.denials += u64::from(!call.is_allowed());
        row.bytes_in += call.bytes_in;
        row.bytes_out += call.bytes_out;
        if call.is_allowed() {
            row.durations.add(call.latency_us);
        }
    }

    /// The rows, the busiest first.
    pub fn rows(&self) -> Vec<(&str, &str, &Figures)> {
        let row = |(key, figures)| {
            let (agent, tool): &(String, String) = key;
            (agent.as_str(), tool.as_str(), figures)
        };
        let mut rows: Vec<(_, _, &Figures)> = self.rows.iter().map(row).collect();
        rows.sort_by_key(|(agent, tool, figures)| {
            (std::cmp::Reverse(figures.calls), *agent, *tool)
        });
        rows
    }
}

impl Figures {
    /// The duration that this share of the calls did not exceed, in microseconds.
    pub fn latency_us(&self, percent: u64) -> Option<u64> {
        self.durations.percentile(percent)
    }
}

/// How many calls took how long, to within a thirty-second.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Durations {
    /// By the largest duration that counts as the same.
    counts: BTreeMap<u64, u64>,
    total: u64,
}

impl Durations {
    fn add(&mut self, duration: u64) {
        let step = (u64::BITS - duration.leading_zeros()).saturating_sub(6);
        *self.counts.entry(duration | ((1 << step) - 1)).or_default() += 1;
        self.total += 1;
    }

    fn percentile(&self, percent: u64) -> Option<u64> {
        let wanted = (self.total * percent).div_ceil(100).max(1);
        let mut seen = 0;
        self.counts.iter().find_map(|(duration, count)| {
            seen += count;
            (seen >= wanted).then_some(*duration)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{By, Stats};
    use crate::entry::{Call, Decision, Status};

    fn call<'a>(agent: Option<&'a str>, asked: &'a str, latency_us: u64) -> Call<'a> {
        Call {
            agent: agent.map(Into::into),
            asked: asked.into(),
            decision: Decision::Allowed,
            status: Status::Ok,
            latency_us,
            bytes_in: 2,
            bytes_out: 3,
            ..Call::default()
        }
    }

    #[test]
    fn rows_are_counted_by_what_is_asked_for() {
        // TF-52
        let failed = Call { status: Status::ToolError, ..call(Some("a"), "x", 9) };
        let denied = Call { decision: Decision::Unknown, ..call(None, "z", 9) };
        let calls = [call(Some("a"), "x", 5), failed, denied, call(Some("b"), "x", 7)];
        let rows = |by| {
            let mut stats = Stats::by(by);
            calls.iter().for_each(|call| stats.add(call));
            let row = |(agent, tool, figures): &(&str, &str, &super::Figures)| {
                format!("{agent} {tool} {} {} {}", figures.calls, figures.errors, figures.denials)
            };
            stats.rows().iter().map(row).collect::<Vec<_>>().join("; ")
        };
        assert_eq!(rows(By::Agent), "a  2 1 0; -  1 0 1; b  1 0 0");
        assert_eq!(rows(By::Tool), " x 3 1 0;  z 1 0 1");
        assert_eq!(rows(By::Both), "a x 2 1 0; - z 1 0 1; b x 1 0 0");
    }

    #[test]
    fn percentiles_are_right_to_within_a_thirty_second() {
        let mut stats = Stats::by(By::Tool);
        (1..=1000).for_each(|n| stats.add(&call(None, "x", n * 1000)));
        let (_, _, figures) = stats.rows()[0];
        for (percent, exact) in [(50, 500_000_u64), (95, 950_000), (100, 1_000_000)] {
            let found = figures.latency_us(percent).unwrap();
            assert!(found >= exact && found - exact <= exact / 32, "{percent}: {found}");
        }
        assert_eq!(super::Figures::default().latency_us(50), None);
    }
}
