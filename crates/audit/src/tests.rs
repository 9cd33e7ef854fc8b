//! The trail in a folder of its own: written, continued, spoiled, verified.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tempfile::TempDir;

use crate::entry::{Call, Decision, Event};
use crate::reader::{Filter, each_call};
use crate::verify::{Report, verify};
use crate::writer::{Hide, Settings, Writer};

/// 2026-11-16, 08:02:01.
const NOW: u64 = 1_794_816_121;

fn day(days: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(NOW + days * 24 * 60 * 60)
}

fn folder() -> (TempDir, PathBuf) {
    let dir = TempDir::new().unwrap();
    let folder = dir.path().join("logs/audit");
    (dir, folder)
}

fn writer(folder: &Path) -> Writer {
    let hide: Hide = Arc::new(|event| {
        let text = std::str::from_utf8(event).unwrap();
        text.contains("hush").then(|| text.replace("hush", "[hidden]").into())
    });
    let settings = Settings { folder: folder.to_owned(), retention_days: 3, hide };
    Writer::new(settings, Event::Started { run: "r".into(), version: "0".into() })
}

fn write(writer: &mut Writer, days: u64, names: &[&str]) {
    let call = |name: &&str| {
        let call = Call { asked: (*name).to_owned().into(), ..Call::default() };
        (day(days), Event::Call(Box::new(call)))
    };
    writer.write(day(days), names.iter().map(call).collect::<Vec<_>>()).unwrap();
}

fn names(folder: &Path) -> Vec<String> {
    let mut names = Vec::new();
    each_call(folder, &Filter::default(), |_, call| names.push(call.asked.to_string())).unwrap();
    names
}

#[track_caller]
fn check(folder: &Path, expected: &str) {
    let Report { files, records, torn, lost, broken, .. } = verify(folder).unwrap();
    let broken = broken.first().map_or(String::new(), |broken| {
        let file = broken.file.file_name().unwrap().to_str().unwrap();
        format!(" {file}:{}: {}", broken.line, broken.reason)
    });
    assert_eq!(format!("{files} {records} {torn} {lost}{broken}"), expected);
}

#[test]
fn chain_goes_on_over_days_and_restarts_and_only_the_owner_can_read_it() {
    let (_dir, folder) = folder();
    let mut first = writer(&folder);
    write(&mut first, 0, &["a", "b"]);
    write(&mut first, 1, &["c"]);
    drop(first);
    write(&mut writer(&folder), 1, &["d"]);
    check(&folder, "2 6 0 0");
    assert_eq!(names(&folder), ["a", "b", "c", "d"]);
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&folder), 0o700);
    assert_eq!(mode(&folder.join("2026-11-16.jsonl")), 0o600);
}

#[test]
fn processes_at_the_same_time_write_chains_of_their_own() {
    let (_dir, folder) = folder();
    let mut writers = [writer(&folder), writer(&folder)];
    for writer in &mut writers {
        write(writer, 0, &["a"]);
    }
    assert!(folder.join("2026-11-16.1.jsonl").exists());
    write(&mut writers[0], 0, &["b"]);
    check(&folder, "2 5 0 0");
    drop(writers);
    write(&mut writer(&folder), 0, &["c"]);
    check(&folder, "2 7 0 0");
}

#[test]
fn old_days_are_removed_and_the_rest_still_holds() {
    let (_dir, folder) = folder();
    let mut writer = writer(&folder);
    for days in 0..5 {
        write(&mut writer, days, &["a"]);
    }
    std::fs::write(folder.join("notes.txt"), "mine").unwrap();
    check(&folder, "3 3 0 0");
    assert!(folder.join("notes.txt").exists());
}

#[test]
fn torn_line_is_kept_and_told_and_breaks_nothing() {
    // Cut within its last line, on the same day and on another.
    for days in [0, 1] {
        let (_dir, folder) = folder();
        write(&mut writer(&folder), 0, &["a", "b"]);
        let path = folder.join("2026-11-16.jsonl");
        let text = std::fs::read(&path).unwrap();
        std::fs::write(&path, &text[..text.len() - 40]).unwrap();
        check(&folder, "1 2 0 0");
        write(&mut writer(&folder), days, &["c"]);
        check(&folder, &format!("{} 5 1 0", days + 1));
        assert_eq!(names(&folder), ["a", "c"]);
        let kept = std::fs::read(&path).unwrap();
        assert!(kept.starts_with(&text[..text.len() - 40]), "nothing is removed");
        write(&mut writer(&folder), days, &["d"]);
        check(&folder, &format!("{} 7 1 0", days + 1));
    }
}

