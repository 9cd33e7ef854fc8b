//! How an upstream is, for people and for who watches over it; and what becomes of it when it ends.

use std::time::Duration;

use super::{Phase, Restart, Upstream};
use crate::launch::Launch;
use crate::limits::{CRASHES_MAX, REOPEN_DELAY_MAX, RESTART_DELAY_MIN};

/// How an upstream is now.
#[derive(Clone, Debug)]
pub struct Condition {
    /// One word.
    pub state: &'static str,
    /// What is wrong, in full: a sentence that begins after its name.
    pub problem: Option<String>,
    /// What an operator should know though nothing is wrong with it, in the same manner.
    pub remark: Option<String>,
    /// How far it is confined, if it is a worker that has run: a level, and what it means.
    pub sandbox: Option<String>,
    /// What is being made for the one that takes its place, in words.
    pub making: Option<String>,
    /// How often it was started again.
    pub restarts: u64,
    /// Whether it is a folder of Python tools.
    pub is_worker: bool,
}

impl Upstream {
    pub fn condition(&self) -> Condition {
        let status = self.status();
        let unimplemented =
            status.introduction.as_ref().map(|known| known.unimplemented.join(", "));
        let remark = match &status.phase {
            Phase::LeftOut { reason } => Some(reason.clone()),
            _ => unimplemented
                .filter(|names| !names.is_empty())
                .map(|names| format!("declares {names} but does not implement it, so it has none")),
        };
        let (state, problem) = match status.phase {
            Phase::Ready if status.problems.is_empty() => ("ready", None),
            Phase::Resting if status.problems.is_empty() => ("resting", None),
            Phase::Ready | Phase::Resting => {
                ("flawed", Some(format!("is flawed: {}", status.problems.join("; "))))
            }
            Phase::Installing => ("installing", Some(self.delay())),
            Phase::Starting => ("starting", Some("has not answered yet".to_owned())),
            Phase::Late => ("late", Some(self.lateness())),
            Phase::Waiting { reason } if status.failures >= CRASHES_MAX => {
                ("crash-loop", Some(reason))
            }
            Phase::Waiting { reason } => ("waiting", Some(reason)),
            Phase::Down { reason } => ("failed", Some(reason)),
            Phase::LeftOut { .. } => ("left-out", None),
        };
        let (restarts, is_worker) = (self.restarts(), self.is_worker());
        let (sandbox, making) = (status.sandbox, status.making);
        Condition { state, problem, remark, sandbox, making, restarts, is_worker }
    }

    /// Why it is not started yet, together with what is wrong besides.
    fn delay(&self) -> String {
        let waits =
            "is not ready: its Python and its packages are being seen to; calls wait for it";
        [vec![waits.to_owned()], self.status().problems].concat().join("; ")
    }

    fn lateness(&self) -> String {
        let waited = self.settings().startup_timeout;
        let stderr = self.stderr();
        let words = if stderr.is_empty() { "nothing".into() } else { format!("\n{stderr}") };
        format!(
            "has not answered within {waited:?}; see its command, or raise `startup_timeout`; it wrote to stderr: {words}"
        )
    }

    /// What becomes of the upstream after so many crashes in a row: its phase, and when to try
    /// again, if ever.
    pub(super) fn after_end(&self, reason: &str, crashes: u32) -> (Phase, Option<Duration>) {
        let upstream = self.name();
        if let Phase::LeftOut { reason } = self.status().phase {
            tracing::warn!(%upstream, "{reason}");
            return (Phase::LeftOut { reason }, None);
        }
        let doubled = RESTART_DELAY_MIN.saturating_mul(1 << (crashes - 1).min(16));
        if let Launch::Url(_) = self.0.settings.launch {
            // Whoever runs it elsewhere will start it again.
            let delay_max = match self.0.settings.restart {
                Restart::OnFailure { delay_max } => delay_max,
                Restart::Never => REOPEN_DELAY_MAX,
            };
            let delay = doubled.min(delay_max);
            tracing::warn!(%upstream, "trying again in {delay:?}; it {reason}");
            return (Phase::Waiting { reason: reason.to_owned() }, Some(delay));
        }
        let Restart::OnFailure { delay_max } = self.0.settings.restart else {
            tracing::error!(%upstream, "{reason}");
            return (Phase::Down { reason: reason.to_owned() }, None);
        };
        // A namespace is never given up: the next call may find it mended.
        if crashes >= CRASHES_MAX && !self.is_worker() {
            let reason =
                format!("was parked after {crashes} failures in a row; the last: {reason}");
            tracing::error!(%upstream, "{reason}");
            return (Phase::Down { reason }, None);
        }
        let delay = doubled.min(delay_max);
        tracing::warn!(%upstream, "restarting in {delay:?}; it {reason}");
        let reason = if crashes >= CRASHES_MAX {
            format!("has failed {crashes} times in a row; the last time it {reason}")
        } else {
            reason.to_owned()
        };
        (Phase::Waiting { reason }, Some(delay))
    }
}
