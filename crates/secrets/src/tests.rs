//! The safe through its own door: files in, values out.

mod damage;
mod exchange;
mod keys;
mod redaction;

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use zeroize::Zeroizing;

use crate::error::{Error, ValueError};
use crate::ledger::{Ledger, Status};
use crate::master::Sources;
use crate::names::{Name, Scope};
use crate::store::Store;
use crate::value::SecretValue;

/// A master key that will do.
const MASTER: &str = "correct horse battery staple";

fn store_with(folder: &Path, master: &str) -> Store {
    let sources = Sources { text: Some(Zeroizing::new(master.to_owned())), ..Sources::default() };
    Store::new(folder.to_owned(), sources, || "2026-07-28T12:00:00.000Z".to_owned())
}

fn store(folder: &TempDir) -> Store {
    store_with(folder.path(), MASTER)
}

fn name(path: &str) -> Name {
    Name::of_path(path).unwrap()
}

fn value(text: &str) -> SecretValue {
    let value = SecretValue::new(Zeroizing::new(text.to_owned()));
    value.unwrap_or_else(|error| panic!("{error}"))
}

fn set(store: &Store, path: &str, text: &str) {
    store.update(|contents| contents.vault.set(name(path), &value(text))).unwrap();
}

/// What a name stands for, or why it stands for nothing.
fn get(store: &Store, path: &str) -> String {
    let value = store.read().and_then(|contents| contents.value(&name(path)));
    value.map_or_else(|error| error.to_string(), |value| value.expose().to_owned())
}

fn listed(store: &Store) -> Vec<String> {
    let statuses = store.read().unwrap().statuses().into_iter();
    statuses.map(|(name, status)| format!("{} {}", name.path(), status.as_str())).collect()
}

#[test]
fn values_are_kept_encrypted_for_this_user_alone() {
    // TD-50, TD-51, TD-52, TD-57
    let folder = TempDir::new().unwrap();
    let writer = store(&folder);
    set(&writer, "global/GITHUB_TOKEN", "ghp_hushhush");
    set(&writer, "slack/SLACK_BOT_TOKEN", "xoxb-hushhush");
    let reader = store(&folder);
    assert_eq!(get(&reader, "global/GITHUB_TOKEN"), "ghp_hushhush");
    assert_eq!(get(&reader, "slack/SLACK_BOT_TOKEN"), "xoxb-hushhush");
    assert_eq!(listed(&reader), ["global/GITHUB_TOKEN set", "slack/SLACK_BOT_TOKEN set"]);
    let file = |name: &str| folder.path().join(name);
    let text = |name: &str| std::fs::read_to_string(file(name)).unwrap();
    let mode = |name: &str| file(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("secrets.enc"), mode("secrets.lock")), (0o600, 0o600));
    let ledger = "# Which secrets there are. Never a value: `toolman secrets set` takes those.\n\
        generation: 2\nglobal:\n  GITHUB_TOKEN:\n    status: set\nnamespaces:\n  slack:\n    \
        SLACK_BOT_TOKEN:\n      status: set\n";
    assert_eq!(text("secrets.meta.yaml"), ledger);
    assert!(!text("secrets.enc").contains("hush"));
    let envelope: serde_json::Value = serde_json::from_str(&text("secrets.enc")).unwrap();
    let members: Vec<_> = envelope.as_object().unwrap().keys().collect();
    let expected =
        ["version", "kdf", "salt", "wrapped_key", "generation", "entries", "created_at", "mac"];
    assert_eq!(members, expected);
    assert_eq!(envelope["kdf"]["iterations"], 600_000);
    assert_eq!(envelope["entries"]["slack/SLACK_BOT_TOKEN"]["generation"], 2);
    assert_eq!(text("secrets.lock").trim(), std::process::id().to_string());
}

#[test]
fn without_files_the_safe_is_empty() {
    // TD-63
    let folder = TempDir::new().unwrap();
    let reader = store_with(&folder.path().join("not/yet"), MASTER);
    assert_eq!(listed(&reader), [""; 0]);
    let unset = "secret `TOKEN` is not set; run `toolman secrets set TOKEN`";
    assert_eq!(get(&reader, "global/TOKEN"), unset);
    assert!(!folder.path().join("not").exists(), "reading makes nothing");
}

