//! Reading folders again while they are in use.

use serde_json::json;
use testkit::binary::Folder;
use testkit::http::send;
use testkit::processes::kill;

use super::{Data, Dock, HELLO, MANAGER, TOKEN};
use crate::TOOLMAN;

fn greeting(word: &str) -> String {
    HELLO.replace("Hello,", word)
}

#[tokio::test]
async fn reload_brings_in_what_has_changed_and_nothing_else() {
    // TD-01, TD-11, TD-114, TD-115, TD-116
    let data = Data::new(&[("a/t.py", HELLO), ("b/t.py", HELLO), ("c/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    for namespace in ["a", "b", "c"] {
        assert_eq!(dock.text(namespace, "hello", &json!({})).await, "Hello, World!");
    }
    let kept = dock.workers("a");
    assert_eq!(dock.reload().await["workers_restarted"], json!([]));
    data.write("b/t.py", &greeting("Good day,"));
    data.write("d/t.py", &greeting("Hi,"));
    data.remove("c");
    let done = dock.reload().await;
    assert_eq!(done["reloaded"], true);
    assert_eq!(done["namespaces"], json!(["a", "b", "d"]));
    assert_eq!(done["workers_restarted"], json!(["b", "d"]));
    assert_eq!(done["namespaces_removed"], json!(["c"]));
    assert_eq!(dock.text("b", "hello", &json!({})).await, "Good day, World!");
    assert_eq!(dock.text("d", "hello", &json!({})).await, "Hi, World!");
    assert_eq!(dock.workers("a"), kept);
    let gone = dock.ask("GET", "/tools", &[("X-Namespace", "c")], "").await;
    assert_eq!(gone.status, 404, "{gone:?}");
}

#[tokio::test]
async fn only_the_manager_may_ask_for_a_reload() {
    // TD-76, TD-113, HARDENING H24
    let data = Data::new(&[("a/t.py", HELLO)]);
    let dock = Dock::start_with(&data, &[("INTERNAL_ALLOWED_CIDRS", "10.9.8.7/32")]).await;
    let answer = dock.ask("POST", "/reload", &[("X-Manager-Token", MANAGER)], "").await;
    assert_eq!(answer.status, 403, "it is elsewhere: {answer:?}");
    let dock = Dock::start(&data).await;
    let bearer = format!("Bearer {TOKEN}");
    for headers in [
        &[][..],
        &[("Authorization", bearer.as_str())][..],
        &[("X-Manager-Token", MANAGER)][..],
        &[("Authorization", bearer.as_str()), ("X-Manager-Token", "wrong")][..],
        &[("Authorization", "Bearer wrong"), ("X-Manager-Token", MANAGER)][..],
    ] {
        let answer = testkit::http::send(&dock.address, "POST", "/reload", headers, "").await;
        assert_eq!(answer.status, 403, "{headers:?}: {answer:?}");
    }
    assert_eq!(dock.reload().await["reloaded"], true);
}

#[tokio::test]
async fn hangup_is_a_reload_too() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    data.write("b/t.py", HELLO);
    kill("-HUP", dock.child.id().unwrap());
    let appears = async {
        while dock.ask("GET", "/tools", &[("X-Namespace", "b")], "").await.status != 200 {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(testkit::client::PATIENCE, appears).await.expect("it is served");
}

#[tokio::test]
async fn folders_are_watched_where_that_is_wanted() {
    // TD-118
    let data = Data::new(&[("a/t.py", HELLO)]);
    let watching = [("ENABLE_FS_WATCHER", "true"), ("FS_WATCHER_DEBOUNCE_MS", "50")];
    let dock = Dock::start_with(&data, &watching).await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    data.write("a/t.py", &greeting("Good day,"));
    let changes = async {
        while dock.text("a", "hello", &json!({})).await != "Good day, World!" {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(testkit::client::PATIENCE, changes).await.expect("it is reloaded");
}

#[tokio::test]
async fn what_is_written_is_not_run_before_it_is_read() {
    let data = Data::new(&[("a/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    data.write("a/t.py", &greeting("Not yet,"));
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    let worker = dock.workers("a")[0];
    kill("-KILL", worker);
    let answer = dock.call("a", "hello", &json!({})).await;
    if answer.status != 200 {
        assert_eq!(dock.text("a", "hello", &json!({})).await, "Hello, World!");
    }
    dock.reload().await;
    assert_eq!(dock.text("a", "hello", &json!({})).await, "Not yet, World!");
}

#[tokio::test]
async fn who_reads_the_data_directory_may_ask_for_a_reload() {
    // TD-113, TD-123: whatever the tokens are that the core was started with.
    let data = Data::new(&[("a/t.py", HELLO)]);
    let dock = Dock::start(&data).await;
    data.write("b/t.py", HELLO);
    let mut command = Folder::new(TOOLMAN).command(&["reload", "--data-dir"]);
    let output = command.arg(data.path()).current_dir(data.path()).output().await.unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(dock.text("b", "hello", &json!({})).await, "Hello, World!");
    let token = std::fs::read_to_string(data.path().join("reload.token")).unwrap();
    for path in ["/tools", "/health"] {
        let bearer = format!("Bearer {}", token.trim());
        let headers = [("Authorization", bearer.as_str()), ("X-Namespace", "a")];
        let answer = send(&dock.address, "GET", path, &headers, "").await;
        assert!(!answer.body.contains("hello"), "it opens nothing else: {answer:?}");
    }
}
