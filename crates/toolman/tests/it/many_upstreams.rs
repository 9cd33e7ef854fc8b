//! Many upstreams at once, some of them bad.

use std::time::{Duration, SystemTime};

use serde_json::json;

use crate::folder;

#[tokio::test]
async fn forty_good_upstreams_are_listed_although_ten_are_bad() {
    // TA-16, TA-20, TA-67
    let _quiet = crate::MACHINE.write().await;
    let names: Vec<_> = (0..50).map(|n| format!("u{n}")).collect();
    let arguments: Vec<_> = (0..50)
        .map(|n| match n % 10 {
            3 => "--hang echo".to_owned(),
            7 => "--crash echo".to_owned(),
            5 => format!("--delay 700 --mark u{n}.mark echo"),
            _ => format!("--mark u{n}.mark echo"),
        })
        .collect();
    let servers: Vec<_> =
        names.iter().zip(&arguments).map(|(name, args)| (name.as_str(), args.as_str())).collect();
    let folder = folder("active_toolsets = [\"*\"]", &servers);
    let mut toolman = folder.start_raw();
    toolman.client.initialize(json!({})).await;
    while toolman.client.tool_names().await.len() < 41 {
        toolman.client.next("notifications/tools/list_changed").await;
    }
    let listed = SystemTime::now();
    // Each good one has left a mark when it had answered the last question for a list.
    let mark = |name: &String| std::fs::metadata(folder.path().join(format!("{name}.mark")));
    let marks: Vec<_> = names.iter().filter_map(|name| mark(name).ok()?.modified().ok()).collect();
    assert_eq!(marks.len(), 40);
    let slowest = marks.into_iter().max().unwrap();
    let waited = listed.duration_since(slowest).unwrap_or_default();
    assert!(waited < Duration::from_secs(2), "{waited:?}");
    assert_eq!(toolman.client.tool_names().await.len(), 41, "and no more than that");
}
