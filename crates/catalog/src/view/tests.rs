//! What a client lists and may call.

use std::sync::Arc;

use mcp::items::Kind;

use super::View;
use crate::profile::{Lists, Profile};
use crate::scope::Scope;
use crate::selection::Selection;
use crate::surface::{Inactive, Surface};
use crate::testing::catalog;

fn view(upstreams: &str, starts_on: &[&str], inactive: Inactive) -> View {
    let catalog = catalog(upstreams, starts_on);
    let surface = Surface::Activate { inactive };
    let scope = Arc::new(Scope { surface, ..Scope::default() });
    View::new(catalog, Arc::default(), Selection::default(), scope)
}

fn names(view: &View, kind: Kind) -> Vec<String> {
    let list: serde_json::Value = serde_json::from_slice(view.list(kind)).unwrap();
    let items = list[kind.list_member()].as_array().unwrap();
    items.iter().map(|item| item[kind.key()].as_str().unwrap().to_owned()).collect()
}

#[test]
fn lists_hold_what_is_on() {
    // TA-19, TA-40, TA-41, TA-46, TA-47, TA-54
    let view =
        view("git: log status r://a r://{x} !ask", &["git_log", "git_r://a"], Inactive::Hidden);
    assert_eq!(names(&view, Kind::Tool), ["toolman_activate", "git_log"]);
    assert_eq!(names(&view, Kind::Resource), ["git_r://a"]);
    assert!(names(&view, Kind::Template).is_empty());
    assert_eq!(names(&view, Kind::Prompt), ["git_ask"]);
}

#[test]
fn stubs_stand_for_inactive_tools() {
    let view = view("git: log status", &["git_log"], Inactive::Stub);
    assert_eq!(names(&view, Kind::Tool), ["toolman_activate", "git_log", "git_status"]);
    let text = String::from_utf8(view.list(Kind::Tool).to_vec()).unwrap();
    assert!(text.contains(
        r#"{"name":"git_status","description":"about status (Off: switch it on with `toolman_activate` first.)","inputSchema":{"type":"object","properties":{},"additionalProperties":true}}"#
    ));
}

/// Whether stubs stand for the inactive ones of so many tools, for a client that lists so.
fn has_stubs(tools: usize, lists: Lists, said: Option<Inactive>) -> bool {
    let names: Vec<_> = (0..tools).map(|at| format!("tool{at}")).collect();
    let catalog = catalog(&format!("git: {}", names.join(" ")), &[]);
    let profile = Arc::new(Profile { lists, inactive: said, ..Profile::default() });
    let scope = Scope { profile, ..Scope::default() };
    let view = View::new(catalog, Arc::default(), Selection::default(), Arc::new(scope));
    let listed = self::names(&view, Kind::Tool).len();
    assert!(listed == 1 || listed == 1 + tools, "all of them or none: {listed}");
    listed > 1
}

#[test]
fn clients_that_never_list_again_get_stubs_while_these_are_cheap() {
    assert!(has_stubs(50, Lists::Once, None));
    assert!(!has_stubs(1_000, Lists::Once, None), "too expensive");
    for lists in [Lists::Late, Lists::AtOnce, Lists::Unknown] {
        assert!(!has_stubs(50, lists, None));
    }
    assert!(!has_stubs(50, Lists::Once, Some(Inactive::Hidden)));
    assert!(has_stubs(1_000, Lists::Unknown, Some(Inactive::Stub)));
}

#[track_caller]
fn refused(asked: &str, expected: &str) {
    let view = view("git: log status r://a t://{x}\nhub: log", &[], Inactive::Hidden);
    let error = if asked.contains("://") {
        view.resolve_uri(asked).unwrap_err()
    } else {
        view.resolve(Kind::Tool, asked).unwrap_err()
    };
    assert_eq!(error.to_string(), expected);
}

#[test]
fn inactive_item_is_refused_with_guidance() {
    // TA-43, TA-50
    refused(
        "git_log",
        "tool `git_log` is not active; pass it in `tools_on` of `toolman_activate` first",
    );
    refused(
        "git_r://a",
        "resource `git_r://a` is not active; pass it in `resources_on` of `toolman_activate` first",
    );
    refused(
        "git_t://7",
        "resource template `git_t://{x}` is not active; pass it in `resources_on` of \
         `toolman_activate` first",
    );
}

#[test]
fn bare_uri_of_a_listed_resource_that_another_template_fits_is_refused() {
    let view = view("aa: r://a\nbb: r://{x}\none/: r://c", &[], Inactive::Hidden);
    let refused = |uri| view.resolve_uri(uri).unwrap_err().to_string();
    assert_eq!(
        refused("r://a"),
        "`r://a` could mean more than one resource; use one of `aa_r://a`, `bb_r://a`"
    );
    assert!(refused("r://c").starts_with("resource `r://c` is not active"), "its name is meant");
}

#[test]
fn unknown_item_is_refused_with_near_names() {
    // TA-44, TA-51
    refused("git_lgo", "no tool is named `git_lgo`; did you mean `git_log`?");
    refused(
        "zzz\u{1b}",
        "no tool is named `zzz\\u{1b}`; see the catalog in the description of `toolman_activate`",
    );
    refused("git_r://b", "no resource is named `git_r://b`; did you mean `git_r://a`?");
    refused(
        "git_file:///../../etc/passwd",
        "no resource is named `git_file:///../../etc/passwd`; see the catalog in the description \
         of `toolman_activate`",
    );
}

#[test]
fn spelling_of_two_items_is_refused_with_both() {
    refused("log", "`log` could mean more than one tool; use one of `git_log`, `hub_log`");
}

#[test]
fn choice_is_of_the_item_whatever_it_is_called() {
    let first = view("git/g: log r://a", &[], Inactive::Hidden);
    let mut selection = first.selection().clone();
    first.items(Kind::Tool).chain(first.items(Kind::Resource)).for_each(|item| {
        selection.switch(item, true);
    });
    let renamed = view("hub/g: log\ngit/h: log r://a", &[], Inactive::Hidden);
    let renamed = renamed.selecting(selection);
    assert_eq!(names(&renamed, Kind::Tool), ["toolman_activate", "h_log"]);
    assert_eq!(names(&renamed, Kind::Resource), ["h_r://a"]);
}
