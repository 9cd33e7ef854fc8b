//! Why a request was not answered by an upstream: gathered here, worded by the doors.

use catalog::snapshot::Item;
use mcp::items::Kind;
use mcp::json::{self, Fault};
use mcp::names::UpstreamName;
use mcp::text::shorten;
use mcp::version::Spoken;

pub use upstream::python::protocol::{Failure, ToolFault};

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The item does not exist for this client, or is not to be used now.
    #[error(transparent)]
    Catalog(#[from] catalog::error::Error),

    /// The upstream did not answer.
    #[error(transparent)]
    Upstream(#[from] upstream::error::Error),

    /// The upstream did not answer for a tool that has promised how its results look, as no error does.
    #[error("{0}")]
    Promised(upstream::error::Error),

    /// A control call by the model was wrong.
    #[error("{0}")]
    Control(String),

    /// The rules, or a person, did not allow this call.
    #[error("{0}")]
    Denied(String),

    #[error("the parameters of `{method}` can't be used: {fault}")]
    Params { method: &'static str, fault: Fault },

    /// A request of the modern era that does not say what it must.
    #[error("`params._meta` can't be used: {0}")]
    Envelope(Fault),

    #[error("protocol revision `{}` is not spoken", shorten(.requested))]
    Revision { requested: String, spoken: Spoken },

    #[error("upstream `{upstream}` does not tell when its resources change")]
    Unwatchable { upstream: UpstreamName },

    #[error("no task has the id `{}`; it may have ended long ago", shorten(.0))]
    UnknownTask(String),

    /// The client must say that it supports the extension.
    #[error("this needs the extension `{0}`; declare it in the client's capabilities")]
    MissingExtension(&'static str),

    #[error("there is no such page; list again without `cursor`")]
    Cursor,

    #[error("method `{}` is not known here", shorten(.0))]
    Method(String),

    #[error("`{}` must wait until `initialize` is answered", shorten(.0))]
    Uninitialized(String),

    #[error("`{}` must wait until `notifications/initialized` is sent", shorten(.0))]
    NotReady(String),

    #[error("`initialize` was answered already on this connection")]
    Reinitialized,

    #[error("a request with this id is still under way; use another id")]
    IdInUse,

    #[error("{0} requests are under way; wait for some of their answers")]
    Busy(usize),

    #[error("{limit} {what} at a time are the most; end some of them first")]
    Crowded { what: &'static str, limit: usize },

    /// The client has cancelled the request and expects no answer.
    #[error("the request was cancelled")]
    Cancelled,
}

/// Whose fault an error is; the doors word it by that.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The item is unknown or not to be used.
    Item(Kind),
    Upstream,
    /// The model used a control tool wrongly.
    Control,
    /// The request's parameters are wrong.
    Params,
    /// The request does not say of itself what it must.
    Envelope,
    /// The client can't be asked for, or does not support, what the request needs.
    Capability,
    /// The request is of a revision that is not spoken.
    Revision,
    Method,
    /// The client broke the rules of the protocol.
    Protocol,
    Overload,
    Cancelled,
}

/// How an upstream failed, for doors that tell these apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// It is not there, or what it says is no answer.
    Failed,
    /// It did not answer in time.
    Silent,
    /// It has too much to do.
    Busy,
}

impl Error {
    /// What went wrong with an item: strict clients hold all that a tool tells as structure to what it has promised.
    pub fn of(self, item: &Item) -> Error {
        match self {
            Error::Upstream(problem)
                if matches!(json::members(&item.definition, ["outputSchema"]), Ok([Some(_)])) =>
            {
                Error::Promised(problem)
            }
            other => other,
        }
    }

    /// The URI that no resource has, if that is what is wrong.
    pub fn unknown_uri(&self) -> Option<&str> {
        match self {
            Error::Catalog(catalog::error::Error::Unknown {
                kind: Kind::Resource, asked, ..
            }) => Some(asked),
            _ => None,
        }
    }

    /// What a Python tool says instead of a result, if that is what is wrong.
    pub fn failure(&self) -> Option<&Failure> {
        match self {
            Error::Upstream(upstream::error::Error::Tool { failure, .. })
            | Error::Promised(upstream::error::Error::Tool { failure, .. }) => Some(failure),
            _ => None,
        }
    }

    /// How the upstream failed, if one did.
    pub fn trouble(&self) -> Option<Trouble> {
        use upstream::error::Error as Problem;
        let (Error::Upstream(problem) | Error::Promised(problem)) = self else { return None };
        Some(match problem {
            Problem::Timeout { .. } | Problem::Unfinished { .. } => Trouble::Silent,
            Problem::Tool { failure, .. } if failure.fault == ToolFault::Timeout => Trouble::Silent,
            Problem::Busy { .. }
            | Problem::Crowded { .. }
            | Problem::TooOften { .. }
            | Problem::Unready { .. }
            | Problem::Unread { .. } => Trouble::Busy,
            _ => Trouble::Failed,
        })
    }

    pub fn class(&self) -> Class {
        use catalog::error::Error as Refusal;
        match self {
            Error::Catalog(
                Refusal::Unknown { kind, .. }
                | Refusal::Inactive { kind, .. }
                | Refusal::Ambiguous { kind, .. },
            ) => Class::Item(*kind),
            Error::Upstream(_) | Error::Promised(_) => Class::Upstream,
            Error::Control(_) | Error::Denied(_) => Class::Control,
            Error::MissingExtension(_) => Class::Capability,
            Error::Params { .. }
            | Error::Cursor
            | Error::UnknownTask(_)
            | Error::Unwatchable { .. } => Class::Params,
            Error::Envelope(_) => Class::Envelope,
            Error::Revision { .. } => Class::Revision,
            Error::Method(_) => Class::Method,
            Error::Uninitialized(_)
            | Error::NotReady(_)
            | Error::Reinitialized
            | Error::IdInUse => Class::Protocol,
            Error::Busy(_) | Error::Crowded { .. } => Class::Overload,
            Error::Cancelled => Class::Cancelled,
        }
    }
}
