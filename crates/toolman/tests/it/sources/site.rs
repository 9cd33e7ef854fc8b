//! A web site on loopback that plays the registries of servers, of npm and of Python.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use aws_lc_rs::digest::{SHA512, digest};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

/// A status and a body, by path.
type Pages = HashMap<String, (u16, Vec<u8>)>;

/// A web site that answers what it was told to, and notes what it was asked.
#[derive(Clone)]
pub struct Site {
    pub address: String,
    pub pages: Arc<Mutex<Pages>>,
    pub asked: Arc<Mutex<Vec<String>>>,
}

impl Site {
    pub async fn start() -> Site {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let site = Site { address, pages: Arc::default(), asked: Arc::default() };
        let served = site.clone();
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let site = served.clone();
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.ends_with(b"\r\n\r\n") {
                        let Ok(byte) = stream.read_u8().await else { return };
                        head.push(byte);
                    }
                    let head = String::from_utf8(head).unwrap();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    let page = site.pages.lock().unwrap().get(&path).cloned();
                    site.asked.lock().unwrap().push(path);
                    let (status, body) = page.unwrap_or((404, b"nothing here".to_vec()));
                    let more =
                        if status == 302 { "Location: https://elsewhere.test/x\r\n" } else { "" };
                    let head = format!(
                        "HTTP/1.1 {status} X\r\n{more}Content-Length: {}\r\n\r\n",
                        body.len()
                    );
                    _ = stream.write_all(head.as_bytes()).await;
                    _ = stream.write_all(&body).await;
                });
            }
        });
        site
    }

    pub fn page(&self, path: &str, body: impl Into<Vec<u8>>) {
        self.pages.lock().unwrap().insert(path.to_owned(), (200, body.into()));
    }

    /// What makes a manager ask here and nowhere else.
    pub fn variables(&self) -> [(&'static str, &str); 3] {
        ["MCP_REGISTRY_URL", "NPM_REGISTRY_URL", "PYPI_URL"]
            .map(|name| (name, self.address.as_str()))
    }

    /// Offers a package of npm with one file of sources.
    pub fn offer_npm(&self, name: &str, archive: &[u8]) {
        let file = format!("{}/files/package.tgz", self.address);
        let hash = base64(digest(&SHA512, archive).as_ref());
        let about = json!({"version": "1.2.3", "dist": {"tarball": file, "integrity": format!("sha512-{hash}")}});
        self.page(&format!("/{}/latest", name.replace('/', "%2F")), about.to_string());
        self.page("/files/package.tgz", archive);
    }

    /// Answers a search with these servers, all on one page.
    pub fn offer_servers(&self, query: &str, servers: &[Value]) {
        let servers: Vec<Value> = servers.iter().map(|server| json!({"server": server})).collect();
        let page = json!({"servers": servers, "metadata": {"count": servers.len()}});
        self.page(&format!("/v0/servers?search={query}&version=latest&limit=50"), page.to_string());
    }
}

/// As the integrity of npm is written.
pub fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for chunk in bytes.chunks(3) {
        let all = chunk.iter().fold(0u32, |all, byte| all << 8 | u32::from(*byte))
            << (8 * (3 - chunk.len()));
        for place in 0..4 {
            let letter = LETTERS[(all >> (18 - 6 * place) & 63) as usize];
            text.push(if place > chunk.len() { '=' } else { char::from(letter) });
        }
    }
    text
}

pub fn archive(files: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (path, text) in files {
        let mut header = tar::Header::new_gnu();
        header.set_size(text.len() as u64);
        header.set_mode(0o644);
        builder.append_data(&mut header, path, text.as_bytes()).unwrap();
    }
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&builder.into_inner().unwrap()).unwrap();
    encoder.finish().unwrap()
}
