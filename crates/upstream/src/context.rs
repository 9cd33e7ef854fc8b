//! What a client says of itself when it connects, and the texts that this is filled into.
//!
//! The values are secret: a client sends its own keys so. They are never shown.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

/// Values by their keys; those within others by paths such as `user.name`.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Context(BTreeMap<Box<str>, Box<str>>);

impl Context {
    pub fn new(values: impl IntoIterator<Item = (Box<str>, Box<str>)>) -> Context {
        Context(values.into_iter().collect())
    }

    fn value(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(|value| &**value)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.write_str("Context(…)")
    }
}

/// A text that values of a context may be missing from. Neither is shown.
#[derive(Clone, PartialEq, Eq)]
pub struct Template(Vec<Part>);

#[derive(Clone, PartialEq, Eq)]
pub enum Part {
    Text(String),
    /// The value of a key, or what stands for it where there is none.
    Value {
        key: Box<str>,
        default: Box<str>,
    },
}

impl Template {
    pub fn new(parts: Vec<Part>) -> Template {
        Template(parts)
    }

    /// The text, with the values of a context in their places.
    pub fn fill(&self, context: &Context) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Value { key, default } => context.value(key).unwrap_or(default),
        });
        parts.collect()
    }

    /// Whether it is the same text for everybody.
    pub fn is_plain(&self) -> bool {
        self.0.iter().all(|part| matches!(part, Part::Text(_)))
    }

    /// Changes what is written between the values.
    pub fn for_each_text(&mut self, change: impl FnMut(&mut String)) {
        let texts = self.0.iter_mut().filter_map(|part| match part {
            Part::Text(text) => Some(text),
            Part::Value { .. } => None,
        });
        texts.for_each(change);
    }

    /// What is written, with the places of values told apart; for tests.
    pub fn written(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => Cow::Borrowed(text.as_str()),
            Part::Value { key, default } => Cow::Owned(format!("<{key}:{default}>")),
        });
        parts.collect()
    }
}

impl<T: Into<String>> From<T> for Template {
    fn from(text: T) -> Template {
        Template(vec![Part::Text(text.into())])
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Part, Template};

    #[test]
    fn values_are_filled_in_and_never_shown() {
        // TC-35
        let context = Context::new([("key".into(), "hush".into())]);
        let value = |key: &str| Part::Value { key: key.into(), default: "none".into() };
        let parts = vec![Part::Text("a=".into()), value("key"), Part::Text(";b=".into())];
        let template = Template::new([parts, vec![value("other")]].concat());
        assert_eq!(template.fill(&context), "a=hush;b=none");
        assert_eq!(template.fill(&Context::default()), "a=none;b=none");
        assert!(!template.is_plain() && Template::from("text").is_plain());
        assert_eq!(format!("{context:?}"), "Context(…)");
    }
}
