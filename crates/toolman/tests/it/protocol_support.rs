//! Which servers work for which clients: every revision at both ends, on every transport.
//!
//! The table in `docs/protocol-support.md` is what was seen here. `TOOLMAN_BLESS=1` writes it anew.

mod doors;
mod peers;

use std::path::Path;

use serde_json::{Value, json};
use testkit::binary::Folder;
use tokio::task::JoinSet;

use self::doors::Client;
use self::peers::{Peer, Site};
use crate::up::Up;
use crate::{TOOLMAN, folder};

const LEGACY: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];

/// The request of a progress report is told apart by it.
const TOKEN: &str = "the walk";

const HEAD: &str = "\
# Protocol support

Every row is a real server behind Toolman, and the revision of MCP that the two of them speak. Every
column is a client in front of it: the door that it comes by, and the revision that it speaks. `✓` says
that through this door the tools are listed and called, a resource is listed and read, a prompt is got,
and progress is reported; otherwise the cell names what works. REST offers tools and nothing else.

The column `era` is the setting of that name in `tools.toml`. Where it is `auto`, a server at a URL is
asked for the newest revision first; a server that is started as a command is greeted in the old way,
because some old ones never recover from a question that they do not know.

The Python SDK 1.9.4 has a fault over Streamable HTTP that later versions do not: it stops working for
everybody when a client ends its session, as Toolman does when it stops. Restart such a server with
Toolman, or update its SDK. Its URL needs the slash at the end (`/mcp/`).

This table is made by a test, and compared with what it sees whenever the tests run. To make it anew:

```
cargo xtask peers
TOOLMAN_BLESS=1 cargo test -p toolman --test it protocol_support
```

";

/// One client: what works through it, for each peer.
struct Column {
    door: String,
    cells: Vec<Cell>,
}

#[derive(Default)]
struct Cell {
    works: Vec<&'static str>,
    problems: Vec<String>,
}

#[tokio::test]
async fn every_revision_works_with_every_other() {
    let _loud = crate::MACHINE.read().await;
    let peers = peers::all();
    let site = Site::open(&peers).await;
    let folder = Folder::new(TOOLMAN).with_tools_toml(&site.tools_toml(&peers));
    let mut columns = Vec::new();
    for revision in LEGACY {
        columns.extend(through_stdio(&folder, &peers, revision).await);
    }
    columns.extend(through_http(&folder, &peers).await);
    // Last, and after gateways that were killed: the Python SDK 1.9.4 ends with the first session
    // that is ended in good order.
    assert_eq!(negotiated(&folder).await, peers.iter().map(Peer::row).collect::<Vec<_>>());
    let table = format!("{HEAD}{}", render(&peers, &columns));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocol-support.md");
    if std::env::var_os("TOOLMAN_BLESS").is_some() {
        std::fs::write(&path, &table).unwrap();
    }
    let known = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(table == known, "docs/protocol-support.md differs:\n{}\n{table}", problems(&columns));
}

#[tokio::test]
async fn answer_never_overtakes_progress_on_the_oldest_transport() {
    let folder = folder("surface = \"filter\"", &[("a", "progress")]);
    let up = Up::start(&folder).await;
    // Several, and often, because what overtakes does so by chance.
    let mut clients = JoinSet::new();
    for _ in 0..8 {
        let (address, token) = (up.address.clone(), up.token.clone());
        clients.spawn(async move {
            let mut client = doors::over_sse(&address, &token).await;
            doors::greet(&mut client, LEGACY[0]).await;
            let mut client = Client::Line { client, is_modern: false };
            for _ in 0..50 {
                let params = json!({"name": "a_progress", "_meta": {"progressToken": TOKEN}});
                assert_eq!(client.ask("tools/call", params).await.progress, [TOKEN; 3]);
            }
        });
    }
    clients.join_all().await;
}

/// The state of each server and the revision that was agreed on with it.
async fn negotiated(folder: &Folder) -> Vec<(String, String)> {
    let output = folder.run(&["check", "--json"]).await;
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let row = |server: &Value| {
        let problem = text(&server["problem"]).replace("null", "");
        (format!("{}{problem}", text(&server["name"])), text(&server["revision"]))
    };
    report["servers"].as_array().unwrap().iter().map(row).collect()
}

/// A client of this revision; and after the newest one, on the same pipe, one without a handshake.
async fn through_stdio(folder: &Folder, peers: &[Peer], revision: &str) -> Vec<Column> {
    let mut toolman = folder.start_raw();
    doors::greet(&mut toolman.client, revision).await;
    doors::wait_for_all(&mut toolman.client, peers).await;
    let mut client = Client::Line { client: toolman.client, is_modern: false };
    let mut columns = vec![Column::of(format!("stdio<br>{revision}"), &mut client, peers).await];
    if revision == LEGACY[3]
        && let Client::Line { is_modern, .. } = &mut client
    {
        *is_modern = true;
        columns.push(Column::of("stdio<br>2026-07-28".to_owned(), &mut client, peers).await);
    }
    toolman.child.kill().await.unwrap();
    columns
}

