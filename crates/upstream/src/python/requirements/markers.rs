//! Conditions of requirements, such as `python_version >= "3.10" and sys_platform == "linux"`.

/// What a condition may look at.
const VARIABLES: [&str; 12] = [
    "python_version",
    "python_full_version",
    "os_name",
    "sys_platform",
    "platform_release",
    "platform_system",
    "platform_version",
    "platform_machine",
    "platform_python_implementation",
    "implementation_name",
    "implementation_version",
    "extra",
];
const OPERATORS: [&str; 8] = ["===", "==", "~=", "!=", "<=", ">=", "<", ">"];
const DEPTH_MAX: usize = 20;

/// Whether a text is a condition.
pub fn hold(text: &str) -> bool {
    any(text, 0).is_some_and(|rest| rest.trim().is_empty())
}

/// Reads comparisons with `and` and `or` between them; what is left.
fn any(text: &str, depth: usize) -> Option<&str> {
    let mut rest = one(text, depth)?;
    while let Some(next) = word(rest, "and").or_else(|| word(rest, "or")) {
        rest = one(next, depth)?;
    }
    Some(rest)
}

/// Reads a comparison, or several in parentheses.
fn one(text: &str, depth: usize) -> Option<&str> {
    if let Some(inner) = text.trim_start().strip_prefix('(').filter(|_| depth < DEPTH_MAX) {
        return any(inner, depth + 1)?.trim_start().strip_prefix(')');
    }
    value(operator(value(text)?)?)
}

/// Reads a variable, or a text in quotes.
fn value(text: &str) -> Option<&str> {
    let text = text.trim_start();
    if let Some(quote) = text.chars().next().filter(|first| "'\"".contains(*first)) {
        return text[1..].split_once(quote).map(|(_, rest)| rest);
    }
    VARIABLES.iter().find_map(|variable| word(text, variable))
}

fn operator(text: &str) -> Option<&str> {
    let text = text.trim_start();
    let sign = || OPERATORS.iter().find_map(|operator| text.strip_prefix(operator));
    let inside = || word(text, "in").or_else(|| word(word(text, "not")?, "in"));
    sign().or_else(inside)
}

/// Reads a word that ends there.
fn word<'a>(text: &'a str, word: &str) -> Option<&'a str> {
    let rest = text.trim_start().strip_prefix(word)?;
    let goes_on = rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    (!goes_on).then_some(rest)
}
