//! Values of secrets in what servers say: hidden on every way out, and written down that they were. TD-65

use std::fmt::Write as _;
use std::fs::File;
use std::path::Path;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::processes::{descendants, kill};

use crate::dock::Dock;
use crate::http_limits::{Service, TOKEN, hello};
use crate::large_results::site_of;
use crate::manager::Manager;
use crate::secrets_cli::{run, set};
use crate::up::{call, request};
use crate::{TOOLMAN, fake};

/// How many secrets there are.
const CANARIES: usize = 500;

/// How values begin and end, in all spellings; base64 has three of each.
const MARKS: [&str; 14] = [
    "CanaryMark",
    "KramYranac",
    "43616e6172794d61726b",
    "4b72616d5972616e6163",
    "43616E6172794D61726B",
    "4B72616D5972616E6163",
    "%43%61%6e%61%72%79",
    "%4b%72%61%6d%59%72",
    "Q2FuYXJ5TWFya",
    "NhbmFyeU1hcm",
    "DYW5hcnlNYXJr",
    "S3JhbVlyYW5hY",
    "tyYW1ZcmFuYW",
    "LcmFtWXJhbmFj",
];

fn canary(number: usize) -> String {
    let inside = ["-plain-", "/+=~.", "%20&?<>", "{[(:;,", "-_-"][number % 5];
    format!("CanaryMark{number:03}{inside}{}KramYranac", number * 7919)
}

/// Where a text tells something of a value, if it does.
fn leak(text: &[u8]) -> Option<String> {
    MARKS.iter().find_map(|mark| {
        let at = text.windows(mark.len()).position(|part| part == mark.as_bytes())?;
        let around = &text[at.saturating_sub(60)..text.len().min(at + 60)];
        Some(String::from_utf8_lossy(around).into_owned())
    })
}

#[track_caller]
fn check(what: &str, text: &[u8]) {
    let around = leak(text);
    assert!(around.is_none(), "{what} tells of a value: {around:?}");
}

/// A folder with a server and a namespace of Python tools that tell all their secrets.
async fn leaky() -> Folder {
    let mut text = "surface = \"filter\"\n[audit]\nvalues = true\n[dock]\n[[servers]]\n\
        namespace = \"leak\"\ncommand = \"python3\"\nargs = [\"server.py\"]\nrestart = \"on-failure\"\n[servers.env]\n"
        .to_owned();
    let (mut secrets, mut variables) = (String::new(), String::new());
    for number in 0..CANARIES {
        _ = writeln!(text, "CANARY_{number:03} = \"${{secret:CANARY_{number:03}}}\"");
        _ = writeln!(secrets, "  - CANARY_{number:03}");
        _ = writeln!(variables, "CANARY_{number:03}='{}'", canary(number));
    }
    for special in ["CANARY_LINES", "CANARY_QUOTED"] {
        _ = writeln!(text, "{special} = \"${{secret:{special}}}\"");
        _ = writeln!(secrets, "  - {special}");
    }
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let put = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    put("server.py", include_str!("secrets_hidden/server.py"));
    put("spell.py", include_str!("secrets_hidden/spell.py"));
    let tools = "data/toolman/tools/worker";
    put(&format!("{tools}/tool.py"), include_str!("secrets_hidden/tool.py"));
    put(&format!("{tools}/spell.py"), include_str!("secrets_hidden/spell.py"));
    put(&format!("{tools}/tooldock.yaml"), &format!("secrets:\n{secrets}"));
    put("all.env", &variables);
    let (code, said) = run(&folder, &["import", "all.env"], "").await;
    assert_eq!(code, Some(0), "{said}");
    std::fs::remove_file(folder.path().join("all.env")).unwrap();
    set(&folder, "CANARY_LINES", "global", "CanaryMark one\nof two é lines\nKramYranac").await;
    set(&folder, "CANARY_QUOTED", "global", "CanaryMark \"q\" \\ / ü KramYranac").await;
    folder
}

