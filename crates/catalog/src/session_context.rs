//! Session contexts: what clients may say when they connect, for servers of their own. TC-35
//!
//! What a client sends is never an error: what can't be used counts as not sent. TC-13

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use crate::schema::Schema;

/// Levels of a context.
const DEPTH_MAX: usize = 8;

/// What clients may say, and where.
#[derive(Clone)]
pub struct SessionContext {
    /// The parameter of the address.
    pub query: Option<Box<str>>,
    /// The header field, in small letters; the parameter counts where both are there.
    pub header: Option<Box<str>>,
    pub encoding: Encoding,
    /// The keys that may be there; all, if none are named.
    pub allowed: Option<BTreeSet<Box<str>>>,
    pub merge: Merge,
    /// What holds where a client says nothing else.
    pub defaults: Map<String, Value>,
    /// What a context must be like.
    pub schema: Option<Schema>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Encoding {
    #[default]
    Base64,
    Json,
}

/// What becomes of defaults beside what a client says.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Merge {
    /// A key of the client replaces that of the defaults.
    #[default]
    Shallow,
    /// Objects are merged key by key.
    Deep,
}

/// The defaults are shown by their keys only: they may be secret.
impl fmt::Debug for SessionContext {
    fn fmt(&self, formatter: &mut fmt::Formatter) -> fmt::Result {
        let keys: Vec<_> = self.defaults.keys().collect();
        formatter
            .debug_struct("SessionContext")
            .field("query", &self.query)
            .field("header", &self.header)
            .field("encoding", &self.encoding)
            .field("allowed", &self.allowed)
            .field("merge", &self.merge)
            .field("defaults", &keys)
            .finish_non_exhaustive()
    }
}

impl SessionContext {
    /// What a client says, with the defaults; `None` if that can't be used.
    pub fn read(&self, text: &str) -> Option<Map<String, Value>> {
        let Ok(Value::Object(said)) = serde_json::from_str(text) else { return None };
        let is_allowed = |key: &String| self.allows(key);
        if !said.keys().all(is_allowed) || !said.values().all(|value| is_flat(value, DEPTH_MAX)) {
            return None;
        }
        let mut merged = self.defaults.clone();
        merge(&mut merged, said, self.merge);
        let merged = Value::Object(merged);
        if self.schema.as_ref().is_some_and(|schema| schema.check(&merged).is_err()) {
            return None;
        }
        if let Value::Object(merged) = merged { Some(merged) } else { None }
    }

    /// Whether a client may name a key.
    pub fn allows(&self, key: &str) -> bool {
        self.allowed.as_ref().is_none_or(|allowed| allowed.contains(key))
    }

    /// The JSON Schema of what clients may say. TC-31
    pub fn document(&self) -> Value {
        let mut document = match self.schema.as_ref().map(Schema::written) {
            Some(Value::Object(written)) => written.clone(),
            _ => Map::new(),
        };
        let mut properties = match document.remove("properties") {
            Some(Value::Object(properties)) => properties,
            _ => Map::new(),
        };
        if let Some(allowed) = &self.allowed {
            properties.retain(|key, _| allowed.contains(&**key));
            for key in allowed {
                properties.entry(&**key).or_insert_with(|| json!({}));
            }
            document.insert("additionalProperties".into(), json!(false));
        }
        let encoding = match self.encoding {
            Encoding::Base64 => "JSON in base64",
            Encoding::Json => "JSON",
        };
        let places = [
            self.query.as_ref().map(|name| format!("the query parameter `{name}`")),
            self.header.as_ref().map(|name| format!("the header `{name}`")),
        ];
        let places: Vec<_> = places.into_iter().flatten().collect();
        let sent = format!(
            "What a client may say when it connects: {encoding}, in {}.",
            places.join(" or ")
        );
        document.entry("description").or_insert(Value::String(sent));
        document.insert("properties".into(), Value::Object(properties));
        framed(document)
    }
}

/// The schema where nothing can be said.
pub fn nothing() -> Value {
    let Value::Object(document) = json!({
        "description": "What a client may say when it connects. There is nothing to say.",
        "properties": {},
        "additionalProperties": false,
    }) else {
        return Value::Null;
    };
    framed(document)
}

/// A schema with what all of them have.
fn framed(mut document: Map<String, Value>) -> Value {
    let dialect = "https://json-schema.org/draft/2020-12/schema";
    for (key, value) in [
        ("$schema", json!(dialect)),
        ("title", json!("Toolman session configuration")),
        ("type", json!("object")),
        ("required", json!([])),
        ("x-mcp-version", json!("1.0")),
        ("x-query-style", json!("dot+bracket")),
    ] {
        document.entry(key).or_insert(value);
    }
    Value::Object(document)
}

/// Puts what is said over the defaults.
fn merge(defaults: &mut Map<String, Value>, said: Map<String, Value>, manner: Merge) {
    for (key, value) in said {
        match (defaults.get_mut(&key), value) {
            (Some(Value::Object(below)), Value::Object(value)) if manner == Merge::Deep => {
                merge(below, value, manner);
            }
            (_, value) => {
                defaults.insert(key, value);
            }
        }
    }
}

