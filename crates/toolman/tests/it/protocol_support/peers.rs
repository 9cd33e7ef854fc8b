//! The servers of the table: who they are, how they are started and what they offer.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use testkit::client::PATIENCE;
use testkit::peers::{node_package, node_server, python_program, server_script};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

/// How often a port is tried that is not open yet.
const KNOCK: Duration = Duration::from_millis(50);

#[derive(Clone)]
pub struct Peer {
    namespace: String,
    pub title: &'static str,
    pub transport: Transport,
    /// The setting in `tools.toml`.
    pub era: &'static str,
    /// What is to be agreed on.
    pub revision: &'static str,
    /// For the shell; a server that listens is told where by `$PORT`.
    command: String,
    path: &'static str,
    pub walk: &'static Walk,
}

#[derive(Clone, Copy, PartialEq)]
pub enum Transport {
    Stdio,
    Http,
    Sse,
}

/// What is asked of a server: names, arguments, and words that are in the answers.
pub struct Walk {
    pub sum: (&'static str, &'static str),
    pub progress: (&'static str, &'static str),
    pub resource: (&'static str, &'static str),
    pub prompt: (&'static str, &'static str, &'static str),
}

/// Our own servers, all alike.
const SMALL: Walk = Walk {
    sum: ("add", r#"{"a":2,"b":40}"#),
    progress: ("walk", r#"{"steps":3}"#),
    resource: ("note://today", "water the plants"),
    prompt: ("greet", r#"{"name":"Ada"}"#, "hello to Ada"),
};

/// These report on another stream than they answer on, so that an answer may overtake a report.
const SLOW: Walk = Walk { progress: ("walk", r#"{"steps":3,"pause_ms":250}"#), ..SMALL };

const EVERYTHING: Walk = Walk {
    sum: ("get-sum", r#"{"a":2,"b":40}"#),
    progress: ("trigger-long-running-operation", r#"{"duration":0.1,"steps":2}"#),
    resource: ("demo://resource/static/document/architecture.md", "Everything Server"),
    prompt: ("args-prompt", r#"{"city":"Bonn"}"#, "Bonn"),
};

const EVERYTHING_2024: Walk = Walk {
    sum: ("add", r#"{"a":2,"b":40}"#),
    progress: ("longRunningOperation", r#"{"duration":0.1,"steps":2}"#),
    resource: ("test://static/resource/1", "plaintext"),
    prompt: ("complex_prompt", r#"{"temperature":"1","style":"terse"}"#, "terse"),
};

/// The Python SDKs of the first generation: version, environment, newest revision.
const PYTHON_V1: [(&str, &str, &str); 4] = [
    ("Python SDK 1.6.0", "mcp-2024-11-05", "2024-11-05"),
    ("Python SDK 1.9.4", "mcp-2025-03-26", "2025-03-26"),
    ("Python SDK 1.22.0", "mcp-2025-06-18", "2025-06-18"),
    ("Python SDK 1.30.0", "sdk1", "2025-11-25"),
];

const BOTH: [(&str, &str); 2] = [("auto", "2025-11-25"), ("modern", "2026-07-28")];
const BOTH_OVER_HTTP: [(&str, &str); 2] = [("auto", "2026-07-28"), ("legacy", "2025-11-25")];

pub fn all() -> Vec<Peer> {
    use Transport::{Http, Sse, Stdio as Pipe};

    let mut list = List(Vec::new());
    for (title, set, revision) in PYTHON_V1 {
        let python = script(&python_program(set, "python"), "python_v1.py");
        let auto = [("auto", revision)];
        list.add(title, Pipe, &format!("{python} stdio"), &auto, &SMALL);
        // The first with Streamable HTTP came half a year later.
        if revision != "2024-11-05" {
            let walk = if revision == "2025-11-25" { &SMALL } else { &SLOW };
            list.add(title, Http, &format!("{python} streamable-http $PORT"), &auto, walk);
        }
        list.add(title, Sse, &format!("{python} sse $PORT"), &auto, &SMALL);
    }
    let legacy = [("auto", "2025-11-25")];
    let python = script(&python_program("sdk2", "python"), "python_v2.py");
    let title = "Python SDK 2.3.0";
    list.add(title, Pipe, &format!("{python} stdio"), &BOTH, &SMALL);
    let http = format!("{python} streamable-http $PORT");
    list.add(title, Http, &http, &BOTH_OVER_HTTP, &SMALL);
    let fastmcp = script(&python_program("fastmcp", "python"), "fastmcp_v4.py");
    let title = "FastMCP 4.1.4";
    list.add(title, Pipe, &format!("{fastmcp} stdio"), &BOTH, &SMALL);
    list.add(title, Http, &format!("{fastmcp} http $PORT"), &BOTH_OVER_HTTP, &SMALL);
    list.add(title, Sse, &format!("{fastmcp} sse $PORT"), &legacy, &SMALL);
    let node = script("node", "typescript_v2.mjs");
    let title = "TypeScript SDK 2.3.1";
    list.add(title, Pipe, &format!("{node} stdio"), &BOTH, &SMALL);
    list.add(title, Http, &format!("{node} streamable-http $PORT"), &BOTH_OVER_HTTP, &SMALL);
    let title = "server-everything 0.6.2";
    let oldest = [("auto", "2024-11-05")];
    list.add(title, Pipe, &node_package("server-everything-2024"), &oldest, &EVERYTHING_2024);
    let title = "server-everything 2026.8.31";
    let everything = node_server("server-everything");
    list.add(title, Pipe, &format!("{everything} stdio"), &legacy, &EVERYTHING);
    list.add(title, Http, &format!("{everything} streamableHttp"), &legacy, &EVERYTHING);
    list.add(title, Sse, &format!("{everything} sse"), &legacy, &EVERYTHING);
    list.0
}

fn script(program: &str, name: &str) -> String {
    format!("{program} {}", server_script(name))
}

struct List(Vec<Peer>);

impl List {
    /// One server, with each setting of its era.
    fn add(
        &mut self,
        title: &'static str,
        transport: Transport,
        command: &str,
        eras: &[(&'static str, &'static str)],
        walk: &'static Walk,
    ) {
        // This version sends everybody who leaves the slash out somewhere else.
        let has_slash = title == "Python SDK 1.9.4";
        let path = match transport {
            Transport::Stdio => "",
            Transport::Http if has_slash => "mcp/",
            Transport::Http => "mcp",
            Transport::Sse => "sse",
        };
        for &(era, revision) in eras {
            let namespace = format!("p{}", self.0.len());
            let command = command.to_owned();
            let peer = Peer { namespace, title, transport, era, revision, command, path, walk };
            self.0.push(peer);
        }
    }
}

impl Peer {
    /// The name that clients know an item by.
    pub fn exposed(&self, name: &str) -> String {
        format!("{}_{name}", self.namespace)
    }

    /// What the report is to say.
    pub fn row(&self) -> (String, String) {
        (self.namespace.clone(), self.revision.to_owned())
    }
}

impl Transport {
    pub fn title(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "Streamable HTTP",
            Transport::Sse => "HTTP+SSE",
        }
    }
}

/// The servers that listen, by their commands; they end with it.
pub struct Site(BTreeMap<String, (u16, Child)>);

impl Site {
    /// Starts them all and waits until every port is open.
    pub async fn open(peers: &[Peer]) -> Site {
        let mut site = BTreeMap::new();
        for peer in peers.iter().filter(|peer| peer.transport != Transport::Stdio) {
            let start = || start(&peer.command);
            site.entry(peer.command.clone()).or_insert_with(start);
        }
        for (command, (port, _)) in &site {
            let open = async {
                while TcpStream::connect(("127.0.0.1", *port)).await.is_err() {
                    tokio::time::sleep(KNOCK).await;
                }
            };
            assert!(timeout(PATIENCE, open).await.is_ok(), "`{command}` does not listen");
        }
        Site(site)
    }

    pub fn tools_toml(&self, peers: &[Peer]) -> String {
        let mut text = "surface = \"filter\"\n".to_owned();
        for Peer { namespace, era, command, path, .. } in peers {
            text += &format!("[[servers]]\nnamespace = \"{namespace}\"\nera = \"{era}\"\n");
            text += &match self.0.get(command) {
                Some((port, _)) => format!("url = \"http://127.0.0.1:{port}/{path}\"\n"),
                None => format!("command = \"{command}\"\n"),
            };
        }
        text
    }
}

#[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
fn start(command: &str) -> (u16, Child) {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = free.local_addr().unwrap().port();
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec {command}")]).env("PORT", port.to_string());
    shell.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    (port, shell.spawn().unwrap())
}

#[test]
fn versions_in_the_table_are_those_installed() {
    let manifests = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../peers");
    let pins = |file: &str| std::fs::read_to_string(manifests.join(file)).unwrap();
    let mut known = BTreeMap::from([
        ("Python SDK 2.3.0", "sdk2"),
        ("FastMCP 4.1.4", "fastmcp"),
        ("TypeScript SDK 2.3.1", "npm"),
        ("server-everything 0.6.2", "npm"),
        ("server-everything 2026.8.31", "npm"),
    ]);
    known.extend(PYTHON_V1.map(|(title, set, _)| (title, set)));
    let packages = BTreeMap::from([
        ("Python SDK", "mcp=="),
        ("FastMCP", "fastmcp=="),
        ("TypeScript SDK", "\"@modelcontextprotocol/server\": \""),
        ("server-everything", "server-everything"),
    ]);
    for peer in all() {
        let (name, version) = peer.title.rsplit_once(' ').unwrap();
        let pins = match known[peer.title] {
            "npm" => pins("npm/package.json"),
            set => pins(&format!("python/{set}.txt")),
        };
        let is_pin = |line: &str| line.contains(packages[name]) && line.contains(version);
        assert!(pins.lines().any(is_pin), "{} is not what is pinned", peer.title);
    }
}