/// All files below a folder.
fn each_file(folder: &Path, act: &mut dyn FnMut(&Path)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        if entry.file_type().unwrap().is_dir() {
            each_file(&entry.path(), act);
        } else if entry.file_type().unwrap().is_file() {
            act(&entry.path());
        }
    }
}

/// What a client over HTTP gets to read, all in one.
async fn ask_everything(service: &Service) -> String {
    let opened = service.send("/mcp", &[], &hello("2025-11-25")).await;
    let session = opened.header("mcp-session-id").unwrap().to_owned();
    let session = [("Mcp-Session-Id", session.as_str())];
    let mut heard = opened.body.clone();
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    service.send("/mcp", &session, ready).await;
    let with_progress = |name: &str| {
        let params = json!({"name": name, "arguments": {}, "_meta": {"progressToken": "p"}});
        request(9, "tools/call", params)
    };
    let requests = [
        request(1, "logging/setLevel", json!({"level": "debug"})),
        request(2, "tools/list", json!({})),
        request(3, "resources/list", json!({})),
        request(4, "resources/read", json!({"uri": "leak_mem://all"})),
        request(5, "prompts/list", json!({})),
        request(6, "prompts/get", json!({"name": "leak_all"})),
        with_progress("leak_show"),
        // A client that has got a value from elsewhere.
        call(10, "leak_fail", json!({"text": canary(7)})),
        call(11, "leak_garbage", json!({})),
        with_progress("worker_show"),
        call(12, "worker_fail", json!({})),
        call(13, "worker_crash", json!({})),
        call(14, "worker_show", json!({})),
    ];
    for request in requests {
        let answer = service.send("/mcp", &session, &request.to_string()).await;
        _ = writeln!(heard, "{} {}", request["id"], answer.body);
    }
    for (path, body) in [
        ("/tools", ""),
        ("/openapi.json", ""),
        ("/metrics", ""),
        ("/readyz", ""),
        ("/tools/worker_show", "{}"),
        ("/tools/worker_fail", "{}"),
        ("/tools/leak_show", "{}"),
        ("/tools/leak_fail", "{}"),
    ] {
        _ = writeln!(heard, "{path} {}", service.send(path, &[], body).await.body);
    }
    let crash = call(15, "leak_crash", json!({})).to_string();
    let answer = service.send("/mcp", &session, &crash).await;
    _ = writeln!(heard, "15 {}", answer.body);
    heard
}

/// Sees to it that no process below one shows a value, but for those that were given it in their environment, and their
/// guards, which nobody but root can read; how many they are.
fn look_at_processes(above: u32) -> usize {
    let mut given = 0;
    for pid in descendants(above).into_iter().chain([above]) {
        let proc = |file: &str| std::fs::read(format!("/proc/{pid}/{file}")).unwrap_or_default();
        let line = proc("cmdline");
        check("a command line", &line);
        let line = String::from_utf8_lossy(&line).into_owned();
        let is_given =
            pid != above && ["server.py", "worker.py"].iter().any(|it| line.contains(it));
        if is_given {
            given += usize::from(leak(&proc("environ")).is_some());
        } else {
            check(&format!("the environment of `{line}`"), &proc("environ"));
        }
    }
    given
}

