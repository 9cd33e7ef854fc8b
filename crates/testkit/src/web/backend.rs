//! The fake server behind a session: its lines, each sent to the stream that it belongs to.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcp::json;
use mcp::modern::SUBSCRIPTION_ID;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, duplex, split};
use tokio::sync::mpsc;

use crate::fake::{self, Script};

const PIPE_BYTES: usize = 32 * 1024 * 1024;

type Sender = mpsc::UnboundedSender<String>;
type Receiver = mpsc::UnboundedReceiver<String>;

#[derive(Clone)]
pub struct Backend {
    input: mpsc::UnboundedSender<Bytes>,
    routes: Arc<Mutex<Routes>>,
}

#[derive(Default)]
struct Routes {
    /// Answers that are awaited, by the text of their id; the newest last.
    posts: Vec<(String, Sender)>,
    /// The stream for what belongs to no request, and what waits for it.
    feed: Option<Sender>,
    waiting: Vec<String>,
    /// Everything goes there.
    only: Option<Sender>,
    parked: HashMap<String, Receiver>,
}

impl Backend {
    pub fn start(script: Script) -> Backend {
        let (ours, theirs) = duplex(PIPE_BYTES);
        let (reader, writer) = split(theirs);
        tokio::spawn(fake::serve(script, reader, writer));
        let (reader, mut writer) = split(ours);
        let (input, mut frames) = mpsc::unbounded_channel::<Bytes>();
        tokio::spawn(async move {
            while let Some(frame) = frames.recv().await {
                let line = [&frame[..], b"\n"].concat();
                if writer.write_all(&line).await.is_err() {
                    return;
                }
            }
            _ = writer.shutdown().await;
        });
        let routes = Arc::<Mutex<Routes>>::default();
        let routing = Arc::clone(&routes);
        tokio::spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                routing.lock().unwrap().route(line);
            }
        });
        Backend { input, routes }
    }

    pub fn send(&self, frame: &Bytes) {
        _ = self.input.send(mcp::lines::one_line(frame.clone()));
    }

    /// The messages that belong to a request, its answer last.
    pub fn expect(&self, id: &str) -> Receiver {
        let (sender, receiver) = mpsc::unbounded_channel();
        self.routes.lock().unwrap().posts.push((id.to_owned(), sender));
        receiver
    }

    /// Keeps the messages of a request for a client that comes back.
    pub fn park(&self, id: &str, messages: Receiver) {
        self.routes.lock().unwrap().parked.insert(id.to_owned(), messages);
    }

    pub fn unpark(&self, id: &str) -> Option<Receiver> {
        self.routes.lock().unwrap().parked.remove(id)
    }

    /// The messages that belong to no request.
    pub fn feed(&self) -> Receiver {
        let (sender, receiver) = mpsc::unbounded_channel();
        let mut routes = self.routes.lock().unwrap();
        for line in routes.waiting.drain(..) {
            _ = sender.send(line);
        }
        routes.feed = Some(sender);
        receiver
    }

    /// All messages, after this one.
    pub fn everything(&self, first: &str) -> Receiver {
        let (sender, receiver) = mpsc::unbounded_channel();
        _ = sender.send(first.to_owned());
        self.routes.lock().unwrap().only = Some(sender);
        receiver
    }
}

impl Routes {
    fn route(&mut self, line: String) {
        if let Some(only) = &self.only {
            _ = only.send(line);
            return;
        }
        let Ok([id, method, params]) = json::members(line.as_bytes(), ["id", "method", "params"])
        else {
            return;
        };
        let params = params.unwrap_or("{}").as_bytes();
        let about = json::members(params, ["progressToken", "_meta"]).unwrap_or_default();
        let subscription = about[1].and_then(|meta| {
            json::members(meta.as_bytes(), [SUBSCRIPTION_ID]).ok().and_then(|[id]| id)
        });
        let named = about[0].or(subscription).or(id.filter(|_| method.is_none()));
        let is_own = method.is_some_and(|method| {
            method.contains("list_changed") || method.contains("resources/updated")
        });
        let at = match named {
            Some(id) => self.posts.iter().position(|(own, _)| own == id),
            None if is_own => None,
            None => self.posts.len().checked_sub(1),
        };
        match (at, method) {
            (Some(at), None) => _ = self.posts.remove(at).1.send(line),
            (Some(at), Some(_)) => _ = self.posts[at].1.send(line),
            (None, _) => match &self.feed {
                Some(feed) if !feed.is_closed() => _ = feed.send(line),
                _ => self.waiting.push(line),
            },
        }
    }
}
