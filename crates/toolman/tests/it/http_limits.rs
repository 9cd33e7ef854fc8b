//! The HTTP door under bad input and load, through `toolman serve`.
//!
//! How long slow clients are borne with is shown in the server's own tests, on a stopped clock.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testkit::binary::Folder;
use testkit::client::PATIENCE;
use testkit::http::{HttpAnswer, send, send_raw};
use testkit::processes::{kill, open_files, resident_kib};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::time::timeout;

use crate::up::{call, request};
use crate::{TOOLMAN, folder};

pub const TOKEN: &str = "a-token-that-nobody-guesses";

/// A running `toolman serve`.
pub struct Service {
    pub child: Child,
    pub pid: u32,
    pub url: String,
    pub address: String,
}

impl Service {
    pub async fn start(folder: &Folder, arguments: &[&str]) -> Service {
        let mut all = vec!["serve", "--listen", "127.0.0.1:0"];
        all.extend(arguments);
        let mut command = folder.command(&all);
        command.env("BEARER_TOKEN", TOKEN);
        Service::run(command).await
    }

    #[expect(clippy::disallowed_methods, reason = "a test may start what it likes")]
    pub async fn run(mut command: Command) -> Service {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let line = timeout(PATIENCE, lines.next_line()).await.unwrap().unwrap();
        let url = line.expect("it serves").rsplit(' ').next().unwrap().to_owned();
        let address = url.split("://").nth(1).unwrap().trim_end_matches("/mcp").to_owned();
        Service { pid: child.id().unwrap(), child, url, address }
    }

    pub async fn send(&self, path: &str, more: &[(&str, &str)], body: &str) -> HttpAnswer {
        let method = if body.is_empty() { "GET" } else { "POST" };
        let bearer = format!("Bearer {TOKEN}");
        let mut headers = vec![("Authorization", bearer.as_str())];
        headers.extend(more);
        send(&self.address, method, path, &headers, body).await
    }

    /// A request of a session as it is written, for who reads the answer by hand.
    pub fn post(&self, session: &str, body: &str) -> String {
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n\
             Accept: application/json, text/event-stream\r\nAuthorization: Bearer {TOKEN}\r\n\
             Mcp-Session-Id: {session}\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        )
    }

    /// The id of a session that is ready for requests.
    pub async fn session(&self) -> String {
        let answer = self.send("/mcp", &[], &hello("2025-11-25")).await;
        let id = answer.header("mcp-session-id").unwrap().to_owned();
        let ready = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        let answer = self.send("/mcp", &[("Mcp-Session-Id", &id)], &ready.to_string()).await;
        assert_eq!(answer.status, 202);
        id
    }

    /// One figure of `/metrics`.
    pub async fn figure(&self, name: &str) -> u64 {
        let page = self.send("/metrics", &[], "").await.body;
        let value = page.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
        assert!(value.is_some(), "no {name} in {page}");
        value.unwrap().parse().unwrap()
    }

    /// Waits until a figure is this one.
    pub async fn wait_for(&self, name: &str, value: u64) {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let found = self.figure(name).await;
            if found == value {
                return;
            }
            assert!(Instant::now() < deadline, "{name} is {found}, not {value}");
            tokio::task::yield_now().await;
        }
    }
}

pub fn hello(revision: &str) -> String {
    let params = json!({"protocolVersion": revision, "capabilities": {}});
    request(0, "initialize", params).to_string()
}

/// The head of a POST with these lines, and what follows.
fn post(lines: &[&str], rest: &str) -> String {
    let usual = "Accept: */*\r\nContent-Type: application/json";
    let lines = lines.join("\r\n");
    format!(
        "POST /mcp HTTP/1.1\r\nAuthorization: Bearer {TOKEN}\r\n{usual}\r\n{lines}\r\n\r\n{rest}"
    )
}

async fn start(tools: &str) -> (Folder, Service) {
    let folder = folder("active_toolsets = [\"*\"]", &[("a", tools)]);
    let service = Service::start(&folder, &[]).await;
    (folder, service)
}

