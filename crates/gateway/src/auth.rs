//! Proving who asks. A `Caller` comes from here alone.

use std::net::IpAddr;
use std::sync::Arc;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ipnet::IpNet;
use rustix::rand::GetRandomFlags;

use crate::limits::NAME_BYTES_MAX;

/// Who asks.
#[derive(Clone, Debug, Default)]
pub struct Caller {
    pub identity: Arc<Identity>,
    /// Where it asks from; none on this machine's own pipes.
    pub address: Option<IpAddr>,
    pub claims: Claims,
}

impl Caller {
    /// Whether it has shown the operator's own token: one that proves no agent.
    pub fn is_operator(&self) -> bool {
        self.identity.agent.is_none()
    }
}

/// What a caller only says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims {
    /// Whether it has named itself as a client, believed or not.
    pub names_client: bool,
    /// The toolsets that it says it is granted.
    pub permissions: Option<Box<str>>,
}

/// Whom a caller has proven to be; what it chooses belongs to this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Identity {
    /// The name of the agent, where it is known.
    pub agent: Option<Box<str>>,
    /// The name of the client, where one was told that is believed.
    pub client: Option<Box<str>>,
}

/// What a request shows of its caller.
#[derive(Clone, Copy, Debug, Default)]
pub struct Credentials<'a> {
    pub authorization: Option<&'a str>,
    pub agent: Option<&'a str>,
    pub client: Option<&'a str>,
    pub permissions: Option<&'a str>,
    pub address: Option<IpAddr>,
}

/// What proves callers: tokens, and addresses whose word is believed.
#[derive(Clone, Default)]
pub struct Keys {
    tokens: Vec<Token>,
    trusted: Vec<IpNet>,
}

/// A token, kept as a hash.
#[derive(Clone)]
struct Token {
    sha256: [u8; 32],
    /// The agent that it proves; none, if its holder may be anybody.
    agent: Option<Box<str>>,
}

impl Keys {
    /// The one token that proves nothing but that it is known.
    pub fn new(token: &str) -> Keys {
        let mut keys = Keys::default();
        keys.add(sha256(token), None);
        keys
    }

    /// Adds the token with this hash, which proves an agent.
    pub fn add(&mut self, sha256: [u8; 32], agent: Option<&str>) {
        self.tokens.push(Token { sha256, agent: agent.map(Into::into) });
    }

    /// Believes what is said of agents and clients in requests from these addresses.
    pub fn trust(&mut self, networks: Vec<IpNet>) {
        self.trusted = networks;
    }

    /// The caller that a request proves, if it does. What is only claimed is left out.
    pub fn prove(&self, shown: Credentials<'_>) -> Option<Caller> {
        let (scheme, token) = shown.authorization?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let hash = sha256(token);
        let token = self.tokens.iter().find(|token| is_same_secret(&token.sha256, &hash))?;
        let address = shown.address.map(|address| address.to_canonical());
        let is_believed = address
            .is_some_and(|address| self.trusted.iter().any(|network| network.contains(&address)));
        let claimed =
            |name: Option<&str>| name.filter(|name| is_believed && is_name(name)).map(Into::into);
        let client: Option<Box<str>> = claimed(shown.client);
        let agent = token.agent.clone().or_else(|| claimed(shown.agent)).or_else(|| client.clone());
        let claims = Claims {
            names_client: shown.client.is_some_and(is_name),
            permissions: shown.permissions.map(Into::into),
        };
        Some(Caller { identity: Arc::new(Identity { agent, client }), address, claims })
    }
}

/// Whether a text can be the name of an agent or a client.
fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= NAME_BYTES_MAX
}

/// The hash under which a token is kept.
pub fn sha256(token: &str) -> [u8; 32] {
    let mut hash = [0; 32];
    hash.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    hash
}

/// Whether two secrets are the same; how long that takes does not tell how much of them is.
pub fn is_same_secret(a: &[u8], b: &[u8]) -> bool {
    verify_slices_are_equal(a, b).is_ok()
}

/// The caller on stdio: whoever started us, under the name that was given.
pub fn local(agent: Option<&str>) -> Caller {
    let identity = Identity { agent: agent.map(Into::into), client: agent.map(Into::into) };
    let claims = Claims { names_client: agent.is_some(), permissions: None };
    Caller { identity: Arc::new(identity), address: None, claims }
}

/// Text that nobody can guess, for tokens and session ids.
pub fn unguessable() -> String {
    let mut bytes = [0; 32];
    // Straight from the system: the library's generator takes 420 million instructions at its first
    // use. So few bytes come at once and whole.
    let filled = rustix::rand::getrandom(&mut bytes, GetRandomFlags::empty());
    assert_eq!(filled, Ok(bytes.len()), "the system has randomness");
    URL_SAFE_NO_PAD.encode(bytes)
}

#[cfg(test)]
mod tests {
    use super::{Credentials, Keys, sha256, unguessable};

    fn shown(authorization: &str) -> Credentials<'_> {
        Credentials { authorization: Some(authorization), ..Credentials::default() }
    }

    #[test]
    fn only_the_right_token_in_the_right_scheme_proves() {
        let keys = Keys::new("s3cret");
        assert!(keys.prove(shown("Bearer s3cret")).is_some());
        assert!(keys.prove(shown("bearer s3cret")).is_some());
        for wrong in ["Bearer s3cre", "Bearer  s3cret", "Basic s3cret", "Bearer", "Bearer ", ""] {
            assert!(keys.prove(shown(wrong)).is_none(), "{wrong:?}");
        }
        assert!(keys.prove(Credentials::default()).is_none());
    }

    #[test]
    fn token_or_trusted_address_proves_an_agent_and_a_claim_alone_does_not() {
        // TF-32
        let mut keys = Keys::new("s3cret");
        keys.add(sha256("ci-s3cret"), Some("ci"));
        keys.trust(vec!["10.0.0.0/8".parse().unwrap()]);
        let who = |authorization, agent, client, address: &str| {
            let address = Some(address.parse().unwrap());
            let shown = Credentials { agent, client, address, ..shown(authorization) };
            let identity = keys.prove(shown).unwrap().identity;
            [identity.agent.as_deref(), identity.client.as_deref()]
                .map(|name| name.unwrap_or("-").to_owned())
                .join(" ")
        };
        assert_eq!(who("Bearer ci-s3cret", None, None, "1.2.3.4"), "ci -");
        assert_eq!(who("Bearer ci-s3cret", Some("root"), None, "10.0.0.1"), "ci -");
        assert_eq!(who("Bearer s3cret", Some("dev"), Some("c1"), "1.2.3.4"), "- -");
        assert_eq!(who("Bearer s3cret", Some("dev"), Some("c1"), "10.0.0.1"), "dev c1");
        assert_eq!(who("Bearer s3cret", None, Some("c1"), "::ffff:10.0.0.1"), "c1 c1");
        assert_eq!(who("Bearer s3cret", Some(""), None, "10.0.0.1"), "- -");
    }

    #[test]
    fn generated_texts_differ() {
        assert_ne!(unguessable(), unguessable());
        assert_eq!(unguessable().len(), 43);
    }
}
