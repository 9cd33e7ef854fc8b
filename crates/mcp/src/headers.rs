//! Header fields of the modern era that mirror parts of the body: encoding, and tool parameters.
//!
//! A tool's input schema may ask for arguments to be mirrored (`x-mcp-header`). Which requests
//! carry which fields is the transports' matter.

use std::collections::HashSet;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::json;
use crate::text::shorten;

/// What stands before the name that a schema gives to a field.
const PARAM_PREFIX: &str = "Mcp-Param-";
/// The annotation in a schema.
const ANNOTATION: &str = "x-mcp-header";
/// What surrounds a value that could not be sent as it is.
const SENTINEL: (&str, &str) = ("=?base64?", "?=");

/// The value of a header field for `value`: the same, unless it is not fit for a header.
pub fn encode(value: &str) -> String {
    if is_plain(value) {
        return value.to_owned();
    }
    format!("{}{}{}", SENTINEL.0, STANDARD.encode(value), SENTINEL.1)
}

/// Whether a value stands in a header field as it is.
pub fn is_plain(value: &str) -> bool {
    let is_visible = value.bytes().all(|b| matches!(b, b' '..=b'~'));
    let is_padded = value.starts_with(' ') || value.ends_with(' ');
    let looks_encoded = value.starts_with(SENTINEL.0) && value.ends_with(SENTINEL.1);
    is_visible && !is_padded && !looks_encoded
}

/// What a header field says; `None` if it holds what must not be in one or can't be decoded.
pub fn decode(field: &str) -> Option<String> {
    let encoded = field.strip_prefix(SENTINEL.0).and_then(|rest| rest.strip_suffix(SENTINEL.1));
    if let Some(encoded) = encoded {
        return String::from_utf8(STANDARD.decode(encoded).ok()?).ok();
    }
    field.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t')).then(|| field.to_owned())
}

/// The parameter that `Mcp-Name` repeats, if the requests of a method have one.
pub fn named_by(method: &str) -> Option<&'static str> {
    match method {
        "tools/call" | "prompts/get" => Some("name"),
        "resources/read" => Some("uri"),
        "tasks/get" | "tasks/update" | "tasks/cancel" => Some("taskId"),
        _ => None,
    }
}

/// An argument of a tool that is mirrored into a header field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamHeader {
    /// The whole name of the field: `Mcp-Param-Region`.
    pub name: String,
    /// The properties that lead to the argument, outermost first.
    pub path: Vec<String>,
}

/// The fields that an input schema asks for; the error says which annotation is not allowed.
pub fn param_headers(input_schema: &str) -> Result<Vec<ParamHeader>, String> {
    // Most schemas have none; an escape could hide one.
    if !input_schema.contains(ANNOTATION) && !input_schema.contains("\\u") {
        return Ok(Vec::new());
    }
    let schema: Value = serde_json::from_str(input_schema)
        .map_err(|error| format!("its `inputSchema` can't be read: {error}"))?;
    let mut found = Vec::new();
    walk(&schema, &mut Vec::new(), &mut found)?;
    let mut names = HashSet::new();
    for header in &found {
        if !names.insert(header.name.to_ascii_lowercase()) {
            let name = header.name.trim_start_matches(PARAM_PREFIX);
            return Err(format!("two `{ANNOTATION}` in its schema say `{}`", shorten(name)));
        }
    }
    Ok(found)
}

/// Collects the annotations of a schema that a chain of `properties` leads to.
fn walk(
    schema: &Value,
    path: &mut Vec<String>,
    found: &mut Vec<ParamHeader>,
) -> Result<(), String> {
    let Value::Object(schema) = schema else { return Ok(()) };
    if let Some(name) = schema.get(ANNOTATION) {
        found.push(annotated(schema, name, path)?);
    }
    for (keyword, below) in schema {
        match (keyword.as_str(), below) {
            ("properties", Value::Object(properties)) => {
                for (name, property) in properties {
                    path.push(name.clone());
                    walk(property, path, found)?;
                    path.pop();
                }
            }
            (ANNOTATION, _) => {}
            _ if is_annotated(keyword, below) => {
                return Err(format!(
                    "`{ANNOTATION}` stands below `{}` in its schema, where no argument is certain",
                    shorten(keyword)
                ));
            }
            _ => {}
        }
    }
    Ok(())
}

