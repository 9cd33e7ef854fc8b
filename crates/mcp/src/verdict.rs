//! What we say ourselves in place of an upstream: success flag, result, actionable error.

use crate::json;

/// The object that carries the verdict.
pub fn object(verdict: Result<&str, &str>) -> String {
    let (success, result, error) = match verdict {
        Ok(result) => (true, json::quote(result), "null".to_owned()),
        Err(error) => (false, "null".to_owned(), json::quote(error)),
    };
    format!(r#"{{"success":{success},"result":{result},"error":{error}}}"#)
}

/// Where the structure of an error stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the place of a result's structure.
    Content,
    /// Beside it, as the tool has promised how that looks.
    Meta,
}

impl Place {
    fn member(self, object: &str) -> String {
        match self {
            Place::Content => format!(r#""structuredContent":{object}"#),
            Place::Meta => format!(r#""_meta":{{"toolman/error":{object}}}"#),
        }
    }
}

/// The result of a tool call that has failed: the verdict as text and as structure.
pub fn failed_call(error: &str, place: Place) -> String {
    let object = object(Err(error));
    let (text, member) = (json::quote(&object), place.member(&object));
    format!(r#"{{"content":[{{"type":"text","text":{text}}}],{member},"isError":true}}"#)
}

/// The result of a tool call that has gone well: a text, perhaps a further one, and the structure.
pub fn result_of(text: &str, further: Option<&str>, object: &str) -> String {
    let block = |text: &str| format!(r#"{{"type":"text","text":{}}}"#, json::quote(text));
    let further = further.map_or(String::new(), |text| format!(",{}", block(text)));
    let text = block(text);
    format!(r#"{{"content":[{text}{further}],"structuredContent":{object},"isError":false}}"#)
}

/// The result of a tool that has failed by itself: the message as text, and all of it as structure. TD-28
pub fn tool_failure(code: &str, message: &str, details: Option<&[u8]>, place: Place) -> String {
    let message = json::quote(message);
    let details = details.map_or("null".into(), String::from_utf8_lossy);
    let object = format!(
        r#"{{"success":false,"result":null,"error":{message},"code":"{code}","details":{details}}}"#
    );
    let member = place.member(&object);
    format!(r#"{{"content":[{{"type":"text","text":{message}}}],{member},"isError":true}}"#)
}
