//! The names that a model may use: of namespaces, and of files of tools. HARDENING F05, F07

use config::dock::check_name;

use crate::error::Error;
use crate::limits::NAME_CHARS_MAX;

/// The name of a namespace: lowercase letters, digits and hyphens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamespaceName(Box<str>);

/// The name of a file of tools: letters, digits, `_` and `-`, then `.py`; nothing that is hidden or private.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileName(Box<str>);

impl NamespaceName {
    pub fn parse(text: &str) -> Result<NamespaceName, Error> {
        check_name(text).map_err(Error::NamespaceName)?;
        Ok(NamespaceName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FileName {
    pub fn parse(text: &str) -> Result<FileName, Error> {
        let wrong = |rule| Error::FileName { name: mcp::text::shorten(text), rule };
        let Some(stem) = text.strip_suffix(".py") else {
            return Err(wrong("its name must end in `.py`"));
        };
        if stem.starts_with(['.', '_']) {
            return Err(wrong("names that begin with `.` or `_` are not served"));
        }
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if stem.is_empty() || !stem.chars().all(is_allowed) {
            return Err(wrong("use letters, digits, `_` and `-`, without any folder"));
        }
        if text.len() > NAME_CHARS_MAX {
            return Err(wrong("its name is too long"));
        }
        Ok(FileName(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::{FileName, NamespaceName};

    #[test]
    fn names_are_plain_or_refused_with_the_rule() {
        for name in ["issues.py", "a.py", "my-tools_2.py"] {
            assert!(FileName::parse(name).is_ok(), "{name}");
        }
        for name in ["../x.py", "/x.py", "x.txt", ".x.py", "_x.py", "x", ".py", "a b.py", "x.py\0"]
        {
            assert!(FileName::parse(name).is_err(), "{name}");
        }
        let long = "a".repeat(65);
        for name in ["_system", "Big", "a.b", "", &long, "..", "a/b", "tools\0"] {
            assert!(NamespaceName::parse(name).is_err(), "{name}");
        }
        assert!(NamespaceName::parse("my-tools").is_ok());
    }
}
