//! The whole story: from an idea to a tool that is served, and its end.

use serde_json::json;

use super::both;
use super::secrets::run_instructions;

const MISTAKEN: &str = "from fastmcp.tools import tool\nimport idna, os\n\n@tool\ndef encode(host) -> dict:\n    \"\"\"Encode the name of a host.\"\"\"\n    return {\"encoded\": idna.encode(host).decode()}\n";

#[tokio::test]
async fn model_and_person_make_a_tool_together() {
    // TD-155: the steps from the namespace on; those that read a repository come before.
    let (_data, core, manager) = both(&[]).await;
    manager.done("create_namespace", json!({"name": "hosts"})).await;
    let secret = json!({"namespace": "hosts", "key": "GITHUB_TOKEN"});
    let declared = manager.done("declare_secret", secret).await;
    assert_eq!(declared["secrets"], json!(["GITHUB_TOKEN"]), "{declared}");
    let package = json!({"namespace": "hosts", "package": "idna==3.10"});
    assert_eq!(manager.done("add_requirement", package).await["added"], true);

    let write = |code: &str| json!({"namespace": "hosts", "filename": "hosts.py", "code": code});
    let refused = manager.done("write_tool", write(MISTAKEN)).await;
    assert_eq!(refused["error"], "Missing type hint");
    assert_eq!(
        refused["details"],
        "hosts.py:5:12: the parameter `host` of `encode` has no type hint"
    );
    let no_secret = MISTAKEN.replace("(host) ->", "(host: str) ->");
    let correct = no_secret.replace(
        "return {",
        "if not os.environ.get(\"GITHUB_TOKEN\"):\n        raise ValueError(\"no token\")\n    return {",
    );
    let written = manager.done("generate_tool", write(&correct)).await;
    assert_eq!(written["tools_found"], json!(["encode"]), "{written}");
    let installed = manager.done("install_requirements", json!({"namespace": "hosts"})).await;
    assert_eq!(installed["installed"], true, "{installed}");

    let check = json!({"namespace": "hosts"});
    assert_eq!(
        manager.done("check_secrets", check.clone()).await["missing"],
        json!(["GITHUB_TOKEN"])
    );
    let told = manager.done("prepare_secret", json!({"key": "GITHUB_TOKEN"})).await;
    run_instructions(&told, "a-value-that-nobody-sees").await;
    let done = manager.done("reload_core", json!({})).await;
    assert_eq!(done["namespaces"], json!(["hosts"]), "{done}");
    assert_eq!(manager.done("check_secrets", check).await["satisfied"], json!(["GITHUB_TOKEN"]));
    let input = json!({"host": "bücher.example"});
    let test = json!({"namespace": "hosts", "tool_name": "encode", "input": input});
    let tried = manager.done("test_tool", test).await;
    assert_eq!(tried, json!({"success": true, "result": {"encoded": "xn--bcher-kva.example"}}));
    let called = core.call("hosts", "encode", &input).await.json();
    assert_eq!(called["structuredContent"], tried["result"], "clients of the core get the same");

    manager.done("remove_secret", json!({"key": "GITHUB_TOKEN"})).await;
    manager.done("delete_tool", json!({"namespace": "hosts", "filename": "hosts.py"})).await;
    manager.done("delete_namespace", json!({"name": "hosts"})).await;
    let done = manager.done("reload_core", json!({})).await;
    assert_eq!((&done["namespaces"], &done["namespaces_removed"]), (&json!([]), &json!(["hosts"])));
    assert_eq!(core.ask("GET", "/namespaces", &[], "").await.json(), json!({"namespaces": []}));
}
