//! Wording the gateway's answers for JSON-RPC.

pub mod rest;

use bytes::Bytes;
use gateway::answer::{Answer, Coming};
use gateway::error::{Class, Error};
use gateway::request::Request;
use mcp::items::Kind;
use mcp::json;
use mcp::rpc::{self, Code, Outcome, Raw, Rejection};
use mcp::translate;
use mcp::verdict::{self, Place};
use mcp::version::Era;

use crate::limits::COPIED_MAX;

/// What answers a request.
pub enum Reply {
    /// A whole frame.
    Frame(Bytes),
    /// A result that is too large to be copied into its frame.
    Large { id: Raw, result: Bytes },
    /// A result that is still coming.
    Coming { request: Box<Request>, result: Box<Coming> },
}

impl Reply {
    /// The reply to a request.
    pub fn new(request: &Request, answer: Result<Answer, Error>) -> Reply {
        match answer {
            Ok(Answer::Coming(result)) => {
                Reply::Coming { request: Box::new(request.clone()), result }
            }
            Ok(Answer::Whole(Outcome::Result(result))) if result.as_bytes().len() > COPIED_MAX => {
                Reply::Large { id: request.id.clone(), result: result.into() }
            }
            Ok(Answer::Whole(outcome)) => Reply::Frame(to_request(request, Ok(outcome))),
            Err(error) => Reply::Frame(to_request(request, Err(error))),
        }
    }

    /// All of it as one frame.
    pub async fn whole(self) -> Bytes {
        match self {
            Reply::Frame(frame) => frame,
            Reply::Large { id, result } => rpc::result(&id, &result),
            Reply::Coming { request, result } => {
                to_request(&request, whole(Ok(Answer::Coming(result))).await)
            }
        }
    }
}

/// The frame that answers a request.
pub fn to_request(request: &Request, outcome: Result<Outcome, Error>) -> Bytes {
    let id = &request.id;
    match outcome {
        Ok(Outcome::Result(result)) => rpc::result(id, result.as_bytes()),
        Ok(Outcome::Error(error)) => rpc::relayed_error(id, error.as_bytes()),
        Err(error) if request.method == "tools/call" && is_for_the_model(&error) => {
            let is_promised = matches!(error, Error::Promised(_));
            let place = if is_promised { Place::Meta } else { Place::Content };
            let result = match error.failure() {
                Some(failure) => verdict::tool_failure(
                    failure.fault.as_str(),
                    &failure.message,
                    failure.details.as_ref().map(Raw::as_bytes),
                    place,
                ),
                None => verdict::failed_call(&error.to_string(), place),
            };
            let result = Raw::trusted(result);
            match request.era() {
                Era::Legacy => rpc::result(id, result.as_bytes()),
                Era::Modern => rpc::result(id, translate::complete(&result, false).as_bytes()),
            }
        }
        Err(error) => {
            let code = code(&error, request.era());
            let object = rpc::error_object(code, &error.to_string(), Some(&data(&error)));
            rpc::error(Some(id), object.as_bytes())
        }
    }
}

/// The same, but none for a request that its client has cancelled: it expects no answer.
pub async fn unless_cancelled(request: &Request, answer: Result<Answer, Error>) -> Option<Bytes> {
    if matches!(answer, Err(Error::Cancelled)) {
        return None;
    }
    Some(to_request(request, whole(answer).await))
}

/// All of an answer, once it is here.
pub async fn whole(answer: Result<Answer, Error>) -> Result<Outcome, Error> {
    Ok(answer?.whole().await?)
}

/// What an error says beyond its message.
fn data(error: &Error) -> String {
    match error {
        Error::Revision { requested, spoken } => {
            let spoken: Vec<_> =
                spoken.instead().iter().map(|revision| format!("\"{revision}\"")).collect();
            let (spoken, requested) = (spoken.join(","), json::quote(requested));
            format!(r#"{{"supported":[{spoken}],"requested":{requested}}}"#)
        }
        Error::MissingExtension(extension) => {
            format!(r#"{{"requiredCapabilities":{{"extensions":{{"{extension}":{{}}}}}}}}"#)
        }
        _ => {
            let verdict = verdict::object(Err(&error.to_string()));
            let Some(uri) = error.unknown_uri() else { return verdict };
            format!(r#"{{"uri":{},{}"#, json::quote(uri), verdict.trim_start_matches('{'))
        }
    }
}

/// The frame that answers what is no message.
pub fn to_rejected(rejection: &Rejection) -> Bytes {
    let object = rpc::error_object(rejection.code, &rejection.reason, None);
    rpc::error(rejection.id.as_ref(), object.as_bytes())
}

/// Whether the model that made a call can do something about it, and so must read it.
fn is_for_the_model(error: &Error) -> bool {
    matches!(error.class(), Class::Item(_) | Class::Upstream | Class::Control)
}

fn code(error: &Error, era: Era) -> Code {
    match error.class() {
        Class::Item(Kind::Resource | Kind::Template) if era == Era::Legacy => {
            Code::RESOURCE_NOT_FOUND
        }
        Class::Item(_) | Class::Params | Class::Envelope | Class::Control => Code::INVALID_PARAMS,
        Class::Revision => Code::UNSUPPORTED_VERSION,
        Class::Capability => Code::MISSING_CAPABILITY,
        Class::Method => Code::METHOD_NOT_FOUND,
        Class::Protocol => Code::INVALID_REQUEST,
        Class::Upstream | Class::Overload | Class::Cancelled => Code::INTERNAL,
    }
}
