//! What the meta-tools say, and which tools a selection of toolsets shows.

use std::collections::BTreeSet;

use mcp::items::Kind;
use serde_json::{Value, json};

use super::{Code, Failure, NAMES, Told, definitions, enabled, named, tool_result};
use crate::exposure::Exposure;
use crate::surface::Surface;
use crate::testing::toolset_view;
use crate::toolset::ToolsetPlace;
use crate::view::View;

const SERVERS: &str = "git: log echo r://a\nhub: echo tree";
const TOOLSETS: &str = "read: git:log hub:tree git:r://a\nwrite: git:*\nhub: hub:echo";

fn view(exposure: Exposure) -> View {
    toolset_view(SERVERS, TOOLSETS, exposure, Surface::Dynamic)
}

fn places(places: &[u16]) -> BTreeSet<ToolsetPlace> {
    places.iter().map(|place| ToolsetPlace(*place)).collect()
}

fn told(view: &View) -> Told<'_> {
    Told::of(view, |_| false)
}

/// The view after these toolsets were enabled, or why one could not be.
fn enable(view: &View, names: &[&str]) -> Result<View, Failure> {
    let mut view = view.selecting(view.selection().clone());
    for name in names {
        let selection = told(&view).enable(name)?;
        view = view.selecting(selection);
    }
    Ok(view)
}

fn tools(view: &View) -> Value {
    told(view).list_tools()["tools"].clone()
}

fn failure(code: Code, message: &str) -> Failure {
    Failure { code, message: message.to_owned() }
}

#[test]
fn toolsets_share_tools_and_each_shows_its_own() {
    // TC-18, TC-24
    let view = view(Exposure::default());
    assert_eq!(tools(&view), json!([]));
    let both = enable(&view, &["read", "write"]).unwrap();
    let list = told(&both).list_tools();
    assert_eq!(list["tools"], json!(["read.log", "read.tree", "write.echo", "write.log"]));
    let by_toolset =
        json!({"read": ["read.log", "read.tree"], "write": ["write.echo", "write.log"]});
    assert_eq!(list["toolsetToTools"], by_toolset);
    let less = both.selecting(told(&both).disable("read").unwrap());
    assert_eq!(tools(&less), json!(["write.echo", "write.log"]));
    assert!(less.is_visible(less.items(Kind::Resource).next().unwrap()), "it is in both");
    assert!(less.resolve(Kind::Tool, "git_log").is_ok(), "whichever toolset has it");
    let again = enable(&less, &["read"]).unwrap();
    assert_eq!(tools(&again), tools(&both));
}

#[test]
fn toolset_is_told_with_what_it_is_for() {
    // TC-19, TC-22
    let view = enable(&view(Exposure::default()), &["hub"]).unwrap();
    let about = json!({
        "key": "hub",
        "active": true,
        "definition": {"name": "hub", "description": "", "modules": ["hub"]},
        "tools": ["hub.echo"],
    });
    assert_eq!(told(&view).describe("hub").unwrap(), about);
    let all = told(&view).list_toolsets();
    assert_eq!(all["toolsets"][2], about);
    assert_eq!(all["toolsets"][0]["active"], false);
    assert_eq!(all["toolsets"][0]["tools"], json!(["read.log", "read.tree"]));
    let unknown = told(&view).describe("rea").unwrap_err();
    assert_eq!(
        unknown,
        failure(Code::Validation, "no toolset is named `rea`; did you mean `read`?")
    );
}

