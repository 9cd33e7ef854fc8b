//! Which references hold, and what is said of those that don't.

use std::sync::Arc;

use mcp::items::{Inventory, Kind};
use mcp::rpc::Raw;
use serde_json::{Value, json};

use super::{Manner, Resolution, State, changes};
use crate::scope::Scope;
use crate::snapshot::{Catalog, Rules};
use crate::surface::Surface;
use crate::testing::assemble_of;
use crate::toolset::{Reference, Toolset};

/// A catalog with these tools, by server.
fn catalog(servers: &[(&str, &[Value])]) -> Arc<Catalog> {
    let offered: Vec<_> = servers
        .iter()
        .map(|(name, tools)| {
            let mut inventory = Inventory::default();
            inventory.set(Kind::Tool, tools.iter().map(|tool| Raw::trusted(tool.to_string())));
            (name.parse().unwrap(), name.parse().unwrap(), inventory)
        })
        .collect();
    Arc::new(assemble_of(&offered, &Rules::default(), &Scope::of(Surface::Filter)))
}

fn manner(allows_stale: bool) -> Manner {
    Manner { allows_stale, hides_names: false }
}

fn tool(name: &str) -> Value {
    json!({"name": name, "title": "A tool", "description": "does things",
        "inputSchema": {"type": "object", "properties": {"x": {"type": "integer", "minimum": 0},
            "y": {"enum": ["a", "b"]}}, "required": ["x"], "additionalProperties": false},
        "outputSchema": {"type": "object", "properties": {"sum": {"type": "number"}}},
        "annotations": {"readOnlyHint": true, "title": "T"}, "_meta": {"vendor": {"level": 1}},
        "icons": [{"src": "data:,", "mimeType": "image/png"}], "execution": {"taskSupport": "optional"}})
}

/// The reference that is stored for a tool of a catalog.
fn pinned(catalog: &Catalog, place: usize) -> Reference {
    let item = &catalog.items(Kind::Tool)[place];
    Reference {
        name: Some(format!("{}.{}", item.origin.upstream, item.origin.name).into()),
        ref_id: Some(item.ref_id().as_str().into()),
        definition: Some(item.source().clone()),
    }
}

fn resolve(catalog: &Catalog, reference: Reference, allows_stale: bool) -> Resolution {
    let toolset = Toolset { references: vec![reference], ..Toolset::default() };
    Resolution::of(&toolset, catalog, |_| true, manner(allows_stale))
}

#[track_caller]
fn check(catalog: &Catalog, reference: &Reference, state: State, warning: &str) {
    let resolution = resolve(catalog, reference.clone(), false);
    assert_eq!(resolution.findings[0].state, state, "{:?}", resolution.warnings);
    assert_eq!(resolution.warnings.join("; "), warning);
    assert_eq!(resolution.len(), usize::from(state == State::Resolved));
}

#[test]
fn reference_that_matches_by_both_ids_is_accepted() {
    // HT-23, HT-03, HT-08, HT-09, HT-10, HT-13
    let catalog = catalog(&[("git", &[tool("log"), tool("status")])]);
    let both = pinned(&catalog, 0);
    check(&catalog, &both, State::Resolved, "");
    let by_name = Reference { ref_id: None, ..both.clone() };
    check(&catalog, &by_name, State::Resolved, "");
    let by_ref_id = Reference { name: None, ..both };
    check(&catalog, &by_ref_id, State::Resolved, "");
}

#[test]
fn changed_tool_is_withheld_with_what_changed_unless_that_is_allowed() {
    // HT-12, HT-14, HT-18, HT-19, HT-20
    let then = catalog(&[("git", &[tool("log")])]);
    let mut other = tool("log");
    other["description"] = json!("reads your mail");
    other["inputSchema"]["properties"]["mail"] = json!({"type": "string"});
    let now = catalog(&[("git", &[other])]);
    let reference = pinned(&then, 0);
    check(
        &now,
        &reference,
        State::Withheld,
        "SECURITY: `git.log` is not what it was when it was chosen: `description` was \
         `\"does things\"` and is `\"reads your mail\"`, `inputSchema.properties.mail` is new; it is \
         withheld",
    );
    let allowed = resolve(&now, reference, true);
    assert_eq!((allowed.findings[0].state, allowed.len()), (State::Stale, 1));
    assert!(allowed.warnings[0].ends_with("it is used because stale references are allowed"));
    assert!(allowed.findings[0].name_matches && !allowed.findings[0].ref_id_matches);
}

