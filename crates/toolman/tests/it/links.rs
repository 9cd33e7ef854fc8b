//! Resources that results name are read from the server that named them.

use serde_json::{Value, json};
use testkit::client::LineClient;
use testkit::fake::{Script, resource, template};
use testkit::world::World;

/// Two servers with the same template; the second one also has what the first one lists, and a tool that links.
fn world() -> World {
    let templates = || vec![template("p://{id}")];
    let first = Script {
        templates: templates(),
        resources: vec![resource("p://list")],
        ..Script::default()
    };
    let second = Script { templates: templates(), ..Script::with_tools(["say"]) };
    let third = Script::with_tools(["say"]);
    World::of([("aa", first), ("bb", second), ("cc", third)]).filter().start()
}

async fn link(client: &mut LineClient, server: &str, block: Value) {
    client.call(&format!("{server}_say"), json!({"content": [block]})).await;
}

/// What the servers that have it are asked for.
async fn read(client: &mut LineClient, uri: &str) -> String {
    let answer = client.request("resources/read", json!({"uri": uri})).await;
    match answer["error"]["message"].as_str() {
        Some(refusal) => refusal.to_owned(),
        None => answer["result"]["contents"][0]["text"].as_str().unwrap().to_owned(),
    }
}

#[tokio::test(start_paused = true)]
async fn link_is_read_from_the_server_that_gave_it() {
    let world = world();
    let mut client = world.connect().await;
    let mut other = world.connect().await;
    let refusal = "`p://7` could mean more than one resource; use one of `aa_p://7`, `bb_p://7`";
    assert_eq!(read(&mut client, "p://7").await, refusal);
    link(&mut client, "bb", json!({"type": "resource_link", "uri": "p://7", "name": "x"})).await;
    assert_eq!(read(&mut client, "p://7").await, "text of p://7");
    assert_eq!(seen(&world, "bb"), 1);
    assert_eq!(seen(&world, "aa"), 0);
    assert_eq!(read(&mut other, "p://7").await, refusal, "it was given to one client");
    assert_eq!(read(&mut client, "aa_p://7").await, "text of p://7");
    assert_eq!(seen(&world, "aa"), 1);
}

#[tokio::test(start_paused = true)]
async fn embedded_resource_is_read_from_the_server_that_gave_it() {
    let world = world();
    let mut client = world.connect().await;
    let held = json!({"type": "resource", "resource": {"uri": "p://list", "text": "t"}});
    link(&mut client, "bb", held).await;
    assert_eq!(read(&mut client, "p://list").await, "text of p://list");
    assert_eq!((seen(&world, "aa"), seen(&world, "bb")), (0, 1));
}

#[tokio::test(start_paused = true)]
async fn link_that_its_server_does_not_serve_is_read_from_no_other() {
    let world = world();
    let mut client = world.connect().await;
    link(&mut client, "cc", json!({"type": "resource_link", "uri": "p://list", "name": "x"})).await;
    let refusal = read(&mut client, "p://list").await;
    assert!(refusal.starts_with("no resource is named `p://list`"), "{refusal}");
    assert_eq!((seen(&world, "aa"), seen(&world, "bb")), (0, 0));
}

/// How many reads a server has had; before them `bb` has had one call.
fn seen(world: &World, server: &str) -> u64 {
    let name = server.parse().unwrap();
    let figures = world.gateway.figures().find(|figures| figures.name == name).unwrap();
    let calls = figures.calls.ok.load(std::sync::atomic::Ordering::Relaxed);
    calls - u64::from(server == "bb" && calls > 0)
}
