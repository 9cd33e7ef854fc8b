//! An index of packages on this machine, which does what a test wants of it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// A wheel of `NAME` 1.0, whose module tells its version; with `sdist`, a package that must be built.
const MAKE: &str = r#"
import io, sys, tarfile, zipfile
name, kind, target = sys.argv[1:]
if kind == "wheel":
    info = name + "-1.0.dist-info/"
    with zipfile.ZipFile(target, "w") as whole:
        whole.writestr(name + "/__init__.py", "__version__ = '1.0'\n")
        whole.writestr(info + "METADATA", "Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name)
        whole.writestr(info + "WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        whole.writestr(info + "RECORD", "")
else:
    text = ("Metadata-Version: 2.1\nName: %s\nVersion: 1.0\n" % name).encode()
    with tarfile.open(target, "w:gz") as whole:
        entry = tarfile.TarInfo(name + "-1.0/PKG-INFO")
        entry.size = len(text)
        whole.addfile(entry, io.BytesIO(text))
"#;

pub struct Index {
    address: String,
    asked: Arc<AtomicUsize>,
    opened: watch::Sender<bool>,
}

struct Shelf {
    /// Names of packages, and the file of each.
    files: Vec<(&'static str, String, Vec<u8>)>,
    opened: watch::Receiver<bool>,
    asked: Arc<AtomicUsize>,
}

impl Index {
    /// An index with these packages, each a `wheel` or an `sdist`.
    pub async fn of(packages: &[(&'static str, &str)]) -> Index {
        let files = packages.iter().map(|(name, kind)| {
            let file = if *kind == "wheel" {
                format!("{name}-1.0-py3-none-any.whl")
            } else {
                format!("{name}-1.0.tar.gz")
            };
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join(&file);
            let made = std::process::Command::new("python3")
                .args(["-I", "-c", MAKE, name, kind])
                .arg(&path)
                .status();
            assert!(made.unwrap().success());
            (*name, file, std::fs::read(path).unwrap())
        });
        let (opened, asked) = (watch::Sender::new(true), Arc::new(AtomicUsize::new(0)));
        let shelf = Arc::new(Shelf {
            files: files.collect(),
            opened: opened.subscribe(),
            asked: Arc::clone(&asked),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shelf = Arc::clone(&shelf);
                tokio::spawn(async move { shelf.answer(stream).await });
            }
        });
        Index { address, asked, opened }
    }

    /// It takes requests and says nothing until it is opened again.
    pub fn close(self) -> Index {
        self.opened.send_replace(false);
        self
    }

    pub fn open(&self) {
        self.opened.send_replace(true);
    }

    pub fn url(&self) -> String {
        format!("http://{}/simple", self.address)
    }

    /// How often it was asked.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    /// Waits until somebody has asked.
    pub async fn is_asked(&self) {
        while self.asked() == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
}

impl Shelf {
    async fn answer(&self, mut stream: TcpStream) -> Option<()> {
        let mut head = vec![0; 16 * 1024];
        let length = stream.read(&mut head).await.ok()?;
        let head = String::from_utf8_lossy(&head[..length]).into_owned();
        let mut words = head.split(' ');
        let (method, path) = (words.next()?, words.next()?.trim_end_matches('/'));
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.opened.clone().wait_for(|opened| *opened).await.ok()?;
        let listed = self.files.iter().find(|(name, ..)| path == format!("/simple/{name}"));
        let wanted = self.files.iter().find(|(_, file, _)| path == format!("/files/{file}"));
        let (status, kind, body) = match (listed, wanted) {
            (Some((_, file, _)), _) => {
                let link = format!("<!DOCTYPE html><a href=\"/files/{file}\">{file}</a>");
                ("200 OK", "text/html", link.into_bytes())
            }
            (None, Some((_, _, bytes))) => ("200 OK", "application/octet-stream", bytes.clone()),
            (None, None) => ("404 Not Found", "text/html", Vec::new()),
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nConnection: close\r\nCache-Control: no-store\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.ok()?;
        // Who asks with HEAD wants no more.
        let body = if method == "HEAD" { Vec::new() } else { body };
        stream.write_all(&body).await.ok()
    }
}
