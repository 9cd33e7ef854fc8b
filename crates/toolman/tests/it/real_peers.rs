//! Real servers and real clients from the registries.

use serde_json::json;
use testkit::binary::Folder;
use testkit::peers::{client_script, node_server, python_program};

use crate::{TOOLMAN, example, fake};

/// A folder in which seven servers work: six real ones, and one that can be crashed.
fn project(uri_style: &str) -> Folder {
    let folder = Folder::new(TOOLMAN);
    let path = folder.path().to_owned();
    std::fs::create_dir(path.join("files")).unwrap();
    std::fs::write(path.join("files/hello.txt"), "hello from a file\n").unwrap();
    std::fs::create_dir(path.join("repo")).unwrap();
    let mut git = std::process::Command::new("git");
    git.args(["init", "-q"]).current_dir(path.join("repo"));
    assert!(git.status().unwrap().success());
    let memory = path.join("memory.json");
    let servers = [
        ("every", format!("{} stdio", node_server("server-everything"))),
        ("files", format!("{} files", node_server("server-filesystem"))),
        (
            "memory",
            format!("MEMORY_FILE_PATH={} exec {}", memory.display(), node_server("server-memory")),
        ),
        ("git", format!("{} --repository repo", python_program("sdk2", "mcp-server-git"))),
        ("time", format!("{} --local-timezone UTC", python_program("sdk2", "mcp-server-time"))),
        ("sqlite", format!("{} --db-path notes.db", python_program("sdk1", "mcp-server-sqlite"))),
        ("crash", fake("echo die")),
    ];
    let mut text = format!(
        "active_toolsets = [\"every_echo\", \"crash_*\", \"every_demo*\"]\nuri_style = \"{uri_style}\"\n"
    );
    for (namespace, command) in servers {
        text += &format!("[[servers]]\nnamespace = \"{namespace}\"\ncommand = \"{command}\"\n");
    }
    // The libraries can do more than most programs that are made with them.
    text += "[clients.'{mcp,fastmcp*}']\nlists = 'at-once'\nreads = 'all'\nselection = 'session'\n";
    folder.with_tools_toml(&text)
}

/// Lets an official client library drive the binary through its whole scenario, over each door.
///
/// A script is run by the program; a client without one is the program itself.
async fn drive<'a>(
    uri_style: &str,
    program: &str,
    script: impl Into<Option<&'a str>>,
    modes: &[&str],
) {
    let script = script.into();
    let folder = project(uri_style);
    let path = folder.path().to_str().unwrap().to_owned();
    for mode in modes {
        run(program, script, &[TOOLMAN, &path, mode]).await;
    }
    for mode in modes {
        // The walk ends one server for good, so each begins with a new gateway; and with another data directory, as
        // what a caller has chosen outlives the gateway.
        let folder = project(uri_style);
        let up = crate::up::Up::start(&folder).await;
        let url = format!("http://{}/mcp", up.address);
        run(program, script, &[&url, &up.token, mode]).await;
    }
}

pub async fn run<'a>(program: &str, script: impl Into<Option<&'a str>>, arguments: &[&str]) {
    let script = script.into();
    let mut command = tokio::process::Command::new(program);
    command.args(script.map(client_script)).args(arguments).kill_on_drop(true);
    let output = command.output().await.unwrap();
    let stdout = String::from_utf8_lossy(&output.stdout);
    let stderr = String::from_utf8_lossy(&output.stderr);
    let is_ok = output.status.success() && stdout.trim_end().ends_with("ok");
    assert!(is_ok, "{program} {script:?} {arguments:?}: {stdout}\n{stderr}");
}

/// The same over the transport of 2024-11-05.
async fn drive_over_sse(uri_style: &str, program: &str, script: &str) {
    let folder = project(uri_style);
    let up = crate::up::Up::start(&folder).await;
    run(program, script, &[&format!("http://{}/sse", up.address), &up.token]).await;
}

#[tokio::test]
async fn python_sdk_1_drives_the_binary() {
    let _loud = crate::MACHINE.read().await;
    let python = python_program("sdk1", "python");
    drive("auto", &python, "python_v1.py", &["legacy"]).await;
    drive_over_sse("auto", &python, "python_v1.py").await;
}

#[tokio::test]
async fn every_python_sdk_lists_and_reads_resources() {
    let _loud = crate::MACHINE.read().await;
    let folder = project("auto");
    let path = folder.path().to_str().unwrap();
    for sdk in ["mcp-2024-11-05", "mcp-2025-03-26", "mcp-2025-06-18", "sdk1"] {
        run(&python_program(sdk, "python"), "python_resources.py", &[TOOLMAN, path]).await;
    }
}

