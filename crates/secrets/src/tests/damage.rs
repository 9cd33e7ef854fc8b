//! Files that are not what was written.

use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;

use serde_json::Value;
use tempfile::TempDir;
use zeroize::Zeroizing;

use super::{MASTER, get, name, set, store, store_with, value};
use crate::error::Error;
use crate::master::Sources;
use crate::store::Store;

/// A safe with two values, its file and what is in it.
fn filled() -> (TempDir, Store, PathBuf, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    store
        .update(|contents| {
            contents.vault.set(name("global/A"), &value("first value"))?;
            contents.vault.set(name("slack/A"), &value("second value"))
        })
        .unwrap();
    let file = folder.path().join("secrets.enc");
    let bytes = std::fs::read(&file).unwrap();
    (folder, store, file, bytes)
}

/// Why the file is refused.
fn refusal(store: &Store) -> Error {
    store.read().err().unwrap_or_else(|| panic!("it was accepted"))
}

#[test]
fn every_byte_that_is_flipped_is_noticed() {
    let (_folder, store, file, bytes) = filled();
    let (mut by_key, mut by_checksum) = (0, 0);
    for place in 0..bytes.len() {
        // A bit, and white space that would mean the same.
        let blank = [b' ', b'\n', b'\t'].into_iter().find(|blank| *blank != bytes[place]);
        let others = [
            bytes[place] ^ 1,
            if bytes[place].is_ascii_whitespace() { blank.unwrap() } else { bytes[place] ^ 0x20 },
        ];
        for other in others {
            let mut changed = bytes.clone();
            changed[place] = other;
            std::fs::write(&file, &changed).unwrap();
            match refusal(&store) {
                Error::WrongKey { .. } => by_key += 1,
                Error::Altered { .. } => by_checksum += 1,
                Error::Damaged { .. } | Error::Version { .. } => {}
                error => panic!("byte {place}: {error}"),
            }
        }
    }
    assert!(by_key > 50 && by_checksum > 50, "{by_key} by the key, {by_checksum} by the checksum");
    std::fs::write(&file, &bytes).unwrap();
    assert_eq!(get(&store, "global/A"), "first value");
}

#[test]
fn file_that_is_cut_at_any_length_is_refused_and_an_empty_one_is_no_empty_safe() {
    // K03
    let (_folder, store, file, bytes) = filled();
    for length in 0..bytes.len() {
        std::fs::write(&file, &bytes[..length]).unwrap();
        let error = refusal(&store);
        assert!(matches!(error, Error::Damaged { .. }), "{length}: {error}");
        if length == 0 {
            let words =
                format!("`{}` is damaged: it is empty; put a copy of it back", file.display());
            assert_eq!(error.to_string(), words);
        }
    }
    // Nothing is written over it.
    let update = store.update(|contents| contents.vault.set(name("global/B"), &value("new value")));
    assert!(matches!(update, Err(Error::Damaged { .. })));
    assert_eq!(std::fs::read(&file).unwrap(), bytes[..bytes.len() - 1]);
    std::fs::write(&file, [&bytes[..], b"\n"].concat()).unwrap();
    assert!(matches!(refusal(&store), Error::Damaged { .. }), "nor may there be more");
}

#[test]
fn wrong_key_is_named_with_its_origin_and_nothing_is_changed() {
    // K01
    let (folder, _, file, bytes) = filled();
    let stranger = store_with(folder.path(), "another horse battery staple");
    let words = format!(
        "wrong key or damaged file: `{}` does not open with the key from SECRETS_KEY; give the key that it \
         was written with, or put a copy of it back",
        file.display()
    );
    assert_eq!(refusal(&stranger).to_string(), words);
    let update = stranger.update(|contents| contents.vault.set(name("global/B"), &value("value")));
    assert_eq!(update.unwrap_err().to_string(), words);
    assert_eq!(std::fs::read(&file).unwrap(), bytes);
}

/// What somebody does to the entries of the file.
type Attack<'a> = &'a dyn Fn(&mut serde_json::Map<String, Value>);

#[test]
fn entries_that_were_swapped_removed_or_put_in_are_noticed() {
    let (_folder, store, file, bytes) = filled();
    let (_elsewhere, _, _, other) = filled();
    let other: Value = serde_json::from_slice(&other).unwrap();
    let swap = |entries: &mut serde_json::Map<String, Value>| {
        let first = entries["global/A"].take();
        let second = std::mem::replace(&mut entries["slack/A"], first);
        entries["global/A"] = second;
    };
    let attacks: [Attack<'_>; 5] = [
        &swap,
        &|entries| _ = entries.shift_remove("slack/A"),
        &|entries| entries["global/A"] = other["entries"]["global/A"].clone(),
        &|entries| _ = entries.insert("x/A".into(), entries["slack/A"].clone()),
        &|entries| entries["slack/A"]["generation"] = 7.into(),
    ];
    for attack in attacks {
        let mut envelope: Value = serde_json::from_slice(&bytes).unwrap();
        attack(envelope["entries"].as_object_mut().unwrap());
        std::fs::write(&file, format!("{envelope:#}\n")).unwrap();
        let error = refusal(&store);
        assert!(matches!(error, Error::Altered { .. }), "{error}");
        assert!(error.to_string().contains("was changed by somebody without the key"), "{error}");
    }
}