#[tokio::test]
async fn requests_that_could_be_read_in_two_ways_are_refused_and_the_connection_closed() {
    // H15
    let (_folder, service) = start("echo").await;
    let (host, chunked) = ("Host: localhost", "Transfer-Encoding: chunked");
    // All of it would be answered if it were well framed.
    let message = hello("2025-11-25");
    let (size, wrong) = (message.len(), message.len() + 1);
    let length = format!("Content-Length: {size}");
    let small = format!("content-length:{size}");
    let pieces = format!("{size:x}\r\n{message}\r\n0\r\n\r\n");
    for (lines, rest) in [
        (&[host, &length, chunked][..], &pieces),
        (&[host, chunked, &small], &pieces),
        (&[host, chunked, "X: y", &small, "Z: w"], &pieces),
        (&[host, &length, &format!("Content-Length: {wrong}")], &message),
        (&[host, "Content-Length: -1"], &message),
        (&[host, &format!("Content-Length: +{size}")], &message),
        (&[host, &format!("Content-Length: {size}x")], &message),
        (&[host, "Transfer-Encoding: gzip"], &message),
        (&[&length], &message),
        (&[host, host, &length], &message),
        (&[host, " folded: yes", &length], &message),
    ] {
        // Reading goes on to the end, so each of these has closed the connection.
        assert_eq!(send_raw(&service.address, &post(lines, rest)).await.status, 400, "{lines:?}");
    }
    let absolute = format!("GET http://localhost/health HTTP/1.1\r\n{host}\r\n{host}\r\n\r\n");
    assert_eq!(send_raw(&service.address, &absolute).await.status, 400);
    // Either alone is fine, also one after the other, also where the body speaks of the other.
    let talk = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"{}":1}}}}"#,
        "content-length"
    );
    let length = format!("Content-Length: {}", talk.len());
    let session = format!("Mcp-Session-Id: {}", service.session().await);
    let whole = post(&[host, &session, &length], &talk);
    let cut = format!("{:x}\r\n{talk}\r\n0\r\n\r\n", talk.len());
    let pieces = post(&[host, &session, chunked, "Connection: close"], &cut);
    let answer = send_raw(&service.address, &format!("{whole}{whole}{pieces}")).await;
    assert_eq!(answer.status, 200);
    assert_eq!(answer.body.matches("HTTP/1.1 200").count(), 2, "{answer:?}");
    // And behind a good request a bad one is not overlooked.
    let bad = post(&[host, &session, chunked, &length], &cut);
    let answer = send_raw(&service.address, &format!("{whole}{bad}")).await;
    assert!(answer.body.contains("HTTP/1.1 400"), "{answer:?}");
}

#[tokio::test]
async fn heads_that_are_too_large_are_refused_with_431() {
    // H13
    let (_folder, service) = start("echo").await;
    let head = |lines: usize, bytes: usize| {
        let many: String = (0..lines).map(|n| format!("X-{n}: y\r\n")).collect::<Vec<_>>().concat();
        let long = "z".repeat(bytes);
        format!(
            "GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nLong: {long}\r\n{many}\r\n"
        )
    };
    for (lines, bytes, status) in [(61, 1, 200), (62, 1, 431), (1, 30_000, 200), (1, 40_960, 431)] {
        let answer = send_raw(&service.address, &head(lines, bytes)).await;
        assert_eq!(answer.status, status, "{lines} lines, {bytes} bytes");
    }
}

#[tokio::test]
async fn message_that_is_too_large_is_refused_with_413_and_leaves_no_trace() {
    // L13, H17
    let (_folder, service) = start("echo").await;
    let host = "Host: localhost";
    let announced = post(&[host, "Content-Length: 104857600"], "");
    let began = Instant::now();
    assert_eq!(send_raw(&service.address, &announced).await.status, 413);
    assert!(began.elapsed() < Duration::from_secs(1), "{:?}", began.elapsed());
    // A client that sends at once gets to read the answer, too.
    let sent = format!("{announced}{}", " ".repeat(8 * 1024 * 1024));
    assert_eq!(send_raw(&service.address, &sent).await.status, 413);
    let before = resident_kib(service.pid);
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1024 * 1024));
    let chunks = post(&[host, "Transfer-Encoding: chunked"], &chunk.repeat(5));
    let all = (0..8).map(|_| send_raw(&service.address, &chunks));
    for answer in futures_util::future::join_all(all).await {
        assert_eq!(answer.status, 413);
    }
    let grown = resident_kib(service.pid).saturating_sub(before);
    assert!(grown < 64 * 1024, "{grown} KiB more");
    service.wait_for("toolman_request_bytes", 0).await;
    let other = [("Content-Type", "application/json; charset=utf-16")];
    assert_eq!(service.send("/mcp", &other, &hello("2025-11-25")).await.status, 415);
}