#[tokio::test]
async fn old_python_sdks_get_results_with_content_that_they_do_not_know() {
    let _loud = crate::MACHINE.read().await;
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"a\"\ncommand = \"{}\"\n",
        fake("say")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let path = folder.path().to_str().unwrap().to_owned();
    for sdk in ["mcp-2024-11-05", "mcp-2025-03-26", "mcp-2025-06-18"] {
        run(&python_program(sdk, "python"), "old_content.py", &[TOOLMAN, &path]).await;
    }
}

#[tokio::test]
async fn python_sdk_2_drives_the_binary() {
    let _loud = crate::MACHINE.read().await;
    let python = python_program("sdk2", "python");
    drive("underscore", &python, "python_v2.py", &["legacy", "auto"]).await;
}

#[tokio::test]
async fn fastmcp_drives_the_binary() {
    let _loud = crate::MACHINE.read().await;
    let python = python_program("fastmcp", "python");
    drive("auto", &python, "fastmcp_v4.py", &["legacy", "auto"]).await;
}

#[tokio::test]
async fn typescript_sdks_drive_the_binary() {
    let _loud = crate::MACHINE.read().await;
    drive("auto", "node", "typescript_v1.mjs", &["legacy"]).await;
    drive_over_sse("auto", "node", "typescript_v1.mjs").await;
    drive("auto", "node", "typescript_v2.mjs", &["legacy", "auto"]).await;
}

#[tokio::test]
async fn rust_sdk_drives_the_binary() {
    let _loud = crate::MACHINE.read().await;
    let client = example("rmcp_client");
    drive("auto", &client, None::<&str>, &["legacy", "auto", "modern"]).await;
}

#[tokio::test]
async fn real_server_offers_what_the_client_can_use() {
    let _loud = crate::MACHINE.read().await;
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"every\"\ncommand = \"{} stdio\"\n",
        node_server("server-everything")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let asking = ["elicitation-request", "url-elicitation", "sampling-request"];
    for (declared, offered) in [
        (json!({}), [false, false, false]),
        (json!({"elicitation": {}}), [true, false, false]),
        (json!({"elicitation": {"form": {}, "url": {}}}), [true, true, false]),
        (json!({"elicitation": {"url": {}}, "sampling": {}}), [true, true, true]),
    ] {
        let mut toolman = folder.start_raw();
        toolman.client.initialize(declared.clone()).await;
        // It adds those tools after the handshake.
        let mut last = Vec::new();
        for _ in 0..50 {
            let names = toolman.client.tool_names().await;
            let is_there = |tool: &str| names.contains(&format!("every_trigger-{tool}"));
            last = asking.map(is_there).to_vec();
            if last == offered && names.len() > 10 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        }
        assert_eq!(last, offered, "{declared}");
        toolman.client.close().await;
    }
}

#[tokio::test]
async fn six_real_servers_work_side_by_side() {
    let _loud = crate::MACHINE.read().await;
    // TA-16, TA-17, TA-42, TA-48, TA-49, TA-55, TA-62, TA-66
    let folder = project("underscore");
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    client.initialize(json!({"roots": {}, "sampling": {}, "elicitation": {}})).await;
    let on = ["every:*", "files:*", "memory:*", "git:*", "time:*", "sqlite:*"];
    // A server that started more slowly than the others joins with a notice.
    while client.activate(&on, &[], &["every:*", "memory:*"], &[]).await["isError"] == true {
        client.next("notifications/tools/list_changed").await;
    }
    let names = client.tool_names().await;
    for name in [
        "every_echo",
        "files_read_text_file",
        "memory_read_graph",
        "git_git_status",
        "time_get_current_time",
        "sqlite_list_tables",
    ] {
        assert!(names.contains(&name.to_owned()), "{name} in {names:?}");
    }
    let sum = client.call("every_get-sum", json!({"a": 2, "b": 40})).await;
    assert_eq!(sum["content"][0]["text"], "The sum of 2 and 40 is 42.");
    let file = client
        .call("files_read_text_file", json!({"path": folder.path().join("files/hello.txt")}))
        .await;
    assert_eq!(file["content"][0]["text"], "hello from a file\n");
    let wrong = client.call("files_read_text_file", json!({"path": 7})).await;
    assert_eq!(wrong["isError"], true);
    let status = client.call("git_git_status", json!({"repo_path": "repo"})).await;
    assert!(status.to_string().contains("No commits yet"), "{status}");
    let graph = client.call("memory_read_graph", json!({})).await;
    assert_eq!(graph["structuredContent"], json!({"entities": [], "relations": []}));
    let time = client.call("time_get_current_time", json!({"timezone": "UTC"})).await;
    assert!(time.to_string().contains("UTC"), "{time}");
    let table = "create table notes (id integer)";
    client.call("sqlite_create_table", json!({"query": table})).await;
    let tables = client.call("sqlite_list_tables", json!({})).await;
    assert!(tables.to_string().contains("notes"), "{tables}");
    let uri = "every_demo://resource/dynamic/text/7";
    let read = client.request("resources/read", json!({"uri": uri})).await;
    assert!(read["result"]["contents"][0]["text"].as_str().unwrap().contains('7'), "{read}");
    let prompt = json!({"name": "every_args-prompt", "arguments": {"city": "Oslo"}});
    let prompt = client.request("prompts/get", prompt).await;
    assert!(prompt.to_string().contains("Oslo"), "{prompt}");
}

