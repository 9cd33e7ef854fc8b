//! The official conformance suite, run against a URL, and what its results come to.
//!
//! A gateway is held to the suite by comparing two runs: what its upstream can do directly, it must
//! be able to do through the gateway. The suite knows its server's tools by name; `Fixture` is it.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};
use tokio::sync::Mutex;
use tokio::time::timeout;

use crate::binary::example;
use crate::client::PATIENCE;
use crate::peers;

/// Longest run of the suite; against a server that answers it takes ten seconds.
const SUITE_MAX: Duration = Duration::from_mins(5);

/// Longest that one scenario may take.
const SCENARIO_MAX_MS: &str = "20000";

/// The suite measures time, so two of it never run at once.
static SUITE: Mutex<()> = Mutex::const_new(());

/// The server that the suite is written for, as a process on loopback.
pub struct Fixture {
    pub url: String,
    _child: Child,
}

impl Fixture {
    /// `binary` is the path that cargo gives to integration tests, `era` is `both`, `legacy` or
    /// `modern`.
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    pub async fn start(binary: &str, era: &str) -> Fixture {
        let mut command = Command::new(Fixture::program(binary));
        command.args(["--port", "0", "--era", era]).stdin(Stdio::null()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let url = timeout(PATIENCE, lines.next_line()).await.expect("it starts").unwrap();
        Fixture { url: url.expect("the first line is the URL"), _child: child }
    }

    /// The program, for whoever starts it by himself: with `--stdio` it needs no URL.
    pub fn program(binary: &str) -> PathBuf {
        example(binary, "conformance_fixture")
    }
}

/// One run of the suite.
pub struct Run {
    pub exit: ExitStatus,
    pub checks: Checks,
    /// What the suite printed, for the message of a test that fails.
    pub output: String,
}

/// The outcome of each check, by the scenario and the id of the check.
pub struct Checks(BTreeMap<(String, String), Outcome>);

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    pub status: Status,
    pub message: String,
}

/// From good to bad. `Info` is the suite's word for what does not apply to a server.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Status {
    Success,
    Info,
    Skipped,
    Warning,
    Failure,
}

/// Runs what a revision requires, and what the suite runs with it without scoring it.
pub async fn run(url: &str, revision: &str) -> Run {
    let _alone = SUITE.lock().await;
    let results = TempDir::new().unwrap();
    let (node, suite) = peers::conformance_suite();
    let mut command = Command::new(node);
    command.arg(suite).args(["server", "--url", url, "--requirements", revision]);
    command.args(["--timeout", SCENARIO_MAX_MS, "-o"]).arg(results.path());
    let output = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(SUITE_MAX, output).await.expect("the suite ends").unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let output_text = format!("{stdout}{stderr}");
    let checks = Checks::read(results.path());
    assert!(
        !checks.0.is_empty(),
        "the suite did not run; it needs Node 22 or newer, which `cargo xtask peers` installs on \
         x64, and elsewhere `node` must be that:\n{output_text}"
    );
    Run { exit: output.status, checks, output: output_text }
}

impl Checks {
    /// Reads `server-SCENARIO-TIME/checks.json` of every scenario.
    fn read(results: &Path) -> Checks {
        let mut checks = Checks(BTreeMap::new());
        for entry in std::fs::read_dir(results).unwrap() {
            let folder = entry.unwrap().path();
            let scenario = scenario(&folder.file_name().unwrap().to_string_lossy()).to_owned();
            // A scenario that the suite gave up has no results.
            let text = std::fs::read_to_string(folder.join("checks.json")).unwrap_or_default();
            let list: Vec<Value> = serde_json::from_str(&text).unwrap_or_default();
            for check in &list {
                checks.note(&scenario, check);
            }
        }
        checks
    }

    /// A check that is made several times counts as its worst.
    fn note(&mut self, scenario: &str, check: &Value) {
        let text = |member: &str| check[member].as_str().unwrap_or_default().to_owned();
        let outcome =
            Outcome { status: Status::read(&check["status"]), message: text("errorMessage") };
        let key = (scenario.to_owned(), text("id"));
        let worst = self.0.entry(key).or_insert_with(|| outcome.clone());
        if outcome.status > worst.status {
            *worst = outcome;
        }
    }

    /// How many checks ended so.
    pub fn count(&self, status: Status) -> usize {
        self.0.values().filter(|outcome| outcome.status == status).count()
    }

