//! The manager, driven by official client libraries, which hold every result to its schema.

use serde_json::json;
use tempfile::TempDir;
use testkit::peers::python_program;

use super::Manager;
use crate::dock::{Data, Dock, HELLO, TOKEN};
use crate::real_peers::run;
use crate::sources::repository;
use crate::sources::site::{Site, archive};

/// A registry that knows one server, whose package of npm it has.
async fn site() -> Site {
    let site = Site::start().await;
    let index = "server.tool('greet', 'Says hello', { name: z.string() }, run);\n";
    site.offer_npm("@a/one", &archive(&[("package/index.js", index)]));
    let package = json!({"registryType": "npm", "identifier": "@a/one", "version": "1.2.3",
        "environmentVariables": [{"name": "API_KEY", "isSecret": true}]});
    let server = json!({"name": "io.github.a/one", "description": "One.", "packages": [package]});
    site.offer_servers("one", std::slice::from_ref(&server));
    site.offer_servers("%40a%2Fone", &[]);
    site
}

#[tokio::test]
async fn official_clients_make_a_tool_by_the_manager() {
    // TD-117, TD-119, TD-120 … TD-144: every tool, by each of the two libraries
    let _loud = crate::MACHINE.read().await;
    let around = TempDir::new().unwrap();
    let repository = repository(around.path()).display().to_string();
    let site = site().await;
    let data = Data::new(&[("shared/hello.py", HELLO)]);
    let core = Dock::start(&data).await;
    let core_url = format!("http://{}", core.address);
    let own = [
        ("CORE_URL", core_url.as_str()),
        ("TOOL_APPROVAL", "auto"),
        ("ALLOWED_REPO_PATHS", around.path().to_str().unwrap()),
    ];
    let manager = Manager::start(&data, &[&own[..], &site.variables()].concat()).await;
    let url = format!("http://{}/mcp", manager.address);
    let python = python_program("sdk1", "python");
    run(&python, "manager.py", &[&url, TOKEN, "python", &repository]).await;
    run("node", "manager.mjs", &[&url, TOKEN, "typescript", &repository]).await;
}
