//! Texts of a server: with values put in, or with places for those that come later.

use catalog::session_context::SessionContext;
use mcp::text::shorten;
use upstream::template::Template;

use crate::expand::{SECRET_IS_SEEN, expand, template};
use crate::fault::Faults;
use crate::reader::Value;
use crate::{Environment, Surroundings};

/// What a text of a server may be made of.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    pub surroundings: &'a Surroundings<'a>,
    /// Whose secrets count.
    pub namespace: &'a str,
    pub context: Option<&'a SessionContext>,
    pub is_enabled: bool,
    pub is_per_client: bool,
}

/// A text that may have places for what clients send. TC-35
pub fn templated(
    value: &Value<'_>,
    text: &str,
    means: Means<'_>,
    faults: &mut Faults<'_>,
) -> Option<Template> {
    let Surroundings { environment, .. } = *means.surroundings;
    let (mut read, mut problems) = match template(text, environment, means.namespace) {
        Ok(read) => (read, Vec::new()),
        Err(problems) => (Template::default(), problems),
    };
    let mut has_nul = false;
    read.for_each_text(|text| has_nul |= text.contains('\0'));
    if has_nul {
        problems.push("holds a NUL, which no process can be given; remove it".into());
    }
    if means.is_enabled {
        problems.extend(read.values().filter_map(|(key, _)| means.refuse(key)));
    }
    for problem in &problems {
        value.report(problem, faults);
    }
    problems.is_empty().then_some(read)
}

/// An argument, which others can read while the program runs.
pub fn argument(
    value: &Value<'_>,
    text: &str,
    means: Means<'_>,
    faults: &mut Faults<'_>,
) -> Option<Template> {
    let read = templated(value, text, means, faults)?;
    if read.secrets().next().is_some() {
        value.report(SECRET_IS_SEEN, faults);
        return None;
    }
    Some(read)
}

impl Means<'_> {
    /// Why what a client sends under a key can't be used.
    fn refuse(&self, key: &str) -> Option<String> {
        let root = key.split('.').next().unwrap_or_default();
        let problem = match self.context {
            _ if !self.is_per_client => {
                "is for a server that each client has for itself; add `session = \"per-client\"`"
                    .to_owned()
            }
            None => {
                "clients may not send; add `[session_context]` with `enabled = true`".to_owned()
            }
            Some(rules) if !rules.allows(root) && !rules.defaults.contains_key(root) => {
                format!("clients may not send; add `{root}` to `allowed_keys`")
            }
            Some(_) => return None,
        };
        let key = shorten(key);
        Some(format!("uses `${{context.{key}}}`, which {problem}"))
    }
}

pub fn expanded(
    value: &Value<'_>,
    text: &str,
    environment: Environment<'_>,
    faults: &mut Faults<'_>,
) -> Option<String> {
    match expand(text, environment) {
        Ok(text) => without_nul(value, text, faults),
        Err(problems) => {
            for problem in problems {
                value.report(&problem, faults);
            }
            None
        }
    }
}

pub fn without_nul(value: &Value<'_>, text: String, faults: &mut Faults<'_>) -> Option<String> {
    if text.contains('\0') {
        value.report("holds a NUL, which no process can be given; remove it", faults);
        return None;
    }
    Some(text)
}
