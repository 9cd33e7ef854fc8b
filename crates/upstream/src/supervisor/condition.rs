//! How an upstream is, for people and for who watches over it; and what becomes of it when it ends.

use std::time::Duration;

use super::{Phase, Restart, Upstream};
use crate::error::Error;
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
            Phase::Starting => ("starting", Some(self.start_under_way())),
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

    fn start_under_way(&self) -> String {
        let listed =
            if self.is_stale() { "; what it offered last is listed until it does" } else { "" };
        format!("has not answered yet{listed}")
    }

    fn lateness(&self) -> String {
        let waited = self.settings().startup_timeout;
        format!(
            "has not answered within {waited:?}; see its command, or raise `startup_timeout`; it wrote to stderr: {}",
            self.said()
        )
    }

    fn said(&self) -> String {
        match self.stderr() {
            text if text.is_empty() => "nothing".to_owned(),
            text => format!("\n{text}"),
        }
    }

    /// What is told of the upstream to who wants to use it while it is not there.
    pub(super) fn down(&self) -> Error {
        let reason = match self.status().phase {
            Phase::Waiting { reason } => {
                let end = if reason.contains('\n') { "\n" } else { "; " };
                format!("{reason}{end}it will be tried again")
            }
            Phase::Down { reason } | Phase::LeftOut { reason } => reason,
            Phase::Resting => "is not started, as nobody needs it".into(),
            Phase::Installing => "is not ready: its packages are being installed; try again".into(),
            Phase::Starting => {
                format!("is still starting; try again later; it wrote to stderr: {}", self.said())
            }
            Phase::Late => self.lateness(),
            Phase::Ready => "has not answered yet".into(),
        };
        Error::Down { upstream: self.name().clone(), reason }
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
