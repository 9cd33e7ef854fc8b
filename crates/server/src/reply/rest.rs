//! Wording the gateway's answers for plain HTTP: a status, and one format for every error.
//!
//! `{"error":{"code":"tool_not_found","message":"…","details":…}}`; `details` is what an upstream
//! said, where it said something.

use bytes::Bytes;
use gateway::error::{Class, Error, ToolFault, Trouble};
use hyper::StatusCode;
use mcp::json;
use mcp::rpc::{Code, Outcome, Raw};
use mcp::verdict::{self, Place};

/// The status and body that answer the call of a tool.
pub fn to_call(outcome: Result<Outcome, Error>) -> (StatusCode, Bytes) {
    match outcome {
        Ok(Outcome::Result(result)) => (StatusCode::OK, result.into()),
        Ok(Outcome::Error(error)) => relayed(&error),
        // The model used a control tool wrongly: the call worked, the tool says no.
        Err(error) if error.class() == Class::Control => {
            let result = verdict::failed_call(&error.to_string(), Place::Content);
            (StatusCode::OK, result.into())
        }
        Err(error) => to_failed(&error),
    }
}

/// The status and body for what could not be done.
pub fn to_failed(error: &Error) -> (StatusCode, Bytes) {
    if let Some(failure) = error.failure() {
        // TD-27
        let status = match failure.fault {
            ToolFault::NotFound => StatusCode::NOT_FOUND,
            ToolFault::InvalidArguments => StatusCode::UNPROCESSABLE_ENTITY,
            ToolFault::Timeout => StatusCode::GATEWAY_TIMEOUT,
            ToolFault::Cancelled => StatusCode::SERVICE_UNAVAILABLE,
            ToolFault::Dependency | ToolFault::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let body = body(failure.fault.as_str(), &failure.message, failure.details.as_ref());
        return (status, body);
    }
    let (status, code) = match error.class() {
        Class::Item(_) => (StatusCode::NOT_FOUND, TOOL_NOT_FOUND),
        Class::Upstream => match error.trouble() {
            Some(Trouble::Silent) => (StatusCode::GATEWAY_TIMEOUT, "execution_timeout"),
            Some(Trouble::Busy) => (StatusCode::SERVICE_UNAVAILABLE, OVERLOADED),
            Some(Trouble::Failed) | None => (StatusCode::BAD_GATEWAY, "upstream_failed"),
        },
        Class::Overload => (StatusCode::SERVICE_UNAVAILABLE, OVERLOADED),
        Class::Cancelled => (StatusCode::SERVICE_UNAVAILABLE, "cancelled"),
        Class::Params | Class::Control => (StatusCode::UNPROCESSABLE_ENTITY, INVALID_ARGUMENTS),
        Class::Method | Class::Protocol | Class::Envelope | Class::Capability | Class::Revision => {
            (StatusCode::INTERNAL_SERVER_ERROR, "internal_error")
        }
    };
    (status, body(code, &error.to_string(), None))
}

/// The body for a request that was refused before it reached the gateway.
pub fn to_refused(status: StatusCode, reason: &str) -> Bytes {
    let code = match status {
        StatusCode::UNAUTHORIZED => "unauthorized",
        StatusCode::FORBIDDEN => "forbidden",
        StatusCode::NOT_FOUND => "not_found",
        StatusCode::METHOD_NOT_ALLOWED => "method_not_allowed",
        StatusCode::REQUEST_TIMEOUT => "request_timeout",
        StatusCode::PAYLOAD_TOO_LARGE => "payload_too_large",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "unsupported_media_type",
        StatusCode::SERVICE_UNAVAILABLE => OVERLOADED,
        _ => "bad_request",
    };
    body(code, reason, None)
}

const TOOL_NOT_FOUND: &str = "tool_not_found";
const INVALID_ARGUMENTS: &str = "invalid_arguments";
const OVERLOADED: &str = "overloaded";

/// An error of the upstream, whole.
fn relayed(error: &Raw) -> (StatusCode, Bytes) {
    let [code, message] = error.members(["code", "message"]).unwrap_or_default();
    let code = code.and_then(|code| code.parse().ok()).map(Code);
    let (status, code) = match code {
        Some(Code::INVALID_PARAMS) => (StatusCode::UNPROCESSABLE_ENTITY, INVALID_ARGUMENTS),
        Some(Code::METHOD_NOT_FOUND) => (StatusCode::NOT_FOUND, TOOL_NOT_FOUND),
        _ => (StatusCode::BAD_GATEWAY, "upstream_error"),
    };
    let message = message.and_then(json::string);
    let message = message.as_deref().unwrap_or("the upstream answered with an error");
    (status, body(code, message, Some(error)))
}

/// A body for what went wrong.
pub fn body(code: &str, message: &str, details: Option<&Raw>) -> Bytes {
    let message = json::quote(message);
    let mut text = format!(r#"{{"error":{{"code":"{code}","message":{message}"#).into_bytes();
    if let Some(details) = details {
        text.extend_from_slice(b",\"details\":");
        text.extend_from_slice(details.as_bytes());
    }
    text.extend_from_slice(b"}}");
    text.into()
}

#[cfg(test)]
mod tests {
    use gateway::error::Error;
    use mcp::rpc::{Outcome, Raw};

    use super::to_call;

    fn check(outcome: Result<Outcome, Error>, status: u16, body: &str) {
        let (found, text) = to_call(outcome);
        assert_eq!((found.as_u16(), text.as_ref()), (status, body.as_bytes()));
    }

    #[test]
    fn status_says_whose_fault_it_is() {
        check(
            Err(Error::Busy(2)),
            503,
            r#"{"error":{"code":"overloaded","message":"2 requests are under way; wait for some of their answers"}}"#,
        );
        check(
            Err(Error::Cancelled),
            503,
            r#"{"error":{"code":"cancelled","message":"the request was cancelled"}}"#,
        );
        let relayed = |error: &'static str| Ok(Outcome::Error(Raw::trusted(error)));
        check(
            relayed(r#"{"code":-32601,"message":"no such tool"}"#),
            404,
            r#"{"error":{"code":"tool_not_found","message":"no such tool","details":{"code":-32601,"message":"no such tool"}}}"#,
        );
        check(
            relayed(r#""strange""#),
            502,
            r#"{"error":{"code":"upstream_error","message":"the upstream answered with an error","details":"strange"}}"#,
        );
    }
}