    /// The scenarios in which something was checked.
    pub fn scenarios(&self) -> usize {
        let mut names: Vec<&str> = self.0.keys().map(|(scenario, _)| scenario.as_str()).collect();
        names.dedup();
        names.len()
    }

    /// What did not succeed, one line a check.
    pub fn not_passed(&self) -> Vec<String> {
        let bad = |outcome: &Outcome| outcome.status >= Status::Warning;
        let bad = self.0.iter().filter(|(_, outcome)| bad(outcome));
        bad.map(|(key, outcome)| line(key, Some(outcome))).collect()
    }

    /// What succeeds here and not in the other run, one line a check.
    ///
    /// `Info` there is no loss: a gateway may answer with JSON where its upstream streams.
    pub fn lost_in(&self, other: &Checks) -> Vec<String> {
        let mut lost = Vec::new();
        for (key, _) in self.0.iter().filter(|(_, outcome)| outcome.status == Status::Success) {
            let is_lost = match other.0.get(key) {
                Some(there) => there.status > Status::Info,
                None => !other.has_no_stream(&key.0),
            };
            if is_lost {
                lost.push(line(key, other.0.get(key)));
            }
        }
        lost
    }

    /// Whether the suite gave up a scenario about streams because the answer was JSON, as it may be.
    fn has_no_stream(&self, scenario: &str) -> bool {
        let key = (scenario.to_owned(), "server-sse-content-type".to_owned());
        self.0.get(&key).is_some_and(|outcome| outcome.status == Status::Info)
    }
}

fn line((scenario, id): &(String, String), outcome: Option<&Outcome>) -> String {
    match outcome {
        Some(Outcome { status, message }) => format!("{scenario}: {id}: {status}: {message}"),
        None => format!("{scenario}: {id}: was not checked"),
    }
}

/// The scenario in `server-tools-list-2026-11-16T02-11-37-923Z`.
fn scenario(folder: &str) -> &str {
    let name = folder.strip_prefix("server-").unwrap_or(folder);
    let time = "-2026-11-16T02-11-37-923Z".len();
    name.len().checked_sub(time).and_then(|end| name.get(..end)).unwrap_or(name)
}

impl Status {
    /// A status that a later suite invents is taken for the worst, so that it is noticed.
    fn read(status: &Value) -> Status {
        match status.as_str() {
            Some("SUCCESS") => Status::Success,
            Some("INFO") => Status::Info,
            Some("SKIPPED") => Status::Skipped,
            Some("WARNING") => Status::Warning,
            _ => Status::Failure,
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Status::Success => "passed",
            Status::Info => "does not apply",
            Status::Skipped => "skipped",
            Status::Warning => "warning",
            Status::Failure => "failed",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Checks, scenario};

    fn checks(list: &[(&str, &str)]) -> Checks {
        let mut checks = Checks(std::collections::BTreeMap::new());
        for (id, status) in list {
            let check = json!({"id": id, "status": status, "errorMessage": "why"});
            checks.note("s", &check);
        }
        checks
    }

    #[test]
    fn check_that_succeeds_directly_must_succeed_there() {
        let direct =
            checks(&[("a", "SUCCESS"), ("b", "SUCCESS"), ("c", "WARNING"), ("d", "SUCCESS")]);
        assert_eq!(direct.lost_in(&direct), Vec::<String>::new());
        let there = checks(&[("a", "SUCCESS"), ("a", "FAILURE"), ("a", "SUCCESS"), ("d", "INFO")]);
        assert_eq!(direct.lost_in(&there), ["s: a: failed: why", "s: b: was not checked"]);
        assert_eq!(direct.not_passed(), ["s: c: warning: why"]);
    }

    #[test]
    fn server_that_answers_with_json_has_no_stream_to_lose() {
        let direct = checks(&[("server-sse-retry-field", "SUCCESS"), ("wire", "SUCCESS")]);
        let there = checks(&[("server-sse-content-type", "INFO"), ("wire", "FAILURE")]);
        assert_eq!(direct.lost_in(&there), ["s: wire: failed: why"]);
    }

    #[test]
    fn scenario_is_the_folder_without_its_time() {
        assert_eq!(scenario("server-tools-list-2026-11-16T02-11-37-923Z"), "tools-list");
        assert_eq!(scenario("server-sse"), "sse");
    }
}
