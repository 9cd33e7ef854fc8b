//! The audit trail, through the real binary: who has used what. TF-48, TF-52

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use gateway::audit::{Batch, Trail};
use gateway::limits::RECORDS_MAX;
use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::{LineClient, PATIENCE};
use testkit::fake::Script;
use testkit::processes::kill;
use testkit::world::World;
use tokio::io::AsyncReadExt as _;
use tokio::process::Child;
use tokio::time::timeout;

use crate::http_limits::{Service, TOKEN};
use crate::up::{Up, call};
use crate::{TOOLMAN, folder};

/// A client on stdio under a name; the trail is complete when it has left.
struct Agent {
    client: LineClient,
    child: Child,
}

impl Agent {
    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    async fn start(folder: &Folder, name: &str) -> Agent {
        let mut command = folder.command(&["--agent", name]);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut client = LineClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        client.initialize(json!({})).await;
        Agent { client, child }
    }

    async fn leave(mut self) {
        self.client.close().await;
        self.client.closed().await;
        timeout(PATIENCE, self.child.wait()).await.unwrap().unwrap();
    }
}

fn trail(folder: &Folder) -> PathBuf {
    folder.path().join("data/toolman/logs/audit")
}

/// The files of a trail, in order.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = paths.filter(|path| path.extension().unwrap() == "jsonl").collect();
    files.sort();
    files
}