fn annotated(
    schema: &Map<String, Value>,
    name: &Value,
    path: &[String],
) -> Result<ParamHeader, String> {
    let at = shorten(&path.join("."));
    if path.is_empty() {
        return Err(format!("`{ANNOTATION}` stands at the top of its schema"));
    }
    let is_token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
    let name = match name.as_str() {
        Some(name) if !name.is_empty() && name.bytes().all(is_token) => name,
        _ => return Err(format!("`{ANNOTATION}` of its argument `{at}` is no name of a header")),
    };
    if !matches!(only_type(schema.get("type")), Some("integer" | "string" | "boolean")) {
        return Err(format!(
            "`{ANNOTATION}` of its argument `{at}` needs the type integer, string or boolean"
        ));
    }
    Ok(ParamHeader { name: format!("{PARAM_PREFIX}{name}"), path: path.to_vec() })
}

/// The one type that a schema allows besides null.
fn only_type(kind: Option<&Value>) -> Option<&str> {
    match kind? {
        Value::String(kind) => Some(kind),
        Value::Array(kinds) => {
            let mut kinds = kinds.iter().filter_map(Value::as_str).filter(|kind| *kind != "null");
            kinds.next().filter(|_| kinds.next().is_none())
        }
        _ => None,
    }
}

/// Whether an annotation stands anywhere below a keyword.
fn is_annotated(keyword: &str, below: &Value) -> bool {
    match (keyword, below) {
        // These hold values and not schemas.
        ("default" | "const" | "enum" | "examples", _) => false,
        // These hold schemas by names that are not keywords.
        (
            "properties" | "patternProperties" | "$defs" | "definitions" | "dependentSchemas",
            Value::Object(schemas),
        ) => schemas.values().any(|schema| is_annotated("", schema)),
        (_, Value::Object(schema)) => schema
            .iter()
            .any(|(keyword, below)| keyword == ANNOTATION || is_annotated(keyword, below)),
        (_, Value::Array(schemas)) => schemas.iter().any(|schema| is_annotated("", schema)),
        _ => false,
    }
}

/// The fields for a call with these arguments, each with its plain value; see [`encode`].
pub fn mirror(headers: &[ParamHeader], arguments: &str) -> Vec<(String, String)> {
    let mirrored = headers.iter().filter_map(|header| {
        let value = header.find(arguments)?;
        Some((header.name.clone(), plain(&value)?))
    });
    mirrored.collect()
}

impl ParamHeader {
    /// The argument that is mirrored, as it was written; `None` if it is absent or null.
    pub fn find(&self, arguments: &str) -> Option<String> {
        let mut value = arguments;
        for name in &self.path {
            let entries = json::entries(value).ok()?;
            value = entries.into_iter().rfind(|(key, _)| key == name)?.1;
        }
        (value != "null").then(|| value.to_owned())
    }
}

/// The text of a value, if it is one that can be mirrored.
fn plain(value: &str) -> Option<String> {
    match value.as_bytes().first()? {
        b'"' => Some(json::string(value)?.into_owned()),
        b'{' | b'[' => None,
        b't' | b'f' => Some(value.to_owned()),
        _ => Some(integer(value).map_or_else(|| value.to_owned(), |integer| integer.to_string())),
    }
}

/// The integer that a number is, however it is written: `42`, `42.0`, `4.2e1`.
fn integer(text: &str) -> Option<i128> {
    /// The numbers that a peer which computes with floats can tell apart.
    const EXACT_MAX: f64 = 9_007_199_254_740_991.0;
    if let Ok(integer) = text.parse() {
        return Some(integer);
    }
    let float: f64 = text.parse().ok()?;
    #[expect(clippy::cast_possible_truncation, reason = "checked to be a small integer")]
    (float.fract() == 0.0 && float.abs() <= EXACT_MAX).then_some(float as i128)
}

/// Whether a header field says the same as the value in the body; integers are compared as numbers.
pub fn matches(field: &str, body_value: &str) -> bool {
    let (Some(field), Some(body)) = (decode(field), plain(body_value)) else {
        return false;
    };
    let is_text = body_value.starts_with('"');
    field == body || !is_text && integer(&field).is_some_and(|field| integer(&body) == Some(field))
}

#[cfg(test)]
mod tests;
