//! Starts: what servers offered the last time is served before they have answered, and put right when they do.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use testkit::binary::{Folder, Running};
use testkit::client::PATIENCE;
use testkit::processes::{command_line, working_in};
use tokio::time::{Instant, sleep};

use crate::{TOOLMAN, fake};

const CHANGED: &str = "notifications/tools/list_changed";

/// A folder with one server in `git`, which answers `initialize` while there is a file `open`.
fn folder(head: &str, arguments: &str, rest: &str) -> Folder {
    let folder = Folder::new(TOOLMAN);
    let gate = folder.path().join("open");
    let command = fake(&format!("--gate {} {arguments}", gate.display()));
    let text =
        format!("{head}\n[[servers]]\nnamespace = \"git\"\ncommand = \"{command}\"\n{rest}\n");
    folder.with_tools_toml(&text)
}

fn gate(folder: &Folder, is_open: bool) {
    let path = folder.path().join("open");
    if is_open { fs::write(path, "").unwrap() } else { fs::remove_file(path).unwrap() }
}

/// The files in which inventories are kept.
fn kept(folder: &Folder) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.path().join("data/toolman/inventories"));
    let files = files.into_iter().flatten().map(|file| file.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "json")).collect()
}

async fn until(is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be");
        sleep(Duration::from_millis(5)).await;
    }
}

async fn end(mut toolman: Running) {
    toolman.client.close().await;
    assert!(toolman.ended().await.success());
}

/// Lets everything be seen once, and closes the gate.
async fn begin(folder: &Folder, files: usize) {
    gate(folder, true);
    let mut toolman = folder.start().await;
    toolman.client.tool_names().await;
    until(|| kept(folder).len() == files).await;
    end(toolman).await;
    gate(folder, false);
}

fn error(answer: &Value) -> &str {
    answer["structuredContent"]["error"].as_str().expect("it has failed")
}

const ALL: &str = "surface = \"filter\"";

#[tokio::test]
async fn known_server_is_listed_before_it_answers_and_waited_for_by_calls() {
    let folder = folder(ALL, "echo --resource repo://head --prompt ask", "");
    begin(&folder, 1).await;
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    let hello = client.initialize(json!({})).await;
    assert_eq!(hello["capabilities"]["completions"], json!({}), "{hello}");
    assert_eq!(client.tool_names().await, ["git_echo"]);
    assert_eq!(client.names("prompts/list", "prompts", "name").await, ["git_ask"]);
    let uris = client.names("resources/list", "resources", "uri").await;
    let call = json!({"name": "git_echo", "arguments": {"n": 1}});
    let call = client.begin("tools/call", call).await;
    let read = client.begin("resources/read", json!({"uri": uris[0]})).await;
    client.request("ping", json!({})).await;
    // Only now can the server answer anything.
    gate(&folder, true);
    assert_eq!(client.answer(call).await["result"]["structuredContent"]["n"], 1);
    let read = client.answer(read).await;
    assert_eq!(read["result"]["contents"][0]["text"], "text of repo://head");
    assert_eq!(client.count(CHANGED), 0, "nothing has changed");
    end(toolman).await;
}

#[tokio::test]
async fn first_start_answers_initialize_at_once_and_lists_when_servers_are_there() {
    let folder = folder(ALL, "echo", "");
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    let hello = client.initialize(json!({})).await;
    assert!(
        hello["capabilities"]["tools"].is_object() && hello["capabilities"]["logging"].is_object()
    );
    let list = client.begin("tools/list", json!({})).await;
    let call = client.begin("tools/call", json!({"name": "git_echo", "arguments": {"n": 2}})).await;
    client.request("ping", json!({})).await;
    gate(&folder, true);
    assert_eq!(client.answer(list).await["result"]["tools"][0]["name"], "git_echo");
    assert_eq!(client.answer(call).await["result"]["structuredContent"]["n"], 2);
    end(toolman).await;
}

#[tokio::test]
async fn known_server_that_fails_takes_its_items_away_and_leaves_its_reason() {
    let folder = Folder::new(TOOLMAN);
    let broken = folder.path().join("broken");
    let command =
        fake(&format!("--gate {0}/open --crash-if {0}/broken echo", folder.path().display()));
    let text = format!(
        "{ALL}\n[[servers]]\nnamespace = \"git\"\ncommand = \"{command}\"\n\
         [[servers]]\nnamespace = \"hub\"\ncommand = \"{}\"\n",
        fake("echo")
    );
    let folder = folder.with_tools_toml(&text);
    begin(&folder, 2).await;
    fs::write(&broken, "").unwrap();
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    let call = client.begin("tools/call", json!({"name": "git_echo"})).await;
    let reason =
        "upstream `git` ended with exit code 1; its last words on stderr:\ncrashing as told";
    let answer = client.answer(call).await;
    assert_eq!(error(&answer["result"]), reason, "{answer}");
    while client.tool_names().await != ["hub_echo"] {
        client.next(CHANGED).await;
    }
    for name in ["git_echo", "git:echo", "git_never_heard_of"] {
        assert_eq!(error(&client.call(name, json!({})).await), reason, "{name}");
    }
    let unknown = client.call("gist_echo", json!({})).await;
    assert!(error(&unknown).starts_with("no tool is named `gist_echo`"), "{unknown}");
    end(toolman).await;
}

