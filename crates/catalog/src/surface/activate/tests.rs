//! What the control tool says and does.

use std::sync::Arc;

use mcp::json;

use super::{apply, definition};
use crate::profile::{Profile, Reads};
use crate::scope::Scope;
use crate::selection::Selection;
use crate::surface::reply;
use crate::testing::{catalog, view};
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

/// The description for a client that takes so many characters.
fn described(upstreams: &str, starts_on: &[&str], description_max: usize) -> String {
    let profile = Profile { description_max: Some(description_max), ..Profile::default() };
    let scope = Scope::default().for_client(Arc::new(profile));
    let selection = Selection::default();
    let view = View::new(catalog(upstreams, starts_on), Arc::default(), selection, Arc::new(scope));
    let definition = definition(&view);
    let [description] = json::members(definition.as_bytes(), ["description"]).unwrap();
    let description = json::string(description.unwrap()).unwrap().into_owned();
    assert!(description.chars().count() <= description_max, "{description}");
    description
}

/// So many servers with so many tools each.
fn servers(count: usize, tools: usize) -> String {
    let tools: Vec<_> = (0..tools).map(|at| format!("tool_number_{at}")).collect();
    let server = |at| format!("server{at:02}: {} r{at}://x", tools.join(" "));
    (0..count).map(server).collect::<Vec<_>>().join("\n")
}

#[test]
fn catalog_that_does_not_fit_is_told_by_server() {
    let text = described(&servers(10, 100), &["server03_tool_number_7"], 2_048);
    let (head, shown) = text.split_once("\n\nON:\n").unwrap();
    assert!(head.contains("`find`") && head.contains("words, or `server:`"));
    let (on, servers) = shown.split_once("\n\nSERVERS:\n").unwrap();
    assert_eq!(on, "* server03_tool_number_7: about tool_number_7");
    assert_eq!(servers.lines().count(), 10);
    let first = "server00: – tool_number_0, tool_number_1, tool_number_10 (100 tools, 1 resource)";
    assert_eq!(servers.lines().next(), Some(first));
}

#[test]
fn catalog_that_fits_is_shown_whole() {
    let text = described(UPSTREAMS, &["git_log"], 2_048);
    assert!(text.contains("TOOLS:\n* git_log: about log\n"), "{text}");
    // Where nothing is known of a client there is a bound, too: 1,000 tools are not for every conversation.
    assert!(shown(&view(&servers(2, 100), &[])).contains("server01_tool_number_99"));
    let many = definition(&view(&servers(10, 100), &[]));
    assert!(many.len() < 5_000 && many.contains("SERVERS:"), "{}", many.len());
}

#[test]
fn what_does_not_fit_at_all_is_counted() {
    let text = described(&servers(90, 2), &["*number_1"], 2_048);
    let more =
        |what: &str| text.lines().any(|line| line.starts_with("  … ") && line.contains(what));
    assert!(more("more are on") && more("more servers; pass `find: \"\"` for all"), "{text}");
    assert!(text.lines().any(|line| line.starts_with("* server00_tool_number_1")), "{text}");
    let nothing_on = described(&servers(90, 100), &[], 2_048);
    assert!(nothing_on.contains("ON:\n  (nothing)\n\nSERVERS:\nserver00: "), "{nothing_on}");
}

#[test]
fn find_changes_nothing_and_may_come_with_lists() {
    let view = view(UPSTREAMS, &["git_log"]);
    let done = apply(&view, Some(br#"{"find":"status"}"#)).unwrap();
    assert_eq!(done.confirmation, "found: 1 to 1 of 1\n  git_status: about status");
    assert!(done.definitions.is_none());
    assert_eq!(shown(&view.selecting(done.selection)), shown(&view));
    let both = lists("git_status", "", "", "").replacen('{', r#"{"find":"log","#, 1);
    let done = apply(&view, Some(both.as_bytes())).unwrap();
    let found = "on: git_status\n\nfound: 1 to 1 of 1\n* git_log: about log";
    assert_eq!(done.confirmation, found);
    assert_eq!(
        apply(&view, Some(br#"{"find":7}"#)).unwrap_err(),
        "`find` must be words, or `server:` (a string)"
    );
}
