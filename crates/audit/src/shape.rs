//! The shape of arguments: names of members and types of values, but no values.

use std::cell::Cell;

use mcp::json;
use mcp::text::first_chars;
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;

use crate::limits::{ELEMENTS_MAX, MEMBER_CHARS_MAX, SHAPE_DEPTH_MAX, SHAPE_NODES_MAX};

/// What is left out has this name.
const MORE: &str = "…";

/// The shape of a JSON text: an array shows each shape of its elements once.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape<'a> {
    /// Of this text, made out as it is written.
    Of(&'a str),
    /// As it was read.
    Read(Value),
}

impl Default for Shape<'_> {
    fn default() -> Self {
        Shape::Read(Value::Null)
    }
}

impl<'de> Deserialize<'de> for Shape<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Shape::Read)
    }
}

impl Serialize for Shape<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Shape::Read(value) => value.serialize(serializer),
            Shape::Of(text) => {
                let left = Cell::new(SHAPE_NODES_MAX);
                Part { text, depth: 0, left: &left }.serialize(serializer)
            }
        }
    }
}

/// A part of the text, so deep within it.
struct Part<'a> {
    text: &'a str,
    depth: usize,
    /// How many more are told.
    left: &'a Cell<usize>,
}

impl Serialize for Part<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_shallow = self.depth < SHAPE_DEPTH_MAX;
        let name = match self.text.as_bytes().first() {
            Some(b'{') if is_shallow => return self.serialize_object(serializer),
            Some(b'[') if is_shallow => return self.serialize_array(serializer),
            Some(b'{') => "object",
            Some(b'[') => "array",
            Some(b'"') => "string",
            Some(b't' | b'f') => "boolean",
            Some(b'n') => "null",
            _ => "number",
        };
        serializer.serialize_str(name)
    }
}

impl<'a> Part<'a> {
    fn within(&self, text: &'a str) -> Part<'a> {
        Part { text, depth: self.depth + 1, left: self.left }
    }

    /// Whether one more is told.
    fn goes_on(&self) -> bool {
        let rest = self.left.get().checked_sub(1);
        self.left.set(rest.unwrap_or_default());
        rest.is_some()
    }

    fn serialize_object<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown = serializer.serialize_map(None)?;
        let entries = json::entries(self.text).unwrap_or_default();
        let count = entries.len();
        for (index, (name, value)) in entries.into_iter().enumerate() {
            if !self.goes_on() {
                shown.serialize_entry(MORE, &(count - index))?;
                break;
            }
            shown.serialize_entry(first_chars(&name, MEMBER_CHARS_MAX), &self.within(value))?;
        }
        shown.end()
    }

    fn serialize_array<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shown: Vec<Value> = Vec::new();
        let elements = json::elements(self.text).unwrap_or_default();
        for element in elements.iter().take(ELEMENTS_MAX) {
            if !self.goes_on() {
                break;
            }
            let shape = serde_json::to_value(self.within(element)).unwrap_or_default();
            if !shown.contains(&shape) {
                shown.push(shape);
            }
        }
        shown.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::Shape;

    fn of(text: &str) -> Value {
        serde_json::to_value(Shape::Of(text)).unwrap()
    }

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
