//! Where master keys come from, and how they are exchanged.

use std::io::Write as _;
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use tempfile::TempDir;
use zeroize::Zeroizing;

use super::{MASTER, get, name, set, store, value};
use crate::error::Error;
use crate::master::Sources;
use crate::store::Store;

fn keyless(folder: &TempDir) -> Store {
    with(folder, Sources::default())
}

fn with(folder: &TempDir, sources: Sources) -> Store {
    Store::new(folder.path().to_owned(), sources, || "2026-07-28T12:00:00.000Z".to_owned())
}

fn write(path: &Path, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn key_file_is_made_once_and_only_where_nothing_needs_another() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("secrets.key");
    let first = keyless(&folder);
    assert_eq!(first.ensure_key().unwrap().as_deref(), Some(&*file));
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    let text = std::fs::read_to_string(&file).unwrap();
    assert_eq!(text.trim().len(), 43, "256 bits");
    set(&first, "global/A", "a value");
    let second = keyless(&folder);
    assert_eq!(second.ensure_key().unwrap(), None);
    assert_eq!(get(&second, "global/A"), "a value");
    std::fs::remove_file(&file).unwrap();
    let error = keyless(&folder).ensure_key().unwrap_err();
    assert!(matches!(error, Error::NoKey { .. }) && error.is_misuse());
    assert!(!file.exists(), "a new key would open nothing");
    assert!(matches!(keyless(&folder).read().err(), Some(Error::NoKey { .. })));
}

#[test]
fn named_file_counts_first_then_the_usual_one_then_the_variable() {
    let folder = TempDir::new().unwrap();
    set(&store(&folder), "global/A", "a value");
    let variable = || Some(Zeroizing::new("some other master key".to_owned()));
    write(&folder.path().join("secrets.key"), &format!("{MASTER}\n"), 0o600);
    let sources = Sources { text: variable(), ..Sources::default() };
    assert_eq!(get(&with(&folder, sources), "global/A"), "a value");
    let named = folder.path().join("named");
    write(&named, "yet another master key\n", 0o600);
    let sources = || Sources { file: Some(named.clone()), text: variable(), ..Sources::default() };
    assert!(get(&with(&folder, sources()), "global/A").starts_with("wrong key"));
    write(&named, MASTER, 0o640);
    assert!(get(&with(&folder, sources()), "global/A").contains("has mode 0640"));
    write(&named, MASTER, 0o400);
    assert_eq!(get(&with(&folder, sources()), "global/A"), "a value");
    std::fs::remove_file(&named).unwrap();
    let said = get(&with(&folder, sources()), "global/A");
    assert!(said.ends_with("there is no such file"), "{said}");
}

#[test]
fn weak_key_is_refused_unless_that_is_allowed() {
    // K08, TD-55
    let folder = TempDir::new().unwrap();
    for key in ["", "change_me", "fifteen letters"] {
        let sources = |allows_weak| Sources {
            text: Some(Zeroizing::new(key.to_owned())),
            allows_weak,
            ..Sources::default()
        };
        let error = with(&folder, sources(false)).master().err().unwrap();
        assert!(matches!(error, Error::WeakKey { .. }) && error.is_misuse(), "{error}");
        let allowed = with(&folder, sources(true)).master().unwrap().unwrap();
        assert!(allowed.weakness().is_some());
    }
}

#[test]
fn pipe_that_is_none_is_refused() {
    let folder = TempDir::new().unwrap();
    let refused = |fd: &str| {
        let sources = Sources { fd: Some(fd.to_owned()), ..Sources::default() };
        with(&folder, sources).master().err().unwrap().to_string()
    };
    assert!(refused("x").ends_with("it is no number"));
    assert!(refused("0").ends_with("use another number"));
    assert!(refused("9999").starts_with("can't take the master key from SECRETS_KEY_FD"));
    let file = std::fs::File::open("/dev/null").unwrap();
    assert!(refused(&file.as_raw_fd().to_string()).contains("it is no pipe"));
}

#[test]
fn key_comes_from_a_pipe_too() {
    let folder = TempDir::new().unwrap();
    set(&store(&folder), "global/A", "a value");
    let (reader, mut writer) = std::io::pipe().unwrap();
    writer.write_all(MASTER.as_bytes()).unwrap();
    drop(writer);
    let fd = Some(reader.as_raw_fd().to_string());
    let piped = with(&folder, Sources { fd, ..Sources::default() });
    assert_eq!(get(&piped, "global/A"), "a value");
}

