//! Many upstreams at once, some of them bad.

use std::time::Duration;

use tokio::time::Instant;

use crate::folder;

#[tokio::test]
async fn forty_good_upstreams_are_listed_although_ten_are_bad() {
    // TA-16, TA-20, TA-67
    let names: Vec<_> = (0..50).map(|n| format!("u{n}")).collect();
    let servers: Vec<_> = names
        .iter()
        .enumerate()
        .map(|(n, name)| {
            let arguments = match n % 10 {
                3 => "--hang echo",
                7 => "--crash echo",
                5 => "--delay 700 echo",
                _ => "echo",
            };
            (name.as_str(), arguments)
        })
        .collect();
    let folder = folder("active_toolsets = [\"*\"]", &servers);
    let mut toolman = folder.start_raw();
    // The slowest good one is there when all its kind are; the handshake waits for them.
    toolman.client.initialize(serde_json::json!({})).await;
    let listed = toolman.client.tool_names().await.len();
    let deadline = Instant::now() + Duration::from_secs(2);
    let mut count = listed;
    while count < 41 && Instant::now() < deadline {
        toolman.client.next("notifications/tools/list_changed").await;
        count = toolman.client.tool_names().await.len();
    }
    assert_eq!(count, 41);
    assert_eq!(toolman.client.tool_names().await.len(), 41, "and no more than that");
}
