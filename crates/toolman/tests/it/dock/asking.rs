//! What a tool asks the client of its call, and what it keeps for it, through the real binary.

use serde_json::{Value, json};
use testkit::binary::Folder;

use super::{Data, Dock};
use crate::TOOLMAN;

const TOOLS: &str = r#"
from fastmcp import Context
from fastmcp.tools import tool

@tool
async def book(ctx: Context) -> str:
    """Book."""
    answer = await ctx.elicit("How many?", response_type=int)
    return "%s %r" % (answer.action, answer.data)

@tool
async def think(ctx: Context) -> str:
    """Think."""
    return (await ctx.sample("Well?")).text

@tool
async def count(ctx: Context) -> int:
    """Count."""
    seen = await ctx.get_state("seen", 0) + 1
    await ctx.set_state("seen", seen)
    return seen
"#;

#[tokio::test]
async fn tool_asks_the_person_and_the_model_at_its_client() {
    let config = "surface = 'filter'\n[[servers]]\nnamespace = 'a'\npython = 'a'\n";
    let folder = Folder::new(TOOLMAN).with_tools_toml(config);
    std::fs::create_dir(folder.path().join("a")).unwrap();
    std::fs::write(folder.path().join("a/t.py"), TOOLS).unwrap();
    let mut running = folder.start_raw();
    let client = &mut running.client;
    client.initialize(json!({"elicitation": {}, "sampling": {}})).await;
    for (tool, method, reply, seen) in [
        (
            "a_book",
            "elicitation/create",
            json!({"action": "accept", "content": {"value": 3}}),
            "accept 3",
        ),
        ("a_book", "elicitation/create", json!({"action": "decline"}), "decline None"),
        (
            "a_think",
            "sampling/createMessage",
            json!({"role": "assistant", "model": "m", "content": {"type": "text", "text": "Yes"}}),
            "Yes",
        ),
    ] {
        let id = client.begin("tools/call", json!({"name": tool, "arguments": {}})).await;
        let question = client.next(method).await;
        assert_eq!(question["method"], method, "{question}");
        let answer = json!({"jsonrpc": "2.0", "id": question["id"], "result": reply});
        client.send(&answer.to_string()).await;
        let said = client.answer(id).await;
        assert_eq!(said["result"]["content"][0]["text"], seen, "{said}");
    }
    for seen in 1..3 {
        let said = client.call("a_count", json!({})).await;
        assert_eq!(said["structuredContent"]["result"], seen, "{said}");
    }
}

#[tokio::test]
async fn client_that_can_not_be_asked_is_told_so() {
    let data = Data::new(&[("a/t.py", TOOLS)]);
    let dock = Dock::start(&data).await;
    let answer = dock.call("a", "book", &json!({})).await;
    assert_eq!(answer.status, 500, "{answer:?}");
    assert!(answer.body.contains("the tool has asked, and nobody could answer"), "{answer:?}");
    assert_ne!(answer.json()["error"]["message"], Value::Null);
}
