//! The definitions of the control tools.

use serde_json::{Value, json};

/// In the order in which they are listed.
pub const NAMES: [&str; 8] = [
    "list-available-tools",
    "build-toolset",
    "list-saved-toolsets",
    "equip-toolset",
    "unequip-toolset",
    "delete-toolset",
    "get-active-toolset",
    "add-tool-annotation",
];

/// What a client is told when it connects.
pub const INSTRUCTIONS: &str = "Toolman gathers the tools of several servers. Toolsets are named lists of \
    them: `list-saved-toolsets` shows those there are, `equip-toolset` shows only the tools of one, \
    `unequip-toolset` shows all again. `build-toolset` makes a new one of tools from `list-available-tools`.";

/// All of them, with commas between.
pub fn definitions() -> String {
    let definitions: Vec<_> = NAMES.iter().map(|name| definition(name).to_string()).collect();
    definitions.join(",")
}

fn definition(name: &str) -> Value {
    let (title, description) = words(name);
    json!({"name": name, "title": title, "description": description, "inputSchema": input(name),
        "outputSchema": output(name), "annotations": annotations(name)})
}

fn words(name: &str) -> (&'static str, &'static str) {
    match name {
        "list-available-tools" => (
            "List available tools",
            "The tools of all servers, by server, with the two ids by which `build-toolset` takes them and an \
             estimate of what each costs in tokens. They come in pages: pass `nextCursor` as `cursor` for the \
             next one, or narrow the list with `query` and `server`.",
        ),
        "build-toolset" => (
            "Build a toolset",
            "Save a named list of tools from `list-available-tools`. Both ids of each tool are stored, so that \
             a tool that changes later is noticed. With `autoEquip` it is equipped at once.",
        ),
        "list-saved-toolsets" => (
            "List saved toolsets",
            "All saved toolsets with their tools, servers and cost, and which one is equipped.",
        ),
        "equip-toolset" => (
            "Equip a toolset",
            "Show only the tools of a saved toolset from now on. Tools that are not what they were when they \
             were chosen are withheld, and a warning says what changed.",
        ),
        "unequip-toolset" => ("Unequip the toolset", "Show all tools again."),
        "delete-toolset" => (
            "Delete a toolset",
            "Remove a saved toolset for good; it is unequipped if need be. Pass `confirm: true`.",
        ),
        "get-active-toolset" => (
            "Get the active toolset",
            "Which toolset is equipped, which tools it shows, which are not available, and why.",
        ),
        _ => (
            "Annotate a tool",
            "Add notes to a tool of the equipped toolset; they are shown behind its description.",
        ),
    }
}

fn input(name: &str) -> Value {
    let tool = json!({"type": "object", "properties": {
        "namespacedName": {"type": "string", "description": "Server, `.`, tool; for example `git.status`"},
        "refId": {"type": "string", "description": "The hash of the tool's definition"}},
        "anyOf": [{"required": ["namespacedName"]}, {"required": ["refId"]}],
        "additionalProperties": false});
    let toolset = json!({"type": "string", "pattern": "^[a-z0-9-]+$", "minLength": 2, "maxLength": 50,
        "description": "Lowercase letters, digits and hyphens"});
    let (properties, required) = match name {
        "list-available-tools" => (
            json!({"query": {"type": "string", "description": "Words in the name or the description"},
                "server": {"type": "string", "description": "Only tools of this server"},
                "limit": {"type": "integer", "minimum": 1, "maximum": 500, "default": 50},
                "cursor": {"type": "string", "description": "`nextCursor` of the page before"},
                "full": {"type": "boolean", "default": false,
                    "description": "Whole descriptions and all names"}}),
            json!([]),
        ),
        "build-toolset" => (
            json!({"name": toolset,
                "tools": {"type": "array", "items": tool, "minItems": 1, "maxItems": 100},
                "description": {"type": "string", "maxLength": 200},
                "autoEquip": {"type": "boolean", "default": false}}),
            json!(["name", "tools"]),
        ),
        "equip-toolset" => (json!({"name": toolset}), json!(["name"])),
        "delete-toolset" => (
            json!({"name": toolset, "confirm": {"type": "boolean", "description": "Must be true"}}),
            json!(["name", "confirm"]),
        ),
        "add-tool-annotation" => (
            json!({"toolRef": tool, "notes": {"type": "array", "minItems": 1, "maxItems": 20,
                "items": {"type": "object", "properties": {
                    "name": {"type": "string", "minLength": 1, "maxLength": 50},
                    "note": {"type": "string", "minLength": 1, "maxLength": 500}},
                    "required": ["name", "note"], "additionalProperties": false}}}),
            json!(["toolRef", "notes"]),
        ),
        _ => (json!({}), json!([])),
    };
    json!({"type": "object", "properties": properties, "required": required,
        "additionalProperties": false})
}

fn output(name: &str) -> Value {
    let text = || json!({"type": "string"});
    let texts = || json!({"type": "array", "items": {"type": "string"}});
    let objects = || json!({"type": "array", "items": {"type": "object"}});
    let (properties, required) = match name {
        "list-available-tools" => (
            json!({"summary": {"type": "object"}, "toolsByServer": objects(),
                "context": {"type": "object"}, "nextCursor": text()}),
            json!(["summary", "toolsByServer", "context"]),
        ),
        "list-saved-toolsets" => (
            json!({"success": {"type": "boolean"}, "toolsets": objects()}),
            json!(["success", "toolsets"]),
        ),
        "get-active-toolset" => (
            json!({"equipped": {"type": "boolean"}, "toolset": {"type": "object"},
                "exposedTools": {"type": "object"}, "unavailableTools": objects(),
                "warnings": texts(), "message": text()}),
            json!(["equipped", "exposedTools", "unavailableTools", "warnings"]),
        ),
        "build-toolset" => (
            json!({"success": {"type": "boolean"}, "toolsetName": text(), "message": text(),
                "autoEquipped": {"type": "boolean"}, "toolset": {"type": "object"},
                "warnings": texts()}),
            json!(["success", "toolsetName", "message", "autoEquipped", "toolset", "warnings"]),
        ),
        "equip-toolset" => (
            json!({"success": {"type": "boolean"}, "message": text(), "toolset": {"type": "object"},
                "warnings": texts()}),
            json!(["success", "message", "toolset", "warnings"]),
        ),
        _ => (
            json!({"success": {"type": "boolean"}, "message": text()}),
            json!(["success", "message"]),
        ),
    };
    json!({"type": "object", "properties": properties, "required": required})
}

fn annotations(name: &str) -> Value {
    let reads =
        matches!(name, "list-available-tools" | "list-saved-toolsets" | "get-active-toolset");
    json!({"readOnlyHint": reads, "destructiveHint": name == "delete-toolset",
        "idempotentHint": !matches!(name, "build-toolset"), "openWorldHint": false})
}
