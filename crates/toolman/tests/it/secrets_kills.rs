//! Writers that are killed at any moment.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use secrets::master::Sources;
use secrets::names::Name;
use secrets::store::Store;
use testkit::binary::Folder;

use crate::MACHINE;
use crate::secrets_cli::{empty, run, set};

/// Values that take a while to write.
fn large(mark: char) -> String {
    mark.to_string().repeat(20_000)
}

fn reader(data: &Path) -> Store {
    Store::new(data.to_owned(), Sources::default(), String::new)
}

/// A folder whose writers are killed, and what became of them.
struct Lane {
    folder: Folder,
    reader: Store,
    /// After how long the next one is killed.
    moment: Duration,
    old: u32,
    new: u32,
}

/// Kills so many writers around the moment that matters.
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
fn kill_writers(lane: &mut Lane, rounds: u32) {
    let Lane { folder, reader, moment, old, new } = lane;
    let vault = reader.vault_file();
    let name = Name::global("LARGE".parse().unwrap());
    let value = || {
        let value = reader.read().and_then(|contents| contents.value(&name));
        value.map(|value| value.expose().to_owned())
    };
    let inode = || std::fs::metadata(&vault).unwrap().ino();
    for round in 0..rounds {
        let (before, mark) = (inode(), ['b', 'a'][(round % 2) as usize]);
        let held = value().unwrap();
        let file = folder.path().join(mark.to_string());
        let mut command = folder.command(&["secrets", "set", "LARGE"]).into_std();
        command.stdin(std::fs::File::open(file).unwrap());
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let started = Instant::now();
        let mut child = command.spawn().unwrap();
        while started.elapsed() < *moment && child.try_wait().unwrap().is_none() {
            std::thread::sleep(Duration::from_micros(50));
        }
        child.kill().unwrap();
        child.wait().unwrap();
        let found = value().map_err(|error| format!("round {round}: {error}")).unwrap();
        // The next one is killed later if this was too early, else earlier.
        let step = *moment / (16 + round % 48);
        if inode() == before {
            assert!(found == held, "round {round}: the old one, whole");
            *old += 1;
            *moment += step;
        } else {
            assert!(found == large(mark), "round {round}: the new one, whole");
            *new += 1;
            *moment -= step;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 3)]
async fn killed_at_any_moment_the_vault_is_the_old_one_or_the_new_one() {
    // TD-57
    let mut lanes = Vec::new();
    for _ in 0..2 {
        let folder = empty();
        for mark in ['a', 'b'] {
            std::fs::write(folder.path().join(mark.to_string()), large(mark)).unwrap();
        }
        set(&folder, "LARGE", "global", &large('a')).await;
        let reader = reader(&folder.path().join("data/toolman"));
        let mut lane = Lane { folder, reader, moment: Duration::from_millis(100), old: 0, new: 0 };
        lanes.push(tokio::spawn(async move {
            for _ in 0..10 {
                // In small portions, so that nobody who needs the machine alone waits for long.
                let _machine = MACHINE.read().await;
                let killing = tokio::task::spawn_blocking(move || {
                    kill_writers(&mut lane, 25);
                    lane
                });
                lane = killing.await.unwrap();
            }
            lane
        }));
    }
    let (mut old, mut new) = (0, 0);
    for lane in lanes {
        let Lane { folder, old: more_old, new: more_new, .. } = lane.await.unwrap();
        (old, new) = (old + more_old, new + more_new);
        // What was left behind is in nobody's way.
        set(&folder, "LARGE", "global", "small").await;
        let (code, said) = run(&folder, &["list"], "").await;
        assert_eq!(code, Some(0), "{said}");
        let left = std::fs::read_dir(folder.path().join("data/toolman")).unwrap();
        let mut left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["secrets.enc", "secrets.key", "secrets.lock", "secrets.meta.yaml"]);
    }
    assert!(old > 50 && new > 50, "both happen: {old} old, {new} new");
}

#[tokio::test]
async fn several_writers_at_once_lose_nothing() {
    // TD-57
    let folder = std::sync::Arc::new(empty());
    set(&folder, "FIRST", "global", "made the key").await;
    let mut running = Vec::new();
    for number in 0..8 {
        let folder = std::sync::Arc::clone(&folder);
        running.push(tokio::spawn(async move {
            set(&folder, &format!("NUMBER_{number}"), "global", "a value").await;
        }));
    }
    for writer in running {
        writer.await.unwrap();
    }
    let (_, said) = run(&folder, &["list"], "").await;
    assert_eq!(said.lines().count(), 9, "{said}");
}
