//! The names of secrets: what they are called, and for whom they are.

use std::fmt;
use std::str::FromStr;

use crate::limits::{KEY_BYTES_MAX, SCOPE_BYTES_MAX};

/// Whom a secret is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Scope {
    Global,
    /// One namespace, where it counts for more than a global one of the same name.
    Namespace(Box<str>),
}

/// The name of a secret, which is that of an environment variable too.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Box<str>);

/// A secret: its name and whom it is for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name {
    pub scope: Scope,
    pub key: Key,
}

/// Why a text names no secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NameError {
    #[error("is no name of a secret; use capital letters, digits and `_`, a letter first")]
    Malformed,
    #[error("has over {KEY_BYTES_MAX} characters; shorten it")]
    TooLong,
    #[error("decides how programs are started, so it can't be a secret; use another name")]
    Reserved,
    #[error("is no scope; use `global`, or the name of a namespace")]
    Scope,
}

/// Variables by which whoever sets a secret would run programs of their own.
const RESERVED: [&str; 30] = [
    "BASH_ENV",
    "ENV",
    "GCONV_PATH",
    "GIT_ASKPASS",
    "GIT_EDITOR",
    "GIT_EXEC_PATH",
    "GIT_EXTERNAL_DIFF",
    "GIT_PAGER",
    "GIT_PROXY_COMMAND",
    "GIT_SEQUENCE_EDITOR",
    "GIT_SSH",
    "GIT_SSH_COMMAND",
    "GIT_TEMPLATE_DIR",
    "HOME",
    "IFS",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PERL5LIB",
    "PERL5OPT",
    "RUBYLIB",
    "RUBYOPT",
    "SECRETS_KEY",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
];
const RESERVED_PREFIXES: [&str; 6] =
    ["BASH_FUNC_", "DYLD_", "GIT_CONFIG", "LD_", "PYTHON", "SECRETS_KEY_"];

/// Whether a variable of this name says which programs run, in whatever letters.
pub fn decides_what_runs(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    RESERVED.contains(&name.as_str())
        || RESERVED_PREFIXES.iter().any(|start| name.starts_with(start))
}

impl FromStr for Key {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Key, NameError> {
        let allowed = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        if !text.starts_with(|c: char| c.is_ascii_uppercase()) || !text.chars().all(allowed) {
            return Err(NameError::Malformed);
        }
        if text.len() > KEY_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        if decides_what_runs(text) {
            return Err(NameError::Reserved);
        }
        Ok(Key(text.into()))
    }
}

impl Key {
    /// A name that is stored already: an older program may have been less strict.
    pub fn kept(text: &str) -> Result<Key, NameError> {
        if text.is_empty() || text.chars().any(char::is_control) {
            return Err(NameError::Malformed);
        }
        if text.len() > KEY_BYTES_MAX {
            return Err(NameError::TooLong);
        }
        Ok(Key(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Scope {
    type Err = NameError;

    fn from_str(text: &str) -> Result<Scope, NameError> {
        let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        match text {
            "global" => Ok(Scope::Global),
            "" => Err(NameError::Scope),
            _ if text.len() > SCOPE_BYTES_MAX || !text.chars().all(allowed) => {
                Err(NameError::Scope)
            }
            _ => Ok(Scope::Namespace(text.into())),
        }
    }
}

impl Scope {
    pub fn as_str(&self) -> &str {
        match self {
            Scope::Global => "global",
            Scope::Namespace(namespace) => namespace,
        }
    }

    /// The scope of a namespace; without one there are global secrets only.
    pub fn of_namespace(namespace: &str) -> Result<Scope, NameError> {
        if namespace.is_empty() { Ok(Scope::Global) } else { namespace.parse() }
    }
}

impl Name {
    pub fn global(key: Key) -> Name {
        Name { scope: Scope::Global, key }
    }

    /// How the vault calls it.
    pub(crate) fn path(&self) -> String {
        format!("{}/{}", self.scope.as_str(), self.key)
    }

    /// The same backwards.
    pub(crate) fn of_path(path: &str) -> Option<Name> {
        let (scope, key) = path.split_once('/')?;
        Some(Name { scope: scope.parse().ok()?, key: Key::kept(key).ok()? })
    }
}

impl fmt::Display for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::{Key, NameError, Scope};

    #[test]
    fn names_that_decide_how_programs_start_are_refused() {
        // K12
        for name in ["PATH", "LD_PRELOAD", "LD_AUDIT", "PYTHONPATH", "PYTHONSTARTUP", "BASH_ENV"] {
            assert_eq!(name.parse::<Key>(), Err(NameError::Reserved), "{name}");
        }
        for name in ["", "A=B", "a", "token", "1A", "_A", "A B", "A-B", "Ä", "A\n"] {
            assert_eq!(name.parse::<Key>(), Err(NameError::Malformed), "{name:?}");
        }
        assert_eq!("A".repeat(129).parse::<Key>(), Err(NameError::TooLong));
        for name in ["GITHUB_TOKEN", "A", "PATHS", "LDAP_PASSWORD", &"A".repeat(128)] {
            assert_eq!(name.parse::<Key>().unwrap().as_str(), name);
        }
    }

    #[test]
    fn scope_is_global_or_a_namespace() {
        assert_eq!("global".parse(), Ok(Scope::Global));
        assert_eq!("my-tools".parse(), Ok(Scope::Namespace("my-tools".into())));
        for text in ["", "a/b", "..", "a b", &"a".repeat(65)] {
            assert_eq!(text.parse::<Scope>(), Err(NameError::Scope), "{text:?}");
        }
    }
}