#[test]
fn older_file_that_was_put_back_is_named_a_rollback() {
    let (folder, store, file, bytes) = filled();
    set(&store, "global/A", "newer value");
    std::fs::write(&file, &bytes).unwrap();
    let error = refusal(&store);
    assert!(matches!(error, Error::RolledBack { found: 1, known: 2, .. }), "{error}");
    assert!(error.to_string().contains("was rolled back: it is of generation 1"), "{error}");
    // A vault that is ahead was written by somebody who was killed before the ledger.
    let ledger = folder.path().join("secrets.meta.yaml");
    let text = std::fs::read_to_string(&ledger).unwrap();
    std::fs::write(&ledger, text.replace("generation: 2", "generation: 0")).unwrap();
    assert_eq!(get(&super::store(&folder), "global/A"), "first value");
}

#[test]
fn newer_version_is_not_taken_for_damage() {
    let (_folder, store, file, bytes) = filled();
    let text = String::from_utf8(bytes).unwrap();
    std::fs::write(&file, text.replace("\"version\": 2", "\"version\": 3")).unwrap();
    assert!(matches!(refusal(&store), Error::Version { version: 3, .. }));
    std::fs::write(&file, "{\"version\": 9}").unwrap();
    assert!(matches!(refusal(&store), Error::Version { version: 9, .. }));
    let weak = text.replace("\"iterations\": 600000", "\"iterations\": 599999");
    std::fs::write(&file, weak).unwrap();
    assert!(refusal(&store).to_string().contains("it asks for too few or too many rounds"));
}

#[test]
fn file_that_others_can_read_or_that_is_a_link_is_refused_with_the_fix() {
    // K06
    let (folder, store, file, bytes) = filled();
    let chmod = |mode| {
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    chmod(0o644);
    let words = format!(
        "`{0}` has mode 0644, so others may read or change it; run `chmod 600 {0}`",
        file.display()
    );
    let error = refusal(&store);
    assert!(error.is_misuse());
    assert_eq!(error.to_string(), words);
    chmod(0o600);
    assert_eq!(get(&store, "global/A"), "first value");
    let elsewhere = folder.path().join("elsewhere");
    std::fs::write(&elsewhere, &bytes).unwrap();
    std::fs::remove_file(&file).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let words = "is a link, which is not followed; put the file itself there";
    assert!(refusal(&store).to_string().ends_with(words));
    std::fs::remove_file(&file).unwrap();
    std::fs::create_dir(&file).unwrap();
    assert!(refusal(&store).to_string().ends_with("is no regular file; remove it"));
}

/// Both files, as they are now.
fn both(folder: &TempDir) -> [Vec<u8>; 2] {
    ["secrets.enc", "secrets.meta.yaml"]
        .map(|name| std::fs::read(folder.path().join(name)).unwrap())
}

fn put_back(folder: &TempDir, files: &[Vec<u8>; 2]) {
    for (name, bytes) in ["secrets.enc", "secrets.meta.yaml"].iter().zip(files) {
        std::fs::write(folder.path().join(name), bytes).unwrap();
    }
}

#[test]
fn vault_and_ledger_that_were_put_back_together_are_noticed_by_who_has_seen_later_ones() {
    let (folder, running, _, _) = filled();
    let older = both(&folder);
    set(&running, "global/A", "newer value");
    put_back(&folder, &older);
    let error = refusal(&running);
    assert!(matches!(error, Error::RolledBack { found: 1, known: 2, .. }), "{error}");
    assert!(error.to_string().ends_with("start toolman anew to accept it"), "{error}");
    let write = running.update(|contents| contents.vault.set(name("global/B"), &value("other")));
    assert!(matches!(write, Err(Error::RolledBack { .. })));
    assert_eq!(get(&store(&folder), "global/A"), "first value", "a newcomer knows nothing");
}

#[test]
fn what_is_remembered_elsewhere_outlives_the_process_and_is_of_one_safe_alone() {
    let (folder, elsewhere) = (TempDir::new().unwrap(), TempDir::new().unwrap());
    let memory = elsewhere.path().join("not/yet");
    let remembering = || store(&folder).with_memory(&memory);
    set(&remembering(), "global/A", "first value");
    let older = both(&folder);
    set(&remembering(), "global/A", "newer value");
    put_back(&folder, &older);
    let said = refusal(&remembering()).to_string();
    let mark = std::fs::read_dir(&memory).unwrap().next().unwrap().unwrap().path();
    assert!(said.ends_with(&format!("delete `{}` to accept it", mark.display())), "{said}");
    std::fs::remove_file(mark).unwrap();
    assert_eq!(get(&remembering(), "global/A"), "first value");
    // A new safe in the same place begins anew.
    for _ in 0..3 {
        set(&remembering(), "global/A", "later value");
    }
    for name in ["secrets.enc", "secrets.meta.yaml"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    let sources = Sources { text: Some(Zeroizing::new(MASTER.to_owned())), ..Sources::default() };
    let anew = Store::new(folder.path().to_owned(), sources, || "2026-07-29".to_owned());
    let anew = anew.with_memory(&memory);
    set(&anew, "global/A", "of another safe");
    assert_eq!(get(&anew, "global/A"), "of another safe");
}
