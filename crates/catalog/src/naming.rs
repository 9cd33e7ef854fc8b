//! Names that fit: what the protocol, and the client, allow.
//!
//! What a name must not hold is replaced, what is too long is cut, and a hash of what it was comes behind. So two
//! different names never become the same one, however alike they look. A name that fits stays as it is.

use aws_lc_rs::digest::{SHA256, digest};
use mcp::items::Kind;
use mcp::names::{Namespace, NamespacedName, UriStyle};
use mcp::text::{hexadecimal, is_hidden};

use crate::profile::{Alphabet, Naming};

/// Digits of the hash behind a name that was changed.
const HASH_CHARS: usize = 8;
/// No name is cut shorter, whatever a client is said to take.
const LENGTH_MIN: usize = 16;
/// What stands for a name of which nothing is left.
const NAMELESS: &str = "unnamed";

/// Whether names are made to fit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NameStyle {
    #[default]
    Auto,
    /// Never, but for characters that nobody sees.
    AsIs,
}

/// Whether the namespace stands before the names of a server.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Prefix {
    #[default]
    Always,
    /// Unless the name begins with it already.
    Auto,
    Never,
}

/// Why an item is not called what its server calls it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Renamed {
    Empty,
    Characters,
    Length,
    /// The server has another item of this name.
    Duplicate,
}

impl Renamed {
    /// The reason in words, behind the name.
    pub fn reason(self) -> &'static str {
        match self {
            Renamed::Empty => "it has no name",
            Renamed::Characters => "its name holds characters that clients refuse",
            Renamed::Length => "its name is longer than clients allow",
            Renamed::Duplicate => "its server has another one of this name",
        }
    }
}

impl Prefix {
    /// The exposed name of a tool or prompt.
    pub fn expose(self, namespace: &Namespace, name: &str) -> NamespacedName {
        let is_left_out = match self {
            Prefix::Always => false,
            Prefix::Auto => begins_with(name, namespace.as_str()),
            Prefix::Never => true,
        };
        if is_left_out { Namespace::default().expose(name) } else { namespace.expose(name) }
    }

    /// The exposed URI of a resource. URIs begin with no namespace by themselves.
    pub fn expose_uri(self, namespace: &Namespace, uri: &str, style: UriStyle) -> NamespacedName {
        match self {
            Prefix::Always | Prefix::Auto => namespace.expose_uri(uri, style),
            Prefix::Never => Namespace::default().expose_uri(uri, style),
        }
    }
}

/// Whether a name begins with a namespace and goes on behind it, as `linear_list` does for `linear`.
fn begins_with(name: &str, namespace: &str) -> bool {
    let is_same = |(a, b): (u8, u8)| a.eq_ignore_ascii_case(&b) || a == b'-' && b == b'_';
    let (name, namespace) = (name.as_bytes(), namespace.as_bytes());
    let separator = name.get(namespace.len());
    !namespace.is_empty()
        && separator.is_some_and(|byte| b"_-./:".contains(byte))
        && name.len() > namespace.len() + 1
        && namespace.iter().copied().zip(name.iter().copied()).all(is_same)
}

impl Naming {
    /// What is allowed in the names of a kind. The protocol has rules for those of tools only.
    fn of(&self, kind: Kind) -> Naming {
        if kind == Kind::Tool { *self } else { Naming::AS_IS }
    }

    /// Why a name must be changed, if it must. URIs never are: another one would lead nowhere.
    pub fn misfit(&self, kind: Kind, name: &str) -> Option<Renamed> {
        let Naming { alphabet, length_max, .. } = self.of(kind);
        if matches!(kind, Kind::Resource | Kind::Template) {
            return None;
        }
        if name.is_empty() {
            return Some(Renamed::Empty);
        }
        if !name.chars().all(|c| alphabet.holds(c)) {
            return Some(Renamed::Characters);
        }
        let is_long = name.len() > length_max && name.chars().count() > length_max;
        is_long.then_some(Renamed::Length)
    }

