//! Names that cannot be wrong: upstreams, namespaces, exposed names.

use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Longest name of an upstream or namespace.
pub const NAME_MAX: usize = 64;

/// Why a text is no name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("it is empty")]
    Empty,
    #[error("it has {0} characters; at most {NAME_MAX} are allowed")]
    TooLong(usize),
    #[error("`{}` is not allowed; use letters, digits, `_` and `-`", .0.escape_debug())]
    Character(char),
}

fn check_name(text: &str) -> Result<(), NameError> {
    let allowed = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if let Some(bad) = text.chars().find(|c| !allowed(c)) {
        return Err(NameError::Character(bad));
    }
    if text.len() > NAME_MAX {
        return Err(NameError::TooLong(text.len()));
    }
    Ok(())
}

/// The name of an upstream: letters, digits, `_` and `-`; never empty.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct UpstreamName(Arc<str>);

impl FromStr for UpstreamName {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check_name(text)?;
        if text.is_empty() {
            return Err(NameError::Empty);
        }
        Ok(UpstreamName(text.into()))
    }
}

impl UpstreamName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for UpstreamName {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// The prefix of an upstream's names: letters, digits, `_` and `-`; may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Namespace(Arc<str>);

impl FromStr for Namespace {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Self, NameError> {
        check_name(text)?;
        Ok(Namespace(text.into()))
    }
}

impl Namespace {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The exposed name of an item: namespace, `_`, name; the bare name where there is none.
    pub fn expose(&self, name: &str) -> NamespacedName {
        if self.0.is_empty() {
            return NamespacedName(name.into());
        }
        NamespacedName(format!("{}{name}", self.prefix(UriStyle::Underscore)).into())
    }

    /// The exposed URI of a resource.
    pub fn expose_uri(&self, uri: &str, style: UriStyle) -> NamespacedName {
        NamespacedName(format!("{}{uri}", self.prefix(style)).into())
    }

    /// What stands before an exposed URI.
    pub fn prefix(&self, style: UriStyle) -> String {
        match style {
            _ if self.0.is_empty() => String::new(),
            UriStyle::Underscore => format!("{}_", self.0),
            UriStyle::Rfc => {
                // A scheme starts with a letter and holds no `_` (RFC 3986).
                let scheme = self.0.replace('_', "-");
                let letter = scheme.starts_with(|c: char| c.is_ascii_alphabetic());
                format!("{}{scheme}+", if letter { "" } else { "ns" })
            }
        }
    }
}

impl UpstreamName {
    /// A spelling of a URI that is accepted whatever the namespace is.
    pub fn expose_uri(&self, uri: &str) -> NamespacedName {
        NamespacedName(format!("{self}_{uri}").into())
    }
}

/// How the namespace is joined to a resource's URI.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum UriStyle {
    /// `pjpd_projects://list`: not a legal scheme, but the same rule as for every other name.
    #[default]
    Underscore,
    /// `pjpd+projects://list`: for clients that check URIs.
    Rfc,
}

impl UriStyle {
    pub const ALL: [UriStyle; 2] = [UriStyle::Underscore, UriStyle::Rfc];
}

/// The name under which an item is exposed. Made once, only ever looked up, never taken apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct NamespacedName(Arc<str>);

impl NamespacedName {
    /// The name of an item in a toolset: toolset, `.`, name. TC-24
    pub fn in_toolset(toolset: &str, name: &str) -> NamespacedName {
        NamespacedName(format!("{toolset}.{name}").into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NamespacedName {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::{NameError, Namespace, UpstreamName, UriStyle};

    #[test]
    fn namespace_is_joined_with_an_underscore() {
        // TA-03, TA-04, TA-06
        let expose = |namespace: &str, name| {
            namespace.parse::<Namespace>().unwrap().expose(name).as_str().to_owned()
        };
        assert_eq!(expose("pjpd", "list_projects"), "pjpd_list_projects");
        assert_eq!(expose("pjpd", "projects://list"), "pjpd_projects://list");
        assert_eq!(expose("", "list_projects"), "list_projects");
    }

    #[test]
    fn rfc_style_makes_legal_schemes() {
        let rfc = |namespace: &str| {
            let namespace: Namespace = namespace.parse().unwrap();
            namespace.expose_uri("p://list", UriStyle::Rfc).as_str().to_owned()
        };
        assert_eq!(rfc("my_ns"), "my-ns+p://list");
        assert_eq!(rfc("7up"), "ns7up+p://list");
        assert_eq!(rfc(""), "p://list");
    }

    #[test]
    fn names_outside_of_the_rule_are_refused_with_it() {
        let refuse = |text: &str| text.parse::<UpstreamName>().unwrap_err();
        assert_eq!(refuse(""), NameError::Empty);
        assert_eq!(refuse("a/b"), NameError::Character('/'));
        assert_eq!(refuse(".."), NameError::Character('.'));
        assert_eq!(refuse("a b"), NameError::Character(' '));
        assert_eq!(refuse("a\0"), NameError::Character('\0'));
        assert_eq!(refuse(&"x".repeat(200)), NameError::TooLong(200));
    }
}