#[test]
fn every_way_to_spoil_a_trail_is_found_at_its_place() {
    let spoil = |change: fn(&mut Vec<String>), expected: &str| {
        let (_dir, folder) = folder();
        write(&mut writer(&folder), 0, &["a", "b", "c", "d"]);
        let path = folder.join("2026-11-16.jsonl");
        let text = std::fs::read_to_string(&path).unwrap();
        let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
        change(&mut lines);
        std::fs::write(&path, lines.join("\n") + "\n").unwrap();
        check(&folder, &format!("1 {expected}"));
    };
    let unlinked = "does not follow the line before it: that one was changed, or lines are missing";
    spoil(|_| {}, "5 0 0");
    let at = |line, records| format!("{records} 0 0 2026-11-16.jsonl:{line}: {unlinked}");
    spoil(|lines| lines[2] = lines[2].replace("\"b\"", "\"x\""), &at(4, 3));
    spoil(|lines| _ = lines.remove(2), &at(3, 2));
    spoil(|lines| lines.swap(2, 3), &at(3, 2));
    spoil(|lines| lines.insert(2, lines[1].clone()), &at(3, 2));
    spoil(|lines| lines[3] = "{}".into(), "3 0 0 2026-11-16.jsonl:4: is no record");
    spoil(|lines| lines[4] = "x".into(), "4 0 0 2026-11-16.jsonl:5: is no record");
    let headless = "is the first of its chain, but does not say so";
    spoil(
        |lines| lines[0] = lines[0].replace("0000", "0001"),
        &format!("0 0 0 2026-11-16.jsonl:1: {headless}"),
    );
}

#[test]
fn failure_loses_what_was_to_be_written_and_is_tried_again_later() {
    let (dir, folder) = folder();
    // A file stands where the folder must be.
    std::fs::write(dir.path().join("logs"), "").unwrap();
    let mut writer = writer(&folder);
    let lost = || vec![(day(0), Event::Lost { count: 3 })];
    let told = |result: Result<(), crate::error::Error>| result.unwrap_err().to_string();
    assert!(told(writer.write(day(0), lost())).contains("can't use"));
    std::fs::remove_file(dir.path().join("logs")).unwrap();
    assert!(told(writer.write(day(0), lost())).contains("a moment ago"));
    writer.failed = None;
    writer.write(day(0), lost()).unwrap();
    check(&folder, "1 2 0 3");
}

#[test]
fn full_disk_leaves_no_part_of_a_line_behind() {
    let (_dir, folder) = folder();
    let mut writer = writer(&folder);
    write(&mut writer, 0, &["a"]);
    // The file of the next day is on a disk that is full.
    let next = folder.join("2026-11-17.jsonl");
    std::os::unix::fs::symlink("/dev/full", &next).unwrap();
    let error = writer.write(day(1), vec![(day(1), Event::Lost { count: 1 })]).unwrap_err();
    assert!(error.to_string().contains("No space left"), "{error}");
    std::fs::remove_file(&next).unwrap();
    writer.failed = None;
    write(&mut writer, 1, &["b"]);
    check(&folder, "2 3 0 0");
}

#[test]
fn folder_that_was_removed_is_made_again() {
    let (_dir, folder) = folder();
    let mut writer = writer(&folder);
    write(&mut writer, 0, &["a"]);
    std::fs::remove_dir_all(&folder).unwrap();
    write(&mut writer, 0, &["b"]);
    assert_eq!(names(&folder), ["b"]);
}

#[test]
fn calls_are_found_by_agent_name_time_and_decision() {
    let (_dir, folder) = folder();
    let call = |agent: &'static str, name: &'static str, decision| Call {
        agent: Some(agent.into()),
        asked: format!("git.{name}").into(),
        name: Some(format!("git_{name}").into()),
        item: Some(name.into()),
        decision,
        ..Call::default()
    };
    let mut writer = writer(&folder);
    for (days, call) in [
        (0, call("ada", "log", Decision::Allowed)),
        (1, call("ada", "push", Decision::Denied)),
        (2, call("bob", "log", Decision::Inactive)),
    ] {
        writer.write(day(days), [(day(days), Event::Call(Box::new(call)))]).unwrap();
    }
    let check = |filter: Filter, expected: &[&str]| {
        let mut found = Vec::new();
        let note =
            |_: &str, call: &Call| found.push(format!("{:?} {}", call.agent, call.subject()));
        assert_eq!(each_call(&folder, &filter, note).unwrap(), 0);
        let expected: Vec<_> = expected
            .iter()
            .map(|text| text.split_once(' ').unwrap())
            .map(|(agent, name)| format!("{:?} {name}", Some(agent)))
            .collect();
        assert_eq!(found, expected, "{filter:?}");
    };
    let by = Filter::default;
    check(by(), &["ada git_log", "ada git_push", "bob git_log"]);
    check(Filter { agent: Some("ada".into()), ..by() }, &["ada git_log", "ada git_push"]);
    for tool in ["git_log", "git.log", "log", "git.l*"] {
        check(Filter { tool: Some(tool.into()), ..by() }, &["ada git_log", "bob git_log"]);
    }
    check(Filter { denied: true, ..by() }, &["ada git_push", "bob git_log"]);
    let since = Some("2026-11-17T00:00:00.000000Z".into());
    check(Filter { since, ..by() }, &["ada git_push", "bob git_log"]);
    let missing = each_call(Path::new("/nowhere"), &by(), |_, _| {}).unwrap_err();
    assert!(missing.to_string().contains("there is no audit trail in `/nowhere`; `toolman serve`"));
}

#[test]
fn what_nobody_may_read_is_taken_out_before_a_line_is_bound_to_the_others() {
    let (_dir, folder) = folder();
    let mut writer = writer(&folder);
    write(&mut writer, 0, &["shows hush", "another"]);
    assert_eq!(names(&folder), ["shows [hidden]", "another"]);
    let report = verify(&folder).unwrap();
    assert!(report.broken.is_empty() && report.records == 3, "{report:?}");
}
