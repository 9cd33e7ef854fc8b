//! Real servers from the registries that are reached over HTTP.

use std::net::TcpListener;

use serde_json::json;
use testkit::binary::Folder;
use testkit::peers::{node_server, python_program, server_script};
use tokio::process::{Child, Command};

use crate::TOOLMAN;

/// A port that nobody uses at the moment.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
fn start(command: &str, port: u16) -> Child {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {command}")]).env("PORT", port.to_string());
    shell.stdin(std::process::Stdio::null()).stdout(std::process::Stdio::null());
    shell.stderr(std::process::Stdio::null()).kill_on_drop(true).spawn().unwrap()
}

#[tokio::test]
async fn servers_of_both_libraries_work_over_every_transport() {
    let _loud = crate::MACHINE.read().await;
    let everything = node_server("server-everything");
    let python = |sdk: &str, transport: &str, port: u16| {
        format!(
            "{} {} {transport} {port}",
            python_program(sdk, "python"),
            server_script("remote.py")
        )
    };
    let ports = [(); 6].map(|()| free_port());
    let servers = [
        ("node", format!("{everything} streamableHttp"), "mcp", "2025-11-25"),
        ("nodesse", format!("{everything} sse"), "sse", "2025-11-25"),
        ("two", python("sdk2", "streamable-http", ports[2]), "mcp", "2026-07-28"),
        ("twosse", python("sdk2", "sse", ports[3]), "sse", "2025-11-25"),
        ("one", python("sdk1", "streamable-http", ports[4]), "mcp", "2025-11-25"),
        ("onesse", python("sdk1", "sse", ports[5]), "sse", "2025-11-25"),
    ];
    let mut text = "surface = \"filter\"\n".to_owned();
    let mut running = Vec::new();
    for ((name, command, path, _), port) in servers.iter().zip(ports) {
        running.push(start(command, port));
        text += &format!(
            "[[servers]]\nnamespace = \"{name}\"\nurl = \"http://127.0.0.1:{port}/{path}\"\n"
        );
    }
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let mut toolman = folder.start().await;
    let client = &mut toolman.client;
    for (name, ..) in &servers {
        // A server that is not there yet is tried again until it is.
        while !client.tool_names().await.iter().any(|tool| tool.starts_with(&format!("{name}_"))) {
            client.next("notifications/tools/list_changed").await;
        }
    }
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    for (name, _, _, revision) in &servers {
        let tool = if name.starts_with("node") { "get-sum" } else { "add" };
        let name = format!("{name}_{tool}");
        let mut params = json!({"name": name, "arguments": {"a": 2, "b": 40}});
        if *revision == "2026-07-28" {
            params["_meta"] = meta.clone();
        }
        let answer = client.request("tools/call", params).await;
        assert!(answer["result"].to_string().contains("42"), "{name}: {answer}");
    }
    let report = folder.run(&["check", "--json"]).await;
    let report: serde_json::Value = serde_json::from_slice(&report.stdout).unwrap();
    let revisions = report["servers"].as_array().unwrap().iter().map(|server| &server["revision"]);
    let expected: Vec<_> = servers.iter().map(|server| server.3).collect();
    assert_eq!(revisions.collect::<Vec<_>>(), expected, "{report}");
}
