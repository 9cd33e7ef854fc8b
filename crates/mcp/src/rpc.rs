//! JSON-RPC 2.0 messages: read strictly, kept as bytes, written by concatenation.
//!
//! What a method means is not known here.

use bytes::Bytes;

use crate::json::{self, Fault};

/// Messages of one batch. Each is answered, so that a few bytes could ask for a lot of memory.
pub const BATCH_MAX: usize = 100;

/// An error code of JSON-RPC or MCP.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code(pub i32);

impl Code {
    pub const PARSE: Code = Code(-32700);
    pub const INVALID_REQUEST: Code = Code(-32600);
    pub const METHOD_NOT_FOUND: Code = Code(-32601);
    pub const INVALID_PARAMS: Code = Code(-32602);
    pub const INTERNAL: Code = Code(-32603);
    /// Of the legacy revisions; the modern one says `INVALID_PARAMS`.
    pub const RESOURCE_NOT_FOUND: Code = Code(-32002);
    /// Of the modern revision, as are the next two: a header says other than the message.
    pub const HEADER_MISMATCH: Code = Code(-32020);
    /// The client can't be asked for what the request needs.
    pub const MISSING_CAPABILITY: Code = Code(-32021);
    pub const UNSUPPORTED_VERSION: Code = Code(-32022);
}

/// A JSON value as it was sent.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Raw(Bytes);

impl Raw {
    /// Takes text that is JSON already: written by us, or a part of a parsed message.
    pub fn trusted(text: impl Into<Bytes>) -> Raw {
        Raw(text.into())
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The wanted members of this object; see [`json::members`].
    pub fn members<const N: usize>(
        &self,
        wanted: [&'static str; N],
    ) -> Result<[Option<&str>; N], Fault> {
        json::members(&self.0, wanted)
    }

    /// A part that was found in this value, sharing its memory.
    pub fn part(&self, part: &str) -> Raw {
        Raw(self.0.slice_ref(part.as_bytes()))
    }
}

impl From<Raw> for Bytes {
    fn from(raw: Raw) -> Bytes {
        raw.0
    }
}

/// One message; its parts share the memory of the frame it was read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Request { id: Raw, method: String, params: Option<Raw> },
    Notification { method: String, params: Option<Raw> },
    Response { id: Raw, outcome: Outcome },
}

/// How a request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Result(Raw),
    Error(Raw),
}

/// Why a frame is no message, with the id to answer under where it could be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    pub code: Code,
    pub reason: String,
    pub id: Option<Raw>,
}

impl Rejection {
    pub fn malformed(reason: &str) -> Rejection {
        reject(Code::INVALID_REQUEST, reason.into(), None)
    }
}

/// Reads one frame.
pub fn parse(frame: &Bytes) -> Result<Message, Rejection> {
    let wanted = ["jsonrpc", "id", "method", "params", "result", "error"];
    let [version, id, method, params, result, error] =
        json::hot_members(frame, wanted).map_err(|fault| shape_rejection(frame, &fault))?;
    let raw = |text: &str| Raw(frame.slice_ref(text.as_bytes()));
    let id = id.map(raw);
    let refuse = |reason: &str| {
        let id = id.clone().filter(is_usable_id);
        Err(reject(Code::INVALID_REQUEST, reason.into(), id))
    };
    let is_current = |version: &str| {
        // As nearly everybody writes it.
        version == "\"2.0\"" || json::string(version).as_deref() == Some("2.0")
    };
    if !version.is_some_and(is_current) {
        return refuse("member `jsonrpc` must be \"2.0\"");
    }
    let is_error_about_nothing = method.is_none() && error.is_some() && result.is_none();
    if id.as_ref().is_some_and(|id| !is_usable_id(id)) && !is_error_about_nothing {
        return refuse("member `id` must be a string or a number");
    }
    let Some(method) = method else {
        return match (id.clone(), result, error) {
            (Some(id), Some(result), None) => {
                Ok(Message::Response { id, outcome: Outcome::Result(raw(result)) })
            }
            (Some(id), None, Some(error)) => {
                Ok(Message::Response { id, outcome: Outcome::Error(raw(error)) })
            }
            (_, None, None) => refuse("member `method` is missing"),
            (_, Some(_), Some(_)) => refuse("a response has either `result` or `error`"),
            (None, ..) => refuse("a response needs the `id` of its request"),
        };
    };
    let Some(method) = json::string(method) else {
        return refuse("member `method` must be a string");
    };
    if result.is_some() || error.is_some() {
        return refuse("a message has either `method` or `result`/`error`");
    }
    let params = params.map(raw);
    if params.as_ref().is_some_and(|params| !matches!(params.as_bytes()[0], b'{' | b'[')) {
        return refuse("member `params` must be an object");
    }
    let method = method.into_owned();
    Ok(match id {
        Some(id) => Message::Request { id, method, params },
        None => Message::Notification { method, params },
    })
}

