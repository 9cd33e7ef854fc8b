//! Resources and prompts of servers in folders of tools.

use serde_json::json;
use testkit::binary::Folder;

use crate::TOOLMAN;

const SERVER: &str = r#"
from fastmcp import FastMCP

mcp = FastMCP("notes")

@mcp.tool
def count() -> int:
    """Count."""
    return 1

@mcp.resource("notes://all")
def notes() -> str:
    """All notes."""
    return "first"

@mcp.resource("notes://{name}/text")
def note(name: str) -> str:
    """One note."""
    return name.upper()

@mcp.prompt
def review(code: str) -> str:
    """Review code."""
    return "Review: " + code
"#;

#[tokio::test]
async fn resources_and_prompts_of_a_folder_are_served_beside_its_tools() {
    let config = "surface = 'filter'\n[[servers]]\nnamespace = 'a'\npython = 'a'\n";
    let folder = Folder::new(TOOLMAN).with_tools_toml(config);
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("a/t.py"), SERVER).unwrap();
    let mut running = folder.start().await;
    let client = &mut running.client;
    assert_eq!(client.tool_names().await, ["a_count"]);
    assert_eq!(client.names("resources/list", "resources", "uri").await, ["a_notes://all"]);
    let templates =
        client.names("resources/templates/list", "resourceTemplates", "uriTemplate").await;
    assert_eq!(templates, ["a_notes://{name}/text"]);
    assert_eq!(client.names("prompts/list", "prompts", "name").await, ["a_review"]);
    for (uri, text) in [("a_notes://all", "first"), ("a_notes://mine/text", "MINE")] {
        let read = client.request("resources/read", json!({"uri": uri})).await;
        assert_eq!(read["result"]["contents"][0]["text"], text, "{read}");
    }
    let params = json!({"name": "a_review", "arguments": {"code": "x"}});
    let got = client.request("prompts/get", params).await;
    assert_eq!(got["result"]["messages"][0]["content"]["text"], "Review: x", "{got}");
    let wrong = client.request("prompts/get", json!({"name": "a_review", "arguments": {}})).await;
    assert!(wrong["error"]["message"].as_str().unwrap().contains("/code: is missing"), "{wrong}");
}
