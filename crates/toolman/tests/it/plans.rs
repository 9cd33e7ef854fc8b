//! From a task to the least configuration for it, and the example file with its kinds of agents.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::peers::{node_server, python_program};

use crate::{TOOLMAN, example};

/// A folder with this file as `toolman.json`.
fn with_json(text: &str) -> Folder {
    let folder = Folder::new(TOOLMAN);
    std::fs::write(folder.path().join("toolman.json"), text).unwrap();
    folder
}

/// Three servers that have what a plan asks for, and more.
fn servers() -> Value {
    let server = |tools: &str| {
        let mut words = tools.split(' ');
        json!({"command": example("fake_upstream"), "args": words.by_ref().collect::<Vec<_>>(),
            "env": {"TOKEN": "${PLAN_TOKEN:-none}"}})
    };
    json!({
        "github": server("get_file_contents create_pull_request create_branch delete_repository"),
        "taskmaster": server("get_tasks add_task update_task_status"),
        "filesystem": server("read_file write_file list_directory create_directory move_file"),
    })
}

async fn plan(folder: &Folder, arguments: &[&str]) -> (Option<i32>, String, String) {
    let arguments = [&["plan"], arguments].concat();
    let output = folder.run(&arguments).await;
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

const TASK: [&str; 4] = ["--service", "user-api", "--task", "add an endpoint and test it"];

const PLANNED: [&str; 10] = [
    "filesystem_create_directory",
    "filesystem_list_directory",
    "filesystem_read_file",
    "filesystem_write_file",
    "github_create_branch",
    "github_create_pull_request",
    "github_get_file_contents",
    "taskmaster_add_task",
    "taskmaster_get_tasks",
    "taskmaster_update_task_status",
];

#[tokio::test]
async fn planned_configuration_serves_what_the_task_needs_and_nothing_else() {
    // TF-33, TF-34, TF-35, TF-38, TF-41
    let folder = with_json(&json!({"servers": servers()}).to_string());
    let (code, text, notes) = plan(&folder, &TASK).await;
    assert_eq!((code, notes.as_str()), (Some(0), ""), "{text}");
    let planned: Value = serde_json::from_str(&text).unwrap();
    let why = &planned["metadata"]["why"]["github"]["create_branch"];
    assert_eq!(why, "work on an API or service (`api`)");
    assert_eq!(planned["servers"]["github"]["env"]["TOKEN"], "${PLAN_TOKEN:-none}", "as written");
    let mut served = with_json(&text).start().await;
    assert_eq!(served.client.tool_names().await, PLANNED);
    let (_, text, _) = plan(&folder, &[&TASK[..], &["--format", "toml"]].concat()).await;
    assert!(text.contains("\"create_branch\", # work on an API or service (`api`)"), "{text}");
    let mut served = Folder::new(TOOLMAN).with_tools_toml(&text).start().await;
    assert_eq!(served.client.tool_names().await, PLANNED);
}

#[tokio::test]
async fn plan_for_kubernetes_is_a_config_map_from_a_task_run() {
    // TF-33, TF-43
    let folder = with_json(&json!({"servers": servers()}).to_string());
    let run = "apiVersion: orchestrator.io/v1\nkind: TaskRun\nspec:\n  serviceName: user-api\n  \
        markdownFiles:\n    - filename: task.md\n      content: |\n        Add an endpoint\n        \
        and test it\n";
    std::fs::write(folder.path().join("run.yaml"), run).unwrap();
    let (code, text, _) =
        plan(&folder, &["--taskrun", "run.yaml", "--configmap", "toolman-task-7"]).await;
    assert_eq!(code, Some(0));
    let head = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: toolman-task-7\ndata:\n  \
        toolman.json: |\n";
    let body = text.strip_prefix(head).unwrap_or_else(|| unreachable!("{text}"));
    let lines: Vec<_> = body.lines().map(|line| &line[4..]).collect();
    let body = lines.join("\n");
    // Mounted read-only, as a ConfigMap is.
    let mounted = with_json(&body);
    let path = mounted.path().join("toolman.json");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
    assert_eq!(mounted.start().await.client.tool_names().await, PLANNED);
    for (arguments, words) in [
        (&["--taskrun", "none.yaml"][..], "none.yaml: No such file"),
        (&["--taskrun", "toolman.json"], "it says nothing of a task; give `spec.serviceName`"),
        (&["--service", "a"], "--task"),
        (&["--service", "a", "--task", "b", "--configmap", "A_b"], "needs a name of lowercase"),
    ] {
        let (code, _, said) = plan(&folder, arguments).await;
        assert_eq!(code, Some(2), "{arguments:?}");
        assert!(said.contains(words), "{said}");
    }
}

#[tokio::test]
async fn plan_stays_within_the_file_and_says_what_it_left_out() {
    let text = json!({
        "servers": servers(),
        "exposed_tools": {"filesystem": ["read_file"]},
        "task_based_tool_selection": {"patterns": {"moves": {"keywords": ["endpoint"],
            "additional_tools": {"filesystem": ["list_directory", "move_file"], "none": ["x"]}}}},
        "security_settings": {"dangerous_tools": ["filesystem:move_file"]},
    });
    let folder = with_json(&text.to_string());
    let (_, text, notes) = plan(&folder, &TASK).await;
    let planned: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(planned["exposed_tools"]["filesystem"], json!(["read_file", "list_directory"]));
    for note in [
        "left out: `filesystem:write_file`; `toolman.json:1 exposed_tools.filesystem` does not have it",
        "left out: `filesystem:move_file`; `toolman.json:1 security_settings.dangerous_tools` has it",
        "left out: `none:x`; there is no server `none`",
    ] {
        assert!(notes.contains(note), "{notes}");
    }
    assert_eq!(planned["security_settings"]["dangerous_tools"][0], "filesystem:move_file");
}

#[tokio::test]
async fn plan_is_checked_against_the_real_servers() {
    let folder = with_json(&json!({"servers": servers()}).to_string());
    let (code, text, _) = plan(&folder, &[&TASK[..], &["--check"]].concat()).await;
    assert_eq!((code, text.as_str()), (Some(0), "10 of 10 planned tools are there\n"));
    let deploys = ["--service", "x", "--task", "deploy it", "--check"];
    let (code, text, _) = plan(&folder, &deploys).await;
    assert_eq!(code, Some(1));
    assert!(
        text.contains("`github` has no tool `run_workflow` (deployment runs workflows"),
        "{text}"
    );
}

/// The example file in a folder where `npx` and `uvx` run what the tests have installed.
fn example_project() -> Folder {
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/agents.json");
    let folder = with_json(&std::fs::read_to_string(example).unwrap());
    let bin = folder.path().join("bin");
    std::fs::create_dir(&bin).unwrap();
    let (files, memory) = (node_server("server-filesystem"), node_server("server-memory"));
    let npx = format!(
        "#!/bin/sh\nshift\ncase \"$1\" in\n*server-filesystem) shift; exec {files} \"$@\";;\n\
         *server-memory) exec {memory};;\nesac\nexit 1\n"
    );
    let git = python_program("sdk2", "mcp-server-git");
    let sqlite = python_program("sdk1", "mcp-server-sqlite");
    let uvx = format!(
        "#!/bin/sh\ncase \"$1\" in\nmcp-server-git) shift; exec {git} \"$@\";;\n\
         mcp-server-sqlite) shift; exec {sqlite} \"$@\";;\nesac\nexit 1\n"
    );
    for (name, script) in [("npx", npx), ("uvx", uvx)] {
        std::fs::write(bin.join(name), script).unwrap();
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(bin.join(name), executable).unwrap();
    }
    let mut git = std::process::Command::new("git");
    assert!(git.args(["init", "-q"]).current_dir(folder.path()).status().unwrap().success());
    std::fs::write(folder.path().join("hello.txt"), "hello from a file\n").unwrap();
    folder
}

#[tokio::test]
async fn example_shows_each_kind_of_agent_what_its_work_needs() {
    // TF-02, TF-03, TF-04, TF-05, TF-06, TF-07, TF-09, TF-11, TF-12, TF-42, TF-45
    let _loud = crate::MACHINE.read().await;
    let folder = example_project();
    for (agent, tools) in [
        (
            "developer",
            "filesystem_create_directory filesystem_edit_file filesystem_list_directory \
             filesystem_read_text_file filesystem_write_file git_git_add git_git_commit git_git_diff \
             git_git_log git_git_status",
        ),
        (
            "researcher",
            "filesystem_read_text_file filesystem_search_files memory_add_observations \
             memory_create_entities memory_read_graph memory_search_nodes",
        ),
        (
            "analyst",
            "filesystem_list_directory filesystem_read_text_file sqlite_describe_table \
             sqlite_list_tables sqlite_read_query",
        ),
        ("automation", "filesystem_read_text_file filesystem_write_file"),
        (
            "readonly",
            "filesystem_get_file_info filesystem_list_directory filesystem_read_text_file \
             filesystem_search_files git_git_diff git_git_log git_git_show git_git_status",
        ),
    ] {
        let mut running = folder.start_with_path(agent, "bin").await;
        let tools: Vec<_> = tools.split_whitespace().collect();
        // On a busy machine some servers come later than others.
        while running.client.tool_names().await.len() < tools.len() {
            running.client.next("notifications/tools/list_changed").await;
        }
        assert_eq!(running.client.tool_names().await, tools, "{agent}");
        let path = folder.path().canonicalize().unwrap().join("hello.txt");
        let read = running
            .client
            .call("filesystem:read_text_file", json!({"path": path.display().to_string()}))
            .await;
        assert_eq!(read["content"][0]["text"], "hello from a file\n", "{agent}: {read}");
        let hidden = running.client.call("git_git_reset", json!({})).await;
        let said = hidden["structuredContent"]["error"].as_str().unwrap_or_default();
        assert!(said.starts_with("no tool is named `git_git_reset`"), "{hidden}");
        if agent == "analyst" {
            let tables = running.client.call("sqlite_list_tables", json!({})).await;
            assert_ne!(tables["isError"], true, "{tables}");
        }
    }
}

#[tokio::test]
async fn client_config_serves_local_tools_and_those_of_a_gateway_elsewhere() {
    let up =
        crate::up::Up::start(&crate::folder("surface = \"filter\"", &[("far", "echo tree")])).await;
    let local = example("fake_upstream");
    let text = json!({"remoteTools": ["far_echo"], "localServers": {
        "near": {"command": local, "args": ["echo", "fail"], "tools": ["fail"],
            "workingDirectory": "project_root", "env": {"WHERE": "{{project_dir}}"}},
        "open": {"command": local, "args": ["tree"]}}});
    let folder = with_json(&text.to_string());
    let missing = folder.run(&["check"]).await;
    let said = String::from_utf8(missing.stderr).unwrap();
    assert!(
        said.contains("`remoteTools` is about a gateway elsewhere; set TOOLMAN_SERVER_URL"),
        "{said}"
    );
    let mut command = folder.command(&["--agent", "x", "tools", "list", "--json"]);
    command.env("TOOLMAN_SERVER_URL", format!("http://{}/mcp", up.address));
    command.env("TOOLMAN_TOKEN", &up.token);
    let output = command.output().await.unwrap();
    let tools: Value = serde_json::from_slice(&output.stdout).unwrap();
    let tools = tools.as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["far_echo", "near_fail", "open_tree"]);
}