/// Opens connections that say only this.
async fn open(service: &Service, count: usize, text: &str) -> Vec<TcpStream> {
    let mut streams = Vec::new();
    for _ in 0..count {
        let mut stream = TcpStream::connect(&service.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        streams.push(stream);
    }
    streams
}

#[tokio::test]
async fn normal_client_is_served_among_hundreds_of_slow_ones() {
    // L18, in a small size
    let (_folder, service) = start("echo").await;
    let _load = crate::MACHINE.read().await;
    let session = service.session().await;
    let half = open(&service, 200, "POST /mcp HTTP/1.1\r\nHost: localh").await;
    let silent = open(&service, 200, "").await;
    let body = post(&["Host: localhost", "Content-Length: 1000"], "{");
    let dripping = open(&service, 50, &body).await;
    service.wait_for("toolman_connections", 451).await;
    for id in 1..=50 {
        let message = call(id, "a_echo", json!({"n": id})).to_string();
        let answer = service.send("/mcp", &[("Mcp-Session-Id", &session)], &message).await;
        assert_eq!(answer.json()["result"]["structuredContent"]["n"], id);
    }
    // All of them are let go: within ten seconds, the bodies within fifteen.
    let began = Instant::now();
    for mut stream in half.into_iter().chain(silent).chain(dripping) {
        let within = Duration::from_secs(20);
        _ = timeout(within, stream.read_to_end(&mut Vec::new())).await.expect("it is closed");
    }
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
    service.wait_for("toolman_connections", 1).await;
}

#[tokio::test]
async fn lack_of_files_is_survived_quietly() {
    // L18, L19
    let folder = folder("", &[("a", "echo")]);
    let service = start_with_files(&folder, "-n 192").await;
    let streams = open(&service, 300, "").await;
    let deadline = Instant::now() + PATIENCE;
    while open_files(service.pid) < 64 {
        assert!(Instant::now() < deadline, "{} files", open_files(service.pid));
        tokio::task::yield_now().await;
    }
    // All places are taken by clients that ask nothing, so they make room for one that does.
    let health = send(&service.address, "GET", "/health", &[], "");
    let answer = timeout(Duration::from_secs(5), health).await.expect("an answer meanwhile");
    assert_eq!(answer.status, 200);
    let used = cpu_ticks(service.pid);
    tokio::time::sleep(Duration::from_secs(1)).await;
    let used = cpu_ticks(service.pid) - used;
    assert!(used <= 20, "{used} % of a core while there is nothing to do");
    drop(streams);
    let health = send(&service.address, "GET", "/health", &[], "");
    let answer = timeout(Duration::from_secs(2), health).await.expect("an answer at once");
    assert_eq!(answer.status, 200);
    let log = std::fs::read_to_string(folder.path().join("log")).unwrap();
    assert!(log.lines().count() <= 5, "{log}");
}

/// Starts the service with another limit of open files; it logs to a file.
async fn start_with_files(folder: &Folder, limit: &str) -> Service {
    let log = std::fs::File::create(folder.path().join("log")).unwrap();
    let line = format!("ulimit {limit}; exec {TOOLMAN} serve --listen 127.0.0.1:0");
    let mut shell = Command::new("sh");
    shell.args(["-c", &line]).current_dir(folder.path()).kill_on_drop(true).stderr(log);
    shell.env("XDG_DATA_HOME", folder.path()).env("BEARER_TOKEN", TOKEN);
    Service::run(shell).await
}

#[tokio::test]
async fn as_many_files_are_opened_as_may_be() {
    let folder = folder("", &[("a", "echo")]);
    let service = start_with_files(&folder, "-S -n 192").await;
    let limits = std::fs::read_to_string(format!("/proc/{}/limits", service.pid)).unwrap();
    let line = limits.lines().find(|line| line.starts_with("Max open files")).unwrap();
    let numbers: Vec<u64> = line.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    assert_eq!(numbers[0], numbers[1].min(8192), "{line}");
}

/// The processor time of a process in hundredths of a second.
fn cpu_ticks(pid: u32) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    fields[11].parse::<u64>().unwrap() + fields[12].parse::<u64>().unwrap()
}

