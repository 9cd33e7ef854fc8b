//! Which definitions are served, and how they are renamed.

use super::{Definition, Inventory, Kind};
use crate::json;
use crate::rpc::Raw;

#[track_caller]
fn check(kind: Kind, text: &str, expected: &str) {
    let got = match Definition::parse(kind, Raw::trusted(text.to_owned())) {
        Ok(definition) => format!(
            "{} | {}",
            definition.description(),
            String::from_utf8(definition.renamed(&format!("ns_{}", definition.name())).to_vec())
                .unwrap()
        ),
        Err(reason) => format!("flawed: {reason}"),
    };
    assert_eq!(got, expected);
}

#[test]
fn renaming_leaves_every_other_byte_alone() {
    check(
        Kind::Tool,
        r#"{"x-vendor":1e400, "name":"a.b","description":"d","inputSchema":{"type":"object"},"z":null}"#,
        r#"d | {"x-vendor":1e400, "name":"ns_a.b","description":"d","inputSchema":{"type":"object"},"z":null}"#,
    );
    check(
        Kind::Resource,
        r#"{"uri":"p://list","name":"List","title":"T"}"#,
        r#"T | {"uri":"ns_p://list","name":"List","title":"T"}"#,
    );
    check(
        Kind::Template,
        r#"{"uriTemplate":"p://{id}","name":"One"}"#,
        r#" | {"uriTemplate":"ns_p://{id}","name":"One"}"#,
    );
}

#[test]
fn definitions_that_would_spoil_a_list_are_flawed() {
    let tool = |name: &str| format!(r#"{{"name":{name},"inputSchema":{{"type":"object"}}}}"#);
    check(Kind::Tool, &tool("7"), "flawed: member `name` must be a string");
    let long = format!("\"{}\"", "x".repeat(2_049));
    check(Kind::Tool, &tool(&long), "flawed: its name is longer than 2048 characters");
    check(Kind::Resource, r#"{"uri":""}"#, "flawed: its uri is empty");
    check(Kind::Resource, r#"{"uri":"p://\u001b"}"#, "flawed: its uri holds `\\u{1b}`");
    let schema = |schema: &str| format!(r#"{{"name":"a","inputSchema":{schema}}}"#);
    check(
        Kind::Tool,
        &schema("null"),
        "flawed: its `inputSchema` can't be used: not a JSON object",
    );
    check(
        Kind::Tool,
        &schema(r#"{"type":5}"#),
        "flawed: its `inputSchema` must have the type \"object\"",
    );
    check(
        Kind::Tool,
        &schema(r#"{"properties":{"x":{"type":"number","x-mcp-header":"X"}}}"#),
        "flawed: `x-mcp-header` of its argument `x` needs the type integer, string or boolean",
    );
    check(Kind::Tool, r#"{"name":"a"}"#, "flawed: member `inputSchema` is missing");
    check(Kind::Tool, r#"["a"]"#, "flawed: not a JSON object");
    check(
        Kind::Tool,
        r#"{"name":"a","name":"b","inputSchema":{}}"#,
        "flawed: member `name` is there twice",
    );
}

#[test]
fn no_tool_is_left_out_for_its_name() {
    let mut inventory = Inventory::default();
    let long = "x".repeat(2_048);
    let names = ["a b", "\u{1b}[8m", "🙂", "", "a/b", &long];
    let tool = |name: &str| format!(r#"{{"name":{},"inputSchema":{{}}}}"#, json::quote(name));
    inventory.set(Kind::Tool, names.map(|name| Raw::trusted(tool(name))));
    let kept: Vec<_> = inventory.of(Kind::Tool).iter().map(Definition::name).collect();
    assert_eq!(kept, names);
}

#[test]
fn name_that_was_changed_is_the_title_if_there_is_none() {
    let retitled = |text: &'static str| {
        let definition = Definition::parse(Kind::Tool, Raw::trusted(text)).unwrap();
        String::from_utf8(definition.retitled("safe").to_vec()).unwrap()
    };
    assert_eq!(
        retitled(r#"{"name":"a\u202eb","inputSchema":{}}"#),
        r#"{"title":"a b","name":"safe","inputSchema":{}}"#
    );
    let titled = r#"{"name":"ä","title":"T","inputSchema":{}}"#;
    assert_eq!(retitled(titled), titled.replace('ä', "safe"));
    let annotated = r#"{"name":"ä","annotations":{"title":"T"},"inputSchema":{}}"#;
    assert_eq!(retitled(annotated), annotated.replace('ä', "safe"));
}

#[test]
fn one_flawed_item_leaves_the_others() {
    let mut inventory = Inventory::default();
    let items = [r#"{"name":"ok","inputSchema":{}}"#, r#"{"name":"not ok"}"#];
    inventory.set(Kind::Tool, items.map(|text| Raw::trusted(text.to_owned())));
    assert_eq!(inventory.of(Kind::Tool).len(), 1);
    assert_eq!(inventory.flawed()[0].name, "not ok");
    inventory.set(Kind::Tool, []);
    assert!(inventory.flawed().is_empty());
}