#[tokio::test]
async fn real_server_asks_and_reports_through_us() {
    let _loud = crate::MACHINE.read().await;
    let folder = project("underscore");
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    client.initialize(json!({"roots": {"listChanged": true}, "sampling": {}})).await;
    while client.activate(&["every:*"], &[], &[], &[]).await["isError"] == true {
        client.next("notifications/tools/list_changed").await;
    }
    let arguments = json!({"duration": 1, "steps": 2});
    let call = json!({"name": "every_trigger-long-running-operation", "arguments": arguments,
        "_meta": {"progressToken": "p"}});
    let long = client.begin("tools/call", call).await;
    assert_eq!(client.next("notifications/progress").await["params"]["progressToken"], "p");
    client.answer(long).await;
    let arguments = json!({"prompt": "hi", "maxTokens": 5});
    let call = json!({"name": "every_trigger-sampling-request", "arguments": arguments});
    let sampling = client.begin("tools/call", call).await;
    let asked = client.next("sampling/createMessage").await;
    let message =
        json!({"role": "assistant", "content": {"type": "text", "text": "hello!"}, "model": "m"});
    let answer = json!({"jsonrpc": "2.0", "id": asked["id"], "result": message});
    client.send(&answer.to_string()).await;
    assert!(client.answer(sampling).await.to_string().contains("hello!"));
}

#[tokio::test]
async fn tasks_of_a_real_server_pass_through_us() {
    let _loud = crate::MACHINE.read().await;
    let command = format!("{} stdio", node_server("server-everything"));
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"every\"\ncommand = \"{command}\"\n\
         [[servers]]\nnamespace = \"twin\"\ncommand = \"{command}\"\n"
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    let introduction = client.initialize(json!({"elicitation": {}})).await;
    assert!(introduction["capabilities"]["tasks"]["requests"].is_object(), "{introduction}");
    let arguments = json!({"topic": "tea", "ambiguous": false});
    let params =
        json!({"name": "every_simulate-research-query", "arguments": arguments, "task": {}});
    let begun = client.request("tools/call", params).await;
    let task = json!({"taskId": begun["result"]["task"]["taskId"]});
    let known = client.request("tasks/get", task.clone()).await;
    assert_eq!(known["result"]["taskId"], task["taskId"], "{known}");
    let list = client.request("tasks/list", json!({})).await;
    assert_eq!(list["result"]["tasks"].as_array().unwrap().len(), 1, "of both servers: {list}");
    let result = client.request("tasks/result", task).await;
    assert!(result["result"]["content"][0]["text"].as_str().unwrap().contains("tea"), "{result}");
    let foreign = client.request("tasks/get", json!({"taskId": "of nobody"})).await;
    assert_eq!(foreign["error"]["code"], -32602);
    assert_eq!(
        foreign["error"]["message"],
        "no task has the id `of nobody`; it may have ended long ago"
    );
}

#[tokio::test]
async fn openapi_document_of_real_servers_is_valid() {
    let _loud = crate::MACHINE.read().await;
    let folder = project("underscore");
    let up = crate::up::Up::start(&folder).await;
    let on = ["every:*", "files:*", "memory:*", "git:*", "time:*", "sqlite:*"];
    let lists = json!({"tools_on": on, "tools_off": [], "resources_on": [], "resources_off": []});
    // A server that started more slowly than the others joins later.
    let all_on = async {
        while crate::rest::call(&up, "toolman_activate", &lists).await.json()["isError"] == true {}
    };
    tokio::time::timeout(testkit::client::PATIENCE, all_on).await.expect("all servers join");
    crate::rest::check_document(&up).await;
}

#[tokio::test]
async fn example_of_the_readme_works_when_pasted() {
    let _loud = crate::MACHINE.read().await;
    let readme = include_str!("../../../../README.md");
    let example = readme.split("```toml\n").nth(1).unwrap().split("```").next().unwrap();
    // What `npx` would fetch is installed already.
    let installed = |text: String, name: &str| {
        let package = format!("npx -y @modelcontextprotocol/{name}");
        assert!(text.contains(&package), "{text}");
        text.replace(&package, &node_server(name))
    };
    let text = installed(installed(example.to_owned(), "server-filesystem"), "server-memory");
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let mut toolman = folder.start().await;
    let names = toolman.client.tool_names().await;
    assert!(names.contains(&"files_read_text_file".to_owned()), "{names:?}");
    assert!(names.contains(&"memory_read_graph".to_owned()), "{names:?}");
    assert!(!names.contains(&"files_write_file".to_owned()), "{names:?}");
}
