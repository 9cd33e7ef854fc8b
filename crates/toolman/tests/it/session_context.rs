//! Session contexts: what clients say when they connect, for servers of their own.

use std::collections::BTreeSet;
use std::process::Stdio;

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::alone;
use testkit::fake::Script;
use testkit::http::HttpAnswer;
use testkit::web::{Dialect, Manners, Site};

use crate::http_limits::{Service, TOKEN, hello};
use crate::up::{call, request};
use crate::{TOOLMAN, example};

/// A gateway to one server that each client has for itself, started with what the client says.
fn folder(head: &str, context: &str) -> Folder {
    let text = format!(
        "surface = \"filter\"\n{head}\n[session_context]\nenabled = true\n{context}\n\
         [[servers]]\nnamespace = \"a\"\nsession = \"per-client\"\ncommand = \"{}\"\n\
         args = [\"who\", \"echo\", \"as-${{context.user.name:-nobody}}\"]\n\
         env = {{ FAKE_KEY = \"key ${{context.key}}!\" }}\n",
        example("fake_upstream"),
    );
    Folder::new(TOOLMAN).with_tools_toml(&text)
}

const USUAL: &str = "allowed_keys = [\"key\", \"user\"]\nmerge = \"deep\"\n\
    [session_context.defaults]\nkey = \"default\"\nuser = { team = \"t\" }\n";

/// JSON as base64 writes it, without padding.
fn base64(value: &Value) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in value.to_string().as_bytes().chunks(3) {
        let mut bits = [0; 4];
        bits[1..=chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes(bits);
        for digit in 0..=chunk.len() {
            let at = bits >> (18 - 6 * digit) & 63;
            text.push(char::from(ALPHABET[at as usize]));
        }
    }
    text
}

/// Calls a tool without a session, at an address.
async fn modern(service: &Service, path: &str, more: &[(&str, &str)], tool: &str) -> Value {
    let mut headers = vec![
        ("MCP-Protocol-Version", "2026-07-28"),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    ];
    headers.extend(more);
    let params = alone(json!({"name": tool, "arguments": {}}));
    let body = request(1, "tools/call", params).to_string();
    let answer = service.send(path, &headers, &body).await;
    answer.json()["result"]["structuredContent"].clone()
}

/// The id of a session that was opened at an address.
async fn session(service: &Service, path: &str) -> String {
    let answer = service.send(path, &[], &hello("2025-11-25")).await;
    let id = answer.header("mcp-session-id").unwrap().to_owned();
    let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string();
    let answer = service.send(path, &[("Mcp-Session-Id", &id)], &ready).await;
    assert_eq!(answer.status, 202);
    id
}

async fn in_session(service: &Service, path: &str, id: &str, tool: &str) -> HttpAnswer {
    let body = call(1, tool, json!({})).to_string();
    service.send(path, &[("Mcp-Session-Id", id)], &body).await
}

fn said(told: &Value) -> (&str, &str) {
    (told["key"].as_str().unwrap(), told["arguments"][2].as_str().unwrap())
}

fn at(context: &Value) -> String {
    format!("/mcp?config={}", base64(context))
}

