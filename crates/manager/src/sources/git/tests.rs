//! What git is told, and by whom it is not led astray. HARDENING G08

use std::ffi::OsString;
use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpListener};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::address::{is_public, pin};
use super::program::against;
use super::{arguments, environment};

#[test]
fn only_public_addresses_are_asked() {
    let is_public = |text: &str| is_public(text.parse::<IpAddr>().unwrap());
    for inside in [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "198.18.0.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fc00::1",
        "fd00::1",
        "::ffff:127.0.0.1",
        "::ffff:10.0.0.1",
        "2001:db8::1",
        "2002:7f00:1::",
        "2001::1",
        "64:ff9b::7f00:1",
        "ff02::1",
    ] {
        assert!(!is_public(inside), "{inside}");
    }
    for outside in
        ["140.82.121.4", "1.1.1.1", "2606:50c0:8000::154", "2a00:1450::1", "::ffff:1.1.1.1"]
    {
        assert!(is_public(outside), "{outside}");
    }
}

#[test]
fn all_addresses_are_pinned() {
    let addresses = ["1.1.1.1", "2606:50c0:8000::154"].map(|text| text.parse::<IpAddr>().unwrap());
    let expected = "http.curloptResolve=host.test:443:1.1.1.1,[2606:50c0:8000::154]";
    assert_eq!(pin("host.test", 443, &addresses), expected);
}

#[test]
fn versions_with_holes_are_told_of() {
    for good in ["2.50.1", "2.47.3", "2.52.0.rc1", "3.0.0", "2.43.7", "2.50.1 (Apple Git-155)"] {
        assert_eq!(against(&format!("git version {good}\n")), None, "{good}");
    }
    for bad in ["2.50.0", "2.47.2", "2.30.2", "1.9", "2.42.9", "none"] {
        let said = against(&format!("git version {bad}\n")).unwrap();
        assert!(said.contains(bad) && said.contains("update it"), "{said}");
    }
}

/// A web site that says one thing to everybody, and what it was asked.
fn site(answer: &'static str) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (noted, own) = (Arc::clone(&asked), address.clone());
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (mut stream, mut head) = (stream.unwrap(), vec![0; 4096]);
            let count = stream.read(&mut head).unwrap();
            let head = String::from_utf8_lossy(&head[..count]).into_owned();
            noted.lock().unwrap().push(head.lines().next().unwrap_or_default().to_owned());
            let answer = answer.replace("SITE", &own);
            _ = stream.write_all(answer.as_bytes());
        }
    });
    (address, asked)
}

#[test]
fn missing_repository_login_and_redirect_end_soon_without_a_question() {
    let rest = "Content-Length: 0\r\nConnection: close\r\n\r\n";
    let answers = [
        ("HTTP/1.1 404 No\r\n", "not found"),
        ("HTTP/1.1 401 No\r\nWWW-Authenticate: Basic realm=\"x\"\r\n", "could not read Username"),
        ("HTTP/1.1 302 No\r\nLocation: http://SITE/elsewhere\r\n", "302"),
        ("HTTP/1.1 301 No\r\nLocation: file:///etc\r\n", "301"),
    ];
    for (answer, expected) in answers {
        let (address, asked) = site(format!("{answer}{rest}").leak());
        let folder = tempfile::TempDir::new().unwrap();
        let from = OsString::from(format!("http://{address}/a/b"));
        let began = Instant::now();
        let mut command = Command::new("git");
        command.args(arguments(&[], from, &folder.path().join("source")));
        // Loopback has no certificate; in all else it is as it is used.
        command.env_clear().envs(environment(folder.path(), "http"));
        let output = command.stdin(std::process::Stdio::null()).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(expected), "{answer}: {said}");
        assert!(began.elapsed() < Duration::from_secs(30), "{answer}: {:?}", began.elapsed());
        let asked = asked.lock().unwrap();
        let is_first = |line: &String| line.starts_with("GET /a/b/info/refs");
        assert!(!asked.is_empty() && asked.iter().all(is_first), "{answer}: {asked:?}");
        assert!(!folder.path().join("source").exists());
    }
}