    /// A name that fits instead of one that does not. Behind it comes a hash of the `identity`.
    pub fn fit(&self, kind: Kind, name: &str, identity: &str) -> NamespacedName {
        let Naming { alphabet, mut length_max, .. } = self.of(kind);
        if alphabet == Alphabet::Endpoint && length_max > Naming::ENDPOINT.length_max {
            // All programs that leave a little more room show the same name.
            length_max = Naming::ENDPOINT.length_max;
        }
        let stem_max = length_max.max(LENGTH_MIN) - HASH_CHARS - 1;
        let mut stem = String::new();
        for c in name.chars().take(stem_max * 2) {
            match c {
                c if alphabet.holds(c) => stem.push(c),
                _ if stem.ends_with('_') => {}
                _ => stem.push('_'),
            }
        }
        let stem: String = stem.chars().take(stem_max).collect();
        let stem = match stem.trim_end_matches('_') {
            "" => NAMELESS,
            stem => stem,
        };
        Namespace::default().expose(&suffixed(stem, identity))
    }
}

/// A name with the hash of an identity behind it, the same in every run.
pub fn suffixed(name: &str, identity: &str) -> String {
    let hash = hexadecimal(digest(&SHA256, identity.as_bytes()).as_ref());
    format!("{name}_{}", &hash[..HASH_CHARS])
}

impl Alphabet {
    fn holds(self, c: char) -> bool {
        match self {
            Alphabet::Any => !is_hidden(c),
            Alphabet::Protocol => c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'),
            Alphabet::Endpoint => c.is_ascii_alphanumeric() || matches!(c, '_' | '-'),
        }
    }
}

#[cfg(test)]
mod tests {
    use mcp::items::Kind;
    use mcp::names::Namespace;

    use super::Prefix;
    use crate::profile::Naming;

    #[track_caller]
    fn check(naming: Naming, name: &str, expected: &str) {
        let shown = match naming.misfit(Kind::Tool, name) {
            None => name.to_owned(),
            Some(_) => naming.fit(Kind::Tool, name, name).to_string(),
        };
        assert_eq!(shown, expected);
    }

    #[test]
    fn names_that_fit_stay() {
        check(Naming::PROTOCOL, "git_log", "git_log");
        check(Naming::PROTOCOL, "a.b-c_D9", "a.b-c_D9");
        check(Naming::PROTOCOL, &"x".repeat(128), &"x".repeat(128));
        check(Naming::ENDPOINT, &"x".repeat(50), &"x".repeat(50));
        check(Naming::AS_IS, "läuft mit /:", "läuft mit /:");
    }

    #[test]
    fn names_that_do_not_fit_end_in_a_hash_of_what_they_were() {
        // `printf 'läuft gut' | sha256sum`
        check(Naming::PROTOCOL, "läuft gut", "l_uft_gut_1459815a");
        check(Naming::PROTOCOL, "读取", "unnamed_534cb3fa");
        check(Naming::PROTOCOL, "", "unnamed_e3b0c442");
        check(Naming::ENDPOINT, "a.b", "a_b_2e7336dc");
        check(Naming::AS_IS, "a\u{202e}b", "a_b_1f7a9d5e");
        let long = "x".repeat(129);
        let cut = Naming::PROTOCOL.fit(Kind::Tool, &long, &long);
        assert!(cut.as_str().len() == 128 && cut.as_str().starts_with(&"x".repeat(119)));
        let cut = Naming::ENDPOINT.fit(Kind::Tool, &long, &long);
        assert_eq!(cut.as_str().len(), 50);
    }

    #[test]
    fn names_that_look_alike_stay_apart() {
        // The second `a` is of another alphabet, and between the third one's letters is what nobody sees.
        let shown = ["pay\u{e4}", "p\u{430}y\u{e4}", "pa\u{200b}y\u{e4}"]
            .map(|name| Naming::PROTOCOL.fit(Kind::Tool, name, name));
        assert!(shown[0] != shown[1] && shown[1] != shown[2] && shown[0] != shown[2]);
    }

    #[test]
    fn namespace_that_a_name_begins_with_can_be_left_out() {
        let expose = |prefix: Prefix, namespace: &str, name| {
            prefix.expose(&namespace.parse::<Namespace>().unwrap(), name).to_string()
        };
        let auto = |namespace, name| expose(Prefix::Auto, namespace, name);
        assert_eq!(auto("linear", "linear_list_issues"), "linear_list_issues");
        assert_eq!(auto("my-ns", "my_ns_list"), "my_ns_list");
        assert_eq!(auto("linear", "linearize"), "linear_linearize");
        assert_eq!(auto("linear", "linear_"), "linear_linear_");
        assert_eq!(auto("linear", "list"), "linear_list");
        assert_eq!(auto("", "list"), "list");
        assert_eq!(expose(Prefix::Always, "linear", "linear_list"), "linear_linear_list");
        assert_eq!(expose(Prefix::Never, "linear", "list"), "list");
    }
}
