//! Names that don't fit, and what becomes of them.

use std::sync::Arc;

use mcp::items::{Inventory, Kind};
use mcp::json;
use mcp::names::{Namespace, UpstreamName};
use mcp::rpc::Raw;

use crate::naming::{NameStyle, Prefix};
use crate::patterns::Patterns;
use crate::policy::Subject;
use crate::profile::{Naming, Profile};
use crate::scope::Scope;
use crate::snapshot::{Catalog, Item, Lookup, Rules};
use crate::surface::Surface;
use crate::testing::{assemble_of, offers};

type Offered = (UpstreamName, Namespace, Inventory);

/// A server with tools of these names, each with a description of its own.
fn server(name: &str, tools: &[&str]) -> Offered {
    let mut inventory = Inventory::default();
    let tool = |(at, tool): (usize, &&str)| {
        let tool = json::quote(tool);
        Raw::trusted(format!(r#"{{"name":{tool},"description":"no. {at}","inputSchema":{{}}}}"#))
    };
    inventory.set(Kind::Tool, tools.iter().enumerate().map(tool));
    (name.parse().unwrap(), name.parse().unwrap(), inventory)
}

fn scope(naming: Naming) -> Scope {
    let profile = Arc::new(Profile { naming, ..Profile::default() });
    Scope { surface: Surface::Filter, profile, ..Scope::default() }
}

fn assemble(servers: &[Offered], naming: Naming) -> Catalog {
    assemble_of(servers, &Rules::default(), &scope(naming))
}

fn names(catalog: &Catalog) -> Vec<&str> {
    catalog.items(Kind::Tool).iter().map(|item| item.name.as_str()).collect()
}

fn found<'a>(catalog: &'a Catalog, asked: &str) -> &'a Item {
    let Lookup::Found(item) = catalog.look_up(Kind::Tool, asked) else { panic!("{asked}") };
    item
}

#[test]
fn no_tool_is_left_out_for_its_name() {
    let long = "x".repeat(130);
    let all = ["läuft", "a b", "", &long, "log", "a/b"];
    let catalog = assemble(&[server("git", &all)], Naming::PROTOCOL);
    // `printf 'git_läuft' | sha256sum`, and so on
    assert_eq!(
        names(&catalog),
        [
            "git_",
            "git_a_b_0e0b9a0b",
            "git_a_b_33fa86b5",
            "git_l_uft_42dd9675",
            "git_log",
            &format!("git_{}_acd5578a", "x".repeat(115)),
        ]
    );
    for name in all.into_iter().filter(|name| !name.is_empty()) {
        for asked in [name.to_owned(), format!("git_{name}"), format!("git:{name}")] {
            assert_eq!(&*found(&catalog, &asked).origin.name, name);
        }
    }
}