#[tokio::test]
async fn values_of_a_client_fill_its_own_servers_in_both_eras() {
    // TC-35, TC-36, TC-25
    let folder = folder("", USUAL);
    let service = Service::start(&folder, &[]).await;
    let ada = at(&json!({"key": "k1", "user": {"name": "ada"}}));
    let bob = at(&json!({"key": "k2", "user": {"name": "bob"}}));
    let nobody = modern(&service, "/mcp", &[], "a_who").await;
    assert_eq!(said(&nobody), ("key default!", "as-nobody"), "{nobody}");
    let first = modern(&service, &ada, &[], "a_who").await;
    assert_eq!(said(&first), ("key k1!", "as-ada"));
    let other = modern(&service, &bob, &[], "a_who").await;
    assert_eq!(said(&other), ("key k2!", "as-bob"));
    // What was opened for a caller and a context is there for the next request that shows both.
    assert_eq!(modern(&service, &ada, &[], "a_who").await, first);
    // The same values in another order and in the header are the same context.
    let header = base64(&json!({"user": {"name": "ada"}, "key": "k1"}));
    let again = modern(&service, "/mcp", &[("X-MCP-Context", &header)], "a_who").await;
    assert_eq!(again, first);
    let mut pids: BTreeSet<_> = BTreeSet::new();
    pids.extend([&nobody, &first, &other].map(|told| told["pid"].as_u64().unwrap()));
    let [a, b] = [session(&service, &ada).await, session(&service, &bob).await];
    for _ in 0..2 {
        for (path, id, expected) in [(&ada, &a, "key k1!"), (&bob, &b, "key k2!")] {
            let answer = in_session(&service, path, id, "a_who").await.json();
            let told = &answer["result"]["structuredContent"];
            assert_eq!(told["key"], expected, "{answer}");
            pids.insert(told["pid"].as_u64().unwrap());
        }
    }
    assert_eq!(pids.len(), 5, "no two clients share a process");
    // A session is the one of what was said as it was opened.
    assert_eq!(in_session(&service, &bob, &a, "a_who").await.status, 404);
    // Over REST it is the caller's and the context's, too.
    let rest = service.send(&ada.replace("/mcp", "/tools/a_who"), &[], "{}").await.json();
    assert_eq!(rest["structuredContent"], first);
}

#[tokio::test]
async fn what_can_not_be_used_is_dropped_silently() {
    // TC-13: as if nothing was said
    let folder = folder("", USUAL);
    let service = Service::start(&folder, &[]).await;
    let unknown = base64(&json!({"key": "k", "admin": true}));
    let large = base64(&json!({"key": "k".repeat(20_000)}));
    let mut deep = json!("k");
    for _ in 0..9 {
        deep = json!([deep]);
    }
    let deep = base64(&json!({"key": deep}));
    let list = base64(&json!(["key"]));
    for config in [
        "",
        "%7B%22key%22%3A%22k%22%7D",
        "!!!",
        "eyJ",
        "%zz",
        &unknown,
        &large,
        &deep,
        &list,
        &format!("{}&config={}", base64(&json!({"key": "a"})), base64(&json!({"key": "b"}))),
    ] {
        let told = modern(&service, &format!("/mcp?config={config}"), &[], "a_who").await;
        let shown: String = config.chars().take(60).collect();
        assert_eq!(said(&told), ("key default!", "as-nobody"), "{shown}: {told}");
    }
}

#[tokio::test]
async fn context_that_is_not_enabled_or_is_on_a_static_surface_is_ignored() {
    // TC-12, TC-35
    let context = at(&json!({"key": "k1"}));
    let head = "[toolsets]\nall = [\"a:*\"]\n[startup]\ntoolsets = \"ALL\"";
    let fixed = folder(head, USUAL);
    let text = std::fs::read_to_string(fixed.path().join("tools.toml")).unwrap();
    let text = text.replace("surface = \"filter\"", "surface = \"static\"");
    let fixed = fixed.with_tools_toml(&text);
    let service = Service::start(&fixed, &[]).await;
    let told = modern(&service, &context, &[], "all.who").await;
    assert_eq!(said(&told), ("key default!", "as-nobody"));
    let text = format!(
        "surface = \"filter\"\n[[servers]]\nnamespace = \"a\"\ncommand = \"{} who\"\n\
         session = \"per-client\"\n",
        example("fake_upstream")
    );
    let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
    let service = Service::start(&folder, &[]).await;
    let plain = modern(&service, "/mcp", &[], "a_who").await;
    assert_eq!(modern(&service, &context, &[], "a_who").await, plain);
}

#[tokio::test]
async fn plain_json_and_other_names_can_be_chosen() {
    // TC-35
    let context = "encoding = \"json\"\nquery = \"cfg\"\nheader = \"X-Me\"\n";
    let folder = folder("", context);
    let service = Service::start(&folder, &[]).await;
    let told = modern(&service, "/mcp?cfg=%7B%22key%22%3A%22k+1%22%7D", &[], "a_who").await;
    assert_eq!(told["key"], "key k 1!");
    let told = modern(&service, "/mcp", &[("X-Me", "{\"key\": 7}")], "a_who").await;
    assert_eq!(told["key"], "key 7!");
    let told = modern(&service, &at(&json!({"key": "k"})), &[], "a_who").await;
    assert_eq!(told["key"], "key !", "without a default it is empty");
}

