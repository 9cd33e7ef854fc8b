//! The document at `/openapi.json`: the tools that a caller can call now.
//!
//! Written by hand: the schemas are JSON Schema already and stay the bytes that the upstream sent,
//! but for their references, which would lead nowhere in a document that they are a part of.

use std::borrow::Cow;
use std::collections::HashSet;

use bytes::Bytes;
use gateway::definitions::Tool;
use gateway::schema::Schema;
use mcp::json;
use serde_json::{Value, json};

use super::routes::Route;

const HEAD: &str = concat!(
    r#"{"openapi":"3.1.0","info":{"title":"Toolman","version":""#,
    env!("CARGO_PKG_VERSION"),
    r#"","description":"The tools that are switched on, each at a path of its own."},"#,
    r#""security":[{"bearer":[]}],"paths":{"#,
);

/// What all operations share; the schemas of the tools follow.
const COMPONENTS: &str = concat!(
    r#""securitySchemes":{"bearer":{"type":"http","scheme":"bearer"}},"#,
    r#""responses":{"Error":{"description":"It could not be done.","content":{"application/json":"#,
    r##"{"schema":{"$ref":"#/components/schemas/Error"}}}}},"##,
    r#""schemas":{"Error":{"type":"object","required":["error"],"properties":{"error":"#,
    r#"{"type":"object","required":["code","message"],"properties":{"code":{"type":"string"},"#,
    r#""message":{"type":"string"},"details":{"description":"What the upstream said."}}}}},"#,
    r#""Result":{"type":"object","properties":{"content":{"type":"array","items":"#,
    r#"{"type":"object"}},"structuredContent":{"type":"object"},"isError":{"type":"boolean","#,
    r#""description":"Whether the tool failed; what it says then is in the content."}}}"#,
);

/// The parameter that all operations of a namespace have.
const NAMESPACE: &str = r##"{"$ref":"#/components/parameters/Namespace"}"##;

/// One path for each tool, and those of the operator. Where the tools are those of one namespace that was named, every
/// operation names it as well: whoever knows the document alone must. TD-07
pub fn document(tools: &[Tool], routes: &[&Route], namespace: Option<&str>) -> Bytes {
    let mut paths = String::from(HEAD);
    let mut schemas = String::from("},");
    if let Some(namespace) = namespace {
        schemas += &format!(
            r#""components":{{"parameters":{{"Namespace":{}}},"#,
            namespace_header(namespace)
        );
    } else {
        schemas += r#""components":{"#;
    }
    schemas += COMPONENTS;
    let mut separator = "";
    let ids = operation_ids(tools);
    for (tool, id) in tools.iter().zip(&ids) {
        paths.push_str(separator);
        separator = ",";
        describe(tool, id, namespace.is_some(), &mut paths, &mut schemas);
    }
    for (number, path) in by_path(routes).into_iter().enumerate() {
        paths.push_str(separator);
        separator = ",";
        let place = Place { number: number + 1, taken: &ids, has_namespace: namespace.is_some() };
        describe_path(&path, &place, &mut paths, &mut schemas);
    }
    (paths + &schemas + "}}}").into()
}

/// The routes that share a path, in the order of their first ones.
fn by_path<'r>(routes: &[&'r Route]) -> Vec<Vec<&'r Route>> {
    let mut paths: Vec<Vec<&Route>> = Vec::new();
    for route in routes {
        match paths.iter_mut().find(|path| path[0].path == route.path) {
            Some(path) => path.push(route),
            None => paths.push(vec![route]),
        }
    }
    paths
}

/// The header field that says which namespace is meant.
fn namespace_header(namespace: &str) -> Value {
    let schema = json!({"type": "string", "enum": [namespace], "default": namespace});
    let description = "Whose tools these are.";
    json!({"name": "X-Namespace", "in": "header", "required": true, "description": description, "schema": schema})
}

/// Where a path of the operator's own stands.
struct Place<'a> {
    number: usize,
    /// Ids that it can't have.
    taken: &'a [String],
    has_namespace: bool,
}

