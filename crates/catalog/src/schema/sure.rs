//! Schemas of arguments that tools bring with them: what is surely wrong, found at a bounded price.
//!
//! Whoever runs a tool has the last word on its arguments. So only those keywords are looked at that mean the same to
//! everybody; a schema that refers to itself or elsewhere, or that is large once its references are put in, is
//! not looked at, and neither is what would take too long.

use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use jsonschema::{JsonType, ValidationError, Validator};
use serde_json::{Map, Value};

use super::Mismatch;

/// Parts of a schema, with its references put in.
const PARTS_MAX: usize = 1_000;
const DEPTH_MAX: usize = 64;
/// Parts of the schema times bytes of the arguments.
const WORK_MAX: usize = 4 * 1024 * 1024;
/// What is wrong and told of.
const FAULTS_MAX: usize = 50;
/// Numbers above it are not told apart by everybody.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Characters of a value that are shown.
const SHOWN_MAX: usize = 60;

/// Keywords that hold no schemas and mean the same to everybody.
const PLAIN: [&str; 14] = [
    "type",
    "enum",
    "const",
    "required",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
];

/// What of a schema is sure.
#[derive(Debug)]
pub struct Sure {
    /// Without references.
    schema: Value,
    validator: Validator,
    parts: usize,
    /// Whether the tool takes some scalars for others, such as `"5"` for an integer.
    converts: bool,
}

impl Sure {
    /// Reads a schema; `None` if it is not worth it.
    pub fn of(schema: &Value) -> Option<Sure> {
        let mut left = PARTS_MAX;
        let sure = reduced(schema, schema, 0, &mut left)?;
        let validator = jsonschema::options().should_validate_formats(false).build(&sure).ok()?;
        Some(Sure { schema: sure, validator, parts: PARTS_MAX - left, converts: false })
    }

    /// The same for a tool that converts scalars: what it may convert is not surely wrong.
    #[must_use]
    pub fn converting(self) -> Sure {
        Sure { converts: true, ..self }
    }

    /// What is surely wrong with arguments, each with its place; nothing where that is not sure.
    pub fn faults(&self, arguments: &str) -> Vec<Mismatch> {
        if self.parts.saturating_mul(arguments.len()) > WORK_MAX {
            return Vec::new();
        }
        let Ok(value) = serde_json::from_str::<Value>(arguments) else { return Vec::new() };
        let mut faults = Vec::new();
        for error in self.validator.iter_errors(&value) {
            if self.word(&error, &mut faults).is_none() {
                return Vec::new();
            }
        }
        faults.truncate(FAULTS_MAX);
        faults
    }

