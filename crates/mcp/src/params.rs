//! The parameters of a request that names an item: what routing reads, and what it exchanges.
//!
//! The item's name and the progress token are replaced on the way up; every other byte passes.

use std::ops::Range;

use crate::headers;
use crate::items::Kind;
use crate::json::{self, Fault};
use crate::modern::{Claimed, Envelope};
use crate::rpc::Raw;
use crate::translate::Passage;

/// The member by which progress is told.
const PROGRESS_TOKEN: &str = "progressToken";

/// Parameters with the places that may be exchanged.
#[derive(Clone, Debug)]
pub struct Params {
    raw: Raw,
    key: Key,
    name: Box<str>,
    name_span: Range<usize>,
    meta_span: Option<Range<usize>>,
    arguments_span: Option<Range<usize>>,
    progress_span: Option<Range<usize>>,
}

/// Where the name stands.
#[derive(Clone, Copy, Debug)]
enum Key {
    Member(&'static str),
    Reference,
}

/// The parameter that names what the requests of a method are about.
pub fn subject_of(method: &str) -> Option<&'static str> {
    match method {
        "resources/subscribe" | "resources/unsubscribe" => Some("uri"),
        "tasks/result" => Some("taskId"),
        method => headers::named_by(method),
    }
}

impl Params {
    /// Reads parameters whose item is named by `key`.
    pub fn parse(raw: Option<&Raw>, key: &'static str) -> Result<Params, Fault> {
        Params::read(raw, key).map(|(params, _)| params)
    }

    /// The same, with the envelope in them: `_meta` is read once for both.
    pub fn read(raw: Option<&Raw>, key: &'static str) -> Result<(Params, Claimed), Fault> {
        let raw = raw.ok_or(Fault::Missing(key))?;
        // What is there twice, or spelled otherwise, is refused: rules that look at it must see what
        // the upstream will see.
        let [name, meta, arguments] =
            json::hot_members(raw.as_bytes(), [key, "_meta", "arguments"])?;
        let (token, envelope) = match meta {
            None => (None, None),
            Some(meta) => match Envelope::find_beside(raw, meta, PROGRESS_TOKEN) {
                Ok(found) => found,
                // What is wrong may not matter to both.
                Err(_) => (progress_token(Some(meta))?, Envelope::find(raw, meta)),
            },
        };
        let arguments_span = arguments.map(|arguments| json::span(raw.as_bytes(), arguments));
        let params = Params::new(raw, Key::Member(key), key, name, (meta, token))?;
        Ok((Params { arguments_span, ..params }, envelope))
    }

    /// Reads the parameters of `completion/complete`: the item is named in the reference.
    pub fn parse_reference(raw: Option<&Raw>) -> Result<(Kind, Params), Fault> {
        let raw = raw.ok_or(Fault::Missing("ref"))?;
        let [reference, meta] = raw.members(["ref", "_meta"])?;
        let reference = reference.ok_or(Fault::Missing("ref"))?;
        let [kind, name, uri] = json::members(reference.as_bytes(), ["type", "name", "uri"])?;
        let (kind, key, name) = match kind.and_then(json::string).as_deref() {
            Some("ref/prompt") => (Kind::Prompt, "name", name),
            Some("ref/resource") => (Kind::Template, "uri", uri),
            _ => {
                let expected = "`ref/prompt` or `ref/resource`";
                return Err(Fault::WrongType { member: "type", expected });
            }
        };
        let token = progress_token(meta)?;
        Ok((kind, Params::new(raw, Key::Reference, key, name, (meta, token))?))
    }

    fn new(
        raw: &Raw,
        key: Key,
        member: &'static str,
        name: Option<&str>,
        (meta, token): (Option<&str>, Option<&str>),
    ) -> Result<Params, Fault> {
        let name_text = name.ok_or(Fault::Missing(member))?;
        let name =
            json::string(name_text).ok_or(Fault::WrongType { member, expected: "a string" })?;
        Ok(Params {
            key,
            name_span: json::span(raw.as_bytes(), name_text),
            meta_span: meta.map(|meta| json::span(raw.as_bytes(), meta)),
            arguments_span: None,
            progress_span: token.map(|token| json::span(raw.as_bytes(), token)),
            name: name.into(),
            raw: raw.clone(),
        })
    }

    /// `_meta`, as it was written.
    pub fn meta(&self) -> Option<&str> {
        let meta = self.raw.as_bytes().get(self.meta_span.clone()?)?;
        std::str::from_utf8(meta).ok()
    }

    /// `arguments`, as they were written.
    pub fn arguments(&self) -> Option<&str> {
        let arguments = self.raw.as_bytes().get(self.arguments_span.clone()?)?;
        std::str::from_utf8(arguments).ok()
    }

