//! The manager: its tools, driven through its own doors, with a core in another process.

mod approval;
mod at_once;
mod compose;
mod doors;
mod leaving;
mod paths;
mod proposals;
mod sdks;
mod secrets;
mod story;
mod table;
mod waits;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::{HttpAnswer, send};
use tokio::process::Child;
use tokio::time::timeout;

use crate::TOOLMAN;
use crate::dock::{Data, Dock, HELLO, MANAGER, TOKEN, served};
use crate::up::request;

/// `toolman manager` in a process of its own.
pub struct Manager {
    pub child: Child,
    pub address: String,
}

impl Manager {
    /// Beside a core; what models write is put in place at once.
    pub async fn beside(data: &Data, core: &Dock) -> Manager {
        let url = format!("http://{}", core.address);
        Manager::start(data, &[("CORE_URL", &url), ("TOOL_APPROVAL", "auto")]).await
    }

    pub async fn start(data: &Data, environment: &[(&str, &str)]) -> Manager {
        let (child, address) = served(data, "manager", environment).await;
        Manager { child, address }
    }

    pub async fn ask(&self, method: &str, path: &str, body: &str) -> HttpAnswer {
        let bearer = format!("Bearer {TOKEN}");
        send(&self.address, method, path, &[("Authorization", &bearer)], body).await
    }

    /// The whole result of a call.
    pub async fn call(&self, tool: &str, arguments: &Value) -> Value {
        let answer = self.ask("POST", &format!("/tools/{tool}"), &arguments.to_string()).await;
        assert_eq!(answer.status, 200, "{tool}: {answer:?}");
        answer.json()
    }

    /// What a tool gives, which must be no error; a list as it is.
    pub async fn done(&self, tool: &str, arguments: Value) -> Value {
        let result = self.call(tool, &arguments).await;
        assert_ne!(result["isError"], true, "{tool}: {result}");
        let given = &result["structuredContent"];
        let is_list = given["result"].is_array() && given.as_object().unwrap().len() == 1;
        if is_list { given["result"].clone() } else { given.clone() }
    }

    /// Why a tool refuses.
    pub async fn refused(&self, tool: &str, arguments: Value) -> String {
        let result = self.call(tool, &arguments).await;
        assert_eq!(result["isError"], true, "{tool}: {result}");
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }
}

/// A data directory, a core and a manager.
async fn both(files: &[(&str, &str)]) -> (Data, Dock, Manager) {
    let data = Data::new(files);
    let core = Dock::start(&data).await;
    let manager = Manager::beside(&data, &core).await;
    (data, core, manager)
}

/// A file with one tool.
pub fn tool(name: &str, body: &str) -> String {
    format!(
        "from fastmcp.tools import tool\n\n@tool\ndef {name}(text: str = \"x\") -> str:\n    \
         \"\"\"Do {name}.\"\"\"\n    {body}\n"
    )
}

#[tokio::test]
async fn manager_serves_its_tools_under_bare_names_with_all_that_a_model_needs() {
    // TD-03, TD-05, TD-117, TD-119
    let (_data, _core, manager) = both(&[]).await;
    let health = send(&manager.address, "GET", "/health", &[], "").await;
    assert_eq!((health.status, &health.json()["status"]), (200, &json!("ok")));
    assert_eq!(send(&manager.address, "POST", "/mcp", &[], "{}").await.status, 401);
    let list = manager.ask("GET", "/tools", "").await.json();
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<_> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    for name in [
        "get_started",
        "get_tool_template",
        "list_namespaces",
        "create_namespace",
        "delete_namespace",
        "list_tools",
        "get_tool_source",
        "write_tool",
        "generate_tool",
        "delete_tool",
        "install_requirements",
        "add_requirement",
        "list_requirements",
        "install_pip_packages",
        "declare_secret",
        "prepare_secret",
        "list_secrets",
        "remove_secret",
        "check_secrets",
        "reload_core",
        "test_tool",
        "health",
        "server_config",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        assert!(tool["description"].as_str().unwrap().len() > 40, "{name}");
        assert!(tool["title"].is_string() && tool["outputSchema"]["type"] == "object", "{name}");
        assert_eq!(tool["inputSchema"]["additionalProperties"], false, "{name}");
        let is_destructive = name.starts_with("delete") || name.starts_with("remove");
        let hints = &tool["annotations"];
        // Destructive is what says neither that it reads nor that it is not.
        assert_eq!(
            hints["readOnlyHint"] != true && hints["destructiveHint"] != false,
            is_destructive || name == "test_tool",
            "{name}"
        );
    }
    let wrong = manager.refused("create_namespace", json!({"nam": "x"})).await;
    assert!(wrong.starts_with("the arguments are wrong: "), "{wrong}");
    let started = manager.done("get_started", json!({})).await;
    assert!(started["guide"].as_str().unwrap().contains("reload_core"), "{started}");
}