#[test]
fn ids_that_disagree_or_are_gone_are_told() {
    // HT-11, HT-15, HT-16, HT-17, HT-18, HT-19
    let catalog_now = catalog(&[("git", &[tool("log"), tool("status")]), ("hub", &[tool("log")])]);
    let (log, status) = (pinned(&catalog_now, 0), pinned(&catalog_now, 1));
    let crossed = Reference { ref_id: status.ref_id.clone(), ..log.clone() };
    check(
        &catalog_now,
        &crossed,
        State::Withheld,
        "SECURITY: the two ids of `git.log` mean two tools, the other is `git_status`; it is withheld",
    );
    let renamed = Reference { name: Some("git.history".into()), ..log.clone() };
    check(
        &catalog_now,
        &renamed,
        State::Withheld,
        "SECURITY: `git.history` is now called `git_log`; it is withheld",
    );
    let moved = catalog(&[("hub", &[tool("log")])]);
    check(&moved, &log, State::Missing, "`git.log` is not there; it is left out");
    let all = Toolset { references: vec![log, status], ..Toolset::default() };
    let half = catalog(&[("git", &[tool("status")])]);
    let resolution = Resolution::of(&all, &half, |_| true, manner(false));
    assert_eq!((resolution.len(), resolution.warnings.len()), (1, 1), "the rest works");
}

#[test]
fn what_does_not_count_is_not_there() {
    let catalog = catalog(&[("git", &[tool("log")])]);
    let toolset = Toolset { references: vec![pinned(&catalog, 0)], ..Toolset::default() };
    let resolution = Resolution::of(&toolset, &catalog, |_| false, manner(true));
    assert_eq!(resolution.findings[0].state, State::Missing);
}

#[test]
fn each_of_more_than_twenty_changes_is_detected_and_none_is_where_only_the_order_changed() {
    let then = catalog(&[("git", &[tool("log"), tool("status")])]);
    let reference = pinned(&then, 0);
    let paths = [
        "/title",
        "/description",
        "/inputSchema/type",
        "/inputSchema/properties/x/type",
        "/inputSchema/properties/x/minimum",
        "/inputSchema/properties/y/enum/0",
        "/inputSchema/properties/y/enum/1",
        "/inputSchema/properties/x",
        "/inputSchema/properties/y",
        "/inputSchema/properties",
        "/inputSchema/required/0",
        "/inputSchema/required",
        "/inputSchema/additionalProperties",
        "/outputSchema/type",
        "/outputSchema/properties/sum/type",
        "/outputSchema/properties/sum",
        "/outputSchema/properties",
        "/outputSchema",
        "/annotations/readOnlyHint",
        "/annotations/title",
        "/annotations",
        "/_meta/vendor/level",
        "/_meta/vendor",
        "/_meta",
        "/icons/0/src",
        "/icons/0/mimeType",
        "/icons",
        "/execution/taskSupport",
        "/execution",
    ];
    for path in paths {
        let mut other = tool("log");
        *other.pointer_mut(path).unwrap() = json!("changed");
        let now = catalog(&[("git", &[other, tool("status")])]);
        let resolution = resolve(&now, reference.clone(), false);
        // One whose schema is none any more is not even listed.
        assert_ne!(resolution.findings[0].state, State::Resolved, "{path}");
        assert!(resolution.is_empty() && resolution.warnings.len() == 1, "{path}");
    }
    // The same members from behind, and the tools from behind.
    let members = tool("log");
    let members: serde_json::Map<_, _> =
        members.as_object().unwrap().clone().into_iter().rev().collect();
    let now = catalog(&[("git", &[tool("status"), Value::Object(members)])]);
    assert_eq!(resolve(&now, reference, false).findings[0].state, State::Resolved);
}