/// What a model gets to read from the manager, of files that somebody has put values into.
async fn ask_manager(folder: &Folder, core: &Service) {
    let head = "from fastmcp.tools import tool\n\n@tool\ndef copied(text: str = \"\") -> str:\n";
    let mut source = format!("{head}    r'''");
    for number in 0..CANARIES {
        _ = writeln!(source, "{}", canary(number));
    }
    source += "'''\n    return text\n";
    let tools = folder.path().join("data/toolman/tools/worker");
    std::fs::write(tools.join("copied.py"), &source).unwrap();
    let mut command = folder.command(&["manager", "--listen", "127.0.0.1:0"]);
    command.env("CORE_URL", format!("http://{}", core.address)).env("CORE_TOKEN", TOKEN);
    command.env("TOOLMAN_LOG", "trace").env("TOOL_APPROVAL", "auto");
    command.stderr(File::create(folder.path().join("manager.log")).unwrap());
    let Dock { child, address } = Dock::spawn(command).await;
    let mut manager = Manager { child, address };
    let file = |name: &str| json!({"namespace": "worker", "filename": name});
    let code = |code: &str| json!({"namespace": "worker", "filename": "copied.py", "code": code});
    let test = |tool: &str| json!({"namespace": "worker", "tool_name": tool, "input": {}});
    for (tool, arguments, is_about_values) in [
        ("get_tool_source", file("copied.py"), true),
        ("list_tools", json!({"namespace": "worker"}), true),
        ("test_tool", test("show"), true),
        ("test_tool", test("fail"), true),
        ("write_tool", code(&source), false),
        ("write_tool", code(&source.replace("-> str", "-> ")), false),
        ("delete_tool", file(&format!("{}.py", canary(3))), false),
        ("list_secrets", json!({}), false),
        ("check_secrets", json!({"namespace": "worker"}), false),
        ("list_namespaces", json!({}), false),
    ] {
        let told = manager.call(tool, &arguments).await.to_string();
        check(tool, told.as_bytes());
        assert!(!is_about_values || told.contains("[redacted:CANARY_"), "{tool}: {told:.300}");
    }
    let pid = manager.child.id().unwrap();
    assert_eq!(look_at_processes(pid), 0);
    // Here the values were put by hand; everywhere else nobody may find one.
    std::fs::remove_file(tools.join("copied.py")).unwrap();
    std::fs::remove_dir_all(folder.path().join("data/toolman/history")).unwrap();
    kill("-TERM", pid);
    manager.child.wait().await.unwrap();
}

#[tokio::test]
async fn five_hundred_secrets_are_nowhere_but_where_they_belong() {
    // TD-61, TD-65
    let folder = leaky().await;
    let log = folder.path().join("log");
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command.env("BEARER_TOKEN", TOKEN).env("TOOLMAN_LOG", "trace").env("RUST_BACKTRACE", "1");
    command.stderr(File::create(&log).unwrap());
    let mut service = Service::run(command).await;
    let heard = ask_everything(&service).await;
    check("an answer", heard.as_bytes());
    for tool in
        ["\n9 ", "\n12 ", "\n13 ", "\n14 ", "\n15 ", "/tools/leak_show ", "/tools/worker_fail "]
    {
        let answer = heard.split(tool).nth(1).unwrap();
        assert!(answer.contains("[redacted:CANARY_"), "{tool}: {}", &answer[..300]);
    }
    let hidden = service.figure("toolman_secrets_hidden_total").await;
    assert!(hidden >= 2 * CANARIES as u64, "{hidden}");
    assert!(look_at_processes(service.pid) >= 2, "those who were given values have them");
    ask_manager(&folder, &service).await;
    kill("-TERM", service.pid);
    service.child.wait().await.unwrap();

    // Also the log, with all that servers print, and the audit trail.
    let mut files = 0;
    each_file(folder.path(), &mut |path| {
        files += 1;
        check(&path.display().to_string(), &std::fs::read(path).unwrap());
    });
    assert!(files > 10, "{files}");
    let log = std::fs::read_to_string(log).unwrap();
    assert!(log.contains("starting with [redacted:CANARY_000]"), "the server's stderr is there");
    let trail = folder.path().join("data/toolman/logs/audit");
    let mut lines = Vec::new();
    each_file(&trail, &mut |path| {
        let text = std::fs::read_to_string(path).unwrap();
        lines.extend(text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()));
    });
    let names: std::collections::BTreeSet<&str> = lines
        .iter()
        .filter(|line| line["event"] == "hidden" && line["item"] == "show")
        .map(|line| line["secret"].as_str().unwrap())
        .collect();
    assert_eq!(names.len(), CANARIES + 2);
    let told = lines.iter().find(|line| line["values"]["text"].is_string()).unwrap();
    assert_eq!(told["values"]["text"], "[redacted:CANARY_007]", "the client's own arguments");
    let session = told["session"].as_str().unwrap();
    assert!(lines.iter().any(|line| line["event"] == "hidden" && line["session"] == session));
    ask_by_commands(&folder).await;
}