#[test]
fn changed_name_leaves_the_own_one_as_title() {
    let catalog = assemble(&[server("git", &["läuft", "log"])], Naming::PROTOCOL);
    let definition =
        |asked| String::from_utf8_lossy(&found(&catalog, asked).definition).into_owned();
    assert!(definition("läuft").starts_with(r#"{"title":"läuft","name":"git_l_uft_"#));
    assert!(!definition("log").contains("title"));
}

#[test]
fn client_is_shown_names_that_its_model_takes() {
    let long = "x".repeat(60);
    let servers = [server("git", &["log", "log.all", &long])];
    let catalog = assemble(&servers, Naming::ENDPOINT);
    assert!(names(&catalog).iter().all(|name| name.len() <= 50 && !name.contains('.')));
    // What other clients see means the same here, and the other way round.
    let usual = assemble(&servers, Naming::PROTOCOL);
    for (one, other) in [(&catalog, &usual), (&usual, &catalog)] {
        for name in names(one) {
            assert_eq!(found(one, name).origin, found(other, name).origin);
        }
    }
    assert_eq!(names(&usual), ["git_log", "git_log.all", &format!("git_{long}")]);
}

#[test]
fn doubled_name_is_kept_by_the_first() {
    let servers = [server("git", &["log", "log", "diff"])];
    let catalog = assemble(&servers, Naming::PROTOCOL);
    let [_, first, second] = names(&catalog)[..] else { panic!("{:?}", names(&catalog)) };
    assert_eq!(first, "git_log");
    assert!(second.starts_with("git_log_") && second.len() == "git_log_".len() + 8);
    assert_eq!(found(&catalog, "log").name.as_str(), "git_log");
    assert_eq!(&*found(&catalog, second).origin.name, "log");
    assert_eq!(&*found(&catalog, second).summary, "no. 1");
    // The same definition twice is one tool.
    let mut inventory = Inventory::default();
    let tool = || Raw::trusted(r#"{"name":"log","inputSchema":{}}"#);
    inventory.set(Kind::Tool, [tool(), tool()]);
    let once = [("git".parse().unwrap(), "git".parse().unwrap(), inventory)];
    assert_eq!(names(&assemble(&once, Naming::PROTOCOL)), ["git_log"]);
}

#[test]
fn name_that_fits_is_nobody_elses() {
    let fitted = assemble(&[server("git", &["läuft"])], Naming::PROTOCOL);
    let fitted = names(&fitted)[0].to_owned();
    let bare = fitted.strip_prefix("git_").unwrap();
    // The one that has it by itself comes last and keeps it all the same.
    let servers = [server("git", &["läuft", bare])];
    let catalog = assemble(&servers, Naming::PROTOCOL);
    assert_eq!(catalog.items(Kind::Tool).len(), 2);
    assert_eq!(&*found(&catalog, &fitted).origin.name, bare);
    assert_ne!(found(&catalog, "läuft").name.as_str(), fitted);
}

#[test]
fn namespace_in_a_name_is_not_put_before_it_again() {
    let prefixes = [("linear".parse().unwrap(), Prefix::Auto)].into();
    let rules = Rules { prefixes, ..Rules::default() };
    let servers = [server("linear", &["linear_list", "list", "find"])];
    let catalog = assemble_of(&servers, &rules, &scope(Naming::PROTOCOL));
    // Of two that would have one name the second is set apart.
    let shown = names(&catalog);
    assert_eq!(&shown[..2], ["linear_find", "linear_list"]);
    assert!(shown[2].starts_with("linear_list_"));
    assert_eq!(&*found(&catalog, "linear_linear_list").origin.name, "linear_list");
    assert_eq!(&*found(&catalog, "linear_list").origin.name, "linear_list");
    assert_eq!(&*found(&catalog, "list").origin.name, "list");
}

#[test]
fn names_can_be_left_as_they_are() {
    let rules = Rules { name_style: NameStyle::AsIs, ..Rules::default() };
    let servers = [server("git", &["läuft gut", "a.b", "a\u{202e}b"])];
    let catalog = assemble_of(&servers, &rules, &scope(Naming::ENDPOINT));
    let shown = names(&catalog);
    assert!(shown.contains(&"git_läuft gut") && shown.contains(&"git_a.b"));
    assert!(!shown.iter().any(|name| name.contains('\u{202e}')), "nobody would see it");
}

#[test]
fn rules_mean_a_tool_whatever_it_is_called_for_a_client() {
    let servers = [server("git", &["läuft"])];
    for naming in [Naming::PROTOCOL, Naming::ENDPOINT] {
        let starts_on = Patterns::parse(&["git_läuft"]).unwrap();
        let rules = Rules { starts_on, ..Rules::default() };
        let catalog = assemble_of(&servers, &rules, &scope(naming));
        let [item] = catalog.items(Kind::Tool) else { panic!() };
        assert!(item.starts_on);
        let subject = Subject::of(item);
        for name in ["läuft", "git_läuft", "git:läuft", item.name.as_str()] {
            assert!(subject.names().iter().any(|known| known == name), "{name}");
        }
    }
}

#[test]
fn catalogs_of_two_namings_share_what_is_the_same() {
    let servers = [server("git", &["log", "log.all"])];
    let offers = offers(&servers);
    let rules = Rules::default();
    let usual = scope(Naming::PROTOCOL).assemble(&offers, &rules, None);
    let other = scope(Naming::ENDPOINT).assemble(&offers, &rules, Some(&usual));
    let bytes = |catalog, name| found(catalog, name).definition.as_ptr();
    assert_eq!(bytes(&usual, "git_log"), bytes(&other, "git_log"));
    assert_ne!(bytes(&usual, "git_log.all"), bytes(&other, "git_log.all"));
    let again = scope(Naming::PROTOCOL).assemble(&offers, &rules, Some(&usual));
    assert!(std::ptr::eq(usual.items(Kind::Tool), again.items(Kind::Tool)));
}