#[tokio::test]
async fn call_means_what_the_server_offers_now() {
    let folder = Folder::new(TOOLMAN);
    let tools = folder.path().join("tools.json");
    let define = |names: &[&str]| {
        let tools_now: Vec<_> = names.iter().map(|name| testkit::fake::tool(name)).collect();
        fs::write(&tools, json!(tools_now).to_string()).unwrap();
    };
    define(&["echo", "fail"]);
    let command = fake(&format!("--gate {0}/open --tools {0}/tools.json", folder.path().display()));
    let text = format!("{ALL}\n[[servers]]\nnamespace = \"git\"\ncommand = \"{command}\"\n");
    let folder = folder.with_tools_toml(&text);
    begin(&folder, 1).await;
    define(&["echo", "log"]);
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    assert_eq!(client.tool_names().await, ["git_echo", "git_fail"]);
    let gone = client.begin("tools/call", json!({"name": "git_fail"})).await;
    let new = client.begin("tools/call", json!({"name": "git_log"})).await;
    client.request("ping", json!({})).await;
    gate(&folder, true);
    let gone = client.answer(gone).await;
    assert!(error(&gone["result"]).starts_with("no tool is named `git_fail`"), "{gone}");
    client.next(CHANGED).await;
    assert_eq!(client.tool_names().await, ["git_echo", "git_log"]);
    let new = client.answer(new).await;
    assert_eq!(new["result"]["content"][0]["text"], "ok", "{new}");
    end(toolman).await;
}

#[tokio::test]
async fn what_is_kept_belongs_to_the_settings_and_holds_no_value_of_them() {
    let hush = "hush-4711";
    let rest = format!("env = {{ TOKEN = \"{hush}\" }}");
    let folder = folder(ALL, "echo --page 1", &rest);
    begin(&folder, 1).await;
    let mut names = Vec::new();
    for file in fs::read_dir(folder.path().join("data/toolman/inventories")).unwrap() {
        let file = file.unwrap().path();
        let text = String::from_utf8_lossy(&fs::read(&file).unwrap()).into_owned();
        assert!(!text.contains(hush), "{text}");
        names.push(file);
    }
    assert_eq!(names.len(), 2, "the inventory and the key of the names: {names:?}");
    // With another value it is another server.
    let path = folder.path().join("tools.toml");
    let text = fs::read_to_string(&path).unwrap().replace(hush, "other");
    fs::write(&path, text).unwrap();
    let mut toolman = folder.start().await;
    let list = toolman.client.begin("tools/list", json!({})).await;
    toolman.client.request("ping", json!({})).await;
    assert_eq!(toolman.client.count("none"), 0);
    gate(&folder, true);
    assert_eq!(toolman.client.answer(list).await["result"]["tools"][0]["name"], "git_echo");
    until(|| kept(&folder).len() == 2).await;
    end(toolman).await;
}

#[tokio::test]
async fn broken_files_and_folders_that_cannot_be_written_are_no_obstacle() {
    let folder = folder(ALL, "echo", "");
    begin(&folder, 1).await;
    fs::write(&kept(&folder)[0], "{\"format\":1,\"tools\":[").unwrap();
    gate(&folder, true);
    let mut toolman = folder.start().await;
    assert_eq!(toolman.client.tool_names().await, ["git_echo"]);
    until(|| fs::read_to_string(&kept(&folder)[0]).unwrap().ends_with("}\n")).await;
    end(toolman).await;
    // Somebody has put a file where the folder is to be.
    fs::remove_dir_all(folder.path().join("data")).unwrap();
    fs::write(folder.path().join("data"), "").unwrap();
    let mut toolman = folder.start().await;
    assert_eq!(toolman.client.tool_names().await, ["git_echo"]);
    toolman.client.close().await;
    assert!(toolman.ended().await.success());
    let log = toolman.log().await;
    assert!(log.contains("as no inventory is kept"), "{log}");
}

