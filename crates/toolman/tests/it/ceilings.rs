//! Who may see what: agents and policies, through every door.
//!
//! Each agent has a twin: a gateway without any rules whose servers really have no more than the agent may
//! see. Whatever is asked, both must answer the same bytes; so what is outside of the ceiling can't be told
//! from what does not exist.

use serde_json::{Value, json};
use testkit::binary::{Folder, Running};
use testkit::client::alone;
use testkit::http::send;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, Lines};
use tokio::net::TcpStream;

use crate::up::Up;
use crate::{TOOLMAN, fake};

/// What the servers have.
const SERVERS: [(&str, &str); 3] = [
    (
        "git",
        "echo fail big --resource repo://head --resource repo://secret --template repo://{id} --prompt ask",
    ),
    ("hub", "echo tree --resource hub://a --prompt ask --prompt plan"),
    ("vault", "echo open --resource vault://door --template vault://{id} --prompt ask"),
];

/// Three agents, one of whom has no policy.
const RULES: &str = r#"
[tokens.dev]
token = "dev-0123456789abcdef"
[tokens.reader]
token = "reader-0123456789abcdef"

[exposed_tools]
git = ["echo", "repo://head"]
hub = ["*"]

[agents.dev]
allowed_servers = ["git", "hub"]
tool_overrides.git = ["git:*", "git:fail"]
[agents.reader]
allowed_servers = ["h*"]
tool_overrides.hub = ["tree", "plan"]

[security_settings]
dangerous_tools = ["git:big", "git:fail"]
"#;

/// What each of them may see, as servers that have nothing else.
const TWINS: [(&str, &[(&str, &str)]); 3] = [
    (
        "dev",
        &[
            (
                "git",
                "echo fail --resource repo://head --resource repo://secret --template repo://{id} --prompt ask",
            ),
            ("hub", "echo tree --resource hub://a --prompt ask --prompt plan"),
        ],
    ),
    ("reader", &[("hub", "tree --prompt plan")]),
    (
        "nobody",
        &[
            ("git", "echo --resource repo://head"),
            ("hub", "echo tree --resource hub://a --prompt ask --prompt plan"),
        ],
    ),
];

fn folder(surface: &str, rules: &str, servers: &[(&str, &str)]) -> Folder {
    let mut text = format!("surface = \"{surface}\"\nactive_toolsets = [\"*\"]\n");
    for (name, arguments) in servers {
        let command = fake(arguments);
        text += &format!("[[servers]]\nnamespace = \"{name}\"\ncommand = \"{command}\"\n");
    }
    Folder::new(TOOLMAN).with_tools_toml(&(text + rules))
}

/// A way in, with who has come by it.
enum Door {
    Stdio(Running),
    /// With a session, or each request for itself.
    Http(Up, bool),
    Sse(Up, String, Lines<BufReader<TcpStream>>),
    Rest(Up),
}

impl Door {
    async fn open(kind: &str, folder: &Folder, agent: &str, is_twin: bool) -> Door {
        if kind == "stdio" {
            return Door::Stdio(folder.start_as(agent).await);
        }
        let mut up = Up::start(folder).await;
        if agent != "nobody" && !is_twin {
            up.token = format!("{agent}-0123456789abcdef");
        }
        match kind {
            "http" => {
                up.initialize().await;
                Door::Http(up, true)
            }
            "alone" => Door::Http(up, false),
            "sse" => open_sse(up).await,
            _ => Door::Rest(up),
        }
    }

    /// The answer to a request as it came, without its id.
    async fn ask(&mut self, method: &str, params: &Value) -> String {
        match self {
            Door::Stdio(running) => {
                let answer = running.client.request(method, params.clone()).await;
                without_id(answer)
            }
            Door::Http(up, true) => {
                let answer = up.post(&crate::up::request(7, method, params.clone())).await;
                format!("{} {}", answer.status, answer.body)
            }
            Door::Http(up, false) => {
                let mut headers =
                    vec![("Mcp-Protocol-Version", "2026-07-28"), ("Mcp-Method", method)];
                let named = params.get("name").or(params.get("uri")).and_then(Value::as_str);
                headers.extend(named.map(|name| ("Mcp-Name", name)));
                let request = crate::up::request(7, method, alone(params.clone()));
                let answer = up.send("POST", &headers, &request.to_string()).await;
                format!("{} {}", answer.status, answer.body)
            }
            Door::Sse(up, path, events) => {
                let body = crate::up::request(7, method, params.clone()).to_string();
                let bearer = format!("Bearer {}", up.token);
                let headers = [("Authorization", bearer.as_str())];
                assert_eq!(send(&up.address, "POST", path, &headers, &body).await.status, 202);
                next_data(events).await
            }
            Door::Rest(up) => {
                let bearer = format!("Bearer {}", up.token);
                let name = params["name"].as_str().unwrap_or_default().to_owned();
                let (verb, path) = match method {
                    "tools/list" => ("GET", "/tools".to_owned()),
                    "openapi" => ("GET", "/openapi.json".to_owned()),
                    "namespaces" => ("GET", "/namespaces".to_owned()),
                    "schema" => ("GET", format!("/tools/{name}/schema")),
                    _ => ("POST", format!("/tools/{name}")),
                };
                let headers = [("Authorization", bearer.as_str())];
                let answer = send(&up.address, verb, &path, &headers, "").await;
                format!("{} {}", answer.status, answer.body)
            }
        }
    }
}