/// What a person gets to read.
async fn ask_by_commands(folder: &Folder) {
    for arguments in [
        &["tools", "list", "--json"][..],
        &["tools", "call", "leak_show", "{}", "--json"],
        &["tools", "call", "worker_fail", "{}"],
        &["tools", "inspect", "leak_show"],
        &["check", "--json"],
        &["check"],
        &["audit", "show", "--json"],
        &["audit", "verify"],
        &["explain", "ada", "leak_show"],
        &["secrets", "list", "--json"],
        &["secrets", "check", "--json"],
    ] {
        let output = folder.run(arguments).await;
        let said = [output.stdout, output.stderr].concat();
        assert!(said.len() > 100 && output.status.code() != Some(2), "{arguments:?}: {said:?}");
        check(&format!("{arguments:?}"), &said);
    }
}

#[tokio::test]
async fn values_that_were_changed_stay_hidden_in_both_eras() {
    // TD-56, TD-62, TD-65
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"a\"\ncommand = \"env > a.env; {}\"\n\
         env = {{ API = \"${{secret:TOKEN}}\" }}\n",
        fake("echo")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    set(&folder, "TOKEN", "a", "the first value").await;
    set(&folder, "SHORT", "global", "12345").await;
    let mut running = folder.start().await;
    let both = json!({"text": "the first value, the second value, 12345"});
    let once = "[redacted:TOKEN], the second value, 12345";
    let told = running.client.call("a_echo", both.clone()).await.to_string();
    assert!(told.contains(once), "{told}");
    set(&folder, "TOKEN", "a", "the second value").await;
    let safe = || {
        let file =
            |name: &str| std::fs::read(folder.path().join("data/toolman").join(name)).unwrap();
        ["secrets.enc", "secrets.meta.yaml", "secrets.lock"].map(file)
    };
    let written = safe();
    let env = || std::fs::read_to_string(folder.path().join("a.env")).unwrap_or_default();
    while !env().contains("API=the second value") {
        tokio::task::yield_now().await;
    }
    let twice = "[redacted:TOKEN], [redacted:TOKEN], 12345";
    loop {
        let told = running.client.call("a_echo", both.clone()).await.to_string();
        if told.contains(twice) {
            break;
        }
        assert!(
            !told.contains("the first value") && !told.contains("the second value, 1"),
            "{told}"
        );
    }
    let params = json!({"name": "a_echo", "arguments": both});
    let told = running.client.ask_alone("tools/call", params).await.to_string();
    assert!(told.contains(twice), "{told}");
    assert!(safe() == written, "who serves only reads");
}

#[tokio::test]
async fn value_is_hidden_in_a_large_result_that_passes_in_pieces() {
    let secret = "streamed \"value\" of é";
    let text = format!("{secret}|").repeat(60_000);
    let url = site_of(text.clone().into()).await;
    let folder = Folder::new(TOOLMAN).with_tools_toml(&format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"a\"\nurl = \"{url}\"\n\
         headers = {{ X-Key = \"${{secret:TOKEN}}\" }}\n"
    ));
    set(&folder, "TOKEN", "global", "plain").await;
    set(&folder, "STREAMED", "a", secret).await;
    let service = Service::start(&folder, &[]).await;
    let session = service.session().await;
    let session = [("Mcp-Session-Id", session.as_str())];
    for order in ["id first", "id last"] {
        let body = call(1, "a_big", json!({"order": order})).to_string();
        let answer = service.send("/mcp", &session, &body).await;
        let result = &answer.json()["result"];
        let passed = result["content"][0]["text"].as_str().unwrap();
        assert_eq!(passed.len(), "[redacted:STREAMED]|".len() * 60_000, "{order}");
        assert!(passed.split('|').all(|part| part.is_empty() || part == "[redacted:STREAMED]"));
    }
    assert!(service.figure("toolman_secrets_hidden_total").await > 0);
}
