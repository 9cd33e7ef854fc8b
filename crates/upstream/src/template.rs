//! Texts with values that are not known yet: secrets, which are put in when a server is started, and what a client
//! says of itself, which is put into a server of its own.

use std::borrow::Cow;
use std::fmt;

use secrets::error::Error;
use secrets::names::{Key, Name, NameError, Scope};
use secrets::store::Contents;

use crate::context::Context;
use crate::launch::{Command, Launch};
use crate::python::Worker;
use crate::remote::Remote;

/// A text that values may be missing from. What it says is never shown: all of it may be secret.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct Template(Vec<Part>);

#[derive(Clone, PartialEq, Eq, Hash)]
enum Part {
    Text(String),
    Secret(Name),
    /// What a client says under a key, or what stands for it where it says nothing.
    Value {
        key: Box<str>,
        default: Box<str>,
    },
}

impl Template {
    pub fn push_text(&mut self, text: &str) {
        if let Some(Part::Text(last)) = self.0.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.0.push(Part::Text(text.to_owned()));
        }
    }

    /// Names a secret, as it counts for a namespace.
    pub fn push_secret(&mut self, namespace: &str, key: &str) -> Result<(), NameError> {
        let key: Key = key.parse()?;
        self.0.push(Part::Secret(Name { scope: Scope::of_namespace(namespace)?, key }));
        Ok(())
    }

    /// Names what a client may say.
    pub fn push_value(&mut self, key: &str, default: &str) {
        self.0.push(Part::Value { key: key.into(), default: default.into() });
    }

    /// Changes what is written around the values.
    pub fn for_each_text(&mut self, mut change: impl FnMut(&mut String)) {
        for part in &mut self.0 {
            if let Part::Text(text) = part {
                change(text);
            }
        }
    }

    /// The text, if no value is missing from it.
    pub fn plain(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [Part::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub fn secrets(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().filter_map(|part| match part {
            Part::Secret(name) => Some(name),
            Part::Text(_) | Part::Value { .. } => None,
        })
    }

    /// Whether a part of it is another one for each client.
    pub fn is_of_clients(&self) -> bool {
        self.0.iter().any(|part| matches!(part, Part::Value { .. }))
    }

    /// The keys and defaults of what clients may say.
    pub fn values(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().filter_map(|part| match part {
            Part::Value { key, default } => Some((&**key, &**default)),
            Part::Text(_) | Part::Secret(_) => None,
        })
    }

    /// The same with the secrets put in.
    pub(crate) fn filled(&self, contents: &Contents) -> Result<Template, Error> {
        let mut filled = Template::default();
        for part in &self.0 {
            match part {
                Part::Text(text) => filled.push_text(text),
                Part::Secret(name) => filled.push_text(contents.value(name)?.expose()),
                Part::Value { key, default } => filled.push_value(key, default),
            }
        }
        Ok(filled)
    }

    /// The text for whom a context tells of; secrets were put in before.
    pub fn fill(&self, context: &Context) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => text.as_str(),
            Part::Secret(_) => "",
            Part::Value { key, default } => context.value(key).unwrap_or(default),
        });
        parts.collect()
    }

    /// What is written, with the places of values told apart; for tests.
    pub fn written(&self) -> String {
        let parts = self.0.iter().map(|part| match part {
            Part::Text(text) => Cow::Borrowed(text.as_str()),
            Part::Secret(name) => Cow::Owned(format!("<secret {}>", name.key.as_str())),
            Part::Value { key, default } => Cow::Owned(format!("<{key}:{default}>")),
        });
        parts.collect()
    }
}

impl<T: Into<String>> From<T> for Template {
    fn from(text: T) -> Template {
        let mut template = Template::default();
        template.push_text(&text.into());
        template
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        formatter.debug_set().entries(self.secrets().map(|name| name.key.as_str())).finish()
    }
}

impl Launch {
    /// The secrets that the server declares, each once.
    pub fn secrets(&self) -> Vec<Name> {
        let mut names: Vec<Name> = match self {
            Launch::Command(command) => {
                command.env.iter().flat_map(|(_, value)| value.secrets().cloned()).collect()
            }
            Launch::Url(remote) => remote.headers.secrets().cloned().collect(),
            Launch::Worker(worker) => {
                worker.env.iter().flat_map(|(_, value)| value.secrets().cloned()).collect()
            }
            Launch::BuiltIn(_) => Vec::new(),
        };
        names.sort();
        names.dedup();
        names
    }

    /// The same with the values of the secrets put in, or why that can't be, in words without a value.
    pub(crate) fn filled(&self, contents: &Contents) -> Result<Launch, String> {
        if let Launch::Worker(worker) = self {
            // Its other tools may need none; those that do find a default of the folder in their place, or nothing. TD-63,
            // TD-64
            let mut faults = worker.faults.clone();
            let mut env: Vec<(String, Template)> = Vec::new();
            for (variable, value) in &worker.env {
                let known = env.iter().position(|(name, _)| name == variable);
                match (value.filled(contents), known) {
                    (Ok(value), None) => env.push((variable.clone(), value)),
                    (Ok(value), Some(place)) => env[place].1 = value,
                    (Err(error), None) => faults.of_files.push(error.to_string()),
                    (Err(_), Some(_)) => {}
                }
            }
            return Ok(Launch::Worker(Box::new(Worker { env, faults, ..Worker::clone(worker) })));
        }
        let missing: Vec<String> = self
            .secrets()
            .iter()
            .filter_map(|name| contents.value(name).err())
            .map(|error| error.to_string())
            .collect();
        if !missing.is_empty() {
            return Err(missing.join("; "));
        }
        let worded = |error: Error| error.to_string();
        Ok(match self {
            Launch::Command(command) => {
                let value = |(name, value): &(String, Template)| {
                    Ok((name.clone(), value.filled(contents).map_err(worded)?))
                };
                let env: Result<_, String> = command.env.iter().map(value).collect();
                Launch::Command(Command { env: env?, ..command.clone() })
            }
            Launch::Url(remote) => {
                let headers = remote.headers.filled(contents)?;
                Launch::Url(Remote { headers, ..remote.clone() })
            }
            Launch::BuiltIn(_) | Launch::Worker(_) => self.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::Template;
    use crate::context::Context;

    #[test]
    fn values_of_clients_are_filled_in() {
        // TC-35
        let context = Context::new([("key".into(), "hush".into())]);
        let mut template = Template::from("a=");
        template.push_value("key", "none");
        template.push_text(";b=");
        template.push_value("other", "none");
        assert_eq!(template.fill(&context), "a=hush;b=none");
        assert_eq!(template.fill(&Context::default()), "a=none;b=none");
        assert!(template.is_of_clients() && !Template::from("text").is_of_clients());
    }

    #[test]
    fn template_shows_the_names_of_its_secrets_alone() {
        let mut template = Template::from("Bearer hush");
        template.push_secret("slack", "TOKEN").unwrap();
        template.push_text("!");
        assert_eq!(format!("{template:?}"), r#"{"TOKEN"}"#);
        assert_eq!(template.plain(), None);
        assert_eq!(Template::from("hush").plain(), Some("hush"));
        assert_eq!(Template::from("").plain(), Some(""));
    }
}
