//! All tools of the manager with their hints, and every way to reach them.

use serde_json::{Value, json};
use testkit::http::send;

use super::{Manager, both};
use crate::dock::TOKEN;
use crate::up::request;

/// Name; whether it only reads, destroys, is the same twice, and reaches other machines.
const TOOLS: [(&str, [bool; 4]); 29] = [
    ("add_requirement", FETCHES),
    ("analyze_repo", FETCHES),
    ("check_secrets", READS),
    ("create_namespace", WRITES),
    ("declare_secret", WRITES),
    ("delete_namespace", DESTROYS),
    ("delete_tool", DESTROYS),
    ("generate_tool", WRITES),
    ("get_started", READS),
    ("get_tool_source", READS),
    ("get_tool_template", READS),
    ("health", READS),
    ("install_from_registry", FETCHES),
    ("install_from_repo", FETCHES),
    ("install_pip_packages", FETCHES),
    ("install_requirements", FETCHES),
    ("install_server", FETCHES),
    ("list_namespaces", READS),
    ("list_requirements", READS),
    ("list_secrets", READS),
    ("list_tools", READS),
    ("prepare_secret", WRITES),
    ("read_repo_file", READS),
    ("reload_core", WRITES),
    ("remove_secret", DESTROYS),
    ("search_registry", [true, false, true, true]),
    ("server_config", READS),
    ("test_tool", [false, true, false, true]),
    ("write_tool", WRITES),
];
const READS: [bool; 4] = [true, false, true, false];
const WRITES: [bool; 4] = [false, false, true, false];
const DESTROYS: [bool; 4] = [false, true, true, false];
const FETCHES: [bool; 4] = [false, false, true, true];

#[tokio::test]
async fn these_are_all_tools_of_the_manager_with_their_hints_and_schemas() {
    // TD-119 … TD-144
    let (_data, _core, manager) = both(&[]).await;
    let list = manager.ask("GET", "/tools", "").await.json();
    let mut tools: Vec<&Value> = list["tools"].as_array().unwrap().iter().collect();
    tools.sort_by_key(|tool| tool["name"].as_str().unwrap().to_owned());
    let seen: Vec<(&str, [Value; 4])> = tools
        .iter()
        .map(|tool| {
            let said = &tool["annotations"];
            let reads = said["readOnlyHint"] == true;
            // What a hint means that is not there; of a tool that only reads, two say nothing.
            let usual = [
                ("readOnlyHint", false),
                ("destructiveHint", !reads),
                ("idempotentHint", reads),
                ("openWorldHint", true),
            ];
            let hints =
                usual.map(|(hint, usual)| said.get(hint).cloned().unwrap_or_else(|| usual.into()));
            (tool["name"].as_str().unwrap(), hints)
        })
        .collect();
    let expected: Vec<_> =
        TOOLS.iter().map(|(name, hints)| (*name, hints.map(Value::from))).collect();
    assert_eq!(seen, expected);
    for tool in tools {
        let output = &tool["outputSchema"];
        assert!(output["type"] == "object" && output["properties"].is_object(), "{tool}");
        assert_eq!(output["required"].as_array().unwrap().len(), 1, "{tool}");
        assert!(tool["description"].as_str().unwrap().len() > 40, "{tool}");
    }
    // What all of them cost whoever connects: 9,500 tokens by the usual measure of four bytes.
    let bytes = list["tools"].to_string().len();
    assert!(bytes < 19_000, "{bytes} bytes");
}

/// Asks with a namespace in its header.
async fn ask_as(manager: &Manager, namespace: &str, body: &Value) -> testkit::http::HttpAnswer {
    let bearer = format!("Bearer {TOKEN}");
    let headers = [("Authorization", bearer.as_str()), ("X-Namespace", namespace)];
    send(&manager.address, "POST", "/mcp", &headers, &body.to_string()).await
}

#[tokio::test]
async fn all_revisions_reach_the_manager_with_and_without_its_name() {
    // TD-117
    let (_data, _core, manager) = both(&[]).await;
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let params = json!({"protocolVersion": revision, "capabilities": {},
            "clientInfo": {"name": "test", "version": "0"}});
        let answer = ask_as(&manager, "_system", &request(0, "initialize", params)).await;
        assert_eq!(answer.json()["result"]["protocolVersion"], revision, "{answer:?}");
    }
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {}});
    let bearer = format!("Bearer {TOKEN}");
    for named in [&[][..], &[("X-Namespace", "_system")]] {
        for (method, name) in [("server/discover", None), ("tools/call", Some("list_namespaces"))] {
            let mut params = json!({"_meta": meta});
            let mut headers = vec![
                ("Authorization", bearer.as_str()),
                ("MCP-Protocol-Version", "2026-07-28"),
                ("Mcp-Method", method),
            ];
            if let Some(name) = name {
                params["name"] = json!(name);
                params["arguments"] = json!({});
                headers.push(("Mcp-Name", name));
            }
            headers.extend(named);
            let body = request(1, method, params).to_string();
            let answer = send(&manager.address, "POST", "/mcp", &headers, &body).await;
            assert_eq!(answer.status, 200, "{method}: {answer:?}");
            assert!(answer.body.contains("\"result\""), "{method}: {answer:?}");
        }
    }
    let other = ask_as(&manager, "shared", &request(0, "tools/list", json!({}))).await;
    assert_eq!(other.status, 404, "{other:?}");
}