/// Clients of every other kind, side by side before one gateway.
async fn through_http(folder: &Folder, peers: &[Peer]) -> Vec<Column> {
    let up = Up::start(folder).await;
    let mut oldest = doors::over_sse(&up.address, &up.token).await;
    doors::greet(&mut oldest, LEGACY[0]).await;
    doors::wait_for_all(&mut oldest, peers).await;
    let mut clients = Vec::new();
    for revision in LEGACY {
        let client = Client::over_http(&up.address, &up.token, revision).await;
        clients.push((format!("HTTP<br>{revision}"), client));
    }
    let (address, token) = (up.address.clone(), up.token.clone());
    clients.push(("HTTP<br>2026-07-28".to_owned(), Client::modern_http(&address, &token)));
    let oldest = Client::Line { client: oldest, is_modern: false };
    clients.push((format!("HTTP+SSE<br>{}", LEGACY[0]), oldest));
    clients.push(("REST".to_owned(), Client::Rest { address, token }));
    let mut walks = JoinSet::new();
    for (at, (door, mut client)) in clients.into_iter().enumerate() {
        let peers = peers.to_vec();
        walks.spawn(async move { (at, Column::of(door, &mut client, &peers).await) });
    }
    let mut columns = walks.join_all().await;
    columns.sort_by_key(|(at, _)| *at);
    columns.into_iter().map(|(_, column)| column).collect()
}

impl Column {
    async fn of(door: String, client: &mut Client, peers: &[Peer]) -> Column {
        let tools = client.ask("tools/list", json!({})).await.message.to_string();
        let resources = client.ask("resources/list", json!({})).await.message.to_string();
        let mut cells = Vec::new();
        for peer in peers {
            let mut cell = Cell::default();
            let tool = format!("\"{}\"", peer.exposed(peer.walk.sum.0));
            cell.note("list", tools.contains(&tool), &tools);
            try_all(client, peer, &resources, &mut cell).await;
            cells.push(cell);
        }
        Column { door, cells }
    }
}

async fn try_all(client: &mut Client, peer: &Peer, resources: &str, cell: &mut Cell) {
    let (name, arguments) = peer.walk.sum;
    let params = json!({"name": peer.exposed(name), "arguments": read(arguments)});
    let sum = client.ask("tools/call", params).await.message;
    cell.note("call", sum.to_string().contains("42"), &sum.to_string());
    let (uri, words) = peer.walk.resource;
    let uri = peer.exposed(uri);
    let contents = client.ask("resources/read", json!({"uri": uri})).await.message.to_string();
    let is_listed = resources.contains(&format!("\"{uri}\""));
    cell.note("resource", is_listed && contents.contains(words), &contents);
    let (name, arguments, words) = peer.walk.prompt;
    let params = json!({"name": peer.exposed(name), "arguments": read(arguments)});
    let prompt = client.ask("prompts/get", params).await.message.to_string();
    cell.note("prompt", prompt.contains(words), &prompt);
    let (name, arguments) = peer.walk.progress;
    let params = json!({"name": peer.exposed(name), "arguments": read(arguments),
        "_meta": {"progressToken": TOKEN}});
    let walk = client.ask("tools/call", params).await;
    let is_told = !walk.progress.is_empty() && walk.progress.iter().all(|token| token == TOKEN);
    let is_done = walk.message["result"]["content"].is_array();
    cell.note("progress", is_told && is_done, &walk.message.to_string());
}

fn read(arguments: &str) -> Value {
    serde_json::from_str(arguments).unwrap()
}

impl Cell {
    fn note(&mut self, what: &'static str, works: bool, seen: &str) {
        if works {
            self.works.push(what);
        } else {
            self.problems.push(format!("{what}: {seen:.300}"));
        }
    }

    fn text(&self) -> String {
        match (self.problems.len(), self.works.len()) {
            (0, _) => "✓".to_owned(),
            (_, 0) => "–".to_owned(),
            _ => self.works.join(", "),
        }
    }
}

fn render(peers: &[Peer], columns: &[Column]) -> String {
    let doors: Vec<_> = columns.iter().map(|column| column.door.as_str()).collect();
    let mut table = format!("| server | transport | `era` | revision | {} |\n", doors.join(" | "));
    table += &format!("|{}\n", "---|".repeat(4 + columns.len()));
    for (at, peer) in peers.iter().enumerate() {
        let cells: Vec<_> = columns.iter().map(|column| column.cells[at].text()).collect();
        let Peer { title, transport, era, revision, .. } = peer;
        let transport = transport.title();
        table +=
            &format!("| {title} | {transport} | `{era}` | {revision} | {} |\n", cells.join(" | "));
    }
    table
}

/// What went wrong in every cell that is not whole.
fn problems(columns: &[Column]) -> String {
    let lines = columns.iter().flat_map(|column| {
        let cells = column.cells.iter().enumerate();
        cells.flat_map(move |(at, cell)| {
            cell.problems.iter().map(move |problem| format!("{} p{at}: {problem}\n", column.door))
        })
    });
    lines.collect()
}
