//! The last words of a server: the tail of its stderr.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use mcp::names::UpstreamName;
use mcp::text::tame;
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::sync::watch;

use crate::limits::{STDERR_BYTES_KEPT, STDERR_BYTES_SHOWN};

/// The longest first line that is kept.
const FIRST_LINE_BYTES_MAX: usize = 1024;

/// The tail, shared by who reads and who shows it.
#[derive(Clone, Debug, Default)]
pub struct StderrTail {
    tail: Arc<Mutex<VecDeque<u8>>>,
    /// How it began.
    begun: Arc<watch::Sender<Vec<u8>>>,
}

impl StderrTail {
    /// Keeps reading until the end.
    pub async fn follow(self, upstream: UpstreamName, mut stderr: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 8 * 1024];
        while let Ok(count @ 1..) = stderr.read(&mut chunk).await {
            tracing::debug!(%upstream, text = %String::from_utf8_lossy(&chunk[..count]), "stderr");
            self.begun.send_if_modified(|begun| {
                let has_line = begun.contains(&b'\n') || begun.len() >= FIRST_LINE_BYTES_MAX;
                if !has_line {
                    let room = FIRST_LINE_BYTES_MAX - begun.len();
                    begun.extend(&chunk[..count.min(room)]);
                }
                !has_line
            });
            let mut tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
            tail.extend(&chunk[..count]);
            let excess = tail.len().saturating_sub(STDERR_BYTES_KEPT);
            tail.drain(..excess);
        }
    }

    /// All that is kept.
    pub fn text(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = tail.iter().copied().collect();
        String::from_utf8_lossy(&bytes).into_owned()
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
