//! ToolDock's files, read and written.

use tempfile::TempDir;

use super::{MASTER, get, listed, set, store, store_with};
use crate::error::Error;

/// Made by Python's `cryptography` with the key of these tests:
/// `{"global":{"GITHUB_TOKEN":"ghp_öld","EMPTY":null},"namespaces":{"slack":{"SLACK_BOT_TOKEN":"xoxb-old"}}}`
const OLD: &str = include_str!("tooldock.json");

#[test]
fn store_of_tooldock_is_read_and_upgraded_by_the_next_writing() {
    // TD-52, TD-53, TD-54
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("secrets.enc");
    write(&file, OLD);
    let safe = store(&folder);
    assert_eq!(get(&safe, "global/GITHUB_TOKEN"), "ghp_öld");
    assert_eq!(get(&safe, "slack/SLACK_BOT_TOKEN"), "xoxb-old");
    assert_eq!(listed(&safe), ["global/GITHUB_TOKEN set", "slack/SLACK_BOT_TOKEN set"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), OLD, "reading upgrades nothing");
    set(&safe, "global/NEW", "new value");
    let text = std::fs::read_to_string(&file).unwrap();
    assert!(text.contains("\"version\": 2") && text.contains("600000"), "{text}");
    assert!(text.contains("\"created_at\": \"2026-02-13T12:00:00+00:00\""), "{text}");
    assert_eq!(get(&store(&folder), "global/GITHUB_TOKEN"), "ghp_öld");
    assert_eq!(get(&store(&folder), "global/NEW"), "new value");
    // The old file would be a way back.
    std::fs::write(&file, OLD).unwrap();
    let error = store(&folder).read().err().unwrap();
    assert!(matches!(error, Error::RolledBack { found: 0, known: 1, .. }), "{error}");
}

#[test]
fn changed_store_of_tooldock_and_a_wrong_key_are_refused() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("secrets.enc");
    write(&file, OLD);
    let error = store_with(folder.path(), "another horse battery staple").read().err();
    assert!(matches!(error, Some(Error::WrongKey { .. })));
    let token = OLD.find("gAAAA").unwrap();
    for place in [token, token + 20, token + 40, token + 100, token + 150] {
        let mut changed = OLD.as_bytes().to_vec();
        changed[place] = if changed[place] == b'A' { b'B' } else { b'A' };
        std::fs::write(&file, changed).unwrap();
        assert!(store(&folder).read().is_err(), "byte {place}");
    }
    std::fs::write(&file, &OLD[..OLD.len() / 2]).unwrap();
    assert!(matches!(store(&folder).read().err(), Some(Error::Damaged { .. })));
}

#[test]
fn what_is_written_for_tooldock_can_be_read_again() {
    let folder = TempDir::new().unwrap();
    set(&store(&folder), "global/A", "one \"value\" with ümlauts");
    set(&store(&folder), "slack/A", "another");
    let text = store(&folder).export_fernet().unwrap();
    let there = TempDir::new().unwrap();
    write(&there.path().join("secrets.enc"), &text);
    let safe = store_with(there.path(), MASTER);
    assert_eq!(get(&safe, "global/A"), "one \"value\" with ümlauts");
    assert_eq!(get(&safe, "slack/A"), "another");
}

fn write(file: &std::path::Path, text: &str) {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::write(file, text).unwrap();
    std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o600)).unwrap();
}
