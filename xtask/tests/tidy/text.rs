//! Rules about lines of text.

use crate::{Source, check, hold_all_to, numbered};

const FILE_LINES_MAX: usize = 500;
const TEST_FILE_LINES_MAX: usize = 700;

// Written in two halves, so that this file does not offend.
const MACHINE_FOLDERS: [&str; 3] =
    [concat!("/", "work/"), concat!("/", "root/"), concat!("/", "home/")];
const REMINDER: &str = concat!("TO", "DO");

fn has_head(source: &Source) -> Vec<String> {
    if !source.is_rust() || source.text.starts_with("//!") {
        return Vec::new();
    }
    vec![source.offence(1, "begin the file with `//!`: its job in one line")]
}

#[test]
fn every_file_says_first_what_it_is_for() {
    hold_all_to(has_head);
}

#[test]
fn file_without_a_head_is_found() {
    check(
        has_head,
        "a.rs",
        "use std::fs;\n",
        &["a.rs:1: begin the file with `//!`: its job in one line"],
    );
    check(has_head, "a.rs", "//! The letter a.\n", &[]);
}

fn is_short(source: &Source) -> Vec<String> {
    let is_test = source.path.contains("/tests/") || source.path.ends_with("/tests.rs");
    let most = if is_test { TEST_FILE_LINES_MAX } else { FILE_LINES_MAX };
    let lines = source.text.lines().count();
    if !source.is_rust() || lines <= most {
        return Vec::new();
    }
    let what = format!("{lines} lines; the most is {most}: look for the second subject");
    vec![source.offence(lines, &what)]
}

#[test]
fn every_file_has_one_subject() {
    hold_all_to(is_short);
}

#[test]
fn long_file_is_found_and_a_test_may_be_longer() {
    let text = |lines| "//\n".repeat(lines);
    check(is_short, "crates/a/src/b.rs", &text(500), &[]);
    check(
        is_short,
        "crates/a/src/b.rs",
        &text(501),
        &["crates/a/src/b.rs:501: 501 lines; the most is 500: look for the second subject"],
    );
    for path in ["crates/a/tests/it/b.rs", "crates/a/src/tests.rs"] {
        check(is_short, path, &text(700), &[]);
        assert_eq!(is_short(&Source { path: path.to_owned(), text: text(701) }).len(), 1);
    }
}

fn has_issue_for_reminders(source: &Source) -> Vec<String> {
    if !source.is_rust() {
        return Vec::new();
    }
    let mut offences = Vec::new();
    for (number, line) in numbered(&source.text) {
        for (_, after) in
            line.match_indices(REMINDER).map(|(at, word)| line.split_at(at + word.len()))
        {
            let issue = after.strip_prefix("(#").and_then(|rest| rest.split_once(')'));
            let has_issue = issue
                .is_some_and(|(id, _)| !id.is_empty() && id.bytes().all(|b| b.is_ascii_digit()));
            if !has_issue {
                let what = format!("write `{REMINDER}(#12)`, with the number of an issue");
                offences.push(source.offence(number, &what));
            }
        }
    }
    offences
}

#[test]
fn every_reminder_has_an_issue() {
    hold_all_to(has_issue_for_reminders);
}

#[test]
fn reminder_without_an_issue_is_found() {
    let found = format!("a.rs:2: write `{REMINDER}(#12)`, with the number of an issue");
    for after in ["", ": later", "(later)", "(#)", "(#1x)", "(#12"] {
        let text = format!("//! A.\n// {REMINDER}{after}\n");
        check(has_issue_for_reminders, "a.rs", &text, &[&found]);
    }
    check(has_issue_for_reminders, "a.rs", &format!("// {REMINDER}(#12): later\n"), &[]);
}

fn fits_every_machine(source: &Source) -> Vec<String> {
    if source.path.ends_with("Cargo.lock") {
        return Vec::new();
    }
    let mut offences = Vec::new();
    for (number, line) in numbered(&source.text) {
        for folder in MACHINE_FOLDERS {
            // In the middle of a path or an address such a folder is nobody's home.
            let starts_path = line.match_indices(folder).any(|(at, _)| {
                let before = line.get(..at).and_then(|before| before.chars().next_back());
                !before.is_some_and(|c| c.is_alphanumeric() || "._-~})>".contains(c))
            });
            if starts_path {
                let what = format!("`{folder}` is a path of one machine; write a relative one");
                offences.push(source.offence(number, &what));
            }
        }
    }
    offences
}

#[test]
fn no_file_knows_the_machine_it_was_written_on() {
    hold_all_to(fits_every_machine);
}

#[test]
fn path_of_one_machine_is_found() {
    for folder in MACHINE_FOLDERS {
        let found = format!("a.md:2: `{folder}` is a path of one machine; write a relative one");
        for before in ["see ", "`", "\"", "file://", "="] {
            check(fits_every_machine, "a.md", &format!("\n{before}{folder}x\n"), &[&found]);
        }
        for before in ["example.org", "$HOME", "..", "~"] {
            check(fits_every_machine, "a.md", &format!("{before}{folder}x\n"), &[]);
        }
        check(fits_every_machine, "Cargo.lock", folder, &[]);
    }
}

fn names_no_registry(source: &Source) -> Vec<String> {
    if !source.path.ends_with("package-lock.json") {
        return Vec::new();
    }
    let resolved = numbered(&source.text).filter(|(_, line)| line.contains("\"resolved\":"));
    let what = "leave out `resolved`: npm asks the registry that is configured";
    resolved.map(|(number, _)| source.offence(number, what)).collect()
}

#[test]
fn no_lock_file_names_a_registry() {
    hold_all_to(names_no_registry);
}

#[test]
fn registry_in_a_lock_file_is_found() {
    check(
        names_no_registry,
        "peers/npm/package-lock.json",
        "{\n\"resolved\": \"x\"\n}\n",
        &[
            "peers/npm/package-lock.json:2: leave out `resolved`: npm asks the registry that is configured",
        ],
    );
    check(names_no_registry, "peers/npm/package-lock.json", "{}\n", &[]);
}
