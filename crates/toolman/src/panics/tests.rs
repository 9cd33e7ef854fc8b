//! A panic kills what it happens in, so each is one of another process: this test, once more.

use std::fmt::Write as _;
use std::process::Command;
use std::sync::Arc;

use secrets::error::Error;
use secrets::master::Sources;
use secrets::names::{Name, Scope};
use secrets::store::Store;
use secrets::value::SecretValue;
use upstream::launch::Spawner;

use crate::log;

/// Says that this is the other process.
const FOLDER: &str = "TOOLMAN_TEST_OF_PANICS";
/// How many values there are.
const CANARIES: usize = 500;

fn canary(number: usize) -> String {
    format!("CanaryMark{number:03}-\"quoted\"/{}", number * 7919)
}

/// A safe with all of them.
fn store(folder: &str) -> Store {
    let key = Some("a master key of a test".to_owned().into());
    let sources = Sources { text: key, ..Sources::default() };
    Store::new(folder.into(), sources, || "2026-01-01T00:00:00Z".to_owned())
}

#[tokio::test]
async fn panic_that_holds_values_tells_none_of_them() {
    // TD-65
    if let Ok(folder) = std::env::var(FOLDER) {
        return crash(&folder).await;
    }
    let folder = tempfile::TempDir::new().unwrap();
    let path = folder.path().to_str().unwrap();
    let fill = |contents: &mut secrets::store::Contents| {
        for number in 0..CANARIES {
            let key = format!("CANARY_{number:03}").parse().unwrap();
            let value = SecretValue::from_bytes(canary(number).as_bytes()).unwrap();
            contents.vault.set(Name { scope: Scope::Global, key }, &value)?;
        }
        Ok::<_, Error>(())
    };
    store(path).update(fill).unwrap();
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args(["--exact", "panics::tests::panic_that_holds_values_tells_none_of_them"]);
    again.args(["--nocapture", "--test-threads=1"]);
    let output = again.env(FOLDER, path).env("RUST_BACKTRACE", "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{said}");
    assert!(said.contains("toolman: a fault of our own: panicked at"), "{said}");
    assert!(said.contains("stack backtrace") || said.contains("panics::tests"), "{said}");
    assert_eq!(said.matches("[redacted:CANARY_").count(), 3 * CANARIES, "{said}");
    assert!(!said.contains("CanaryMark"), "a value was told");
}

/// Panics with all values, as a thread, as a task and at last as a whole.
async fn crash(folder: &str) {
    let spawner = Spawner::with_secrets("toolman", Some(Arc::new(store(folder))));
    log::hide_by(spawner.veil());
    spawner.hide_secrets().await;
    super::report();
    let mut all = String::new();
    for number in 0..CANARIES {
        _ = write!(all, "{} ", canary(number));
    }
    let texts = [all.clone(), all.clone()];
    let [of_thread, of_task] = texts;
    assert!(std::thread::spawn(move || panic!("{of_thread}")).join().is_err());
    assert!(tokio::spawn(async move { panic!("{of_task}") }).await.is_err());
    panic!("{all}");
}
