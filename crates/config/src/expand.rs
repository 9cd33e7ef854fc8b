//! `${VAR}` and `${VAR:-default}` in a text.
//!
//! Problems name variables and never show the text around them, which may be secret.

use mcp::text::shorten;

use crate::Environment;

/// Puts in the values of the variables, or says everything that prevents it.
pub fn expand(text: &str, environment: Environment<'_>) -> Result<String, Vec<String>> {
    let mut expanded = String::new();
    let mut problems = Vec::new();
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
            Ok(value) => expanded.push_str(&value),
            Err(problem) => problems.push(problem),
        }
        rest = after;
    }
    expanded.push_str(rest);
    if problems.is_empty() { Ok(expanded) } else { Err(problems) }
}

/// What stands for `inside` between the braces.
fn value_of(inside: &str, environment: Environment<'_>) -> Result<String, String> {
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    for (prefix, shown) in [("secret:", "${secret:…}"), ("context.", "${context.…}")] {
        if name.starts_with(prefix) {
            return Err(format!(
                "uses `{shown}`, which is not available here; use an environment variable, `${{VAR}}`"
            ));
        }
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

#[cfg(test)]
mod tests {
    use super::expand;

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
    fn secrets_and_context_are_not_available() {
        check(
            "${secret:TOKEN}",
            "uses `${secret:…}`, which is not available here; \
             use an environment variable, `${VAR}`",
        );
        check(
            "${context.user}",
            "uses `${context.…}`, which is not available here; \
             use an environment variable, `${VAR}`",
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