/// Adds a path of the operator's own, with its methods. TC-32
fn describe_path(routes: &[&Route], place: &Place<'_>, paths: &mut String, schemas: &mut String) {
    let Place { number, taken, has_namespace } = place;
    let mut operations = Vec::new();
    for route in routes {
        let method = route.method.as_str().to_ascii_lowercase();
        let mut id = format!("route_{number}_{method}");
        while taken.contains(&id) {
            id.push('_');
        }
        let named: Vec<&str> = route.parameters().collect();
        let written = route.request.as_ref().map(Schema::written).cloned().unwrap_or_default();
        let in_path = named.iter().map(|name| parameter(name, "path", &written));
        let header = has_namespace.then(|| NAMESPACE.to_owned());
        let mut parameters: Vec<_> = header.into_iter().chain(in_path).collect();
        let mut body = String::new();
        if ["get", "delete"].contains(&&*method) {
            let properties = written["properties"].as_object().into_iter().flatten();
            let others = properties.filter(|(name, _)| !named.contains(&name.as_str()));
            parameters.extend(others.map(|(name, _)| parameter(name, "query", &written)));
        } else {
            schemas.push_str(&schema(&format!("{id}.input"), &within_body(written, &named)));
            body = format!(
                r##""requestBody":{{"content":{{"application/json":{{"schema":{{"$ref":"#/components/schemas/{id}.input"}}}}}}}},"##
            );
        }
        let answer = route.response.as_ref().map_or("{}".to_owned(), |response| {
            schemas.push_str(&schema(&format!("{id}.output"), &response.written().to_string()));
            format!(r##"{{"$ref":"#/components/schemas/{id}.output"}}"##)
        });
        let summary = json::quote(&route.tool);
        let description = json::quote(route.description.as_deref().unwrap_or_default());
        let parameters = parameters.join(",");
        operations.push(format!(
            r##""{method}":{{"operationId":"{id}","summary":{summary},"description":{description},"parameters":[{parameters}],{body}"responses":{{"200":{{"description":"What the tool says.","content":{{"application/json":{{"schema":{answer}}}}}}},"default":{{"$ref":"#/components/responses/Error"}}}}}}"##
        ));
    }
    let path = json::quote(&routes[0].path);
    paths.push_str(&format!("{path}:{{{}}}", operations.join(",")));
}

/// A parameter of a path or a query, as a schema describes it.
fn parameter(name: &str, place: &str, schema: &Value) -> String {
    let required = schema["required"].as_array().is_some_and(|all| all.contains(&name.into()));
    let is_required = place == "path" || required;
    let schema = match &schema["properties"][name] {
        Value::Null => json!({"type": "string"}),
        // A reference would lead nowhere here.
        property if property.to_string().contains("\"$ref\"") => json!({}),
        property => property.clone(),
    };
    json!({"name": name, "in": place, "required": is_required, "schema": schema}).to_string()
}

/// A schema without what the path says already.
fn within_body(mut schema: Value, named: &[&str]) -> String {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.retain(|name, _| !named.contains(&name.as_str()));
    }
    if let Some(required) = schema.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| !named.iter().any(|named| name == named));
    }
    if schema.is_null() { r#"{"type":"object"}"#.to_owned() } else { schema.to_string() }
}