#[test]
fn changes_are_told_as_paths() {
    let found = changes(r#"{"a":{"b":1,"c":[1]},"d":1.0}"#, r#"{"d":1,"a":{"c":[2],"e":{}}}"#);
    assert_eq!(found, ["`a.b` is gone", "`a.c` was `[1]` and is `[2]`", "`a.e` is new"]);
}

#[test]
fn hash_of_hypertool_is_accepted_and_upgraded() {
    let now = catalog(&[("git", &[tool("log"), tool("diff")])]);
    // The text that hypertool hashes for this definition: its order of members, nothing of the description.
    let text = "{\"name\":\"log\",\"serverName\":\"git\",\"inputSchema\":{\"type\":\"object\",\"properties\":{\"x\":\
        {\"type\":\"integer\",\"minimum\":0},\"y\":{\"enum\":[\"a\",\"b\"]}},\"required\":[\"x\"],\"additionalProperties\":false},\
        \"outputSchema\":{\"type\":\"object\",\"properties\":{\"sum\":{\"type\":\"number\"}}},\
        \"annotations\":{\"title\":\"T\",\"readOnlyHint\":true}}";
    let hash = mcp::text::hexadecimal(
        aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, text.as_bytes()).as_ref(),
    );
    let reference = |name: &str| Reference {
        name: Some(name.into()),
        ref_id: Some(hash.as_str().into()),
        definition: None,
    };
    let toolset = Toolset { references: vec![reference("git.log")], ..Toolset::default() };
    let resolution = Resolution::of(&toolset, &now, |_| true, manner(false));
    assert_eq!(resolution.findings[0].state, State::Resolved);
    let note = "`git.log` is pinned by a hash of hypertool, which leaves out its description; \
        approve it to pin all of it";
    assert_eq!(resolution.warnings, [note]);
    let upgraded = resolution.upgraded(&toolset, &now).unwrap();
    assert_eq!(upgraded.references, [pinned(&now, 1)]);
    let again = Resolution::of(&upgraded, &now, |_| true, manner(false));
    assert!(again.warnings.is_empty() && again.upgraded(&upgraded, &now).is_none());
    // It is the hash of that tool, and of no other.
    let other = resolve(&now, reference("git.diff"), false);
    assert_eq!(other.findings[0].state, State::Withheld);
    let mut changed = tool("log");
    changed["inputSchema"]["properties"]["x"]["minimum"] = json!(1);
    let changed = catalog(&[("git", &[changed])]);
    assert_eq!(resolve(&changed, reference("git.log"), false).findings[0].state, State::Withheld);
}

#[test]
fn what_is_hidden_is_counted_and_not_named() {
    let catalog = catalog(&[("git", &[tool("log"), tool("push")]), ("vault", &[tool("open")])]);
    let mut references: Vec<_> = (0..3).map(|place| pinned(&catalog, place)).collect();
    // Both ids are of tools, but of two; the one of the name is hidden.
    references[1].ref_id = references[0].ref_id.clone();
    references[1].name = references[2].name.clone();
    let lost = Reference { name: Some("vault.lost".into()), ..Reference::default() };
    references.push(lost);
    let toolset = Toolset { references, ..Toolset::default() };
    let counts = |item: &crate::snapshot::Item| item.origin.upstream.as_str() == "git";
    let hiding = Manner { allows_stale: false, hides_names: true };
    let resolution = Resolution::of(&toolset, &catalog, counts, hiding);
    let told = format!(
        "{:?} {:?}",
        resolution.warnings,
        resolution.findings.iter().map(|finding| &finding.reference.name).collect::<Vec<_>>()
    );
    assert!(!told.contains("vault"), "{told}");
    assert_eq!(resolution.unnamed, 2);
    assert_eq!(resolution.findings[1].state, State::Withheld);
    assert!(
        resolution
            .warnings
            .contains(&"2 of its tools are not available; they are left out".to_owned()),
        "{told}"
    );
}
