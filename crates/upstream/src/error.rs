//! What can go wrong between us and an upstream.

use std::time::Duration;

use mcp::names::UpstreamName;

use crate::python::protocol::Failure;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("upstream `{upstream}` {reason}")]
    Down { upstream: UpstreamName, reason: String },

    #[error("upstream `{upstream}` was silent for {waited:?}; see its log, or raise `{setting}`")]
    Timeout { upstream: UpstreamName, waited: Duration, setting: &'static str },

    #[error("upstream `{upstream}` reported progress for {waited:?} but did not finish")]
    Unfinished { upstream: UpstreamName, waited: Duration },

    #[error("upstream `{upstream}` sent a reply that is not valid JSON-RPC: {reason}")]
    Garbled { upstream: UpstreamName, reason: String },

    #[error("upstream `{upstream}` sent a reply that is not valid HTTP: {reason}")]
    Malformed { upstream: UpstreamName, reason: String },

    #[error("upstream `{upstream}` is called more often than it may be; try again in a minute")]
    TooOften { upstream: UpstreamName },

    #[error("upstream `{upstream}` has {limit} calls under way; try again later")]
    Busy { upstream: UpstreamName, limit: usize },

    #[error(
        "upstream `{upstream}` serves {limit} clients, each in a session of its own; try again later"
    )]
    Crowded { upstream: UpstreamName, limit: usize },

    /// What it runs in is still being made.
    #[error(
        "upstream `{upstream}` is not ready after {waited:?}: its packages are being installed; try again later"
    )]
    Unready { upstream: UpstreamName, waited: Duration },

    /// What its files define is not known yet.
    #[error(
        "upstream `{upstream}` is not ready after {waited:?}: its files are still being read; try again in a moment"
    )]
    Unread { upstream: UpstreamName, waited: Duration },

    #[error("upstream `{upstream}` answered with more than {limit} bytes on one line")]
    TooLarge { upstream: UpstreamName, limit: usize },

    /// A remote server refused the request without an answer of the protocol.
    #[error("upstream `{upstream}` answered with HTTP status {status}{said}")]
    Status { upstream: UpstreamName, status: u16, said: String },

    #[error(
        "upstream `{upstream}` redirects to {destination}, which is not followed; if you trust it, put it into `url`"
    )]
    Redirect { upstream: UpstreamName, destination: String },

    /// A tool of a Python worker has failed, or could not be called.
    #[error("{}", .failure.message)]
    Tool { upstream: UpstreamName, failure: Failure },

    #[error(
        "upstream `{upstream}` answered with the value of a secret that can't be cut out, so the answer is withheld"
    )]
    Withheld { upstream: UpstreamName },

    /// The server has forgotten the session, so the request was not processed.
    #[error("upstream `{upstream}` has forgotten the session; try again")]
    SessionLost { upstream: UpstreamName },
}
