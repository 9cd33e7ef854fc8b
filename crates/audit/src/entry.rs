//! What a line of the trail says.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::shape::Shape;

/// What stands for something that has no name.
pub const NOTHING: &str = "-";

/// One line: a link of the chain, and what happened.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Line {
    /// The position in the chain, from 1.
    pub seq: u64,
    /// The hash of the line before.
    pub prev: String,
    /// When it happened; see [`crate::calendar::moment`].
    pub at: String,
    #[serde(flatten)]
    pub event: Event<'static>,
}

/// What happened.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
pub enum Event<'a> {
    /// Somebody wanted to use something.
    Call(Box<Call<'a>>),
    /// A process began to write; its sessions have this mark.
    Started { run: String, version: String },
    /// The line before was not written to its end, and is kept as it is.
    Torn { bytes: u64, sha256: String },
    /// This many records could not be written.
    Lost { count: u64 },
    /// The value of a secret was hidden in what an upstream says.
    Hidden(Hidden),
    /// Something that a newer version writes.
    #[serde(other, skip_serializing)]
    Other,
}

/// Whose value it was, and who was about to show it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Hidden {
    /// The name of the secret.
    pub secret: String,
    /// `global`, or the namespace that it is for.
    pub scope: String,
    pub upstream: String,
    /// What was asked, or told.
    pub method: String,
    /// The tool or URI at the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<String>,
    /// Who waited for it, as in the line of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
}

/// A request to call a tool, read a resource or get a prompt. What is written is borrowed from where
/// it is known: there is a line for every call.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Call<'a> {
    pub method: Cow<'a, str>,
    /// The name or URI as the client wrote it.
    pub asked: Cow<'a, str>,
    /// The exposed name of what it means, if that is anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream: Option<Cow<'a, str>>,
    /// Its name at the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ref_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<Cow<'a, str>>,
    /// The client's own name and version.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<Cow<'a, str>>,
    /// The profile that holds for its program, where that is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<Cow<'a, str>>,
    /// Not the secret id of a session, but a number that means the same one.
    pub session: Cow<'a, str>,
    /// The id that the client gave to its request, as JSON.
    pub request: Cow<'a, str>,
    pub decision: Decision,
    /// The rule that has decided, where one is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<Cow<'a, str>>,
    pub status: Status,
    /// What went wrong, in words of ours or of the upstream.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Cow<'a, str>>,
    /// Names and types of the arguments.
    pub arguments: Shape<'a>,
    /// The arguments themselves, where that is switched on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub values: Option<Value>,
    pub latency_us: u64,
    pub bytes_in: u64,
    pub bytes_out: u64,
    pub revision: Cow<'a, str>,
    /// Whether the result was too large to be looked at: the tool may say in it that it has failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unread: bool,
}

/// What became of the wish.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Decision {
    Allowed,
    /// It does not exist, as far as the client can know.
    Unknown,
    /// It is switched off.
    Inactive,
    /// The name could mean several things.
    Ambiguous,
    /// It is outside of what the caller may use.
    Denied,
    /// The request was wrong in itself, or came at a bad time.
    #[default]
    #[serde(other)]
    Refused,
}

/// How it ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Ok,
    /// The tool says that it has failed.
    ToolError,
    /// The upstream answered with an error.
    UpstreamError,
    /// The upstream did not answer: it is down, or what it says is no answer.
    UpstreamFailed,
    Timeout,
    Cancelled,
    /// The client was asked something first, and nothing is done yet.
    Pending,
    /// It was not carried out.
    #[default]
    #[serde(other)]
    Refused,
}

impl Decision {
    pub fn as_str(self) -> &'static str {
        match self {
            Decision::Allowed => "allowed",
            Decision::Unknown => "unknown",
            Decision::Inactive => "inactive",
            Decision::Ambiguous => "ambiguous",
            Decision::Denied => "denied",
            Decision::Refused => "refused",
        }
    }
}

impl Status {
    pub fn as_str(self) -> &'static str {
        match self {
            Status::Ok => "ok",
            Status::ToolError => "tool_error",
            Status::UpstreamError => "upstream_error",
            Status::UpstreamFailed => "upstream_failed",
            Status::Timeout => "timeout",
            Status::Cancelled => "cancelled",
            Status::Pending => "pending",
            Status::Refused => "refused",
        }
    }
}

impl Call<'_> {
    /// What it is about: the exposed name, else what was asked for, if anything was.
    pub fn subject(&self) -> &str {
        match &self.name {
            Some(name) => name,
            None if self.asked.is_empty() => NOTHING,
            None => &self.asked,
        }
    }

    /// Whether it was let through.
    pub fn is_allowed(&self) -> bool {
        self.decision == Decision::Allowed
    }

    /// Whether it was let through, and failed.
    pub fn has_failed(&self) -> bool {
        self.is_allowed()
            && !matches!(self.status, Status::Ok | Status::Cancelled | Status::Pending)
    }
}
