//! Proving who asks. A `Caller` comes from here alone.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustix::rand::GetRandomFlags;

/// Who asks.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Caller {
    /// The name of the agent, where it is known.
    pub agent: Option<String>,
}

/// The token that a caller must show; kept as a hash.
#[derive(Clone)]
pub struct BearerToken {
    sha256: Vec<u8>,
}

impl BearerToken {
    pub fn new(token: &str) -> BearerToken {
        BearerToken { sha256: digest(&SHA256, token.as_bytes()).as_ref().to_vec() }
    }

    /// The caller that the value of an `Authorization` header proves, if it does.
    pub fn prove(&self, authorization: Option<&str>) -> Option<Caller> {
        let (scheme, token) = authorization?.split_once(' ')?;
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let shown = digest(&SHA256, token.as_bytes());
        is_same_secret(&self.sha256, shown.as_ref()).then(Caller::default)
    }
}

/// Whether two secrets are the same; how long that takes does not tell how much of them is.
pub fn is_same_secret(a: &[u8], b: &[u8]) -> bool {
    verify_slices_are_equal(a, b).is_ok()
}

/// The caller on stdio: whoever started us, under the name that was given.
pub fn local(agent: Option<String>) -> Caller {
    Caller { agent }
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
    use super::{BearerToken, unguessable};

    #[test]
    fn only_the_right_token_in_the_right_scheme_proves() {
        let token = BearerToken::new("s3cret");
        assert!(token.prove(Some("Bearer s3cret")).is_some());
        assert!(token.prove(Some("bearer s3cret")).is_some());
        for wrong in ["Bearer s3cre", "Bearer  s3cret", "Basic s3cret", "Bearer", "Bearer ", ""] {
            assert!(token.prove(Some(wrong)).is_none(), "{wrong:?}");
        }
        assert!(token.prove(None).is_none());
    }

    #[test]
    fn generated_texts_differ() {
        assert_ne!(unguessable(), unguessable());
        assert_eq!(unguessable().len(), 43);
    }
}
