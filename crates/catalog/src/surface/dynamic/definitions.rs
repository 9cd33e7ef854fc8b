//! The definitions of the meta-tools.

use serde_json::{Value, json};

use super::{DESCRIBE, DISABLE, ENABLE, LIST_TOOLS, LIST_TOOLSETS};

/// The definitions of these meta-tools, with commas between.
pub fn definitions(names: &[&str]) -> String {
    let definitions: Vec<_> = names.iter().map(|name| definition(name).to_string()).collect();
    definitions.join(",")
}

fn definition(name: &str) -> Value {
    let (title, description, output) = match name {
        LIST_TOOLS => (
            "List the tools that are on",
            "Names the tools that can be used now, also by toolset.",
            tools(),
        ),
        LIST_TOOLSETS => (
            "List the toolsets",
            "Tells of every toolset whether it is enabled, what it is for and which tools it has.",
            json!({
                "type": "object",
                "properties": {"toolsets": {"type": "array", "items": toolset()}},
                "required": ["toolsets"],
            }),
        ),
        ENABLE => (
            "Enable a toolset",
            "Lists the tools of a toolset, so that they can be used. See `list_toolsets` for names.",
            outcome(),
        ),
        DISABLE => (
            "Disable a toolset",
            "Takes the tools of a toolset off the list; what other toolsets have stays.",
            outcome(),
        ),
        _ => (
            "Describe a toolset",
            "Tells of one toolset whether it is enabled, what it is for and which tools it has.",
            described(),
        ),
    };
    let reads_only = !matches!(name, ENABLE | DISABLE);
    json!({
        "name": name,
        "title": title,
        "description": description,
        "inputSchema": input(name),
        "outputSchema": output,
        "annotations": {
            "readOnlyHint": reads_only,
            "destructiveHint": name == DISABLE,
            "idempotentHint": true,
            "openWorldHint": false,
        },
    })
}

fn input(name: &str) -> Value {
    if !matches!(name, ENABLE | DISABLE | DESCRIBE) {
        return json!({"type": "object", "properties": {}});
    }
    json!({
        "type": "object",
        "properties": {"name": {"type": "string", "description": "The name of the toolset"}},
        "required": ["name"],
    })
}

fn strings() -> Value {
    json!({"type": "array", "items": {"type": "string"}})
}

fn tools() -> Value {
    json!({
        "type": "object",
        "properties": {
            "tools": strings(),
            "toolsetToTools": {"type": "object", "additionalProperties": strings()},
        },
        "required": ["tools", "toolsetToTools"],
    })
}

fn outcome() -> Value {
    json!({
        "type": "object",
        "properties": {
            "success": {"type": "boolean"},
            "message": {"type": "string"},
            "code": {"type": "string"},
        },
        "required": ["success", "message"],
    })
}

fn toolset() -> Value {
    let text = || json!({"type": "string"});
    json!({
        "type": "object",
        "properties": {
            "key": text(),
            "active": {"type": "boolean"},
            "definition": {
                "type": "object",
                "properties": {
                    "name": text(),
                    "description": text(),
                    "modules": strings(),
                    "decisionCriteria": text(),
                },
                "required": ["name", "description", "modules"],
            },
            "tools": strings(),
        },
        "required": ["key", "active", "definition", "tools"],
    })
}

/// A toolset, or a failure: some clients hold failures against the schema, too.
fn described() -> Value {
    json!({"type": "object", "anyOf": [toolset(), outcome()]})
}