/// Adds a tool's path and its schemas.
fn describe(tool: &Tool, id: &str, has_namespace: bool, paths: &mut String, schemas: &mut String) {
    let wanted = ["title", "description", "inputSchema", "outputSchema"];
    let [title, description, input, output] = tool.definition.members(wanted).unwrap_or_default();
    let is_text = |part: &&str| json::string(part).is_some();
    let name = json::quote(&tool.name);
    let title = title.filter(is_text).unwrap_or(&name);
    let description = description.filter(is_text).unwrap_or("\"\"");
    // No other character of a tool's name has a meaning in a path.
    let path = json::quote(&format!("/tools/{}", tool.name.replace('/', "%2F")));
    schemas.push_str(&schema(&format!("{id}.input"), input.unwrap_or("{}")));
    let result = match output {
        None => r##"{"$ref":"#/components/schemas/Result"}"##.to_owned(),
        Some(output) => {
            schemas.push_str(&schema(&format!("{id}.output"), output));
            format!(
                r##"{{"allOf":[{{"$ref":"#/components/schemas/Result"}},{{"properties":{{"structuredContent":{{"$ref":"#/components/schemas/{id}.output"}}}}}}]}}"##
            )
        }
    };
    // Without a body a tool is called without arguments.
    let required = input.and_then(|input| json::members(input.as_bytes(), ["required"]).ok()?[0]);
    let must_say = required.is_some_and(|names| json::elements(names).is_ok_and(|n| !n.is_empty()));
    let parameters =
        if has_namespace { format!(r#""parameters":[{NAMESPACE}],"#) } else { String::new() };
    paths.push_str(&format!(
        r##"{path}:{{"post":{{"operationId":"{id}","summary":{title},"description":{description},{parameters}"requestBody":{{"required":{must_say},"content":{{"application/json":{{"schema":{{"$ref":"#/components/schemas/{id}.input"}}}}}}}},"responses":{{"200":{{"description":"What the tool says.","content":{{"application/json":{{"schema":{result}}}}}}},"default":{{"$ref":"#/components/responses/Error"}}}}}}}}"##
    ));
}

/// The members of `schemas` that a schema makes: itself, and each of its definitions. Most generators follow a
/// reference to such a member, but none into one.
fn schema(key: &str, schema: &str) -> String {
    let place = format!("/components/schemas/{key}");
    let Some((rest, definitions)) = take_apart(schema) else {
        return format!(r#","{key}":{}"#, rebase(schema, &place, false));
    };
    let mut members = format!(r#","{key}":{}"#, rebase(&rest, &place, true));
    for (name, definition) in definitions {
        members += &format!(r#","{key}.{name}":{}"#, rebase(definition, &place, true));
    }
    members
}

/// Texts by their names.
type Named<'a> = Vec<(Cow<'a, str>, &'a str)>;

/// A schema without its definitions, and these by their names; `None` if it has none, or they must stay.
fn take_apart(schema: &str) -> Option<(String, Named<'_>)> {
    let members = json::entries(schema).ok()?;
    let (_, definitions) = members.iter().find(|(name, _)| name == "$defs")?;
    let definitions = json::entries(definitions).ok()?;
    // What a member of `schemas` may be called.
    let is_legal = |c: char| c.is_ascii_alphanumeric() || ".-_".contains(c);
    let is_name = |name: &str| !name.is_empty() && name.chars().all(is_legal);
    let has_address = members.iter().any(|(name, _)| name == "$id");
    if has_address || !definitions.iter().all(|(name, _)| is_name(name)) {
        return None;
    }
    let rest = members.iter().filter(|(name, _)| name != "$defs");
    let rest: Vec<_> = rest.map(|(name, value)| format!("{}:{value}", json::quote(name))).collect();
    Some((format!("{{{}}}", rest.join(",")), definitions))
}

/// A schema whose references to itself still lead into it when it stands at `place`, and its definitions beside it
/// if they are `apart`.
fn rebase(schema: &str, place: &str, apart: bool) -> String {
    const KEY: &str = "\"$ref\"";
    if matches!(json::members(schema.as_bytes(), ["$id"]), Ok([Some(_)])) {
        return schema.to_owned(); // It has an address of its own, so that they lead there.
    }
    let mut rebased = String::with_capacity(schema.len());
    let mut rest = schema;
    // Within a string the quotes would be escaped, so this finds whole strings only.
    while let Some(at) = rest.find(KEY) {
        let (before, after) = rest.split_at(at + KEY.len());
        rebased.push_str(before);
        rest = after;
        let value = after.trim_start().strip_prefix(':').map(str::trim_start);
        let reference = value.and_then(|value| value.strip_prefix("\"#"));
        if let Some(reference) = reference.filter(|rest| rest.starts_with(['/', '"'])) {
            rebased.push_str(":\"#");
            rebased.push_str(place);
            rest = reference;
            if let Some(definition) = reference.strip_prefix("/$defs/").filter(|_| apart) {
                rebased.push('.');
                rest = definition;
            }
        }
    }
    rebased + rest
}

/// An id for each tool that every generator can make a function of: its name, where that is one.
fn operation_ids(tools: &[Tool]) -> Vec<String> {
    let is_legal = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    let legal = |name: &str| name.chars().map(|c| if is_legal(c) { c } else { '_' }).collect();
    let names = tools.iter().map(|tool| tool.name.as_str());
    let mut taken: HashSet<String> =
        names.clone().filter(|name| name.chars().all(is_legal)).map(str::to_owned).collect();
    let id = |name: &str| {
        let mut id: String = legal(name);
        while id != name && !taken.insert(id.clone()) {
            id.push('_');
        }
        id
    };
    names.map(id).collect()
}

#[cfg(test)]
mod tests {
    use gateway::definitions::Tool;
    use mcp::rpc::Raw;

    use super::{operation_ids, rebase, schema};

    #[test]
    fn ids_are_legal_and_differ() {
        let tool = |name: &str| Tool { name: name.to_owned(), definition: Raw::trusted("{}") };
        let tools = ["a.b", "a/b", "a_b", "a_b_", "c-d"].map(tool);
        assert_eq!(operation_ids(&tools), ["a_b__", "a_b___", "a_b", "a_b_", "c-d"]);
    }

    #[test]
    fn definitions_stand_beside_their_schema() {
        let check = |text: &str, expected: &str| assert_eq!(schema("x", text), expected);
        check(
            r##"{"$ref":"#/$defs/A","$defs":{"A":{"items":{"$ref":"#/$defs/A"}},"B":{"$ref":"#"}}}"##,
            r##","x":{"$ref":"#/components/schemas/x.A"},"x.A":{"items":{"$ref":"#/components/schemas/x.A"}},"x.B":{"$ref":"#/components/schemas/x"}"##,
        );
        check(
            r##"{"$ref":"#/$defs/a b","$defs":{"a b":{}}}"##,
            r##","x":{"$ref":"#/components/schemas/x/$defs/a b","$defs":{"a b":{}}}"##,
        );
    }

    #[test]
    fn references_within_a_schema_follow_it() {
        let check =
            |schema: &str, expected: &str| assert_eq!(rebase(schema, "/x", false), expected);
        check(r##"{"$ref" : "#/$defs/a"}"##, r##"{"$ref":"#/x/$defs/a"}"##);
        check(r##"[{"$ref":"#"},{"$ref":"#"}]"##, r##"[{"$ref":"#/x"},{"$ref":"#/x"}]"##);
        for unchanged in [
            r##"{"$id":"urn:a","$ref":"#/$defs/a"}"##,
            r##"{"$ref":"#anchor"}"##,
            r#"{"$ref":"https://example.com/a#/b"}"#,
            r##"{"description":"\"$ref\":\"#/a\"","enum":["$ref"]}"##,
            r##"{"properties":{"$ref":{"const":"#/a"}}}"##,
        ] {
            check(unchanged, unchanged);
        }
    }
}
