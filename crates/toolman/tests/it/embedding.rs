//! A program of somebody else that holds a gateway: `examples/embed.rs`.

use std::process::Stdio;

use serde_json::json;
use testkit::client::LineClient;
use tokio::process::Command;

use crate::example;

#[tokio::test]
#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
async fn program_serves_functions_of_its_own_as_toolsets() {
    // TC-01, TC-25
    let mut command = Command::new(example("embed"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut client = LineClient::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
    client.initialize(json!({})).await;
    assert_eq!(client.call("loud.shout", json!({"text": "a"})).await["isError"], true);
    let enabled = client.call("enable_toolset", json!({"name": "loud"})).await;
    assert_eq!(enabled["structuredContent"]["success"], true, "{enabled}");
    assert_eq!(client.tool_names().await[5..], ["loud.shout"]);
    let said = client.call("loud.shout", json!({"text": "hello"})).await;
    assert_eq!(said["structuredContent"], json!({"said": "HELLO"}));
    let refused = client.call("loud.shout", json!({})).await;
    assert_eq!(refused["isError"], true);
    assert_eq!(refused["content"][0]["text"], "`text` is missing; say something");
    client.close().await;
    assert!(child.wait().await.unwrap().success());
}