#[test]
fn another_master_key_rewraps_and_a_running_reader_follows() {
    let folder = TempDir::new().unwrap();
    let running = keyless(&folder);
    running.ensure_key().unwrap();
    set(&running, "global/A", "a value");
    let vault = folder.path().join("secrets.enc");
    let key = folder.path().join("secrets.key");
    let entries = || {
        let envelope = std::fs::read(&vault).unwrap();
        serde_json::from_slice::<serde_json::Value>(&envelope).unwrap()["entries"].clone()
    };
    let (before, old_key) = (entries(), std::fs::read(&key).unwrap());
    assert_eq!(keyless(&folder).rotate(None).unwrap(), key);
    assert_eq!(entries(), before, "no value was touched");
    assert_ne!(std::fs::read(&key).unwrap(), old_key);
    assert!(!folder.path().join("secrets.key.new").exists());
    assert_eq!(get(&running, "global/A"), "a value");
    keyless(&folder).renew_data_key().unwrap();
    assert_ne!(entries(), before, "every value was encrypted anew");
    assert_eq!(get(&running, "global/A"), "a value");
    let named = folder.path().join("named");
    keyless(&folder).rotate(Some(&named)).unwrap();
    assert!(get(&keyless(&folder), "global/A").starts_with("wrong key"));
    let sources = Sources { file: Some(named), ..Sources::default() };
    assert_eq!(get(&with(&folder, sources), "global/A"), "a value");
    let error = store(&TempDir::new().unwrap()).rotate(None).unwrap_err();
    assert!(error.to_string().contains("`--new-key-file FILE`"), "{error}");
}

#[test]
fn rotation_that_was_killed_before_its_last_step_is_finished_by_the_next_writer() {
    let folder = TempDir::new().unwrap();
    keyless(&folder).ensure_key().unwrap();
    set(&keyless(&folder), "global/A", "a value");
    let key = folder.path().join("secrets.key");
    let beside = folder.path().join("secrets.key.new");
    let old = std::fs::read(&key).unwrap();
    keyless(&folder).rotate(None).unwrap();
    // As it is between the last two steps.
    let new = std::fs::read(&key).unwrap();
    std::fs::write(&key, &old).unwrap();
    write(&beside, std::str::from_utf8(&new).unwrap(), 0o600);
    assert_eq!(get(&keyless(&folder), "global/A"), "a value");
    assert!(beside.exists(), "reading changes nothing");
    keyless(&folder)
        .update(|contents| contents.vault.set(name("global/B"), &value("b value")))
        .unwrap();
    assert_eq!(std::fs::read(&key).unwrap(), new);
    assert!(!beside.exists());
    assert_eq!(get(&keyless(&folder), "global/B"), "b value");
}

#[test]
fn key_comes_from_a_program_too_which_no_shell_reads() {
    let folder = TempDir::new().unwrap();
    let key = folder.path().join("told");
    write(&key, "the-master-key-of-a-keyring\n", 0o600);
    let asking = |command: &str| {
        with(&folder, Sources { command: Some(command.to_owned()), ..Sources::default() })
    };
    let told = format!("cat {}", key.display());
    set(&asking(&told), "global/A", "a value");
    assert_eq!(get(&asking(&told), "global/A"), "a value");
    let refused = |command: &str| asking(command).master().err().unwrap().to_string();
    let origin = "can't take the master key from SECRETS_KEY_COMMAND: ";
    for (command, problem) in [
        (" ", "it is empty; name a program and its arguments"),
        ("no-such-program-anywhere x", "`no-such-program-anywhere` can't be run: "),
        ("false", "`false` failed with exit status: 1; run it by hand to see why"),
        ("true", "`true` wrote nothing; see whether it knows the key"),
        ("yes", "`yes` wrote over 4096 bytes, which is no key"),
    ] {
        let said = refused(command);
        assert!(said.starts_with(&format!("{origin}{problem}")), "{said}");
    }
    // Words are words: nothing is expanded, piped or run besides.
    let said = refused(&format!("{told} ; touch {}", folder.path().join("made").display()));
    assert!(said.contains("failed with") && !folder.path().join("made").exists(), "{said}");
    assert!(refused("echo short").contains("has fewer than 16 characters"));
    let error = asking("false").master().err().unwrap();
    assert!(error.is_misuse());
}