#[test]
fn secret_of_a_namespace_counts_for_more_than_a_global_one() {
    // TD-60
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    set(&store, "global/TOKEN", "for all");
    set(&store, "slack/TOKEN", "for slack");
    assert_eq!(get(&store, "slack/TOKEN"), "for slack");
    assert_eq!(get(&store, "github/TOKEN"), "for all");
    store
        .update(|contents| {
            assert!(contents.vault.remove(&name("slack/TOKEN")));
            assert!(contents.ledger.forget(&name("slack/TOKEN")));
            Ok::<_, Error>(())
        })
        .unwrap();
    assert_eq!(get(&store, "slack/TOKEN"), "for all");
    assert_eq!(listed(&store), ["global/TOKEN set"]);
}

#[test]
fn placeholder_is_no_value_and_gone_when_there_is_one() {
    // TD-50, TD-64
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    store.update_ledger(|ledger| ledger.note(name("slack/TOKEN"), Status::Placeholder)).unwrap();
    assert!(!folder.path().join("secrets.enc").exists(), "no key was needed");
    assert_eq!(listed(&store), ["slack/TOKEN placeholder"]);
    let status = |store: &Store, path: &str| store.read().unwrap().status(&name(path));
    assert_eq!(status(&store, "slack/TOKEN"), Status::Placeholder);
    assert_eq!(status(&store, "github/TOKEN"), Status::Missing);
    assert!(get(&store, "slack/TOKEN").contains("is not set"));
    set(&store, "slack/TOKEN", "for slack");
    assert_eq!(listed(&store), ["slack/TOKEN set"]);
    std::fs::remove_file(folder.path().join("secrets.enc")).unwrap();
    assert_eq!(listed(&store), ["slack/TOKEN missing"]);
    set(&store, "global/OTHER", "other");
    assert_eq!(store.read().unwrap().vault.generation(), 2, "it goes on where it was");
}

#[test]
fn ledger_of_tooldock_is_read_and_names_that_yaml_would_misread_are_quoted() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("secrets.meta.yaml");
    let text = "global:\n  A:\n    status: set\n  B: placeholder\n  C:\n  D:\n    status: odd\n\
        namespaces:\n  slack:\n    E:\n      status: placeholder\n      since: now\n  empty:\n";
    std::fs::write(&path, text).unwrap();
    let ledger = Ledger::read(folder.path()).unwrap();
    let found: Vec<String> = ledger
        .names()
        .map(|(name, status)| format!("{} {}", name.path(), status.as_str()))
        .collect();
    let expected = [
        "global/A set",
        "global/B placeholder",
        "global/C missing",
        "global/D missing",
        "slack/E placeholder",
    ];
    assert_eq!(found, expected);
    let store = store(&folder);
    for path in ["global/NO", "123/Y", "true/A"] {
        store.update_ledger(|ledger| ledger.note(name(path), Status::Placeholder)).unwrap();
    }
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.contains("  \"NO\":\n") && text.contains("  \"123\":\n    \"Y\":\n"), "{text}");
    assert!(Ledger::read(folder.path()).unwrap().status(&name("true/A")).is_some());
    for text in ["", "# nothing\n\n"] {
        std::fs::write(&path, text).unwrap();
        assert_eq!(Ledger::read(folder.path()).unwrap(), Ledger::default());
    }
    for text in ["global: [1", "global: 7", "namespaces:\n  a/b:\n    K: set\n"] {
        std::fs::write(&path, text).unwrap();
        let said = Ledger::read(folder.path()).unwrap_err().to_string();
        assert!(said.ends_with("mend the file: it is not written to"), "{said}");
    }
}

#[test]
fn value_that_no_process_can_be_given_is_refused() {
    let new = |text: &str| SecretValue::new(Zeroizing::new(text.to_owned())).err();
    assert_eq!(new(""), Some(ValueError::Empty));
    assert_eq!(new("a\0b"), Some(ValueError::Nul));
    assert_eq!(new(&"x".repeat(64 * 1024 + 1)), Some(ValueError::TooLong));
    assert_eq!(new(&"x".repeat(64 * 1024)), None);
    assert_eq!(SecretValue::from_bytes(&[0xff]).err(), Some(ValueError::NotText));
    assert_eq!(Scope::of_namespace(""), Ok(Scope::Global));
}
