//! Rules about the names of files and folders.

use crate::{Source, check, hold_all_to};

/// Names that say nothing about what is inside.
const EMPTY_NAMES: [&str; 7] = ["util", "utils", "common", "helper", "helpers", "misc", "types"];

fn is_well_named(source: &Source) -> Vec<String> {
    let ours = ["crates/", "xtask/", "peers/"].iter().any(|folder| source.path.starts_with(folder));
    if !ours {
        return Vec::new();
    }
    let mut offences = Vec::new();
    for part in source.path.split('/') {
        let stem = part.split('.').next().unwrap_or(part);
        if EMPTY_NAMES.contains(&stem) {
            offences.push(source.offence(1, &format!("`{part}` says nothing; name the subject")));
        }
        if part == "mod.rs" {
            offences.push(source.offence(1, "write `foo.rs` beside `foo/`, not `foo/mod.rs`"));
        }
    }
    offences
}

#[test]
fn every_file_and_folder_is_named_after_its_subject() {
    hold_all_to(is_well_named);
}

#[test]
fn empty_name_is_found() {
    check(
        is_well_named,
        "crates/a/src/utils.rs",
        "",
        &["crates/a/src/utils.rs:1: `utils.rs` says nothing; name the subject"],
    );
    check(
        is_well_named,
        "crates/common/src/a.rs",
        "",
        &["crates/common/src/a.rs:1: `common` says nothing; name the subject"],
    );
    check(
        is_well_named,
        "crates/a/src/b/mod.rs",
        "",
        &["crates/a/src/b/mod.rs:1: write `foo.rs` beside `foo/`, not `foo/mod.rs`"],
    );
    check(is_well_named, "crates/a/src/uncommon.rs", "", &[]);
}
