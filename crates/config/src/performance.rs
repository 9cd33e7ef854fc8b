//! `performance_settings`: how long, how many at once, what is remembered. TF-10

use std::time::Duration;

use crate::fault::Faults;
use crate::reader::Section;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Performance {
    /// For servers that have no `timeout` of their own.
    pub call_timeout: Option<Duration>,
    /// Calls of one client that are made at once; more wait.
    pub calls_at_once: Option<usize>,
    /// How long the results of read-only tools are remembered.
    pub cached: Option<Duration>,
}

pub(crate) fn read(top: &mut Section<'_>, faults: &mut Faults<'_>) -> Performance {
    let value = top.get("performance_settings");
    let section = value.and_then(|value| value.section("in `performance_settings`", faults));
    let Some(mut section) = section else { return Performance::default() };
    let timeout = section.get("tool_call_timeout");
    let call_timeout = timeout.and_then(|value| value.number(1, 86_400_000, faults));
    let at_once = section.get("max_concurrent_calls");
    let at_once = at_once.and_then(|value| value.number(1, 2_048, faults));
    let caches = section.get("cache_tool_responses").and_then(|value| value.boolean(faults));
    let cached = section.get("cache_duration_seconds");
    let cached = cached.and_then(|value| value.number(1, 86_400, faults)).unwrap_or(300);
    section.close(&[], faults);
    Performance {
        call_timeout: call_timeout.map(Duration::from_millis),
        calls_at_once: at_once.and_then(|number| usize::try_from(number).ok()),
        cached: (caches == Some(true)).then_some(Duration::from_secs(cached)),
    }
}
