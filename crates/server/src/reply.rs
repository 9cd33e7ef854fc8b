//! Wording the gateway's answers for JSON-RPC.

use bytes::Bytes;
use gateway::error::{Class, Error};
use mcp::items::Kind;
use mcp::rpc::{self, Code, Outcome, Raw, Rejection};
use mcp::verdict;

/// The frame that answers a request.
pub fn to_request(id: &Raw, method: &str, outcome: Result<Outcome, Error>) -> Bytes {
    match outcome {
        Ok(Outcome::Result(result)) => rpc::result(id, result.as_bytes()),
        Ok(Outcome::Error(error)) => rpc::relayed_error(id, error.as_bytes()),
        Err(error) if method == "tools/call" && is_for_the_model(&error) => {
            let result = verdict::tool_result(Err(&error.to_string()), None);
            rpc::result(id, result.as_bytes())
        }
        Err(error) => {
            let message = error.to_string();
            let data = verdict::object(Err(&message));
            let object = rpc::error_object(code(&error), &message, Some(&data));
            rpc::error(Some(id), object.as_bytes())
        }
    }
}

/// The same, but none for a request that its client has cancelled: it expects no answer.
pub fn unless_cancelled(id: &Raw, method: &str, outcome: Result<Outcome, Error>) -> Option<Bytes> {
    let is_wanted = !matches!(outcome, Err(Error::Cancelled));
    is_wanted.then(|| to_request(id, method, outcome))
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

fn code(error: &Error) -> Code {
    match error.class() {
        Class::Item(Kind::Resource | Kind::Template) => Code::RESOURCE_NOT_FOUND,
        Class::Item(Kind::Tool | Kind::Prompt) | Class::Params | Class::Control => {
            Code::INVALID_PARAMS
        }
        Class::Method => Code::METHOD_NOT_FOUND,
        Class::Protocol => Code::INVALID_REQUEST,
        Class::Upstream | Class::Overload | Class::Cancelled => Code::INTERNAL,
    }
}
