//! What can go wrong between us and an upstream.

use std::time::Duration;

use mcp::names::UpstreamName;

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    #[error("upstream `{upstream}` {reason}")]
    Down { upstream: UpstreamName, reason: String },

    #[error("upstream `{upstream}` was silent for {waited:?}; see its log, or raise `timeout`")]
    Timeout { upstream: UpstreamName, waited: Duration },

    #[error("upstream `{upstream}` reported progress for {waited:?} but did not finish")]
    Unfinished { upstream: UpstreamName, waited: Duration },

    #[error("upstream `{upstream}` answered with what is no answer: {reason}")]
    Garbled { upstream: UpstreamName, reason: String },

    #[error("upstream `{upstream}` has {limit} calls under way; try again later")]
    Busy { upstream: UpstreamName, limit: usize },

    #[error("upstream `{upstream}` answered with more than {limit} bytes on one line")]
    TooLarge { upstream: UpstreamName, limit: usize },
}