#[tokio::test]
async fn header_fields_of_remote_servers_are_filled_for_each_client() {
    // TC-35
    for dialect in [Dialect::Legacy, Dialect::Modern] {
        let site = Site::start(Manners::new(dialect, Script::with_tools(["echo"]))).await;
        let text = format!(
            "surface = \"filter\"\n[session_context]\nenabled = true\n[[servers]]\n\
             namespace = \"a\"\nsession = \"per-client\"\nurl = \"{}\"\n\
             headers = {{ X-Key = \"Bearer ${{context.key:-none}}\" }}\n",
            site.url()
        );
        let folder = Folder::new(TOOLMAN).with_tools_toml(&text);
        let service = Service::start(&folder, &[]).await;
        for (path, key) in [
            (at(&json!({"key": "k1"})), "Bearer k1"),
            (at(&json!({"key": "k2"})), "Bearer k2"),
            ("/mcp".to_owned(), "Bearer none"),
        ] {
            modern(&service, &path, &[], "a_echo").await;
            let calls = site.seen("tools/call");
            assert_eq!(calls.last().unwrap().header("x-key"), Some(key), "{dialect:?}");
        }
        // What no header can hold is told, but not shown.
        let body = r#"{"x":"hush"}"#;
        let path = at(&json!({"key": "hush\nhush"})).replace("/mcp", "/tools/a_echo");
        let refused = service.send(&path, &[], body).await;
        assert_eq!(refused.status, 502, "{refused:?}");
        assert!(refused.body.contains("a header holds what no header can"), "{refused:?}");
        assert!(!refused.body.contains("hush"), "{refused:?}");
    }
}

#[tokio::test]
async fn values_of_clients_are_in_no_log_and_no_trail() {
    // TC-35
    let folder = folder("[audit]\nvalues = true", USUAL);
    let log = folder.path().join("log");
    let mut command = folder.command(&["serve", "--listen", "127.0.0.1:0"]);
    command
        .env("BEARER_TOKEN", TOKEN)
        .env("TOOLMAN_LOG", "trace")
        .stderr(Stdio::from(std::fs::File::create(&log).unwrap()));
    let mut service = Service::run(command).await;
    let path = at(&json!({"key": "hush-hush", "user": {"name": "also-hush"}}));
    modern(&service, &path, &[], "a_echo").await;
    let session = session(&service, &path).await;
    assert_eq!(in_session(&service, &path, &session, "a_echo").await.status, 200);
    testkit::processes::kill("-TERM", service.pid);
    service.child.wait().await.unwrap();
    let mut texts = vec![std::fs::read_to_string(log).unwrap()];
    let mut folders = vec![folder.path().join("data")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                texts.push(std::fs::read_to_string(path).unwrap_or_default());
            }
        }
    }
    assert!(texts.iter().any(|text| text.contains("a_echo")), "calls are recorded");
    for text in texts {
        assert!(!text.contains("hush"), "{text}");
    }
}

#[tokio::test]
async fn what_may_be_said_is_told_as_a_schema() {
    // TC-31
    let schema = "allowed_keys = [\"key\", \"user\"]\nschema = '''{\"properties\": {\"key\": \
        {\"type\": \"string\"}}, \"required\": [\"key\"]}'''\n";
    let folder = folder("", schema);
    let service = Service::start(&folder, &[]).await;
    let answer = service.send("/.well-known/mcp-config", &[], "").await;
    assert_eq!(answer.header("content-type"), Some("application/schema+json"));
    let schema = answer.json();
    assert_eq!(schema["properties"], json!({"key": {"type": "string"}, "user": {}}));
    assert_eq!(schema["required"], json!(["key"]));
    assert_eq!(schema["additionalProperties"], false);
    assert_eq!((&schema["x-mcp-version"], &schema["type"]), (&json!("1.0"), &json!("object")));
    assert!(schema["x-query-style"].is_string());
    let told = modern(&service, &at(&json!({"key": 7})), &[], "a_who").await;
    assert_eq!(told["key"], "key !", "what does not fit the schema is dropped");
}