#[tokio::test]
async fn client_may_leave_at_every_byte_of_a_request_and_of_its_answer() {
    let (_folder, service) = start("progress").await;
    let session = service.session().await;
    let params = json!({"name": "a_progress", "_meta": {"progressToken": "p"}});
    let message = request(1, "tools/call", params).to_string();
    let length = format!("Content-Length: {}", message.len());
    let session = format!("Mcp-Session-Id: {session}");
    let text = post(&["Host: localhost", &session, &length, "Connection: close"], &message);
    let answer = send_raw(&service.address, &text).await;
    assert_eq!(answer.events().len(), 4, "{answer:?}");
    service.wait_for("toolman_connections", 1).await;
    // By then the file of the audit trail is open as well.
    service.wait_for("toolman_audit_records_total", 1).await;
    let files = open_files(service.pid);
    for cut in 0..=text.len() {
        let mut stream = TcpStream::connect(&service.address).await.unwrap();
        stream.write_all(&text.as_bytes()[..cut]).await.unwrap();
    }
    let whole = answer_bytes(&service, &text).await;
    for cut in 0..=whole {
        let mut stream = TcpStream::connect(&service.address).await.unwrap();
        stream.write_all(text.as_bytes()).await.unwrap();
        let mut some = vec![0; cut];
        _ = timeout(PATIENCE, stream.read_exact(&mut some)).await.unwrap();
    }
    service.wait_for("toolman_connections", 1).await;
    service.wait_for("toolman_requests_under_way", 0).await;
    service.wait_for("toolman_calls_under_way{upstream=\"a\"}", 0).await;
    service.wait_for("toolman_request_bytes", 0).await;
    assert_eq!(service.figure("toolman_sessions").await, 1);
    let deadline = Instant::now() + PATIENCE;
    while open_files(service.pid) > files {
        assert!(Instant::now() < deadline, "{} files, not {files}", open_files(service.pid));
        tokio::task::yield_now().await;
    }
    assert_eq!(send_raw(&service.address, &text).await.status, 200);
}

async fn answer_bytes(service: &Service, text: &str) -> usize {
    let mut stream = TcpStream::connect(&service.address).await.unwrap();
    stream.write_all(text.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    timeout(PATIENCE, stream.read_to_end(&mut answer)).await.unwrap().unwrap()
}

#[tokio::test]
async fn signal_lets_two_hundred_calls_be_answered() {
    let (_folder, mut service) = start("slow").await;
    let _load = crate::MACHINE.read().await;
    let session = service.session().await;
    let bearer = format!("Bearer {TOKEN}");
    let answers: Vec<_> = (1..=200)
        .map(|id| {
            let (address, session) = (service.address.clone(), session.clone());
            let bearer = bearer.clone();
            let message = call(id, "a_slow", json!({"ms": 1500})).to_string();
            tokio::spawn(async move {
                let headers = [("Authorization", &*bearer), ("Mcp-Session-Id", &*session)];
                send(&address, "POST", "/mcp", &headers, &message).await
            })
        })
        .collect();
    service.wait_for("toolman_calls_under_way{upstream=\"a\"}", 200).await;
    kill("-TERM", service.pid);
    for answer in answers {
        let answer: Value = answer.await.unwrap().json();
        assert_eq!(answer["result"]["content"][0]["text"], "ok", "{answer}");
    }
    let ended = timeout(PATIENCE, service.child.wait()).await.unwrap().unwrap();
    assert_eq!(ended.code(), Some(0));
}
