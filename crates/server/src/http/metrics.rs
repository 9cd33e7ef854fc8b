//! `/metrics`: what the HTTP door and the gateway count, as Prometheus reads it.

use std::fmt::{Display, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};

use gateway::metrics::{Calls, DURATIONS_MS};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

use super::body;
use super::endpoint::Endpoint;
use super::events::Body;
use super::exchange::json;

/// The doors that share the HTTP port.
const DOORS: [&str; 4] = ["http", "sse", "rest", "probe"];
/// Statuses by their class.
const CLASSES: [&str; 5] = ["1xx", "2xx", "3xx", "4xx", "5xx"];
/// The refusals that are told apart.
const REFUSALS: [u16; 11] = [400, 401, 403, 404, 405, 406, 408, 409, 413, 415, 503];

#[derive(Debug, Default)]
pub struct Metrics {
    /// Answered requests by door and class.
    requests: [[AtomicU64; CLASSES.len()]; DOORS.len()],
    refused: [AtomicU64; REFUSALS.len()],
}

impl Metrics {
    /// Counts an answer; `is_mcp` is whether MCP is served at the path.
    pub fn count(&self, path: &str, is_mcp: bool, status: StatusCode) {
        let door = match path {
            _ if is_mcp => 0,
            "/sse" | "/messages" => 1,
            "/health" | "/healthz" | "/readyz" | "/metrics" => 3,
            _ => 2,
        };
        let class = usize::from(status.as_u16() / 100).saturating_sub(1);
        if let Some(count) = self.requests.get(door).and_then(|door| door.get(class)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
        let refusal = REFUSALS.iter().position(|refusal| *refusal == status.as_u16());
        if let Some(count) = refusal.and_then(|at| self.refused.get(at)) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// A text of metrics in the making.
struct Page(String);

impl Page {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        _ = write!(self.0, "# HELP toolman_{name} {help}\n# TYPE toolman_{name} {kind}\n");
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        _ = writeln!(self.0, "toolman_{name}{labels} {value}");
    }

    fn single(&mut self, name: &str, kind: &str, help: &str, value: impl Display) {
        self.head(name, kind, help);
        self.line(name, "", value);
    }
}

impl Endpoint {
    pub(super) fn show_metrics(&self) -> Response<Body> {
        let mut page = Page(String::new());
        self.show_door(&mut page);
        self.show_upstreams(&mut page);
        let mut response = json(StatusCode::OK, page.0.into());
        let value = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");
        response.headers_mut().insert(CONTENT_TYPE, value);
        response
    }

    fn show_door(&self, page: &mut Page) {
        let metrics = &self.metrics;
        page.head("requests_total", "counter", "HTTP requests by door and class of status.");
        for (door, counts) in DOORS.iter().zip(&metrics.requests) {
            for (class, count) in CLASSES.iter().zip(counts).skip(1) {
                let labels = format!(r#"door="{door}",class="{class}""#);
                page.line("requests_total", &labels, load(count));
            }
        }
        page.head("refused_total", "counter", "HTTP requests that were refused, by status.");
        for (status, count) in REFUSALS.iter().zip(&metrics.refused) {
            page.line("refused_total", &format!(r#"status="{status}""#), load(count));
        }
        let connections = self.crowd.count();
        page.single("connections", "gauge", "Open HTTP connections.", connections);
        page.single("sessions", "gauge", "Open sessions.", self.sessions.count());
        let under_way = self.under_way.len();
        page.single("requests_under_way", "gauge", "Requests being worked on.", under_way);
        let help = "Bytes of request bodies in memory.";
        page.single("request_bytes", "gauge", help, body::bytes_in_flight());
        let lost = load(&self.gateway.metrics().lost_notices);
        let help = "Messages of upstreams that a client had no room for.";
        page.single("lost_notices_total", "counter", help, lost);
        let help = "Values of secrets that were hidden in what upstreams say.";
        page.single("secrets_hidden_total", "counter", help, self.gateway.hidden());
        if let Some(trail) = self.gateway.trail() {
            let help = "Calls that were written to the audit trail.";
            page.single("audit_records_total", "counter", help, load(&trail.written));
            let help = "Calls that could not be written to the audit trail.";
            page.single("audit_lost_total", "counter", help, load(&trail.lost));
        }
    }

    fn show_upstreams(&self, page: &mut Page) {
        page.head("upstream_up", "gauge", "Whether the upstream is ready.");
        for upstream in self.gateway.figures() {
            page.line("upstream_up", &of(&upstream.name), u8::from(upstream.is_up));
        }
        page.head("upstream_restarts_total", "counter", "How often it was started again.");
        for upstream in self.gateway.figures() {
            page.line("upstream_restarts_total", &of(&upstream.name), upstream.restarts);
        }
        let help = "Its messages that no client got, as they could be for several.";
        page.head("upstream_unattributed_total", "counter", help);
        for upstream in self.gateway.figures() {
            page.line("upstream_unattributed_total", &of(&upstream.name), upstream.unattributed);
        }
        page.head("calls_under_way", "gauge", "Calls at the upstream now.");
        for upstream in self.gateway.figures() {
            page.line("calls_under_way", &of(&upstream.name), load(&upstream.calls.open));
        }
        page.head("calls_total", "counter", "Calls to the upstream by outcome.");
        for upstream in self.gateway.figures() {
            let Calls { ok, failed, timed_out, cancelled, .. } = &*upstream.calls;
            for (outcome, count) in
                [("ok", ok), ("error", failed), ("timeout", timed_out), ("cancelled", cancelled)]
            {
                let labels = format!(r#"{},outcome="{outcome}""#, of(&upstream.name));
                page.line("calls_total", &labels, load(count));
            }
        }
        page.head("call_seconds", "histogram", "How long calls took.");
        for upstream in self.gateway.figures() {
            show_durations(page, &of(&upstream.name), &upstream.calls);
        }
    }
}

fn show_durations(page: &mut Page, upstream: &str, calls: &Calls) {
    let mut sum = 0;
    let ends = DURATIONS_MS.iter().map(|ms| format!("{}", Millis(*ms)));
    for (end, count) in ends.chain(["+Inf".to_owned()]).zip(&calls.durations) {
        sum += load(count);
        page.line("call_seconds_bucket", &format!(r#"{upstream},le="{end}""#), sum);
    }
    let total = load(&calls.total_micros);
    let total = format!("{}.{:06}", total / 1_000_000, total % 1_000_000);
    page.line("call_seconds_sum", upstream, total);
    page.line("call_seconds_count", upstream, sum);
}

/// Milliseconds, shown as seconds.
struct Millis(u64);

impl Display for Millis {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}.{:03}", self.0 / 1_000, self.0 % 1_000)
    }
}

/// The label of an upstream; names need no escaping.
fn of(name: impl Display) -> String {
    format!(r#"upstream="{name}""#)
}

fn load(count: &AtomicU64) -> u64 {
    count.load(Ordering::Relaxed)
}