/// The messages of a batch, not read yet; `None` if the frame is none, or too large a one.
pub fn batch(frame: &Bytes) -> Option<Vec<Bytes>> {
    let is_array = frame.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    if !is_array {
        return None;
    }
    let elements = json::few_elements(std::str::from_utf8(frame).ok()?, BATCH_MAX).ok()?;
    (!elements.is_empty())
        .then(|| elements.iter().map(|part| frame.slice_ref(part.as_bytes())).collect())
}

fn reject(code: Code, reason: String, id: Option<Raw>) -> Rejection {
    Rejection { code, reason, id }
}

fn shape_rejection(frame: &Bytes, fault: &Fault) -> Rejection {
    let is_batch = frame.iter().find(|b| !b.is_ascii_whitespace()) == Some(&b'[');
    match fault {
        Fault::Syntax(_) | Fault::TooDeep => reject(Code::PARSE, fault.to_string(), None),
        Fault::NotAnObject if is_batch => {
            let reason = format!(
                "batches are part of revision 2025-03-26 alone, with 1 to {BATCH_MAX} messages; \
                 send one message a time"
            );
            reject(Code::INVALID_REQUEST, reason, None)
        }
        _ => reject(Code::INVALID_REQUEST, fault.to_string(), None),
    }
}

fn is_usable_id(id: &Raw) -> bool {
    matches!(id.as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}

/// The frame of a result.
pub fn result(id: &Raw, result: &[u8]) -> Bytes {
    concat(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_bytes(), b",\"result\":", result, b"}"])
}

/// What stands before and after a result in its frame, for one that is not copied into it.
pub fn around_result(id: &Raw) -> [Bytes; 2] {
    let head = concat(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_bytes(), b",\"result\":"]);
    [head, Bytes::from_static(b"}")]
}

/// The frame of an error that was received from elsewhere.
pub fn relayed_error(id: &Raw, error: &[u8]) -> Bytes {
    concat(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id.as_bytes(), b",\"error\":", error, b"}"])
}

/// The frame of an error of our own; `None` for an id that could not be read.
pub fn error(id: Option<&Raw>, error: &[u8]) -> Bytes {
    let id = id.map_or(b"null".as_slice(), Raw::as_bytes);
    concat(&[b"{\"jsonrpc\":\"2.0\",\"id\":", id, b",\"error\":", error, b"}"])
}

/// An error object of our own; `data` is JSON.
pub fn error_object(code: Code, message: &str, data: Option<&str>) -> Raw {
    let message = json::quote(message);
    let data = data.map_or(String::new(), |data| format!(",\"data\":{data}"));
    Raw::trusted(format!("{{\"code\":{},\"message\":{message}{data}}}", code.0))
}

/// The frame of a request; `method` is plain ASCII.
pub fn request(id: &str, method: &str, params: Option<&[u8]>) -> Bytes {
    let head: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":";
    let method = method.as_bytes();
    match params {
        None => concat(&[head, id.as_bytes(), b",\"method\":\"", method, b"\"}"]),
        Some(params) => concat(&[
            head,
            id.as_bytes(),
            b",\"method\":\"",
            method,
            b"\",\"params\":",
            params,
            b"}",
        ]),
    }
}

/// The frame of a notification; `method` is plain ASCII.
pub fn notification(method: &str, params: Option<&[u8]>) -> Bytes {
    let head: &[u8] = b"{\"jsonrpc\":\"2.0\",\"method\":\"";
    match params {
        None => concat(&[head, method.as_bytes(), b"\"}"]),
        Some(params) => concat(&[head, method.as_bytes(), b"\",\"params\":", params, b"}"]),
    }
}

fn concat(parts: &[&[u8]]) -> Bytes {
    Bytes::from(parts.concat())
}

#[cfg(test)]
mod tests;