#[tokio::test]
async fn every_revision_and_the_legacy_pair_reach_the_manager() {
    // TD-117: sessions, and HTTP+SSE where it begins with an address for messages.
    let (_data, _core, manager) = both(&[]).await;
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25"] {
        let params = json!({"protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let body = request(0, "initialize", params).to_string();
        let answer = manager.ask("POST", "/mcp", &body).await;
        assert_eq!(answer.json()["result"]["protocolVersion"], revision);
        let said = answer.json()["result"]["instructions"].to_string();
        assert!(said.contains("get_started"), "{said}");
    }
    crate::real_peers::run(
        &testkit::peers::python_program("sdk1", "python"),
        "manager.py",
        &[&format!("http://{}/sse", manager.address), TOKEN, "look"],
    )
    .await;
}

#[tokio::test]
async fn namespaces_are_made_listed_and_deleted() {
    // TD-120, TD-121, TD-122, TD-123, TD-115, HARDENING F07
    let (data, core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let made = manager.done("create_namespace", json!({"name": "github"})).await;
    let path = data.path().canonicalize().unwrap().join("tools/github");
    assert_eq!((made["created"].as_bool(), made["path"].as_str()), (Some(true), path.to_str()));
    let again = manager.refused("create_namespace", json!({"name": "github"})).await;
    assert!(again.contains("exists already") && again.contains(path.to_str().unwrap()), "{again}");
    let long = "a".repeat(65);
    for name in ["_system", "Upper", "dots.here", "with space", "", "..", &long] {
        manager.refused("create_namespace", json!({"name": name})).await;
    }
    data.write("github/requirements.txt", "idna==3.10\n");
    data.write("github/tooldock.yaml", "secrets: [GITHUB_TOKEN]\n");
    let listed = manager.done("list_namespaces", json!({})).await;
    let row = |name, tools, requirements, secrets| {
        json!({"name": name, "tool_count": tools, "has_requirements": requirements,
            "secrets_status": secrets})
    };
    let rows = [row("github", 0, true, "missing"), row("shared", 1, false, "no_secrets_needed")];
    assert_eq!(listed, json!(rows));
    let done = manager.done("reload_core", json!({})).await;
    assert_eq!(
        (&done["reloaded"], &done["namespaces"]),
        (&json!(true), &json!(["github", "shared"]))
    );
    assert_eq!(done["deps_synced"], json!(["github"]));
    assert!(done["workers_restarted"].is_array());
    let gone = manager.done("delete_namespace", json!({"name": "github"})).await;
    assert_eq!((&gone["deleted"], &gone["name"]), (&json!(true), &json!("github")));
    assert!(!path.exists() && !data.path().join("venvs/github").exists());
    manager.refused("delete_namespace", json!({"name": "_system"})).await;
    let unknown = manager.refused("delete_namespace", json!({"name": "github"})).await;
    assert!(unknown.contains("there is no namespace `github`"), "{unknown}");
    manager.done("reload_core", json!({})).await;
    assert_eq!(core.ask("GET", "/tools", &[("X-Namespace", "github")], "").await.status, 404);
}

/// The arguments of `write_tool`.
fn written(file: &str, code: &str) -> Value {
    json!({"namespace": "shared", "filename": file, "code": code})
}

#[tokio::test]
async fn file_that_no_model_could_use_is_refused_with_its_place() {
    // TD-126, HARDENING F01, F03, F05
    let (data, _core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let head = "from fastmcp.tools import tool\n\n@tool\n";
    let wrong = [
        ("x.txt", HELLO.to_owned(), "Invalid filename", "must end in `.py`"),
        ("_x.py", HELLO.to_owned(), "Invalid filename", "begin with `.` or `_`"),
        ("x.py", "def f(:\n    pass\n".to_owned(), "Syntax error", "x.py:1:7: "),
        (
            "x.py",
            "def f() -> None:\n    pass\n".to_owned(),
            "No @tool decorator found",
            "x.py:1:1: ",
        ),
        (
            "x.py",
            format!("{head}def f(a) -> str:\n    \"\"\"F.\"\"\"\n"),
            "Missing type hint",
            "x.py:4:7: ",
        ),
        (
            "x.py",
            format!("{head}def f(a: int) -> str:\n    return ''\n"),
            "Missing docstring",
            "x.py:4:1: ",
        ),
        (
            "x.py",
            format!("{head}def f(*a: int) -> str:\n    \"\"\"F.\"\"\"\n"),
            "The tools can't be used",
            "x.py:3",
        ),
    ];
    for (file, code, error, details) in wrong {
        let refused = manager.done("write_tool", written(file, &code)).await;
        assert_eq!(
            (&refused["written"], &refused["error"]),
            (&json!(false), &json!(error)),
            "{refused}"
        );
        assert!(refused["details"].as_str().unwrap().contains(details), "{refused}");
        assert!(!data.path().join("tools/shared").join(file).exists(), "{file}");
    }
}

#[tokio::test]
async fn files_of_tools_are_written_read_and_deleted() {
    // TD-124, TD-125, TD-126, TD-127, TD-137
    let (_data, _core, manager) = both(&[("shared/hello.py", HELLO)]).await;
    let done =
        manager.done("write_tool", written("x.py", &tool("shout", "return text.upper()"))).await;
    let expected =
        [("written", json!(true)), ("filename", json!("x.py")), ("tools_found", json!(["shout"]))];
    for (key, value) in expected {
        assert_eq!(done[key], value, "{done}");
    }
    let done =
        manager.done("generate_tool", written("y.py", &tool("whisper", "return text"))).await;
    assert_eq!(done["tools_found"], json!(["whisper"]));
    let listed = manager.done("list_tools", json!({"namespace": "shared"})).await;
    let row = |name, description, file| json!({"name": name, "description": description, "filename": file});
    let rows = [
        row("hello", "Greet.", "hello.py"),
        row("shout", "Do shout.", "x.py"),
        row("whisper", "Do whisper.", "y.py"),
    ];
    assert_eq!(listed, json!(rows));
    let read = |file: &str| json!({"namespace": "shared", "filename": file});
    let source = manager.done("get_tool_source", read("x.py")).await;
    assert_eq!((&source["filename"], &source["written_by"]), (&json!("x.py"), &json!("model")));
    assert_eq!(source["source"], json!(tool("shout", "return text.upper()")));
    assert_eq!(manager.done("get_tool_source", read("hello.py")).await["written_by"], "person");
    let template = manager.done("get_tool_template", json!({})).await;
    let code = template["code"].as_str().unwrap();
    let accepted = manager.done("write_tool", written("template.py", code)).await;
    assert_eq!(accepted["written"], true, "{accepted}");
    let gone = manager.done("delete_tool", read("x.py")).await;
    assert_eq!((&gone["deleted"], &gone["filename"]), (&json!(true), &json!("x.py")));
    let unknown = manager.refused("delete_tool", read("x.py")).await;
    assert!(unknown.contains("there is no file `x.py` in `shared`"), "{unknown}");
}

#[tokio::test]
async fn packages_are_added_listed_and_installed_but_options_are_refused() {
    // TD-128, TD-129, TD-130, TD-139, HARDENING D01
    let (data, _core, manager) = both(&[("web/t.py", HELLO)]).await;
    let of_web = json!({"namespace": "web"});
    let none = json!({"namespace": "web", "packages": []});
    assert_eq!(manager.done("list_requirements", of_web.clone()).await, none);
    let add = |package: &str| json!({"namespace": "web", "package": package});
    for package in
        ["--index-url https://example.com", "-e .", "x @ https://example.com/x.whl", "a\n-r b"]
    {
        manager.refused("add_requirement", add(package)).await;
    }
    let added = manager.done("add_requirement", add("idna==3.10")).await;
    assert_eq!(
        (&added["added"], &added["package"], &added["namespace"]),
        (&json!(true), &json!("idna==3.10"), &json!("web"))
    );
    assert!(data.path().join("venvs/web/current/bin/python").exists());
    let failed = manager.done("add_requirement", add("idna==0.0.0")).await;
    assert_eq!((&failed["added"], &failed["error"]), (&json!(false), &json!("pip install failed")));
    let listed = manager.done("list_requirements", of_web.clone()).await;
    assert_eq!(listed["packages"], json!(["idna==3.10"]), "what can't be installed is not kept");
    let installed = manager.done("install_requirements", of_web.clone()).await;
    assert_eq!(
        installed,
        json!({"installed": true, "namespace": "web", "packages": ["idna==3.10"]})
    );
    data.write("web/requirements.txt", "--trusted-host x\n");
    let refused = manager.done("install_requirements", of_web).await;
    assert_eq!(refused["installed"], false, "{refused}");
    assert!(refused["details"].as_str().unwrap().contains("line 1: "), "{refused}");
    let own = manager.done("install_pip_packages", json!({"packages": ["idna==3.10"]})).await;
    assert_eq!(own, json!({"installed": true, "packages": ["idna==3.10"]}));
    assert!(data.path().join("venvs/_manager/current/bin/python").exists());
    manager.refused("install_pip_packages", json!({"packages": ["-r x"]})).await;
}

#[tokio::test]
async fn tools_are_tried_through_the_core_with_traceback() {
    // TD-138, TD-143, TD-144
    let broken = tool("broken", "raise KeyError('GITHUB_TOKEN')");
    let (data, core, mut manager) =
        both(&[("shared/hello.py", HELLO), ("shared/b.py", &broken)]).await;
    let test = |tool: &str, input: Value| json!({"namespace": "shared", "tool_name": tool, "input": input});
    let done = manager.done("test_tool", test("hello", json!({"name": "Ada"}))).await;
    assert_eq!(done, json!({"success": true, "result": {"result": "Hello, Ada!"}}));
    let failed = manager.done("test_tool", test("broken", json!({}))).await;
    assert_eq!(failed["success"], false);
    assert!(failed["error"].as_str().unwrap().contains("KeyError"), "{failed}");
    let traceback = failed["traceback"].as_str().unwrap();
    assert!(traceback.starts_with("Traceback (most recent call last)"), "{failed}");
    assert!(traceback.contains("b.py"), "{failed}");
    let unknown = manager.done("test_tool", test("nothing", json!({}))).await;
    assert_eq!(unknown["success"], false, "{unknown}");
    let health = manager.done("health", json!({})).await;
    assert_eq!(
        (&health["core_reachable"], &health["namespaces_loaded"], &health["total_tools"]),
        (&json!(true), &json!(1), &json!(2)),
        "{health}"
    );
    assert!(health["python_version"].as_str().unwrap().starts_with("3."), "{health}");
    let shown = manager.done("server_config", json!({})).await;
    assert_eq!(shown["core_port"].to_string(), core.address.rsplit(':').next().unwrap());
    assert_eq!(shown["data_dir"], json!(data.path()));
    let text = shown.to_string();
    assert!(!text.contains(TOKEN) && !text.contains(MANAGER), "{text}");
    // The core does not notice that the manager is gone, and the manager says that the core is.
    manager.child.kill().await.unwrap();
    assert_eq!(core.text("shared", "hello", &json!({})).await, "Hello, World!");
    let manager = Manager::beside(&data, &core).await;
    drop(core);
    let alone = manager.done("health", json!({})).await;
    assert_eq!(alone["core_reachable"], false, "{alone}");
    let unreached = manager.refused("reload_core", json!({})).await;
    assert!(unreached.contains("start it with `toolman serve`, or set CORE_URL"), "{unreached}");
}

#[tokio::test]
async fn watcher_of_the_manager_tells_the_core() {
    // TD-118
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let core = Dock::start(&data).await;
    let url = format!("http://{}", core.address);
    let watching = [
        ("CORE_URL", url.as_str()),
        ("ENABLE_FS_WATCHER", "true"),
        ("FS_WATCHER_DEBOUNCE_MS", "50"),
    ];
    let _manager = Manager::start(&data, &watching).await;
    data.write("shared/more.py", &tool("more", "return text"));
    let served = async {
        while !core.tools("shared").await.contains(&"more".to_owned()) {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, served).await.expect("the core has reloaded");
}

#[tokio::test]
async fn settings_are_checked_before_it_serves() {
    // TD-145, TD-146, TD-147
    let folder = Folder::new(TOOLMAN);
    for (name, value, words) in [
        ("BEARER_TOKEN", "short", "BEARER_TOKEN"),
        ("MANAGER_INTERNAL_TOKEN", "change_me", "MANAGER_INTERNAL_TOKEN"),
        ("CORE_URL", "ftp://core", "CORE_URL must begin with `http://` or `https://`"),
        ("MANAGER_PORT", "many", "MANAGER_PORT is `many`; it must be a port"),
    ] {
        let output = folder.command(&["manager"]).env(name, value).output().await.unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{said}");
        assert!(said.contains(words), "{said}");
    }
    let open = ["manager", "--listen", "0.0.0.0:0"];
    let output = folder.run(&open).await;
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("a token of yours is needed"), "{said}");
}

#[tokio::test]
async fn up_has_a_manager_beside_the_core() {
    // The same tools, with the core in the same process.
    let folder = Folder::new(TOOLMAN);
    let up = crate::up::Up::start(&folder).await;
    let line = up.banner().lines().find(|line| line.contains("toolman-manager")).unwrap();
    let url = line.split_whitespace().find(|word| word.starts_with("http://")).unwrap();
    let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let bearer = format!("Bearer {}", up.token);
    let call = async |tool: &str, arguments: Value| {
        let headers = [("Authorization", bearer.as_str())];
        let body = arguments.to_string();
        let path = format!("/tools/{tool}");
        send(address, "POST", &path, &headers, &body).await.json()["structuredContent"].clone()
    };
    let code = tool("shout", "return text.upper()");
    let written =
        call("write_tool", json!({"namespace": "shared", "filename": "s.py", "code": code})).await;
    assert_eq!(
        (&written["written"], &written["pending"]),
        (&json!(true), &json!(false)),
        "{written}"
    );
    let reloaded = call("reload_core", json!({})).await;
    assert_eq!(reloaded["reloaded"], true, "{reloaded}");
    let tried = json!({"namespace": "shared", "tool_name": "shout", "input": {"text": "a"}});
    assert_eq!(call("test_tool", tried).await["result"], json!({"result": "A"}));
    let health = call("health", json!({})).await;
    assert_eq!(health["core_reachable"], true, "{health}");
}