fn lines(folder: &Path) -> Vec<Value> {
    let text: String =
        files(folder).iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn calls(folder: &Path) -> Vec<Value> {
    lines(folder).into_iter().filter(|line| line["event"] == "call").collect()
}

async fn run(folder: &Folder, arguments: &[&str]) -> (i32, String, String) {
    let output = folder.run(arguments).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

async fn verify(folder: &Folder) -> Value {
    let (code, report, errors) = run(folder, &["audit", "verify", "--json"]).await;
    assert_eq!((code, errors.as_str()), (0, ""), "{report}");
    serde_json::from_str(&report).unwrap()
}

async fn stop(mut service: Service) {
    kill("-TERM", service.pid);
    timeout(PATIENCE, service.child.wait()).await.unwrap().unwrap();
}

#[tokio::test]
async fn every_wish_leaves_one_line_with_what_became_of_it_and_no_value() {
    // TF-48
    let head = "active_toolsets = [\"*\"]\n[audit]";
    let fake = "echo fail error die never slow --resource p://x --template t://{id} --prompt ask";
    let folder = folder(head, &[("a", fake)]);
    let mut agent = Agent::start(&folder, "ada").await;
    let client = &mut agent.client;
    client.call("a_echo", json!({"path": "/secret", "deep": {"list": [1, "two"]}})).await;
    client.call("a:fail", json!({})).await;
    client.call("a_error", json!({})).await;
    client.call("nothing", json!({"x": 1})).await;
    client.activate(&[], &["a_slow"], &[], &[]).await;
    client.call("a_slow", json!({"ms": 1})).await;
    client.request("resources/read", json!({"uri": "a_t://7"})).await;
    client.request("prompts/get", json!({"name": "a_ask"})).await;
    client.request("tools/call", json!({})).await;
    let id = client.begin("tools/call", json!({"name": "a_never", "arguments": {}})).await;
    let cancelled = json!({"jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": {"requestId": id}});
    client.send(&cancelled.to_string()).await;
    client.call("a_die", json!({})).await;
    agent.leave().await;
    let calls = calls(&trail(&folder));
    let row = |call: &Value| {
        let text = |key: &str| call[key].as_str().unwrap_or("-").to_owned();
        let keys = ["method", "asked", "name", "item", "decision", "status"];
        keys.map(text).join(" ")
    };
    let rows: Vec<_> = calls.iter().map(row).collect();
    for expected in [
        "tools/call a_echo a_echo echo allowed ok",
        "tools/call a:fail a_fail fail allowed tool_error",
        "tools/call a_error a_error error allowed upstream_error",
        "tools/call nothing - - unknown refused",
        "tools/call toolman_activate toolman_activate - allowed ok",
        "tools/call a_slow a_slow slow inactive refused",
        "resources/read a_t://7 a_t://{id} t://{id} allowed ok",
        "prompts/get a_ask a_ask ask allowed ok",
        "tools/call  - - refused refused",
        "tools/call a_never a_never never allowed cancelled",
        "tools/call a_die a_die die allowed upstream_failed",
    ] {
        assert!(rows.iter().any(|row| row == expected), "{expected} is not in {rows:#?}");
    }
    assert_eq!(rows.len(), 11, "{rows:#?}");
    let echo = &calls[0];
    let shape = json!({"path": "string", "deep": {"list": ["number", "string"]}});
    assert_eq!(echo["arguments"], shape);
    assert_eq!((&echo["agent"], &echo["client"]), (&json!("ada"), &json!("test 0")));
    assert_eq!((&echo["namespace"], &echo["upstream"]), (&json!("a"), &json!("a")));
    assert_eq!((&echo["revision"], &echo["request"]), (&json!("2025-11-25"), &json!("2")));
    assert!(echo["ref_id"].as_str().unwrap().starts_with("sha256:"), "{echo}");
    assert!(echo["latency_us"].as_u64().unwrap() > 0, "{echo}");
    assert!(echo["bytes_in"].as_u64().unwrap() > 50, "{echo}");
    assert!(echo["bytes_out"].as_u64().unwrap() > 100, "{echo}");
    assert!(!format!("{calls:?}").contains("/secret"), "values are not recorded");
    assert_eq!(verify(&folder).await["records"], 12);
}

#[tokio::test]
async fn trail_is_kept_where_it_is_switched_on_and_nowhere_else() {
    let servers = [("a", "echo")];
    let plain = folder("active_toolsets = [\"*\"]", &servers);
    let mut agent = Agent::start(&plain, "ada").await;
    agent.client.call("a_echo", json!({})).await;
    agent.leave().await;
    run(&plain, &["tools", "call", "a_echo", "{}"]).await;
    assert!(!trail(&plain).exists());
    let mut up = Up::start(&plain).await;
    up.initialize().await;
    up.post(&call(1, "a_echo", json!({}))).await;
    let service = Service::start(&plain, &[]).await;
    service.send("/tools/a_echo", &[], "{}").await;
    while service.figure("toolman_audit_records_total").await < 1 {}
    stop(service).await;
    drop(up);
    assert!(!calls(&trail(&plain)).is_empty());

    let off = folder("active_toolsets = [\"*\"]\n[audit]\nenabled = false", &servers);
    let service = Service::start(&off, &[]).await;
    service.send("/tools/a_echo", &[], "{}").await;
    assert!(!service.send("/metrics", &[], "").await.body.contains("audit"));
    stop(service).await;
    assert!(!trail(&off).exists());

    let text = "active_toolsets = [\"*\"]\n[audit]\nvalues = true\nfolder = 'calls'";
    let full = folder(text, &servers);
    run(&full, &["tools", "call", "a_echo", r#"{"path":"/secret"}"#]).await;
    let calls = calls(&full.path().join("calls"));
    assert_eq!(calls[0]["values"], json!({"path": "/secret"}));
    assert_eq!(calls[0]["arguments"], json!({"path": "string"}));
}

#[tokio::test]
async fn thousands_of_calls_over_http_leave_a_line_each() {
    // HARDENING L34, in a bounded form.
    const CLIENTS: u64 = 20;
    const CALLS: u64 = 150;
    let _load = crate::MACHINE.read().await;
    let folder = folder("surface = \"filter\"", &[("a", "echo")]);
    let service = Arc::new(Service::start(&folder, &[]).await);
    let clients = (0..CLIENTS).map(|client| {
        let service = Arc::clone(&service);
        tokio::spawn(async move {
            let session = service.session().await;
            for id in 0..CALLS {
                let echo = call(client * CALLS + id, "a_echo", json!({"n": id})).to_string();
                let answer = service.send("/mcp", &[("Mcp-Session-Id", &session)], &echo).await;
                assert_eq!(answer.status, 200);
            }
        })
    });
    for client in futures_util::future::join_all(clients).await {
        client.unwrap();
    }
    stop(Arc::into_inner(service).unwrap()).await;
    let calls = calls(&trail(&folder));
    let mut ids: Vec<u64> =
        calls.iter().map(|call| call["request"].as_str().unwrap().parse().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, (0..CLIENTS * CALLS).collect::<Vec<_>>());
    let sessions: std::collections::BTreeSet<_> =
        calls.iter().map(|call| call["session"].as_str().unwrap()).collect();
    assert_eq!(sessions.len() as u64, CLIENTS, "each has one, and none is the secret one");
    let report = verify(&folder).await;
    assert_eq!((&report["ok"], &report["lost"]), (&json!(true), &json!(0)));
}

#[tokio::test]
async fn full_disk_stops_nothing_and_its_loss_is_counted_and_told() {
    // HARDENING L34
    let folder = folder("surface = \"filter\"", &[("a", "echo")]);
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BEARER_TOKEN", TOKEN).stderr(Stdio::piped());
    let mut service = Service::run(command).await;
    let mut stderr = service.child.stderr.take().unwrap();
    service.send("/tools/a_echo", &[], "{}").await;
    while service.figure("toolman_audit_records_total").await < 1 {}
    let file = files(&trail(&folder)).remove(0);
    let kept = file.with_extension("kept");
    std::fs::rename(&file, &kept).unwrap();
    std::fs::remove_file(&kept).unwrap();
    std::os::unix::fs::symlink("/dev/full", &file).unwrap();
    for lost in 1..=3 {
        assert_eq!(service.send("/tools/a_echo", &[], "{}").await.status, 200);
        while service.figure("toolman_audit_lost_total").await < lost {}
    }
    std::fs::remove_file(&file).unwrap();
    // Writing is tried again when there is something to write and some time has passed.
    while service.figure("toolman_audit_records_total").await < 2 {
        assert_eq!(service.send("/tools/a_echo", &[], "{}").await.status, 200);
    }
    let lost = service.figure("toolman_audit_lost_total").await;
    stop(service).await;
    let told: u64 = lines(&trail(&folder)).iter().filter_map(|line| line["count"].as_u64()).sum();
    assert_eq!(told, lost);
    assert_eq!(verify(&folder).await["lost"], lost);
    let mut log = String::new();
    stderr.read_to_string(&mut log).await.unwrap();
    assert_eq!(log.matches("can't be written").count(), 1, "{log}");
    assert!(log.contains("No space left on device"), "{log}");
    assert_eq!(log.matches("the audit trail is written again").count(), 1, "{log}");
}

#[tokio::test]
async fn trail_goes_on_after_a_kill_and_a_line_that_was_cut() {
    let folder = folder("surface = \"filter\"", &[("a", "echo")]);
    let mut service = Service::start(&folder, &[]).await;
    service.send("/tools/a_echo", &[], "{}").await;
    while service.figure("toolman_audit_records_total").await < 1 {}
    kill("-9", service.pid);
    timeout(PATIENCE, service.child.wait()).await.unwrap().unwrap();
    let file = files(&trail(&folder)).remove(0);
    let mut text = std::fs::read_to_string(&file).unwrap();
    text += r#"{"seq":3,"prev":"12"#;
    std::fs::write(&file, &text).unwrap();
    let service = Service::start(&folder, &[]).await;
    service.send("/tools/a_echo", &[], "{}").await;
    stop(service).await;
    let report = verify(&folder).await;
    assert_eq!((&report["records"], &report["torn"]), (&json!(5), &json!(1)));
    assert!(std::fs::read_to_string(&file).unwrap().starts_with(&text), "nothing was removed");
}

#[tokio::test]
async fn processes_that_share_a_folder_do_not_disturb_each_other() {
    let folder = folder("active_toolsets = [\"*\"]\n[audit]", &[("a", "echo")]);
    let mut agents = [Agent::start(&folder, "ada").await, Agent::start(&folder, "bob").await];
    for agent in &mut agents {
        agent.client.call("a_echo", json!({})).await;
    }
    for agent in agents {
        agent.leave().await;
    }
    assert_eq!(calls(&trail(&folder)).len(), 2);
    assert_eq!(verify(&folder).await["ok"], true);
}

#[tokio::test]
async fn result_that_passes_in_pieces_is_recorded_at_its_end() {
    let url = crate::large_results::site().await;
    let config = format!("surface = \"filter\"\n[[servers]]\nname = \"a\"\nurl = \"{url}\"\n");
    let folder = Folder::new(TOOLMAN).with_tools_toml(&config);
    let service = Service::start(&folder, &[]).await;
    let session = service.session().await;
    let big = call(1, "a_big", json!({})).to_string();
    let answer = service.send("/mcp", &[("Mcp-Session-Id", &session)], &big).await;
    let frame = r#"{"jsonrpc":"2.0","id":1,"result":}"#;
    stop(service).await;
    let call = calls(&trail(&folder)).remove(0);
    assert_eq!(call["bytes_out"], answer.body.len() - frame.len());
    assert_eq!((&call["status"], &call["unread"]), (&json!("ok"), &json!(true)));
}

#[tokio::test]
async fn changed_record_is_found_with_its_file_and_line() {
    let folder = folder("active_toolsets = [\"*\"]\n[audit]", &[("a", "echo")]);
    let mut agent = Agent::start(&folder, "ada").await;
    for x in 0..3 {
        agent.client.call("a_echo", json!({"x": x})).await;
    }
    agent.leave().await;
    let (code, text, _) = run(&folder, &["audit", "verify"]).await;
    assert_eq!(code, 0);
    assert!(text.starts_with("4 records in 1 files hold together\nthe last of "), "{text}");
    let file = files(&trail(&folder)).remove(0);
    let spoiled = std::fs::read_to_string(&file).unwrap().replacen("ada", "eve", 1);
    std::fs::write(&file, spoiled).unwrap();
    let (code, text, _) = run(&folder, &["audit", "verify"]).await;
    assert_eq!(code, 1);
    let place = format!("{}:3: does not follow the line before it", file.display());
    assert!(text.starts_with(&place), "{text}");
    let (code, report, _) = run(&folder, &["audit", "verify", "--json"]).await;
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!((code, &report["ok"], &report["broken"][0]["line"]), (1, &json!(false), &json!(3)));
}

#[tokio::test]
async fn records_that_nobody_takes_are_bounded_and_no_call_waits_for_them() {
    let world = World::of([("a", Script::with_tools(["echo"]))]).active(&["*"]).start();
    let trail = Arc::<Trail>::default();
    world.gateway.keep_trail(Arc::clone(&trail));
    let mut client = world.connect().await;
    let large = "x".repeat(1024 * 1024);
    for _ in 0..10 {
        client.call("nothing", json!({"x": large})).await;
    }
    for _ in 0..RECORDS_MAX {
        client.call("nothing", json!({})).await;
    }
    assert_eq!(trail.lost.load(Ordering::Relaxed), 10);
    let records = trail.take(Batch::default()).unwrap().records;
    assert_eq!(records.len(), RECORDS_MAX);
    let with_arguments =
        records.iter().take(10).filter(|record| record.texts.params().is_some()).count();
    assert_eq!(with_arguments, 7, "of the large ones there are no more than 8 MiB");
    assert!(records[10..].iter().all(|record| record.texts.params().is_some()));
}

/// A trail of two agents.
async fn used() -> Folder {
    let folder = folder("active_toolsets = [\"*\"]\n[audit]", &[("a", "echo fail"), ("b", "echo")]);
    let mut ada = Agent::start(&folder, "ada").await;
    ada.client.call("a_echo", json!({"x": 1, "y": 2})).await;
    ada.client.call("a_fail", json!({})).await;
    ada.client.call("a_secret", json!({})).await;
    ada.leave().await;
    let mut bob = Agent::start(&folder, "bob").await;
    bob.client.call("b_echo", json!({})).await;
    bob.client.call("a_echo", json!({})).await;
    bob.leave().await;
    folder
}

#[tokio::test]
async fn trail_is_shown_as_a_table_and_as_json() {
    let folder = used().await;
    let (code, table, _) = run(&folder, &["audit", "show"]).await;
    assert_eq!(code, 0);
    assert!(table.contains("5 of 5 calls; times are in UTC"), "{table}");
    let row = table.lines().find(|line| line.contains("x, y")).unwrap();
    let words: Vec<_> = row.split_whitespace().collect();
    assert_eq!(words[2..8], ["ada", "a_echo", "x,", "y", "allowed", "ok"], "{row}");
    let names = async |arguments: &[&str]| {
        let all = [&["audit", "show", "--json"], arguments].concat();
        let (code, text, errors) = run(&folder, &all).await;
        assert_eq!((code, errors.as_str()), (0, ""));
        let name = |line: &str| {
            let line: Value = serde_json::from_str(line).unwrap();
            format!("{} {}", line["agent"].as_str().unwrap(), line["asked"].as_str().unwrap())
        };
        text.lines().map(name).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--agent", "bob"]).await, ["bob b_echo", "bob a_echo"]);
    assert_eq!(names(&["--tool", "echo", "--limit", "2"]).await, ["bob b_echo", "bob a_echo"]);
    assert_eq!(names(&["--denied"]).await, ["ada a_secret"]);
    assert_eq!(names(&["--since", "1h", "--tool", "a_f*"]).await, ["ada a_fail"]);
    assert!(names(&["--since", "2999-01-01"]).await.is_empty());
}

#[tokio::test]
async fn usage_is_counted_by_agent_and_tool() {
    // TF-52
    let folder = used().await;
    let rows = async |arguments: &[&str]| {
        let all = [&["audit", "stats", "--json"], arguments].concat();
        let report: Value = serde_json::from_str(&run(&folder, &all).await.1).unwrap();
        let row = |row: &Value| {
            let text = |key: &str| row[key].as_str().unwrap_or("").to_owned();
            let keys = ["calls", "errors", "denials"].map(|key| row[key].to_string());
            format!("{} {} {}", text("agent"), text("tool"), keys.join(" "))
        };
        report["rows"].as_array().unwrap().iter().map(row).collect::<Vec<_>>()
    };
    assert_eq!(rows(&["--by", "agent"]).await, ["ada  3 1 1", "bob  2 0 0"]);
    let tools = [" a_echo 2 0 0", " a_fail 1 1 0", " a_secret 1 0 1", " b_echo 1 0 0"];
    assert_eq!(rows(&["--by", "tool"]).await, tools);
    assert_eq!(rows(&["--agent", "bob", "--tool", "a*"]).await, ["bob a_echo 1 0 0"]);
    let (code, table, _) = run(&folder, &["audit", "stats", "--since", "1d"]).await;
    assert_eq!(code, 0);
    for column in ["agent", "tool", "calls", "errors", "denials", "p50 ms", "p95 ms", "bytes out"] {
        assert!(table.lines().next().unwrap().contains(column), "{table}");
    }
}

#[tokio::test]
async fn least_policy_is_suggested_from_what_was_used() {
    let folder = used().await;
    let (code, toml, _) = run(&folder, &["policy", "suggest", "--agent", "bob"]).await;
    let expected = "[agents.bob]\nallowed_servers = [\"a\", \"b\"]\n\n\
        [agents.bob.tool_overrides]\na = [\"echo\"]\nb = [\"echo\"]\n";
    assert_eq!((code, toml.as_str()), (0, expected));
    let (_, text, _) = run(&folder, &["policy", "suggest", "--agent", "ada", "--json"]).await;
    let policy: Value = serde_json::from_str(&text).unwrap();
    let expected = json!({"agent_policies": {"ada":
        {"allowed_servers": ["a"], "tool_overrides": {"a": ["echo"]}}}});
    assert_eq!(policy, expected);
}

#[tokio::test]
async fn what_can_not_be_read_is_told_in_words() {
    let folder = Folder::new(TOOLMAN);
    let missing = "there is no audit trail in `";
    for (arguments, code, words) in [
        (vec!["audit", "show"], 2, missing),
        (vec!["audit", "verify"], 2, missing),
        (vec!["audit", "stats"], 2, missing),
        (vec!["policy", "suggest", "--agent", "a"], 2, missing),
        (vec!["policy", "suggest"], 2, "say with `--agent NAME` for whom the policy is"),
        (
            vec!["audit", "show", "--since", "soon"],
            2,
            "`--since` is `soon`; write a time before now such as `30m`, `1h` or `7d`, or a day",
        ),
        (vec!["audit", "show", "--limit", "0"], 2, "0 is not in 1..=100000"),
    ] {
        let (found, _, errors) = run(&folder, &arguments).await;
        assert_eq!(found, code, "{arguments:?}");
        assert!(errors.contains(words), "{arguments:?}: {errors}");
    }
    let folder = used().await;
    let (code, _, errors) = run(&folder, &["policy", "suggest", "--agent", "eve"]).await;
    assert_eq!(code, 1);
    assert!(errors.contains("the audit trail has no successful call of agent `eve`"), "{errors}");
}

#[tokio::test]
async fn strange_members_hide_nothing() {
    let folder = folder("active_toolsets = [\"*\"]\n[audit]", &[("a", "echo")]);
    let mut agent = Agent::start(&folder, "ada").await;
    let params = json!({"URI": 1, "uri": "x", "name": "a_echo",
        "arguments": {"x": 1}});
    let answer = agent.client.request("tools/call", params).await;
    assert_eq!(answer["result"]["structuredContent"], json!({"x": 1}));
    agent.leave().await;
    let call = calls(&trail(&folder)).remove(0);
    assert_eq!((&call["asked"], &call["name"]), (&json!("a_echo"), &json!("a_echo")));
    assert_eq!(call["arguments"], json!({"x": "number"}));
}

#[tokio::test]
async fn request_of_the_modern_era_is_recorded_under_its_own_terms() {
    let folder = folder("active_toolsets = [\"*\"]\n[audit]", &[("a", "echo")]);
    let mut agent = Agent::start(&folder, "ada").await;
    agent.client.ask_alone("tools/call", json!({"name": "a_echo", "arguments": {}})).await;
    agent.leave().await;
    let call = calls(&trail(&folder)).remove(0);
    assert_eq!((&call["revision"], &call["client"]), (&json!("2026-07-28"), &json!("test 0")));
}
