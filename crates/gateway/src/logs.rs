//! Log messages of upstreams: who wants them, and how grave they must be.
//!
//! A session sets its level once, a request of the modern era brings its own. Upstreams are told
//! the lowest that anybody wants; each client gets what it asked for.

use std::sync::PoisonError;

use mcp::json::{self, Fault};
use mcp::log_level::LogLevel;
use mcp::modern::{self, Envelope};
use mcp::rpc::{Outcome, Raw};

use crate::Gateway;
use crate::client::Client;
use crate::error::Error;

const METHOD: &str = "logging/setLevel";

impl Gateway {
    /// Sets the level of a session.
    pub(crate) fn set_log_level(
        &self,
        client: &Client,
        params: Option<&Raw>,
    ) -> Result<Outcome, Error> {
        let level = params.map(|params| params.members(["level"])).transpose();
        let level = level.map_err(|fault| Error::Params { method: METHOD, fault })?;
        let level = read(level.and_then(|[level]| level), METHOD, "level")?;
        client.set_log_level(level);
        self.want_logs(level);
        Ok(Outcome::Result(Raw::trusted("{}")))
    }

    /// The level that a request of the modern era wants, if any.
    pub(crate) fn check_log_level(&self, envelope: &Envelope) -> Result<(), Error> {
        let Some(level) = &envelope.log_level else { return Ok(()) };
        let level = std::str::from_utf8(level.as_bytes()).ok();
        let level = read(level, "_meta", modern::LOG_LEVEL)?;
        self.want_logs(level);
        Ok(())
    }

    /// Tells upstreams that keep sessions, if nobody has wanted as much before.
    fn want_logs(&self, level: LogLevel) {
        let mut lowest = self.0.lowest_log_level.lock().unwrap_or_else(PoisonError::into_inner);
        if lowest.is_some_and(|lowest| lowest <= level) {
            return;
        }
        *lowest = Some(level);
        for (_, upstream) in self.upstreams() {
            upstream.want_logs(level);
        }
    }
}

/// The level that an envelope names, if it is one.
pub(crate) fn level_in(envelope: &Envelope) -> Option<LogLevel> {
    LogLevel::parse(std::str::from_utf8(envelope.log_level.as_ref()?.as_bytes()).ok()?)
}

fn read(text: Option<&str>, method: &'static str, member: &'static str) -> Result<LogLevel, Error> {
    let fault = match text {
        None => Fault::Missing(member),
        Some(text) => match LogLevel::parse(text) {
            Some(level) => return Ok(level),
            None => Fault::WrongType { member, expected: "a level from `debug` to `emergency`" },
        },
    };
    Err(Error::Params { method, fault })
}

/// Whether a notification is no log message, or one that is grave enough.
pub(crate) fn is_wanted(frame: &[u8], least: Option<LogLevel>) -> bool {
    let Ok([Some(method), params]) = json::members(frame, ["method", "params"]) else {
        return true;
    };
    if json::string(method).as_deref() != Some("notifications/message") {
        return true;
    }
    let level = params.and_then(|params| json::members(params.as_bytes(), ["level"]).ok());
    let level = level.and_then(|[level]| level).and_then(LogLevel::parse);
    least.is_some_and(|least| level.is_none_or(|level| level >= least))
}
