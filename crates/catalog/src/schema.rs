//! JSON Schemas that the operator writes: read once, then asked about values.

pub mod sure;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

/// A schema, and what it was read from.
#[derive(Clone, Debug)]
pub struct Schema {
    written: Value,
    validator: Validator,
}

/// What is wrong with a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// Where, as a JSON pointer; empty for the whole.
    pub at: String,
    pub problem: String,
}

impl Schema {
    /// Reads a JSON Schema; references to other places are not followed.
    pub fn new(schema: &Value) -> Result<Schema, String> {
        let validator = jsonschema::options()
            // An engine that takes linear time, whatever the pattern.
            .with_pattern_options(PatternOptions::regex())
            .build(schema);
        let validator = validator.map_err(|error| error.to_string())?;
        Ok(Schema { written: schema.clone(), validator })
    }

    /// The schema as it was read.
    pub fn written(&self) -> &Value {
        &self.written
    }

    pub fn check(&self, value: &Value) -> Result<(), Mismatch> {
        self.validator.validate(value).map_err(|error| {
            let at = error.instance_path().to_string();
            Mismatch { at, problem: error.to_string() }
        })
    }
}