/// Whether a value has no more levels than so many, and nothing that no process can be given.
fn is_flat(value: &Value, levels: usize) -> bool {
    let is_clean = |text: &str| !text.contains('\0');
    match value {
        Value::String(text) => is_clean(text),
        Value::Array(values) => levels > 1 && values.iter().all(|value| is_flat(value, levels - 1)),
        Value::Object(values) => {
            let mut values = values.iter();
            levels > 1 && values.all(|(key, value)| is_clean(key) && is_flat(value, levels - 1))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
    }
}

/// The values of a context by their paths, as texts: `user.name`; whole objects and lists as JSON.
pub fn paths(context: &Map<String, Value>) -> Vec<(Box<str>, Box<str>)> {
    let mut paths = Vec::new();
    add_paths(context, "", &mut paths);
    paths
}

fn add_paths(values: &Map<String, Value>, prefix: &str, paths: &mut Vec<(Box<str>, Box<str>)>) {
    for (key, value) in values {
        let path = format!("{prefix}{key}");
        let text = match value {
            // As if it was not there.
            Value::Null => continue,
            Value::String(text) => text.clone(),
            Value::Object(values) => {
                add_paths(values, &format!("{path}."), paths);
                value.to_string()
            }
            Value::Array(_) | Value::Bool(_) | Value::Number(_) => value.to_string(),
        };
        paths.push((path.into(), text.into()));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Map, Value, json};

    use super::{Encoding, Merge, SessionContext, nothing, paths};
    use crate::schema::Schema;

    fn object(value: Value) -> Map<String, Value> {
        let Value::Object(object) = value else { panic!("{value} is no object") };
        object
    }

    fn rules(allowed: Option<&[&str]>, merge: Merge) -> SessionContext {
        SessionContext {
            query: Some("config".into()),
            header: None,
            encoding: Encoding::Base64,
            allowed: allowed.map(|keys| keys.iter().map(|key| (*key).into()).collect()),
            merge,
            defaults: object(json!({"user": {"name": "nobody", "mail": "m"}, "n": 1})),
            schema: None,
        }
    }

    #[track_caller]
    fn check(rules: &SessionContext, said: &str, expected: &Value) {
        assert_eq!(rules.read(said).map_or(Value::Null, Value::Object), *expected, "{said}");
    }

    #[test]
    fn what_is_said_is_put_over_the_defaults() {
        // TC-35
        let said = r#"{"user":{"name":"ada"}}"#;
        let shallow = json!({"user": {"name": "ada"}, "n": 1});
        check(&rules(None, Merge::Shallow), said, &shallow);
        let deep = json!({"user": {"name": "ada", "mail": "m"}, "n": 1});
        check(&rules(None, Merge::Deep), said, &deep);
        check(&rules(None, Merge::Deep), r#"{"user":7}"#, &json!({"user": 7, "n": 1}));
    }

    #[test]
    fn what_can_not_be_used_counts_as_not_said() {
        // TC-13
        let rules = rules(Some(&["user"]), Merge::Shallow);
        let deep = format!(r#"{{"user":{}1{}}}"#, "[".repeat(9), "]".repeat(9));
        let nul = r#"{"user":"a\u0000b"}"#;
        let unknown = r#"{"user":1,"admin":true}"#;
        for said in ["", "7", "[]", "null", "{", r#"{"n":2}"#, unknown, nul, &deep] {
            check(&rules, said, &Value::Null);
        }
        let schema = Schema::new(&json!({"properties": {"user": {"type": "string"}}})).unwrap();
        let rules = SessionContext { schema: Some(schema), ..rules };
        check(&rules, r#"{"user":7}"#, &Value::Null);
        check(&rules, r#"{"user":"ada"}"#, &json!({"user": "ada", "n": 1}));
    }

    #[test]
    fn values_have_paths() {
        let context = object(json!({"a": "x", "b": {"c": 1.5, "d": [true]}, "e": null}));
        let found: Vec<_> =
            paths(&context).iter().map(|(key, text)| format!("{key}={text}")).collect();
        let all = r#"a=x b.c=1.5 b.d=[true] b={"c":1.5,"d":[true]}"#;
        assert_eq!(found.join(" "), all);
    }

    #[test]
    fn schema_tells_what_may_be_said() {
        // TC-31
        let mut rules = rules(Some(&["user", "n"]), Merge::Shallow);
        let written = json!({
            "properties": {"n": {"type": "integer"}, "other": {}}, "required": ["n"],
        });
        rules.schema = Some(Schema::new(&written).unwrap());
        let document = rules.document();
        assert_eq!(document["properties"], json!({"n": {"type": "integer"}, "user": {}}));
        assert_eq!(document["additionalProperties"], false);
        assert_eq!((&document["type"], &document["required"]), (&json!("object"), &json!(["n"])));
        let sent = "What a client may say when it connects: JSON in base64, in the query parameter \
            `config`.";
        assert_eq!(document["description"], sent);
        for document in [document, nothing()] {
            assert_eq!(document["x-mcp-version"], "1.0");
            assert_eq!(document["x-query-style"], "dot+bracket");
        }
        assert_eq!(nothing()["properties"], json!({}));
    }
}
