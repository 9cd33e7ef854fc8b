//! The head of a request: the fields that matter, found in one pass.
//!
//! Looking up each of them would cost more than reading all.

use hyper::header::{HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, StatusCode, Uri, Version};
use mcp::version::{Era, Revision};

use super::exchange::{Refused, Streaming, refuse};

const JSON: &[u8] = b"application/json";
const EVENT_STREAM: &[u8] = b"text/event-stream";
/// How the clients of nearly all libraries say it.
const BOTH: &[u8] = b"application/json, text/event-stream";

/// A request without its body.
pub struct Head<'h> {
    pub method: &'h Method,
    pub uri: &'h Uri,
    pub version: Version,
    /// All fields, for those that only a tool names.
    pub fields: &'h HeaderMap,
    pub host: Field<'h>,
    pub origin: Field<'h>,
    pub authorization: Field<'h>,
    pub content_type: Field<'h>,
    pub session: Field<'h>,
    pub protocol: Field<'h>,
    pub mcp_method: Field<'h>,
    pub mcp_name: Field<'h>,
    pub namespace: Field<'h>,
    pub agent: Field<'h>,
    pub client: Field<'h>,
    pub permissions: Field<'h>,
    pub toolsets: Field<'h>,
    pub tools: Field<'h>,
    pub last_event: Field<'h>,
    pub asks_for_method: bool,
    pub has_length: bool,
    pub is_chunked: bool,
    accepts: Accepts,
}

/// A field that should be there once.
#[derive(Clone, Copy, Debug, Default)]
pub struct Field<'h> {
    first: Option<&'h HeaderValue>,
    pub is_repeated: bool,
}

impl<'h> Field<'h> {
    fn add(&mut self, value: &'h HeaderValue) {
        self.is_repeated = self.first.is_some();
        self.first.get_or_insert(value);
    }

    /// A field that only a tool names.
    pub fn find(fields: &'h HeaderMap, name: &str) -> Field<'h> {
        let mut field = Field::default();
        fields.get_all(name).iter().for_each(|value| field.add(value));
        field
    }

    pub fn value(&self) -> Option<&'h HeaderValue> {
        self.first
    }

    /// Its text; whoever says it twice has said nothing.
    pub fn once(&self) -> Option<&'h str> {
        self.text().filter(|_| !self.is_repeated)
    }

    /// Its text, if it is there and of plain letters.
    pub fn text(&self) -> Option<&'h str> {
        self.first.and_then(text_of)
    }
}

/// The text of a value of plain letters. The same as its `to_str`, which looks at every byte by itself:
/// there are no control characters in a value.
pub fn text_of(value: &HeaderValue) -> Option<&str> {
    let bytes = value.as_bytes();
    if bytes.is_ascii() { std::str::from_utf8(bytes).ok() } else { None }
}

/// What the answer may be.
#[derive(Clone, Copy, Debug)]
struct Accepts {
    json: bool,
    streaming: Streaming,
    is_named: bool,
}

impl<'h> Head<'h> {
    pub fn of(parts: &'h Parts) -> Head<'h> {
        let mut head = Head {
            method: &parts.method,
            uri: &parts.uri,
            version: parts.version,
            fields: &parts.headers,
            host: Field::default(),
            origin: Field::default(),
            authorization: Field::default(),
            content_type: Field::default(),
            session: Field::default(),
            protocol: Field::default(),
            mcp_method: Field::default(),
            mcp_name: Field::default(),
            namespace: Field::default(),
            agent: Field::default(),
            client: Field::default(),
            permissions: Field::default(),
            toolsets: Field::default(),
            tools: Field::default(),
            last_event: Field::default(),
            asks_for_method: false,
            has_length: false,
            is_chunked: false,
            accepts: Accepts { json: false, streaming: Streaming::Refused, is_named: false },
        };
        for (name, value) in &parts.headers {
            head.add(name.as_str(), value);
        }
        head
    }

    fn add(&mut self, name: &str, value: &'h HeaderValue) {
        match name {
            "host" => self.host.add(value),
            "origin" => self.origin.add(value),
            "authorization" => self.authorization.add(value),
            "content-type" => self.content_type.add(value),
            "accept" => self.accepts.add(value.as_bytes()),
            "mcp-session-id" => self.session.add(value),
            "mcp-protocol-version" => self.protocol.add(value),
            "mcp-method" => self.mcp_method.add(value),
            "mcp-name" => self.mcp_name.add(value),
            "x-namespace" => self.namespace.add(value),
            "x-agent-id" => self.agent.add(value),
            "mcp-client-id" => self.client.add(value),
            "mcp-toolset-permissions" => self.permissions.add(value),
            "x-mcp-toolsets" => self.toolsets.add(value),
            "x-mcp-tools" => self.tools.add(value),
            "last-event-id" => self.last_event.add(value),
            "content-length" => self.has_length = true,
            "transfer-encoding" => self.is_chunked = true,
            "access-control-request-method" => self.asks_for_method = true,
            _ => {}
        }
    }

    /// Whether something that tells who asks is there twice, or can't be read.
    pub fn is_ambiguous_about_itself(&self) -> bool {
        let is_strange = |field: &Field<'_>| {
            field.is_repeated || field.value().is_some_and(|value| value.to_str().is_err())
        };
        let fields = [&self.authorization, &self.agent, &self.client, &self.permissions];
        fields.into_iter().any(is_strange)
    }

