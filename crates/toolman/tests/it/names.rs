//! Names: what becomes of those that a client could not take, and what leads to them.

use serde_json::{Value, json};
use testkit::binary::{Folder, Running};

use crate::TOOLMAN;

/// A server whose tools have all kinds of names, one of them twice.
fn folder(settings: &str) -> Folder {
    let folder = Folder::new(TOOLMAN);
    let long = "long_".repeat(30);
    let tool = |name: &str, text: &str| json!({"name": name, "description": text, "inputSchema": {"type": "object"}});
    let tools = json!([
        tool("log", "plain"),
        tool("läuft gut", "blank and Unicode"),
        tool("p\u{430}y", "looks like `pay`"),
        tool("a.b", "with a dot"),
        tool(&long, "long"),
        tool("log", "another of this name"),
    ]);
    std::fs::write(folder.path().join("tools.json"), tools.to_string()).unwrap();
    let command = Folder::fake(TOOLMAN, "--tools tools.json --resource p://list");
    folder.with_tools_toml(&format!(
        "active_toolsets = [\"*\"]\n{settings}\n[[servers]]\nnamespace = \"odd\"\ncommand = \"{command}\"\n"
    ))
}

/// A client program that calls itself so, and the tools that it is shown.
async fn start_as(folder: &Folder, program: &str) -> (Running, Vec<Value>) {
    let mut toolman = folder.start_raw();
    let client = &mut toolman.client;
    let info = json!({"name": program, "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    client.request("initialize", params).await;
    client.send(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).await;
    let list = client.request("tools/list", json!({})).await;
    let tools = list["result"]["tools"].as_array().unwrap()[1..].to_vec();
    (toolman, tools)
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn every_tool_is_shown_and_called_whatever_its_name_is() {
    let folder = folder("");
    let (mut toolman, tools) = start_as(&folder, "somebody").await;
    let shown = names(&tools);
    assert_eq!(shown.len(), 6, "{shown:?}");
    for name in &shown {
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        assert!(name.len() <= 128 && name.chars().all(fits), "{name}");
        let result = toolman.client.call(name, json!({})).await;
        assert_eq!(result["content"][0]["text"], "ok", "{name}: {result}");
    }
    assert!(shown.contains(&"odd_log") && shown.contains(&"odd_a.b"));
    let titles: Vec<_> = tools.iter().filter_map(|tool| tool["title"].as_str()).collect();
    assert!(titles.contains(&"läuft gut"), "{titles:?}");
    // What servers say themselves, and long names, lead there as well.
    let long = "long_".repeat(30);
    for asked in ["odd_läuft gut", "läuft gut", "odd:p\u{430}y", &long, &format!("odd_{long}")] {
        let result = toolman.client.call(asked, json!({})).await;
        assert_eq!(result["content"][0]["text"], "ok", "{asked}: {result}");
    }
    let result = toolman.client.call("odd_pay", json!({})).await;
    assert_eq!(result["isError"], true, "a name that only looks like it: {result}");
}

#[tokio::test]
async fn names_fit_what_a_client_puts_before_them_and_mean_the_same_for_all() {
    let folder = folder("");
    let (_toolman, usual) = start_as(&folder, "somebody").await;
    for program in ["claude-code", "codex-mcp-client", "opencode"] {
        let (mut toolman, tools) = start_as(&folder, program).await;
        assert_eq!(tools.len(), 6, "{program}");
        for name in names(&tools) {
            let whole = format!("mcp__toolman__{name}");
            let fits = |c: char| c.is_ascii_alphanumeric() || "_-".contains(c);
            assert!(whole.len() <= 64 && whole.chars().all(fits), "{program}: {whole}");
        }
        // A name that another program was shown is known here too.
        for name in names(&usual) {
            let result = toolman.client.call(name, json!({})).await;
            assert_eq!(result["content"][0]["text"], "ok", "{program}, {name}: {result}");
        }
    }
}

#[tokio::test]
async fn names_that_were_changed_are_told() {
    let folder = folder("");
    let output = folder.command(&["check"]).env("TOOLMAN_LOG", "info").output().await.unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "it is no failure: {text}");
    let line = "tool `läuft gut` of `odd` as `odd_l_uft_gut_";
    assert!(text.contains(line) && text.contains("characters that clients refuse"), "{text}");
    assert!(text.contains("tool `log` of `odd` as `odd_log_"), "{text}");
    let log = String::from_utf8(output.stderr).unwrap();
    let line = log.lines().find(|line| line.contains("tool `läuft gut` is shown as"));
    assert!(line.is_some(), "{log}");
}

#[tokio::test]
async fn programs_that_refuse_uris_with_an_underscore_are_shown_others() {
    let folder = folder("");
    for (program, expected) in
        [("mcp", "odd+p://list"), ("fastmcp", "odd+p://list"), ("somebody", "odd_p://list")]
    {
        let (mut toolman, _) = start_as(&folder, program).await;
        let uris = toolman.client.names("resources/list", "resources", "uri").await;
        assert_eq!(uris, [expected], "{program}");
        for uri in ["odd+p://list", "odd_p://list"] {
            let read = toolman.client.request("resources/read", json!({"uri": uri})).await;
            assert!(read["result"]["contents"].is_array(), "{program}, {uri}: {read}");
        }
    }
    for (style, expected) in [("underscore", "odd_p://list"), ("rfc", "odd+p://list")] {
        let folder = self::folder(&format!("uri_style = \"{style}\""));
        for program in ["mcp", "somebody"] {
            let (mut toolman, _) = start_as(&folder, program).await;
            let uris = toolman.client.names("resources/list", "resources", "uri").await;
            assert_eq!(uris, [expected], "{program}");
        }
    }
}

#[tokio::test]
async fn long_catalog_fits_the_client_and_the_rest_is_found() {
    let tools = (0..400).map(|at| format!("tool_{at}")).collect::<Vec<_>>().join(" ");
    let (many, few) = (Folder::fake(TOOLMAN, &tools), Folder::fake(TOOLMAN, "log status"));
    let folder = Folder::new(TOOLMAN).with_tools_toml(&format!(
        "active_toolsets = [\"git_log\"]\n[[servers]]\nnamespace = \"many\"\ncommand = \"{many}\"\n\
         [[servers]]\nnamespace = \"git\"\ncommand = \"{few}\"\n"
    ));
    let (mut toolman, _) = start_as(&folder, "claude-code").await;
    let client = &mut toolman.client;
    let catalog = client.activation_catalog().await;
    assert!(catalog.chars().count() <= 2_048, "{catalog}");
    assert!(catalog.contains("* git_log: ") && catalog.contains("(400 tools)"), "{catalog}");
    let found = client.call("toolman_activate", json!({"find": "tool 77"})).await;
    assert_eq!(found["isError"], false, "{found}");
    let text = found["structuredContent"]["result"].as_str().unwrap();
    assert!(text.lines().nth(1).unwrap().starts_with("  many_tool_77: "), "{text}");
    assert!(text.contains("for more pass `find: \"tool 77 page:2\"`"), "{text}");
    let whole = client.call("toolman_activate", json!({"find": "git:"})).await;
    let text = whole["structuredContent"]["result"].as_str().unwrap();
    assert!(text.starts_with("found: 1 to 2 of 2\n* git_log: "), "{text}");
    assert_eq!(client.count("notifications/tools/list_changed"), 0, "nothing was switched");
    // Whoever is not known to cut descriptions is shown all of it, within a bound for everybody.
    let (mut toolman, _) = start_as(&folder, "somebody").await;
    assert!(toolman.client.activation_catalog().await.contains("many_tool_399"));
}

#[tokio::test]
async fn names_can_be_left_as_they_are() {
    let folder = folder("name_style = \"as-is\"");
    let (mut toolman, tools) = start_as(&folder, "claude-code").await;
    assert!(names(&tools).contains(&"odd_läuft gut"), "{:?}", names(&tools));
    let result = toolman.client.call("odd_läuft gut", json!({})).await;
    assert_eq!(result["content"][0]["text"], "ok");
}

#[tokio::test]
async fn prefix_that_a_name_has_already_can_be_left_out() {
    let command = Folder::fake(TOOLMAN, "linear_list_issues find");
    for (prefix, expected) in [
        ("always", ["linear_find", "linear_linear_list_issues"]),
        ("auto", ["linear_find", "linear_list_issues"]),
        ("never", ["find", "linear_list_issues"]),
    ] {
        let folder = Folder::new(TOOLMAN).with_tools_toml(&format!(
            "active_toolsets = [\"*\"]\n[[servers]]\nnamespace = \"linear\"\nprefix = \"{prefix}\"\ncommand = \"{command}\"\n"
        ));
        let (mut toolman, tools) = start_as(&folder, "somebody").await;
        assert_eq!(names(&tools), expected);
        for asked in ["linear_list_issues", "linear_linear_list_issues", "linear_find"] {
            let result = toolman.client.call(asked, json!({})).await;
            assert_eq!(result["content"][0]["text"], "ok", "{prefix}, {asked}: {result}");
        }
    }
}
