//! The envelope of the modern era: what every request says of itself in `_meta`.

use std::borrow::Cow;

use crate::json::{self, Fault};
use crate::rpc::Raw;

/// The revision of the request.
pub const PROTOCOL_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
/// What the client can be asked for.
pub const CLIENT_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
/// Who the client is.
pub const CLIENT_INFO: &str = "io.modelcontextprotocol/clientInfo";
/// The least level of log messages that the client wants during the request.
pub const LOG_LEVEL: &str = "io.modelcontextprotocol/logLevel";
/// Who the server is, in results.
pub const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
/// The request that opened a stream, in its notifications.
pub const SUBSCRIPTION_ID: &str = "io.modelcontextprotocol/subscriptionId";
/// The extension for work that outlives its request.
pub const TASKS: &str = "io.modelcontextprotocol/tasks";

/// The members of `_meta` that are about the request itself.
pub const REQUEST_KEYS: [&str; 4] = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];

/// What a request says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// The revision as it was written; it may be one that nobody knows.
    pub version: String,
    pub capabilities: Raw,
    /// What the client calls itself.
    pub client: Option<Raw>,
    pub log_level: Option<Raw>,
}

/// The envelope that parameters claim to have; `None` if they name no revision.
pub type Claimed = Option<Result<Envelope, Fault>>;

impl Envelope {
    /// Reads the envelope; whatever lacks a required member is no modern request.
    pub fn parse(params: Option<&Raw>) -> Result<Envelope, Fault> {
        let params = params.ok_or(Fault::Missing("_meta"))?;
        let [meta] = params.members(["_meta"])?;
        Envelope::read(params, meta.ok_or(Fault::Missing("_meta"))?)
    }

    /// The envelope of parameters whose `_meta` is known.
    pub fn find(params: &Raw, meta: &str) -> Claimed {
        match Envelope::read(params, meta) {
            Ok(envelope) => Some(Ok(envelope)),
            Err(Fault::Missing(PROTOCOL_VERSION)) => None,
            Err(fault) => is_modern(Some(params)).then_some(Err(fault)),
        }
    }

    /// The same, with another member of `_meta`; a fault where something is wrong with any of them.
    pub(crate) fn find_beside<'a>(
        params: &Raw,
        meta: &'a str,
        other: &'static str,
    ) -> Result<(Option<&'a str>, Claimed), Fault> {
        let wanted = [other, PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
        let [other, version, rest @ ..] = json::hot_members(meta.as_bytes(), wanted)?;
        let envelope = version.map(|version| Envelope::new(params, Some(version), rest));
        Ok((other, envelope))
    }

    fn read(params: &Raw, meta: &str) -> Result<Envelope, Fault> {
        let wanted = [PROTOCOL_VERSION, CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL];
        let [version, rest @ ..] = json::members(meta.as_bytes(), wanted)?;
        Envelope::new(params, version, rest)
    }

    fn new(
        params: &Raw,
        version: Option<&str>,
        [capabilities, client, log_level]: [Option<&str>; 3],
    ) -> Result<Envelope, Fault> {
        let version = version.ok_or(Fault::Missing(PROTOCOL_VERSION))?;
        let expected = "a string";
        let version =
            json::string(version).ok_or(Fault::WrongType { member: PROTOCOL_VERSION, expected })?;
        let capabilities = capabilities.ok_or(Fault::Missing(CLIENT_CAPABILITIES))?;
        if !capabilities.starts_with('{') {
            let expected = "an object";
            return Err(Fault::WrongType { member: CLIENT_CAPABILITIES, expected });
        }
        Ok(Envelope {
            version: version.into_owned(),
            capabilities: params.part(capabilities),
            client: client.map(|client| params.part(client)),
            log_level: log_level.map(|level| params.part(level)),
        })
    }

    /// Whether the client supports an extension.
    pub fn extends_to(&self, extension: &'static str) -> bool {
        extends(&self.capabilities, extension)
    }
}

/// Whether capabilities, of a client or of a server, name an extension.
pub fn extends(capabilities: &Raw, extension: &'static str) -> bool {
    let Ok([Some(extensions)]) = capabilities.members(["extensions"]) else { return false };
    matches!(json::members(extensions.as_bytes(), [extension]), Ok([Some(_)]))
}

/// Whether these are the parameters of a modern request: they name their revision.
pub fn is_modern(params: Option<&Raw>) -> bool {
    version(params).is_some()
}

/// The revision that a request names.
pub fn version(params: Option<&Raw>) -> Option<Cow<'_, str>> {
    let [meta] = params?.members(["_meta"]).ok()?;
    let [version] = json::members(meta?.as_bytes(), [PROTOCOL_VERSION]).ok()?;
    version.map(|version| json::string(version).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::{Envelope, TASKS, is_modern};
    use crate::rpc::Raw;

    const WHOLE: &str = r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"io.modelcontextprotocol/tasks":{}}},"io.modelcontextprotocol/logLevel":"info"}}"#;

    #[test]
    fn envelope_is_read_from_meta() {
        let params = Raw::trusted(WHOLE);
        let envelope = Envelope::parse(Some(&params)).unwrap();
        assert_eq!(envelope.version, "2026-07-28");
        assert_eq!(envelope.log_level, Some(Raw::trusted(r#""info""#)));
        assert!(envelope.extends_to(TASKS));
        assert!(!envelope.extends_to("other/extension"));
    }

    #[test]
    fn what_is_required_is_named_when_it_is_missing() {
        let refuse = |text: &str| {
            Envelope::parse(Some(&Raw::trusted(text.to_owned()))).unwrap_err().to_string()
        };
        assert_eq!(refuse("{}"), "member `_meta` is missing");
        assert_eq!(
            refuse(r#"{"_meta":{}}"#),
            "member `io.modelcontextprotocol/protocolVersion` is missing"
        );
        assert_eq!(
            refuse(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":"x"}}"#),
            "member `io.modelcontextprotocol/clientCapabilities` is missing"
        );
        assert_eq!(
            refuse(r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#),
            "member `io.modelcontextprotocol/protocolVersion` must be a string"
        );
    }

    #[test]
    fn modern_requests_are_told_by_their_revision_in_meta() {
        let is = |text: &str| is_modern(Some(&Raw::trusted(text.to_owned())));
        assert!(is(WHOLE));
        assert!(is(&WHOLE.replace('/', "\\/")), "as some encoders write it");
        assert!(!is(r#"{"arguments":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}"#));
        assert!(!is("{}"));
        assert!(!is_modern(None));
    }
}