    /// The host that the request is for: in HTTP/2 it may stand in the address alone.
    pub fn named_host(&self) -> Option<&'h [u8]> {
        let named = self.host.value().map(HeaderValue::as_bytes);
        named.or_else(|| Some(self.uri.authority()?.as_str().as_bytes()))
    }

    pub fn path(&self) -> &'h str {
        self.uri.path()
    }

    /// Whether the request is named as one of the modern era.
    pub fn is_modern(&self) -> bool {
        let version = self.protocol.text().and_then(Revision::parse);
        version.is_some_and(|version| version.era() == Era::Modern)
    }

    /// Whether the body is said to be JSON in UTF-8.
    pub fn has_json(&self) -> bool {
        if self.content_type.value().is_some_and(|value| value.as_bytes() == JSON) {
            return true;
        }
        let mut parts = self.content_type.text().unwrap_or_default().split(';').map(str::trim);
        let is_json = parts.next().is_some_and(|kind| is(kind.as_bytes(), JSON));
        is_json && parts.all(|part| !is_other_charset(part))
    }

    pub fn accepts_streams(&self) -> bool {
        self.accepts.streaming != Streaming::Refused
    }

    /// Whether the answer may be a stream.
    pub fn streaming(&self) -> Streaming {
        self.accepts.streaming
    }

    /// Whether the client accepts what the answer to a POST may be.
    pub fn check_accept(&self, revision: Revision) -> Result<(), Refused> {
        if self.accepts.json && (self.accepts_streams() || !revision.must_accept_streams()) {
            return Ok(());
        }
        let reason = "accept both `application/json` and `text/event-stream`";
        refuse(StatusCode::NOT_ACCEPTABLE, reason)
    }
}

impl Accepts {
    fn add(&mut self, value: &[u8]) {
        let is_first = !std::mem::replace(&mut self.is_named, true);
        if value == BOTH && is_first {
            self.json = true;
            self.streaming = Streaming::Accepted;
            return;
        }
        for (at, entry) in value.split(|b| *b == b',').enumerate() {
            let kind = entry.split(|b| *b == b';').next().unwrap_or_default().trim_ascii();
            self.json |= is(kind, JSON) || is(kind, b"application/*") || kind == b"*/*";
            if is_first && at == 0 && kind == EVENT_STREAM {
                self.streaming = Streaming::Preferred;
            } else if self.streaming == Streaming::Refused
                && (is(kind, EVENT_STREAM) || is(kind, b"text/*") || kind == b"*/*")
            {
                self.streaming = Streaming::Accepted;
            }
        }
    }
}

fn is(kind: &[u8], wanted: &[u8]) -> bool {
    kind.eq_ignore_ascii_case(wanted)
}

fn is_other_charset(parameter: &str) -> bool {
    let (name, value) = parameter.split_once('=').unwrap_or_default();
    name.eq_ignore_ascii_case("charset") && !value.trim_matches('"').eq_ignore_ascii_case("utf-8")
}

#[cfg(test)]
mod tests {
    use hyper::Request;
    use hyper::header::ACCEPT;

    use super::Head;
    use crate::http::exchange::Streaming;

    #[track_caller]
    fn check(accept: &[&str], streaming: Streaming, accepts_json: bool) {
        let mut request = Request::builder();
        for line in accept {
            request = request.header(ACCEPT, *line);
        }
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let head = Head::of(&parts);
        assert_eq!((head.streaming(), head.accepts.json), (streaming, accepts_json), "{accept:?}");
    }

    #[test]
    fn accepted_answers_are_read_from_all_lines_and_wildcards() {
        check(&[], Streaming::Refused, false);
        check(&["application/json"], Streaming::Refused, true);
        check(&["application/json, text/event-stream"], Streaming::Accepted, true);
        check(&["application/json;q=0.9,TEXT/Event-Stream"], Streaming::Accepted, true);
        check(&["text/event-stream, application/json"], Streaming::Preferred, true);
        check(&["application/json", "text/event-stream"], Streaming::Accepted, true);
        check(&["*/*"], Streaming::Accepted, true);
        check(&["text/*"], Streaming::Accepted, false);
        check(&["text/html"], Streaming::Refused, false);
    }
}
