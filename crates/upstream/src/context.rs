//! What a client says of itself when it connects; `template` has the texts that this is filled into.
//!
//! The values are secret: a client sends its own keys so. They are never shown.

use std::collections::BTreeMap;
use std::fmt;

/// Values by their keys; those within others by paths such as `user.name`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Context(BTreeMap<Box<str>, Box<str>>);

impl Context {
    pub fn new(values: impl IntoIterator<Item = (Box<str>, Box<str>)>) -> Context {
        Context(values.into_iter().collect())
    }

    pub(crate) fn value(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("Context(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::Context;

    #[test]
    fn values_are_never_shown() {
        // TC-35
        let context = Context::new([("key".into(), "hush".into())]);
        assert_eq!(format!("{context:?}"), "Context(…)");
    }
}
