//! What a tool wants, as zod or as a literal JSON Schema.

use tree_sitter::Node;

use super::names::{Place, Project};
use crate::source::{children, field};
use crate::tools::{Parameter, tidy};

/// Methods of zod that begin a type.
const TYPES: [&str; 24] = [
    "string",
    "number",
    "boolean",
    "array",
    "enum",
    "nativeEnum",
    "object",
    "record",
    "union",
    "literal",
    "any",
    "unknown",
    "date",
    "bigint",
    "tuple",
    "int",
    "url",
    "email",
    "uuid",
    "null",
    "strictObject",
    "looseObject",
    "discriminatedUnion",
    "preprocess",
];

/// The parameters that a schema names.
pub fn parameters<'t>(project: &Project<'t>, schema: &Place<'t>) -> Vec<Parameter> {
    if !project.may_go_on(schema) {
        return Vec::new();
    }
    let schema = project.resolve(schema);
    match schema.node.kind() {
        "object" => match project.property(&schema, "properties") {
            Some(properties) if !is_type(project, &properties) => {
                json_schema(project, &schema, &properties)
            }
            _ => shape(project, &schema),
        },
        "call_expression" => {
            let Some((method, object)) = method(project, &schema) else {
                return argument(&schema)
                    .map(|inner| parameters(project, &inner))
                    .unwrap_or_default();
            };
            match (method, argument(&schema)) {
                ("object" | "strictObject" | "looseObject" | "interface", Some(inner)) => {
                    shape(project, &inner)
                }
                ("extend" | "merge" | "and" | "safeExtend", Some(more)) => {
                    let mut all = parameters(project, &object);
                    all.extend(parameters(project, &more));
                    all
                }
                ("omit" | "pick", Some(keys)) => {
                    let keys: Vec<String> =
                        project.pairs(&keys).into_iter().map(|(key, _)| key).collect();
                    let mut all = parameters(project, &object);
                    all.retain(|one| keys.contains(&one.name) == (method == "pick"));
                    all
                }
                ("partial", _) => {
                    let mut all = parameters(project, &object);
                    all.iter_mut().for_each(|one| one.required = false);
                    all
                }
                // A chain that goes on from a schema; or `z.toJSONSchema(x)`.
                (_, inner) => {
                    let own = parameters(project, &object);
                    let given = || inner.map(|inner| parameters(project, &inner));
                    if own.is_empty() { given().unwrap_or_default() } else { own }
                }
            }
        }
        _ => Vec::new(),
    }
}

/// Whether a value is a type of zod, so that the object around it is a shape and no configuration.
pub fn is_type<'t>(project: &Project<'t>, place: &Place<'t>) -> bool {
    let place = project.resolve(place);
    let mut node = place.node;
    while node.kind() == "call_expression" {
        let Some(function) = field(node, "function") else { return false };
        let Some(method) = field(function, "property") else { return false };
        if !project.may_go_on(&place) {
            return false;
        }
        if TYPES.contains(&project.word(&place, method)) {
            return true;
        }
        let Some(object) = field(function, "object") else { return false };
        node = object;
    }
    false
}

fn json_schema<'t>(
    project: &Project<'t>,
    schema: &Place<'t>,
    properties: &Place<'t>,
) -> Vec<Parameter> {
    let required = project.property(schema, "required").map(|list| project.elements(&list));
    let required: Vec<String> =
        required.unwrap_or_default().iter().filter_map(|name| project.text(name)).collect();
    let said = |place: &Place<'t>, key: &str| {
        project.property(place, key).and_then(|text| project.text(&text)).unwrap_or_default()
    };
    let pairs = project.pairs(properties).into_iter();
    pairs
        .map(|(name, value)| Parameter {
            kind: said(&value, "type"),
            description: tidy(&said(&value, "description")),
            required: required.contains(&name),
            name,
        })
        .collect()
}

/// `{ key: z.string().describe("…"), … }`
fn shape<'t>(project: &Project<'t>, place: &Place<'t>) -> Vec<Parameter> {
    let pairs = project.pairs(place).into_iter();
    pairs.map(|(name, value)| one(project, name, &value)).collect()
}

/// One type with what is chained to it.
fn one<'t>(project: &Project<'t>, name: String, value: &Place<'t>) -> Parameter {
    let mut found =
        Parameter { name, kind: String::new(), description: String::new(), required: true };
    let mut place = project.resolve(value);
    for _ in 0..32 {
        let Some((method, object)) = method(project, &place) else { break };
        let argument = argument(&place);
        match method {
            "optional" | "default" | "nullish" | "prefault" => found.required = false,
            "describe" if found.description.is_empty() => {
                let text = argument.and_then(|text| project.text(&text));
                found.description = text.map(|text| tidy(&text)).unwrap_or_default();
            }
            "preprocess" => {}
            method if TYPES.contains(&method) => method.clone_into(&mut found.kind),
            _ => {}
        }
        place = project.resolve(&object);
    }
    found
}

/// The method that a call is of, and of what.
fn method<'t>(project: &Project<'t>, call: &Place<'t>) -> Option<(&'t str, Place<'t>)> {
    if call.node.kind() != "call_expression" {
        return None;
    }
    let function = field(call.node, "function")?;
    let method = field(function, "property")?;
    Some((project.word(call, method), call.with(field(function, "object")?)))
}

fn argument<'t>(call: &Place<'t>) -> Option<Place<'t>> {
    let given: Vec<Node<'t>> = children(field(call.node, "arguments")?);
    given.first().map(|first| call.with(*first))
}
