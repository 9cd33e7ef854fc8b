//! The last words of a server: the tail of its stderr.

use std::sync::{Arc, Mutex, PoisonError};

use mcp::names::UpstreamName;
use mcp::text::tame;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;

use crate::limits::{STDERR_BYTES_KEPT, STDERR_BYTES_SHOWN};
use crate::printed::Printed;
use crate::veil::Veil;

/// How much is read at a time: what a pipe holds.
const CHUNK_BYTES: usize = 64 * 1024;
/// The longest first line that is kept.
const FIRST_LINE_BYTES_MAX: usize = 1024;

/// The tail, shared by who reads and who shows it.
#[derive(Clone, Debug, Default)]
pub struct StderrTail {
    bytes: Arc<Mutex<Vec<u8>>>,
    veil: Arc<Veil>,
    /// How it began.
    begun: Arc<watch::Sender<Vec<u8>>>,
}

impl StderrTail {
    pub fn new(veil: &Arc<Veil>) -> StderrTail {
        StderrTail { veil: Arc::clone(veil), ..StderrTail::default() }
    }

    /// Keeps reading until the end.
    pub async fn follow(
        self,
        upstream: UpstreamName,
        mut stderr: impl AsyncRead + Unpin,
        printed: Option<Arc<Printed>>,
    ) {
        let mut chunk = vec![0; CHUNK_BYTES];
        let tell = |bytes: &[u8]| {
            if bytes.is_empty() {
                return;
            }
            tracing::debug!(%upstream, text = %String::from_utf8_lossy(bytes), "stderr");
            if let Some(printed) = &printed {
                printed.add(bytes);
            }
        };
        let mut unlogged = Vec::new();
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            self.keep(&chunk[..count]);
            self.begin(&chunk[..count]);
            unlogged.extend_from_slice(&chunk[..count]);
            // What may be the beginning of a value waits for the rest.
            tell(&self.veil.over_part(&mut unlogged));
        }
        tell(&self.veil.over_last(unlogged));
    }

    fn begin(&self, chunk: &[u8]) {
        self.begun.send_if_modified(|begun| {
            let has_line = begun.contains(&b'\n') || begun.len() >= FIRST_LINE_BYTES_MAX;
            if !has_line {
                let room = FIRST_LINE_BYTES_MAX - begun.len();
                begun.extend(&chunk[..chunk.len().min(room)]);
            }
            !has_line
        });
    }

    fn keep(&self, chunk: &[u8]) {
        let mut tail = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(chunk);
        if tail.len() > 2 * STDERR_BYTES_KEPT {
            // First hidden, then cut: half a value is one, too.
            *tail = self.veil.over_text(&tail).into_owned();
            let excess = tail.len().saturating_sub(STDERR_BYTES_KEPT);
            tail.drain(..excess);
        }
    }

    /// All that is kept, without the values of secrets.
    pub fn text(&self) -> String {
        let tail = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let shown = self.veil.over_last(tail.clone());
        let from = shown.len().saturating_sub(STDERR_BYTES_KEPT);
        String::from_utf8_lossy(&shown[from..]).into_owned()
    }

    /// Waits for the first line.
    pub async fn first_line(&self) -> String {
        let mut begun = self.begun.subscribe();
        let is_whole = |begun: &Vec<u8>| begun.contains(&b'\n');
        let Ok(begun) = begun.wait_for(is_whole).await else { return String::new() };
        let line = begun.split(|byte| *byte == b'\n').next().unwrap_or_default();
        tame(&String::from_utf8_lossy(line))
    }

    /// The last lines, fit for an error: bounded, without control characters.
    pub fn last_words(&self) -> String {
        let text = self.text();
        let from = text.len().saturating_sub(STDERR_BYTES_SHOWN);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let lines: Vec<_> = text[from..].lines().map(tame).collect();
        lines.join("\n").trim().to_owned()
    }
}
