//! What the control tool says and does.

use mcp::json;

use super::{apply, definition};
use crate::profile::Reads;
use crate::surface::reply;
use crate::testing::view;
use crate::view::View;

/// The catalog in the description, without the words before it.
fn shown(view: &View) -> String {
    let definition = definition(view);
    let [description] = json::members(definition.as_bytes(), ["description"]).unwrap();
    let description = json::string(description.unwrap()).unwrap();
    description.split_once("TOOLS:\n").unwrap().1.to_owned()
}

/// The outcome of a call as text.
fn call(upstreams: &str, arguments: &str) -> String {
    let view = view(upstreams, &["git_log"]);
    match apply(&view, Some(arguments.as_bytes())) {
        Ok(done) => format!("{}\n{}", done.confirmation, shown(&view.selecting(done.selection))),
        Err(error) => error,
    }
}

const UPSTREAMS: &str = "git: log status repo://head repo://{id} !ask";

fn lists(tools_on: &str, tools_off: &str, resources_on: &str, resources_off: &str) -> String {
    let quoted = |names: &str| {
        let names: Vec<_> = names.split_whitespace().map(json::quote).collect();
        names.join(",")
    };
    format!(
        r#"{{"tools_on":[{}],"tools_off":[{}],"resources_on":[{}],"resources_off":[{}]}}"#,
        quoted(tools_on),
        quoted(tools_off),
        quoted(resources_on),
        quoted(resources_off)
    )
}

#[test]
fn description_marks_what_is_on() {
    // TA-36, TA-39, TA-10: prompts are not in it
    assert_eq!(
        shown(&view(UPSTREAMS, &["git_log", "git_repo:*"])),
        "* git_log: about log\n  git_status: about status\n\nRESOURCES:\n\
         * git_repo://head: about repo://head\n* git_repo://{id}: about repo://{id}"
    );
    assert_eq!(shown(&view("a: x", &[])), "  a_x: about x\n\nRESOURCES:\n  (none)");
}

#[test]
fn names_are_switched_and_others_stay() {
    // TA-23 … TA-27, TA-35, TA-37
    assert_eq!(
        call(UPSTREAMS, &lists("git_status", "", "git_repo://head", "")),
        "on: git_status, git_repo://head\n\
         * git_log: about log\n* git_status: about status\n\nRESOURCES:\n\
         * git_repo://head: about repo://head\n  git_repo://{id}: about repo://{id}"
    );
    assert!(
        call(UPSTREAMS, &lists("", "git_log", "", "git_repo://{id}"))
            .starts_with("off: git_log, git_repo://{id}\n  git_log")
    );
}

#[test]
fn switching_on_again_is_a_success() {
    // TA-34
    assert!(call(UPSTREAMS, &lists("git_log", "", "", "")).starts_with("on: git_log\n* git_log"));
}

#[test]
fn whole_server_is_switched_by_star() {
    // TA-72
    assert!(
        call(UPSTREAMS, &lists("git:*", "", "git:*", ""))
            .starts_with("on: git_log, git_status, git_repo://head, git_repo://{id}\n")
    );
}

#[test]
fn empty_lists_ask_for_a_name() {
    // TA-28
    assert_eq!(
        call(UPSTREAMS, &lists("", "", "", "")),
        "all four lists are empty; give at least one name, for example `tools_on: [\"…\"]`, from \
         the catalog in the description of `toolman_activate`"
    );
}

#[test]
fn every_unknown_name_is_reported_with_corrections() {
    // TA-29, TA-30
    assert_eq!(
        call(UPSTREAMS, &lists("git_lgo git_status zzz", "", "git_repo://haed", "")),
        "no tool is named `git_lgo` (did you mean `git_log`?); no tool is named `zzz`; \
         no resource is named `git_repo://haed` (did you mean `git_repo://head`?); nothing was changed"
    );
}

#[test]
fn tool_in_a_resource_list_is_unknown() {
    // TA-32
    assert!(
        call(UPSTREAMS, &lists("", "", "git_log", ""))
            .starts_with("no resource is named `git_log`")
    );
    assert!(call(UPSTREAMS, &lists("git_repo://head", "", "", "")).starts_with("no tool is named"));
    // TA-53: nor is a prompt a tool
    assert!(
        call(UPSTREAMS, &lists("git_ask", "", "", "")).starts_with("no tool is named `git_ask`")
    );
}

#[test]
fn same_name_on_and_off_is_refused() {
    // TA-33: under any spelling
    assert_eq!(
        call(UPSTREAMS, &lists("git_log", "git:log", "", "")),
        "`git_log` is to be switched both on and off; name it once; nothing was changed"
    );
}

#[test]
fn lists_are_taken_as_models_send_them() {
    // TA-22: all four are demanded, though what is missing counts as empty.
    let on = |arguments: &str| {
        let told = call(UPSTREAMS, arguments);
        assert!(told.starts_with("on: git_status\n"), "{told}");
    };
    on(r#"{"tools_on":["git_status"]}"#);
    on(r#"{"tools_on":"git_status","tools_off":null,"resources_on":[]}"#);
    on(r#"{"tools_on":"[\"git_status\"]","resources_off":"[]"}"#);
    assert!(call(UPSTREAMS, "{}").starts_with("all four lists are empty"));
    assert_eq!(
        call(UPSTREAMS, r#"{"tools_on":{"git_log":true}}"#),
        "`tools_on` must be a list of names (strings)"
    );
    for all in ["git_*", "git:*", "git.*", "git__*"] {
        let told = call(UPSTREAMS, &lists(all, "", "", ""));
        assert!(told.starts_with("on: git_log, git_status\n"), "{all}: {told}");
    }
    for wrong in ["*", "_*", "gi*", "git*", "git_lo*"] {
        let told = call(UPSTREAMS, &lists(wrong, "", "", ""));
        assert!(told.starts_with(&format!("no tool is named `{wrong}`")), "{told}");
    }
    let many = vec!["x"; 1_001].join(" ");
    assert_eq!(
        call(UPSTREAMS, &lists("", &many, "", "")),
        "at most 1000 names fit in a list; use `server:*` for many"
    );
    assert_eq!(call(UPSTREAMS, "[]"), "the arguments can't be read: not a JSON object");
}

#[test]
fn what_was_switched_on_comes_with_its_definitions() {
    let view = view(UPSTREAMS, &[]);
    let arguments = lists("git_log", "", "git_repo://{id}", "");
    let done = apply(&view, Some(arguments.as_bytes())).unwrap();
    let result = reply::result("{}", done.definitions.as_ref(), Reads::Everything);
    let told = r#"{"tools":[{"name":"git_log","description":"about log","inputSchema":{}}],"resourceTemplates":[{"uriTemplate":"git_repo://{id}","description":"about repo://{id}","inputSchema":{}}]}"#;
    assert!(result.contains(&json::quote(told)), "{result}");
}