#[tokio::test]
async fn checks_ask_the_server_and_keep_what_it_says() {
    let folder = Folder::new(TOOLMAN);
    let command =
        fake(&format!("--crash-if {0}/broken --gate {0}/open echo", folder.path().display()));
    let text = format!("{ALL}\n[[servers]]\nnamespace = \"git\"\ncommand = \"{command}\"\n");
    let folder = folder.with_tools_toml(&text);
    gate(&folder, true);
    assert!(folder.run(&["check"]).await.status.success());
    assert_eq!(kept(&folder).len(), 1, "the first start after a check is not the first one");
    gate(&folder, false);
    let mut toolman = folder.start().await;
    assert_eq!(toolman.client.tool_names().await, ["git_echo"]);
    end(toolman).await;
    fs::write(folder.path().join("broken"), "").unwrap();
    let check = folder.run(&["check", "--json"]).await;
    let report: Value = serde_json::from_slice(&check.stdout).unwrap();
    assert_eq!(report["ok"], false);
    assert_eq!(
        (&report["servers"][0]["state"], &report["servers"][0]["tools"]),
        (&json!("failed"), &json!(0))
    );
    let list = folder.run(&["tools", "list"]).await;
    assert!(!String::from_utf8_lossy(&list.stdout).contains("git_echo"));
}

/// Whether the lazy server runs.
fn runs(folder: &Folder) -> bool {
    let is_server = |pid: &u32| {
        let line = command_line(*pid);
        line.split(' ').next().unwrap_or_default().ends_with("fake_upstream")
    };
    working_in(folder.path()).iter().any(is_server)
}

#[tokio::test]
async fn lazy_server_that_is_known_is_started_by_its_first_call() {
    // TC-25
    let folder = folder(ALL, "echo", "lazy = true\nidle_timeout = \"200ms\"");
    begin(&folder, 1).await;
    gate(&folder, true);
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    assert_eq!(client.tool_names().await, ["git_echo"]);
    assert!(!runs(&folder), "nobody has called it");
    assert_eq!(client.call("git_echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
    assert!(runs(&folder));
    assert_eq!(client.count(CHANGED), 0);
    end(toolman).await;
}

#[tokio::test]
async fn list_that_fails_leaves_the_last_one_and_is_read_again() {
    let folder = Folder::new(TOOLMAN);
    let sulk = |is_so: bool, folder: &Path| {
        let path = folder.join("sulk");
        if is_so { fs::write(path, "").unwrap() } else { fs::remove_file(path).unwrap() }
    };
    let tools = folder.path().join("tools.json");
    fs::write(&tools, json!([testkit::fake::tool("echo")]).to_string()).unwrap();
    let command = fake(&format!("--sulk {0}/sulk --tools {0}/tools.json", folder.path().display()));
    let text = format!("{ALL}\n[[servers]]\nnamespace = \"git\"\ncommand = \"{command}\"\n");
    let folder = folder.with_tools_toml(&text);
    sulk(true, folder.path());
    let check = folder.run(&["check"]).await;
    let said = String::from_utf8_lossy(&check.stdout).into_owned();
    let problem = "its tools can't be read: it answered `tools/list` with the error \
                   {\"code\":-32603,\"message\":\"not now\"}";
    assert!(said.contains(problem) && !said.contains("are kept"), "{said}");
    sulk(false, folder.path());
    assert!(folder.run(&["check"]).await.status.success());
    sulk(true, folder.path());
    fs::write(&tools, json!([testkit::fake::tool("echo"), testkit::fake::tool("log")]).to_string())
        .unwrap();
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    assert_eq!(client.tool_names().await, ["git_echo"]);
    assert_eq!(client.call("git_echo", json!({"n": 1})).await["structuredContent"]["n"], 1);
    assert_eq!(client.tool_names().await, ["git_echo"], "an error is no empty list");
    sulk(false, folder.path());
    client.next(CHANGED).await;
    assert_eq!(client.tool_names().await, ["git_echo", "git_log"]);
    end(toolman).await;
}

#[tokio::test]
async fn server_that_never_introduces_itself_is_given_up_when_the_file_says() {
    let folder = folder("", "echo", "handshake_timeout = \"300ms\"");
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    let reason = "upstream `git` can't be used: it did not answer `initialize` within 300ms";
    assert_eq!(error(&client.call("git_echo", json!({})).await), reason);
    end(toolman).await;
}

#[tokio::test]
async fn states_are_told_only_of_servers_that_the_caller_may_see() {
    let head = "surface = \"filter\"\n[exposed_tools]\ngit = [\"*\"]\nhub = [\"*\"]\n[agents.a]\nallowed_servers = [\"hub\"]\n\
                [agents.b]\nallowed_servers = [\"git\"]\n";
    let folder = crate::folder(head, &[("git", "--crash"), ("hub", "echo"), ("hub2", "--crash")]);
    let mut toolman = folder.start_as("a").await;
    for name in ["git_echo", "git:echo", "gut_echo"] {
        let said = toolman.client.call(name, json!({})).await;
        assert!(error(&said).starts_with(&format!("no tool is named `{name}`")), "{said}");
    }
    end(toolman).await;
    let mut toolman = folder.start_as("b").await;
    let said = toolman.client.call("git_echo", json!({})).await;
    assert!(error(&said).starts_with("upstream `git` ended with exit code 1"), "{said}");
    end(toolman).await;
}
