//! Ref ids: what an item is known by, whatever it is called.

pub mod legacy;

use std::fmt;

use aws_lc_rs::digest::{SHA256, digest};
use mcp::json::{canonical, quote};
use mcp::names::UpstreamName;
use mcp::rpc::Raw;
use mcp::text::hexadecimal;

/// `sha256:` and the hash of an item's whole definition and its upstream's name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RefId(Box<str>);

impl RefId {
    /// The ref id of what an upstream has defined so.
    ///
    /// The hash is over canonical JSON, so that spaces and the order of members do not matter. A
    /// definition that has no canonical form counts as it was written.
    pub fn of(definition: &Raw, upstream: &UpstreamName) -> RefId {
        let definition = String::from_utf8_lossy(definition.as_bytes());
        let upstream = quote(upstream.as_str());
        let text = format!(r#"{{"definition":{definition},"upstream":{upstream}}}"#);
        let text = canonical::canonical(&text).unwrap_or(text);
        let hash = hexadecimal(digest(&SHA256, text.as_bytes()).as_ref());
        RefId(format!("sha256:{hash}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RefId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use mcp::rpc::Raw;

    use super::RefId;

    fn ref_id(definition: &'static str, upstream: &str) -> String {
        RefId::of(&Raw::trusted(definition), &upstream.parse().unwrap()).to_string()
    }

    #[test]
    fn hash_is_of_the_canonical_definition_and_the_upstream() {
        // `printf '{"definition":{"inputSchema":{},"name":"log"},"upstream":"git"}' | sha256sum`
        let expected = "sha256:bff8e9887f7aedd6dbc92da0cd9d7e3b2586cd958806b8accc16a0d4362ad59b";
        assert_eq!(ref_id(r#"{"name":"log","inputSchema":{}}"#, "git"), expected);
        assert_eq!(ref_id(r#"{ "inputSchema": {}, "name": "l\u006fg" }"#, "git"), expected);
    }

    #[test]
    fn any_change_gives_another_ref_id() {
        let plain = ref_id(r#"{"name":"log"}"#, "git");
        assert_ne!(plain, ref_id(r#"{"name":"log"}"#, "svn"));
        assert_ne!(plain, ref_id(r#"{"name":"log","description":"new"}"#, "git"));
        assert_ne!(plain, ref_id(r#"{"name":"log","x-vendor":1e400}"#, "git"));
    }
}
