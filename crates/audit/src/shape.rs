//! The shape of arguments: names of members and types of values, but no values.

use mcp::json;
use serde_json::{Map, Value};

use crate::limits::{ELEMENTS_MAX, MEMBER_CHARS_MAX, SHAPE_DEPTH_MAX, SHAPE_NODES_MAX};

/// What is left out has this name.
const MORE: &str = "…";

/// The shape of a JSON text. An array shows each shape of its elements once.
pub fn of(text: &str) -> Value {
    let mut left = SHAPE_NODES_MAX;
    shape(text, 0, &mut left)
}

fn shape(text: &str, depth: usize, left: &mut usize) -> Value {
    let name = match text.as_bytes().first() {
        Some(b'{') if depth < SHAPE_DEPTH_MAX => return object(text, depth, left),
        Some(b'[') if depth < SHAPE_DEPTH_MAX => return array(text, depth, left),
        Some(b'{') => "object",
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "boolean",
        Some(b'n') => "null",
        _ => "number",
    };
    name.into()
}

fn object(text: &str, depth: usize, left: &mut usize) -> Value {
    let mut shown = Map::new();
    let entries = json::entries(text).unwrap_or_default();
    let count = entries.len();
    for (index, (name, value)) in entries.into_iter().enumerate() {
        let Some(rest) = left.checked_sub(1) else {
            shown.insert(MORE.into(), (count - index).into());
            break;
        };
        *left = rest;
        let name: String = name.chars().take(MEMBER_CHARS_MAX).collect();
        shown.insert(name, shape(value, depth + 1, left));
    }
    Value::Object(shown)
}

fn array(text: &str, depth: usize, left: &mut usize) -> Value {
    let mut shown: Vec<Value> = Vec::new();
    let elements = json::elements(text).unwrap_or_default();
    for element in elements.iter().take(ELEMENTS_MAX) {
        let Some(rest) = left.checked_sub(1) else { break };
        *left = rest;
        let shape = shape(element, depth + 1, left);
        if !shown.contains(&shape) {
            shown.push(shape);
        }
    }
    Value::Array(shown)
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn shape_tells_names_and_types_and_no_values() {
        let arguments = r#"{"path":"/secret","lines":[1,2.5,null],"deep":{"on":true,"x":[[]]}}"#;
        let shape =
            r#"{"path":"string","lines":["number","null"],"deep":{"on":"boolean","x":[[]]}}"#;
        assert_eq!(of(arguments).to_string(), shape);
        assert_eq!(of("{}").to_string(), "{}");
        assert_eq!(of("7").to_string(), r#""number""#);
    }

    #[test]
    fn shape_is_bounded_in_depth_and_width() {
        let deep = "[".repeat(100) + &"]".repeat(100);
        assert_eq!(of(&deep).to_string(), r#"[[[["array"]]]]"#);
        let members: Vec<_> = (0..1000).map(|n| format!(r#""m{n}":{n}"#)).collect();
        let wide = of(&format!("{{{}}}", members.join(",")));
        assert_eq!(wide.as_object().unwrap().len(), 201);
        assert_eq!(wide["…"], 800);
        let long = format!(r#"{{"{}":1}}"#, "x".repeat(1000));
        assert_eq!(of(&long).to_string().len(), 100 + r#"{"":"number"}"#.len());
    }
}
