//! Arguments as models send them: lists that are missing, `null`, one name, or JSON in a string.

use mcp::json;

use crate::snapshot::Origin;

/// The names in a list, `what` it is called.
pub fn names(list: Option<&str>, what: &str) -> Result<Vec<String>, String> {
    let Some(list) = list.filter(|list| *list != "null") else { return Ok(Vec::new()) };
    if let Ok(names) = serde_json::from_str(list) {
        return Ok(names);
    }
    let Some(text) = json::string(list) else {
        return Err(format!("`{what}` must be a list of names (strings)"));
    };
    let text = text.trim();
    let within = serde_json::from_str::<Option<Vec<String>>>(text);
    Ok(match within {
        Ok(names) => names.unwrap_or_default(),
        Err(_) if text.is_empty() => Vec::new(),
        Err(_) => vec![text.to_owned()],
    })
}

/// Whether a name means everything that comes from there: `server:*`, or what models make of it, such as `ns_*`.
pub fn means_all_of(name: &str, origin: &Origin) -> bool {
    let Some(start) = name.strip_suffix('*') else { return false };
    let owner = start.trim_end_matches([':', '.', '_', '/', '-']);
    let is_joined = owner.len() < start.len() && !owner.is_empty();
    is_joined && (origin.upstream.as_str() == owner || origin.namespace.as_str() == owner)
}

#[cfg(test)]
mod tests {
    use super::names;

    #[track_caller]
    fn check(list: Option<&str>, expected: &[&str]) {
        assert_eq!(names(list, "tools_on").unwrap(), expected);
    }

    #[test]
    fn lists_are_taken_as_models_send_them() {
        check(None, &[]);
        check(Some("null"), &[]);
        check(Some("[]"), &[]);
        check(Some(r#"["a","b"]"#), &["a", "b"]);
        check(Some(r#""a""#), &["a"]);
        check(Some(r#""""#), &[]);
        check(Some(r#""[\"a\", \"b\"]""#), &["a", "b"]);
        check(Some(r#""null""#), &[]);
        for wrong in ["1", "{}", "[1]", "true"] {
            let words = names(Some(wrong), "tools_on").unwrap_err();
            assert_eq!(words, "`tools_on` must be a list of names (strings)");
        }
    }
}
