//! Folders that are looked at by themselves, while somebody writes to them without end.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::time::{Duration, Instant};

use serde_json::json;
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use tokio::time::{sleep, timeout};

use super::{Data, Dock, HELLO};
use crate::TOOLMAN;
use crate::up::Up;

const EVENTS: usize = 10_000;
const STORM: Duration = Duration::from_secs(5);
const RELOADS_MAX: usize = 5;

#[tokio::test]
async fn storm_of_changes_is_a_few_reloads_and_the_last_one_counts() {
    // TD-118, HARDENING L28
    let _machine = crate::MACHINE.read().await;
    let data = Data::new(&[("a/t.py", HELLO)]);
    let log = data.path().join("log");
    let mut command = Folder::new(TOOLMAN).command(&["serve", "--listen", "127.0.0.1:0"]);
    command.arg("--data-dir").arg(data.path()).current_dir(data.path());
    command.env("ENABLE_FS_WATCHER", "1").env("FS_WATCHER_DEBOUNCE_MS", "50");
    command.env("TOOLMAN_LOG", "warn,toolman::reload=info").env("NO_COLOR", "1");
    command.stderr(File::create(&log).unwrap());
    let dock = Dock::spawn(command).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    let reloads = || std::fs::read_to_string(&log).unwrap().matches("reloaded").count();

    let (began, file) =
        (Instant::now(), File::create(data.path().join("tools/a/notes.txt")).unwrap());
    let mut events = 0;
    // It goes on until somebody has taken notice, who must not wait for its end.
    while events < EVENTS || began.elapsed() < STORM || reloads() == 0 {
        assert!(began.elapsed() < PATIENCE, "who never rests is read, too");
        for _ in 0..EVENTS / 250 {
            file.write_at(events.to_string().as_bytes(), 0).unwrap();
            events += 1;
        }
        sleep(STORM / 250).await;
    }
    data.write("a/t.py", &HELLO.replace("Hello,", "At last,"));
    let served = async {
        while dock.text("a", "hello", &json!({})).await != "At last, World!" {
            sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(PATIENCE, served).await.expect("what was written last is served");
    let (reloads, took) = (reloads(), began.elapsed());
    println!("{events} events in {took:?}: {reloads} reloads");
    assert!(reloads <= RELOADS_MAX, "{reloads} reloads in {took:?}");
}

#[tokio::test]
async fn newcomers_see_new_tools_without_a_reload_unless_they_decline() {
    // TD-118
    for (watch, is_seen) in [("", true), ("watch = false\n", false)] {
        let data = Data::new(&[("a/t.py", HELLO)]);
        let config = format!("surface = 'filter'\n[dock]\nwatch_debounce = '50ms'\n{watch}");
        let folder = Folder::new(TOOLMAN).with_tools_toml(&config);
        let up = Up::start_with(&folder, &[("DATA_DIR", data.path().to_str().unwrap())]).await;
        let appears = async {
            while !up.tools(&[]).await.contains(&"a_later".to_owned()) {
                sleep(Duration::from_millis(20)).await;
            }
        };
        data.write("a/later.py", &HELLO.replace("def hello", "def later"));
        if is_seen {
            timeout(PATIENCE, appears).await.expect("it is served by itself");
        } else {
            assert!(timeout(Duration::from_secs(2), appears).await.is_err(), "nobody has looked");
        }
    }
}