    /// Puts an error in words; `None` if there are none that are sure.
    fn word(&self, error: &ValidationError<'_>, faults: &mut Vec<Mismatch>) -> Option<()> {
        let place = error.instance_path().as_str().to_owned();
        let value = error.instance();
        if self.converts && may_be_converted(error) {
            return None;
        }
        let is_exact = value.as_f64().is_none_or(|number| number.abs() < EXACT_MAX);
        let mut tell = |at: String, problem: String| faults.push(Mismatch { at, problem });
        match error.kind() {
            Kind::Required { property } => {
                tell(format!("{place}/{}", escaped(property.as_str()?)), "is missing".into());
            }
            Kind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    tell(format!("{place}/{}", escaped(name)), "is not known here".into());
                }
            }
            Kind::AnyOf { context } => return self.word_any(error, context, faults),
            kind @ (Kind::Minimum { limit }
            | Kind::Maximum { limit }
            | Kind::ExclusiveMinimum { limit }
            | Kind::ExclusiveMaximum { limit })
                if is_exact =>
            {
                let bound = match kind {
                    Kind::Minimum { .. } => "at least",
                    Kind::Maximum { .. } => "at most",
                    Kind::ExclusiveMinimum { .. } => "more than",
                    _ => "less than",
                };
                tell(place, format!("must be {bound} {limit}"));
            }
            Kind::MinLength { limit } => tell(place, size("at least", *limit, "characters")),
            Kind::MaxLength { limit } => tell(place, size("at most", *limit, "characters")),
            Kind::MinItems { limit } => tell(place, size("at least", *limit, "items")),
            Kind::MaxItems { limit } => tell(place, size("at most", *limit, "items")),
            Kind::MinProperties { limit } => tell(place, size("at least", *limit, "members")),
            Kind::MaxProperties { limit } => tell(place, size("at most", *limit, "members")),
            _ => {
                let expected = self.expected(error)?;
                tell(place, format!("expected {expected}, got {}", brief(value)));
            }
        }
        Some(())
    }

    /// What none of several schemas lets in: told of the one that was meant, if that can be said.
    fn word_any(
        &self,
        error: &ValidationError<'_>,
        options: &[Vec<ValidationError<'static>>],
        faults: &mut Vec<Mismatch>,
    ) -> Option<()> {
        let place = error.instance_path().as_str();
        let is_kind = |error: &ValidationError<'_>| {
            matches!(error.kind(), Kind::Type { .. }) && error.instance_path().as_str() == place
        };
        let is_null = |errors: &&Vec<ValidationError<'static>>| {
            errors.iter().any(|error| {
                matches!(error.kind(), Kind::Type { kind: TypeKind::Single(JsonType::Null) })
                    && is_kind(error)
            })
        };
        let others: Vec<_> = options.iter().filter(|errors| !is_null(errors)).collect();
        let alike: Vec<_> =
            others.iter().filter(|errors| !errors.iter().any(is_kind)).copied().collect();
        let meant = match (&others[..], &alike[..]) {
            ([one], _) => Some(*one),
            (_, [one]) if error.instance().is_object() || error.instance().is_array() => Some(*one),
            _ => None,
        };
        if let Some(errors) = meant {
            return errors.iter().try_for_each(|error| self.word(error, faults));
        }
        let mut expected = Vec::new();
        for errors in options {
            expected.push(self.expected(errors.first()?)?);
        }
        let problem =
            format!("expected {}, got {}", expected.join(" or "), brief(error.instance()));
        faults.push(Mismatch { at: place.to_owned(), problem });
        Some(())
    }

    /// What kind of value is wanted where there is another.
    fn expected(&self, error: &ValidationError<'_>) -> Option<String> {
        let within = error.schema_path().as_str().rsplit_once('/').map(|(within, _)| within)?;
        match error.kind() {
            Kind::Type { kind: TypeKind::Single(kind) } => {
                let written = self.schema.pointer(within).unwrap_or(&Value::Null);
                Some(match (kind, written["format"].as_str()) {
                    (JsonType::String, Some(format)) => format!("a string ({format})"),
                    (kind, _) => word_of(*kind).to_owned(),
                })
            }
            Kind::Enum { options } => {
                let options = options.as_array()?;
                let shown: Vec<_> = options.iter().take(12).map(ToString::to_string).collect();
                let rest = if options.len() > 12 { ", …" } else { "" };
                Some(format!("one of {}{rest}", shown.join(", ")))
            }
            _ => None,
        }
    }
}

/// Whether a value of the wrong type could be taken for one of the right type.
fn may_be_converted(error: &ValidationError<'_>) -> bool {
    match error.kind() {
        Kind::Type { kind: TypeKind::Single(kind) } => reads_like(error.instance(), *kind),
        Kind::AnyOf { context } => context.iter().flatten().any(may_be_converted),
        _ => false,
    }
}

/// Whether a scalar reads like one of another type.
fn reads_like(value: &Value, kind: JsonType) -> bool {
    match (kind, value) {
        (JsonType::Integer | JsonType::Number, Value::Bool(_)) => true,
        (JsonType::Integer | JsonType::Number, Value::String(text)) => {
            let first = text.trim_start().chars().next();
            first.is_some_and(|first| first.is_ascii_digit() || "+-.".contains(first))
        }
        (JsonType::Boolean, Value::Number(number)) => {
            number.as_f64().is_some_and(|number| number.abs() <= 1.0 && number.fract() == 0.0)
        }
        (JsonType::Boolean, Value::String(text)) => {
            let words = ["1", "on", "t", "true", "y", "yes", "0", "off", "f", "false", "n", "no"];
            words.iter().any(|word| word.eq_ignore_ascii_case(text))
        }
        _ => false,
    }
}

fn word_of(kind: JsonType) -> &'static str {
    match kind {
        JsonType::Array => "an array",
        JsonType::Boolean => "true or false",
        JsonType::Integer => "an integer",
        JsonType::Null => "null",
        JsonType::Number => "a number",
        JsonType::Object => "an object",
        JsonType::String => "a string",
    }
}

