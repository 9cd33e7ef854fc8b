//! `${VAR}` and `${VAR:-default}` in a text; `${secret:NAME}`, which is looked up later; and `${context.KEY}`, whose
//! values only clients know.
//!
//! Problems name variables and never show the text around them, which may be secret.

use mcp::text::shorten;
use upstream::template::Template;

use crate::Environment;

/// Why a secret can't be named in a place.
pub const SECRET_IS_SEEN: &str = "uses `${secret:…}`, which only `env` and `headers` may: others can \
    read the rest; put it there";

/// Puts in the values of the variables, or says everything that prevents it.
pub fn expand(text: &str, environment: Environment<'_>) -> Result<String, Vec<String>> {
    let mut expanded = String::new();
    walk(text, environment, |part| match part {
        Part::Text(text) => {
            expanded.push_str(text);
            Ok(())
        }
        Part::Secret(_) => Err(SECRET_IS_SEEN.into()),
        Part::Value { .. } => Err("uses `${context.…}`, which is not available here; it is for \
             `env`, `args` and `headers` of servers"
            .into()),
    })?;
    Ok(expanded)
}

/// The same where secrets may be named, as they count for a namespace, and clients may have a word.
pub fn template(
    text: &str,
    environment: Environment<'_>,
    namespace: &str,
) -> Result<Template, Vec<String>> {
    let mut template = Template::default();
    walk(text, environment, |part| {
        match part {
            Part::Text(text) => template.push_text(text),
            Part::Value { key, default } => template.push_value(key, default),
            Part::Secret(key) => template
                .push_secret(namespace, key)
                .map_err(|error| format!("names the secret `{}`, which {error}", shorten(key)))?,
        }
        Ok(())
    })?;
    Ok(template)
}

/// A part of an expanded text.
enum Part<'a> {
    Text(&'a str),
    /// The name of a secret.
    Secret(&'a str),
    /// What a client sends under a key, or what stands for it.
    Value {
        key: &'a str,
        default: &'a str,
    },
}

fn walk(
    text: &str,
    environment: Environment<'_>,
    mut take: impl FnMut(Part<'_>) -> Result<(), String>,
) -> Result<(), Vec<String>> {
    let mut problems = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        if let Some(before) = before.strip_suffix('$') {
            problems.extend(take(Part::Text(before)).err());
            problems.extend(take(Part::Text("${")).err());
            rest = after;
            continue;
        }
        problems.extend(take(Part::Text(before)).err());
        let Some((inside, after)) = after.split_once('}') else {
            problems.push("has `${` without `}`; close it, or write `$${` for a plain `${`".into());
            rest = "";
            break;
        };
        let taken = match (inside.strip_prefix("secret:"), inside.strip_prefix("context.")) {
            (Some(key), _) => take(Part::Secret(key)),
            (None, Some(inside)) => of_client(inside).and_then(&mut take),
            (None, None) => {
                value_of(inside, environment).and_then(|value| take(Part::Text(&value)))
            }
        };
        problems.extend(taken.err());
        rest = after;
    }
    problems.extend(take(Part::Text(rest)).err());
    if problems.is_empty() { Ok(()) } else { Err(problems) }
}

/// What stands for `inside` between the braces.
fn value_of(inside: &str, environment: Environment<'_>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    // As some clients write it.
    let name = name.strip_prefix("env:").unwrap_or(name);
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
        (Some(value), None) => Ok(value),
        (Some(value), Some(_)) if !value.is_empty() => Ok(value),
        (_, Some(default)) => Ok(default.to_owned()),
        (None, None) => {
            let name = shorten(name);
            Err(format!(
                "uses `${{{name}}}`, which is not set; set it, or write `${{{name}:-default}}`"
            ))
        }
    }
}

/// The place of a value that a client sends. What it does not send is empty.
fn of_client(inside: &str) -> Result<Part<'_>, String> {
    let (key, default) = inside.split_once(":-").unwrap_or((inside, ""));
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let is_key = |part: &str| !part.is_empty() && part.chars().all(is_allowed);
    if !key.split('.').all(is_key) {
        return Err("has `${context.…}` without a key; use letters, digits, `_`, `-`, and `.` \
             between keys, as in `${context.user.name}`"
            .into());
    }
    if default.contains("${") {
        let key = shorten(key);
        return Err(format!("has `${{…}}` in the default of `context.{key}`; write it out"));
    }
    Ok(Part::Value { key, default })
}

#[cfg(test)]
mod tests {
    use upstream::template::Template;

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
        check("${env:USER} ${env:NONE:-here}", "ada here");
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
            let read = template(text, &environment, "git");
            let read = read.unwrap_or_else(|problems| Template::from(problems.join("\n")));
            assert_eq!(read.written(), expected);
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
    fn secrets_and_context_are_not_available_everywhere() {
        check(
            "${secret:TOKEN}",
            "uses `${secret:…}`, which only `env` and `headers` may: others can read the rest; \
             put it there",
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

    #[test]
    fn secrets_are_named_and_not_looked_up() {
        let environment = |name: &str| (name == "USER").then(|| "ada".to_owned());
        let expand = |text| template(text, &environment, "slack");
        let template = expand("${USER}:${secret:TOKEN}$${x}").unwrap();
        let names: Vec<String> = template.secrets().map(|name| name.key.to_string()).collect();
        assert_eq!((names, template.plain()), (vec!["TOKEN".to_owned()], None));
        assert_eq!(expand("${USER}").unwrap().plain(), Some("ada"));
        let problem = |text| expand(text).unwrap_err().join("\n");
        assert_eq!(
            problem("${secret:LD_PRELOAD}"),
            "names the secret `LD_PRELOAD`, which decides how programs are started, so it can't be \
             a secret; use another name"
        );
        assert!(problem("${secret:}").contains("is no name of a secret"));
        assert!(problem("${secret:TOKEN:-x}").contains("is no name of a secret"));
    }
}