async fn open_sse(up: Up) -> Door {
    let stream = TcpStream::connect(&up.address).await.unwrap();
    let mut events = BufReader::new(stream).lines();
    let (address, token) = (&up.address, &up.token);
    let head = format!(
        "GET /sse HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\n\
         Accept: text/event-stream\r\n\r\n"
    );
    events.get_mut().get_mut().write_all(head.as_bytes()).await.unwrap();
    let path = next_data(&mut events).await;
    Door::Sse(up, path, events)
}

async fn next_data(events: &mut Lines<BufReader<TcpStream>>) -> String {
    loop {
        let line = events.next_line().await.unwrap().expect("the stream goes on");
        if let Some(data) = line.strip_prefix("data: ") {
            return data.to_owned();
        }
    }
}

fn without_id(mut answer: Value) -> String {
    answer.as_object_mut().unwrap().remove("id");
    answer.to_string()
}

/// Everything that can be asked about an item, under every spelling of its name.
fn questions() -> Vec<(&'static str, Value)> {
    let mut questions: Vec<(&str, Value)> = Vec::new();
    for method in [
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "prompts/list",
        "resources/subscribe",
        "tasks/list",
    ] {
        questions.push((method, json!({})));
    }
    let spellings = |name: &str| {
        let (server, bare) = name.split_once(' ').unwrap();
        let joined = ["_", ":", ".", "__"].map(|joint| format!("{server}{joint}{bare}"));
        let rfc = format!("{server}+{bare}");
        joined.into_iter().chain([bare.to_owned(), rfc]).collect::<Vec<_>>()
    };
    for tool in ["git echo", "git fail", "git big", "hub tree", "vault open", "vault none"] {
        for name in spellings(tool) {
            questions.push(("tools/call", json!({"name": name, "arguments": {"x": 1}})));
        }
    }
    for uri in [
        "git repo://head",
        "git repo://secret",
        "git repo://7",
        "vault vault://door",
        "vault vault://7",
        "hub hub://a",
    ] {
        for uri in spellings(uri) {
            questions.push(("resources/read", json!({"uri": uri})));
            let reference = json!({"type": "ref/resource", "uri": uri});
            let argument = json!({"name": "id", "value": "x"});
            questions
                .push(("completion/complete", json!({"ref": reference, "argument": argument})));
        }
    }
    for prompt in ["git ask", "hub ask", "hub plan", "vault ask"] {
        for name in spellings(prompt) {
            questions.push(("prompts/get", json!({"name": name})));
            let reference = json!({"type": "ref/prompt", "name": name});
            let argument = json!({"name": "topic", "value": "x"});
            questions
                .push(("completion/complete", json!({"ref": reference, "argument": argument})));
        }
    }
    questions
}

/// Asks everything of an agent and of its twin; the number of answers that were compared.
async fn compare(kind: &str, surface: &str) -> usize {
    let mut cells = 0;
    for (agent, servers) in TWINS {
        let (policed, plain) = (folder(surface, RULES, &SERVERS), folder(surface, "", servers));
        let mut door = Door::open(kind, &policed, agent, false).await;
        let mut twin = Door::open(kind, &plain, agent, true).await;
        let mut questions = questions();
        if kind == "rest" {
            let calls = questions.iter().filter(|(method, _)| method.starts_with("tools/"));
            let mut rest: Vec<_> = calls.cloned().collect();
            let schemas: Vec<_> =
                rest.iter().skip(1).map(|(_, params)| ("schema", params.clone())).collect();
            rest.extend(schemas);
            rest.push(("openapi", json!({})));
            rest.push(("namespaces", json!({})));
            questions = rest;
        }
        for (method, params) in &questions {
            let (found, expected) =
                (door.ask(method, params).await, twin.ask(method, params).await);
            assert_eq!(found, expected, "{kind} {surface} {agent} {method} {params}");
            cells += 1;
        }
    }
    cells
}

#[tokio::test]
async fn what_is_outside_of_the_ceiling_does_not_exist_on_stdio() {
    // TF-01, TF-13, TF-14, TF-19, TF-20, TF-21, TF-22, TF-23, TF-24, TF-25, TF-26
    assert!(compare("stdio", "filter").await + compare("stdio", "activate").await > 600);
}

#[tokio::test]
async fn what_is_outside_of_the_ceiling_does_not_exist_over_http() {
    // TF-01, TF-23, TF-25
    assert!(compare("http", "filter").await + compare("alone", "filter").await > 600);
}

#[tokio::test]
async fn what_is_outside_of_the_ceiling_does_not_exist_over_sse_and_rest() {
    // TF-01, TF-23, TF-25
    assert!(compare("sse", "filter").await + compare("rest", "filter").await > 400);
}