    /// The member that the name stands in.
    pub fn key(&self) -> &'static str {
        match self.key {
            Key::Member(key) => key,
            Key::Reference => "ref",
        }
    }

    /// The name that the client asked for.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn raw(&self) -> &Raw {
        &self.raw
    }

    /// The client's progress token, as it wrote it.
    pub fn progress_token(&self) -> Option<Raw> {
        let span = self.progress_span.clone()?;
        Some(Raw::trusted(bytes::Bytes::from(self.raw.clone()).slice(span)))
    }

    /// The parameters for an upstream of perhaps another era.
    pub fn translate(&self, passage: &Passage, upstream_name: &str, token: &str) -> Vec<u8> {
        let Ok(Some(new)) = passage.request_meta(self.meta()) else {
            return self.forward(upstream_name, token);
        };
        let translated = match self.meta_span.clone() {
            Some(span) => json::splice(self.raw.as_bytes(), &[(span, new.as_bytes())]),
            None => {
                let member = format!("\"_meta\":{new},");
                let start = self.raw.as_bytes().iter().position(|b| *b == b'{').unwrap_or(0) + 1;
                json::splice(self.raw.as_bytes(), &[(start..start, member.as_bytes())])
            }
        };
        // The places are others now; what was read once can be read again.
        let translated = Raw::trusted(translated);
        match self.reread(&translated) {
            Ok(params) => params.forward(upstream_name, token),
            Err(_) => self.forward(upstream_name, token),
        }
    }

    fn reread(&self, raw: &Raw) -> Result<Params, Fault> {
        match self.key {
            Key::Member(key) => Params::parse(Some(raw), key),
            Key::Reference => Params::parse_reference(Some(raw)).map(|(_, params)| params),
        }
    }

    /// The parameters for the upstream: its own name for the item, our token for progress.
    pub fn forward(&self, upstream_name: &str, token: &str) -> Vec<u8> {
        // Mostly it can stand between the quotes as it is.
        let quoted = (!json::is_plain(upstream_name)).then(|| json::quote(upstream_name));
        let Range { start, end } = self.name_span.clone();
        let rename = match &quoted {
            None => (start + 1..end - 1, upstream_name.as_bytes()),
            Some(quoted) => (start..end, quoted.as_bytes()),
        };
        match self.progress_span.clone() {
            None => json::splice(self.raw.as_bytes(), &[rename]),
            Some(span) => {
                let mut edits = [rename, (span, token.as_bytes())];
                edits.sort_by_key(|edit| edit.0.start);
                json::splice(self.raw.as_bytes(), &edits)
            }
        }
    }
}

/// The parameters of a request or notification with its progress token exchanged, and the token.
///
/// The token is looked for in `_meta` (a request) or at the top (a progress notification).
pub fn exchange_progress_token(params: &Raw, new: &str) -> Option<(Vec<u8>, Raw)> {
    let [meta, own] = params.members(["_meta", PROGRESS_TOKEN]).ok()?;
    let token = progress_token(meta).ok()?.or(own)?;
    let span = json::span(params.as_bytes(), token);
    let exchanged = json::splice(params.as_bytes(), &[(span, new.as_bytes())]);
    Some((exchanged, params.part(token)))
}

/// The progress token in a `_meta` object.
fn progress_token(meta: Option<&str>) -> Result<Option<&str>, Fault> {
    let Some(meta) = meta else { return Ok(None) };
    let [token] = json::members(meta.as_bytes(), [PROGRESS_TOKEN])?;
    Ok(token)
}

#[cfg(test)]
mod tests {
    use super::{Params, exchange_progress_token};
    use crate::items::Kind;
    use crate::rpc::Raw;

    fn forward(text: &str) -> String {
        let params = Params::parse(Some(&Raw::trusted(text.to_owned())), "name").unwrap();
        String::from_utf8(params.forward("x", "7")).unwrap()
    }

    #[test]
    fn name_and_token_are_exchanged_and_nothing_else() {
        assert_eq!(
            forward(r#"{"arguments":{"n":9007199254740993, "name":"y"},"name":"ns_x","v":1e400}"#),
            r#"{"arguments":{"n":9007199254740993, "name":"y"},"name":"x","v":1e400}"#
        );
        assert_eq!(
            forward(r#"{"_meta":{"progressToken":"abc","k":1},"name":"ns_x"}"#),
            r#"{"_meta":{"progressToken":7,"k":1},"name":"x"}"#
        );
    }

    #[test]
    fn reference_of_a_completion_is_renamed_in_place() {
        let text = r#"{"ref":{"type":"ref/prompt","name":"ns_x"},"argument":{"name":"a"}}"#;
        let raw = Raw::trusted(text);
        let (kind, params) = Params::parse_reference(Some(&raw)).unwrap();
        assert_eq!((kind, params.name()), (Kind::Prompt, "ns_x"));
        assert_eq!(
            String::from_utf8(params.forward("x", "7")).unwrap(),
            r#"{"ref":{"type":"ref/prompt","name":"x"},"argument":{"name":"a"}}"#
        );
        let wrong = Raw::trusted(r#"{"ref":{"type":"x"}}"#);
        assert_eq!(
            Params::parse_reference(Some(&wrong)).unwrap_err().to_string(),
            "member `type` must be `ref/prompt` or `ref/resource`"
        );
    }

    #[test]
    fn token_is_exchanged_in_requests_and_notifications() {
        let exchange = |text: &'static str| {
            let (params, token) = exchange_progress_token(&Raw::trusted(text), "7")?;
            Some((String::from_utf8(params).unwrap(), token))
        };
        assert_eq!(
            exchange(r#"{"_meta":{"progressToken":"a"},"x":1}"#),
            Some((r#"{"_meta":{"progressToken":7},"x":1}"#.into(), Raw::trusted("\"a\"")))
        );
        assert_eq!(
            exchange(r#"{"progressToken":3,"progress":1}"#),
            Some((r#"{"progressToken":7,"progress":1}"#.into(), Raw::trusted("3")))
        );
        assert_eq!(exchange("{}"), None);
    }

    #[test]
    fn params_that_name_nothing_are_refused() {
        let refuse = |text: &str| {
            Params::parse(Some(&Raw::trusted(text.to_owned())), "name").unwrap_err().to_string()
        };
        assert_eq!(refuse("{}"), "member `name` is missing");
        assert_eq!(refuse(r#"{"name":7}"#), "member `name` must be a string");
        assert_eq!(refuse(r#"{"name":"a","Name":"b"}"#), "member `Name` must be spelled `name`");
        assert_eq!(refuse(r#"{"name":"a","_meta":[]}"#), "not a JSON object");
        assert_eq!(Params::parse(None, "uri").unwrap_err().to_string(), "member `uri` is missing");
    }
}
