//! Texts in which secrets are named. The values are put in when a server is started, and not before.

use std::fmt;

use secrets::error::Error;
use secrets::names::{Key, Name, NameError, Scope};
use secrets::store::Contents;

use crate::launch::{Command, Launch};
use crate::python::Worker;
use crate::remote::Remote;

/// A text that may name secrets. What it says is never shown: the rest may be secret too.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

#[derive(Clone, PartialEq, Eq)]
enum Piece {
    Text(String),
    Secret(Name),
}

impl Template {
    pub fn push_text(&mut self, text: &str) {
        if let Some(Piece::Text(last)) = self.0.last_mut() {
            last.push_str(text);
        } else if !text.is_empty() {
            self.0.push(Piece::Text(text.to_owned()));
        }
    }

    /// Names a secret, as it counts for a namespace.
    pub fn push_secret(&mut self, namespace: &str, key: &str) -> Result<(), NameError> {
        let key: Key = key.parse()?;
        self.0.push(Piece::Secret(Name { scope: Scope::of_namespace(namespace)?, key }));
        Ok(())
    }

    /// Changes what is written around the secrets.
    pub fn edit_text(&mut self, mut edit: impl FnMut(&mut String)) {
        for piece in &mut self.0 {
            if let Piece::Text(text) = piece {
                edit(text);
            }
        }
    }

    /// The text, if it names no secret.
    pub fn plain(&self) -> Option<&str> {
        match &self.0[..] {
            [] => Some(""),
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    pub fn secrets(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().filter_map(|piece| match piece {
            Piece::Secret(name) => Some(name),
            Piece::Text(_) => None,
        })
    }

    /// The same with the values put in.
    pub(crate) fn filled(&self, contents: &Contents) -> Result<Template, Error> {
        let mut filled = Template::default();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => filled.push_text(text),
                Piece::Secret(name) => filled.push_text(contents.value(name)?.expose()),
            }
        }
        Ok(filled)
    }
}

impl From<&str> for Template {
    fn from(text: &str) -> Template {
        let mut template = Template::default();
        template.push_text(text);
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
        let missing: Vec<String> = self
            .secrets()
            .iter()
            .filter_map(|name| contents.value(name).err())
            .map(|error| error.to_string())
            .collect();
        if let Launch::Worker(worker) = self {
            // Its other tools may need none; those that do find nothing in their place. TD-63, TD-64
            let mut faults = worker.faults.clone();
            faults.extend(missing);
            let filled = |(name, value): &(String, Template)| {
                Some((name.clone(), value.filled(contents).ok()?))
            };
            let env = worker.env.iter().filter_map(filled).collect();
            return Ok(Launch::Worker(Worker { env, faults, ..worker.clone() }));
        }
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
