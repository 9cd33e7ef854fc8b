//! `${VAR}` and `${VAR:-default}` in a text, and `${context.KEY}`, whose values only clients know.
//!
//! Problems name variables and never show the text around them, which may be secret.

use mcp::text::shorten;
use upstream::context::Part;

use crate::Environment;

/// Puts in the values of the variables, or says everything that prevents it.
pub fn expand(text: &str, environment: Environment<'_>) -> Result<String, Vec<String>> {
    let (mut expanded, mut problems) = (String::new(), Vec::new());
    for part in parts(text, environment, &mut problems) {
        match part {
            Part::Text(text) => expanded.push_str(&text),
            Part::Value { .. } => problems.push(
                "uses `${context.…}`, which is not available here; it is for `env`, `args` and \
                 `headers` of servers"
                    .into(),
            ),
        }
    }
    if problems.is_empty() { Ok(expanded) } else { Err(problems) }
}

/// The same where clients may have a word.
pub fn template(text: &str, environment: Environment<'_>) -> Result<Vec<Part>, Vec<String>> {
    let mut problems = Vec::new();
    let parts = parts(text, environment, &mut problems);
    if problems.is_empty() { Ok(parts) } else { Err(problems) }
}

/// The text with the values of variables, in parts that the values of clients stand between.
fn parts(text: &str, environment: Environment<'_>, problems: &mut Vec<String>) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            expanded.push_str(before);
            expanded.push_str("${");
            rest = after;
            continue;
        }
        expanded.push_str(before);
        let Some((inside, after)) = after.split_once('}') else {
            problems.push("has `${` without `}`; close it, or write `$${` for a plain `${`".into());
            rest = "";
            break;
        };
        match value_of(inside, environment) {
            Ok(Part::Text(value)) => expanded.push_str(&value),
            Ok(value) => {
                parts.push(Part::Text(std::mem::take(&mut expanded)));
                parts.push(value);
            }
            Err(problem) => problems.push(problem),
        }
        rest = after;
    }
    expanded.push_str(rest);
    parts.push(Part::Text(expanded));
    parts
}

/// What stands for `inside` between the braces.
fn value_of(inside: &str, environment: Environment<'_>) -> Result<Part, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    if name.starts_with("secret:") {
        return Err(
            "uses `${secret:…}`, which is not available here; use an environment variable, `${VAR}`"
                .into(),
        );
    }
    if let Some(key) = name.strip_prefix("context.") {
        return of_client(key, default);
    }
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_';
    if name.is_empty()
        || name.starts_with(|c: char| c.is_ascii_digit())
        || !name.chars().all(allowed)
    {
        return Err(
            "has `${…}` without the name of a variable; use letters, digits and `_` as in `${VAR}`, \
             or write `$${` for a plain `${`"
                .into(),
        );
    }
    if default.is_some_and(|default| default.contains("${")) {
        return Err(format!(
            "has `${{…}}` in the default of `{}`; write the default out",
            shorten(name)
        ));
    }
    // As in the shell, an empty value counts as none where there is a default.
    match (environment(name), default) {
        (Some(value), None) => Ok(Part::Text(value)),
        (Some(value), Some(_)) if !value.is_empty() => Ok(Part::Text(value)),
        (_, Some(default)) => Ok(Part::Text(default.to_owned())),
        (None, None) => {
            let name = shorten(name);
            Err(format!(
                "uses `${{{name}}}`, which is not set; set it, or write `${{{name}:-default}}`"
            ))
        }
    }
}

/// The place of a value that a client sends. What it does not send is empty.
fn of_client(key: &str, default: Option<&str>) -> Result<Part, String> {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_key = |part: &str| !part.is_empty() && part.chars().all(is_allowed);
    if !key.split('.').all(is_key) {
        return Err("has `${context.…}` without a key; use letters, digits, `_`, `-`, and `.` \
             between keys, as in `${context.user.name}`"
            .into());
    }
    let default = default.unwrap_or_default();
    if default.contains("${") {
        let key = shorten(key);
        return Err(format!("has `${{…}}` in the default of `context.{key}`; write it out"));
    }
    Ok(Part::Value { key: key.into(), default: default.into() })
}

#[cfg(test)]
mod tests {
    use upstream::context::Template;

    use super::{expand, template};

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let environment = |name: &str| match name {
            "USER" => Some("ada".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICKY" => Some("${USER}".to_owned()),
            _ => None,
        };
        let found = expand(text, &environment).unwrap_or_else(|problems| problems.join("\n"));
        assert_eq!(found, expected);
    }

    #[test]
    fn variables_give_their_values() {
        check("${USER}", "ada");
        check("/srv/${USER}/${USER}.txt", "/srv/ada/ada.txt");
        check("[${EMPTY}]", "[]");
    }

    #[test]
    fn default_stands_in_for_an_unset_or_empty_variable() {
        check("${NONE:-here}", "here");
        check("${EMPTY:-here}", "here");
        check("${USER:-here}", "ada");
        check("[${NONE:-}]", "[]");
        check("${NONE:-a:-b $x}", "a:-b $x");
    }

    #[test]
    fn only_braces_are_special() {
        check("$USER costs 5$ or $$, {USER}", "$USER costs 5$ or $$, {USER}");
        check("$${USER} is ${USER}", "${USER} is ada");
        check("$$${USER}", "$${USER}");
        check("$${${USER}}", "${ada}");
    }

    #[test]
    fn value_is_not_expanded_again() {
        check("${TRICKY}", "${USER}");
    }

    #[test]
    fn every_unset_variable_is_named() {
        check(
            "${A}-${B}",
            "uses `${A}`, which is not set; set it, or write `${A:-default}`\n\
             uses `${B}`, which is not set; set it, or write `${B:-default}`",
        );
    }

    #[test]
    fn values_of_clients_keep_their_places() {
        // TC-35
        let environment = |_: &str| Some("x".to_owned());
        let check = |text: &str, expected: &str| {
            let parts = template(text, &environment).unwrap_or_else(|problems| {
                vec![upstream::context::Part::Text(problems.join("\n"))]
            });
            assert_eq!(Template::new(parts).written(), expected);
        };
        check(
            "a ${context.key} ${VAR} ${context.user.name:-no one}",
            "a <key:> x <user.name:no one>",
        );
        check("$${context.key}", "${context.key}");
        let keyless = "has `${context.…}` without a key; use letters, digits, `_`, `-`, and `.` \
            between keys, as in `${context.user.name}`";
        check("${context.}", keyless);
        check("${context.a..b}", keyless);
        check("${context.a:-${B}", "has `${…}` in the default of `context.a`; write it out");
    }

    #[test]
    fn secrets_and_context_are_not_available() {
        check(
            "${secret:TOKEN}",
            "uses `${secret:…}`, which is not available here; \
             use an environment variable, `${VAR}`",
        );
        check(
            "${context.user}",
            "uses `${context.…}`, which is not available here; it is for `env`, `args` and \
             `headers` of servers",
        );
    }

    #[test]
    fn malformed_expansion_is_refused_without_being_shown() {
        let unclosed = "has `${` without `}`; close it, or write `$${` for a plain `${`";
        check("${USER", unclosed);
        check("pass${word", unclosed);
        let nameless = "has `${…}` without the name of a variable; use letters, digits and `_` \
                        as in `${VAR}`, or write `$${` for a plain `${`";
        for text in ["${}", "${:-a}", "${a b}", "${1a}", "${USER-x}"] {
            check(text, nameless);
        }
        check("${NONE:-${USER}}", "has `${…}` in the default of `NONE`; write the default out");
    }
}
