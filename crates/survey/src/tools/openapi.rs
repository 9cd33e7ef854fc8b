//! Operations of an `OpenAPI` document, told of like tools.

#[cfg(test)]
mod tests;

use std::collections::HashMap;

use serde_json::{Map, Value};

use super::{Kept, Parameter, Tool, tidy};
use crate::limits::{PARAMETERS_MAX, TOOLS_MAX};
use crate::path::extension;

const METHODS: [&str; 7] = ["get", "put", "post", "delete", "patch", "head", "options"];

/// The document within a text, if it is one.
pub fn document(path: &str, text: &str) -> Option<Value> {
    let is_json = extension(path) == "json";
    let is_yaml = matches!(extension(path), "yaml" | "yml");
    let says_so = text.contains("openapi") || text.contains("swagger");
    let document: Value = match (says_so, is_json, is_yaml) {
        (true, true, _) => serde_json::from_str(text).ok()?,
        (true, _, true) => serde_saphyr::from_str(text).ok()?,
        _ => return None,
    };
    let has_version =
        document.get("openapi").or_else(|| document.get("swagger")).is_some_and(Value::is_string);
    (has_version && document.get("paths").is_some_and(Value::is_object)).then_some(document)
}

/// Where the document's servers are.
pub fn hosts(document: &Value) -> Vec<String> {
    let servers = document["servers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let urls = servers.iter().filter_map(|server| server["url"].as_str());
    let mut hosts: Vec<String> = urls.filter_map(crate::hosts::host).collect();
    hosts.extend(document["host"].as_str().map(str::to_owned));
    hosts
}

/// Every operation, under its id or a name made of its method and path.
pub fn tools(path: &str, text: &str, document: &Value) -> Vec<Tool> {
    let mut found = Kept::default();
    let paths = document["paths"].as_object();
    let lines = lines(text);
    for (route, item) in paths.into_iter().flatten() {
        let line = lines.get(route.as_str()).copied().unwrap_or(1);
        for method in METHODS {
            let Some(operation) = item.get(method).and_then(Value::as_object) else { continue };
            if found.tools.len() >= TOOLS_MAX {
                return found.tools;
            }
            let said = |key: &str| operation.get(key).and_then(Value::as_str);
            found.push(Tool {
                name: said("operationId").map_or_else(|| made_up(method, route), str::to_owned),
                file: path.to_owned(),
                line,
                description: tidy(
                    said("summary").or_else(|| said("description")).unwrap_or_default(),
                ),
                parameters: parameters(document, item, operation),
            });
        }
    }
    found.tools
}

/// Where each line's key stands: `"/pets": {` or `/pets:`.
fn lines(text: &str) -> HashMap<&str, usize> {
    let mut found = HashMap::new();
    for (line, at) in text.lines().zip(1..) {
        let key = line.trim().trim_end_matches(['{', ' ']).trim_end_matches(':');
        let key = key.trim_matches(['"', '\'']);
        if key.starts_with('/') {
            found.entry(key).or_insert(at);
        }
    }
    found
}

fn made_up(method: &str, route: &str) -> String {
    let words =
        route.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    [method].into_iter().chain(words).collect::<Vec<_>>().join("_")
}

fn parameters(document: &Value, item: &Value, operation: &Map<String, Value>) -> Vec<Parameter> {
    let shared = item.get("parameters");
    let own = operation.get("parameters");
    let all =
        shared.into_iter().chain(own).filter_map(Value::as_array).flatten().take(PARAMETERS_MAX);
    let mut found: Vec<Parameter> = all
        .map(|one| follow(document, one))
        .filter_map(|one| {
            let schema = one.get("schema").unwrap_or(one);
            Some(parameter(
                one["name"].as_str()?,
                schema,
                one["description"].as_str(),
                one["required"] == true,
            ))
        })
        .collect();
    let body = operation.get("requestBody").map(|body| follow(document, body));
    let kinds = body.and_then(|body| body["content"].as_object());
    let schema =
        kinds.and_then(|kinds| kinds.values().next()).map(|kind| follow(document, &kind["schema"]));
    if let Some(schema) = schema {
        let required = schema["required"].as_array().map(Vec::as_slice).unwrap_or_default();
        for (name, property) in
            schema["properties"].as_object().into_iter().flatten().take(PARAMETERS_MAX)
        {
            let is_required = required.iter().any(|one| one == name);
            found.push(parameter(
                name,
                follow(document, property),
                property["description"].as_str(),
                is_required,
            ));
        }
    }
    found
}

fn parameter(name: &str, schema: &Value, about: Option<&str>, required: bool) -> Parameter {
    let description = about.or_else(|| schema["description"].as_str()).unwrap_or_default();
    Parameter {
        name: name.to_owned(),
        kind: schema["type"].as_str().unwrap_or_default().to_owned(),
        description: tidy(description),
        required,
    }
}

/// A reference within the document, followed once or twice; one that leads elsewhere is not.
fn follow<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let mut value = value;
    for _ in 0..4 {
        let Some(pointer) = value["$ref"].as_str().and_then(|to| to.strip_prefix('#')) else {
            break;
        };
        match document.pointer(pointer) {
            Some(target) => value = target,
            None => break,
        }
    }
    value
}