#[test]
fn failures_say_what_to_do() {
    // TC-20, TC-21, TC-23
    let exposure = Exposure {
        active_max: Some(1),
        denied: places(&[2]),
        startup: places(&[0]),
        ..Exposure::default()
    };
    let view = view(exposure);
    let cases = [
        ("zzz", Code::Validation, "no toolset is named `zzz`; see `list_toolsets`"),
        ("read", Code::Validation, "toolset `read` is enabled already"),
        ("hub", Code::Validation, "toolset `hub` may not be enabled, by `exposure_policy`"),
        (
            "write",
            Code::MaxActive,
            "at most 1 toolsets can be enabled at once; disable one of `read` first",
        ),
    ];
    for (name, code, message) in cases {
        assert_eq!(told(&view).enable(name).unwrap_err(), failure(code, message));
    }
    let idle = told(&view).disable("write").unwrap_err();
    assert_eq!(idle, failure(Code::Validation, "toolset `write` is not enabled"));
    for arguments in [None, Some("{}"), Some(r#"{"name":1}"#), Some("[]")] {
        let message = "pass the name of a toolset, a string, in `name`";
        assert_eq!(named(arguments).unwrap_err(), failure(Code::Validation, message));
    }
    let result: Value = serde_json::from_str(&tool_result(Err(idle))).unwrap();
    let object = json!({
        "success": false,
        "message": "toolset `write` is not enabled",
        "code": "E_VALIDATION",
    });
    assert_eq!((&result["isError"], &result["structuredContent"]), (&json!(true), &object));
    assert_eq!(result["content"][0]["text"], object.to_string());
}

#[test]
fn bare_names_belong_to_the_toolset_that_is_on() {
    // TC-10, TC-20
    let exposure = Exposure { is_bare: true, ..Exposure::default() };
    let view = view(exposure.clone());
    let hub = enable(&view, &["hub"]).unwrap();
    assert_eq!(tools(&hub), json!(["echo"]));
    assert_eq!(hub.resolve(Kind::Tool, "echo").unwrap().item.origin.upstream.as_str(), "hub");
    let write = enable(&view, &["write"]).unwrap();
    assert_eq!(write.resolve(Kind::Tool, "echo").unwrap().item.origin.upstream.as_str(), "git");
    assert_eq!(
        told(&hub).enable("write").unwrap_err(),
        failure(
            Code::NameConflict,
            "the toolset `hub` has another tool that is named `echo`; disable it first"
        )
    );
    assert!(enable(&hub, &["read"]).is_ok());
    // Both can be on where a tool came later: then the first of the configuration keeps the name.
    let exposure = Exposure { startup: places(&[1, 2]), ..exposure };
    let both = toolset_view(SERVERS, TOOLSETS, exposure, Surface::Static);
    assert_eq!(tools(&both), json!(["echo", "log"]));
    assert_eq!(both.resolve(Kind::Tool, "echo").unwrap().item.origin.upstream.as_str(), "git");
}

#[test]
fn tool_that_is_off_is_refused_unless_unlisted_calls_are_allowed() {
    // TC-11
    let refused = |view: &View, name: &str| view.resolve(Kind::Tool, name).unwrap_err().to_string();
    let off = view(Exposure { denied: places(&[2]), ..Exposure::default() });
    assert_eq!(
        refused(&off, "read.tree"),
        "tool `read.tree` is not active; enable its toolset `read` with `enable_toolset` first"
    );
    assert_eq!(
        refused(&off, "hub.echo"),
        "tool `hub.echo` is not active; its toolset may not be enabled, by `exposure_policy`"
    );
    let exposure = Exposure { calls_unlisted: true, denied: places(&[2]), ..Exposure::default() };
    let view = view(exposure);
    assert!(view.resolve(Kind::Tool, "read.tree").is_ok());
    assert_eq!(tools(&view), json!([]));
    assert!(refused(&view, "hub.echo").contains("may not be enabled"));
}

#[test]
fn confirmation_names_the_tools_and_what_is_missing() {
    // TC-14
    let view = enable(&view(Exposure::default()), &["read"]).unwrap();
    let said = enabled(&view, "read", &["server `x` has failed".to_owned()]);
    let message = "toolset `read` is enabled; it has `read.log`, `read.tree`; \
        server `x` has failed";
    assert_eq!(said, json!({"success": true, "message": message}));
}

#[test]
fn meta_tools_say_what_they_do_to_the_world() {
    // TC-03
    let all: Value = serde_json::from_str(&format!("[{}]", definitions(&NAMES))).unwrap();
    for tool in all.as_array().unwrap() {
        let changes =
            ["enable_toolset", "disable_toolset"].contains(&tool["name"].as_str().unwrap());
        assert_eq!(tool["annotations"]["readOnlyHint"], !changes);
        assert_eq!(tool["annotations"]["idempotentHint"], true);
        assert_eq!(tool["outputSchema"]["type"], "object");
        assert_eq!(tool["inputSchema"]["type"], "object");
    }
}