#[tokio::test]
async fn servers_of_other_names_are_planned_by_what_they_offer() {
    let server = |tools: &str, env: Value| json!({"command": example("fake_upstream"), "args": tools.split(' ').collect::<Vec<_>>(), "env": env});
    let folder = with_json(
        &json!({"servers": {
            "code": server("get_file_contents create_pull_request create_branch", json!({})),
            "disk": server("read_text_file write_file list_directory create_directory", json!({"K": "${secret:NOBODY}"})),
            "todo": server("get_tasks add_task", json!({"K": "${NOT_SET}"})),
            "disk2": server("read_text_file write_file", json!({})),
        }})
        .to_string(),
    );
    let (code, text, notes) = plan(&folder, &TASK).await;
    assert_eq!(code, Some(0), "{notes}");
    let planned: Value = serde_json::from_str(&text).unwrap();
    let exposed = &planned["exposed_tools"];
    assert_eq!(
        exposed["code"],
        json!(["get_file_contents", "create_pull_request", "create_branch"])
    );
    assert_eq!(exposed["disk2"], json!(["read_text_file", "write_file"]));
    for note in [
        "server `todo` is not asked what it offers: it needs `NOT_SET`, which is not set",
        "server `disk` can't be asked what it offers: it",
        "left out: `taskmaster:get_tasks`; there is no server `taskmaster`, and no other offers that",
    ] {
        assert!(notes.contains(note), "{note} in {notes}");
    }
}

#[tokio::test]
async fn plan_with_servers_of_the_usual_names_needs_no_variable_and_starts_nobody() {
    let server =
        json!({"command": "no-such-program", "env": {"K": "${NOT_SET}", "S": "${secret:NOBODY}"}});
    let folder = with_json(
        &json!({"servers": {"github": server, "taskmaster": server, "filesystem": server}})
            .to_string(),
    );
    let (code, text, notes) = plan(&folder, &TASK).await;
    assert_eq!((code, notes.as_str()), (Some(0), ""), "{text}");
    let planned: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(planned["servers"]["github"]["env"]["K"], "${NOT_SET}");
}