fn size(bound: &str, limit: u64, noun: &str) -> String {
    format!("must have {bound} {limit} {noun}")
}

/// A value as it is shown.
fn brief(value: &Value) -> String {
    match value {
        Value::Object(_) => "an object".to_owned(),
        Value::Array(_) => "an array".to_owned(),
        value => {
            let text = value.to_string();
            if text.chars().count() <= SHOWN_MAX {
                return text;
            }
            text.chars().take(SHOWN_MAX - 3).chain(['…']).collect()
        }
    }
}

/// A name as a step of a JSON pointer.
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A schema with what is sure of it, its references put in. Leaving out a keyword lets more in, never less.
fn reduced(schema: &Value, root: &Value, depth: usize, left: &mut usize) -> Option<Value> {
    *left = left.checked_sub(1)?;
    let written = match schema {
        Value::Object(written) if depth <= DEPTH_MAX => written,
        Value::Bool(_) => return Some(schema.clone()),
        _ => return None,
    };
    let mut sure = Map::new();
    for (key, value) in written {
        match key.as_str() {
            "enum" => {
                *left = left.checked_sub(value.as_array()?.len())?;
                sure.insert(key.clone(), value.clone());
            }
            key if PLAIN.contains(&key) || key == "format" && value.is_string() => {
                sure.insert(key.to_owned(), value.clone());
            }
            "properties" => {
                let part = |(name, part): (&String, &Value)| {
                    Some((name.clone(), reduced(part, root, depth + 1, left)?))
                };
                let parts = value.as_object()?.iter().map(part).collect::<Option<Map<_, _>>>()?;
                sure.insert(key.clone(), Value::Object(parts));
            }
            // Names that match a pattern are no others.
            "additionalProperties" if !written.contains_key("patternProperties") => {
                sure.insert(key.clone(), reduced(value, root, depth + 1, left)?);
            }
            "items" if value.is_object() => {
                sure.insert(key.clone(), reduced(value, root, depth + 1, left)?);
            }
            "prefixItems" | "anyOf" | "allOf" => {
                let parts = value.as_array()?.iter();
                let parts = parts.map(|part| reduced(part, root, depth + 1, left));
                sure.insert(key.clone(), parts.collect::<Option<Vec<_>>>()?.into());
            }
            // Words for people, and what is left to others.
            _ => {}
        }
    }
    let Some(reference) = written.get("$ref") else { return Some(Value::Object(sure)) };
    let target = root.pointer(reference.as_str()?.strip_prefix('#')?)?;
    let target = reduced(target, root, depth + 1, left)?;
    if sure.is_empty() {
        return Some(target);
    }
    Some(serde_json::json!({ "allOf": [target, sure] }))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use serde_json::{Value, json};

    use super::Sure;

    #[track_caller]
    fn check(parameter: &Value, value: &Value, expected: &[(&str, &str)]) {
        let schema = json!({"type": "object", "properties": {"p": parameter},
            "additionalProperties": false, "required": ["p"], "$defs": {"Point": {"type": "object",
            "properties": {"x": {"type": "integer"}}, "required": ["x"], "additionalProperties": false}}});
        let sure = Sure::of(&schema).expect("it can be used");
        let faults = sure.faults(&json!({ "p": value }).to_string());
        let faults: Vec<_> = faults.iter().map(|fault| (&*fault.at, &*fault.problem)).collect();
        assert_eq!(faults, expected, "{parameter} {value}");
    }

    #[test]
    fn what_a_tool_may_convert_is_not_surely_wrong() {
        let schema = json!({"properties": {"p": {"type": "integer"}, "q": {"anyOf": [{"type": "boolean"}, {"type": "null"}]}}});
        let sure = Sure::of(&schema).unwrap().converting();
        for fine in
            [r#"{"p":"5"}"#, r#"{"p":true}"#, r#"{"q":"Yes"}"#, r#"{"q":1}"#, r#"{"p":" -2 "}"#]
        {
            assert!(sure.faults(fine).is_empty(), "{fine}");
        }
        for wrong in [r#"{"p":"five"}"#, r#"{"p":null}"#, r#"{"q":2}"#, r#"{"q":[1]}"#] {
            assert_eq!(sure.faults(wrong).len(), 1, "{wrong}");
        }
    }

    #[test]
    fn what_does_not_fit_is_told_in_the_words_of_the_worker() {
        // TD-149
        let point = json!({"$ref": "#/$defs/Point"});
        let either = json!({"anyOf": [{"type": "integer"}, {"type": "boolean"}]});
        let nullable = json!({"anyOf": [point, {"type": "null"}]});
        for (parameter, value, at, problem) in [
            (json!({"type": "string"}), json!(5), "/p", "expected a string, got 5"),
            (json!({"type": "integer"}), json!("5"), "/p", "expected an integer, got \"5\""),
            (json!({"type": "integer"}), json!(1.5), "/p", "expected an integer, got 1.5"),
            (
                json!({"type": "array", "items": {"type": "integer"}}),
                json!([1, "2"]),
                "/p/1",
                "expected an integer, got \"2\"",
            ),
            (
                json!({"type": "string", "format": "date"}),
                json!(1),
                "/p",
                "expected a string (date), got 1",
            ),
            (point.clone(), json!({}), "/p/x", "is missing"),
            (point.clone(), json!({"x": 1, "a/b": 2}), "/p/a~1b", "is not known here"),
            (nullable, json!({"x": "1"}), "/p/x", "expected an integer, got \"1\""),
            (either, json!("x"), "/p", "expected an integer or true or false, got \"x\""),
            (json!({"enum": ["a", 1]}), json!(true), "/p", "expected one of \"a\", 1, got true"),
            (json!({"type": "integer", "minimum": 1}), json!(0), "/p", "must be at least 1"),
            (
                json!({"type": "string", "minLength": 2}),
                json!("a"),
                "/p",
                "must have at least 2 characters",
            ),
        ] {
            check(&parameter, &value, &[(at, problem)]);
        }
    }

    #[test]
    fn what_others_may_let_in_is_left_to_them() {
        // HARDENING §1.6
        for (parameter, value) in [
            (json!({"type": "integer"}), json!(5.0)),
            (json!({"type": "string", "pattern": "^a$"}), json!("b")),
            (json!({"type": "string", "format": "date"}), json!("soon")),
            (json!({"type": "number", "multipleOf": 0.1}), json!(0.3)),
            (json!({"type": "array", "uniqueItems": true}), json!([1, 1])),
            (
                json!({"patternProperties": {"^x": {}}, "additionalProperties": false}),
                json!({"x": 1}),
            ),
            (json!({"not": {"type": "string"}}), json!("x")),
            (json!({"oneOf": [{"type": "string"}, {"type": "string"}]}), json!("x")),
            (
                json!({"exclusiveMaximum": 9_007_199_254_740_993_u64}),
                json!(9_007_199_254_740_992_u64),
            ),
        ] {
            check(&parameter, &value, &[]);
        }
        let text = format!("{{\"p\": \"\\ud800{}\"}}", "x".repeat(5));
        let sure = Sure::of(&json!({"properties": {"p": {"type": "integer"}}})).unwrap();
        assert!(sure.faults(&text).is_empty());
        let long = json!({"p": "x".repeat(super::WORK_MAX)}).to_string();
        assert!(sure.faults(&long).is_empty());
    }

    #[test]
    fn schemas_that_grow_refer_elsewhere_or_to_themselves_are_not_used() {
        // HARDENING §1.6
        let mut doubling = json!({"$ref": "#/$defs/d0", "$defs": {"d30": {"type": "string"}}});
        for step in 0..30 {
            let next = json!({"$ref": format!("#/$defs/d{}", step + 1)});
            doubling["$defs"][format!("d{step}")] = json!({"anyOf": [next, next]});
        }
        let began = Instant::now();
        for schema in [
            doubling,
            json!({"$ref": "https://example.com/schema.json"}),
            json!({"$ref": "other.json#/x"}),
            json!({"$ref": "#/nowhere"}),
            json!({"$ref": "#"}),
            json!({"properties": {"child": {"$ref": "#"}}}),
            json!({"enum": vec![1; 2_000]}),
            json!({"type": "strange"}),
            json!(3),
        ] {
            assert!(Sure::of(&schema).is_none(), "{schema}");
        }
        assert!(began.elapsed() < Duration::from_secs(1));
    }
}
