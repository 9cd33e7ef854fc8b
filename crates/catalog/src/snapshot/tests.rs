//! How offers become exposed names.

mod fitting;

use mcp::items::Kind;
use mcp::names::UriStyle;

use super::item::summarize;
use super::{Catalog, Lookup};
use crate::expansion::Expansion;
use crate::testing::{catalog, catalog_with};

fn render(catalog: &Catalog) -> String {
    let mut out = String::new();
    for kind in Kind::ALL {
        for item in catalog.items(kind) {
            out += &format!("{} <- {} `{}`\n", item.name, item.origin.upstream, item.origin.name);
        }
    }
    for collision in catalog.collisions() {
        let kept = collision.kept.as_ref().map_or("reserved", |name| name.as_str());
        out += &format!("{} kept by {kept}, not {}\n", collision.name, collision.dropped);
    }
    out
}

#[track_caller]
fn check(upstreams: &str, listing: &str) {
    assert_eq!(render(&catalog(upstreams, &[])), listing);
}

#[test]
fn names_are_prefixed_for_every_kind() {
    // TA-03, TA-04, TA-05, TA-18
    check(
        "pjpd: list_projects projects://list p://{id} !summarize",
        "pjpd_list_projects <- pjpd `list_projects`\n\
         pjpd_projects://list <- pjpd `projects://list`\n\
         pjpd_p://{id} <- pjpd `p://{id}`\n\
         pjpd_summarize <- pjpd `summarize`\n",
    );
}

#[test]
fn empty_namespace_leaves_names_unchanged() {
    // TA-06
    check("one/: log p://x !ask", "log <- one `log`\np://x <- one `p://x`\nask <- one `ask`\n");
}

#[test]
fn upstream_listed_first_keeps_a_contested_name() {
    // TA-12
    check("a: b_c\na_b: c", "a_b_c <- a `b_c`\na_b_c kept by a, not a_b\n");
}

#[test]
fn contested_resources_and_prompts_follow_the_same_rule() {
    // TA-13, TA-14
    check(
        "one/x: p://x !ask\ntwo/x: p://x !ask",
        "x_p://x <- one `p://x`\nx_ask <- one `ask`\n\
         x_p://x kept by one, not two\nx_ask kept by one, not two\n",
    );
}

#[test]
fn control_tool_can_not_be_shadowed() {
    // TA-15
    check(
        "one/: toolman_activate log\ntoolman: activate",
        "log <- one `log`\ntoolman_activate kept by reserved, not one\n\
         toolman_activate kept by reserved, not toolman\n",
    );
}

#[test]
fn lists_are_in_the_order_of_names() {
    check("b: z a\na: y", "a_y <- a `y`\nb_a <- b `a`\nb_z <- b `z`\n");
}

#[test]
fn other_spellings_lead_to_the_same_item() {
    let catalog = catalog("git/g: log status\nhub: status", &[]);
    for asked in ["g_log", "git_log", "git:log", "git.log", "git__log", "log"] {
        let Lookup::Found(item) = catalog.look_up(Kind::Tool, asked) else { panic!("{asked}") };
        assert_eq!(item.name.as_str(), "g_log");
    }
    assert!(
        matches!(catalog.look_up(Kind::Tool, "status"), Lookup::Ambiguous(items) if items.len() == 2)
    );
    assert!(matches!(catalog.look_up(Kind::Tool, "hub-log"), Lookup::Unknown));
}

#[test]
fn exposed_name_wins_over_a_spelling_of_another() {
    let catalog = catalog("one/: git_log\ngit/g: log", &[]);
    let Lookup::Found(item) = catalog.look_up(Kind::Tool, "git_log") else { panic!() };
    assert_eq!(item.origin.upstream.as_str(), "one");
}

#[test]
fn both_uri_styles_are_read_whichever_is_shown() {
    for style in UriStyle::ALL {
        let catalog = catalog_with("my_ns: p://list p://{id}", &["my_ns_p*"], Some(style));
        for asked in ["my_ns_p://list", "my-ns+p://list", "p://list"] {
            let Lookup::Found(item) = catalog.look_up(Kind::Resource, asked) else { panic!() };
            assert!(item.starts_on);
        }
        for asked in ["my_ns_p://7", "my-ns+p://7", "p://7"] {
            assert_eq!(expanded(&catalog, asked), "my_ns `p://{id}` p://7");
        }
        assert_eq!(expanded(&catalog, "other_p://7"), "unknown");
    }
}

#[test]
fn template_with_more_fixed_text_is_meant() {
    // TA-49
    let catalog = catalog("a: p://{x} p://{x}/raw p://{+rest}", &[]);
    assert_eq!(expanded(&catalog, "a_p://1/raw"), "a `p://{x}/raw` p://1/raw");
    assert_eq!(expanded(&catalog, "a_p://1/2/3"), "a `p://{+rest}` p://1/2/3");
    assert_eq!(expanded(&catalog, "a_q://1"), "unknown");
}

#[test]
fn bare_uri_that_fits_templates_of_several_upstreams_means_none() {
    let catalog =
        catalog("aa: p://{x} q://{x}\nbb: p://{x} p://1/{x}\none/: s://{x}\ntwo: s://{x}", &[]);
    assert_eq!(expanded(&catalog, "bb_p://7"), "bb `p://{x}` p://7");
    assert_eq!(expanded(&catalog, "p://7"), "aa or bb");
    assert_eq!(expanded(&catalog, "p://1/2"), "bb `p://1/{x}` p://1/2", "no other fits");
    assert_eq!(expanded(&catalog, "q://7"), "aa `q://{x}` q://7");
    // A name that is shown is no alias.
    assert_eq!(expanded(&catalog, "s://7"), "one `s://{x}` s://7");
}

fn expanded(catalog: &Catalog, uri: &str) -> String {
    match catalog.expanded_from(uri, |_| true) {
        Expansion::Found((item, bare)) => {
            format!("{} `{}` {bare}", item.origin.upstream, item.origin.name)
        }
        Expansion::Ambiguous(rivals) => {
            let names: Vec<_> =
                rivals.iter().map(|(item, _)| item.origin.upstream.as_str()).collect();
            names.join(" or ")
        }
        Expansion::Unknown => "unknown".into(),
    }
}

#[test]
fn summary_is_one_line_of_132_characters_and_ends_at_a_word() {
    // TA-38
    assert_eq!(&*summarize("a\n\tb \u{1b}[8m c"), "a b [8m c");
    assert_eq!(summarize(&"é".repeat(1_000_000)).chars().count(), 132);
    assert_eq!(summarize(&"ab ".repeat(100)).chars().count(), 131);
    assert!(summarize(&"word ".repeat(100)).ends_with("word word"));
}

#[test]
fn ref_id_is_of_the_definition_under_its_own_name() {
    let [one, other] = ["git/a: log", "git/b: log"].map(|text| catalog(text, &[]));
    let ref_id = |catalog: &Catalog| catalog.items(Kind::Tool)[0].ref_id().to_string();
    assert_eq!(ref_id(&one), ref_id(&other));
    assert_ne!(ref_id(&one), ref_id(&catalog("svn: log", &[])));
}
