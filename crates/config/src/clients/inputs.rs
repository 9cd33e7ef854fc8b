//! `inputs`: what a client asks its person for. Nobody is asked here; variables and secrets stand in.

use std::borrow::Cow;

use catalog::error::quoted;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::{Node, value};
use crate::Surroundings;
use crate::fault::Faults;

/// What stands for each `${input:ID}`.
pub struct Inputs(Vec<(String, String)>);

impl Inputs {
    /// A variable of the input's name in capitals; without one its default, or, of a password, the secret of that name.
    pub fn of(
        table: &DeTable<'_>,
        surroundings: &Surroundings<'_>,
        faults: &mut Faults<'_>,
    ) -> Inputs {
        let mut inputs = Inputs(Vec::new());
        let Some((key, node)) = table.get_key_value("inputs") else { return inputs };
        let DeValue::Array(entries) = node.get_ref() else { return inputs };
        let mut names = Vec::new();
        for entry in entries {
            let DeValue::Table(entry) = entry.get_ref() else { continue };
            let text = |key: &str| value(entry, key).and_then(DeValue::as_str);
            let Some(id) = text("id") else { continue };
            let name = variable(id);
            let is_password = value(entry, "password").and_then(DeValue::as_bool) == Some(true);
            let stands = match ((surroundings.environment)(&name), text("default")) {
                (None, Some(default)) => default.replace("${", "$${"),
                (None, None) if is_password => format!("${{secret:{name}}}"),
                (Some(_), _) | (None, None) => format!("${{{name}}}"),
            };
            inputs.0.push((format!("${{input:{id}}}"), stands));
            names.push(name);
        }
        if !names.is_empty() {
            let words = format!(
                "`inputs` are not asked for; the variables {}, or secrets of these names, stand in",
                quoted(&names)
            );
            faults.warn(key.span().start, words);
        }
        inputs
    }

    /// The same value with what stands for inputs.
    pub fn fill<'t>(&self, node: &Node<'t>) -> Node<'t> {
        let filled = match node.get_ref() {
            DeValue::String(text) if text.contains("${input:") => {
                let mut text = text.to_string();
                for (input, stands) in &self.0 {
                    text = text.replace(input, stands);
                }
                DeValue::String(Cow::Owned(text))
            }
            DeValue::Array(array) => {
                let mut filled = DeArray::new();
                array.iter().for_each(|element| filled.push(self.fill(element)));
                DeValue::Array(filled)
            }
            DeValue::Table(table) => {
                let filled = table.iter().map(|(key, value)| (key.clone(), self.fill(value)));
                DeValue::Table(filled.collect())
            }
            other => other.clone(),
        };
        Spanned::new(node.span(), filled)
    }
}

/// `github-token` as `GITHUB_TOKEN`.
fn variable(id: &str) -> String {
    let letter = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    let name: String = id.chars().map(letter).collect();
    let starts_with_digit = name.starts_with(|c: char| c.is_ascii_digit());
    if starts_with_digit { format!("_{name}") } else { name }
}
